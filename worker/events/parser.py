"""The parser: records of one task in, batches of checked events out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from worker.events import plain, reading
from worker.events.batch import Batch
from worker.events.fields import Fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from config import EventSettings
    from worker.events.batch import KeyedEvents

REJECTED_BYTES = 4 << 20
"""A batch ends early once its rejections hold that many bytes of keys and values."""


NEVER = (1 << 63) - 1
"""A tick that no watermark reaches."""


class Record(Protocol):
    """What is read of a record; aiokafka's ConsumerRecord fits."""

    @property
    def offset(self) -> int:
        """Position in the partition."""

    @property
    def timestamp(self) -> int | None:
        """The record's own timestamp in ms; None or negative without one."""

    @property
    def key(self) -> bytes | None:
        """The record's key."""

    @property
    def value(self) -> bytes | None:
        """The record's value; None is a tombstone."""


class Filling:
    """A batch being filled: what is left of its room, and how far the records were taken.

    It ends behind the event or heartbeat whose time is `tick` (ms) or later, too.
    """

    __slots__ = (
        "batch",
        "limit",
        "next_offset",
        "open_keys",
        "records",
        "refused_bytes",
        "room",
        "tick",
    )

    def __init__(self, limit: int, tick: int) -> None:
        self.limit = self.room = limit
        self.tick = tick
        self.batch = Batch()
        self.open_keys: dict[bytes | str, KeyedEvents] = {}
        self.records = 0
        self.refused_bytes = 0
        self.next_offset = -1

    @property
    def full(self) -> bool:
        """Whether the batch must end here."""
        return (
            self.room == 0
            or self.batch.watermark >= self.tick
            or self.refused_bytes > REJECTED_BYTES
        )

    def finish(self, offset: int, index: int = 0) -> Batch:
        """End the batch, to go on at element `index` of the record at `offset`."""
        batch = self.batch
        batch.offset, batch.index = offset, index
        if self.records:
            batch.counts["records"] = self.records
        if self.room != self.limit:
            batch.counts["events"] = self.limit - self.room
        return batch


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

    def batches(
        self,
        records: Iterable[Record],
        index: int = 0,
        limit: int = 4096,
        *,
        watermark: int = -1,
        tick: Callable[[], int | None] | None = None,
    ) -> Iterator[Batch]:
        """Take records apart, lazily; no record raises, whatever it holds.

        However the records are cut, by calls or by `limit`, the same events, rejections and
        counts come out in the same order, and batches end at the same ticks.

        Parameters
        ----------
        records
            In offset order.
        index
            Elements of the first record that were taken before.
        limit
            Most events in a batch, at least 1.
        watermark
            The largest event time (ms) of what was taken before these records.
        tick
            Asked before each batch for the event time (ms) to stop at: a batch ends right behind
            the event or heartbeat that moves the watermark from below to there or beyond. None,
            or a time that the watermark has reached already, stops nowhere.

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
        stream = iter(records)
        filling = Filling(limit, _stop(tick, watermark))
        while True:
            if self._layout is None or index:
                record = next(stream, None)
            else:
                record = plain.take(stream, filling, self._layout, self._fields)
            if record is not None:
                rest = reading.read(record, self._fields)
                index = self._pour(rest, filling, record, index)
                while index >= 0:
                    watermark = max(watermark, filling.batch.watermark)
                    yield filling.finish(record.offset, index)
                    filling = Filling(limit, _stop(tick, watermark))
                    index = self._pour(rest, filling, record, index)
                index = 0
            elif not filling.full:
                break
            if filling.full:
                watermark = max(watermark, filling.batch.watermark)
                yield filling.finish(filling.next_offset)
                filling = Filling(limit, _stop(tick, watermark))
        if filling.records:
            yield filling.finish(filling.next_offset)

    @staticmethod
    def _pour(rest: reading.Reading, filling: Filling, record: Record, index: int) -> int:
        """Pour what fits; give the element to go on at, or -1 when the record is done."""
        taken, index = rest.pour(filling.batch, record.offset, index, filling.room, filling.tick)
        filling.room -= taken
        if index < 0:
            filling.records += 1
            filling.next_offset = record.offset + 1
            if rest.rejection is not None:
                filling.refused_bytes += len(record.key or b"") + len(record.value or b"")
        return index


def _stop(tick: Callable[[], int | None] | None, watermark: int) -> int:
    """Tell the event time at which the next batch ends."""
    time = None if tick is None else tick()
    return NEVER if time is None or time <= watermark else time
