"""The load of the soak and of the latency benchmark: what it says it sent is in the topic."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jobs import Job

pytestmark = pytest.mark.broker

ROOT = Path(__file__).resolve().parents[2]
PARTITIONS = 3
KEYS = [b"model-%02d" % number for number in range(100)]
# More than its pool: some of the batches go twice.
POOL, ENOUGH = 20_000, 50_000


@contextmanager
def load(job: Job, topic: str, rate: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run it; it is killed at the end if it still runs."""
    with subprocess.Popen(
        [
            *(sys.executable, "-m", "benchmarks.worker.load", job.servers, topic),
            *("--rate", str(rate), "--pool", str(POOL)),
        ],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def length(job: Job) -> int:
    """Return how many events the topic holds."""
    return sum(job.end_offset(partition) for partition in range(PARTITIONS))


def test_the_topic_holds_what_the_load_says_it_sent(new_job: Callable[..., Job]) -> None:
    job = new_job(partitions=PARTITIONS)
    topic = job.settings.topics.events
    # So that Kafka's own client tells where they belong.
    job.produce((key, None) for key in KEYS)
    places = {record.key: record.partition for record in job.read(topic, len(KEYS))}
    assert len(set(places.values())) == PARTITIONS
    begun = time.time()
    with load(job, topic, 100_000) as process:
        deadline = time.monotonic() + 60
        while length(job) < ENOUGH:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
        said, complaint = process.communicate(timeout=30)
        assert process.returncode == 0, complaint
    ended = time.time()
    sent: dict[str, int] = orjson.loads(said)
    records = [r for r in job.read(topic, sum(sent.values()) + len(KEYS)) if r.value is not None]
    assert Counter((record.key or b"").decode() for record in records) == sent
    assert len(records) + len(KEYS) == length(job)
    events = [orjson.loads(record.value or b"") for record in records]
    assert all(0 < event["score"] < 1 and event["label"] in {0, 1} for event in events)
    assert all(begun - 1 < record.time / 1000 < ended for record in records)
    assert all(places[record.key] == record.partition for record in records)


def test_a_load_without_a_topic_ends_and_says_so(new_job: Callable[..., Job]) -> None:
    job = new_job(partitions=PARTITIONS)
    with load(job, "nowhere", 1_000) as process:
        _, complaint = process.communicate(timeout=60)
        assert process.returncode == 1
        assert b"there is no topic nowhere" in complaint
