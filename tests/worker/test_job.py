"""What a job looks after while its tasks work."""

from __future__ import annotations

import asyncio
from threading import Event
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka.consumer.subscription_state import SubscriptionState
from aiokafka.errors import KafkaConnectionError
from aiokafka.structs import TopicPartition
from confluent_kafka import KafkaError, KafkaException
from faust.tables.recovery import RebalanceAgain
from faust.types import TP
from structlog.testing import capture_logs

from config.errors import DecisionError, RocstreamError, SettingsError
from worker.transport import consumer as driver
from worker.transport import ground
from worker.transport import job as module
from worker.transport.changelog import Extent
from worker.transport.consumer import Consumer, ConsumerThread
from worker.transport.fetch import Run, RunResult
from worker.transport.ground import Ground
from worker.transport.job import Job
from worker.transport.layout import Layout
from worker.transport.producer import ForbiddenError, TooLargeError, WriteError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from config import Settings

WAIT_SECONDS = 30.0


class LookedAt(Ground):
    """A ground of which looks at its topics find these ids, or fail."""

    def __init__(self, job: Job, *found: str | Exception) -> None:
        super().__init__(job.settings, job.layout, accept_gap=False, pool=job.pool)
        self._found = iter(found)

    def topic_id(self, topic: str) -> str:
        del topic
        found = next(self._found)
        if isinstance(found, Exception):
            raise found
        return found


def new_job(
    settings: Settings, *found: str | Exception, partitions: int = 1, changelog_id: str = ""
) -> Job:
    layout = Layout(partitions, "first", "changelog", 1000, changelog_id=changelog_id)
    job = Job(settings, layout, accept_gap=False)
    job.ground = LookedAt(job, *found)
    return job


async def watched(
    settings: Settings, *answers: str | Exception, changelog_id: str = ""
) -> BaseException:
    """Watch over the topics, which answer so, until the job has failed; return by what."""
    job = new_job(settings, *answers, changelog_id=changelog_id)
    try:
        await asyncio.wait_for(job.watch_topics(), WAIT_SECONDS)
        return await job.failed
    finally:
        job.pool.shutdown()


