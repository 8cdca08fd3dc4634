"""A replay in several processes: any of them reads a run, each keeps the windows of its own keys.

The parent hands out runs to be read, gets the events back split by owner, and hands these to the
owners in the order of the log; what they publish is merged by where it comes from, so the bytes
are those of one process. Each process has one request at a time, so no pipe ever fills up on both
sides.
"""

from __future__ import annotations

import multiprocessing
import pickle
import zlib
from collections import Counter, deque
from heapq import merge
from multiprocessing.connection import wait
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from config.errors import RocstreamError
from worker.events import Batch
from worker.messages import Message
from worker.replay.blocks import LineRun, Reader, ValueRun
from worker.replay.parquet import Table, TableRun
from worker.replay.player import Chooser, Player, Step
from worker.replay.tape import Tape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from multiprocessing.connection import Connection

    from config import EventSettings, Settings
    from worker.replay.records import Log, Run, Source
    from worker.replay.span import Span

AHEAD: Final = 2
"""Runs that are being read, or wait to be played, for each process."""

_OFFSET: Final = b'"offset":'
_INDEX: Final = b'"index":'

Placed = tuple[int, int, bytes | None, bytes | None]


class Manner(NamedTuple):
    """How records are read: the settings, and what each record has outside its value."""

    event: EventSettings
    fixed: bytes | None
    timestamp: int


class _Job:
    """One run on its way: read by any process, then played by each."""

    def __init__(self, log: Log, run: Run, *, published: bool) -> None:
        self.log, self.published = log, published
        self.run: Run | None = run
        self.parts: list[bytes] = []
        self.batch = Batch()
        self.updates: dict[int, list[Placed]] = {}


class ShardedPlayer(Player):
    """A player whose work is done by other processes; for one setting, without onlookers.

    Parameters
    ----------
    settings, source, span, keys
        As for `Player`.
    manner
        How the source's records are read.
    processes
        How many do the work; the parent reads the source beside them.
    """

    def __init__(
        self,
        settings: Settings,
        source: Source,
        span: Span | None,
        manner: Manner,
        processes: int,
        *,
        keys: Sequence[str] | None = None,
    ) -> None:
        super().__init__([settings], source, span, keys=keys)
        self._started = (settings, manner, processes, keys)
        self._links: list[Connection] = []
        self._busy: dict[int, tuple[str, _Job]] = {}
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
                arguments = (there, settings, manner, number, count, keys)
                child = context.Process(target=_serve, args=arguments, daemon=True)
                child.start()
                there.close()
                children.append(child)
                self._links.append(here)
            self._handed = [0] * count
            yield from super().__iter__()
            while self._unplayed:
                self._move()
                yield from self._ready()
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
        job = _Job(log, run, published=published)
        self._unread.append(job)
        self._unplayed.append(job)
        while len(self._unplayed) > AHEAD * len(self._links):
            self._move()
            yield from self._ready()
        self._hand_out()

    def _ready(self) -> Iterator[Step]:
        """Yield what all owners have played, oldest first."""
        while self._unplayed and len(self._unplayed[0].updates) == len(self._links):
            job = self._unplayed.popleft()
            self._played += 1
            placed = merge(
                *(job.updates[number] for number in range(len(self._links))), key=itemgetter(0, 1)
            )
            updates = [Message(key, value) for _, _, key, value in placed]
            self._tell(job.log, job.batch, published=job.published)
            yield Step(job.log, job.batch, [updates], job.published)

    def _move(self) -> None:
        """Hand out what can be, and take one answer or more in."""
        self._hand_out()
        for link in wait([self._links[number] for number in self._busy]):
            number = next(at for at, one in enumerate(self._links) if one is link)
            what, job = self._busy.pop(number)
            try:
                answer = pickle.loads(self._links[number].recv_bytes())  # noqa: S301 - our child's
            except EOFError:
                raise RocstreamError(
                    f"process {number} of the replay ended unexpectedly: was memory short?"
                ) from None
            if isinstance(answer, Exception):
                raise answer
            if what == "read":
                job.parts, job.batch = answer
            else:
                job.updates[number] = answer
        self._hand_out()

    def _hand_out(self) -> None:
        for number, link in enumerate(self._links):
            if number in self._busy:
                continue
            task = self._next(number)
            if task is not None:
                self._busy[number] = task[:2]
                link.send_bytes(pickle.dumps(task[2], pickle.HIGHEST_PROTOCOL))

    def _next(self, number: int) -> tuple[str, _Job, Any] | None:
        """Return what a process does next: play what is next in the log, else read ahead."""
        at = self._handed[number] - self._played
        if 0 <= at < len(self._unplayed) and self._unplayed[at].parts:
            job = self._unplayed[at]
            self._handed[number] += 1
            return "play", job, ("play", job.log, job.published, job.parts[number])
        if self._unread:
            job = self._unread.popleft()
            assert job.run is not None  # noqa: S101 - it is taken out here alone
            task = ("read", _packed(job.run))
            job.run = None
            return "read", job, task
        return None


