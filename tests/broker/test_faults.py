"""Faults on a real Kafka: whatever happens, every update once, or a sentence and exit 3."""

from __future__ import annotations

import random
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest
from computed import assert_exactly, expected_updates, reference_h, tied_events
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from jobs import GOOD, MONITOR, Job, Worker, free_port

from config.limits import TRANSACTION_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.broker


def test_a_worker_waits_for_its_broker_and_says_so_once(tmp_path: Path) -> None:
    job = Job(f"127.0.0.1:{free_port()}", tmp_path, MONITOR, 1)
    with job.worker() as worker:
        worker.wait_for(lambda: "no Kafka broker answers" in worker.text())
        worker.signal(signal.SIGTERM)
        assert worker.exit_code() == 0
        assert worker.text().count("no Kafka broker answers") == 1
        assert job.settings.kafka.bootstrap_servers[0] in worker.text()


def test_a_missing_topic_ends_the_worker_with_the_cure(kafka: Any, tmp_path: Path) -> None:
    job = Job(kafka.bootstrap_servers, tmp_path, MONITOR, 1)
    with job.worker() as worker:
        assert worker.exit_code() == 2
        assert "topics create" in worker.text()
        assert job.settings.topics.events in worker.text()
        assert "Traceback" not in worker.text()


# Looks the topics up, then lets the test have its way with the broker before it goes on.
HALF_STARTED = """
import pathlib, sys, time
import worker.app
from worker.cli import main
go_on = pathlib.Path(sys.argv.pop(1))
survey = worker.app.survey
def survey_and_wait(*arguments):
    found = survey(*arguments)
    print("surveyed", flush=True)
    while not go_on.exists():
        time.sleep(0.02)
    return found
worker.app.survey = survey_and_wait
main()
"""


def test_a_broker_that_goes_while_a_worker_starts_is_waited_for(
    own_kafka: Any, tmp_path: Path
) -> None:
    job = Job(own_kafka.bootstrap_servers, tmp_path, MONITOR, 1)
    job.create_topics()
    events = tied_events(2_000, keys=2)
    expected = expected_updates(events, reference_h)
    job.produce(events)
    go_on = tmp_path / "go-on"
    with job.worker(program=("-c", HALF_STARTED, str(go_on))) as worker:
        worker.wait_for(lambda: "surveyed" in worker.text())
        own_kafka.kill()
        go_on.touch()
        worker.wait_for(lambda: "waiting for the broker" in worker.text())
        own_kafka.start()
        assert_exactly(job.updates(len(expected)), expected)
        worker.signal(signal.SIGTERM)
        assert worker.exit_code() == 0, worker.text()[-3000:]


@pytest.mark.parametrize("how", [pytest.param("stop", marks=pytest.mark.slow), "kill"])
def test_a_broker_that_goes_and_comes_is_waited_out(
    own_kafka: Any, tmp_path: Path, how: str
) -> None:
    job = Job(own_kafka.bootstrap_servers, tmp_path, MONITOR, 2)
    job.create_topics()
    events = tied_events(20_000, keys=6, seed=2)
    expected = expected_updates(events, reference_h)
    with job.worker() as worker:
        worker.wait_until_ready()
        job.produce(events[:12_000])
        # In the middle of the work or behind it: both must hold.
        worker.wait_for(lambda: len(job.read(job.settings.topics.updates, 0)) > 50)
        getattr(own_kafka, how)()
        # How long is the subject: a worker behind its work says nothing, so there is nothing to
        # wait for, and its clients are to find their connections refused many times.
        time.sleep(3)
        own_kafka.start()
        job.produce(events[12_000:])
        assert_exactly(job.updates(len(expected), seconds=90), expected)
        worker.wait_for(lambda: '"the broker is back"' in worker.text())
        assert '"waiting for the broker to read from"' in worker.text()
        assert '"event": "Unable connect to node' not in worker.text()
        worker.signal(signal.SIGTERM)
        assert worker.exit_code() == 0, worker.text()[-3000:]


