"""A replay in several processes, each with the windows of its own keys or of its own partitions.

The processes read the source themselves and give each other what they read (`owner`). What they
publish is merged here by where it comes from, so the bytes are those of one process.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import signal
import struct
import sys
import threading
import warnings
from itertools import repeat
from multiprocessing.connection import wait
from operator import itemgetter
from tempfile import SpooledTemporaryFile, gettempdir
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from config.errors import RocstreamError
from worker.messages import Message, made
from worker.replay.exchange import Exchange
from worker.replay.owner import Ended, Plan, Played, serve
from worker.replay.player import Player, Step
from worker.replay.topic import TopicSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.context import BaseContext
    from multiprocessing.process import BaseProcess

    from worker.replay.owner import Placed
    from worker.replay.records import Log, Source

IN_MEMORY: Final = 64 << 20
"""Bytes of what a process is ahead with that are kept in memory; more go to a temporary file."""

ENDING_SECONDS: Final = 5.0

_LENGTH: Final = struct.Struct("<q")


class _Told:
    """The source as the processes tell of it, who read it."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.name = source.name
        self.notes = source.notes
        self.several = source.several
        self.places: dict[int, str] = {}
        self.read: dict[int, int] = {}

    @property
    def total(self) -> int | None:
        """How much there is to read."""
        return self._source.total

    def load(self) -> None:
        """Import nothing."""

    def position(self) -> int:
        """Return how much has been read."""
        return sum(self.read.values())

    def where(self, log: Log, offset: int) -> str:
        """Say where a record stands."""
        return self.places.get(offset) or self._source.where(log, offset)

    def runs(self, _readings: Any) -> Any:
        """Refuse: the processes read it."""
        raise NotImplementedError


