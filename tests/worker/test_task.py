"""A task takes in the log without a hole, from the first run on."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING, Any, cast

import pytest
from inmemory import records

from config.errors import DecisionError
from worker.pipeline import Pipeline
from worker.transport import task as module
from worker.transport.fetch import Run
from worker.transport.producer import WriteError
from worker.transport.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from config import Settings
    from worker.events import Record
    from worker.pages import Cursor
    from worker.transport.producer import Transaction


def run_of(start: int, count: int) -> Run:
    run = Run(records([{"score": 0.5, "label": 1}] * count, start=start))
    run.start, run.end = start, start + count
    return run


def fed(settings: Settings, cursor: int, *runs: Run) -> Cursor:
    """Feed a task that was opened at a cursor and commits nothing; return where it stands then."""
    pipeline = Pipeline(settings, "events", 0)
    pipeline.start_at(cursor)
    unused = cast("Any", None)
    task = Task(
        0, 1, pipeline, unused, unused, pool=unused, interval=60.0, on_death=lambda *_: None
    )

    async def feed() -> None:
        task.start(committed=True)
        try:
            for run in runs:
                await task.feed(run)
        finally:
            # Before it has had a turn, so nothing is committed.
            cast("Any", task)._loop.cancel()

    asyncio.run(feed())
    return pipeline.cursor


EVERY_FIFTH = """
[[monitor]]
name = "last-10"
window = { kind = "count", size = 10, slide = 5 }
"""


class Log:
    """Takes a task's transactions as its table and its producer would."""

    def __init__(self) -> None:
        self.transactions: list[Transaction] = []
        self.listened = 0
        self.heard = asyncio.Event()

    @contextmanager
    def writing(self) -> Iterator[list[tuple[bytes, bytes | None]]]:
        self.pages: list[tuple[bytes, bytes | None]] = []
        yield self.pages

    def write(self, pages: dict[bytes, bytes | None]) -> None:
        self.pages.extend(pages.items())

    def listen(self) -> None:
        self.listened += 1
        if self.listened == 3:
            self.heard.set()

    def commit(self, transaction: Transaction) -> None:
        self.transactions.append(transaction)


class Stuck(Log):
    """Has a broker that is away until the task gives up."""

    def __init__(self) -> None:
        super().__init__()
        self.given_up = Event()

    def commit(self, transaction: Transaction) -> None:
        self.given_up.wait(30)
        raise WriteError(f"given up at {transaction.cursor.offset}")

    def abandon(self) -> None:
        self.given_up.set()

    def close(self) -> None:
        """There is nothing to close."""


