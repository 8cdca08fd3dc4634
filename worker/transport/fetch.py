"""Records as they were fetched, without an object for each.

aiokafka copies every decoded record into a dataclass with the sizes and headers that nobody here
reads, through three Python calls: more than all else that an event costs. Where the compiled core
is there, a response is taken apart into blocks (``_batches``), which the parser reads as they are;
elsewhere aiokafka decodes, without the dataclass. The classes are looked up in aiokafka's module
when a response comes in, so that is where ours are put (its version is pinned).
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from aiokafka import codec
from aiokafka.consumer import fetcher
from aiokafka.errors import CorruptRecordException, UnsupportedCodecError
from aiokafka.record.default_records import DefaultRecordBatch
from aiokafka.record.legacy_records import LegacyRecordBatch

from worker.events import native

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from worker.events import Record
    from worker.events._block import Block
    from worker.transport._batches import RecordBatch

if native.COMPILED:
    from worker.events import _block
    from worker.transport import _batches

_CODECS: Final = {
    1: codec.gzip_decode,
    2: codec.snappy_decode,
    3: codec.lz4_decode,
    4: codec.zstd_decode,
}
_MAGIC: Final = 2
"""The format since Apache Kafka 0.11; batches in older ones are left to aiokafka."""


class RunRecords(fetcher.PartitionRecords):  # type: ignore[misc]
    """The records of a response: offset, timestamp, key and value are what they have in common."""

    def _consumer_record(self, tp: object, record: Any) -> Any:  # noqa: ARG002 - aiokafka's signature
        return record

    def take(self, most: int | None) -> Sequence[Record]:
        """Return the next records, `most` of them unless there are fewer."""
        return list(islice(self._records_iterator, most))


class BlockRecords(fetcher.PartitionRecords):  # type: ignore[misc]
    """The records of a response as blocks.

    What is delivered is what aiokafka's `_unpack_records` delivers, step by step: batches are
    checked, those of aborted transactions and of control records passed over, records before the
    offset that was asked for left out. Its position moves behind a batch with its last record.
    """

    _records: Any
    _open: Block | None = None
    _behind = 0

    def take(self, most: int | None) -> Sequence[Record]:
        """Return the next records, `most` of them unless there are fewer."""
        parts: list[Block] = []
        taken = 0
        while most is None or taken < most:
            block = self._open or self._next()
            if block is None:
                break
            part = block if most is None else block[: most - taken]
            parts.append(part)
            taken += len(part)
            self._open = block[len(part) :]
            self.next_fetch_offset = part[-1].offset + 1 if self._open else self._behind
        return _block.block_of_blocks(parts)

    def _unpack_records(self) -> Iterator[Record]:
        while records := self.take(1):
            yield records[0]

    def _next(self) -> Block | None:
        """Open the next batch that has records to deliver."""
        while (batch := self._records.next_batch()) is not None:
            found = batch
            if batch.magic < _MAGIC:
                found = LegacyRecordBatch(bytes(batch.raw), batch.magic)
            if self._check_crcs and not found.validate_crc():
                raise CorruptRecordException(f"Invalid CRC - {self._tp}")
            self._behind = found.next_offset
            if not self._is_passed_over(found):
                block = self._decoded(found)
                if block:
                    return block
            self.next_fetch_offset = self._behind
        return None

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
        decode = _CODECS.get(batch.compression_type)
        if decode is None:
            raise UnsupportedCodecError(f"Unknown compression codec {batch.compression_type:#04x}")
        return batch.records(bytes(decode(bytes(batch.payload))), first)


class Run:
    """Records in a row, and the stretch of the log that they are all of.

    Attributes
    ----------
    records
        A block, or objects.
    start, end
        Every committed record with an offset in [start, end) is here. Where offsets are missing
        there is none: control records, aborted transactions, compaction.
    unread
        Offsets that the log held behind the run when it was fetched.
    """

    __slots__ = ("end", "records", "start", "unread")

    def __init__(
        self, records: Sequence[Record] = (), start: int = 0, end: int = 0, unread: int = 0
    ) -> None:
        self.records = records
        self.start = start
        self.end = end
        self.unread = unread

    def __len__(self) -> int:
        return len(self.records)


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
        if max_records is None or len(records) < max_records:
            self._partition_records = None
        # Responses without a record to deliver move the position as well; the next run tells of it.
        passed_from, passed_to = getattr(state, "passed", (before, before))
        run = Run(
            records,
            passed_from if passed_to == before else before,
            state.position,
            max((state.highwater or 0) - state.position, 0),
        )
        state.passed = (run.end, run.end) if records else (run.start, run.end)
        return run


def install() -> None:
    """Have aiokafka's consumers of this process give runs."""
    fetcher.FetchResult = RunResult
    if native.COMPILED:
        fetcher.MemoryRecords = _batches.Batches
        fetcher.PartitionRecords = BlockRecords
    else:
        fetcher.PartitionRecords = RunRecords
