"""What a job looks after while its tasks work."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka.structs import TopicPartition
from confluent_kafka import KafkaError, KafkaException
from structlog.testing import capture_logs

from config.errors import DecisionError, RocstreamError
from worker.transport import ground
from worker.transport.consumer import Consumer
from worker.transport.fetch import Run
from worker.transport.ground import Ground
from worker.transport.job import Job
from worker.transport.layout import Layout

if TYPE_CHECKING:
    from collections.abc import Callable

    from config import Settings

WAIT_SECONDS = 30.0


class LookedAt(Ground):
    """A ground of which looks at the events topic find these ids, or fail."""

    def __init__(self, job: Job, *found: str | Exception) -> None:
        super().__init__(job.settings, job.layout, accept_gap=False, pool=job.pool)
        self._found = iter(found)

    def events_id(self) -> str:
        found = next(self._found)
        if isinstance(found, Exception):
            raise found
        return found


def new_job(settings: Settings, *found: str | Exception) -> Job:
    job = Job(settings, Layout(1, "first", "changelog", 1000), accept_gap=False)
    job.ground = LookedAt(job, *found)
    return job


async def watched(settings: Settings, *answers: str | Exception) -> BaseException:
    """Watch over the events topic, which answers so, until the job has failed; return by what."""
    job = new_job(settings, *answers)
    try:
        await asyncio.wait_for(job.watch_identity(), WAIT_SECONDS)
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


def test_a_run_fetched_for_tasks_that_were_opened_anew_since_is_not_theirs(
    settings_of: Callable[..., Settings],
) -> None:
    """In the same generation: the job opens tasks anew whose producers have died."""

    async def found() -> list[bool]:
        job = new_job(settings_of())
        run = Run((), 7, 9)
        run.opening = job.openings
        message: Any = SimpleNamespace(partition=0, generation_id=3, value=run)
        task: Any = SimpleNamespace(dead=False, closing=False, generation=3)
        job.tasks[0] = task
        before = job.find(message) is task
        job.openings += 1
        after = job.find(message) is task
        job.fail(RocstreamError("over"))
        run.opening, task.dead = job.openings, False
        job.pool.shutdown()
        return [before, after, job.find(message) is task]

    assert asyncio.run(found()) == [True, False, False]


def test_runs_fetched_with_one_that_waited_while_tasks_were_opened_anew_are_dropped() -> None:
    """The first waits where the flow is held; the others were fetched for the same tasks as it."""

    async def handed_on() -> list[int]:
        records = {TopicPartition("events", number): Run((), 7, 9) for number in range(3)}

        async def fetched(_timeout: float) -> tuple[Any, Any]:
            return records, None

        consumer: Any = SimpleNamespace(
            app=SimpleNamespace(consumer_generation_id=3, job=SimpleNamespace(openings=1)),
            should_stop=False,
            flow_active=True,
            _wait_next_records=fetched,
        )
        taken = []
        async for tp, _ in Consumer.getmany(consumer, 0):
            taken.append(tp.partition)
            if tp.partition == 1:
                consumer.app.job.openings += 1
        return taken

    assert asyncio.run(handed_on()) == [0, 1]


def test_a_fetch_that_finds_no_topic_has_it_looked_at_at_once(
    settings_of: Callable[..., Settings],
) -> None:
    async def watched() -> BaseException:
        job = new_job(settings_of(), "second")
        try:
            # As the consumer does, in its own thread.
            await asyncio.to_thread(job.ground.doubt)
            await asyncio.wait_for(job.watch_identity(), ground.LOOK_SECONDS / 2)
            return await job.failed
        finally:
            job.pool.shutdown()

    assert isinstance(asyncio.run(watched()), DecisionError)
