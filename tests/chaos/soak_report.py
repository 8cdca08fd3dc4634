"""What a soak measured: as lines, a table, a report and a picture."""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from crew import Ended

WARM_UP = 0.25
"""The part of the run in which windows fill up, left out of means."""

STEADY = 0.99
"""The part of the rate asked for that must have been sent: else it was another load."""

FLAT = 0.02
"""By this part of itself memory may rise from the second quarter of the run to the last one. By
about as much it goes up and down with the size of what a fetch brings."""


class Sample(NamedTuple):
    """A line of the CSV file: of the time since the line before, but for lag and memory.

    `lag` is in records, by the group's offsets, which the worker commits every second or so; ages
    are those of updates when they were read, since the event that made the window slide; CPU is in
    % of a core.
    """

    seconds: float
    events_per_s: float
    updates_per_s: float
    lag: int
    age_median_s: float
    age_largest_s: float
    resident_mb: float
    worker_cpu: float
    broker_cpu: float
    load_cpu: float
    checker_cpu: float


class Result(NamedTuple):
    """What came of a soak.

    `rate` is what was asked for, `faults` are updates out of order, repeated or missing, and `lag`
    is what was left unread when the worker had been asked to end.
    """

    rate: float
    samples: list[Sample]
    faults: int
    updates: int
    events: int
    lag: int
    ended: list[Ended]

    @property
    def good(self) -> bool:
        """Whether the load was sent, every update came once, the worker stayed, and its memory."""
        return self.sent_all and self.flat and not (self.faults or self.lag or self.ended)

    @property
    def flat(self) -> bool:
        """Whether memory stayed where it was once windows were full."""
        return not self.growth > FLAT

    @property
    def sent_all(self) -> bool:
        """Whether the load was the one that was asked for."""
        return self.mean("events_per_s") >= STEADY * self.rate

    @property
    def warm(self) -> list[Sample]:
        """The samples once windows are full."""
        return self.samples[int(len(self.samples) * WARM_UP) :]

    def values(self, name: str) -> list[float]:
        """Return a figure of every warm sample."""
        return [getattr(sample, name) for sample in self.warm]

    def mean(self, name: str) -> float:
        """Return the mean of a figure over the warm samples."""
        return float(np.mean(self.values(name)))

    @property
    def growth(self) -> float:
        """The part by which memory rose from the second quarter of the run to the last one."""
        quarter = len(self.samples) // 4
        if not quarter:
            return float("nan")
        memory = [sample.resident_mb for sample in self.samples]
        return float(np.median(memory[-quarter:]) / np.median(memory[quarter : 2 * quarter]) - 1)


def tell(samples: list[Sample], table: Path | None) -> None:
    """Write the newest sample to standard error, and all of them to a CSV file."""
    new = samples[-1]
    print(
        f"{new.seconds:6.0f} s  {new.events_per_s:,.0f} events/s, {new.updates_per_s:,.0f} "
        f"updates/s, {new.age_median_s:.2f} s old (at most {new.age_largest_s:.2f}), lag "
        f"{new.lag:,}, {new.resident_mb:.1f} MB, CPU: worker {new.worker_cpu:.0f} %, broker "
        f"{new.broker_cpu:.0f} %, load {new.load_cpu:.0f} %, checker {new.checker_cpu:.0f} %",
        file=sys.stderr,
        flush=True,
    )
    if table is not None:
        with table.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(Sample._fields)
            writer.writerows([round(value, 3) for value in sample] for sample in samples)


def plot(samples: list[Sample], path: Path) -> None:
    """Draw memory, ages, lag, rate and CPU over time; the suffix tells the format."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - a second to load, rarely wanted

    figure = Figure(figsize=(9, 11), layout="constrained")
    axes = figure.subplots(5, 1, sharex=True)
    minutes = [sample.seconds / 60 for sample in samples]
    for axis, label, lines in (
        (axes[0], "worker's memory, MB", {"resident_mb": ""}),
        (axes[1], "age of updates, s", {"age_largest_s": "largest", "age_median_s": "median"}),
        (axes[2], "lag, records", {"lag": ""}),
        (axes[3], "events/s", {"events_per_s": ""}),
        (
            axes[4],
            "CPU, % of a core",
            {f"{name}_cpu": name for name in ("worker", "broker", "load", "checker")},
        ),
    ):
        highest = 0.0
        for name, title in lines.items():
            values = [getattr(sample, name) for sample in samples]
            axis.plot(minutes, values, lw=1.2, label=title)
            highest = max(highest, np.nanmax(values))
        axis.set_ylabel(label)
        axis.set_ylim(0, 1.25 * highest or 1)
        axis.yaxis.set_major_formatter("{x:,g}")
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
        if len(lines) > 1:
            axis.legend(ncols=len(lines), frameon=False, fontsize="small", loc="upper right")
    axes[-1].set_xlabel("minutes")
    figure.align_ylabels(axes)
    figure.savefig(path)


def report(result: Result) -> str:
    """Write what was measured."""
    return "\n".join(_lines(result)) + "\n"


def _lines(result: Result) -> Iterator[str]:
    warm = result.warm
    yield "# Soak"
    yield ""
    yield (
        f"{'Nothing was found' if result.good else 'FAULTS WERE FOUND'} in "
        f"{result.samples[-1].seconds / 60:.1f} minutes."
    )
    if not result.sent_all:
        yield "The load was less than what was asked for: it proves nothing about that rate."
    if not result.flat:
        yield f"Memory rose by more than {FLAT:.0%}."
    yield ""
    rows = {
        "events": f"{result.events:,}",
        "events/s, asked for": f"{result.rate:,.0f}",
        "events/s, once warm": f"{result.mean('events_per_s'):,.0f}",
        "updates": f"{result.updates:,}",
        "updates missing, repeated or out of order": f"{result.faults:,}",
        "left unread at the end": f"{result.lag:,}",
        "age of updates when read, median": f"{np.median(result.values('age_median_s')):.2f} s",
        "age of updates when read, largest": f"{max(result.values('age_largest_s')):.2f} s",
        "lag by the group's offsets, median": f"{np.median(result.values('lag')):,.0f} records",
        "lag by the group's offsets, largest": f"{max(result.values('lag')):,} records",
        "memory once warm": f"{warm[0].resident_mb:.1f} MB",
        "memory at the end": f"{warm[-1].resident_mb:.1f} MB",
        "its growth, second quarter to last": (
            "too few samples" if np.isnan(result.growth) else f"{result.growth:+.1%}"
        ),
    }
    for name in ("worker", "broker", "load", "checker"):
        rows[f"CPU of the {name}"] = f"{result.mean(f'{name}_cpu'):.0f} % of a core"
    yield "| | |"
    yield "|---|---:|"
    yield from (f"| {name} | {value} |" for name, value in rows.items())
    yield ""
    yield from (
        f"- {ended.name} ended, exit {ended.code}: `{ended.last_line}`" for ended in result.ended
    )
