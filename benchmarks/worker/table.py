"""The table of a measurement, as Markdown that a note can take as it is."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, TextIO

from benchmarks.worker.measure import WARM, Reading

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.worker.contestants import Contestant
    from benchmarks.worker.workload import Workload

MEANING = f"""\
Steady: events a second between the broker's appends of the update at {WARM:.0%} and of the last.
Wall: events by the seconds from starting the process to its last update being visible to a
read_committed reader; nothing is subtracted. First: seconds from the start to the first visible
update. Ratio: rocstream's steady rate by the peer's. CPU: microseconds of the contestant's process
per event, start-up included / over the steady stretch. AUC error: the worst over the keys'
last updates, against ranks computed from the events."""


def show(
    out: TextIO,
    workload: Workload,
    partitions: int,
    everyone: list[Contestant],
    readings: dict[str, list[Reading]],
) -> None:
    """Print the figures (medians over the runs), what each row does, and what the columns mean."""
    runs = len(readings[everyone[0].name])
    print(
        f"\n{workload.keys} keys, {partitions} partitions, count window {workload.size:,}, "
        f"slide {workload.slide}, medians of {runs}\n",
        file=out,
    )
    table = [
        ["", "events", "steady/s", "ratio", "wall/s", "first s", "CPU us", "peak MB", "AUC error"]
    ]
    best = _median(readings[everyone[0].name], lambda one: one.steady)
    table.extend([one.name, *_figures(readings[one.name], best)] for one in everyone)
    rows(out, table)
    table = [["", "an update carries", "after a crash"]]
    table.extend([one.name, one.reads, one.promise] for one in everyone)
    rows(out, table)
    print(MEANING, file=out)
    for one in everyone:
        surplus = max(reading.surplus for reading in readings[one.name])
        if surplus:
            print(f"{one.name}: {surplus} updates more than the events call for", file=out)


def _figures(readings: list[Reading], best: float) -> list[str]:
    def median(read: Callable[[Reading], float]) -> float:
        return _median(readings, read)

    events = readings[0].events
    rate = median(lambda one: one.steady)
    cpu = median(lambda one: one.cpu / events) * 1e6
    later = median(lambda one: one.cpu_steady) * 1e6
    return [
        f"{events:,}",
        f"{rate:,.0f}",
        f"{best / rate:.1f}",
        f"{median(lambda one: events / one.wall):,.0f}",
        f"{median(lambda one: one.first):.1f}",
        f"{cpu:.1f} / {later:.1f}",
        f"{median(lambda one: one.peak) / 1e6:,.0f}",
        f"{max(one.error for one in readings):.0e}",
    ]


def _median(readings: list[Reading], read: Callable[[Reading], float]) -> float:
    values = [read(one) for one in readings]
    return math.nan if any(map(math.isnan, values)) else statistics.median(values)


def rows(out: TextIO, table: list[list[str]]) -> None:
    """Print a Markdown table; its first row is the head."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    head, *body = table
    for row in (head, ["-" * width for width in widths], *body):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("|", " | ".join(cells), "|", file=out)
    print(file=out)
