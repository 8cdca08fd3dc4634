"""Records as they were fetched, without an object for each.

aiokafka copies every decoded record into a dataclass with the sizes and headers that nobody here
reads, through three Python calls: more than all else that an event costs. Where the compiled core
is there, a response is taken apart into blocks (``_batches``), which the parser reads as they are;
elsewhere aiokafka decodes, without the dataclass. The classes are looked up in aiokafka's module
when a response comes in, so that is where ours are put (its version is pinned).
"""

from __future__ import annotations

from itertools import chain, islice
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aiokafka.consumer import fetcher
from aiokafka.errors import CorruptRecordException, UnsupportedCodecError
from aiokafka.record.default_records import DefaultRecordBatch
from aiokafka.record.legacy_records import LegacyRecordBatch
from aiokafka.record.memory_records import MemoryRecords

from config.errors import DecisionError
from worker.events import native
from worker.transport import codecs
from worker.transport.epochs import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from aiokafka.structs import TopicPartition

    from worker.events import Record
    from worker.events._block import Block
    from worker.transport._batches import RecordBatch

if native.COMPILED:
    from worker.events import _block
    from worker.transport import _batches

_MAGIC: Final = 2
"""The format since Apache Kafka 0.11; batches in older ones are left to aiokafka."""

_START: Final = Struct(">qiib")
"""What a batch begins with: offset, length of what follows, leader epoch, format."""

_LENGTH_END: Final = 12


class BatchError(DecisionError):
    """A record batch, as the broker serves it, cannot be read: going on would lose its records.

    Attributes
    ----------
    what
        Which it is and what is wrong with it, without the cure, which is another for each reader.
    """

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}; repair the broker's replica, or delete the records up to behind the batch "
            "(kafka-delete-records) and start a worker with --accept-gap"
        )
        self.what = what


def unreadable(partition: TopicPartition, offset: int, why: Exception) -> BatchError:
    """Return the error that says which batch it is, what is wrong with it, and a worker's cure."""
    return BatchError(
        f"the record batch at offset {offset} of the topic {partition.topic}, partition "
        f"{partition.partition}, cannot be read: {str(why) or repr(why)}"
    )


class _Stopped(fetcher.PartitionRecords):  # type: ignore[misc]
    """Records up to the first batch that cannot be read: those before it are delivered first."""

    _records: Any
    _fault: BatchError | None = None

    leader_epoch = UNKNOWN
    """Of the last batch before the position; markers are in batches too."""

    def _stop(self, offset: int, why: Exception) -> None:
        self._fault = unreadable(self._tp, offset, why)
        self._fault.__cause__ = why

    def _check(self, found: Sequence[Record]) -> Sequence[Record]:
        if self._fault is not None and not found:
            raise self._fault
        return found


class PlainBatches:
    """aiokafka's batches of a response, which do not tell their leader epoch, with it.

    Parameters
    ----------
    raw
        What the broker sent.

    Attributes
    ----------
    leader_epoch
        Of the batch that was taken last.
    """

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._batches = MemoryRecords(raw)
        self._at = 0
        self.leader_epoch = UNKNOWN

    def size_in_bytes(self) -> int:
        """Return how much the broker sent."""
        return len(self._raw)

    def has_next(self) -> bool:
        """Tell whether there is another whole batch."""
        return bool(self._batches.has_next())

    def next_batch(self) -> Any:
        """Return the next batch, None behind the last one; raises what aiokafka does."""
        batch = self._batches.next_batch()
        if batch is not None:
            _, length, epoch, magic = _START.unpack_from(self._raw, self._at)
            self._at += _LENGTH_END + length
            self.leader_epoch = epoch if magic >= _MAGIC else UNKNOWN
        return batch


class RunRecords(_Stopped):
    """The records of a response: offset, timestamp, key and value are what they have in common."""

    def _consumer_record(self, tp: object, record: Any) -> Any:  # noqa: ARG002 - aiokafka's signature
        return record

    def take(self, most: int | None) -> Sequence[Record]:
        """Return the next records, `most` of them unless there are fewer.

        Raises
        ------
        BatchError
            When the next batch cannot be read.
        """
        found: list[Record] = []
        try:
            found.extend(islice(self._records_iterator, most))
            # The iterator opens a batch when it needs a record of it.
            self.leader_epoch = self._records.leader_epoch
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - damage looks like anything
            # What a list took before the error stays in it.
            self._stop(self.next_fetch_offset, error)
            self.leader_epoch = UNKNOWN
        return self._check(found)