class _Owner:
    """What a process of the replay does.

    Parameters
    ----------
    settings, manner, keys
        See `ShardedPlayer`.
    count
        How many processes there are.
    """

    def __init__(
        self, settings: Settings, manner: Manner, count: int, keys: Sequence[str] | None
    ) -> None:
        self._settings, self._manner, self._count = settings, manner, count
        self._chooser = Chooser(keys)
        self._reader = Reader(manner.event)
        self._tables: dict[str, Table] = {}
        self._tape: Tape | None = None
        self._log: Log | None = None

    def read(self, packed: tuple[Any, ...]) -> tuple[list[bytes], Batch]:
        """Read a run; return its events by owner, and all that is not events."""
        parts: list[list[dict[str, Any]]] = [[] for _ in range(self._count)]
        whole = Batch()
        counts: Counter[str] = Counter()
        for batch in self._run(packed).batches(0):
            self._chooser.choose(batch)
            for part in parts:
                part.append({})
            for key, events in batch.keys.items():
                parts[zlib.crc32(key.encode()) % self._count][-1][key] = events
            counts.update(batch.counts)
            whole.rejections += batch.rejections
            whole.offset = batch.offset
        whole.counts = counts
        return [pickle.dumps(part, pickle.HIGHEST_PROTOCOL) for part in parts], whole

    def play(self, log: Log, published: bool, part: bytes) -> list[Placed]:  # noqa: FBT001 - sent so
        """Play the events of the own keys; return the updates with their places."""
        if self._tape is None or not log.goes_on:
            if log != self._log:
                self._tape = Tape(self._settings, log)
        elif log != self._log:
            self._tape.turn(log)
        self._log = log
        assert self._tape is not None  # noqa: S101 - the first log is always another
        found: list[Placed] = []
        for keys in pickle.loads(part):  # noqa: S301 - our own
            updates = self._tape.play(Batch(keys=keys))
            if published:
                found += [(*_place(one.value or b""), *one[:2]) for one in updates]
        return found

    def _run(self, packed: tuple[Any, ...]) -> Run:
        match packed:
            case ("lines", text, count, first):
                manner = self._manner
                return LineRun(text, count, first, [self._reader], manner.fixed, manner.timestamp)
            case ("rows", path, first, last):
                table = self._tables.get(path)
                if table is None:
                    manner = self._manner
                    table = Table(path, [manner.event], manner.fixed, manner.timestamp)
                    self._tables[path] = table
                return TableRun(table, first, last)
            case ("values", values, last):
                return ValueRun(values, last, [self._reader])
        read: Run = packed[1]
        return read


def _packed(run: Run) -> tuple[Any, ...]:
    """Return a run as it goes to another process."""
    match run:
        case LineRun():
            return "lines", run.text, run.count, run.first
        case TableRun():
            return "rows", run.table.path, run.first, run.last
        case ValueRun():
            return "values", run.values, run.last
    return "as it is", run


def _place(value: bytes) -> tuple[int, int]:
    """Return offset and index of an update's source, which stand at its end."""
    index = value.rindex(_INDEX)
    offset = value.rindex(_OFFSET, 0, index)
    number = value[offset + len(_OFFSET) : index].rstrip(b", ")
    return int(number), int(value[index + len(_INDEX) :].rstrip(b"} "))


def _serve(
    link: Connection,
    settings: Settings,
    manner: Manner,
    number: int,
    count: int,
    keys: Sequence[str] | None,
) -> None:
    """Answer requests until the parent closes the pipe."""
    import signal  # noqa: PLC0415 - of the child alone

    # Ctrl-C is the parent's to deal with.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    del number
    owner = _Owner(settings, manner, count, keys)
    while True:
        try:
            task = pickle.loads(link.recv_bytes())  # noqa: S301 - our parent's
        except (EOFError, OSError):
            return
        answer: Any
        try:
            answer = owner.read(task[1]) if task[0] == "read" else owner.play(*task[1:])
        except RocstreamError as error:
            answer = error
        try:
            link.send_bytes(pickle.dumps(answer, pickle.HIGHEST_PROTOCOL))
        except OSError:
            return
