"""A broker whose disk takes no more, under load: the worker waits, and goes on when there is room.

The disk is full by a limit on the size of the broker's files, which needs no rights: an append
beyond it fails as one to a full disk does. Kafka then takes the folder for lost, and ends.
"""

from __future__ import annotations

import resource
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from crew import Crew
from ground import drain, expected_count, ground, judge, understand_source
from reading import Reader
from source import Source

if TYPE_CHECKING:
    from checker import Verdict
    from crew import Ended
    from ground import Ground

ROOM_BYTES = 64 << 10
"""What the largest log may still grow by."""

PARTITIONS = 3
RATE = 4_000.0


class Result(NamedTuple):
    """What came of a run."""

    verdict: Verdict
    ended: list[Ended]
    events: int
    said: str

    @property
    def good(self) -> bool:
        """Whether nothing was found."""
        return self.verdict.good and not self.ended


def run(seconds: float, seed: int) -> Result:
    """Let the disk fill up, leave it so for a time, make room, and check."""
    with ground(PARTITIONS, java=True) as made:
        crew = Crew(made.job.path, made.folder)
        try:
            return _run(made, crew, seconds, seed)
        finally:
            crew.close()


def _run(made: Ground, crew: Crew, seconds: float, seed: int) -> Result:
    broker, topics = made.broker, made.job.settings.topics
    worker = crew.start()
    crew.wait_until(lambda: worker.doing() == "working", "a start")
    source = Source(made.servers, topics.events, RATE, seed)
    source.start()
    with Reader(made.servers, topics.updates) as reader:
        updates = drain(reader, 300, crew)
        logs = (broker.folder / "data").glob("*/*.log")
        limit = max(log.stat().st_size for log in logs) + ROOM_BYTES
        resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        _say(f"no file of the broker grows beyond {limit:,} bytes")
        crew.wait_until(lambda: broker.ended, "the broker's end")
        _say("the broker has given up; the worker waits")
        deadline = time.monotonic() + seconds
        crew.wait_until(lambda: time.monotonic() > deadline, "the wait", seconds + 10)
        broker.start()
        _say("there is room again")
        source.stop()
        understood = understand_source(made)
        updates += drain(reader, expected_count(understood) - updates, crew)
    crew.sweep()
    crew.stop()
    _say("checking")
    lines = [line for line in worker.text().splitlines() if "the broker" in line]
    verdict = judge(made, understood, h_updates=200)
    return Result(verdict, crew.ended, understood.events, "\n".join(lines[:6]))


def report(result: Result) -> str:
    """Write what was found."""
    lines = [
        "# A full disk",
        "",
        "Nothing was found" if result.good else "FAULTS WERE FOUND",
        "",
        f"events: {result.events:,}, updates: {result.verdict.updates:,}",
        *(f"{kind}: {count}" for kind, count in result.verdict.counts.items()),
        *(f"{ended}" for ended in result.ended),
        *(f"{kind}: {examples}" for kind, examples in result.verdict.examples.items()),
        "",
        "The worker said:",
        "",
        result.said,
    ]
    return "\n".join(lines)


def _say(text: str) -> None:
    print(f"      {text}", file=sys.stderr, flush=True)
