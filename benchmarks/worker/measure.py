"""One measured run: start a contestant, follow its updates, tell what the figures mean.

Every figure is taken from outside the contestant: from the clock of this process, from the
updates topic as a read_committed reader sees it, from the times at which the broker appended the
updates, and from the operating system's account of the process.
"""

from __future__ import annotations

import math
import subprocess
import time
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import orjson

from benchmarks.worker.kafka import Updates
from benchmarks.worker.process import Child

if TYPE_CHECKING:
    from benchmarks.worker.contestants import Contestant, Job
    from benchmarks.worker.workload import Workload

STALL = 60.0  # seconds without a new update that end a run
WARM = 0.1  # share of the updates left out at the front for the steady rate


@dataclass(frozen=True)
class Reading:
    """What one run showed.

    Attributes
    ----------
    events : int
        Events in the topic.
    first : float
        Seconds from starting the process until its first update was visible.
    wall : float
        Seconds from starting the process until the last update of the last key was visible.
    steady : float
        Events a second between the appends of the update at one tenth and of the last one.
    cpu : float
        CPU seconds of the process from its start to the last update, start-up included.
    cpu_steady : float
        CPU seconds per event over the stretch of `steady`.
    peak : int
        Largest resident memory, bytes.
    error : float
        Largest error of the AUC in the last update of a key.
    surplus : int
        Updates beyond those that the events call for.
    """

    events: int
    first: float
    wall: float
    steady: float
    cpu: float
    cpu_steady: float
    peak: int
    error: float
    surplus: int


def run(contestant: Contestant, job: Job) -> Reading:
    """Run `contestant` until every update of the workload is visible; stop it; return the figures.

    Raises
    ------
    RuntimeError
        The process ended or no update came for a minute; with the end of its output.
    """
    expected = job.workload.updates
    total = sum(expected.values())
    for command in contestant.prepare(job):
        subprocess.run(command, check=True, timeout=STALL, stdout=subprocess.DEVNULL)
    with Updates(job.bootstrap_servers, job.updates, job.partitions) as updates:
        begun = time.monotonic()
        with Child(contestant.command(job), job.folder / "log.txt") as child:
            account = Account(child)
            _wait(child, updates, 1, account)
            first = time.monotonic() - begun
            _wait(child, updates, total, account)
            wall, cpu, peak = time.monotonic() - begun, child.cpu(), child.peak()
    _check_counts(updates, expected)
    stretch = Stretch.of(updates.appended, job.workload.slide)
    return Reading(
        events=job.workload.events,
        first=first,
        wall=wall,
        steady=stretch.rate(),
        cpu=cpu,
        cpu_steady=account.between(stretch.start, stretch.end) / stretch.events,
        peak=peak,
        error=_worst(updates, job.workload),
        surplus=len(updates.appended) - total,
    )


class Stretch(NamedTuple):
    """The steady part of a run: from the append of the update at one tenth to that of the last.

    All updates appended up to its first instant count as done then, so a burst (a transaction) at
    either end weighs alike.
    """

    start: int  # ms since the epoch, by the broker's clock
    end: int
    events: int

    @classmethod
    def of(cls, appended: list[int], slide: int) -> Stretch:
        """Return the stretch that append times (ms) of updates show."""
        times = sorted(appended)
        start, end = times[int(len(times) * WARM)], times[-1]
        if start == end:
            raise RuntimeError("all updates were appended at once: too few events for a rate")
        return cls(start, end, (len(times) - bisect_right(times, start)) * slide)

    def rate(self) -> float:
        """Events a second."""
        return self.events / (self.end - self.start) * 1000


class Account:
    """CPU seconds of a process over time."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._times: list[float] = []  # ms since the epoch
        self._used: list[float] = []

    def note(self) -> None:
        """Note what it has used up to now."""
        self._times.append(time.time() * 1000)
        self._used.append(self._child.cpu())

    def between(self, start: float, end: float) -> float:
        """CPU seconds from `start` to `end` (ms since the epoch), linear between the notes."""
        first, last = np.interp([start, end], self._times, self._used)
        return float(last - first)


def _wait(child: Child, updates: Updates, total: int, account: Account) -> None:
    moved = time.monotonic()
    while len(updates.appended) < total:
        moved_on = updates.poll()
        child.check()
        account.note()
        if moved_on:
            moved = time.monotonic()
        elif time.monotonic() - moved > STALL:
            msg = f"{len(updates.appended)} of {total} updates, then none for {STALL:.0f} s"
            raise RuntimeError(f"{msg}:\n{child.tail()}")


def _check_counts(updates: Updates, expected: dict[str, int]) -> None:
    seen = {key.decode(): count for key, count in updates.counts.items()}
    short = {key: (seen.get(key, 0), n) for key, n in expected.items() if seen.get(key, 0) < n}
    if short:
        raise RuntimeError(f"updates missing, key: (seen, expected): {short}")


def _worst(updates: Updates, workload: Workload) -> float:
    worst = 0.0
    for key, auc in workload.last_auc.items():
        told = orjson.loads(updates.last[key.encode()])["auc"]
        if math.isnan(auc):
            continue
        worst = max(worst, abs(told - auc))
    return worst