@pytest.mark.parametrize("error", [RuntimeError("no"), OSError(24, "too many"), KeyError("events")])
def test_the_watch_over_the_events_topic_outlives_a_look_that_fails(
    settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(ground, "LOOK_SECONDS", 0)
    with capture_logs() as logs:
        end = asyncio.run(watched(settings_of(), error, "first", "", error, "second"))
    assert isinstance(end, DecisionError)
    assert [line["failures"] for line in logs] == [1, 2]
    assert all(type(error).__name__ in line["error"] for line in logs)


def test_a_topic_that_is_gone_is_waited_for_and_told_once(
    settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ground, "LOOK_SECONDS", 0)
    unknown = KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
    with capture_logs() as logs:
        end = asyncio.run(watched(settings_of(), unknown, unknown, "first", unknown, "second"))
    assert isinstance(end, DecisionError)
    gone = [line for line in logs if line["log_level"] == "warning"]
    assert [line["event"] for line in gone] == ["the events topic is gone, waiting for it"] * 2


def test_a_changelog_that_was_made_again_is_looked_at_beside_the_events_topic(
    settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a running worker had written to the old one is gone."""
    monkeypatch.setattr(ground, "LOOK_SECONDS", 0)
    unknown = KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
    answers = ("first", "state", "first", unknown, "first", "", "first", "other")
    with capture_logs() as logs:
        end = asyncio.run(watched(settings_of(), *answers, changelog_id="state"))
    assert isinstance(end, DecisionError)
    assert str(end) == (
        "the changelog changelog was deleted and made again while we ran: its id was state and is "
        "other, and the state that it held is gone; restore it, or run `rocstream reset`"
    )
    assert [line["topic"] for line in logs] == ["changelog"]


class Judged(LookedAt):
    """A ground of which looks at the topics' settings find this, one after the other."""

    def __init__(self, job: Job, *found: RocstreamError | Exception | None) -> None:
        super().__init__(job)
        self.left = list(found)

    def _refusal(self) -> RocstreamError | None:
        found = self.left.pop(0)
        if found is None or isinstance(found, RocstreamError):
            return found
        raise found


def test_topics_are_refused_only_when_several_looks_in_a_row_find_it(
    settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that has just come may not know them all yet."""
    gone = SettingsError("the topic updates does not exist")
    away = KafkaException(KafkaError(KafkaError._TRANSPORT))
    monkeypatch.setattr(ground, "REFUSED_SECONDS", 0)
    monkeypatch.setattr(ground, "TOPICS_SECONDS", 0)

    async def watch() -> list[RocstreamError | Exception | None]:
        job = new_job(settings_of())
        looks = Judged(job, gone, None, gone, gone, away, gone, gone, gone, None)
        try:
            with pytest.raises(SettingsError, match="does not exist"):
                await asyncio.wait_for(looks.watch_topics(), WAIT_SECONDS)
        finally:
            job.pool.shutdown()
        return looks.left

    assert asyncio.run(watch()) == [None]


def test_tasks_wait_for_the_topics_id_and_are_not_opened_on_another_topic(
    settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ground, "PAUSE_SECONDS", 0)
    unknown = KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
    checks: list[int] = []

    async def confirmed(*found: str | Exception) -> None:
        job = new_job(settings_of(), *found)
        try:
            await job.ground.confirm(lambda: checks.append(1))
        finally:
            job.pool.shutdown()

    with capture_logs() as logs:
        asyncio.run(confirmed(unknown, unknown, "first"))
        assert len(checks) == 2
        with pytest.raises(DecisionError, match="was first and is second"):
            asyncio.run(confirmed(unknown, "second"))
    assert len([line for line in logs if "waiting for the broker" in line["event"]]) == 2


@pytest.mark.parametrize(("start", "offset"), [("earliest", 20), ("latest", 90)])
def test_a_job_without_state_begins_where_the_settings_say_and_behind_a_gap_with_what_there_is(
    settings_of: Callable[..., Settings], start: str, offset: int
) -> None:
    async def begun() -> list[int]:
        settings = settings_of()
        topics = settings.topics.model_copy(update={"start": start})
        job = new_job(settings.model_copy(update={"topics": topics}))
        job.pool.shutdown()
        return [job.ground.begin(Extent(20, 90), gap=gap) for gap in (False, True)]

    assert asyncio.run(begun()) == [offset, 20]


def test_a_partition_that_the_changelog_does_not_have_is_refused(
    settings_of: Callable[..., Settings],
) -> None:
    async def checked(assigned: set[int]) -> None:
        job = new_job(settings_of(), partitions=2)
        job.pool.shutdown()
        job.ground.check_count(assigned)

    asyncio.run(checked({0, 1}))
    asyncio.run(checked(set()))
    with pytest.raises(DecisionError, match=r"partition 2 was assigned, but .* has 2 partitions"):
        asyncio.run(checked({1, 2}))


def test_a_run_taken_before_the_seek_to_its_tasks_cursor_is_not_for_it(
    settings_of: Callable[..., Settings],
) -> None:
    """In the same generation: others are at work while a task is opened, or it is opened anew."""

    async def found() -> list[bool]:
        job = new_job(settings_of())
        run = Run((), 7, 9)
        message: Any = SimpleNamespace(partition=0, generation_id=3, value=run)
        task: Any = SimpleNamespace(dead=False, closing=False, generation=3, sought=None)
        job.tasks[0] = task
        taken = [job.find(message) is task]
        for task.sought, run.sought in ((4, 0), (4, 3), (4, 4)):
            taken.append(job.find(message) is task)
        job.fail(RocstreamError("over"))
        task.dead = False
        job.pool.shutdown()
        return [*taken, job.find(message) is task]

    assert asyncio.run(found()) == [False, False, False, True, False]


def test_a_run_of_a_former_assignment_goes_to_nobody(settings_of: Callable[..., Settings]) -> None:
    """Nor does one for a task that leaves, or has died."""

    async def taken() -> list[bool]:
        job = new_job(settings_of())
        job.pool.shutdown()
        found = []
        for generation in (3, 2):
            message: Any = SimpleNamespace(partition=0, generation_id=3, value=Run((), 7, 9))
            task: Any = SimpleNamespace(dead=False, closing=False, generation=generation, sought=0)
            job.tasks[0] = task
            found.append(job.find(message) is task)
            for state in ("closing", "dead"):
                setattr(task, state, True)
                found.append(job.find(message) is task)
                setattr(task, state, False)
        return found

    assert asyncio.run(taken()) == [True, *[False] * 5]


def test_a_run_that_fails_ends_the_job_and_all_of_its_tasks(
    settings_of: Callable[..., Settings],
) -> None:
    """Its windows may be half changed: nothing of them may be committed."""

    class Failing:
        partition = 0
        generation = 3
        closing = dead = False
        sought = 0

        async def feed(self, _: Run) -> None:
            raise KeyError("broken")

    async def failed() -> tuple[BaseException, bool, bool]:
        job = new_job(settings_of())
        job.pool.shutdown()
        task: Any = Failing()
        other: Any = SimpleNamespace(dead=False)
        job.tasks = {0: task, 1: other}
        message: Any = SimpleNamespace(partition=0, generation_id=3, value=Run((), 7, 9))
        await job.feed(message)
        return await asyncio.wait_for(job.failed, WAIT_SECONDS), task.dead, other.dead

    error, *dead = asyncio.run(failed())
    assert isinstance(error, KeyError)
    assert dead == [True, True]


def test_runs_fetched_with_one_that_waited_while_the_assignment_changed_are_dropped() -> None:
    """The first waits where the flow is held; the others were fetched for the same tasks as it."""

    async def handed_on() -> list[int]:
        records = {TopicPartition("events", number): Run((), 7, 9) for number in range(3)}

        async def fetched(_timeout: float) -> tuple[Any, Any]:
            return records, None

        consumer: Any = SimpleNamespace(
            app=SimpleNamespace(consumer_generation_id=3),
            should_stop=False,
            flow_active=True,
            _wait_next_records=fetched,
        )
        taken = []
        async for tp, _ in Consumer.getmany(consumer, 0):
            taken.append(tp.partition)
            if tp.partition == 1:
                consumer.app.consumer_generation_id += 1
        return taken

    assert asyncio.run(handed_on()) == [0, 1]


def test_a_worker_whose_tasks_are_full_waits_until_one_has_room(
    settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "POLL_SECONDS", 3600.0)

    async def polled() -> None:
        job = new_job(settings_of())
        full: Any = SimpleNamespace(sought=1, has_room=False)
        job.tasks[0] = full
        job.room.set()
        consumer: Any = SimpleNamespace(
            app=SimpleNamespace(job=job),
            flow_active=True,
            _get_active_partitions=lambda: {TopicPartition("events", 0)},
        )
        waiting = asyncio.create_task(Consumer._wait_next_records(consumer, 1.0))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not waiting.done()
        job.room.set()
        assert await asyncio.wait_for(waiting, WAIT_SECONDS) == ({}, set())
        job.pool.shutdown()

    asyncio.run(polled())


def sought_by(settings: Settings, sought: dict[int, int | None]) -> list[tuple[dict[TP, int], int]]:
    """Have partitions of tasks sought, of which some were; return what is asked for."""
    events = settings.topics.events
    asked: list[tuple[dict[TP, int], int]] = []

    async def seek(offsets: dict[TP, int], number: int) -> None:
        asked.append((offsets, number))

    def task(number: int) -> Any:
        pipeline = SimpleNamespace(cursor=SimpleNamespace(offset=number * 10))
        return SimpleNamespace(sought=sought[number], pipeline=pipeline)

    tasks = {number: task(number) for number in sought}
    job = SimpleNamespace(tasks=tasks, settings=settings, revoking=False, room=asyncio.Event())
    consumer: Any = SimpleNamespace(
        app=SimpleNamespace(job=job),
        assignment=lambda: {TP(events, number) for number in range(4)},
        _seeks=6,
        _read_offset={},
        _thread=SimpleNamespace(seek_marked=seek),
    )

    async def twice() -> None:
        await Consumer.perform_seek(consumer)
        await Consumer.perform_seek(consumer)

    asyncio.run(twice())
    assert all(task.sought is not None for task in tasks.values())
    return asked


def test_tasks_are_sought_once_and_those_at_work_are_left_alone(
    settings_of: Callable[..., Settings],
) -> None:
    settings = settings_of()
    wanted = {TP(settings.topics.events, number): number * 10 for number in (1, 3)}
    assert sought_by(settings, {0: 5, 1: None, 3: None}) == [(wanted, 7)]
    assert sought_by(settings, {0: 5, 1: 6}) == []


def test_partitions_without_a_task_that_was_sought_are_not_fetched_from() -> None:
    async def fetched_from() -> set[TP]:
        asked: list[set[TP]] = []

        async def getmany(active_partitions: set[TP], timeout: float) -> dict[TP, Run]:  # noqa: ARG001, ASYNC109 - Faust's signature
            asked.append(active_partitions)
            return {}

        tasks = {
            0: SimpleNamespace(sought=3, has_room=True),
            1: SimpleNamespace(sought=None, has_room=True),
            2: SimpleNamespace(sought=3, has_room=False),
        }
        consumer: Any = SimpleNamespace(
            app=SimpleNamespace(job=SimpleNamespace(tasks=tasks)),
            flow_active=True,
            _get_active_partitions=lambda: {TP("events", number) for number in range(4)},
            _getmany=getmany,
        )
        await Consumer._wait_next_records(consumer, 0)
        return asked[0]

    assert asyncio.run(fetched_from()) == {TP("events", 0)}


def test_a_run_bears_the_number_of_the_seek_behind_which_it_was_taken() -> None:
    async def taken() -> list[tuple[int, int, int]]:
        subscriptions = SubscriptionState()
        place = TopicPartition("events", 0)
        subscriptions.subscribe({"events"})
        found = []
        for _ in range(2):  # assignments
            subscriptions.assign_from_subscribed({place})
            assignment = subscriptions.subscription.assignment
            subscriptions.seek(place, 3)  # as from the group's offsets
            thread: Any = SimpleNamespace(
                _ensure_consumer=lambda: SimpleNamespace(
                    seek=subscriptions.seek, _subscription=subscriptions
                )
            )
            for number in (0, 8, 9):
                if number:
                    await ConsumerThread._seek_marked(thread, {TP("events", 0): number}, number)
                position = assignment.state_value(place).position
                records = SimpleNamespace(
                    next_fetch_offset=position, leader_epoch=1, take=lambda _: ()
                )
                result = RunResult(
                    place, assignment=assignment, partition_records=records, backoff=0
                )
                run = result.getall(10)
                found.append((run.start, run.end, run.sought))
        return found

    assert asyncio.run(taken()) == [(3, 3, 0), (8, 8, 8), (9, 9, 9)] * 2


def test_tasks_that_stay_are_at_work_while_the_others_are_rebuilt(
    settings_of: Callable[..., Settings],
) -> None:
    """And are set aside again where the rebuilding is given up."""

    class Stub:
        dead = closing = False

        def __init__(self, partition: int, *, proves: bool = True) -> None:
            self.partition, self.proves = partition, proves
            self.pipeline = SimpleNamespace(cursor=SimpleNamespace(offset=7))
            self.done: list[object] = []

        async def park(self) -> bool:
            self.done.append("park")
            return True

        def prove(self) -> bool:
            return self.proves

        def go_on(self, generation: int) -> None:
            self.done.append(generation)

        def start(self, *, committed: bool) -> None:
            self.done.append(committed)

        async def close(self) -> None:
            self.done.append("close")

    async def gone_through() -> list[list[object]]:
        stays, lost, goes, comes = Stub(0), Stub(1, proves=False), Stub(3), Stub(2)
        job: Any = new_job(settings_of(), "first", "first", partitions=4)
        job.tasks = {0: stays, 1: lost, 3: goes}
        rebuilt: list[list[int]] = []

        async def rebuild(partitions: list[int], *_: object) -> list[tuple[Stub, bool]]:
            assert job.tasks == {0: stays}
            rebuilt.append(partitions)
            if len(rebuilt) == 1:
                raise RebalanceAgain
            return [(comes, True)]

        job._rebuild = rebuild
        await job.keep({0, 1, 2}, 4, lambda: None)
        assert job.tasks == {0: stays}
        with pytest.raises(RebalanceAgain):
            await job.open({0, 1, 2}, 4, lambda: None)
        await job.keep({0, 2}, 5, lambda: None)
        await job.open({0, 2}, 5, lambda: None)
        assert job.tasks == {0: stays, 2: comes}
        assert rebuilt == [[1, 2], [2]]
        job.pool.shutdown()
        return [task.done for task in (stays, lost, goes, comes)]

    assert asyncio.run(gone_through()) == [
        ["park", 4, "park", 5],
        ["park", "close"],
        ["park", "close"],
        [True],
    ]


def test_a_fetch_that_finds_no_topic_has_it_looked_at_at_once(
    settings_of: Callable[..., Settings],
) -> None:
    async def watched() -> BaseException:
        job = new_job(settings_of(), "second")
        try:
            # As the consumer does, in its own thread.
            await asyncio.to_thread(job.ground.doubt)
            await asyncio.wait_for(job.watch_topics(), ground.LOOK_SECONDS / 2)
            return await job.failed
        finally:
            job.pool.shutdown()

    assert isinstance(asyncio.run(watched()), DecisionError)


def test_commits_that_all_wait_leave_threads_to_open_and_to_close_with(
    settings_of: Callable[..., Settings],
) -> None:
    async def done() -> bool:
        tasks = 300
        job = new_job(settings_of(), partitions=tasks)
        broker_is_back = Event()
        try:
            for _ in range(tasks):
                job.pool.submit(broker_is_back.wait)
            asked = [job.pool.submit(lambda: True) for _ in range(2)]
            return all(one.result(WAIT_SECONDS) for one in asked)
        finally:
            broker_is_back.set()
            job.pool.shutdown()

    assert asyncio.run(done())


def test_room_is_made_for_tasks_before_they_are_opened(
    settings_of: Callable[..., Settings],
) -> None:
    """And too many of them are told of."""
    checks = iter([None, None, RebalanceAgain()])

    def check() -> None:
        if (stop := next(checks)) is not None:
            raise stop

    async def opened() -> None:
        job = new_job(settings_of(), "first", partitions=65)
        with pytest.raises(RebalanceAgain):
            await job.keep(range(65), 1, check)
        job.pool.shutdown()

    with capture_logs() as logs:
        asyncio.run(opened())
    assert any("this worker has 65 tasks" in line["event"] for line in logs)


async def deaths(
    settings: Settings, errors: Iterable[Exception], monkeypatch: pytest.MonkeyPatch
) -> tuple[str | None, int]:
    """Let a task die of these; return what the job fails with, and how often tasks were opened."""
    monkeypatch.setattr(module, "REJOIN_SECONDS", 0)
    job = new_job(settings)
    opened = 0

    def reopen() -> None:
        nonlocal opened
        opened += 1

    task: Any = SimpleNamespace(partition=0, dead=False)
    app: Any = SimpleNamespace(reopen_tasks=reopen)
    table: Any = None
    job.attach(app, table)
    job.tasks[0] = task
    with capture_logs():
        for error in errors:
            job._on_death(task, error)
        await asyncio.gather(*job._rescues)
    job.pool.shutdown()
    return str(job.failed.result()) if job.failed.done() else None, opened


def test_a_task_that_was_fenced_is_opened_anew_unless_a_rebalance_comes_first(
    settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asyncio.run(deaths(settings_of(), [WriteError("fenced")], monkeypatch)) == (None, 1)

    async def rebalanced() -> int:
        monkeypatch.setattr(module, "REJOIN_SECONDS", 0)
        job = new_job(settings_of())
        unused: Any = None
        task: Any = SimpleNamespace(partition=0, dead=True)
        app: Any = SimpleNamespace(reopen_tasks=lambda: pytest.fail("there was a rebalance"))
        job.attach(app, unused)
        with capture_logs():
            job._on_death(task, WriteError("fenced"))
        # Its place was taken.
        job.tasks[0] = unused
        await asyncio.gather(*job._rescues)
        job.pool.shutdown()
        return len(job._deaths[0])

    assert asyncio.run(rebalanced()) == 1


def test_a_task_that_is_fenced_again_and_again_ends_the_job(
    settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    often = [WriteError("fenced")] * (module.DEATHS + 1)
    assert asyncio.run(deaths(settings_of(), often[1:], monkeypatch)) == (None, module.DEATHS)
    sentence, _ = asyncio.run(deaths(settings_of(), often, monkeypatch))
    assert sentence == (
        'fenced (for the 6th time within 300 s): is another job running with kafka.group = "watch"?'
    )
    # Over a longer time they are as many outages.
    monkeypatch.setattr(module, "DEATHS_WITHIN_SECONDS", 0)
    assert asyncio.run(deaths(settings_of(), often, monkeypatch)) == (None, len(often))


@pytest.mark.parametrize("error", [ForbiddenError, TooLargeError, RuntimeError])
def test_what_opening_anew_would_not_help_against_ends_the_job_at_once(
    settings_of: Callable[..., Settings],
    monkeypatch: pytest.MonkeyPatch,
    error: type[Exception],
) -> None:
    assert asyncio.run(deaths(settings_of(), [error("no")], monkeypatch)) == ("no", 0)


def test_group_offsets_are_those_of_transactions_and_their_failure_is_told_and_passed_over() -> (
    None
):
    """Nothing relies on them, so no outage of theirs may end a worker."""
    sent: list[dict[TP, int]] = []

    async def commit(offsets: dict[TP, int]) -> None:
        sent.append(dict(offsets))
        if len(sent) == 1:
            raise KafkaConnectionError

    cursors = {0: SimpleNamespace(offset=70), 1: SimpleNamespace(offset=80)}
    mine = TP("events", 0)
    consumer: Any = SimpleNamespace(
        app=SimpleNamespace(
            rebalancing=False,
            job=SimpleNamespace(
                settings=SimpleNamespace(topics=SimpleNamespace(events="events")),
                committed=lambda: cursors,
            ),
        ),
        assignment=lambda: {mine},
        _committed_offset={},
        _thread=SimpleNamespace(commit_marked=commit),
    )

    async def three_times() -> list[bool]:
        return [await Consumer.force_commit(consumer) for _ in range(3)]

    with capture_logs() as logs:
        assert asyncio.run(three_times()) == [False, True, False]
    assert sent == [{mine: 70}] * 2
    assert [line["event"] for line in logs] == ["group offsets not committed, harmless"]
