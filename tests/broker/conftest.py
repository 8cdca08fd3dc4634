"""Fixtures of the tests on a real broker."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest
from jobs import GOOD, MONITOR, Job

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def new_job(kafka: Any, tmp_path: Path) -> Callable[..., Job]:
    """Make jobs with topics of their own: `new_job(text, partitions=3)`."""

    def make(text: str = MONITOR, partitions: int = 3, **message_bytes: int) -> Job:
        job = Job(kafka.bootstrap_servers, tmp_path, text, partitions)
        job.create_topics(**message_bytes)
        return job

    return make


@pytest.fixture
def fed_job(new_job: Callable[..., Job]) -> Callable[[int], Job]:
    """Make jobs of one partition that have taken in so many good events; nobody works on them."""

    def make(count: int) -> Job:
        job = new_job(partitions=1)
        job.produce([(b"k", GOOD)] * count)
        with job.worker() as worker:
            job.updates(count // 50)
            worker.signal(signal.SIGTERM)
            assert worker.exit_code() == 0, worker.text()[-3000:]
        return job

    return make
