"""One task at work: its pipeline on the event loop, its transactions in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import time
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final

import structlog

from config.errors import DecisionError, RocstreamError
from worker.transport.fetch import joined
from worker.transport.producer import Transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor

    from worker.pages import Cursor
    from worker.pipeline import Pipeline
    from worker.transport.fetch import Run
    from worker.transport.producer import TaskProducer
    from worker.transport.tables import WindowTable

log = structlog.get_logger(__name__)

BUFFERED_MESSAGES: Final = 20_000
"""Updates and rejections that may wait for a transaction; the agent waits when there are more."""

BUFFERED_BYTES: Final = 32 << 20
"""The same in bytes: a dead letter may have a megabyte, and a transaction has little time."""

GATHERED_RECORDS: Final = 512
GATHERED_RUNS: Final = 8
"""What may wait to be taken in while no transaction may begin. Work per key and batch is most of
what a few events cost, so those that go into one transaction are taken in together; more of them
cost little less each, and would hold the transaction up."""

BUSY_SECONDS: Final = 1.0
"""Seconds between two transactions while a task has much to catch up with. Each one rewrites the
open page of every key that it touches, so with many keys larger ones are several times cheaper, and
updates that are late anyway lose little by it."""

QUIET_SECONDS: Final = 0.1
"""How long a transaction waits for something to publish. Without it nobody sees that there was one,
while an update that comes meanwhile waits for its end and for the broker's markers behind it."""

MARKERS_SECONDS: Final = 0.003
"""Pause behind a commit, in which the broker writes its markers: a transaction that comes sooner is
told to wait, and the client waits 20 ms then."""

PASSED_SECONDS: Final = 1.0
"""How often a cursor is committed that only markers of the source's transactions have moved. The
first one goes at once: should the worker be killed, and stay away until retention has taken them,
nobody could tell any more that they were no records."""

LISTEN_SECONDS: Final = 1.0
"""How often an idle task, or one that is set aside, has its client say what it has to say. It would
pile up: with a broker away, some lines a second."""

DRAIN_SECONDS: Final = 5.0
"""How long a task that leaves may take to commit what it has. What is not committed by then is
worked out again by the next owner, so leaving sooner costs work, never data."""


