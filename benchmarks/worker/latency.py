"""`python -m benchmarks.worker.latency`: from an event's append to its update being visible.

Events are produced at a steady rate to a topic with append times; the time of an update is that of
the event that made the window slide, so that its age when a read_committed reader gets it is the
latency, by the clock of this one machine, in whole ms. Whoever produces, the worker and the reader
are a process each: a reader that waited for its own process to produce would measure that too.

The first updates are told by themselves: a broker that has just been started runs code that Java
has not compiled yet, for 20 s and more, and so long its answers take several times what they take
later. A worker that has just started catches up meanwhile.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
import orjson
import typer
from confluent_kafka import Consumer, KafkaException, TopicPartition

from benchmarks.worker import table
from benchmarks.worker.contestants import Job, program, settings_file
from benchmarks.worker.kafka import Broker, running
from benchmarks.worker.load import Load, Plan
from benchmarks.worker.measure import STALL
from benchmarks.worker.process import Child
from benchmarks.worker.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Iterator

LINGER_MS = 5  # between two portions of events
WARM_UP = 30.0  # seconds from the first update until what is measured


class Ages(NamedTuple):
    """Ages of updates in ms when they became visible, and the worker's CPU seconds per event."""

    updates: int
    p50: float
    p99: float
    largest: float
    cpu: float


class Measured(NamedTuple):
    """Ages in the warm-up, and behind it."""

    warming: Ages
    warm: Ages


def main(
    *,
    rate: Annotated[int, typer.Option(help="Events a second.", min=200)] = 20_000,
    seconds: Annotated[float, typer.Option(help="Measured, behind the warm-up.")] = 25.0,
    warm_up: Annotated[float, typer.Option(help="Seconds of updates before.")] = WARM_UP,
    keys: Annotated[int, typer.Option(min=1)] = 100,
    size: Annotated[int, typer.Option(min=1)] = 10_000,
    slide: Annotated[int, typer.Option(min=1)] = 100,
    commit_interval: Annotated[float, typer.Option(help="Seconds.")] = 0.01,
    bootstrap_servers: Annotated[
        str | None, typer.Option(help="A Kafka that runs; without it one is started.")
    ] = None,
) -> None:
    """Measure the latency of updates at a steady rate of events."""
    workload = Workload(0, keys, size, slide)
    with running(bootstrap_servers) as address, tempfile.TemporaryDirectory() as folder:
        found = measure(address, Path(folder), workload, rate, seconds, commit_interval, warm_up)
    rows = [["", "events/s", "commit_interval", "updates", "p50 ms", "p99 ms", "largest", "CPU us"]]
    rows += [
        [
            name,
            f"{rate:,}",
            f"{commit_interval * 1000:.0f} ms",
            f"{ages.updates:,}",
            f"{ages.p50:.0f}",
            f"{ages.p99:.0f}",
            f"{ages.largest:.0f}",
            f"{ages.cpu * 1e6:.1f}",
        ]
        for name, ages in (("warm-up", found.warming), ("measured", found.warm))
    ]
    table.rows(sys.stdout, rows)


def measure(
    address: str,
    folder: Path,
    workload: Workload,
    rate: int,
    seconds: float,
    interval: float,
    warm_up: float = WARM_UP,
) -> Measured:
    """Run a worker at a rate of events a second; return the ages of the updates."""
    name = f"latency-{os.getpid()}-{time.monotonic_ns()}"
    job = Job(address, name, f"{name}-events", f"{name}-updates", 4, workload, folder / name)
    job.folder.mkdir()
    path = settings_file(job, interval)
    broker = Broker(address)
    plan = Plan(rate, workload.keys, linger_ms=LINGER_MS)
    try:
        broker.create(job.events, job.partitions, message_timestamp_type="LogAppendTime")
        subprocess.run(
            [program(), "topics", "create", "-c", path],
            check=True,
            timeout=STALL,
            stdout=subprocess.DEVNULL,
        )
        with (
            Child([program(), "worker", "-c", path], job.folder / "log.txt") as child,
            Load(address, job.events, plan) as source,
        ):
            found = _ages(job, child, source, warm_up, seconds)
    finally:
        broker.delete(broker.topics(name))
    return found


def _ages(job: Job, child: Child, source: Load, warm_up: float, seconds: float) -> Measured:
    warming: list[float] = []
    warm: list[float] = []
    first = None
    last = time.monotonic()
    for now, value in _updates(job):
        child.check()
        source.check()
        if value is None:
            if time.monotonic() - last > STALL:
                raise RuntimeError(f"no update for {STALL:.0f} s:\n{child.tail()}")
            continue
        last = time.monotonic()
        if first is None:
            first, begun = last, child.cpu()
        age = now - orjson.loads(value)["time"]
        if last < first + warm_up:
            warming.append(age)
            continue
        if not warm:
            between = child.cpu()
        warm.append(age)
        if last > first + warm_up + seconds:
            break
    slide, end = job.workload.slide, child.cpu()
    return Measured(_summary(warming, slide, between - begun), _summary(warm, slide, end - between))


def _summary(ages: list[float], slide: int, cpu: float) -> Ages:
    if not ages:
        return Ages(0, math.nan, math.nan, math.nan, math.nan)
    p50, p99 = np.percentile(ages, [50, 99])
    return Ages(len(ages), float(p50), float(p99), max(ages), cpu / (len(ages) * slide))


def _updates(job: Job) -> Iterator[tuple[float, bytes | None]]:
    """Yield each update when it comes, with the time (ms); None when none has for a while."""
    reader = Consumer(
        {
            "bootstrap.servers": job.bootstrap_servers,
            "group.id": f"{job.updates}-reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 100,
            "fetch.error.backoff.ms": 5,
        }
    )
    reader.assign([TopicPartition(job.updates, p, 0) for p in range(job.partitions)])
    try:
        while True:
            message = reader.poll(0.1)
            if message is None:
                yield 0.0, None
                continue
            if message.error() is not None:
                raise KafkaException(message.error())
            yield time.time() * 1000, message.value() or b""
    finally:
        reader.close()


if __name__ == "__main__":
    typer.run(main)
