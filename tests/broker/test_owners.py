"""Who owns a task: two workers that think they do, strangers, a coordinator that has forgotten."""

from __future__ import annotations

import re
import signal
import time
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from computed import assert_exactly, expected_updates, reference_h, tied_events
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient
from jobs import MONITOR, Job

from worker.messages import Message
from worker.pages import Cursor
from worker.transport.producer import TaskProducer, Topics, Transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from kafka_broker import Broker

pytestmark = pytest.mark.broker

IDS = "__transaction_state"
INSTANCE = "ROCSTREAM__KAFKA__GROUP_INSTANCE_ID"


def test_of_two_workers_with_one_instance_id_the_older_leaves(
    new_job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = new_job(partitions=2)
    events = tied_events(6_000, keys=6, seed=5)
    expected = expected_updates(events, reference_h)
    monkeypatch.setenv(INSTANCE, "pod-0")
    with job.worker() as older:
        older.wait_until_ready()
        job.produce(events[:3_000])
        older.wait_for(lambda: len(job.read(job.settings.topics.updates, 0)) > 20)
        with job.worker() as newer:
            job.produce(events[3_000:])
            assert older.exit_code() == 2, older.text()[-3000:]
            last = older.text().splitlines()[-1]
            assert 'kafka.group_instance_id = "pod-0": another worker has joined' in last
            assert "give each worker a name of its own" in last
            assert "Traceback" not in older.text()
            assert_exactly(job.updates(len(expected)), expected)
            newer.signal(signal.SIGTERM)
            assert newer.exit_code() == 0, newer.text()[-3000:]
            # Commits name the instance too, in words that the broker understands.
            assert "group offsets not committed" not in newer.text()


# A worker that takes tasks over only once a file is gone.
HELD = """
import time
from pathlib import Path
from worker.cli import main
from worker.transport.job import Job

read = Job._read

def read_late(self, partitions, cancelled):
    while Path({hold!r}).exists() and not cancelled.is_set():
        time.sleep(0.01)
    return read(self, partitions, cancelled)

Job._read = read_late
main()
"""


@pytest.mark.parametrize("meanwhile", ["nothing", "a stop", "a rebalance"])
def test_tasks_that_stay_publish_while_others_are_still_being_opened(
    new_job: Callable[..., Job], tmp_path: Path, meanwhile: str
) -> None:
    job = new_job(partitions=4)
    events = tied_events(12_000, keys=12, seed=9)
    expected = expected_updates(events, reference_h)
    hold = tmp_path / "hold"
    program = ("-c", HELD.format(hold=str(hold)))
    with job.worker(program=program) as stays, job.worker() as leaves:
        for worker in (stays, leaves):
            worker.wait_for(lambda worker=worker: assigned(worker.text(), 2))
        job.produce(events[:6_000])
        stays.wait_for(lambda: job.state()["events"] == 6_000)
        hold.touch()
        leaves.signal(signal.SIGTERM)
        assert leaves.exit_code() == 0, leaves.text()[-3000:]
        stays.wait_for(lambda: '"tasks go on"' in stays.text())
        [kept] = re.findall(r'"tasks go on", "kept": (\[\d, \d\])', stays.text())
        before = job.cursors()
        job.produce(events[6_000:])
        ends = {number: job.end_offset(number) for number in before}

        def at_end() -> set[int]:
            return {p for p, cursor in job.cursors().items() if cursor.offset == ends[p]}

        stays.wait_for(lambda: at_end() == set(orjson.loads(kept)))
        moved = {p for p, cursor in job.cursors().items() if cursor.offset != before[p].offset}
        assert moved == at_end()
        if meanwhile == "a stop":
            stays.signal(signal.SIGTERM)
            assert stays.exit_code() == 0, stays.text()[-3000:]
            assert "Traceback" not in stays.text()
        if meanwhile != "nothing":
            with job.worker() as comes:
                comes.wait_until_ready()
                hold.unlink()
                assert_exactly(job.updates(len(expected)), expected)
        else:
            hold.unlink()
            assert_exactly(job.updates(len(expected)), expected)


def assigned(text: str, count: int) -> bool:
    """Tell whether a worker was last ready with so many partitions."""
    found = re.findall(r'"ready", "partitions": (\[[^]]*\])', text)
    return bool(found) and len(orjson.loads(found[-1])) == count


class _Refused(list[Message]):
    """Messages of which the first has no key, but only when they are gone through at first."""

    def __iter__(self) -> Iterator[Message]:
        if self[0].key is None:
            yield self[0]
            self[0] = self[1]
        yield from super().__iter__()


def test_a_transaction_that_failed_while_it_was_written_is_sent_again(
    kafka: Any, new_topic: Callable[..., str]
) -> None:
    """The client says then only that it is in a wrong state, and has to be told to abort."""
    keyed = new_topic("keyed", cleanup_policy="compact")  # refuses what has no key
    changelog = new_topic("changelog")
    producer = TaskProducer(
        {"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": "0"},
        Topics(keyed, keyed, changelog),
        0,
        changelog,
    )
    small = Message(b"k", b"small", ())
    updates = _Refused([small._replace(key=None), *[small] * 400_000])
    producer.open()
    try:
        producer.commit(Transaction(updates, [], [], Cursor("events", "", 1, "fingerprint")))
        assert updates[0] == small
    finally:
        producer.close()


@pytest.fixture(scope="module")
def forgetful_kafka() -> Iterator[Broker]:
    """A broker that forgets a transactional id soon after it was used last.

    And makes topics that it is asked about, as Kafka does unless told otherwise.
    """
    import brokers  # noqa: PLC0415 - there once tests/conftest.py is loaded

    broker = brokers.with_properties(
        {
            "auto.create.topics.enable": "true",
            "transactional.id.expiration.ms": "1500",
            "transaction.remove.expired.transaction.cleanup.interval.ms": "200",
        },
        tuple(brokers.free_ports(2)),
    )
    try:
        broker.start()
        yield broker
    finally:
        broker.close()


def test_a_task_whose_transactional_id_was_forgotten_is_opened_anew(
    forgetful_kafka: Broker, tmp_path: Path
) -> None:
    """Sent again, a transaction of a former owner would go through alike."""
    job = Job(forgetful_kafka.bootstrap_servers, tmp_path, MONITOR, 1)
    job.create_topics()
    events = tied_events(2_000, keys=2, seed=7)
    expected = expected_updates(events, reference_h)
    with job.worker() as worker:
        worker.wait_until_ready()
        job.produce(events[:1_000])
        worker.wait_for(lambda: job.state()["events"] == 1_000)
        # Where coordinators keep transactional ids, an empty record is one forgotten.
        worker.wait_for(lambda: any(one.value is None for one in job.read(IDS, 0)))
        job.produce(events[1_000:])
        assert_exactly(job.updates(len(expected)), expected)
        assert worker.text().count("task failed") == 1, worker.text()[-3000:]
        assert "sent again" not in worker.text()
        worker.signal(signal.SIGTERM)
        assert worker.exit_code() == 0, worker.text()[-3000:]


def test_a_topic_that_is_deleted_is_waited_for_and_not_made_again_by_the_worker(
    forgetful_kafka: Broker, tmp_path: Path
) -> None:
    """Its clients ask about the topic over and over; others must not be told that it is another."""
    eager = '[kafka.client]\n"metadata.max.age.ms" = 1000\n'
    job = Job(forgetful_kafka.bootstrap_servers, tmp_path, eager + MONITOR, 1)
    job.create_topics()
    topic = job.settings.topics.events
    admin = AdminClient({"bootstrap.servers": job.servers})
    with job.worker() as worker:
        worker.wait_until_ready()
        admin.delete_topics([topic])[topic].result(20)
        worker.wait_for(lambda: worker.text().count(f"Topic {topic} not found in cluster") > 2)
        assert "the events topic is gone, waiting for it" in worker.text()
        assert topic not in admin.list_topics(timeout=10).topics
        job.create_topics()
        assert worker.exit_code() == 3, worker.text()[-3000:]
        assert "made again" in worker.text()


def test_a_group_that_other_consumers_have_ends_the_worker(new_job: Callable[..., Job]) -> None:
    """It has no partitions, so it would fetch nothing, and never hear why."""
    job = new_job(partitions=1)
    stranger = Consumer({"bootstrap.servers": job.servers, "group.id": job.settings.kafka.group})
    try:
        stranger.subscribe([job.settings.topics.events])
        deadline = time.monotonic() + 30
        while not stranger.assignment():
            assert time.monotonic() < deadline
            stranger.poll(0.1)
        with job.worker() as worker:
            while worker.process.poll() is None:
                assert time.monotonic() < deadline, worker.text()
                stranger.poll(0.1)
            assert worker.exit_code() == 2, worker.text()
            last = worker.text().splitlines()[-1]
            assert f'kafka.group = "{job.settings.kafka.group}"' in last
            assert "has members that are no workers of rocstream" in last
            assert "Traceback" not in worker.text()
    finally:
        stranger.close()