class Task:
    """The state of one partition of the input, and the loop that commits it.

    All methods belong to the event loop; only the producer's calls run elsewhere.

    Parameters
    ----------
    partition, generation
        What the task is for, and the group's generation in which it was assigned.
    pipeline, producer, table
        Its parts.
    pool
        Where the producer's calls run.
    interval
        Seconds between the starts of two transactions, at the least.
    on_death
        Called once with the task and the error when a transaction has failed for good.
    on_room
        Called whenever there may be room again.

    Attributes
    ----------
    sought
        Number of the seek that leads to the cursor: the runs behind it are for this task. None
        until there is one.
    """

    def __init__(
        self,
        partition: int,
        generation: int,
        pipeline: Pipeline,
        producer: TaskProducer,
        table: WindowTable,
        *,
        pool: Executor,
        interval: float,
        on_death: Callable[[Task, BaseException], None],
        on_room: Callable[[], None] = lambda: None,
    ) -> None:
        self.partition = partition
        self.generation = generation
        self.pipeline = pipeline
        self.committed: Cursor | None = None
        self.dead = False
        self.closing = False
        self.sought: int | None = None
        self._producer = producer
        self._table = table
        self._pool = pool
        self._interval = interval
        self._on_death = on_death
        self._on_room = on_room
        self._wake = asyncio.Event()
        self._hurry = asyncio.Event()
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._idle = asyncio.Event()
        self._next = 0
        self._unread = 0
        self._waiting: list[Run] = []
        self._under_way: Iterator[None] | None = None
        self._may_begin = True
        self._stretched = False
        self._later: asyncio.TimerHandle | None = None
        self._passed = 0.0
        self._loop: asyncio.Task[None] | None = None

    @property
    def has_room(self) -> bool:
        """Whether more records may be fetched for this task."""
        pipeline = self.pipeline
        return (
            not self.dead
            and pipeline.buffered < BUFFERED_MESSAGES
            and pipeline.buffered_bytes < BUFFERED_BYTES
        )

    @property
    def lags(self) -> bool:
        """Whether the log holds more unread records than came since the last transaction."""
        done = 0 if self.committed is None else self.committed.offset
        return self._unread > self._next - done

    def start(self, *, committed: bool) -> None:
        """Begin to commit; `committed` tells whether the changelog holds the cursor already."""
        if committed:
            self.committed = self.pipeline.cursor
            self._idle.set()
        else:
            self._wake.set()
        self.sought = None
        self._next = self.pipeline.cursor.offset
        self._may_begin = True
        if self._loop is not None:
            self._loop.cancel()
        self._loop = asyncio.create_task(self._commit_loop(), name=f"task-{self.partition}")

    async def feed(self, run: Run) -> None:
        """Take a run in, waiting for room in between; stop early when the task leaves.

        A small one may be kept until a transaction may begin. There is no await between two
        consistent points: whenever this is suspended, what was taken in is in the windows, the
        buffers and the cursor alike.

        Raises
        ------
        DecisionError
            When the run does not begin where the last one ended: the log was cut under the worker.
        """
        if run.start != self._next:
            raise DecisionError(
                f"partition {self.partition} of the topic {self.pipeline.cursor.topic} goes on at "
                f"offset {run.start} and not at {self._next}: records were deleted unread, or the "
                "topic was made again while the worker ran; start with --accept-gap to go on with "
                "empty windows, or move the job with `rocstream reset`"
            )
        self._next, self._unread = run.end, run.unread
        if self._stretched and not self.lags:
            self._hurry.set()
        self._waiting.append(run)
        if not self._may_begin and self._under_way is None and self._is_little():
            return
        while not self._take_in():
            self._hurry.set()
            self._room.clear()
            await self._room.wait()
            if self.closing or self.dead:
                self._waiting, self._under_way = [], None
                return

    async def drain(self) -> None:
        """Take nothing in any more, and commit what there is, for `DRAIN_SECONDS` at the most."""
        self.closing = True
        self._make_room()
        if self.dead or self._loop is None:
            return
        self._wake_up()
        self._hurry.set()
        self._news.set()
        try:
            await asyncio.wait_for(self._idle.wait(), DRAIN_SECONDS)
        except TimeoutError:
            log.warning("task left with uncommitted work", task=self.partition)

    async def park(self) -> bool:
        """Commit what there is and stand still; tell whether the task is fit to go on later.

        Its client goes on saying what it has to say: how long a rebalance takes is for others to
        decide.
        """
        await self.drain()
        await self._end_loop()
        self._loop = asyncio.create_task(self._listen(), name=f"parked-{self.partition}")
        return not self.dead and self._at_rest()

    def prove(self) -> bool:
        """Commit the cursor once more, in a thread: success proves that nobody else had the task.

        Whoever opens a task fences its former owner, so a transaction that goes through means
        that the state here still is the state in the changelog.
        """
        try:
            self._producer.commit(Transaction([], [], [], self.pipeline.cursor))
        except RocstreamError as error:
            log.info("task had another owner", task=self.partition, error=str(error))
            return False
        return True

    def go_on(self, generation: int) -> None:
        """Work again after `park`, in another generation of the group."""
        self.generation = generation
        self.closing = False
        self.start(committed=True)

    async def close(self) -> None:
        """Let go of everything; what is not committed is worked out again by the next owner."""
        self.closing = self.dead = True
        self._make_room()
        self._producer.abandon()
        await self._end_loop()
        await asyncio.get_running_loop().run_in_executor(self._pool, self._producer.close)

    async def _end_loop(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.cancel()
            await asyncio.gather(loop, return_exceptions=True)

    def _is_little(self) -> bool:
        """Tell whether what waits to be taken in may wait longer."""
        waiting = self._waiting
        return len(waiting) <= GATHERED_RUNS and sum(map(len, waiting)) <= GATHERED_RECORDS

    def _take_in(self) -> bool:
        """Take in what waits for it, as far as there is room; tell whether that was all."""
        while True:
            if self._under_way is None:
                if not self._waiting:
                    return True
                _, same = next(groupby(self._waiting, attrgetter("epoch")))
                runs = list(same)
                del self._waiting[: len(runs)]
                self._under_way = self._steps(joined(runs))
            for _ in self._under_way:
                if not self.has_room:
                    return False
            self._under_way = None

    def _steps(self, run: Run) -> Iterator[None]:
        """Take a run in; at each yield one may stop for good."""
        for _ in self.pipeline.process(run.records, run.epoch):
            self._idle.clear()
            self._wake.set()
            if self.pipeline.buffered:
                self._news.set()
            yield
        self.pipeline.pass_over(run.end, run.epoch)
        if len(run):
            self._wake_up()
        elif self._later is None:
            loop = asyncio.get_running_loop()
            self._passed = max(self._passed + PASSED_SECONDS, loop.time())
            self._later = loop.call_at(self._passed, self._wake_up)

    def _make_room(self) -> None:
        self._room.set()
        self._on_room()

    def _wake_up(self) -> None:
        """Have what is not committed yet committed."""
        if self._later is not None:
            self._later.cancel()
            self._later = None
        if not self._at_rest():
            self._idle.clear()
            self._wake.set()

    def _at_rest(self) -> bool:
        return (
            not self._waiting
            and self._under_way is None
            and self.committed is not None
            and self.pipeline.cursor.place == self.committed.place
        )

    async def _commit_loop(self) -> None:
        try:
            while True:
                await self._await_work()
                await self._gather()
                if self.dead:
                    # Of what a run that failed has left half done nothing may be committed.
                    self._idle.set()
                    self._make_room()
                    return
                self._may_begin = False
                self._wake.clear()
                began = time.monotonic()
                self._hurry.clear()
                await self._commit()
                if self._at_rest():
                    self._idle.set()
                elif self.closing:
                    self._wake.set()
                await self._pause(began)
                self._may_begin = True
                if self.has_room:
                    self._take_in()
                if self._at_rest():
                    self._idle.set()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it was, the task must not go on
            self.dead = True
            self._idle.set()
            self._make_room()
            self._on_death(self, error)

    async def _await_work(self) -> None:
        while not self._wake.is_set():
            self._producer.listen()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LISTEN_SECONDS):
                    await self._wake.wait()

    async def _listen(self) -> None:
        """Have the client say what it has to say, until this is called off."""
        while True:
            self._producer.listen()
            await asyncio.sleep(LISTEN_SECONDS)

    async def _gather(self) -> None:
        """Wait until there is something to publish, though not for long."""
        if not self.closing:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), QUIET_SECONDS)

    async def _commit(self) -> None:
        outcome = self.pipeline.take()
        self._news.clear()
        self._make_room()
        with self._table.writing() as pages:
            self._table.write(outcome.pages)
        transaction = Transaction(outcome.updates, outcome.rejections, pages, outcome.cursor)
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._pool, self._producer.commit, transaction)
        self.committed = outcome.cursor

    async def _pause(self, began: float) -> None:
        """Wait until a transaction may follow the one that began at a time (monotonic)."""
        await self._pause_until(max(began + self._interval, time.monotonic() + MARKERS_SECONDS))
        if self.lags:
            self._stretched = True
            await self._pause_until(began + BUSY_SECONDS)
            self._stretched = False

    async def _pause_until(self, instant: float) -> None:
        seconds = instant - time.monotonic()
        if seconds > 0 and not self.closing:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), seconds)
