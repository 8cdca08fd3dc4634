"""The pure piece: records of one task in; updates, rejections, pages and cursor out.

The agent, the replay and the tests drive this same piece. It never looks at a clock and no
result depends on how the records were cut into runs, or on whether the windows were carried
along or rebuilt from the changelog.

`Pipeline.process` takes records in and buffers what follows from them; `Pipeline.take` hands
all of it out together with the cursor, as the content of one transaction. Pages are packed only
there, so a page that is written to by many runs is packed once per transaction.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from config.errors import DecisionError
from engine import CountWindow
from worker import pages, rejected
from worker.events import Parser
from worker.pages import PAGE_EVENTS, Cursor, MonitorState, StateError
from worker.updates import Slides, Writer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from config import Monitor, Settings
    from worker.events import Batch, KeyedEvents, Record
    from worker.messages import Message

BATCH_EVENTS: Final = 4096
"""Events taken in between two points where the agent may hand over: small enough to stay in the
cache and to bound a transaction, large enough that work per batch does not count."""

REJECTION_BYTES: Final = 1_000_000
"""A dead letter's size at the most: under the 1 MiB that topics take unless told otherwise."""


class Outcome(NamedTuple):
    """What one transaction holds.

    ``pages`` maps changelog keys to values, None for a tombstone.
    """

    updates: list[Message]
    rejections: list[Message]
    pages: dict[bytes, bytes | None]
    cursor: Cursor