class Held(Log):
    """A log whose first transaction is under way until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.goes_on = Event(), Event()

    def commit(self, transaction: Transaction) -> None:
        self.begun.set()
        assert self.goes_on.wait(20)
        super().commit(transaction)


class Counted(Pipeline):
    """Writes down how many records it is given at a time."""

    def __init__(self, settings: Settings, batches: list[int]) -> None:
        super().__init__(settings, "events", 0)
        self._batches = batches

    def process(self, records: Sequence[Record], epoch: int = -1) -> Iterator[None]:
        self._batches.append(len(records))
        return super().process(records, epoch)


def task_of(
    pipeline: Pipeline, log: Any, pool: Any, on_room: Callable[[], None] = lambda: None
) -> Task:
    """A task that hands its transactions to a log."""
    return Task(
        0,
        1,
        pipeline,
        log,
        log,
        pool=pool,
        interval=0.001,
        on_death=lambda *_: None,
        on_room=on_room,
    )


def committed(settings: Settings, *runs: Run) -> list[Transaction]:
    """Feed a task, the loop turning in between; drain it, and return its transactions."""
    pipeline = Pipeline(settings, "events", 0)
    log = cast("Any", Log())

    async def feed() -> None:
        with ThreadPoolExecutor(1) as pool:
            task = task_of(pipeline, log, pool)
            task.start(committed=True)
            for run in runs:
                await task.feed(run)
                for _ in range(100):
                    await asyncio.sleep(0)
            assert await task.park()

    asyncio.run(feed())
    return log.transactions


def test_events_without_an_update_wait_for_one(
    settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "QUIET_SECONDS", 60.0)
    first, *_ = committed(settings_of(EVERY_FIFTH), run_of(0, 3), run_of(3, 3))
    assert [len(first.updates), first.cursor.offset] == [1, 6]


def test_events_without_an_update_are_committed_before_a_task_leaves(
    settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "QUIET_SECONDS", 60.0)
    found = committed(settings_of(EVERY_FIFTH), run_of(0, 3))
    assert [(one.updates, one.cursor.offset) for one in found] == [([], 3)]


def test_events_without_an_update_are_committed_soon(
    settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "QUIET_SECONDS", 0.0)
    first, *_ = committed(settings_of(EVERY_FIFTH), run_of(0, 3), run_of(3, 1))
    assert (first.updates, first.cursor.offset) == ([], 3)


def test_the_client_of_an_idle_task_is_listened_to(
    settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LISTEN_SECONDS", 0.001)
    log = Log()

    async def idle() -> None:
        told = cast("Any", log)
        pipeline = Pipeline(settings_of(), "events", 0)
        with ThreadPoolExecutor(1) as pool:
            task = task_of(pipeline, told, pool)
            task.start(committed=True)
            async with asyncio.timeout(20):
                await log.heard.wait()
            assert await task.park()

    asyncio.run(idle())
    assert log.transactions == []


def test_the_client_of_a_task_that_is_set_aside_is_listened_to(
    settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """How long a rebalance takes is for others to decide; what it has to say would pile up."""
    monkeypatch.setattr(module, "LISTEN_SECONDS", 0.001)

    async def set_aside() -> None:
        told = cast("Any", Log())
        pipeline = Pipeline(settings_of(), "events", 0)
        with ThreadPoolExecutor(1) as pool:
            task = task_of(pipeline, told, pool)
            task.start(committed=True)
            for generation in (2, 3):
                assert await task.park()
                told.listened = 0
                told.heard.clear()
                async with asyncio.timeout(20):
                    await told.heard.wait()
                task.go_on(generation)
            await task.feed(run_of(0, 3))
            assert await task.park()
            told.close = told.abandon = lambda: None
            await task.close()
            assert [one.cursor.offset for one in told.transactions] == [3]

    asyncio.run(set_aside())


def taken_in_meanwhile(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, runs: list[Run], so_far: list[int]
) -> tuple[list[int], Counted, Held]:
    """Feed runs while a transaction of three records is under way; return batches and the rest.

    `so_far` are the sizes of the batches that must have been taken in before it ends.
    """
    monkeypatch.setattr(module, "QUIET_SECONDS", 0.0)
    batches: list[int] = []
    pipeline = Counted(settings, batches)
    log = Held()

    async def feed() -> None:
        with ThreadPoolExecutor(1) as pool:
            task = task_of(pipeline, log, pool)
            task.start(committed=True)
            await task.feed(run_of(0, 3))
            async with asyncio.timeout(20):
                await asyncio.to_thread(log.begun.wait)
            for run in runs:
                await task.feed(run)
            assert batches == so_far
            log.goes_on.set()
            assert await task.park()

    asyncio.run(feed())
    return batches, pipeline, log


def test_runs_that_come_while_no_transaction_may_begin_are_taken_in_together(
    settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work per key and batch is most of what a few events cost."""
    runs = [run_of(3, 3), Run((), 6, 8), run_of(8, 4)]
    batches, _, log = taken_in_meanwhile(settings_of(EVERY_FIFTH), monkeypatch, runs, [3])
    assert batches == [3, 7]
    assert [(one.cursor.offset, len(one.updates)) for one in log.transactions] == [(3, 0), (12, 2)]