def test_a_worker_whose_broker_is_gone_can_be_stopped(own_kafka: Any, tmp_path: Path) -> None:
    job = Job(own_kafka.bootstrap_servers, tmp_path, MONITOR, 1)
    job.create_topics()
    with job.worker() as worker:
        worker.wait_until_ready()
        job.produce(tied_events(1_000, keys=2))
        own_kafka.kill()
        worker.signal(signal.SIGTERM)
        assert worker.exit_code(40) == 0, worker.text()[-3000:]


@pytest.mark.slow
def test_an_outage_longer_than_a_transaction_is_waited_out(own_kafka: Any, tmp_path: Path) -> None:
    """The coordinator gives up the open transaction: the task is opened anew."""
    job = Job(own_kafka.bootstrap_servers, tmp_path, MONITOR, 1)
    job.create_topics()
    events = tied_events(20_000, keys=3, seed=4)
    expected = expected_updates(events, reference_h)
    with job.worker() as worker:
        worker.wait_until_ready()
        job.produce(events[:10_000])
        worker.wait_for(lambda: len(job.read(job.settings.topics.updates, 0)) > 20)
        own_kafka.freeze()
        # How long is the subject: the coordinator goes by its clock, and is frozen itself.
        time.sleep(TRANSACTION_SECONDS + 5)
        own_kafka.thaw()
        job.produce(events[10_000:])
        assert_exactly(job.updates(len(expected), seconds=120), expected)
        assert worker.process.poll() is None, worker.text()[-3000:]


@pytest.mark.slow
def test_tasks_that_are_all_fenced_at_once_are_opened_anew(new_job: Callable[..., Job]) -> None:
    """More of them than the deaths that one task may die, as after an outage of a broker."""
    job = new_job(partitions=8)
    events = tied_events(4_000, keys=40, seed=12)
    expected = expected_updates(events, reference_h)
    with job.worker() as worker:
        worker.wait_until_ready()
        job.produce(events[:2_000])
        worker.wait_for(lambda: job.state()["events"] == 2_000)
        for partition in range(8):
            name = f"{job.settings.kafka.group}-{partition}"
            rogue = Producer({"bootstrap.servers": job.servers, "transactional.id": name})
            rogue.init_transactions(20)
        job.produce(events[2_000:])
        worker.wait_for(lambda: worker.text().count("task failed") >= 8)
        assert_exactly(job.updates(len(expected), seconds=90), expected)
        assert worker.process.poll() is None, worker.text()[-3000:]


def test_a_frozen_worker_that_wakes_writes_nothing_more(new_job: Callable[..., Job]) -> None:
    """Its tasks go to another; awake again, it is fenced, and comes back with the group."""
    job = new_job()
    events = tied_events(30_000, keys=9, seed=6)
    expected = expected_updates(events, reference_h)
    with job.worker() as zombie:
        zombie.wait_until_ready()
        job.produce(events[:10_000])
        zombie.wait_for(lambda: len(job.read(job.settings.topics.updates, 0)) > 30)
        zombie.signal(signal.SIGSTOP)
        with job.worker() as heir:
            job.produce(events[10_000:20_000])
            heir.wait_until_ready()
            heir.wait_for(lambda: len(job.read(job.settings.topics.updates, 0)) > 350)
            zombie.signal(signal.SIGCONT)
            job.produce(events[20_000:])
            assert_exactly(job.updates(len(expected), seconds=90), expected)
            assert zombie.process.poll() is None, zombie.text()[-3000:]


def goes_on_once_the_gap_is_accepted(job: Job, before: int) -> None:
    """Of the 500 events of one key behind the gap ten updates come, after those from `before`."""
    with job.worker("--accept-gap") as worker:
        updates = job.updates(before + 10)[before:]
        worker.signal(signal.SIGTERM)
        assert worker.exit_code() == 0, worker.text()[-3000:]
    assert [update["note"] for update in updates] == ["gap"] + [None] * 9
    assert [update["seq"] for update in updates] == list(range(1, 11))
    with job.worker() as worker:
        # The decision was kept, with the topic's id: no need to say it again.
        worker.wait_until_ready()


