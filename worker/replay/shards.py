"""A replay in several processes, each with the windows of its own keys.

Rows of Parquet are read by each process for itself: its own share of them costs little. Of lines
and of records of a topic the parent hands out runs, each to be read by any process, gets their
events back split by owner, and hands these to the owners in the order of the log. What the owners
publish is merged by where it comes from, so the bytes are those of one process.
"""

from __future__ import annotations

import multiprocessing
import pickle
from collections import deque
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from config.errors import RocstreamError
from worker.events import Batch
from worker.events.record import Taken
from worker.messages import Message
from worker.replay.owner import Manner, Played, serve
from worker.replay.parquet import TableRun
from worker.replay.player import Player, Step
from worker.replay.records import LineRun, RecordRun

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from multiprocessing.connection import Connection

    from config import Settings
    from worker.replay.records import Log, Run, Source
    from worker.replay.series import Recorder
    from worker.replay.span import Span

AHEAD: Final = 3
"""Runs that are being read, or wait to be played, for each process."""

REQUESTS: Final = 2
"""What a process is asked for at once: while it does one thing, the next lies there."""


class _Job:
    """One run on its way: read by any process or by each, then played by each."""

    def __init__(self, log: Log, run: Run, owners: int, *, published: bool) -> None:
        self.log, self.published = log, published
        self.unread: tuple[Any, ...] | None = None
        self.parts: list[bytes | tuple[Any, ...]] = []
        self.batch = Batch()
        self.played: dict[int, list[Played]] = {}
        packed = _packed(run)
        if isinstance(run, TableRun):
            self.parts = [packed] * owners
        else:
            self.unread = packed


class ShardedPlayer(Player):
    """A player whose work is done by other processes.

    Parameters
    ----------
    settings, source, span, keys
        As for `Player`.
    manner
        How the source's records are read.
    processes
        How many do the work; the parent reads the source beside them.
    recorders
        One for each of the settings, or none; at the end they hold what was recorded of all keys.
    """

    def __init__(
        self,
        settings: Sequence[Settings],
        source: Source,
        span: Span | None,
        manner: Manner,
        processes: int,
        *,
        keys: Sequence[str] | None = None,
        recorders: Sequence[Recorder] = (),
    ) -> None:
        super().__init__(settings, source, span, keys=keys)
        self._recorders = recorders
        self._started = (self.settings, manner, processes, keys)
        self._links: list[Connection] = []
        self._busy: list[deque[tuple[str, _Job]]] = []
        self._unread: deque[_Job] = deque()
        self._unplayed: deque[_Job] = deque()
        self._handed: list[int] = []
        self._played = 0

    def __iter__(self) -> Iterator[Step]:
        """Yield step by step, in the order of the log."""
        # A fork would copy locks that threads of the clients hold.
        context = multiprocessing.get_context("spawn")
        settings, manner, count, keys = self._started
        children = []
        try:
            for number in range(count):
                here, there = context.Pipe()
                arguments = (there, settings, manner, self._recorders, number, count, keys)
                child = context.Process(target=serve, args=arguments, daemon=True)
                child.start()
                there.close()
                children.append(child)
                self._links.append(here)
            self._handed = [0] * count
            self._busy = [deque() for _ in range(count)]
            yield from super().__iter__()
            while self._unplayed:
                self._move()
                yield from self._ready()
            if self._recorders:
                self._collect()
        finally:
            for link in self._links:
                link.close()
            for child in children:
                child.terminate()
                child.join(5)
            self._links = []

    def _turn(self, log: Log) -> None:
        """Leave the windows to their owners, who see the log with each run."""

    def _steps(self, log: Log, run: Run, *, published: bool) -> Iterator[Step]:
        job = _Job(log, run, len(self._links), published=published)
        if job.unread is not None:
            self._unread.append(job)
        self._unplayed.append(job)
        self._hand_out()
        while len(self._unplayed) > AHEAD * len(self._links):
            self._move()
            yield from self._ready()

    def _ready(self) -> Iterator[Step]:
        """Yield what all owners have played, oldest first."""
        while self._unplayed and len(self._unplayed[0].played) == len(self._links):
            job = self._unplayed.popleft()
            self._played += 1
            self._tell(job.log, job.batch, published=job.published)
            # By setting instead of by owner.
            updates = [_merged(parts) for parts in zip(*job.played.values(), strict=True)]
            yield Step(job.log, job.batch, updates, job.published)

    def _move(self) -> None:
        """Take one answer or more in, and hand out what can be."""
        busy = [link for link, asked in zip(self._links, self._busy, strict=True) if asked]
        for link in wait(busy):
            number = next(at for at, one in enumerate(self._links) if one is link)
            what, job = self._busy[number].popleft()
            answer = self._answer(number)
            if what == "read":
                job.parts, job.batch = answer
            else:
                job.played[number] = answer
                if answer[0].head is not None:
                    job.batch = answer[0].head
        self._hand_out()

    def _answer(self, number: int) -> Any:
        try:
            answer = pickle.loads(self._links[number].recv_bytes())  # noqa: S301 - our child's
        except EOFError:
            raise RocstreamError(
                f"process {number} of the replay ended unexpectedly: was memory short?"
            ) from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _collect(self) -> None:
        """Have the owners, who have played all, tell what they recorded."""
        for link in self._links:
            link.send_bytes(pickle.dumps(("tell",)))
        for number in range(len(self._links)):
            for own, its in zip(self._recorders, self._answer(number), strict=True):
                own.join(its)

    def _hand_out(self) -> None:
        for number, (link, asked) in enumerate(zip(self._links, self._busy, strict=True)):
            while len(asked) < REQUESTS and (task := self._next(number)) is not None:
                what, job, *given = task
                asked.append((what, job))
                link.send_bytes(pickle.dumps((what, *given), pickle.HIGHEST_PROTOCOL))

    def _next(self, number: int) -> tuple[Any, ...] | None:
        """Return what a process does next: play what is next in the log, else read ahead."""
        at = self._handed[number] - self._played
        if 0 <= at < len(self._unplayed) and self._unplayed[at].parts:
            job = self._unplayed[at]
            self._handed[number] += 1
            return "play", job, job.log, job.published, job.parts[number]
        if self._unread:
            job = self._unread.popleft()
            unread, job.unread = job.unread, None
            return "read", job, unread
        return None


def _merged(parts: Sequence[Played]) -> list[Message]:
    """Return the updates of all owners in the order of the log."""
    keys = [key for part in parts for key in part.keys]
    values = [value for part in parts for value in part.values]
    indexes = [index for part in parts for index in part.indexes]
    offsets = [offset for part in parts for offset in part.offsets]
    # Of one event there is one owner, whose updates are in their order.
    order = np.lexsort((indexes, offsets)).tolist()
    return [Message(keys[at], values[at], ()) for at in order]


def _packed(run: Run) -> tuple[Any, ...]:
    """Return a run as it goes to another process."""
    match run:
        case LineRun():
            return "lines", run.text, run.count, run.first
        case TableRun():
            return "rows", run.table.path, run.first, run.last
        case RecordRun(records=list() as records):
            # The client's own objects stay with it.
            plain = [Taken(one.offset, one.timestamp, one.key, one.value) for one in records]
            return "records", plain, run.last
        case RecordRun():
            return "records", run.records, run.last
    return "as it is", run