class BlockRecords(_Stopped):
    """The records of a response as blocks.

    What is delivered is what aiokafka's `_unpack_records` delivers, step by step: batches are
    checked, those of aborted transactions and of control records passed over, records before the
    offset that was asked for left out. Its position moves behind a batch with its last record.
    """

    _open: Block | None = None
    _behind = 0
    _opened_epoch = UNKNOWN

    def take(self, most: int | None) -> Sequence[Record]:
        """Return the next records, `most` of them unless there are fewer.

        Raises
        ------
        BatchError
            When the next batch cannot be read.
        """
        parts: list[Block] = []
        taken = 0
        while most is None or taken < most:
            block = self._open or (None if self._fault else self._next())
            if block is None:
                # It refers to us: without it all that was fetched goes at once, not when the
                # collector comes.
                self._records_iterator = None
                break
            part = block if most is None else block[: most - taken]
            parts.append(part)
            taken += len(part)
            self._open = block[len(part) :]
            self._move(part[-1].offset + 1 if self._open else self._behind)
        return self._check(_block.block_of_blocks(parts))

    def _unpack_records(self) -> Iterator[Record]:
        while records := self.take(1):
            yield records[0]

    def _next(self) -> Block | None:
        """Open the next batch that has records to deliver; stop at one that cannot be read."""
        batch: Any = None
        try:
            while (batch := self._records.next_batch()) is not None:
                block = self._opened(batch)
                if block:
                    return block
                self._move(self._behind)
                batch = None
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - damage looks like anything
            self._stop(self.next_fetch_offset if batch is None else batch.base_offset, error)
        return None

    def _move(self, offset: int) -> None:
        self.next_fetch_offset, self.leader_epoch = offset, self._opened_epoch

    def _opened(self, batch: Any) -> Block | None:
        """Return the records of a batch that are for us."""
        epoch = batch.leader_epoch
        if batch.magic < _MAGIC:
            batch = LegacyRecordBatch(bytes(batch.raw), batch.magic)
        if self._check_crcs and not batch.validate_crc():
            raise CorruptRecordException("it fails its checksum")
        self._behind, self._opened_epoch = batch.next_offset, epoch
        return None if self._is_passed_over(batch) else self._decoded(batch)

    def _is_passed_over(self, batch: Any) -> bool:
        """Tell whether nobody wrote the batch for us: it is a marker, or was aborted."""
        if self._isolation_level == fetcher.READ_COMMITTED and batch.producer_id is not None:
            self._consume_aborted_up_to(batch.base_offset)
            if batch.is_control_batch and self._contains_abort_marker(
                DefaultRecordBatch(bytes(batch.raw))
            ):
                self._aborted_producers.discard(batch.producer_id)
            if batch.is_transactional and batch.producer_id in self._aborted_producers:
                return True
        return bool(batch.is_control_batch)

    def _decoded(self, batch: RecordBatch | Any) -> Block:
        first = self.next_fetch_offset
        if not isinstance(batch, _batches.RecordBatch):
            return _block.block_of_records([one for one in batch if one.offset >= first])
        if not batch.compression_type:
            return batch.records(None, first)
        decode = codecs.DECODERS.get(batch.compression_type)
        if decode is None:
            raise UnsupportedCodecError(f"its codec {batch.compression_type} is unknown")
        return batch.records(decode(bytes(batch.payload)), first)


class Run:
    """Records in a row, and the stretch of the log that they are all of.

    Attributes
    ----------
    records
        A block, or objects.
    start, end
        Every committed record with an offset in [start, end) is here. Where offsets are missing
        there is none: control records, aborted transactions, compaction. All may be missing.
    unread
        Offsets that the log held behind the run when it was fetched.
    epoch
        Leader epoch of the last batch in the stretch, `UNKNOWN` where a broker gives none.
    sought
        Number of the seek behind which it was taken, 0 where there was none in the assignment.
    """

    __slots__ = ("end", "epoch", "records", "sought", "start", "unread")

    def __init__(
        self,
        records: Sequence[Record] = (),
        start: int = 0,
        end: int = 0,
        unread: int = 0,
        epoch: int = UNKNOWN,
    ) -> None:
        self.records = records
        self.start = start
        self.end = end
        self.unread = unread
        self.epoch = epoch
        self.sought = 0

    def __len__(self) -> int:
        return len(self.records)

    def __bool__(self) -> bool:
        """Whether it leads on in the log; aiokafka delivers what is true, records or none."""
        return self.end != self.start


class Read(NamedTuple):
    """How far a partition was read, and the leader epoch of the batch before that offset."""

    offset: int
    epoch: int


def joined(runs: Sequence[Run]) -> Run:
    """Return runs of one epoch, one or more that follow each other, as one; O(records)."""
    *_, last = runs
    if len(runs) == 1:
        return last
    records: Sequence[Record]
    found = [run.records for run in runs if len(run)]
    blocks = [some for some in found if native.COMPILED and isinstance(some, _block.Block)]
    if blocks and len(blocks) == len(found):
        records = _block.block_of_blocks(blocks)
    else:
        records = list(chain.from_iterable(found))
    whole = Run(records, runs[0].start, last.end, last.unread, last.epoch)
    whole.sought = last.sought
    return whole


class RunResult(fetcher.FetchResult):  # type: ignore[misc]
    """A response that is taken apart in runs."""

    _partition_records: Any

    def getall(self, max_records: int | None = None) -> Run:
        """Return the next records, `max_records` at the most, and move the position.

        The position is moved by others too: by a seek, and by aiokafka's own reset to the earliest
        offset when the log no longer holds it. So where a run starts is told with it.
        """
        if not self.check_assignment(self._topic_partition) or not self.has_more():
            return Run()
        state = self._assignment.state_value(self._topic_partition)
        before = state.position
        records = self._partition_records.take(max_records)
        self._update_position()
        epoch = self._partition_records.leader_epoch
        if state.position != before:
            state.read = Read(state.position, epoch)
        if max_records is None or len(records) < max_records:
            self._partition_records = None
        unread = max((state.highwater or 0) - state.position, 0)
        run = Run(records, before, state.position, unread, epoch)
        run.sought = getattr(state, "sought", 0)
        return run


def install(module: Any = fetcher) -> None:
    """Have aiokafka's consumers give runs.

    Parameters
    ----------
    module
        Where their `Fetcher` is from; by default aiokafka's own, so that all of the process do.
    """
    codecs.install()
    module.FetchResult = RunResult
    if native.COMPILED:
        module.MemoryRecords = _batches.Batches
        module.PartitionRecords = BlockRecords
    else:
        module.MemoryRecords = PlainBatches
        module.PartitionRecords = RunRecords
