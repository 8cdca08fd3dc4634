"""A process of a replay in several: reads some of the runs, and plays the events of its own keys.

Every process goes through the whole source, which costs little: lines are counted and rows are
numbered without being read. Whoever has nothing to play reads the next run that nobody reads yet,
and gives the others the events of their keys (`exchange`); each plays the events of its own keys,
run after run.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import signal
import sys
import threading
import traceback
import zlib
from collections import deque
from functools import partial
from multiprocessing import parent_process
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from config.errors import RocstreamError
from worker.events import Batch
from worker.replay.collector import resting
from worker.replay.parquet import TableRun
from worker.replay.player import Player
from worker.replay.share import parts
from worker.replay.topic import TopicSource
from worker.updates import places

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from multiprocessing.connection import Connection

    import numpy as np
    from numpy.typing import NDArray

    from config import Settings
    from worker.events import KeyedEvents
    from worker.messages import Message
    from worker.replay.compare import Comparison
    from worker.replay.exchange import Exchange
    from worker.replay.records import Log, Run, Source
    from worker.replay.series import Recorder
    from worker.replay.share import Part
    from worker.replay.span import Span
    from worker.replay.story import Moment

AHEAD: Final = 3
"""Runs that a process has read, and not played yet, at the most."""

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_HELD_BYTES: Final = 1 << 30


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
    places
        Offset and index of the events that they follow from, a row each.
    keys, values
        Of the messages.
    """

    places: NDArray[np.int64]
    keys: list[bytes | None]
    values: list[bytes]


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
        By offset, where the refused records of the run stand, and what comes behind its batches.
    last
        Offset that follows the run.
    position
        How much of the source the process has gone through.
    """

    log: Log
    published: bool
    updates: list[Placed]
    rows: list[tuple[int, Message]]
    heads: list[Batch] | None
    places: dict[int, str]
    last: int
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

    def __init__(self, number: int, log: Log, last: int, settings: int, *, published: bool) -> None:
        self.number, self.log, self.last, self.published = number, log, last, published
        # Of the process that reads it: what of its own events is not played yet.
        self.own: deque[dict[str, KeyedEvents]] = deque()
        self.reads = self.read = False
        self.heads: list[Batch] = []
        self.places: dict[int, str] = {}
        self.rows: list[tuple[int, Message]] = []
        self.updates: list[list[Message]] = [[] for _ in range(settings)]


class Owner(Player):
    """Plays the events of a share of the keys, or those of some partitions.

    Parameters
    ----------
    plan
        What is replayed.
    number
        Which process this is.
    exchange
        With the others.
    parent
        Says what a topic has, and takes what was played.
    """

    def __init__(self, plan: Plan, number: int, exchange: Exchange, parent: Connection) -> None:
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
        self._plan, self._exchange, self._parent = plan, exchange, parent
        self._number, self._count = number, exchange.count
        self._owners: dict[str, int] = {}
        self._jobs: deque[_Job] = deque()
        self._numbered = self._pieces = 0
        self._piece: tuple[Log, object] | None = None
        self._claimed = False
        self._log: Log | None = None
        self._reached: Log | None = None
        for recorder in plan.recorders:
            recorder.wants = self.chooser.wants
        if plan.comparison is not None:
            plan.comparison.wants = self._compares

    def run(self) -> Ended:
        """Play all; what was played before a failure is sent before it is raised."""
        source = self.source
        if isinstance(source, TopicSource):
            source.found(self._parent.recv(), self._lot())
        try:
            for _ in self:
                pass
        except RocstreamError:
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
        self._reached = log
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
                        step.batch.offset,
                        self.source.position(),
                    )
                )
            return
        job = _Job(self._numbered, log, run.last, len(self.settings), published=published)
        self._numbered += 1
        if self._plan.comparison is not None:
            job.rows = self._plan.comparison.placed()
        self._jobs.append(job)
        if self._reads(log, run):
            self._read(job, run)
        while self._jobs and self._advance():
            pass
        while sum(one.reads for one in self._jobs) > AHEAD:
            self._go_on()
        yield from ()

    def _reads(self, log: Log, run: Run) -> bool:
        """Tell whether a run is its own to read, with what is read together."""
        piece = (log, run.piece if isinstance(run, TableRun) else run.first)
        if piece != self._piece:
            self._piece = piece
            self._claimed = self._exchange.claim(self._pieces)
            self._pieces += 1
        return self._claimed

    def _read(self, job: _Job, run: Run) -> None:
        """Read a run, and give the others what is theirs."""
        job.reads = True
        try:
            for batch in run.batches(0):
                self.chooser.choose(batch)
                job.heads.append(_told(batch))
                own: dict[str, KeyedEvents] = {}
                others: dict[str, KeyedEvents] = {}
                for key, events in batch.keys.items():
                    (own if self._owner(key) == self._number else others)[key] = events
                job.own.append(own)
                for share in parts(others):
                    self._give(job, share)
        finally:
            # What was read before a failure is played by all.
            told = [head.offset for head in job.heads]
            told += [one.offset for head in job.heads for one in head.rejections]
            job.places = {offset: self.source.where(job.log, offset) for offset in told}
            self._give(job, [], last=True)
            job.read = True

    def _give(self, job: _Job, share: Sequence[Part], *, last: bool = False) -> None:
        """Give the others a share; while there is no place for it, play what is there."""
        while not self._exchange.place(self._number):
            if not self._advance():
                self._exchange.wait(self._number, self._jobs[0].number, place=True)
        self._exchange.give(self._number, job.number, share, last=last)

    def _advance(self) -> bool:
        """Play what comes next of the oldest run; tell whether it is there."""
        job = self._jobs[0]
        if job.reads:
            if job.own:
                self._tape(job, job.own.popleft())
            elif job.read:
                self._finish()
            else:
                return False
            return True
        found = self._exchange.next(self._number, job.number)
        if found is None:
            return False
        giver, share, last = found
        if last:
            self._finish()
        else:
            self._tape(job, share.keys(self._owns))
        self._exchange.done(self._number, giver)
        return True

    def _tape(self, job: _Job, keys: dict[str, KeyedEvents]) -> None:
        """Play events."""
        self._take_up(job.log)
        batch = Batch(keys=keys)
        for number, tape in enumerate(self.tapes):
            tape.published = job.published
            found = tape.play(batch)
            if job.published:
                job.updates[number] += found

    def _finish(self) -> None:
        """Tell what came of the oldest run."""
        job = self._jobs.popleft()
        self._take_up(job.log)
        heads = job.heads if job.reads else None
        placed = [_placed(found) for found in job.updates]
        at = self.source.position()
        self._send(
            Played(job.log, job.published, placed, job.rows, heads, job.places, job.last, at)
        )

    def _take_up(self, log: Log) -> None:
        """Have tapes for a log: those before it, where it goes on."""
        if log is not self._log:
            super()._turn(log)
            self._log = log

    def _go_on(self) -> None:
        """Play what comes next of the oldest run, when it is there."""
        if not self._advance():
            self._exchange.wait(self._number, self._jobs[0].number, place=False)

    def _drain(self) -> None:
        while self._jobs:
            self._go_on()

    def _send(self, played: Played) -> None:
        self._parent.send_bytes(pickle.dumps(played, pickle.HIGHEST_PROTOCOL))

    def _stop(self, moment: Moment) -> None:
        self._drain()
        if self._reached is not None:
            # Of which there may be nothing to play before.
            self._take_up(self._reached)
        moment.take(self.tapes[0])

    def _pair(self, log: Log, run: Run, published: bool) -> None:  # noqa: FBT001 - as the player calls it
        comparison = self._plan.comparison
        # What is one series for all keys is the first process's.
        if comparison is not None and (comparison.by_key or not self._number):
            comparison.others(log, run, published)

    def _owns(self, key: str) -> bool:
        return self._owner(key) == self._number

    def _compares(self, key: str) -> bool:
        return self._owns(key) and self.chooser.wants(key)

    def _owner(self, key: str) -> int:
        """Return the number of a key's owner."""
        owner = self._owners.get(key)
        if owner is None:
            owner = self._owners[key] = zlib.crc32(key.encode()) % self._count
        return owner


