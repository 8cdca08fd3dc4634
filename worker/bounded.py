"""A monitor at work whose keys may leave: `key_ttl`, `key_limit`."""

from __future__ import annotations

from datetime import timedelta
from heapq import heapify, heappop, heappush, heapreplace
from typing import TYPE_CHECKING, Literal

from worker.bounds import Expiry, Recency
from worker.parts import PLACE_BYTES, before, moment_of, part, place_of
from worker.updates import Slides
from worker.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from config import Monitor
    from worker.events import KeyedEvents
    from worker.pages import MonitorState, Page
    from worker.parts import Moment
    from worker.watch import Published

Note = Literal["expired", "key_limit"]


class BoundedWatch(Watch):
    """A monitor whose keys leave when they are silent for long, or too many.

    Parameters
    ----------
    monitor, topic, partition
        As for `Watch`; the monitor has a `key_ttl`, a `key_limit`, or both.
    """

    def __init__(self, monitor: Monitor, topic: str, partition: int) -> None:
        super().__init__(monitor, topic, partition)
        ttl, limit = monitor.key_ttl, monitor.key_limit
        self.limit = limit
        self.expiry = None if ttl is None else Expiry(ttl // timedelta(milliseconds=1))
        self.recency = None if limit is None else Recency()
        self._places: list[tuple[int, str]] = []

    @property
    def excess(self) -> bool:
        """Whether there are more keys than the limit allows: it was lowered meanwhile."""
        return self.limit is not None and len(self.windows) > self.limit

    def take(self, keys: Mapping[str, KeyedEvents], out: Published, *, gap: bool) -> None:
        """Take the events of a batch in; keys leave where a new one finds no room."""
        if self.limit is not None:
            fresh = sum(key not in self.windows for key in keys)
            if len(self.windows) + fresh > self.limit:
                _Crowd(self, self.limit, keys, out, gap=gap).take()
                keys = {key: events for key, events in keys.items() if key in self.windows}
                self._touch(keys)
                return
        super().take(keys, out, gap=gap)
        self._touch(keys)

    def surplus(self, key: str) -> Iterator[str]:
        """Yield the keys that have to leave before an event of a key, each once it has to."""
        if self.limit is None or self.recency is None:
            return
        while len(self.windows) + (key not in self.windows) > self.limit:
            oldest = self.recency.oldest()
            assert oldest is not None  # noqa: S101 - every window's key stands in there
            yield oldest

    def ticks(self, before: int, after: int) -> bool:
        """Tell whether keys may expire where the watermark moves from one time to another."""
        return self.expiry is not None and after >= self.expiry.stop(before).time

    def due(self, before: int, after: int) -> list[str]:
        """Return the keys that expire there, in the order in which they do."""
        return [] if self.expiry is None else self.expiry.due(before, after)

    def drop(self, key: str, moment: Moment, note: Note, out: Published) -> None:
        """Let a key go, with one last update: what its window holds."""
        kept = self.windows.pop(key)
        self.dirty.pop(key, None)
        self.drop_pages(key, kept)
        if self.expiry is not None:
            self.expiry.forget(key)
        if self.recency is not None:
            self.recency.forget(key)
        window, severity = kept.window, self.monitor.h
        readings = window.readings(self.writer.read, float(severity.alpha), float(severity.beta))
        # The number that the key's next slide would have had: numbers have no holes, and none
        # comes twice while the key lives.
        number = window.seen // self.monitor.window.slide + 1
        slides = Slides(number, [moment.time], [moment.offset], [moment.element])
        out.add(self.writer.write(key, slides, readings, note=note), slides)
        self.updates += 1

    def restore(self, key: str, first_page: int, page: Page) -> None:
        """Put a window in, with what its pages tell of its newest event."""
        super().restore(key, first_page, page)
        if self.expiry is not None:
            times = page.columns.times
            self.expiry.touch(key, 0 if times is None else int(times[-1]))
        if self.recency is not None:
            # A page from before the limit was set has no head: its key is older than any other.
            where = page.head if len(page.head) == PLACE_BYTES else b""
            self._places.append((int.from_bytes(where, "little"), key))

    def restored(self, state: MonitorState) -> None:
        """Take note that all windows are in, as `Watch.restored`."""
        super().restored(state)
        if self.recency is not None:
            self.recency.restore(self._places)
            self._places = []

    def forget(self) -> None:
        """Let go of all windows, and have them gone from the changelog."""
        super().forget()
        if self.expiry is not None:
            self.expiry.clear()
        if self.recency is not None:
            self.recency.clear()

    def head(self, key: str) -> bytes:
        """Return where the key's newest event stands, for who drops the oldest key."""
        if self.recency is None:
            return b""
        return self.recency[key].to_bytes(PLACE_BYTES, "little")

    def _touch(self, keys: Mapping[str, KeyedEvents]) -> None:
        if self.expiry is not None:
            for key, events in keys.items():
                self.expiry.touch(key, int(events.times[-1]))
        if self.recency is not None:
            newest = sorted((place_of(events, -1), key) for key, events in keys.items())
            for where, key in newest:
                self.recency.touch(key, where)


class _Crowd:
    """A batch that opens more keys than there is room for, taken in as if event by event.

    Events of one key are pushed together as far as the key stays; only where a key opens it is
    looked for the one to leave. A key that leaves may come back in the same batch.
    """

    def __init__(
        self,
        watch: BoundedWatch,
        limit: int,
        keys: Mapping[str, KeyedEvents],
        out: Published,
        *,
        gap: bool,
    ) -> None:
        assert watch.recency is not None  # noqa: S101 - there is a limit
        self._watch, self._limit, self._keys, self._out = watch, limit, keys, out
        self._gap = gap
        self._recency = watch.recency
        self._pushed = dict.fromkeys(keys, 0)
        # Keys that have none of the batch's events in them are older than those that do: they
        # stand in `recency`, the others here, by an event of theirs that is not newer than their
        # newest so far.
        self._newer: list[tuple[int, str]] = []
        self._opened: set[str] = set()

    def take(self) -> None:
        """Take all in."""
        watch = self._watch
        openings = [
            (place_of(events, 0), key)
            for key, events in self._keys.items()
            if key not in watch.windows
        ]
        heapify(openings)
        while openings:
            where, key = heappop(openings)
            if len(watch.windows) + len(self._opened) >= self._limit:
                moment = moment_of(self._keys[key], self._pushed[key])
                left = self._make_room(where, moment)
                if left in self._keys and self._pushed[left] < len(self._keys[left]):
                    again = place_of(self._keys[left], self._pushed[left])
                    heappush(openings, (again, left))
            self._opened.add(key)
            heappush(self._newer, (where, key))
        for key, events in self._keys.items():
            self._push(key, len(events))

    def _make_room(self, where: int, moment: Moment) -> str:
        """Let the key go whose newest event before a place is the oldest; return it."""
        key = self._oldest(where)
        if key in self._keys:
            self._push(key, before(self._keys[key], where))
        self._watch.drop(key, moment, "key_limit", self._out)
        return key

    def _oldest(self, where: int) -> str:
        while (key := self._recency.oldest()) is not None:
            events = self._keys.get(key)
            count = 0 if events is None else before(events, where)
            if events is None or not count:
                return key
            self._recency.forget(key)
            heappush(self._newer, (place_of(events, count - 1), key))
        while True:
            known, key = self._newer[0]
            events = self._keys[key]
            newest = place_of(events, before(events, where) - 1)
            if newest == known:
                heappop(self._newer)
                return key
            heapreplace(self._newer, (newest, key))

    def _push(self, key: str, stop: int) -> None:
        """Push a key's events up to one of them."""
        start = self._pushed[key]
        if start < stop:
            events = part(self._keys[key], start, stop)
            self._watch.push(key, events, self._out, gap=self._gap)
            self._pushed[key] = stop
            self._opened.discard(key)