def test_a_log_that_retention_has_eaten_into_needs_a_decision(
    fed_job: Callable[[int], Job],
) -> None:
    job = fed_job(1_000)
    job.produce([(b"k", GOOD)] * 1_000)
    admin = AdminClient({"bootstrap.servers": job.servers})
    eaten = TopicPartition(job.settings.topics.events, 0, 1_500)
    admin.delete_records([eaten])[eaten].result(20)
    with job.worker() as worker:
        assert worker.exit_code() == 3
        text = worker.text()
        assert "Traceback" not in text
        place = f"topic {job.settings.topics.events}, partition 0"
        for part in (place, "1000", "1500", "--accept-gap"):
            assert part in text
    goes_on_once_the_gap_is_accepted(job, before=20)


# A worker with less room for what a batch decompresses to: the real bound takes much memory.
NARROW = """
from worker.cli import main
from worker.transport import codecs
codecs.CEILING = 1_000_000
main()
"""


def test_a_batch_that_cannot_be_read_is_named_and_stepped_over_as_told(
    fed_job: Callable[[int], Job],
) -> None:
    job = fed_job(500)
    bomb = job.end_offset(0)
    job.produce([(b"k", bytes(1_500_000))], **{"compression.type": "zstd"})
    behind = job.end_offset(0)
    job.produce([(b"k", GOOD)] * 500)
    narrow = ("-c", NARROW)
    for _ in range(2):
        with job.worker(program=narrow) as worker:
            assert worker.exit_code() == 3, worker.text()[-3000:]
            place = f"offset {bomb} of the topic {job.settings.topics.events}, partition 0,"
            for part in (place, "kafka-delete-records", "--accept-gap"):
                assert part in worker.text()
            assert "Traceback" not in worker.text()
    replay = Worker([*narrow, "replay", "-c", str(job.path)], job.folder / "replay.log")
    try:
        assert replay.exit_code() == 1
        for part in (place, f"with --to {bomb}, and what lies behind it with --from"):
            assert part in replay.text()
        assert "--accept-gap" not in replay.text()
    finally:
        replay.kill()
    eaten = TopicPartition(job.settings.topics.events, 0, behind)
    admin = AdminClient({"bootstrap.servers": job.servers})
    admin.delete_records([eaten])[eaten].result(20)
    with job.worker("--accept-gap", program=narrow):
        updates = job.updates(20)[10:]
    assert [update["note"] for update in updates] == ["gap"] + [None] * 9


def test_a_log_that_is_cut_under_a_running_worker_needs_a_decision(
    new_job: Callable[..., Job],
) -> None:
    job = new_job(partitions=1)
    job.produce([(b"k", GOOD)] * 1_000)
    with job.worker() as worker:
        job.updates(20)
        worker.signal(signal.SIGSTOP)
        job.produce([(b"k", GOOD)] * 1_000)
        admin = AdminClient({"bootstrap.servers": job.servers})
        cut = TopicPartition(job.settings.topics.events, 0, 1_500)
        admin.delete_records([cut])[cut].result(20)
        worker.signal(signal.SIGCONT)
        assert worker.exit_code() == 3, worker.text()[-3000:]
        for part in ("1000", "1500", "--accept-gap"):
            assert part in worker.text()
    assert job.state()["events"] == 1_000


def test_another_events_topic_under_the_same_group_needs_a_decision(
    fed_job: Callable[[int], Job], new_job: Callable[..., Job]
) -> None:
    job, other = fed_job(100), new_job(partitions=1)
    text = job.path.read_text()
    job.path.write_text(text.replace(job.settings.topics.events, other.settings.topics.events))
    with job.worker() as worker:
        assert worker.exit_code() == 3
        assert job.settings.topics.events in worker.text()
        assert "put the name back" in worker.text()