def _told(batch: Batch) -> Batch:
    """Return a batch without its events."""
    told = Batch(rejections=batch.rejections, offset=batch.offset)
    told.counts.update(batch.counts)
    return told


def _placed(updates: Sequence[Message]) -> Placed:
    values = [update.value or b"" for update in updates]
    return Placed(places(values), [update.key for update in updates], values)


def _unforeseen(error: Exception) -> Exception:
    if isinstance(error, MemoryError):
        return RocstreamError(
            "a process of the replay ran out of memory: take fewer with --processes"
        )
    # As text: not every exception comes through a pipe.
    told = ProcessError(f"a process of the replay failed: {type(error).__name__}: {error}")
    told.add_note("".join(traceback.format_exception(error)))
    return told


def _hold_memory() -> None:
    """Have freed memory stay with this process: run by run it would be given back and cleared."""
    if sys.platform == "linux":
        # Other systems, and other libraries than glibc, know no such thing.
        with contextlib.suppress(AttributeError):
            library = ctypes.CDLL(None)
            for what in (_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD):
                library.mallopt(what, _HELD_BYTES)


def _end_with_parent() -> None:
    """Have this process end when the parent does, whatever it waits for: a write as well.

    Its end of the pipe does not tell: processes that are forked later hold that open.
    """
    above = parent_process()
    if above is None:
        return

    def follow() -> None:
        wait([above.sentinel])
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def serve(plan: Plan, number: int, parent: Connection, exchange: Exchange) -> None:
    """Do the part of one process, and tell the parent all of it: its last word is how it ended.

    Parameters
    ----------
    plan
        What is replayed.
    number
        Of this process.
    parent
        To write to.
    exchange
        With the others.
    """
    # Ctrl-C is the parent's to deal with.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with_parent()
    _hold_memory()
    answer: Any
    foreseen = True
    try:
        with resting():
            answer = Owner(plan, number, exchange, parent).run()
    except RocstreamError as error:
        answer = error
    except Exception as error:  # noqa: BLE001 - the parent raises it
        answer, foreseen = _unforeseen(error), False
    exchange.leave(number)
    # A parent that is gone needs no last word.
    with contextlib.suppress(OSError):
        parent.send_bytes(pickle.dumps(answer, pickle.HIGHEST_PROTOCOL))
    if not foreseen:
        # What others wait for does not come any more.
        sys.exit(1)
