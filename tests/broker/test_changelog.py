"""The changelog is read to its end, whatever lies there, and it is missed when it is gone."""

from __future__ import annotations

import signal
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
from commands import rocstream
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from jobs import GOOD
from structlog.testing import capture_logs

from worker.transport import changelog as module
from worker.transport.changelog import Extent, Reader

if TYPE_CHECKING:
    from collections.abc import Callable

    from jobs import Job

pytestmark = pytest.mark.broker

EMPTY, MIXED, ABORTED, DELETED = range(4)


def test_a_changelog_is_read_to_ends_that_hold_no_record(
    kafka: Any, new_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing at all, markers, what was aborted, and where all was taken away."""
    monkeypatch.setattr(module, "STALL_SECONDS", 20.0)
    monkeypatch.setattr(module, "_REPORT_SECONDS", 0.0)
    servers = {"bootstrap.servers": kafka.bootstrap_servers}
    topic = new_topic("changelog", partitions=4)
    producer = Producer({**servers, "transactional.id": topic})
    producer.init_transactions(20)

    def write(partition: int, *records: tuple[bytes, bytes | None], commit: bool = True) -> None:
        producer.begin_transaction()
        for key, value in records:
            producer.produce(topic, value, key, partition)
        assert producer.flush(20) == 0
        if commit:
            producer.commit_transaction(20)
        else:
            producer.abort_transaction(20)

    write(MIXED, (b"a", b"1"), (b"b", b"1"), (b"c", b"1"))
    write(MIXED, (b"a", b"2"), (b"b", None))
    write(MIXED, (b"a", b"3"), (b"d", b"3"), commit=False)
    write(ABORTED, (b"a", b"1"), commit=False)
    write(DELETED, (b"a", b"1"))
    gone = TopicPartition(topic, DELETED, 2)
    admin = AdminClient(servers)
    admin.delete_records([gone])[gone].result(20)

    with capture_logs() as logs:
        read = Reader(servers, "reader").read(topic, topic, range(4), Event())
    assert read.records == {EMPTY: {}, MIXED: {b"a": b"2", b"c": b"1"}, ABORTED: {}, DELETED: {}}
    assert read.inputs == {
        EMPTY: Extent(0, 0),
        MIXED: Extent(0, 10),
        ABORTED: Extent(0, 2),
        DELETED: Extent(2, 2),
    }
    progress = [line for line in logs if line["event"] == "reading state"]
    assert progress
    assert progress[-1]["partitions_to_go"] == 0
    (told,) = [line for line in logs if line["event"] == "state read"]
    assert told["records"] == progress[-1]["records"] == 5


def test_a_changelog_that_was_made_again_begins_nothing_anew(fed_job: Callable[[int], Job]) -> None:
    """All events are still there: they would be counted, and published, once more."""
    job = fed_job(100)
    changelog = job.settings.changelog
    # As brokers do by themselves that make topics which are asked for.
    job.make_again(changelog)
    with job.worker() as worker:
        assert worker.exit_code() == 2, worker.text()[-3000:]
        assert f"{changelog} (the changelog) has cleanup.policy = delete" in worker.text()
        assert "set cleanup.policy = compact on it" in worker.text()
    compacted = ConfigResource(
        ResourceType.TOPIC,
        changelog,
        incremental_configs=[
            ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
        ],
    )
    admin = AdminClient({"bootstrap.servers": job.servers})
    admin.incremental_alter_configs([compacted])[compacted].result(20)
    checked = rocstream("check", "-c", job.path)
    assert checked.code == 3
    sentence = next(line for line in checked.out.splitlines() if "holds no state" in line)
    for part in (changelog, "partition 0", "offset 100", "`rocstream reset`"):
        assert part in sentence
    with job.worker() as worker:
        assert worker.exit_code() == 3, worker.text()[-3000:]
        assert sentence.removeprefix("✗ ") in worker.text()
    assert len(job.updates(2)) == 2


def test_a_changelog_without_its_oldest_records_is_refused(fed_job: Callable[[int], Job]) -> None:
    """As retention leaves it: the cursor is there, and the pages of a key that was silent not."""
    job = fed_job(100)
    job.produce([(b"other", GOOD)] * 50)
    with job.worker() as worker:
        job.updates(3)
        worker.signal(signal.SIGTERM)
        assert worker.exit_code() == 0, worker.text()[-3000:]
    changelog = job.settings.changelog
    kept = next(r for r in job.read(changelog, 0) if b"other" in (r.key or b""))
    gone = TopicPartition(changelog, 0, kept.offset)
    admin = AdminClient({"bootstrap.servers": job.servers})
    job.configure(changelog, cleanup_policy="delete")
    admin.delete_records([gone])[gone].result(20)
    job.configure(changelog, cleanup_policy="compact")
    checked = rocstream("check", "-c", job.path)
    assert checked.code == 3, checked.out
    sentence = next(line for line in checked.out.splitlines() if "its cursor counts" in line)
    for part in (
        "keys took 50 events in",
        "and 150 events:",
        changelog,
        "partition 0",
        "`rocstream reset`",
    ):
        assert part in sentence
    with job.worker() as worker:
        assert worker.exit_code() == 3, worker.text()[-3000:]
        assert sentence.removeprefix("✗ ") in worker.text()
    assert len(job.updates(3)) == 3


def test_a_changelog_made_again_under_a_running_worker_ends_it(
    fed_job: Callable[[int], Job],
) -> None:
    """What it goes on to write would be the only state there is."""
    job = fed_job(100)
    changelog = job.settings.changelog
    with job.worker() as worker:
        worker.wait_until_ready()
        job.make_again(changelog)
        assert worker.exit_code() == 3, worker.text()[-3000:]
        assert f"the changelog {changelog} was deleted and made again while we ran" in worker.text()
        assert "Traceback" not in worker.text()
