"""The pure piece: records of one task in; updates, rejections, pages and cursor out.

The agent, the replay and the tests drive this same piece. It never looks at a clock and no
result depends on how the records were cut into runs, or on whether the windows were carried
along or rebuilt from the changelog.

`Pipeline.process` takes records in and buffers what follows from them; `Pipeline.take` hands
all of it out together with the cursor, as the content of one transaction. Pages are packed only
there, so a page that is written to by many runs is packed once per transaction.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import replace
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from config.errors import DecisionError
from worker import pages, rejected
from worker.bounded import BoundedWatch
from worker.events import Parser, Stop, first_of
from worker.messages import BATCH_BYTES, Message
from worker.pages import Cursor, StateError
from worker.parts import Moment, Turn, apart, last_of
from worker.watch import Published, Watch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from config import Monitor, Settings
    from worker.bounded import Note
    from worker.events import Batch, KeyedEvents, Record

BATCH_EVENTS: Final = 20_480
"""Events taken in between two points where the agent may hand over, and updates that these make:
few enough to bound a transaction, enough that work per batch and key does not count."""

DROPPED_KEYS: Final = 1000
"""Keys that leave at one event between two points where the agent may hand over."""

_VALUE: Final = itemgetter(Message._fields.index("value"))


class Outcome(NamedTuple):
    """What one transaction holds.

    ``pages`` maps changelog keys to values, None for a tombstone.
    """

    updates: list[Message]
    rejections: list[Message]
    pages: dict[bytes, bytes | None]
    cursor: Cursor


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
        rejection_bytes: int = BATCH_BYTES,
    ) -> None:
        self._parser = Parser(settings.event)
        self._partition = partition
        self._topic_id = topic_id
        self._changelog = settings.changelog
        self._rejection_bytes = rejection_bytes
        self._watches = [_watch(monitor, topic, partition) for monitor in settings.monitors]
        self._bounded = [watch for watch in self._watches if isinstance(watch, BoundedWatch)]
        each = sum(1 / monitor.window.slide for monitor in settings.monitors)  # updates an event
        self._limit = max(int(BATCH_EVENTS / max(each, 1)), 1)
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
        """Messages and tombstones waiting for `take`, pages not counted."""
        tombstones = sum(len(watch.dropped) for watch in self._watches)
        return len(self._updates) + len(self._rejections) + tombstones

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
            watch.forget()
        # What follows is made from the topic as it is, whichever one a former state was made from.
        self._cursor = replace(
            self._cursor,
            topic_id=self._topic_id or self._cursor.topic_id,
            offset=offset,
            index=0,
            inside=None,
            gap=gap,
            epoch=-1,
        )

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
            When a record is damaged, from another version, or one is missing.
        DecisionError
            When the state was kept under other ``[event]`` settings.
        """
        if not records:
            return False
        try:
            self._restore(records)
        except StateError as error:
            raise StateError(
                f"{error} (changelog {self._changelog}, partition {self._partition})"
            ) from error
        return True

    def _restore(self, records: Mapping[bytes, bytes]) -> None:
        if pages.CURSOR_KEY not in records:
            raise StateError(
                "the changelog holds pages but no cursor: it was written by something else or "
                "damaged; restore it, or run `rocstream reset`"
            )
        cursor = pages.unpack_cursor(records[pages.CURSOR_KEY])
        if cursor.fingerprint != self._cursor.fingerprint:
            raise DecisionError(
                "the [event] settings differ from those that the kept windows were read with "
                f"(topic {self._cursor.topic}, partition {self._partition}): put them back, take a "
                "new kafka.group, or run `rocstream reset`"
            )
        monitors = {watch.monitor.name: watch for watch in self._watches if _fits(watch, cursor)}
        for oldest, found in pages.windows(records):
            watch = monitors.get(oldest.monitor)
            if watch is None:
                self._dropped.update((raw, None) for raw, _ in found)
                continue
            watch.restore(oldest.key, oldest.page, pages.joined(found))
        for name, watch in monitors.items():
            watch.restored(cursor.monitors[name])
        self._counts = Counter(cursor.counts)
        inside = cursor.inside
        if inside is not None:
            # A monitor that begins anew has nothing inside.
            inside = tuple(name for name in inside if name in monitors)
        self._cursor = replace(cursor, topic_id=cursor.topic_id or self._topic_id, inside=inside)

    def process(self, records: Sequence[Record], epoch: int = -1) -> Iterator[None]:
        """Take records in, in offset order; those before the cursor are passed over.

        Work is done as the iterator is advanced; at each yield all that was taken in is in the
        windows, the buffers and the cursor alike, so one may stop there for good.

        Parameters
        ----------
        records
            As they were fetched.
        epoch
            Leader epoch of the last batch of them; -1 where it is not known.
        """
        while records := self._ahead(records):
            cursor = self._cursor
            index = cursor.index if records[0].offset == cursor.offset else 0
            # Where the next event makes many keys leave, it is taken in by itself.
            alone = cursor.inside is not None or self._excess
            batches = self._parser.batches(
                records,
                index,
                1 if alone else self._limit,
                watermark=cursor.watermark,
                stop=self.stop,
            )
            for batch in batches:
                yield from self._advance(batch, epoch)
                yield
                if alone:
                    break
            else:
                return

    def pass_over(self, offset: int, epoch: int = -1) -> None:
        """Move the cursor to an offset before which the log holds no record that is not taken in.

        Behind the last one there may be markers of transactions. Were the cursor to stay before
        them, retention that takes them with the records would seem to have taken a record. The
        `epoch` is that of the last batch there, as in `process`.
        """
        if offset > self._cursor.offset:
            self._cursor = replace(self._cursor, offset=offset, index=0, inside=None, epoch=epoch)

    def stop(self) -> Stop | None:
        """Return where keys may expire next: a batch has to end there.

        None while no monitor has a `key_ttl`.
        """
        watermark = self._cursor.watermark
        # An event that is taken in by itself has nothing before it that moves the watermark: the
        # cursor, which may have to stand right before the event, keeps that of the last batch.
        if self._cursor.inside is not None or self._excess:
            return Stop(watermark + 1)
        return first_of(watch.expiry.stop(watermark) for watch in self._bounded if watch.expiry)

    def take(self) -> Outcome:
        """Hand out what has gathered since the last call, as the content of one transaction."""
        written: dict[bytes, bytes | None] = dict.fromkeys(self._dropped)
        for watch in self._watches:
            watch.write(written)
        self._cursor = replace(
            self._cursor,
            monitors={watch.monitor.name: watch.state() for watch in self._watches},
            counts=dict(self._counts),
        )
        outcome = Outcome(self._updates, self._rejections, written, self._cursor)
        self._updates, self._rejections, self._dropped, self._bytes = [], [], {}, 0
        return outcome

    @property
    def _excess(self) -> bool:
        """Whether a limit was lowered below the keys that there are."""
        return any(watch.excess for watch in self._bounded)

    def _ahead(self, records: Sequence[Record]) -> Sequence[Record]:
        """Leave out the records that are taken in already."""
        cursor = self._cursor
        if records and records[0].offset < cursor.offset:
            records = records[bisect_left(records, cursor.offset, key=attrgetter("offset")) :]
        if records and records[0].offset > cursor.offset and cursor.inside is not None:
            # The record that was taken in half-way is gone from the log.
            self._cursor = replace(cursor, index=0, inside=None)
        return records

    def _advance(self, batch: Batch, epoch: int = -1) -> Iterator[None]:
        """Take a batch in; yield in between where its last event makes many keys leave.

        Though it may end before the last of the records, and their epoch be later than its own: a
        log that has them all has that epoch end behind them, and so behind the batch.
        """
        turn = self._turn(batch)
        if turn is None:
            self._publish(self._watches, batch.keys)
            self._note(batch)
        else:
            yield from self._drop(batch, turn, epoch)
        self._cursor = replace(
            self._cursor,
            offset=batch.offset,
            index=batch.index,
            watermark=max(self._cursor.watermark, batch.watermark),
            inside=None,
            epoch=epoch,
        )

    def _turn(self, batch: Batch) -> Turn | None:
        """Return the end of a batch where keys may leave there for other than a new key.

        And where it was taken in half-way, whatever bounds there are by now.
        """
        before, watermark = self._cursor.watermark, batch.watermark
        half_way = self._cursor.inside is not None
        ticked = any(watch.ticks(before, watermark) for watch in self._bounded)
        if not ticked and not half_way and not self._excess:
            return None
        last = last_of(batch.keys)
        if ticked and (last is None or last.moment.time < watermark):
            # What moved the watermark is a heartbeat, which stands behind all events.
            last = None
        elif last is None and not half_way:
            return None
        return last or Turn(None, Moment(watermark, batch.offset - 1, 0))

    def _drop(self, batch: Batch, turn: Turn, epoch: int) -> Iterator[None]:
        """Take a batch in whose end makes keys leave, not too many of them between two yields.

        Up to its last event it is taken in as ever, then that event monitor by monitor: keys leave
        that have no room beside it, it is pushed, keys leave that it shows to be expired. At the
        yields in between the cursor stands before the event and names the monitors that have it
        inside; what they lack of the rest follows from the keys that are still there.
        """
        before, after = self._cursor.watermark, batch.watermark
        rest, last = apart(batch.keys, turn.key)
        if self._cursor.inside is None:
            self._publish(self._watches, rest)
            self._note(batch)
            _, offset, index = turn.moment
            self._cursor = replace(self._cursor, offset=offset, index=index, inside=(), epoch=epoch)
        for watch in self._watches:
            inside = self._cursor.inside or ()
            bounded = watch if isinstance(watch, BoundedWatch) else None
            if watch.monitor.name not in inside:
                if bounded is not None and turn.key is not None:
                    yield from self._leave(bounded, bounded.surplus(turn.key), turn, "key_limit")
                self._publish([watch], last)
                inside = (*inside, watch.monitor.name)
                self._cursor = replace(self._cursor, inside=inside)
            if bounded is not None:
                yield from self._leave(bounded, bounded.due(before, after), turn, "expired")

    def _leave(
        self, watch: BoundedWatch, keys: Iterable[str], turn: Turn, note: Note
    ) -> Iterator[None]:
        """Let keys go; yield after every so many."""
        published = Published()
        for count, key in enumerate(keys, 1):
            watch.drop(key, turn.moment, note, published)
            if count % DROPPED_KEYS == 0:
                self._buffer(published)
                published = Published()
                yield
        self._buffer(published)

    def _publish(self, watches: Sequence[Watch], keys: Mapping[str, KeyedEvents]) -> None:
        """Push events, and buffer the updates that follow in the order of the log."""
        published = Published()
        for watch in watches:
            watch.take(keys, published, gap=self._cursor.gap)
        self._buffer(published)

    def _buffer(self, published: Published) -> None:
        updates = published.ordered()
        self._bytes += sum(map(len, map(_VALUE, updates)))
        self._updates.extend(updates)

    def _note(self, batch: Batch) -> None:
        """Count what a batch holds, and buffer its rejections."""
        rejections = [
            rejected.message(rejection, self._cursor.topic, self._partition, self._rejection_bytes)
            for rejection in batch.rejections
        ]
        self._bytes += sum(len(m.key or b"") + len(m.value or b"") for m in rejections)
        self._rejections.extend(rejections)
        self._counts.update(batch.counts)


def _watch(monitor: Monitor, topic: str, partition: int) -> Watch:
    return (BoundedWatch if monitor.bounded else Watch)(monitor, topic, partition)


def _fits(watch: Watch, cursor: Cursor) -> bool:
    """Tell whether a monitor's pages go on meaning what they did: same kind, same slide."""
    state = cursor.monitors.get(watch.monitor.name)
    window = watch.monitor.window
    return state is not None and (state.kind, state.slide) == (window.kind, window.slide)
