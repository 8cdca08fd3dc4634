"""A monitor at work on one task: its windows by key, and what they publish."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine import CountWindow
from worker import pages
from worker.pages import PAGE_EVENTS, MonitorState, StateError
from worker.updates import Slides, Writer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config import Monitor
    from worker.events import KeyedEvents
    from worker.messages import Message
    from worker.pages import Page


class Kept:
    """A key's window, and which of its pages the changelog holds."""

    __slots__ = ("first_page", "window", "written")

    def __init__(self, window: CountWindow, first_page: int, written: int) -> None:
        self.window = window
        self.first_page = first_page
        self.written = written

    @property
    def pages(self) -> range:
        """The numbers of the pages that the changelog holds."""
        return range(self.first_page, -(-self.written // PAGE_EVENTS))

    def write(self, target: dict[bytes, bytes | None], prefix: bytes, head: bytes = b"") -> int:
        """Write what the changelog lacks: new pages, the rewritten open one, tombstones.

        `prefix` is the window's `key_prefix`; `head` goes into the newest page. Returns how many
        pages the changelog then holds more than before.
        """
        window = self.window
        more = pages.write(target, window, prefix, self.first_page, self.written, head)
        self.first_page = window.first // PAGE_EVENTS
        self.written = window.seen
        return more


class Published:
    """The updates of a batch, and where the events stand that made the windows slide."""

    __slots__ = ("_indexes", "_messages", "_offsets")

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._offsets: list[int] = []
        self._indexes: list[int] = []

    def add(self, messages: list[Message], slides: Slides) -> None:
        """Add updates of one monitor and key; monitors come in their order."""
        self._messages += messages
        self._offsets += slides.offsets
        self._indexes += slides.indexes

    def ordered(self) -> list[Message]:
        """Return the updates by offset, index and monitor; O(n log n)."""
        if len(self._messages) <= 1:
            return self._messages
        # Sorts that keep equals in order: the monitors' updates of one event are in theirs already.
        if any(self._indexes):
            order = np.lexsort((self._indexes, self._offsets))
        else:
            order = np.argsort(self._offsets, kind="stable")
        messages = self._messages
        return [messages[at] for at in order.tolist()]


class Watch:
    """One monitor at work: its windows by key, and which of them have changed.

    Parameters
    ----------
    monitor
        The monitor's settings.
    topic, partition
        The input, named as the source of every update.

    Attributes
    ----------
    windows
        By key.
    dirty
        Those that the changelog lacks something of.
    dropped
        Keys of the changelog that are there no more.
    events, updates
        How many were taken in, and how many were published.
    pages
        How many the changelog holds, once what waits for `write` is written.
    seen
        How many events the windows that there are have taken in.
    """

    def __init__(self, monitor: Monitor, topic: str, partition: int) -> None:
        self.monitor = monitor
        self.writer = Writer(monitor, topic, partition)
        self.windows: dict[str, Kept] = {}
        self.dirty: dict[str, Kept] = {}
        self.dropped: dict[bytes, None] = {}
        self.events = 0
        self.updates = 0
        self.pages = 0
        self.seen = 0

    def take(self, keys: Mapping[str, KeyedEvents], out: Published, *, gap: bool) -> None:
        """Take the events of a batch in; publish an update for each slide."""
        for key, events in keys.items():
            self.push(key, events, out, gap=gap)

    def push(self, key: str, events: KeyedEvents, out: Published, *, gap: bool) -> None:
        """Push a key's events in order; publish an update for each slide."""
        kept = self.windows.get(key)
        if kept is None:
            window = CountWindow(self.monitor.window.size)
            kept = Kept(window, 0, 0)
            self.windows[key] = kept
        self.dirty[key] = kept
        window = kept.window
        every = self.monitor.window.slide
        seen = window.seen
        readings = window.slide(
            events.scores,
            events.labels,
            events.weights,
            events.times,
            every=every,
            read=self.writer.read,
            alpha=float(self.monitor.h.alpha),
            beta=float(self.monitor.h.beta),
        )
        count = len(events.scores)
        self.events += count
        self.seen += count
        first = every - seen % every - 1
        if first >= count:
            return
        at = slice(first, None, every)
        columns = (events.times[at], events.offsets[at], events.indexes[at])
        slides = Slides((seen + first + 1) // every, *map(_plain, columns))
        messages = self.writer.write(key, slides, readings, gap=gap)
        self.updates += len(messages)
        out.add(messages, slides)

    def restore(self, key: str, first_page: int, page: Page) -> None:
        """Put a window in: the number of its oldest page, and what all its pages hold."""
        window = CountWindow.restore(self.monitor.window.size, page.first, page.columns)
        kept = Kept(window, first_page, window.seen)
        self.windows[key] = kept
        self.pages += len(kept.pages)
        self.seen += window.seen

    def restored(self, state: MonitorState) -> None:
        """Take note that all windows are in, and go on from what the cursor kept of the monitor.

        Raises
        ------
        StateError
            When the windows are not those that it counts.
        """
        self.events, self.updates = state.events, state.updates
        if state.pages is not None and (state.pages, state.seen) != (self.pages, self.seen):
            raise StateError(
                f"the changelog holds {self.pages} pages of monitor {self.monitor.name}, whose "
                f"keys took {self.seen} events in, while its cursor counts {state.pages} pages and "
                f"{state.seen} events: records were lost, or written by something else; restore "
                "it, or run `rocstream reset`"
            )

    def forget(self) -> None:
        """Let go of all windows, and have them gone from the changelog."""
        for key, kept in self.windows.items():
            self.drop_pages(key, kept)
        self.windows.clear()
        self.dirty.clear()

    def drop_pages(self, key: str, kept: Kept) -> None:
        """Have a window gone from the changelog."""
        prefix = pages.key_prefix(self.monitor.name, key)
        self.dropped.update((pages.page_key(prefix, page), None) for page in kept.pages)
        self.pages -= len(kept.pages)
        self.seen -= kept.window.seen

    def write(self, target: dict[bytes, bytes | None]) -> None:
        """Write what the changelog lacks, once: values by key, None for a tombstone."""
        # A key that left may have come back: what it has now comes last.
        target.update(self.dropped)
        self.dropped = {}
        for key, kept in self.dirty.items():
            prefix = pages.key_prefix(self.monitor.name, key)
            self.pages += kept.write(target, prefix, self.head(key))
        self.dirty.clear()

    def head(self, key: str) -> bytes:
        """Return what a key's newest page keeps besides events."""
        del key
        return b""

    def state(self) -> MonitorState:
        """Return what the cursor keeps of this monitor, once all is written."""
        window = self.monitor.window
        return MonitorState(
            window.kind,
            window.slide,
            self.events,
            self.updates,
            pages=self.pages,
            seen=self.seen,
        )


def _plain(column: Any) -> list[int]:
    """Return a column as a list; readers that take whole arrays in bring arrays."""
    if isinstance(column, np.ndarray):
        column = column.tolist()
    return list(column)
