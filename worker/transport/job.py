"""The tasks of one worker: opened at each assignment, closed at each revocation, never trusted.

Opening fences first and reads afterwards: once a task's producer is open no former owner can
commit, so what the changelog then holds is all there will ever be. Whether the log still is the
one the state was made from is checked before a single record is taken in.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING, Final, TypeVar, cast

import faust
import structlog
from faust.app.base import BootStrategy

from config.errors import RocstreamError, SettingsError
from config.kafka import librdkafka
from worker.pages import CURSOR_KEY, StateError, unpack_cursor
from worker.pipeline import Pipeline
from worker.transport.changelog import Reader, Restored
from worker.transport.epochs import UNKNOWN
from worker.transport.ground import Ground
from worker.transport.machine import make_room
from worker.transport.offsets import GroupOffset, refuse_lost_state, refuse_moved_by_hand
from worker.transport.producer import (
    ClockError,
    ForbiddenError,
    ForgottenError,
    TaskProducer,
    TooLargeError,
    WriteError,
)
from worker.transport.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from faust.types import Message

    from config import Settings
    from worker.pages import Cursor
    from worker.transport.consumer import Consumer
    from worker.transport.epochs import End
    from worker.transport.fetch import Run
    from worker.transport.layout import Layout
    from worker.transport.tables import TableManager, WindowTable

log = structlog.get_logger(__name__)

T = TypeVar("T")

REJOIN_SECONDS: Final = 15.0
"""A fenced task waits this long for the rebalance that explains it, before it is opened anew."""

GROUP_COMMIT_SECONDS: Final = 2.0

SPARE_THREADS: Final = 8
"""Of the pool, beside one for each task there may be; threads that nobody needs are not started."""

DEATHS_WITHIN_SECONDS: Final = 300.0
DEATHS: Final = 5
"""More deaths of one task than this within the time: somebody else writes under our name. A long
outage of the broker can be the death of all tasks, but once."""


class _NoProducer(BootStrategy):
    """Starts no producer of Faust's: tasks have their own."""

    enable_kafka_producer = False


class JobApp(faust.App):
    """A Faust app with the job it works for."""

    mundane_level = "debug"
    BootStrategy = _NoProducer

    job: Job

    async def wait_for_crash(self) -> None:
        """Return once the app has crashed."""
        await self._crashed.wait()

    def reopen_tasks(self) -> None:
        """Open all tasks again in the same assignment."""
        cast("TableManager", self.tables).recovery.reopen()

    def _create_directories(self) -> None:
        """Make none: nothing is kept on disk."""


