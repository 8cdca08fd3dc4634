"""What a worker has read, worked out and committed it lets go of: its memory stays as it is."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.worker.load import Load, Plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from jobs import Job

pytestmark = [pytest.mark.broker, pytest.mark.slow]

COUNTED = str(Path(__file__).parents[1] / "support" / "counted.py")

# Each key's window is full within 4 s. A fetch brings what was sent in 20 ms, of each partition, so
# that something kept for each fetch, each batch or each transaction is kept thousands of times.
PLAN = Plan(3_000, keys=20, pool=30_000)
WARM, LONG, LOOKS = 8, 12, 4

FEW_BLOCKS = 400
"""By so many the count of a worker that keeps nothing goes up and down."""


def test_a_worker_holds_on_to_nothing_that_it_has_committed(new_job: Callable[..., Job]) -> None:
    job = new_job()
    table = job.folder / "blocks"
    with (
        job.worker(program=(COUNTED, str(table))) as worker,
        Load(job.servers, job.settings.topics.events, PLAN) as load,
    ):
        worker.wait_until_ready()
        before = len(blocks := counted(table))
        worker.wait_for(lambda: len(counted(table)) >= before + WARM + LONG + LOOKS)
        blocks = counted(table)[before + WARM :]
        sent = load.stop()
        worker.signal(signal.SIGTERM)
        assert worker.exit_code() == 0, worker.text()[-3000:]
    # It was not idle meanwhile.
    assert job.state()["events"] > (WARM + LONG) * PLAN.rate / 2, sent
    # The least of a few looks: what is on its way at one moment is no longer at another.
    assert min(blocks[-LOOKS:]) - min(blocks[:LOOKS]) < FEW_BLOCKS, blocks


def counted(table: Path) -> list[int]:
    """Return what the worker has told so far."""
    if not table.exists():
        return []
    return [int(line) for line in table.read_text().splitlines(keepends=True) if line[-1] == "\n"]
