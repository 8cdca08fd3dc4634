"""A long run at a steady rate: memory, lag and CPU every ten seconds, and every update in order."""

from __future__ import annotations

import csv
import random
import sys
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import orjson
from checker import Window
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from crew import Crew
from ground import ground
from reading import Reader
from source import PLAIN

if TYPE_CHECKING:
    from pathlib import Path

    from crew import Ended, Worker
    from ground import Ground

WINDOWS = (Window("last-10k", 10_000, 100),)
PARTITIONS = 4
KEYS = 100
POOL = 200_000
"""Events that are made once, and sent again and again."""

SAMPLE_SECONDS = 10.0
WARM_UP = 0.25
"""The part of the run in which windows fill up, left out of the slope."""

KEEP = {"retention.bytes": str(512 << 20), "segment.bytes": str(64 << 20)}


class Sample(NamedTuple):
    """A line of the CSV file."""

    seconds: float
    events_per_s: float
    updates_per_s: float
    lag: int
    resident_mb: float
    cpu_percent: float


class Result(NamedTuple):
    """What came of a soak; `faults` are updates out of order, repeated or missing."""

    samples: list[Sample]
    faults: int
    updates: int
    events: int
    ended: list[Ended]

    @property
    def good(self) -> bool:
        """Whether every update came once and in order, and the worker stayed."""
        return not self.faults and not self.ended


class Load:
    """Sends the pool round and round, at a rate, in a thread."""

    def __init__(self, made: Ground, rate: float) -> None:
        rng = random.Random(1)
        keys = [b"key-%03d" % number for number in range(KEYS)]
        self._pool = []
        for _ in range(POOL):
            label = int(rng.random() < 0.2)
            value = {"score": round(rng.gauss(label, 1), 3), "label": label}
            self._pool.append((rng.choice(keys), orjson.dumps(value)))
        self._topic = made.job.settings.topics.events
        self._producer = Producer(
            {
                "bootstrap.servers": made.servers,
                **PLAIN,
                "linger.ms": 20,
                "compression.type": "lz4",
                "queue.buffering.max.messages": 500_000,
            }
        )
        self._rate = rate
        self._stop = threading.Event()
        self._failed: list[KafkaError] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.sent = 0

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, with everything delivered."""
        self._stop.set()
        self._thread.join(60)
        if self._thread.is_alive() or self._producer.flush(60) or self._failed:
            raise RuntimeError(f"the load was not delivered: {self._failed[:1]}")

    def counts(self) -> dict[str, int]:
        """Return how many events each key was sent."""
        rounds, rest = divmod(self.sent, POOL)
        found: dict[str, int] = dict.fromkeys((key.decode() for key, _ in self._pool), 0)
        for at, (key, _) in enumerate(self._pool):
            found[key.decode()] += rounds + (at < rest)
        return found

    def _run(self) -> None:
        began = time.monotonic()
        while not self._stop.wait(0.02):
            due = int((time.monotonic() - began) * self._rate)
            while self.sent < due and not self._stop.is_set():
                key, value = self._pool[self.sent % POOL]
                try:
                    self._producer.produce(self._topic, value, key, on_delivery=self._on_delivery)
                except BufferError:
                    self._producer.poll(0.05)
                else:
                    self.sent += 1
            self._producer.poll(0)

    def _on_delivery(self, error: KafkaError | None, _: object) -> None:
        if error is not None:
            self._failed.append(error)


class Order:
    """Follows the updates: each key's `seq` goes up by one."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.last: dict[str, int] = {}
        self.updates = 0
        self.faults = 0

    def follow(self, seconds: float) -> None:
        """Look at what comes within a time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for seen in self._reader.poll(0.1):
                update = orjson.loads(seen.value or b"null")
                key, seq = update["key"], update["seq"]
                self.updates += 1
                self.faults += seq != self.last.get(key, 0) + 1
                self.last[key] = seq


def run(minutes: float, rate: float, table: Path | None) -> Result:
    """Run for a time at a rate; write samples as they come."""
    with ground(PARTITIONS, WINDOWS) as made:
        topics = made.job.settings.topics
        for topic in (topics.events, topics.updates):
            made.configure(topic, KEEP)
        crew = Crew(made.job.path, made.folder)
        try:
            worker = crew.start()
            crew.wait_until(lambda: worker.doing() == "working", "a start")
            with Reader(made.servers, topics.updates) as reader:
                return _soak(made, crew, worker, Order(reader), minutes, rate, table)
        finally:
            crew.close()


def _soak(
    made: Ground,
    crew: Crew,
    worker: Worker,
    order: Order,
    minutes: float,
    rate: float,
    table: Path | None,
) -> Result:
    load = Load(made, rate)
    lag = Lag(made)
    samples: list[Sample] = []
    load.start()
    began = last = time.monotonic()
    before = (0, 0, worker.cpu())
    while time.monotonic() - began < minutes * 60 and not crew.sweep():
        order.follow(SAMPLE_SECONDS)
        now = time.monotonic()
        counts = (load.sent, order.updates, worker.cpu())
        events, updates, cpu = (
            (count - former) / (now - last) for count, former in zip(counts, before, strict=True)
        )
        resident = worker.resident() / 1e6
        samples.append(Sample(now - began, events, updates, lag.now(), resident, cpu * 100))
        last, before = now, counts
        _tell(samples, table)
    load.stop()
    expected = {key: count // WINDOWS[0].slide for key, count in load.counts().items()}
    deadline = time.monotonic() + 60
    while order.last != expected and time.monotonic() < deadline and not crew.sweep():
        order.follow(0.5)
    crew.sweep()
    crew.stop()
    missing = sum(abs(seq - order.last.get(key, 0)) for key, seq in expected.items())
    return Result(samples, order.faults + missing, order.updates, load.sent, crew.ended)


class Lag:
    """How far the group's committed offsets are behind the events topic, as operators see it."""

    def __init__(self, made: Ground) -> None:
        topic = made.job.settings.topics.events
        self._places = [TopicPartition(topic, p) for p in range(PARTITIONS)]
        self._consumer = Consumer(
            {"bootstrap.servers": made.servers, "group.id": made.job.settings.kafka.group}
        )

    def now(self) -> int:
        """Return it in records, all partitions together."""
        ends = sum(self._consumer.get_watermark_offsets(p, timeout=20)[1] for p in self._places)
        return ends - sum(
            max(0, place.offset) for place in self._consumer.committed(self._places, timeout=20)
        )


