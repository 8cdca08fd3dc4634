"""A process of a replay in several: reads some of the runs, and plays the events of its own keys.

Every process goes through the whole source, which costs little: lines are counted and rows are
numbered without being read. Each run is read by one of them, who sends the others the events of
their keys; and each plays the events of its own keys, run after run.
"""

from __future__ import annotations

import pickle
import signal
import traceback
import zlib
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from config.errors import RocstreamError
from worker.events import Batch
from worker.replay.cells import RowRun
from worker.replay.grouping import Stretch, grouped
from worker.replay.mail import FROM_PARENT, Mail
from worker.replay.parquet import TableRun
from worker.replay.player import Player
from worker.replay.share import Share
from worker.replay.topic import TopicSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.synchronize import Lock

    from numpy.typing import NDArray

    from config import Settings
    from worker.events import KeyedEvents
    from worker.messages import Message
    from worker.replay.compare import Comparison
    from worker.replay.records import Log, Run, Source
    from worker.replay.series import Recorder
    from worker.replay.span import Span
    from worker.replay.story import Moment

AHEAD: Final = 4
"""Runs for each process that are read before they are played, so that none waits for another."""

_BETWEEN: Final = b',"index"'
_END: Final = b"}}"
"""Behind the offset and the index of an update's source, the last things in it."""


class ProcessError(RuntimeError):
    """A process of a replay failed, for a reason that nobody has foreseen."""


class Plan(NamedTuple):
    """What is replayed, as each process gets it.

    Attributes
    ----------
    settings, source, span, keys
        As for `Player`.
    recorders
        One for each of the settings, or none.
    comparison
        As `Session` has it.
    moments
        Whose curves are kept; what is at the end is the last of them.
    by_partition
        Whether a process has all keys of some partitions, and not some keys of all.
    """

    settings: Sequence[Settings]
    source: Source
    span: Span | None = None
    keys: Sequence[str] | None = None
    recorders: Sequence[Recorder] = ()
    comparison: Comparison | None = None
    moments: Sequence[Moment] = ()
    by_partition: bool = False


class Placed(NamedTuple):
    """Updates of one process from a run, in the order of the log.

    Attributes
    ----------
    offsets, indexes
        Where the events stand that they follow from.
    keys, values
        Of the messages.
    """

    offsets: list[int]
    indexes: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]


class Played(NamedTuple):
    """What one process has of a run.

    Attributes
    ----------
    log, published
        Of the run.
    updates
        By setting.
    rows
        Of a comparison, with their offsets.
    heads
        What the run has beside events, from the process that read it; None from the others.
    places
        By offset, where the refused records of the run stand.
    position
        How much of the source the process has gone through.
    """

    log: Log
    published: bool
    updates: list[Placed]
    rows: list[tuple[int, Message]]
    heads: list[Batch] | None
    places: dict[int, str]
    position: int


class Ended(NamedTuple):
    """What a process has at its end."""

    recorders: Sequence[Recorder]
    comparison: Comparison | None
    moments: Sequence[Moment]
    notes: list[str]
    nothing: str | None


class _Job:
    """One run on its way: read by one process, then played by each."""

    def __init__(self, number: int, log: Log, run: Run, *, published: bool) -> None:
        self.number, self.log, self.run, self.published = number, log, run, published
        self.own: list[dict[str, KeyedEvents]] | None = None
        self.heads: list[Batch] | None = None
        self.places: dict[int, str] = {}
        self.rows: list[tuple[int, Message]] = []


