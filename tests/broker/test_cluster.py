"""A job on three replicating brokers, of which some are killed: every update once."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import kafka_cluster
import pytest
from commands import rocstream
from computed import assert_exactly, expected_updates, reference_h, tied_events
from confluent_kafka.admin import AdminClient, NewTopic
from jobs import GOOD, MONITOR, Job
from kafka_cluster import GROUPS, NODES, TRANSACTIONS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.broker, pytest.mark.slow]

WAITS_TO_WRITE = '"waiting for the broker"'


def test_brokers_that_are_killed_cost_no_update_and_double_none(tmp_path: Path) -> None:
    """Those that coordinate the group and the transactions; then two of three at once."""
    events = tied_events(20_000, keys=8, seed=12)
    expected = expected_updates(events, reference_h)
    parts = [events[start : start + 5_000] for start in range(0, len(events), 5_000)]
    with kafka_cluster.running() as cluster:
        job = Job(cluster.bootstrap_servers, tmp_path, MONITOR, 3)
        made = create_topics(job)
        assert made.count("min.insync.replicas = 2") == 4

        def published() -> int:
            return len(job.read(job.settings.topics.updates, 0))

        with job.worker() as worker, ThreadPoolExecutor(1) as thread:
            worker.wait_until_ready()
            job.produce(parts[0])
            worker.wait_for(lambda: published() > 20)
            for coordinated, part in ((GROUPS, parts[1]), (TRANSACTIONS, parts[2])):
                node = cluster.leader(coordinated)
                before = published()
                producing = thread.submit(job.produce, part)
                cluster.kill(node)
                producing.result(60)
                worker.wait_for(lambda before=before: published() > before + 50)
                cluster.start(node)

            # With one broker left nothing can be written: what the worker has it must keep. So that
            # it has something, the one that is left leads a partition that the worker reads.
            worker.signal(signal.SIGSTOP)
            job.produce(parts[3])
            left = cluster.leader(job.settings.topics.events)
            dead = [node for node in NODES if node != left]
            told = worker.text().count(WAITS_TO_WRITE)
            cluster.kill(*dead)
            worker.signal(signal.SIGCONT)
            worker.wait_for(lambda: worker.text().count(WAITS_TO_WRITE) > told)
            cluster.start(*dead)
            assert_exactly(job.updates(len(expected), seconds=90), expected)
            worker.signal(signal.SIGTERM)
            assert worker.exit_code() == 0, worker.text()[-3000:]
        assert job.state()["events"] == len(events)
        # All of this with leader epochs told, over leaders that came and went.
        assert max(cursor.epoch for cursor in job.cursors().values()) > 0


def create_topics(job: Job) -> str:
    """Create those that are missing, each on all brokers; return what is said."""
    job.path.write_text(job.path.read_text().replace("replication = 1", "replication = 3"))
    made = rocstream("topics", "create", "-c", job.path)
    assert made.code == 0, made.err
    return made.out


REPLACED = (
    "the log does not hold what was read from it: next offset is 600, behind records of leader "
    "epoch "
)


def test_a_log_that_an_unclean_election_wrote_anew_needs_a_decision(tmp_path: Path) -> None:
    """It is longer than what was read of the old one, so that offsets do not tell."""
    with kafka_cluster.running() as cluster:
        job = Job(cluster.bootstrap_servers, tmp_path, MONITOR, 1)
        topic = job.settings.topics.events
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        settings = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
        replicas = [[1, 2]]
        made = NewTopic(topic, 1, replica_assignment=replicas, config=settings)
        admin.create_topics([made])[topic].result(20)
        create_topics(job)
        with job.worker() as worker:
            job.produce([(b"k", GOOD)] * 300)
            worker.wait_for(lambda: job.state()["events"] == 300)
            cluster.nodes[2].stop()
            job.produce([(b"k", GOOD)] * 300)
            worker.wait_for(lambda: job.state()["events"] == 600)
            worker.signal(signal.SIGSTOP)
            cluster.kill(1)
            cluster.nodes[2].launch()
            deadline = time.monotonic() + 60
            while cluster.leader(topic) != 2:
                assert time.monotonic() < deadline, cluster.log_tail()
                time.sleep(0.1)
            job.produce([(b"k", b'{"score": 0.25, "label": 0}')] * 600)
            assert job.end_offset(0) == 900
            worker.signal(signal.SIGCONT)
            assert worker.exit_code(60) == 3, worker.text()[-3000:]
            assert REPLACED in worker.text()
            assert "records of that epoch end at 300, so records were lost" in worker.text()
        assert job.state()["events"] == 600

        checked = rocstream("check", "-c", job.path)
        assert checked.code == 3, checked.out
        sentence = next(line for line in checked.out.splitlines() if REPLACED in line)
        with job.worker() as worker:
            assert worker.exit_code() == 3, worker.text()[-3000:]
            assert sentence.removeprefix("✗ ") in worker.text()
        with job.worker("--accept-gap") as worker:
            worker.wait_for(lambda: job.state()["events"] == 600 + 900)
