"""`python -m benchmarks.worker.recovery`: how long a restart with many windowed events takes.

The changelog is filled with full windows by the project's own packing, in one transaction for each
partition; then a worker is started and timed until its first update is visible. Each key's window
stands one event before a slide, so the first events in the topic make updates.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
import typer
from confluent_kafka import Producer

import config
import engine
from benchmarks.worker import table
from benchmarks.worker.contestants import Job, program, settings_file
from benchmarks.worker.kafka import TIMEOUT, Broker, Updates, running
from benchmarks.worker.measure import STALL
from benchmarks.worker.process import Child
from benchmarks.worker.workload import Workload
from worker import pages
from worker.pages import Cursor, MonitorState

if TYPE_CHECKING:
    from collections.abc import Iterator

PARTITIONS = 4
SLIDE = 100


class Restart(NamedTuple):
    """What a restart showed.

    Attributes
    ----------
    events : int
        In all windows.
    written : int
        Bytes of the changelog's records.
    first : float
        Seconds from starting the process until its first update was visible.
    peak, resident : int
        Largest resident memory until then, and what was resident then, in bytes.
    """

    events: int
    written: int
    first: float
    peak: int
    resident: int


def main(
    *,
    keys: Annotated[int, typer.Option(min=PARTITIONS)] = 1000,
    size: Annotated[int, typer.Option(help="Window, events of a key.", min=SLIDE)] = 10_000,
    rewrites: Annotated[
        int, typer.Option(help="How often each page is written: what compaction left.", min=1)
    ] = 1,
    bootstrap_servers: Annotated[
        str | None, typer.Option(help="A Kafka that runs; without it one is started.")
    ] = None,
) -> None:
    """Measure a restart, and one with a hundredth of the windows beside it."""
    with running(bootstrap_servers) as address, tempfile.TemporaryDirectory() as folder:
        found = [
            restart(address, Path(folder), number, size, rewrites)
            for number in (max(keys // 100, PARTITIONS), keys)
        ]
    rows = [["windowed events", "changelog MB", "first update s", "resident MB", "peak MB"]]
    rows += [
        [
            f"{one.events:,}",
            f"{one.written / 1e6:,.0f}",
            f"{one.first:.1f}",
            f"{one.resident / 1e6:,.0f}",
            f"{one.peak / 1e6:,.0f}",
        ]
        for one in found
    ]
    table.rows(sys.stdout, rows)
    resident, peak = per_event(*found)
    print(f"a windowed event takes {resident:.1f} bytes resident, {peak:.1f} at the peak")


def per_event(small: Restart, large: Restart) -> tuple[float, float]:
    """Return the bytes that a windowed event takes: resident after the restart, and at its peak."""
    events = large.events - small.events
    return (large.resident - small.resident) / events, (large.peak - small.peak) / events


def restart(address: str, folder: Path, keys: int, size: int, rewrites: int = 1) -> Restart:
    """Fill a changelog, start a worker on it, and time it to the first visible update."""
    name = f"recovery-{os.getpid()}-{keys}-{time.monotonic_ns()}"
    job = Job(
        address,
        name,
        f"{name}-events",
        f"{name}-updates",
        PARTITIONS,
        Workload(keys, keys, size, SLIDE),
        folder / name,
    )
    job.folder.mkdir()
    path = settings_file(job, 0.1)
    broker = Broker(address)
    try:
        for topic in (job.events, job.updates):
            broker.create(topic, PARTITIONS)
        subprocess.run(
            [program(), "topics", "create", "-c", path],
            check=True,
            timeout=STALL,
            stdout=subprocess.DEVNULL,
        )
        written = _fill(job, config.load(Path(path), {}), rewrites)
        with Updates(address, job.updates, PARTITIONS) as updates:
            begun = time.monotonic()
            with Child([program(), "worker", "-c", path], job.folder / "log.txt") as child:
                while not updates.poll():
                    child.check()
                    if time.monotonic() - begun > STALL:
                        raise RuntimeError(f"no update within {STALL:.0f} s:\n{child.tail()}")
                first = time.monotonic() - begun
                return Restart(keys * size, written, first, child.peak(), child.resident())
    finally:
        broker.delete(broker.topics(name))


def _fill(job: Job, settings: config.Settings, rewrites: int) -> int:
    """Write windows and cursor of each task, and an event for each key; return the bytes."""
    changelog = f"{job.name}-windows-changelog"
    written = 0
    for partition in range(job.partitions):
        producer = Producer(
            {
                "bootstrap.servers": job.bootstrap_servers,
                "transactional.id": f"{job.name}-fill-{partition}",
                "compression.type": "lz4",
                "queue.buffering.max.messages": 1_000_000,
            }
        )
        producer.init_transactions(TIMEOUT)
        producer.begin_transaction()
        for key, value in _records(job, settings, partition, rewrites):
            written += len(key) + len(value)
            _put(producer, changelog, partition, key, value)
        for number in range(partition, job.workload.keys, job.partitions):
            value = b'{"score": 0.5, "label": 1}'
            _put(producer, job.events, partition, job.workload.key(number).encode(), value)
        producer.commit_transaction(STALL)
    return written


def _put(producer: Producer, topic: str, partition: int, key: bytes, value: bytes) -> None:
    while True:
        try:
            producer.produce(topic, value, key, partition)
        except BufferError:
            producer.poll(0.05)
        else:
            return


def _records(
    job: Job, settings: config.Settings, partition: int, rewrites: int
) -> Iterator[tuple[bytes, bytes | None]]:
    monitor = settings.monitors[0]
    size = monitor.window.size
    numbers = range(partition, job.workload.keys, job.partitions)
    # One event before a slide.
    seen = (size // SLIDE + 1) * SLIDE - 1
    random = np.random.default_rng(partition)
    for number in numbers:
        window = engine.CountWindow(size)
        scores = np.round(random.random(seen), 10)
        labels = (random.random(seen) < 0.2).astype(np.uint8)
        times = 1_764_460_000_000 + 250 * np.arange(seen)
        window.extend(scores, labels, None, times)
        prefix = pages.key_prefix(monitor.name, job.workload.key(number))
        records: dict[bytes, bytes | None] = {}
        pages.write(records, window, prefix)
        for _ in range(rewrites):
            yield from records.items()
    state = MonitorState("count", SLIDE, len(numbers) * seen, len(numbers) * (seen // SLIDE))
    cursor = Cursor(job.events, "", 0, settings.event_fingerprint(), monitors={monitor.name: state})
    yield pages.CURSOR_KEY, pages.pack_cursor(cursor)


if __name__ == "__main__":
    typer.run(main)
