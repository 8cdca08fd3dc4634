"""The parser: records of one task in, batches of checked events out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from worker.events import native, plain, reading
from worker.events.fields import Fields
from worker.events.filling import NOWHERE, Filling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from config import EventSettings
    from worker.events._block import Block
    from worker.events._scan import Scanner
    from worker.events.batch import Batch
    from worker.events.filling import Stop
    from worker.events.plain import Layout
    from worker.events.record import Record

AHEAD: Final = 1024
"""Records that are asked for at once where they come one by one."""


class _Source(Protocol):
    """Records on their way in."""

    def take(self, filling: Filling, index: int) -> tuple[Record | None, int]:
        """Take records into a batch until one is odd, the batch is full, or there are no more.

        Returns
        -------
        record
            The odd one, of which nothing was taken; None in the other cases.
        index
            The element to go on at: of the odd record, or of the one that a full batch ends in.
        """


class _Singly:
    """Records that are objects, by the plain loop; by the rules alone where it has no layout."""

    def __init__(self, records: Iterable[Record], layout: Layout | None, fields: Fields) -> None:
        self._stream = iter(records)
        self._layout = layout
        self._fields = fields

    def take(self, filling: Filling, index: int) -> tuple[Record | None, int]:
        """See `_Source`."""
        if self._layout is None or index:
            return next(self._stream, None), index
        return plain.take(self._stream, filling, self._layout, self._fields), 0


class _Scanned:
    """Records in blocks, by the compiled core."""

    def __init__(self, blocks: Iterator[Block], scanner: Scanner) -> None:
        self._blocks = blocks
        self._scanner = scanner
        self._block: Block | None = None
        self._at = 0

    def take(self, filling: Filling, index: int) -> tuple[Record | None, int]:
        """See `_Source`."""
        while True:
            block = self._block
            if block is None or self._at == len(block):
                self._block, self._at = next(self._blocks, None), 0
                if self._block is None:
                    return None, 0
                continue
            self._at, index = self._scanner.take(block, self._at, index, filling)
            if filling.full:
                return None, index
            if self._at < len(block):
                self._at += 1
                return block[self._at - 1], index


class Parser:
    """Reads events as the [event] section says.

    Parameters
    ----------
    event
        The settings. The parser keeps nothing of the records: one may serve many tasks.
    """

    def __init__(self, event: EventSettings) -> None:
        self._fields = Fields(event)
        self._layout = plain.layout(self._fields)
        self._scanner = native.scanner(self._fields)

    def batches(
        self,
        records: Iterable[Record],
        index: int = 0,
        limit: int = 4096,
        *,
        watermark: int = -1,
        stop: Callable[[], Stop | None] | None = None,
    ) -> Iterator[Batch]:
        """Take records apart, lazily; no record raises, whatever it holds.

        However the records are cut, by calls or by `limit`, the same events, rejections and
        counts come out in the same order, and batches end at the same stops.

        Parameters
        ----------
        records
            In offset order; best a `Block`, which the compiled core reads where it stands.
        index
            Elements of the first record that were taken before.
        limit
            Most events in a batch, at least 1.
        watermark
            The largest event time (ms) of what was taken before these records.
        stop
            Asked before each batch for where it has to end besides. None, or a time that the
            watermark has reached already, stops nowhere.

        Yields
        ------
        Batch
            Never one that takes nothing. Rejections may end one early (`REJECTED_BYTES`).

        Raises
        ------
        ValueError
            For a limit below 1.
        """
        if limit < 1:
            raise ValueError(f"limit is {limit}; a batch must have room for an event")
        source = self._source(records)
        filling = self._filling(limit, stop, watermark)
        while True:
            record, index = source.take(filling, index)
            if record is not None:
                rest = reading.read(record, self._fields)
                index = self._pour(rest, filling, record, index)
                while index >= 0:
                    watermark = max(watermark, filling.batch.watermark)
                    yield filling.finish(record.offset, index)
                    filling = self._filling(limit, stop, watermark)
                    index = self._pour(rest, filling, record, index)
                index = 0
            elif not filling.full:
                break
            if filling.full:
                watermark = max(watermark, filling.batch.watermark)
                yield filling.finish(filling.next_offset, index)
                filling = self._filling(limit, stop, watermark)
        if filling.records:
            yield filling.finish(filling.next_offset)

    def _source(self, records: Iterable[Record]) -> _Source:
        if self._scanner is None:
            return _Singly(records, self._layout, self._fields)
        return _Scanned(native.blocks(records, AHEAD), self._scanner)

    def _filling(
        self, limit: int, stop: Callable[[], Stop | None] | None, watermark: int
    ) -> Filling:
        found = None if stop is None else stop()
        if found is None or found.time <= watermark:
            found = NOWHERE
        return Filling(limit, found, native.gathering(compiled=self._scanner is not None))

    @staticmethod
    def _pour(rest: reading.Reading, filling: Filling, record: Record, index: int) -> int:
        """Pour what fits; give the element to go on at, or -1 when the record is done."""
        index = rest.pour(filling, record.offset, index)
        if index < 0:
            filling.records += 1
            filling.next_offset = record.offset + 1
            if rest.rejection is not None:
                filling.refused_bytes += len(record.key or b"") + len(record.value or b"")
        return index
