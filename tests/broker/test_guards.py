"""What a running worker notices of its topic and its group."""

from __future__ import annotations

import re
import signal
from threading import Event
from typing import TYPE_CHECKING, Any

import brokers
import kafka_proxy
import pytest
import structlog
from commands import rocstream
from computed import assert_exactly, expected_updates, reference_h, tied_events
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from jobs import GOOD, MONITOR, Job

import config
from config.errors import RocstreamError
from worker import admin, rights
from worker.admin import Cluster
from worker.cli.check import findings
from worker.transport import layout

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.broker

INSTANCE = "ROCSTREAM__KAFKA__GROUP_INSTANCE_ID"


def test_an_id_that_is_not_told_is_not_taken_for_none(
    new_job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the id nobody would see that the topic was made again."""
    job = new_job(partitions=1)
    topic = job.settings.topics.events
    cluster = Cluster(job.settings)
    cluster.wait(20)
    assert len(layout.topic_id(cluster, topic)) == 22
    with pytest.raises(KafkaException):
        layout.topic_id(cluster, topic + "-that-is-not-there")
    with monkeypatch.context() as patch:
        patch.setattr(layout, "IDENTITY_CALL_SECONDS", 0.0001)
        with pytest.raises(KafkaException):
            layout.topic_id(cluster, topic)
        patch.setattr(layout, "IDENTITY_SECONDS", 0.5)
        with pytest.raises(RocstreamError, match=f"does not tell the id of the topic {topic}"):
            layout.survey(job.settings, Event())
    found = layout.survey(job.settings, Event())
    assert found is not None
    assert found.events_id == layout.topic_id(cluster, topic)
    assert found.changelog_id == layout.topic_id(cluster, job.settings.changelog)


def test_a_broker_that_gives_itself_a_wrong_address_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers who asks at first, and sends them where nobody is."""
    direct, controller, behind, nobody = brokers.free_ports(4)
    broker = brokers.with_properties(
        kafka_proxy.properties(direct, controller, behind, nobody), (direct, controller)
    )
    try:
        broker.start()
        job = Job(broker.bootstrap_servers, tmp_path, MONITOR, 1)
        job.create_topics()
        job.path.write_text(job.path.read_text().replace(f":{direct}", f":{behind}"))
        monkeypatch.setattr(layout, "IDENTITY_CALL_SECONDS", 1.0)
        monkeypatch.setattr(layout, "IDENTITY_SECONDS", 1.5)
        with structlog.testing.capture_logs() as said, pytest.raises(RocstreamError) as raised:
            layout.survey(config.load(job.path, {}), Event())
        monkeypatch.setattr(admin, "WAIT_SECONDS", 5.0)
        *_, unreached = findings(config.load(job.path, {}))
    finally:
        broker.close()
    assert unreached.exit_code == 1
    assert f"127.0.0.1:{nobody} failed: Connection refused): correct" in unreached.sentence
    assert f"127.0.0.1:{nobody}" in str(raised.value)
    assert "advertised.listeners" in str(raised.value)
    told = [line["event"] for line in said]
    assert "waiting for the broker to tell the id of the events topic" in told


def test_permissions_of_many_partitions_are_asked_for_together(
    new_job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over a far way, one request after the other would outlast the time there is."""
    job = new_job(partitions=1)
    under_way = most = 0
    ask = rights._error

    async def counted(*arguments: Any) -> Any:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        try:
            return await ask(*arguments)
        finally:
            under_way -= 1

    monkeypatch.setattr(rights, "_error", counted)
    assert rights.rights(job.settings, range(250)).refused == []
    assert most == 100


# A worker that does not look at the topic of its own accord.
INATTENTIVE = """
from worker.cli import main
from worker.transport import ground
ground.LOOK_SECONDS = 3600.0
main()
"""


def test_a_topic_made_again_under_a_running_worker_needs_a_decision(
    new_job: Callable[..., Job],
) -> None:
    """The new log goes on behind the offset where the old one ended, so offsets do not tell.

    Only that the worker fetches by the topic's id keeps it from reading on there.
    """
    job = new_job(partitions=1)
    job.produce([(b"k", GOOD)] * 100)
    with job.worker(program=("-c", INATTENTIVE)) as worker:
        job.updates(2)
        worker.signal(signal.SIGSTOP)
        job.make_events_again()
        job.produce([(b"k", GOOD)] * 200)
        worker.signal(signal.SIGCONT)
        assert worker.exit_code() == 3, worker.text()[-3000:]
        for part in (job.settings.topics.events, "was deleted and made again", "--accept-gap"):
            assert part in worker.text()
        assert "Traceback" not in worker.text()
    assert job.state()["events"] == 100


# A worker that looks at the settings of its topics more often.
WATCHFUL = """
from worker.cli import main
from worker.transport import ground
ground.TOPICS_SECONDS = ground.REFUSED_SECONDS = 0.2
main()
"""


@pytest.mark.parametrize(("topic", "policy"), [("events", "compact"), ("changelog", "delete")])
def test_a_topic_that_comes_to_lose_data_ends_the_worker(
    new_job: Callable[..., Job], topic: str, policy: str
) -> None:
    """Under a running worker, and when it starts: events of a key go, or pages of its state."""
    job = new_job(partitions=1)
    name = job.settings.changelog if topic == "changelog" else job.settings.topics.events
    with job.worker(program=("-c", WATCHFUL)) as running:
        running.wait_until_ready()
        job.configure(name, cleanup_policy=policy)
        with job.worker() as starting:
            for worker in (running, starting):
                assert worker.exit_code() == 2, worker.text()[-3000:]
                last = worker.text().splitlines()[-1]
                assert f"the topic {name} (" in last
                assert f"has cleanup.policy = {policy} and loses data: set cleanup.policy" in last
                assert "Traceback" not in worker.text()


def test_a_topic_that_is_written_to_and_is_gone_ends_the_worker(
    new_job: Callable[..., Job],
) -> None:
    """Its client takes it for a broker that does not answer."""
    job = new_job(partitions=1)
    topic = job.settings.topics.updates
    asks = AdminClient({"bootstrap.servers": job.servers})
    with job.worker(program=("-c", WATCHFUL)) as worker:
        worker.wait_until_ready()
        asks.delete_topics([topic])[topic].result(20)
        assert worker.exit_code() == 2, worker.text()[-3000:]
        last = worker.text().splitlines()[-1]
        assert f"the topic {topic} (topics.updates) does not exist: make it with" in last
        assert "Traceback" not in worker.text()


# A member that may be away for as long as a slow machine takes to start the next one.
PATIENT = """
import worker.app
from worker.cli import main
worker.app.SESSION_SECONDS, worker.app.REQUEST_SECONDS = 60.0, 90.0
main()
"""


def test_a_static_member_that_comes_back_in_time_disturbs_nobody(
    new_job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = new_job(partitions=2)
    events = tied_events(6_000, keys=6, seed=3)
    expected = expected_updates(events, reference_h)
    patient = ("-c", PATIENT)
    monkeypatch.setenv(INSTANCE, "stays")
    with job.worker() as stays:
        stays.wait_until_ready()
        monkeypatch.setenv(INSTANCE, "goes")
        with job.worker(program=patient) as goes:
            goes.wait_until_ready()
            stays.wait_for(lambda: re.search(r'"ready", "partitions": \[\d\]', stays.text()))
            rebalances = stays.text().count("tasks parked")
            job.produce(events[:2_000])
            goes.wait_for(lambda: len(job.read(job.settings.topics.updates, 0)) > 20)
            goes.signal(signal.SIGTERM)
            assert goes.exit_code() == 0, goes.text()[-3000:]
        job.produce(events[2_000:4_000])
        with job.worker(program=patient) as goes:
            goes.wait_until_ready()
            goes.kill()
        with job.worker(program=patient) as goes:
            goes.wait_until_ready()
            job.produce(events[4_000:])
            assert_exactly(job.updates(len(expected)), expected)
        assert stays.text().count("tasks parked") == rebalances


def test_check_tells_what_a_worker_would_refuse(fed_job: Callable[[int], Job]) -> None:
    job = fed_job(200)
    fine = rocstream("check", "-c", job.path)
    assert fine.code == 0, fine.out
    assert "the state fits the log (partitions that have one: 1, that have none yet: 0)" in fine.out
    assert not fine.err

    text = job.path.read_text()
    job.path.write_text(f'{text}\n[event]\nscore = "other"\n')
    changed = rocstream("check", "-c", job.path)
    assert changed.code == 3
    assert "the [event] settings differ" in changed.out
    job.path.write_text(text)

    job.set_group_offset(0, 17)
    moved = rocstream("check", "-c", job.path)
    assert moved.code == 3
    assert "was set to 17 by hand, while the state ends at 200" in moved.out
    job.set_group_offset(0, 200)

    job.produce([(b"k", GOOD)] * 200)
    asks = AdminClient({"bootstrap.servers": job.servers})
    cut = TopicPartition(job.settings.topics.events, 0, 300)
    asks.delete_records([cut])[cut].result(20)
    checked = rocstream("check", "-c", job.path)
    assert checked.code == 3
    sentence = next(line for line in checked.out.splitlines() if "no longer reaches back" in line)
    with job.worker() as worker:
        assert worker.exit_code() == 3
        assert sentence.removeprefix("✗ ") in worker.text()