class Owner(Player):
    """Plays the events of a share of the keys, or those of some partitions.

    Parameters
    ----------
    plan
        What is replayed.
    number, count
        Which process of how many this is.
    mail
        To the others.
    parent
        Takes what was played.
    """

    def __init__(self, plan: Plan, number: int, count: int, mail: Mail, parent: Connection) -> None:
        super().__init__(
            plan.settings,
            plan.source,
            plan.span,
            keys=plan.keys,
            tapes=[one.tape for one in plan.recorders],
            extra=() if plan.comparison is None else plan.comparison.extra,
            others=None if plan.comparison is None else self._pair,
            stops=[(one.bound, partial(self._stop, one)) for one in plan.moments[:-1]],
        )
        self._plan, self._mail, self._parent = plan, mail, parent
        self._number, self._count = number, count
        self._owners: dict[str, int] = {}
        self._jobs: deque[_Job] = deque()
        self._numbered = self._readers = 0
        self._piece: tuple[Log, object] | None = None
        self._log: Log | None = None
        for recorder in plan.recorders:
            recorder.wants = self.chooser.wants
        if plan.comparison is not None:
            plan.comparison.wants = self._compares

    def run(self) -> Ended:
        """Play all; what was played before a failure is sent before it is raised."""
        source = self.source
        if isinstance(source, TopicSource):
            source.found(self._mail.get(FROM_PARENT), self._lot())
        try:
            for _ in self:
                pass
        except RocstreamError as error:
            self._mail.fail(self._numbered, error)
            self._drain()
            raise
        self._drain()
        plan = self._plan
        if plan.moments and self.tapes:
            plan.moments[-1].take(self.tapes[0])
        comparison = None if plan.comparison is None else plan.comparison.settled()
        return Ended(plan.recorders, comparison, plan.moments, source.notes, self.nothing())

    def _lot(self) -> tuple[int, int] | None:
        """Return which partitions are its own: every so manieth; None where keys are."""
        return (self._number, self._count) if self._plan.by_partition else None

    def _turn(self, log: Log) -> None:
        if self._plan.by_partition:
            super()._turn(log)

    def _steps(self, log: Log, run: Run, *, published: bool) -> Iterator[Any]:
        if self._plan.by_partition:
            for step in super()._steps(log, run, published=published):
                updates = [_placed(found) for found in step.updates]
                self._send(
                    Played(
                        log,
                        published,
                        updates,
                        [],
                        [_told(step.batch)],
                        {},
                        self.source.position(),
                    )
                )
            return
        job = _Job(self._numbered, log, run, published=published)
        self._numbered += 1
        if self._plan.comparison is not None:
            job.rows = self._plan.comparison.placed()
        self._jobs.append(job)
        if self._reads(log, run):
            self._read(job)
        # Its text is needed no more.
        del job.run
        while len(self._jobs) > AHEAD * self._count:
            self._advance()
        yield from ()

    def _reads(self, log: Log, run: Run) -> bool:
        """Tell whether a run is its own to read: they take turns, with what goes together."""
        piece = (log, run.piece if isinstance(run, TableRun) else run.first)
        if piece != self._piece:
            self._piece = piece
            self._readers += 1
        return self._readers % self._count == self._number

    def _read(self, job: _Job) -> None:
        """Read a run, and send the others what is theirs."""
        shares: list[list[Share]] = [[] for _ in range(self._count)]
        job.own, job.heads = [], []
        parts: Iterator[Stretch | Batch] = (
            job.run.parts(0) if isinstance(job.run, TableRun | RowRun) else job.run.batches(0)
        )
        try:
            for part in parts:
                job.heads.append(self._head(part))
                for number, share in enumerate(shares):
                    events = self._events(part, number)
                    if number == self._number:
                        job.own.append(events)
                    elif events:
                        share.append(Share.of(events))
        finally:
            # What was read before a failure is played by all.
            for number, share in enumerate(shares):
                if number != self._number:
                    packed = pickle.dumps(share, pickle.HIGHEST_PROTOCOL)
                    self._mail.send(number, job.number, packed)
        refused = [one.offset for head in job.heads for one in head.rejections]
        job.places = {offset: self.source.where(job.log, offset) for offset in refused}

    def _head(self, part: Stretch | Batch) -> Batch:
        """Return what a part has beside events, those of keys that nobody asked for left out."""
        if isinstance(part, Stretch):
            told = part.head()
            unwanted = self._numbers(part) < 0
            if unwanted.any():
                told.counts["events"] -= int(unwanted[part.columns.keys].sum())
            return told
        self.chooser.choose(part)
        return _told(part)

    def _advance(self) -> None:
        """Play the oldest run, and tell what came of it."""
        job = self._jobs.popleft()
        self._take_up(job.log)
        updates: list[list[Message]] = [[] for _ in self.tapes]
        given = job.own
        if given is None:
            try:
                shares = self._mail.get(job.number)
            except Exception:
                # What lies behind is not played, read or not.
                self._jobs.clear()
                raise
            given = [share.keys() for share in shares]
        for keys in given:
            batch = Batch(keys=keys)
            for number, tape in enumerate(self.tapes):
                tape.published = job.published
                updates[number] += tape.play(batch)
        if not job.published:
            updates = [[] for _ in updates]
        placed = [_placed(found) for found in updates]
        at = self.source.position()
        self._send(Played(job.log, job.published, placed, job.rows, job.heads, job.places, at))

    def _take_up(self, log: Log) -> None:
        """Have tapes for a log: those before it, where it goes on."""
        if log is not self._log:
            super()._turn(log)
            self._log = log

    def _drain(self) -> None:
        while self._jobs:
            self._advance()

    def _send(self, played: Played) -> None:
        self._parent.send_bytes(pickle.dumps(played, pickle.HIGHEST_PROTOCOL))

    def _stop(self, moment: Moment) -> None:
        self._drain()
        moment.take(self.tapes[0])

    def _pair(self, log: Log, run: Run, published: bool) -> None:  # noqa: FBT001 - as the player calls it
        comparison = self._plan.comparison
        # What is one series for all keys is the first process's.
        if comparison is not None and (comparison.by_key or not self._number):
            comparison.others(log, run, published)

    def _compares(self, key: str) -> bool:
        return self._owner(key) == self._number

    def _events(self, part: Stretch | Batch, number: int) -> dict[str, KeyedEvents]:
        """Return the events of one owner."""
        if isinstance(part, Stretch):
            return grouped(part.columns, self._numbers(part) == number)
        return {key: events for key, events in part.keys.items() if self._owner(key) == number}

    def _numbers(self, part: Stretch) -> NDArray[np.int64]:
        """Return the owner of each name."""
        return np.fromiter(map(self._owner, part.columns.names), np.int64)

    def _owner(self, key: str) -> int:
        """Return the number of a key's owner; -1 where the key is not asked for."""
        owner = self._owners.get(key)
        if owner is None:
            owner = zlib.crc32(key.encode()) % self._count if self.chooser.wants(key) else -1
            self._owners[key] = owner
        return owner


