"""A long run at a steady rate: every update followed, and a line of figures every ten seconds."""

from __future__ import annotations

import os
import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import orjson
from checker import Window
from confluent_kafka import Consumer, TopicPartition
from crew import Crew, cpu
from ground import ground, on_java
from reading import Reader
from soak_report import Result, Sample, tell

from benchmarks.worker.load import Load, Plan

if TYPE_CHECKING:
    from pathlib import Path

    from crew import Worker
    from ground import Ground

WINDOWS = (Window("last-10k", 10_000, 100),)
PARTITIONS = 4
COMMIT_INTERVAL = "100ms"
"""The default of the settings; other runs here commit more often, to have more to break."""

SAMPLE_SECONDS = 10.0
PATIENCE_SECONDS = 60.0

# What is produced in a minute at the highest rate; more fills disk and page cache for nothing.
KEEP = {
    "retention.bytes": str(512 << 20),
    "segment.bytes": str(64 << 20),
    "file.delete.delay.ms": "1000",
}
BROKER = {"log.retention.check.interval.ms": "5000"}


class Order:
    """Follows the updates: each key's `seq` goes up by one.

    Attributes
    ----------
    last
        The newest `seq` of each key.
    ages
        Seconds from the event that made a window slide to its update being read, of the updates
        since they were last taken away from here.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.last: Counter[str] = Counter()
        self.updates = 0
        self.faults = 0
        self.ages: list[float] = []

    def follow(self, seconds: float) -> None:
        """Look at what comes within a time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = self._reader.poll(0.05)
            now = time.time()
            for seen in found:
                update = orjson.loads(seen.value or b"null")
                key, seq = update["key"], update["seq"]
                self.updates += 1
                self.faults += seq != self.last[key] + 1
                self.last[key] = seq
                self.ages.append(now - update["time"] / 1000)


class Log(NamedTuple):
    """How long the events topic is, and how far the group's offsets are behind its end."""

    events: int
    lag: int


class Topic:
    """Looks at the events topic and the group as operators do."""

    def __init__(self, made: Ground) -> None:
        topic = made.job.settings.topics.events
        self._places = [TopicPartition(topic, p) for p in range(PARTITIONS)]
        self._consumer = Consumer(
            {
                "bootstrap.servers": made.servers,
                "group.id": made.job.settings.kafka.group,
                "log_level": 0,
            }
        )

    def now(self) -> Log:
        """Return both, in records, all partitions together."""
        ends = sum(self._consumer.get_watermark_offsets(p, timeout=20)[1] for p in self._places)
        committed = self._consumer.committed(self._places, timeout=20)
        return Log(ends, ends - sum(max(0, place.offset) for place in committed))


class Cpu:
    """The CPU of everybody who shares the machine, in % of a core since the last look."""

    def __init__(self, **pids: int) -> None:
        self._pids = pids
        self._before = self._now()

    def since(self) -> dict[str, float]:
        """Return it by name."""
        before, self._before = self._before, self._now()
        wall = self._before["wall"] - before["wall"]
        return {name: (self._before[name] - before[name]) / wall * 100 for name in self._pids}

    def _now(self) -> dict[str, float]:
        return {"wall": time.monotonic(), **{name: cpu(pid) for name, pid in self._pids.items()}}


def run(minutes: float, rate: float, table: Path | None) -> Result:
    """Run for a time at a rate; write samples to a table as they come."""
    # It lives for long, and takes half of what there is: it should be a good one.
    broker = on_java(BROKER, brief=False, heap=1024)
    with ground(PARTITIONS, WINDOWS, commit_interval=COMMIT_INTERVAL, broker=broker) as made:
        topics = made.job.settings.topics
        for topic in (topics.events, topics.updates):
            made.configure(topic, KEEP)
        crew = Crew(made.job.path, made.folder)
        try:
            worker = crew.start()
            crew.wait_until(lambda: worker.doing() == "working", "a start")
            with (
                Reader(made.servers, topics.updates) as reader,
                Load(made.servers, topics.events, Plan(rate)) as load,
            ):
                return _soak(made, crew, worker, Order(reader), load, minutes, rate, table)
        finally:
            crew.close()


def _soak(
    made: Ground,
    crew: Crew,
    worker: Worker,
    order: Order,
    load: Load,
    minutes: float,
    rate: float,
    table: Path | None,
) -> Result:
    topic = Topic(made)
    samples: list[Sample] = []
    # It makes its batches first.
    crew.wait_until(lambda: load.check() or topic.now().events > 0, "the first events")
    pids = {"worker": worker.process.pid, "broker": made.broker.pid, "load": load.pid}
    used = Cpu(**pids, checker=os.getpid())
    began = last = time.monotonic()
    log, updates = topic.now(), 0
    while time.monotonic() - began < minutes * 60 and not crew.sweep():
        order.follow(SAMPLE_SECONDS)
        load.check()
        before, log = log, topic.now()
        now = time.monotonic()
        samples.append(
            Sample(
                now - began,
                (log.events - before.events) / (now - last),
                (order.updates - updates) / (now - last),
                log.lag,
                *(np.percentile(order.ages, [50, 100]) if order.ages else [np.nan, np.nan]),
                worker.resident() / 1e6,
                **{f"{name}_cpu": percent for name, percent in used.since().items()},
            )
        )
        last, updates = now, order.updates
        order.ages.clear()
        tell(samples, table)
    sent = load.stop()
    expected = Counter({key: count // WINDOWS[0].slide for key, count in sent.items()})
    deadline = time.monotonic() + PATIENCE_SECONDS
    while order.last != expected and time.monotonic() < deadline and not crew.sweep():
        order.follow(0.1)
    crew.sweep()
    crew.stop()
    missing = sum(abs(seq - order.last[key]) for key, seq in expected.items())
    return Result(
        rate,
        samples,
        order.faults + missing,
        order.updates,
        sent.total(),
        topic.now().lag,
        crew.ended,
    )