def test_a_topic_that_grows_needs_a_decision(new_job: Callable[..., Job]) -> None:
    job = new_job('[kafka.client]\n"metadata.max.age.ms" = 1000\n' + MONITOR, partitions=2)
    with job.worker() as worker:
        worker.wait_until_ready()
        admin = AdminClient({"bootstrap.servers": job.servers})
        topic = job.settings.topics.events
        admin.create_partitions([NewPartitions(topic, 3)])[topic].result(20)
        assert worker.exit_code() == 3
        assert "has grown" in worker.text()
        assert "new kafka.group" in worker.text()
    with job.worker() as worker:
        assert worker.exit_code() == 2
        assert "3 partitions" in worker.text()


def test_a_topic_made_again_needs_a_decision(fed_job: Callable[[int], Job]) -> None:
    job = fed_job(100)
    job.make_events_again()
    job.produce([(b"k", GOOD)] * 500)
    with job.worker() as worker:
        assert worker.exit_code() == 3
        assert "made again" in worker.text()
        assert "--accept-gap" in worker.text()
    goes_on_once_the_gap_is_accepted(job, before=2)


def test_aborted_transactions_of_the_source_do_not_count(new_job: Callable[..., Job]) -> None:
    job = new_job()
    events = tied_events(6_000, keys=5, seed=8)
    rng = random.Random(1)  # noqa: S311 - a seeded choice
    producer = Producer(
        {
            "bootstrap.servers": job.servers,
            "transactional.id": f"{job.settings.kafka.group}-source",
            "partitioner": "murmur2_random",
        }
    )
    producer.init_transactions(20)
    kept = []
    for start in range(0, len(events), 300):
        producer.begin_transaction()
        part = events[start : start + 300]
        for key, value in part:
            producer.produce(job.settings.topics.events, value, key)
        if rng.random() < 0.4:
            # What is still in the client would be dropped there, and prove nothing.
            producer.flush(20)
            producer.abort_transaction(20)
        else:
            producer.commit_transaction(20)
            kept += part
    expected = expected_updates(kept, reference_h)
    with job.worker():
        assert_exactly(job.updates(len(expected)), expected)


def test_markers_that_retention_takes_are_no_gap(new_job: Callable[..., Job]) -> None:
    """An idle worker that is killed has its cursor behind them."""
    job = new_job(partitions=1)
    events = tied_events(1_000, keys=1, seed=3)
    expected = expected_updates(events, reference_h)
    producer = Producer(
        {"bootstrap.servers": job.servers, "transactional.id": f"{job.settings.kafka.group}-source"}
    )
    producer.init_transactions(20)

    def write(part: list[tuple[bytes, bytes]]) -> int:
        producer.begin_transaction()
        for key, value in part:
            producer.produce(job.settings.topics.events, value, key)
        producer.commit_transaction(20)
        return job.end_offset(0)

    with job.worker() as worker:
        worker.wait_until_ready()
        for start in range(0, 500, 100):
            end = write(events[start : start + 100])
        assert end == 505
        worker.wait_for(lambda: job.cursors()[0].offset == end)
        worker.kill()
    job.bury()
    admin = AdminClient({"bootstrap.servers": job.servers})
    eaten = TopicPartition(job.settings.topics.events, 0, end)
    admin.delete_records([eaten])[eaten].result(20)
    write(events[500:])
    with job.worker():
        assert_exactly(job.updates(len(expected)), expected)


def test_offsets_of_the_group_set_by_hand_are_noticed(new_job: Callable[..., Job]) -> None:
    job = new_job(partitions=1)
    events = tied_events(4_000, keys=2, seed=9)
    expected = expected_updates(events, reference_h)
    job.produce(events[:2_000])
    with job.worker() as worker:
        worker.wait_for(lambda: job.state()["events"] == 2_000)
        worker.signal(signal.SIGTERM)
        worker.exit_code()
    job.set_group_offset(0, 17)
    job.produce(events[2_000:])
    with job.worker() as worker:
        assert worker.exit_code() == 3
        for part in (job.settings.topics.events, "partition 0", "17", "2000", "`rocstream reset`"):
            assert part in worker.text()
        assert "Traceback" not in worker.text()
    # Nothing was changed by that: with the offset put back, all goes on.
    job.set_group_offset(0, 2_000)
    with job.worker():
        assert_exactly(job.updates(len(expected)), expected)