class _Spool:
    """What a process has said and nobody has asked for yet."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - it lives as long as this
        self._taken = self._put = 0

    def put(self, packed: bytes) -> None:
        """Keep it.

        Raises
        ------
        RocstreamError
            When the temporary file has no room.
        """
        try:
            self._file.seek(self._put)
            self._put += self._file.write(_LENGTH.pack(len(packed)) + packed)
            # Not when it is read: nobody looks for its errors there.
            self._file.flush()
        except OSError as error:
            raise RocstreamError(
                f"what waits for its turn cannot be kept in {gettempdir()}: "
                f"{error.strerror or error}: make room, have TMPDIR name another directory, or "
                "leave --processes out"
            ) from error

    def take(self) -> bytes | None:
        """Return what was put first; None where nothing is."""
        if self._taken == self._put:
            return None
        self._file.seek(self._taken)
        (length,) = _LENGTH.unpack(self._file.read(_LENGTH.size))
        packed = self._file.read(length)
        self._taken += _LENGTH.size + length
        if self._taken == self._put:
            self._taken = self._put = 0
        return packed

    @property
    def empty(self) -> bool:
        """Whether all was taken."""
        return self._taken == self._put

    def close(self) -> None:
        """Let go of the file."""
        # What it had no room for was told of.
        with contextlib.suppress(OSError):
            self._file.close()


class ShardedPlayer(Player):
    """A player whose work is done by other processes.

    Parameters
    ----------
    plan
        What is replayed; at the end its recorders, its comparison and its moments hold what the
        processes have of all keys.
    processes
        How many do the work.
    """

    def __init__(self, plan: Plan, processes: int) -> None:
        self._told = _Told(plan.source)
        super().__init__(plan.settings, self._told, keys=plan.keys)
        self._plan, self._count = plan, processes
        self._children: list[BaseProcess] = []
        self._links: list[Connection] = []
        self._spools: list[_Spool] = []
        self._latest: dict[int, bytes] = {}
        self._silent: set[int] = set()
        self._nothing: str | None = None

    def nothing(self) -> str | None:
        """Say what there is where a span had nothing in it."""
        return self._nothing

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Have the processes started while the block runs.

        Raises
        ------
        RocstreamError
            When there is no memory that they can share.
        """
        context = _context()
        self._plan.source.load()
        try:
            exchange = Exchange(context, self._count)
        except OSError as error:
            raise RocstreamError(
                "the processes of the replay have no memory to share "
                f"({error.strerror or error}): make /dev/shm writable and larger, or take fewer "
                "with --processes"
            ) from error
        try:
            # All at once, so that none is left behind.
            with _uninterrupted():
                for number in range(self._count):
                    self._start(context, number, exchange)
            yield
        finally:
            for child in self._children:
                child.terminate()
            for child in self._children:
                child.join(ENDING_SECONDS)
            for end in self._links:
                end.close()
            for spool in self._spools:
                spool.close()
            self._children, self._links, self._spools = [], [], []

    def _start(self, context: BaseContext, number: int, exchange: Exchange) -> None:
        here, there = context.Pipe()
        child = context.Process(  # type: ignore[attr-defined]
            target=serve, args=(self._plan, number, there, exchange), daemon=True
        )
        with warnings.catch_warnings():
            # Of threads there are only those of numpy's libraries, who know of forks.
            warnings.simplefilter("ignore", DeprecationWarning)
            child.start()
        there.close()
        self._children.append(child)
        self._links.append(here)
        self._spools.append(_Spool())

    def __iter__(self) -> Iterator[Step]:
        """Yield step by step, in the order of the log, while the processes run."""
        if self._plan.by_partition:
            yield from self._by_partition()
            return
        self._look_up()
        while True:
            answers = self._answers()
            if len({_reached(one) for one in answers}) > 1:
                raise RocstreamError(
                    f"{self.source.name} changed while it was read, and no two processes read the "
                    "same: replay a copy, or leave --processes out"
                )
            if isinstance(answers[0], Ended):
                break
            self._told.read[0] = answers[0].position
            yield from self._steps_of(answers)
        self._join(answers)

    def _by_partition(self) -> Iterator[Step]:
        """Yield partition after partition, whoever is ahead with a later one."""
        ahead: dict[int, Any] = {}
        for at, partition in enumerate(self._look_up()):
            child = at % self._count
            while True:
                answer = ahead.pop(child, None) or self._next(child)
                if isinstance(answer, Ended) or answer.log.partition != partition:
                    ahead[child] = answer
                    break
                self._told.read[child] = answer.position
                yield from self._steps_of([answer])
        self._join([ahead.pop(child, None) or self._next(child) for child in range(self._count)])

    def _look_up(self) -> list[int]:
        """Find once for all what a topic has; return its partitions."""
        source = self._plan.source
        if not isinstance(source, TopicSource):
            return []
        parts = source.look_up()
        for link in self._links:
            link.send(parts)
        return [part.number for part in parts]

    def _answers(self) -> list[Any]:
        """Return what each process says next.

        Raises
        ------
        RocstreamError
            When one of them has failed, for which another may wait, and say nothing.
        """
        found: dict[int, Any] = {}
        while True:
            for number in range(self._count):
                if number not in found and (answer := self._said(number)) is not None:
                    found[number] = answer
            if len(found) == self._count:
                return [found[number] for number in range(self._count)]
            self._listen()

    def _next(self, number: int) -> Any:
        """Return what a process says next.

        Raises
        ------
        RocstreamError
            What the process failed with, or that it is gone.
        """
        while (answer := self._said(number)) is None:
            self._listen()
        return answer

    def _said(self, number: int) -> Any:
        """Return what a process has said next, None where nothing; raise what it failed with."""
        packed = self._spools[number].take()
        answer = None if packed is None else pickle.loads(packed)  # noqa: S301 - our child's
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _listen(self) -> None:
        """Take in what is said, by whoever.

        Raises
        ------
        RocstreamError, ProcessError
            When a process is gone before its time: others may wait for it, and say nothing.
        """
        there = [one for one in range(self._count) if one not in self._silent]
        ready = wait(
            [end for one in there for end in (self._links[one], self._children[one].sentinel)]
        )
        for one in there:
            # Should it be gone, its pipe may be held open by another.
            gone = self._children[one].sentinel in ready
            if self._links[one] in ready or self._links[one].poll():
                try:
                    packed = self._links[one].recv_bytes()
                except (EOFError, OSError):
                    gone = True
                else:
                    self._spools[one].put(packed)
                    self._latest[one] = packed
                    continue
            if gone:
                self._silent.add(one)
                self._children[one].join(ENDING_SECONDS)
                latest = self._latest.pop(one, None)
                last = None if latest is None else pickle.loads(latest)  # noqa: S301 - see above
                if isinstance(last, Exception) and self._children[one].exitcode:
                    raise last
                if last is None or isinstance(last, Played):
                    raise RocstreamError(
                        f"process {one} of the replay ended unexpectedly: was memory short?"
                    )

    def _steps_of(self, answers: Sequence[Played]) -> Iterator[Step]:
        """Yield what all processes have of a run."""
        log, published = answers[0].log, answers[0].published
        self._told.places = {at: told for one in answers for at, told in one.places.items()}
        # By setting instead of by process.
        updates = [_merged(parts) for parts in zip(*(one.updates for one in answers), strict=True)]
        if self._plan.comparison is not None:
            rows = [row for one in answers for row in one.rows]
            self._plan.comparison.give(sorted(rows, key=itemgetter(0)))
        heads = [head for one in answers for head in one.heads or ()]
        for number, head in enumerate(heads, 1):
            self._tell(log, head, published=published)
            last = number == len(heads)
            yield Step(log, head, updates if last else [[] for _ in updates], published)

    def _join(self, ended: Sequence[Ended]) -> None:
        plan = self._plan
        for one in ended:
            for own, its in zip(plan.recorders, one.recorders, strict=True):
                own.join(its)
            if plan.comparison is not None and one.comparison is not None:
                plan.comparison.join(one.comparison)
        for at, moment in enumerate(plan.moments):
            moment.join([one.moments[at] for one in ended], plan.settings[0])
        if not isinstance(plan.source, TopicSource):
            self._told.notes += ended[0].notes
        self._nothing = ended[0].nothing


def _reached(answer: Played | Ended) -> tuple[Log, int] | None:
    """Return up to where something is played; None at the end."""
    return None if isinstance(answer, Ended) else (answer.log, answer.last)


def _merged(parts: Sequence[Placed]) -> list[Message]:
    """Return the updates of all processes in the order of the log."""
    updates = [
        update for part in parts for update in map(made, zip(part.keys, part.values, repeat(())))
    ]
    if len(parts) == 1:
        return updates
    offsets, indexes = np.concatenate([part.places for part in parts]).T
    # Of one event there is one owner, whose updates are in their order.
    return [updates[at] for at in np.lexsort((indexes, offsets)).tolist()]


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Have Ctrl-C come behind the block, and never to a process that is started in it.

    What runs around a fork would swallow it.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _context() -> BaseContext:
    """Return how processes are started: by a fork, which has all loaded, where that is safe."""
    alone = threading.active_count() == 1
    return multiprocessing.get_context("fork" if alone and sys.platform == "linux" else "spawn")
