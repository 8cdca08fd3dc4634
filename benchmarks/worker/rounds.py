"""Rounds of measurements on one broker: the events produced once, everyone run on them in turn."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from benchmarks.worker.measure import run

if TYPE_CHECKING:
    from benchmarks.worker.contestants import Contestant, Job
    from benchmarks.worker.kafka import Broker
    from benchmarks.worker.measure import Reading


def measure(
    broker: Broker, job: Job, plan: list[tuple[Contestant, int]], runs: int
) -> dict[str, list[Reading]]:
    """Run each contestant on so many of the job's events, `runs` times in turn."""
    prefix = f"bench-{os.getpid()}-{time.monotonic_ns()}-"
    readings: dict[str, list[Reading]] = {}
    try:
        jobs = {count: _filled(broker, job, prefix, count) for count in {n for _, n in plan}}
        for number in range(runs):
            for one, count in plan:
                name = f"{prefix}{one.name}-{number}"
                reading = _run(broker, one, replace(jobs[count], name=name))
                readings.setdefault(one.name, []).append(reading)
                say(f"{one.name}: {reading.steady:,.0f} events/s steady, {reading.wall:.1f} s")
    finally:
        broker.delete(broker.topics(prefix))
    return readings


def _filled(broker: Broker, job: Job, prefix: str, count: int) -> Job:
    workload = job.workload.first(count)
    events = f"{prefix}events-{count}"
    broker.create(events, job.partitions)
    seconds = broker.fill(events, workload)
    say(f"produced {count:,} events in {seconds:.1f} s")
    return replace(job, workload=workload, events=events)


def _run(broker: Broker, one: Contestant, job: Job) -> Reading:
    folder = job.folder / job.name
    folder.mkdir()
    job = replace(job, folder=folder, updates=f"{job.name}-updates")
    broker.create(job.updates, job.partitions, message_timestamp_type="LogAppendTime")
    return run(one, job)


def say(text: str) -> None:
    """Tell how far the measurement has come."""
    print(text, file=sys.stderr, flush=True)