class Job:
    """What all parts of the driver share: settings, tasks, and how it ended.

    Parameters
    ----------
    settings
        The job's settings.
    layout
        What it finds at the broker.
    accept_gap
        Whether windows may restart empty where the log no longer reaches back to the cursor.
    """

    def __init__(self, settings: Settings, layout: Layout, *, accept_gap: bool) -> None:
        self.settings = settings
        self.layout = layout
        self.tasks: dict[int, Task] = {}
        self._parked: dict[int, Task] = {}
        self._one_opening = asyncio.Lock()
        self.revoking = False
        # Set whenever a task may have room again.
        self.room = asyncio.Event()
        self.leaving = False
        self._began = 0.0
        self.failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        self._app: JobApp | None = None
        self._table: WindowTable | None = None
        self._opening: list[TaskProducer] = []
        self._cancel_read = Event()
        self._deaths: dict[int, list[float]] = {}
        self._rescues: set[asyncio.Task[None]] = set()
        # Commits that wait for a broker may hold a thread for each task; opening and closing go on.
        self.pool = ThreadPoolExecutor(
            max_workers=layout.partitions + SPARE_THREADS, thread_name_prefix="task"
        )
        self.ground = Ground(settings, layout, accept_gap=accept_gap, pool=self.pool)

    def attach(self, app: JobApp, table: WindowTable) -> None:
        """Tell the job which app and table it works through; called once."""
        self._app, self._table = app, table

    def fail(self, error: BaseException) -> None:
        """End the job: whoever runs the app is told, and nothing is committed any more."""
        for task in self.tasks.values():
            task.dead = True
        if not self.failed.done():
            self.failed.set_result(error)

    def fail_soon(self, error: BaseException) -> None:
        """End the job as `fail` does. May be called from any thread."""
        self.failed.get_loop().call_soon_threadsafe(self.fail, error)

    def cursor(self, partition: int) -> Cursor | None:
        """Return where the task of a partition stands, if it has one. From any thread."""
        task = self.tasks.get(partition)
        return None if task is None else task.pipeline.cursor

    def replaced(self) -> None:
        """End the job: another worker has its instance id. May be called from any thread."""
        kafka = self.settings.kafka
        error = SettingsError(
            f'kafka.group_instance_id = "{kafka.group_instance_id}": another worker has joined the '
            f"group {kafka.group} under this name, so this one leaves: give each worker a name of "
            "its own"
        )
        self.fail_soon(error)

    def find(self, message: Message) -> Task | None:
        """Return the task that a run belongs to; None when the run is of another assignment."""
        task = self.tasks.get(message.partition)
        if task is None or task.dead or task.closing or message.generation_id != task.generation:
            return None
        if self.failed.done():
            # Tasks may have been opened meanwhile.
            return None
        if cast("Run", message.value).sought != task.sought:
            # It was fetched before the task was there, in the same generation. Behind the seek to
            # the task's cursor it is read again.
            return None
        return task

    async def feed(self, message: Message) -> None:
        """Give a run of records to its task."""
        task = self.find(message)
        if task is None:
            return
        try:
            await task.feed(message.value)  # type: ignore[arg-type]
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - the windows may be half changed: leave
            self.fail(error)

    async def open(
        self, partitions: Iterable[int], generation: int, check: Callable[[], None]
    ) -> None:
        """Have a task at work for each partition, behind `keep`; those that are there stay so.

        For the others fence former owners, read the state, check it against the log, start. Their
        partitions are then to be sought.

        Parameters
        ----------
        partitions, generation, check
            As for `keep`.

        Raises
        ------
        DecisionError
            When going on could lose or double data.
        WriteError, RestoreError
            When the broker refuses or the changelog cannot be read.
        """
        async with self._one_opening:
            check()
            kept = sorted(self.tasks)
            tasks = await self._rebuild(sorted(set(partitions).difference(kept)), generation, check)
            self.tasks = {**self.tasks, **{task.partition: task for task, _ in tasks}}
            for task, committed in tasks:
                task.start(committed=committed)
        self.room.set()
        log.info(
            "tasks opened",
            kept=kept,
            rebuilt=[task.partition for task, _ in tasks],
            took_s=round(time.monotonic() - self._began, 3),
            cursors={p: task.pipeline.cursor.offset for p, task in sorted(self.tasks.items())},
        )

    async def keep(
        self, partitions: Iterable[int], generation: int, check: Callable[[], None]
    ) -> None:
        """Have tasks go on that were parked, if they can prove that nobody else had them.

        Their partitions are then to be sought. Tasks of other partitions are closed.

        Parameters
        ----------
        partitions
            What was assigned.
        generation
            The group's generation.
        check
            Raises when the assignment has changed meanwhile; called between the steps.

        Raises
        ------
        DecisionError
            When going on could lose or double data.
        """
        # One at a time: an opening that is given up takes some time to let go of its producers.
        async with self._one_opening:
            await self._keep(set(partitions), generation, check)

    async def _keep(self, numbers: set[int], generation: int, check: Callable[[], None]) -> None:
        await self.park()
        check()
        self._began = time.monotonic()
        self.ground.check_count(numbers)
        await self.ground.confirm(check)
        check()
        make_room(len(numbers), self.layout.brokers)
        await self._close([p for p in self._parked if p not in numbers])
        parked = list(self._parked.values())
        proofs = await asyncio.gather(*(self._call(task.prove) for task in parked))
        await self._close(
            [t.partition for t, proved in zip(parked, proofs, strict=True) if not proved]
        )
        check()
        self.tasks, self._parked = self._parked, {}
        for task in self.tasks.values():
            task.go_on(generation)
        self.room.set()

    async def watch_topics(self) -> None:
        """Fail the job when its topics are not what they were; runs until it is cancelled."""
        watches = [asyncio.create_task(self.ground.watch())]
        watches.append(asyncio.create_task(self.ground.watch_topics()))
        try:
            await asyncio.gather(*watches)
        except RocstreamError as error:
            self.fail(error)
        finally:
            for watch in watches:
                watch.cancel()

    async def park(self) -> None:
        """Let each task commit what it has, then set it aside: it may well come back.

        What has not come to rest in time is closed. Tasks that are being opened are given up.
        """
        self._give_up_opening()
        tasks, self.tasks = self.tasks, {}
        if not tasks:
            return
        began = time.monotonic()
        parked = await asyncio.gather(*(task.park() for task in tasks.values()))
        self._parked.update(
            {p: task for (p, task), at_rest in zip(tasks.items(), parked, strict=True) if at_rest}
        )
        await asyncio.gather(*(task.close() for p, task in tasks.items() if p not in self._parked))
        log.info(
            "tasks parked", partitions=sorted(tasks), took_s=round(time.monotonic() - began, 3)
        )

    async def close(self) -> None:
        """Close every task, those that are set aside too."""
        self._give_up_opening()
        async with self._one_opening:
            tasks, self.tasks = self.tasks, {}
            await asyncio.gather(*(task.close() for task in tasks.values()))
            await self._close(list(self._parked))

    def _give_up_opening(self) -> None:
        self._cancel_read.set()
        for producer in self._opening:
            producer.abandon()
        for rescue in self._rescues:
            rescue.cancel()

    async def _close(self, parked: list[int]) -> None:
        await asyncio.gather(*(self._parked.pop(p).close() for p in parked))

    async def _rebuild(
        self, partitions: list[int], generation: int, check: Callable[[], None]
    ) -> list[tuple[Task, bool]]:
        """Make tasks from the changelog; tell beside each whether its cursor is committed."""
        if not partitions:
            return []
        producers = {p: TaskProducer.of(self.settings, self.layout, p) for p in partitions}
        self._opening = list(producers.values())
        self._cancel_read = Event()
        try:
            await self._fence(list(producers.values()))
            check()
            restored = await self._call(self._read, partitions, self._cancel_read)
            check()
            committed = await self._group_offsets(partitions)
            check()
            ends = await self._epoch_ends(restored)
            check()
            tasks = await self._call(
                self._build, partitions, generation, producers, restored, committed, ends
            )
            check()
        except BaseException:
            self._cancel_read.set()
            await asyncio.shield(self._drop(list(producers.values())))
            raise
        finally:
            self._opening = []
        return tasks

    async def _fence(self, producers: list[TaskProducer]) -> None:
        """Open producers in parallel; when given up, wait until the last call has ended.

        A call that went on by itself could fence the very producer that comes after it.
        """
        calls = asyncio.gather(*(self._call(p.open) for p in producers), return_exceptions=True)
        try:
            results = await asyncio.shield(calls)
        except asyncio.CancelledError:
            for producer in producers:
                producer.abandon()
            await calls
            raise
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def leave(self) -> None:
        """Stop the flow, commit what there is, tell lag tools, and close every task."""
        self.leaving = True
        self._give_up_opening()
        app = self._app
        if app is not None and self.tasks:
            app.consumer.stop_flow()
            app.flow_control.suspend()
            await asyncio.gather(*(task.drain() for task in self.tasks.values()))
            # For lag tools alone, so not worth waiting for.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(app.consumer.commit(), GROUP_COMMIT_SECONDS)
        await self.close()
        self.pool.shutdown(wait=False)

    def committed(self) -> dict[int, Cursor]:
        """Return the committed cursor of each live task."""
        return {
            p: task.committed
            for p, task in self.tasks.items()
            if task.committed is not None and not task.dead
        }

    async def _call(self, call: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.pool, call, *arguments)

    def _read(self, partitions: list[int], cancelled: Event) -> Restored:
        reader = Reader(librdkafka(self.settings, "consumer"), self.settings.kafka.group)
        return reader.read(
            self.layout.changelog, self.settings.topics.events, partitions, cancelled
        )

    async def _group_offsets(self, partitions: list[int]) -> dict[int, GroupOffset]:
        if self._app is None:
            return {}
        return await cast("Consumer", self._app.consumer).group_offsets(partitions)

    async def _epoch_ends(self, restored: Restored) -> dict[int, End]:
        """Ask where the leader epochs end that states were made of, by partition.

        What nobody tells is left out: the first fetch will tell, to brokers that compare.
        """
        wanted = {}
        for partition, records in restored.records.items():
            # A cursor that cannot be read is refused when its state is built.
            with contextlib.suppress(KeyError, StateError):
                wanted[partition] = unpack_cursor(records[CURSOR_KEY]).epoch
        wanted = {partition: epoch for partition, epoch in wanted.items() if epoch != UNKNOWN}
        if self._app is None or not wanted:
            return {}
        return await cast("Consumer", self._app.consumer).epoch_ends(wanted)

    def _build(
        self,
        partitions: list[int],
        generation: int,
        producers: dict[int, TaskProducer],
        restored: Restored,
        committed: dict[int, GroupOffset],
        ends: dict[int, End],
    ) -> list[tuple[Task, bool]]:
        """Rebuild each task's windows; tell beside it whether its cursor is committed already."""
        if self._table is None:
            raise RuntimeError("the app has no table of windows yet")
        tasks = []
        for partition in partitions:
            pipeline = Pipeline(
                self.settings,
                self.settings.topics.events,
                partition,
                topic_id=self.layout.events_id,
                rejection_bytes=self.layout.rejection_bytes,
            )
            # What was read of a task goes once its windows are built: it takes as much as they do.
            had_state = pipeline.restore(restored.records.pop(partition))
            if (found := committed.get(partition)) is not None:
                self._compare(pipeline.cursor, partition, found, had_state=had_state)
            extent = restored.inputs[partition]
            kept = had_state and self.ground.reaches_back(
                partition, pipeline.cursor, extent, ends.get(partition)
            )
            if not kept:
                pipeline.start_at(self.ground.begin(extent, gap=had_state), gap=had_state)
            task = Task(
                partition,
                generation,
                pipeline,
                producers[partition],
                self._table,
                pool=self.pool,
                interval=self.settings.kafka.commit_interval.total_seconds(),
                on_death=self._on_death,
                on_room=self.room.set,
            )
            tasks.append((task, kept))
        return tasks

    def _compare(
        self, cursor: Cursor, partition: int, found: GroupOffset, *, had_state: bool
    ) -> None:
        group, topic = self.settings.kafka.group, self.settings.topics.events
        if had_state:
            refuse_moved_by_hand(group, partition, cursor, found)
        else:
            refuse_lost_state(group, self.layout.changelog, topic, partition, found)

    async def _drop(self, producers: list[TaskProducer]) -> None:
        for producer in producers:
            producer.abandon()
        await asyncio.gather(*(self._call(producer.close) for producer in producers))

    def _on_death(self, task: Task, error: BaseException) -> None:
        log.error("task failed", task=task.partition, error=str(error))
        hopeless = isinstance(error, ClockError | ForbiddenError | TooLargeError)
        if hopeless or not isinstance(error, WriteError):
            self.fail(error)
            return
        # A topic that is gone looks like a broker that does not answer.
        self.ground.suspect()
        now = time.monotonic()
        before = self._deaths.get(task.partition, [])
        deaths = [t for t in before if now - t < DEATHS_WITHIN_SECONDS] + [now]
        self._deaths[task.partition] = deaths
        if len(deaths) > DEATHS:
            self.fail(
                RocstreamError(
                    f"{error} (for the {len(deaths)}th time within {DEATHS_WITHIN_SECONDS:.0f} s): "
                    f'is another job running with kafka.group = "{self.settings.kafka.group}"?'
                )
            )
            return
        # With the id forgotten there is no rebalance to be waited for.
        wait = 0.0 if isinstance(error, ForgottenError) else REJOIN_SECONDS
        rescue = asyncio.create_task(self._rescue(task, wait))
        self._rescues.add(rescue)
        rescue.add_done_callback(self._rescues.discard)

    async def _rescue(self, task: Task, seconds: float) -> None:
        """Open the tasks anew unless a rebalance comes first.

        A task is fenced because it has a new owner, which a rebalance will tell, or because its
        transaction outlived a broker's outage, which nothing will.
        """
        await asyncio.sleep(seconds)
        if self.tasks.get(task.partition) is task and self._app is not None:
            log.warning("no rebalance followed, tasks are opened anew", task=task.partition)
            self._app.reopen_tasks()
