"""A topic replayed, and read by the live worker, in turn: the same events on one broker."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.worker.contestants import Job, ours
from benchmarks.worker.kafka import Broker, running
from benchmarks.worker.measure import run

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.worker.workload import Workload

TOPIC = "replay-benchmark"
PARTITIONS = 4
COMMIT_SECONDS = 0.1
"""Between transactions of the worker, as it has it by default."""


def measure(
    workload: Workload, runs: int, replay: Callable[[str], dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return what the live worker took and what the replays took, `runs` times each.

    Parameters
    ----------
    workload
        The events.
    runs
        How often.
    replay
        Replays the topic of `kafka:servers/topic`.
    """
    live, replayed = [], []
    with running(None) as servers, tempfile.TemporaryDirectory() as folder:
        broker = Broker(servers)
        broker.create(TOPIC, PARTITIONS)
        broker.fill(TOPIC, workload)
        for number in range(runs):
            name = f"{TOPIC}-{number}"
            job = Job(
                servers, name, TOPIC, f"{name}-updates", PARTITIONS, workload, Path(folder) / name
            )
            job.folder.mkdir()
            broker.create(job.updates, PARTITIONS, message_timestamp_type="LogAppendTime")
            reading = run(ours(COMMIT_SECONDS), job)
            live.append(
                {
                    "events": workload.events,
                    "updates": sum(workload.updates.values()),
                    "seconds": workload.events / reading.steady,
                    "cpu": workload.events * reading.cpu_steady,
                    "peak": reading.peak,
                    "last": {},
                }
            )
            replayed.append(replay(f"kafka:{servers}/{TOPIC}"))
    return live, replayed
