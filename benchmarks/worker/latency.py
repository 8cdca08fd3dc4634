"""`python -m benchmarks.worker.latency`: from an event's append to its update being visible.

Events are produced at a steady rate to a topic with append times; the time of an update is that of
the event that made the window slide, so that its age when a read_committed reader gets it is the
latency, by the clock of this one machine, in whole ms.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
import orjson
import typer
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from benchmarks.worker import table
from benchmarks.worker.contestants import Job, program, settings_file
from benchmarks.worker.kafka import TIMEOUT, Broker, running
from benchmarks.worker.measure import STALL
from benchmarks.worker.process import Child
from benchmarks.worker.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Iterator

STEP = 0.005  # seconds between two portions of events


class Ages(NamedTuple):
    """Ages of updates in ms when they became visible, and the worker's CPU seconds per event."""

    updates: int
    p50: float
    p99: float
    largest: float
    cpu: float


def main(
    *,
    rate: Annotated[int, typer.Option(help="Events a second.", min=200)] = 20_000,
    seconds: Annotated[float, typer.Option(help="Measured; some more go before.")] = 25.0,
    keys: Annotated[int, typer.Option(min=1)] = 100,
    size: Annotated[int, typer.Option(min=1)] = 10_000,
    slide: Annotated[int, typer.Option(min=1)] = 100,
    commit_interval: Annotated[float, typer.Option(help="Seconds.")] = 0.01,
    bootstrap_servers: Annotated[
        str | None, typer.Option(help="A Kafka that runs; without it one is started.")
    ] = None,
) -> None:
    """Measure the latency of updates at a steady rate of events."""
    workload = Workload(int(rate * (seconds + 60)), keys, size, slide)
    with running(bootstrap_servers) as address, tempfile.TemporaryDirectory() as folder:
        ages = measure(address, Path(folder), workload, rate, seconds, commit_interval)
    rows = [["events/s", "commit_interval", "updates", "p50 ms", "p99 ms", "largest", "CPU us"]]
    rows.append(
        [
            f"{rate:,}",
            f"{commit_interval * 1000:.0f} ms",
            f"{ages.updates:,}",
            f"{ages.p50:.0f}",
            f"{ages.p99:.0f}",
            f"{ages.largest:.0f}",
            f"{ages.cpu * 1e6:.1f}",
        ]
    )
    table.rows(sys.stdout, rows)


def measure(
    address: str, folder: Path, workload: Workload, rate: int, seconds: float, interval: float
) -> Ages:
    """Run a worker at a rate of events a second; return the ages of the updates.

    The first three seconds of updates are left out: a worker that has just started catches up.
    """
    name = f"latency-{os.getpid()}-{time.monotonic_ns()}"
    job = Job(address, name, f"{name}-events", f"{name}-updates", 4, workload, folder / name)
    job.folder.mkdir()
    path = settings_file(job, interval)
    broker = Broker(address)
    ended = Event()
    try:
        broker.create(job.events, job.partitions, message_timestamp_type="LogAppendTime")
        subprocess.run(
            [program(), "topics", "create", "-c", path],
            check=True,
            timeout=STALL,
            stdout=subprocess.DEVNULL,
        )
        source = Thread(target=_produce, args=(job, rate, ended), daemon=True)
        with Child([program(), "worker", "-c", path], job.folder / "log.txt") as child:
            source.start()
            try:
                found = _ages(job, child, seconds)
            finally:
                ended.set()
                source.join(TIMEOUT)
    finally:
        broker.delete(broker.topics(name))
    return found


def _produce(job: Job, rate: int, ended: Event) -> None:
    """Send events in small portions, at the moments that the rate asks for."""
    producer = Producer(
        {
            "bootstrap.servers": job.bootstrap_servers,
            "partitioner": "murmur2_random",
            "linger.ms": 1,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    messages = job.workload.messages()
    begun, sent = time.monotonic(), 0
    while not ended.wait(max(begun + sent / rate - time.monotonic(), 0)):
        for _ in range(int(rate * STEP)):
            key, value = next(messages)
            producer.produce(job.events, value, key)
            sent += 1
        producer.poll(0)
    producer.flush(TIMEOUT)


def _ages(job: Job, child: Child, seconds: float) -> Ages:
    ages: list[float] = []
    start = cpu = None
    last = time.monotonic()
    for now, value in _updates(job):
        child.check()
        if value is None:
            if time.monotonic() - last > STALL:
                raise RuntimeError(f"no update for {STALL:.0f} s:\n{child.tail()}")
            continue
        last = time.monotonic()
        if start is None:
            start = last
        if last < start + 3:
            continue
        if cpu is None:
            cpu = child.cpu()
        ages.append(now - orjson.loads(value)["time"])
        if last > start + 3 + seconds:
            break
    used = child.cpu() - (cpu or 0.0)
    p50, p99 = np.percentile(ages, [50, 99])
    events = len(ages) * job.workload.slide
    return Ages(len(ages), float(p50), float(p99), max(ages), used / events)


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
