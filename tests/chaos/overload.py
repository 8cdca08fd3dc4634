"""A source that is full and a broker that takes no writes: memory must stay flat, nothing be lost.

The writes are refused for want of replicas (min.insync.replicas above the replication), which is
how a broker that cannot write still serves reads: the worker could go on fetching for ever.
"""

from __future__ import annotations

import itertools
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from checker import Window
from crew import Crew
from ground import drain, expected_count, ground, judge, understand_source
from reading import Reader
from source import publish
from stream import records

if TYPE_CHECKING:
    from checker import Verdict
    from crew import Ended, Worker
    from ground import Ground

WINDOWS = (Window("each", 64, 1),)
"""An update for every event: the most that a worker can have to hold back."""

BUFFERED_EVENTS = 80_000
"""What a task holds at the most before it fetches no more: 20,000 updates that wait, as many in
the transaction under way, and runs that are fetched."""

GROWTH_BYTES = 16 << 20
"""Between the middle and the end of the stall: full is full, and what grows still has no bound."""

SAMPLE_SECONDS = 0.5


class Memory(NamedTuple):
    """Resident bytes of a worker: before the stall, in its middle, at its end, and the most."""

    before: int
    middle: int
    end: int
    peak: int


class Result(NamedTuple):
    """What came of a run."""

    verdict: Verdict
    memory: Memory
    stalled_s: float
    refused: bool
    ended: list[Ended]
    events: int

    @property
    def good(self) -> bool:
        """Whether nothing was found, and memory stood still."""
        grown = self.memory.end - self.memory.middle
        return self.verdict.good and self.refused and not self.ended and grown < GROWTH_BYTES


def run(seconds: float, partitions: int, seed: int) -> Result:
    """Fill the source, stop the writes for a time, let them go on, and check."""
    with ground(partitions, windows=WINDOWS) as made:
        crew = Crew(made.job.path, made.folder)
        try:
            return _run(made, crew, seconds, seed)
        finally:
            crew.close()


def _run(made: Ground, crew: Crew, seconds: float, seed: int) -> Result:
    partitions = made.job.settings.topics.partitions
    goal = 1.5 * BUFFERED_EVENTS * partitions
    full, count = [], 0
    stream = records(seed)
    while count < goal:
        full.append(next(stream))
        count += full[-1].events
    # A part for the worker to warm up with.
    warm = len(full) // 10
    publish(made.servers, made.job.settings.topics.events, itertools.islice(full, warm))
    worker = crew.start()
    with Reader(made.servers, made.job.settings.topics.updates) as reader:
        updates = drain(reader, 1, crew)
        updates += _settle(reader)
        before = worker.resident()
        _refuse(made, refuse=True)
        _say(f"writes are refused, {count:,} events to read")
        publish(made.servers, made.job.settings.topics.events, full[warm:])
        # What was under way may still come.
        updates += _settle(reader)
        samples = _watch(worker, crew, seconds)
        came = _settle(reader)
        _refuse(made, refuse=False)
        _say(f"writes are taken again; {came} updates came meanwhile")
        understood = understand_source(made)
        drain(reader, expected_count(understood, WINDOWS) - updates - came, crew)
    crew.sweep()
    crew.stop()
    _say("checking")
    memory = Memory(before, samples[len(samples) // 2], samples[-1], max(samples))
    verdict = judge(made, understood, WINDOWS, h_updates=300)
    return Result(verdict, memory, seconds, came == 0, crew.ended, understood.events)


def _refuse(made: Ground, *, refuse: bool) -> None:
    topics = made.job.settings.topics
    for topic in (topics.updates, topics.rejected, made.changelog):
        made.configure(topic, {"min.insync.replicas": "2" if refuse else "1"})


def _watch(worker: Worker, crew: Crew, seconds: float) -> list[int]:
    samples = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not crew.sweep():
        time.sleep(SAMPLE_SECONDS)
        samples.append(worker.resident())
    return samples


def _settle(reader: Reader) -> int:
    """Read until nothing more comes for a second."""
    found, quiet = 0, time.monotonic()
    while time.monotonic() - quiet < 1.0:
        more = len(reader.poll())
        found += more
        if more:
            quiet = time.monotonic()
    return found


def report(result: Result) -> str:
    """Write what was measured."""
    memory = result.memory
    lines = [
        "# Overload",
        "",
        "Nothing was found" if result.good else "FAULTS WERE FOUND",
        "",
        f"events, with an update each: {result.events:,}",
        f"no writes for: {result.stalled_s:.0f} s",
        f"resident memory of the worker before: {_mb(memory.before)}",
        f"resident memory, most: {_mb(memory.peak)}",
        f"resident memory, growth in the second half: {_mb(memory.end - memory.middle)}",
        "",
        *(f"{kind}: {count}" for kind, count in result.verdict.counts.items()),
        *(f"{ended}" for ended in result.ended),
        *(f"{kind}: {examples}" for kind, examples in result.verdict.examples.items()),
        "" if result.refused else "updates came while writes were refused",
    ]
    return "\n".join(lines)


def _mb(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def _say(text: str) -> None:
    print(f"      {text}", file=sys.stderr, flush=True)