def _tell(samples: list[Sample], table: Path | None) -> None:
    new = samples[-1]
    print(
        f"{new.seconds:6.0f} s  {new.events_per_s:,.0f} events/s, {new.updates_per_s:,.0f} "
        f"updates/s, lag {new.lag:,}, {new.resident_mb:.1f} MB, {new.cpu_percent:.0f} % CPU",
        file=sys.stderr,
        flush=True,
    )
    if table is not None:
        with table.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(Sample._fields)
            writer.writerows([round(value, 3) for value in sample] for sample in samples)


def slope(samples: list[Sample]) -> float:
    """Return the growth of resident memory in MB per hour, once windows are full."""
    warm = samples[int(len(samples) * WARM_UP) :]
    if len(warm) < 2:
        return float("nan")
    hours = np.array([sample.seconds for sample in warm]) / 3600
    return float(np.polyfit(hours, [sample.resident_mb for sample in warm], 1)[0])


def plot(samples: list[Sample], path: Path) -> None:
    """Draw memory, lag, rates and CPU over time; the suffix tells the format."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - a second to load, rarely wanted

    figure = Figure(figsize=(9, 9), layout="constrained")
    axes = figure.subplots(4, 1, sharex=True)
    minutes = [sample.seconds / 60 for sample in samples]
    for axis, name, label in (
        (axes[0], "resident_mb", "resident memory, MB"),
        (axes[1], "lag", "lag, records"),
        (axes[2], "events_per_s", "events/s"),
        (axes[3], "cpu_percent", "CPU, % of a core"),
    ):
        axis.plot(minutes, [getattr(sample, name) for sample in samples], lw=1.2)
        axis.set_ylabel(label)
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
    axes[3].set_xlabel("minutes")
    figure.savefig(path)


def report(result: Result) -> str:
    """Write what was measured."""
    samples = result.samples
    warm = samples[int(len(samples) * WARM_UP) :] or samples
    lags = [sample.lag for sample in warm]
    lines = [
        "# Soak",
        "",
        "Nothing was found" if result.good else "FAULTS WERE FOUND",
        "",
        f"events: {result.events:,}, updates: {result.updates:,}",
        f"updates missing, repeated or out of order: {result.faults}",
        f"events/s: {np.mean([sample.events_per_s for sample in warm]):,.0f}",
        f"CPU: {np.mean([sample.cpu_percent for sample in warm]):.0f} % of a core",
        f"lag, records: median {np.median(lags):,.0f}, most {max(lags):,}",
        f"resident memory once warm: {warm[0].resident_mb:.1f} MB",
        f"resident memory at the end: {samples[-1].resident_mb:.1f} MB",
        f"its slope once warm: {slope(samples):+.1f} MB an hour",
        *(f"{ended}" for ended in result.ended),
    ]
    return "\n".join(lines)