class _Kept:
    """A key's window, and which of its pages the changelog holds."""

    __slots__ = ("first_page", "prefix", "window", "written")

    def __init__(self, prefix: bytes, window: CountWindow, first_page: int, written: int) -> None:
        self.prefix = prefix
        self.window = window
        self.first_page = first_page
        self.written = written

    def pages(self) -> list[tuple[bytes, bytes | None]]:
        """Return what the changelog lacks: new pages, the rewritten open one, tombstones."""
        window = self.window
        oldest = window.first // PAGE_EVENTS
        changed: list[tuple[bytes, bytes | None]] = []
        changed += pages.written(window, self.prefix, self.written)
        if self.first_page < oldest:
            gone = range(self.first_page, min(oldest, -(-self.written // PAGE_EVENTS)))
            changed += [(pages.page_key(self.prefix, page), None) for page in gone]
        self.first_page = oldest
        self.written = window.seen
        return changed


class _Published:
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
        # Sorts that keep equals in order: the monitors' updates of one event are in theirs already.
        if any(self._indexes):
            order = np.lexsort((self._indexes, self._offsets))
        else:
            order = np.argsort(self._offsets, kind="stable")
        messages = self._messages
        return [messages[at] for at in order.tolist()]


class _Watch:
    """One monitor at work: its windows by key, and which of them have changed."""

    def __init__(self, monitor: Monitor, topic: str, partition: int) -> None:
        self.monitor = monitor
        self.writer = Writer(monitor, topic, partition)
        self.windows: dict[str, _Kept] = {}
        self.dirty: dict[str, _Kept] = {}
        self.events = 0
        self.updates = 0

    def push(self, key: str, events: KeyedEvents, out: _Published, *, gap: bool) -> None:
        """Push a key's events in order; publish an update for each slide."""
        kept = self.windows.get(key)
        if kept is None:
            window = CountWindow(self.monitor.window.size)
            kept = _Kept(pages.key_prefix(self.monitor.name, key), window, 0, 0)
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
        self.events += len(events.scores)
        first = every - seen % every - 1
        if first >= len(events.scores):
            return
        at = slice(first, None, every)
        columns = (events.times[at], events.offsets[at], events.indexes[at])
        slides = Slides((seen + first + 1) // every, *map(_plain, columns))
        messages = self.writer.write(key, slides, readings, gap=gap)
        self.updates += len(messages)
        out.add(messages, slides)

    def state(self) -> MonitorState:
        """Return what the cursor keeps of this monitor."""
        window = self.monitor.window
        return MonitorState(window.kind, window.slide, self.events, self.updates)


class Pipeline:
    """One task: the windows of every monitor and key of one partition of the input.

    Parameters
    ----------
    settings
        The job's settings.
    topic, partition
        The input, named as the source of every update and rejection.
    topic_id
        The input topic's id, kept in the cursor.
    rejection_bytes
        Size of a dead letter at the most, key, value and headers together.
    """

    def __init__(
        self,
        settings: Settings,
        topic: str,
        partition: int,
        *,
        topic_id: str = "",
        rejection_bytes: int = REJECTION_BYTES,
    ) -> None:
        self._parser = Parser(settings.event)
        self._partition = partition
        self._rejection_bytes = rejection_bytes
        self._watches = [_Watch(monitor, topic, partition) for monitor in settings.monitors]
        self._counts: Counter[str] = Counter()
        self._cursor = Cursor(topic, topic_id, 0, settings.event_fingerprint())
        self._updates: list[Message] = []
        self._rejections: list[Message] = []
        self._bytes = 0
        self._dropped: dict[bytes, None] = {}

    @property
    def cursor(self) -> Cursor:
        """How far the task has come; its counters are brought up to date by `take`."""
        return self._cursor

    @property
    def buffered(self) -> int:
        """Messages waiting for `take`, pages not counted."""
        return len(self._updates) + len(self._rejections)

    @property
    def buffered_bytes(self) -> int:
        """Bytes of their values."""
        return self._bytes

    def start_at(self, offset: int, *, gap: bool = False) -> None:
        """Begin at an offset with empty windows; with `gap` the updates say so.

        What a former `restore` brought is dropped, and gone from the changelog with the next
        transaction.
        """
        for watch in self._watches:
            self._forget(watch)
        self._cursor = replace(self._cursor, offset=offset, index=0, gap=gap)

    def restore(self, records: Mapping[bytes, bytes]) -> bool:
        """Rebuild the state from the live records of the task's changelog partition.

        Parameters
        ----------
        records
            The last value of each key, tombstoned keys left out.

        Returns
        -------
        bool
            Whether there was a state: without one, call `start_at`.

        Raises
        ------
        StateError
            When a record is damaged, from another version, or one is missing between others.
        DecisionError
            When the state was kept under other ``[event]`` settings.
        """
        if not records:
            return False
        if pages.CURSOR_KEY not in records:
            raise StateError(
                f"the changelog's partition {self._partition} holds pages but no cursor: it was "
                "written by something else or damaged; restore it, or run `rocstream reset`"
            )
        cursor = pages.unpack_cursor(records[pages.CURSOR_KEY])
        if cursor.fingerprint != self._cursor.fingerprint:
            raise DecisionError(
                "the [event] settings differ from those that the kept windows were read with "
                f"(partition {self._partition}): put them back, take a new kafka.group, or run "
                "`rocstream reset`"
            )
        monitors = {watch.monitor.name: watch for watch in self._watches if _fits(watch, cursor)}
        for oldest, found in pages.windows(records):
            watch = monitors.get(oldest.monitor)
            if watch is None:
                self._dropped.update((raw, None) for raw, _ in found)
                continue
            first, columns, _ = pages.joined(found)
            window = CountWindow.restore(watch.monitor.window.size, first, columns)
            prefix = pages.key_prefix(oldest.monitor, oldest.key)
            watch.windows[oldest.key] = _Kept(prefix, window, oldest.page, window.seen)
        for name, watch in monitors.items():
            watch.events = cursor.monitors[name].events
            watch.updates = cursor.monitors[name].updates
        self._counts = Counter(cursor.counts)
        self._cursor = replace(cursor, topic_id=cursor.topic_id or self._cursor.topic_id)
        return True

    def process(self, records: Sequence[Record]) -> Iterator[None]:
        """Take records in, in offset order; those before the cursor are passed over.

        Work is done as the iterator is advanced; at each yield all that was taken in is in the
        windows, the buffers and the cursor alike, so one may stop there for good.
        """
        cursor = self._cursor
        if records and records[0].offset < cursor.offset:
            records = [record for record in records if record.offset >= cursor.offset]
        if not records:
            return
        index = cursor.index if records[0].offset == cursor.offset else 0
        for batch in self._parser.batches(records, index, BATCH_EVENTS):
            self._apply(batch)
            yield

    def take(self) -> Outcome:
        """Hand out what has gathered since the last call, as the content of one transaction."""
        self._cursor = replace(
            self._cursor,
            monitors={watch.monitor.name: watch.state() for watch in self._watches},
            counts=dict(self._counts),
        )
        written: dict[bytes, bytes | None] = dict.fromkeys(self._dropped)
        for watch in self._watches:
            for kept in watch.dirty.values():
                written.update(kept.pages())
            watch.dirty.clear()
        outcome = Outcome(self._updates, self._rejections, written, self._cursor)
        self._updates, self._rejections, self._dropped, self._bytes = [], [], {}, 0
        return outcome

    def _apply(self, batch: Batch) -> None:
        gap = self._cursor.gap
        published = _Published()
        for watch in self._watches:
            for key, events in batch.keys.items():
                watch.push(key, events, published, gap=gap)
        updates = published.ordered()
        rejections = [
            rejected.message(rejection, self._cursor.topic, self._partition, self._rejection_bytes)
            for rejection in batch.rejections
        ]
        self._bytes += sum([len(update.value or b"") for update in updates])
        self._bytes += sum(len(m.key or b"") + len(m.value or b"") for m in rejections)
        self._updates.extend(updates)
        self._rejections.extend(rejections)
        self._counts.update(batch.counts)
        self._cursor = replace(
            self._cursor,
            offset=batch.offset,
            index=batch.index,
            watermark=max(self._cursor.watermark, batch.watermark),
        )

    def _forget(self, watch: _Watch) -> None:
        for kept in watch.windows.values():
            for page in range(kept.first_page, -(-kept.written // PAGE_EVENTS)):
                self._dropped[pages.page_key(kept.prefix, page)] = None
        watch.windows.clear()
        watch.dirty.clear()


def _plain(column: Any) -> list[int]:
    """Return a column as a list; readers that take whole arrays in bring arrays."""
    if isinstance(column, np.ndarray):
        column = column.tolist()
    return list(column)


def _fits(watch: _Watch, cursor: Cursor) -> bool:
    """Tell whether a monitor's pages go on meaning what they did: same kind, same slide."""
    state = cursor.monitors.get(watch.monitor.name)
    window = watch.monitor.window
    return state is not None and (state.kind, state.slide) == (window.kind, window.slide)
