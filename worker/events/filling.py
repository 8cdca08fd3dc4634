"""A batch on its way: how much room it has, and where it must end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from worker.events.batch import Batch

if TYPE_CHECKING:
    from worker.events.batch import Gathering, ListedEvents

REJECTED_BYTES: Final = 4 << 20
"""A batch ends early once its rejections hold that many bytes of keys and values."""

NEVER: Final = (1 << 63) - 1
"""A tick that no watermark reaches."""


class Filling:
    """A batch being filled: what is left of its room, and how far the records were taken.

    It ends behind the event or heartbeat whose time is `tick` (ms) or later, too.

    Parameters
    ----------
    limit
        Most events.
    tick
        See above; `NEVER` for none.
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
        "tick",
    )

    def __init__(self, limit: int, tick: int, events: Gathering) -> None:
        self.limit = self.room = limit
        self.tick = tick
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
            or self.batch.watermark >= self.tick
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
