"""Fixtures of the tests on a real broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from jobs import Job

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MONITOR = """
[[monitor]]
name = "last-500"
window = { kind = "count", size = 500, slide = 50 }
metrics = ["auc", "h"]
"""


@pytest.fixture
def new_job(kafka: Any, tmp_path: Path) -> Callable[..., Job]:
    """Make jobs with topics of their own: `new_job(text, partitions=3)`."""

    def make(text: str = MONITOR, partitions: int = 3, *, rejected_bytes: int | None = None) -> Job:
        job = Job(kafka.bootstrap_servers, tmp_path, text, partitions)
        job.create_topics(rejected_bytes=rejected_bytes)
        return job

    return make