def _told(batch: Batch) -> Batch:
    """Return a batch without its events."""
    told = Batch(rejections=batch.rejections, offset=batch.offset)
    told.counts.update(batch.counts)
    return told


def _placed(updates: Sequence[Message]) -> Placed:
    places = [_place(update.value or b"") for update in updates]
    return Placed(
        [offset for offset, _ in places],
        [index for _, index in places],
        [update.key for update in updates],
        [update.value for update in updates],
    )


def _place(value: bytes) -> tuple[int, int]:
    """Return offset and index of an update's source, which stand at its end."""
    _, offset, index = value.rsplit(b":", 2)
    return int(offset[: -len(_BETWEEN)]), int(index[: -len(_END)])


def _unforeseen(error: Exception) -> Exception:
    if isinstance(error, MemoryError):
        return RocstreamError(
            "a process of the replay ran out of memory: take fewer with --processes"
        )
    # As text: not every exception comes through a pipe.
    told = ProcessError(f"a process of the replay failed: {type(error).__name__}: {error}")
    told.add_note("".join(traceback.format_exception(error)))
    return told


def serve(
    plan: Plan,
    number: int,
    parent: Connection,
    inboxes: Sequence[Connection],
    locks: Sequence[Lock],
) -> None:
    """Do the part of one process, and tell the parent all of it: its last word is how it ended.

    Parameters
    ----------
    plan
        What is replayed.
    number
        Of this process.
    parent
        To write to.
    inboxes, locks
        As for `Mail`.
    """
    # Ctrl-C is the parent's to deal with.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answer: Any
    mail = Mail(inboxes, locks, number)
    try:
        answer = Owner(plan, number, len(inboxes), mail, parent).run()
    except (RocstreamError, ProcessError) as error:
        answer = error
    except Exception as error:  # noqa: BLE001 - the parent raises it
        answer = _unforeseen(error)
        mail.fail(0, answer)
    try:
        parent.send_bytes(pickle.dumps(answer, pickle.HIGHEST_PROTOCOL))
    except OSError:
        return
    if isinstance(answer, Exception):
        # Were its inbox not emptied any more, whoever writes to it would wait.
        mail.stay()