def test_many_records_are_taken_in_while_a_transaction_is_under_way(
    settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GATHERED_RECORDS", 4)
    runs = [run_of(3, 4), run_of(7, 1)]
    *_, log = taken_in_meanwhile(settings_of(EVERY_FIFTH), monkeypatch, runs, [3, 5])
    assert [one.cursor.offset for one in log.transactions] == [3, 8]


def test_only_runs_of_one_epoch_are_taken_in_together(
    settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cursor tells the epoch of what is before it."""
    runs = [run_of(start, 2) for start in (3, 5, 7)]
    for run, epoch in zip(runs, (4, 4, 6), strict=True):
        run.epoch = epoch
    batches, pipeline, log = taken_in_meanwhile(settings_of(EVERY_FIFTH), monkeypatch, runs, [3])
    assert batches == [3, 4, 2]
    assert (log.transactions[-1].cursor.offset, pipeline.cursor.epoch) == (9, 6)


def test_a_full_task_tells_when_it_has_room_again(
    settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BUFFERED_MESSAGES", 1)
    log = Held()

    async def feed() -> None:
        room = asyncio.Event()
        with ThreadPoolExecutor(1) as pool:
            task = task_of(Pipeline(settings_of(EVERY_FIFTH), "events", 0), log, pool, room.set)
            task.start(committed=True)
            fed = asyncio.create_task(task.feed(run_of(0, 10)))
            await asyncio.sleep(0)
            assert not task.has_room
            room.clear()
            async with asyncio.timeout(20):
                await room.wait()
            assert task.has_room
            log.goes_on.set()
            await fed
            assert await task.park()

    asyncio.run(feed())
    assert log.transactions[-1].cursor.offset == 10


def test_runs_that_follow_on_the_cursor_are_taken_in(settings_of: Callable[..., Settings]) -> None:
    assert fed(settings_of(), 7, run_of(7, 5), run_of(12, 3)).offset == 15


@pytest.mark.parametrize("start", [0, 6, 8, 100])
def test_the_first_run_must_begin_at_the_cursor(
    settings_of: Callable[..., Settings], start: int
) -> None:
    with pytest.raises(
        DecisionError,
        match=f"partition 0 of the topic events goes on at offset {start} and not at 7",
    ):
        fed(settings_of(), 7, run_of(start, 5))


def test_each_run_must_begin_where_the_last_one_ended(
    settings_of: Callable[..., Settings],
) -> None:
    with pytest.raises(DecisionError, match="goes on at offset 13 and not at 12"):
        fed(settings_of(), 7, run_of(7, 5), run_of(13, 5))


def test_offsets_without_records_are_passed_over(settings_of: Callable[..., Settings]) -> None:
    """Else retention that takes the markers with the records would seem to take a record."""
    markers = Run((), 12, 14)
    assert markers
    assert fed(settings_of(), 7, run_of(7, 5), markers).offset == 14
    behind = run_of(14, 5)
    behind.end = 20
    assert fed(settings_of(), 7, run_of(7, 5), markers, behind).offset == 20


def test_a_cursor_has_the_leader_epoch_of_what_was_read_up_to_it(
    settings_of: Callable[..., Settings],
) -> None:
    """Markers have one too: with that of the records, a new leader's would seem to cut them off."""
    events = run_of(7, 5)
    events.epoch = 3
    markers = Run((), 12, 14, epoch=4)
    assert fed(settings_of(), 7).epoch == -1
    assert fed(settings_of(), 7, events).epoch == 3
    assert fed(settings_of(), 7, events, markers).epoch == 4
    assert fed(settings_of(), 7, events, run_of(12, 5)).epoch == -1


def test_a_cursor_within_a_run_tells_an_epoch_and_one_that_was_moved_none(
    settings_of: Callable[..., Settings],
) -> None:
    pipeline = Pipeline(settings_of(EVERY_FIFTH), "events", 0)
    pipeline.start_at(0)
    next(pipeline.process(run_of(0, 50_000).records, 3))
    assert 0 < pipeline.cursor.offset < 50_000
    assert pipeline.cursor.epoch == 3
    pipeline.pass_over(pipeline.cursor.offset, 9)
    assert pipeline.cursor.epoch == 3
    pipeline.start_at(70_000, gap=True)
    assert pipeline.cursor.epoch == -1


def test_a_cursor_that_only_markers_moved_is_committed_at_once_and_then_now_and_then(
    settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then retention that takes them, with the worker killed, would seem to take records."""
    monkeypatch.setattr(module, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(module, "PASSED_SECONDS", 60.0)
    found = committed(settings_of(), *(Run((), start, start + 2) for start in (0, 2, 4)))
    # The last one only because the task leaves.
    assert [one.cursor.offset for one in found] == [2, 6]


def test_a_task_whose_job_has_failed_commits_nothing_more(
    settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What made it fail may have left the windows half changed, or be of another log."""
    monkeypatch.setattr(module, "QUIET_SECONDS", 0.05)
    pipeline = Pipeline(settings_of(EVERY_FIFTH), "events", 0)
    log = cast("Any", Log())

    async def feed() -> None:
        with ThreadPoolExecutor(1) as pool:
            task = task_of(pipeline, log, pool)
            task.start(committed=True)
            await task.feed(run_of(0, 3))
            task.dead = True
            await asyncio.wait_for(cast("Any", task)._loop, 30)

    asyncio.run(feed())
    assert log.transactions == []


@pytest.mark.parametrize(("value", "fits"), [(b"{", 3), (b"{" * 400_000, 84)])
def test_a_task_with_much_to_write_has_no_room_until_it_is_written(
    settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch, value: bytes, fits: int
) -> None:
    """Much in number, or 32 MiB."""
    if fits == 3:
        monkeypatch.setattr(module, "BUFFERED_MESSAGES", 3)
    unused = cast("Any", None)
    pipeline = Pipeline(settings_of(), "events", 0)
    task = Task(0, 1, pipeline, unused, unused, pool=unused, interval=60.0, on_death=no_death)
    one = records([value])[0]
    for offset in range(fits + 1):
        assert task.has_room == (offset < fits)
        for _ in pipeline.process([one._replace(offset=offset)]):
            pass
    pipeline.take()
    assert task.has_room


def test_a_run_that_finds_no_room_has_what_there_is_committed_at_once(
    settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And goes on behind it: an interval of a minute is not waited for."""
    monkeypatch.setattr(module, "BUFFERED_MESSAGES", 1)
    monkeypatch.setattr(module, "GATHERED_RECORDS", 9)
    pipeline = Pipeline(settings_of(EVERY_FIFTH), "events", 0)
    log = cast("Any", Log())

    async def feed() -> None:
        with ThreadPoolExecutor(1) as pool:
            task = Task(0, 1, pipeline, log, log, pool=pool, interval=60.0, on_death=no_death)
            task.start(committed=True)
            async with asyncio.timeout(30):
                for start in range(0, 30, 10):
                    await task.feed(run_of(start, 10))
            assert await task.park()

    asyncio.run(feed())
    assert [one.cursor.offset for one in log.transactions if one.updates] == [10, 20, 30]


def no_death(_: Task, error: BaseException) -> None:
    raise error


def test_a_task_that_cannot_commit_before_it_leaves_is_not_kept(
    settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would go on with events in its windows that the log's state does not have."""
    monkeypatch.setattr(module, "DRAIN_SECONDS", 0.05)
    pipeline = Pipeline(settings_of(), "events", 0)
    stuck = cast("Any", Stuck())

    async def parked() -> bool:
        with ThreadPoolExecutor(2) as pool:
            task = Task(0, 1, pipeline, stuck, stuck, pool=pool, interval=0.001, on_death=no_death)
            task.start(committed=True)
            await task.feed(run_of(0, 3))
            try:
                return await task.park()
            finally:
                await task.close()

    assert not asyncio.run(parked())


def test_a_task_that_another_has_had_meanwhile_cannot_prove_that_it_was_its_own(
    settings_of: Callable[..., Settings],
) -> None:
    pipeline = Pipeline(settings_of(), "events", 0)
    pipeline.start_at(7)
    unused, log, fenced = cast("Any", None), cast("Any", Log()), cast("Any", Stuck())
    fenced.abandon()

    def proved(producer: Any) -> bool:
        parts = (0, 1, pipeline, producer, unused)
        return Task(*parts, pool=unused, interval=1.0, on_death=no_death).prove()

    assert proved(log)
    (proof,) = log.transactions
    assert proof == ([], [], [], pipeline.cursor)
    assert not proved(fenced)


def test_a_run_that_leads_nowhere_is_not_delivered() -> None:
    assert not Run((), 7, 7)
