"""A batch on its way: how much room it has, and where it must end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from worker.events.batch import Batch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from worker.events.batch import Gathering, ListedEvents

REJECTED_BYTES: Final = 4 << 20
"""A batch ends early once its rejections hold that many bytes of keys and values."""

NEVER: Final = (1 << 63) - 1
"""A time that no watermark reaches."""


class Stop(NamedTuple):
    """Where a batch has to end; times in ms.

    Right behind the event or heartbeat that moves the watermark to `time` or beyond, and right
    behind an event whose own time lies between `low` and `high`, neither included: what is known
    of it may bring the next stop nearer.
    """

    time: int
    low: int = 0
    high: int = 0

    def at(self, time: int) -> bool:
        """Tell whether a batch ends behind an event of a time, being the first such."""
        return time >= self.time or self.low < time < self.high


NOWHERE: Final = Stop(NEVER)


def first_of(stops: Iterable[Stop]) -> Stop | None:
    """Return one stop for many, which may end a batch where none of them asked for it."""
    found = list(stops)
    if not found:
        return None
    times, lows, highs = zip(*found, strict=True)
    return Stop(min(times), min(lows), max(highs))


class Filling:
    """A batch being filled: what is left of its room, and how far the records were taken.

    Parameters
    ----------
    limit
        Most events.
    stop
        Where it has to end besides; `NOWHERE` for no such place.
    events
        What gathers the events.
    """

    __slots__ = (
        "batch",
        "events",
        "limit",
        "next_offset",
        "open_keys",
        "records",
        "refused_bytes",
        "room",
        "stop",
        "stopped",
    )

    def __init__(self, limit: int, stop: Stop, events: Gathering) -> None:
        self.limit = self.room = limit
        self.stop = stop
        self.stopped = False
        self.events = events
        self.batch = Batch()
        self.open_keys: dict[bytes | str, ListedEvents] = {}
        self.records = 0
        self.refused_bytes = 0
        self.next_offset = -1

    @property
    def full(self) -> bool:
        """Whether the batch must end here."""
        return (
            self.room == 0
            or self.stopped
            or self.batch.watermark >= self.stop.time
            or self.refused_bytes > REJECTED_BYTES
        )

    def finish(self, offset: int, index: int = 0) -> Batch:
        """End the batch, to go on at element `index` of the record at `offset`."""
        batch = self.batch
        batch.keys = self.events.groups()
        batch.offset, batch.index = offset, index
        if self.records:
            batch.counts["records"] = self.records
        if self.room != self.limit:
            batch.counts["events"] = self.limit - self.room
        return batch
