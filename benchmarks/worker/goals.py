"""`python -m benchmarks.worker.goals`: the worker's goals, each measured, in one table.

One broker for all of it; every figure is a median over the runs. Rates are those of the steady
stretch (see the main benchmark), this worker alone: its peers are in the main benchmark.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from benchmarks.worker import latency, recovery, rounds, table
from benchmarks.worker.contestants import Job, ours
from benchmarks.worker.kafka import Broker, running
from benchmarks.worker.workload import Workload


class Rate(NamedTuple):
    """A goal in events a second."""

    name: str
    workload: Workload
    goal: int


RATES = (
    Rate("100 keys, count 10,000, slide 100", Workload(2_000_000), 400_000),
    Rate(
        "10,000 keys, count 1,000, slide 100", Workload(2_500_000, keys=10_000, size=1000), 150_000
    ),
    Rate("100 keys, slide 1", Workload(600_000, slide=1), 100_000),
    Rate("columnar records of 1,000 events", Workload(6_000_000, per_record=1000), 2_000_000),
)


def main(
    *,
    runs: Annotated[int, typer.Option(help="Runs of each; medians are shown.", min=1)] = 5,
    bootstrap_servers: Annotated[
        str | None, typer.Option(help="A Kafka that runs; without it one is started.")
    ] = None,
) -> None:
    """Measure rates, latency, restart and memory; about two minutes, and as much for each run."""
    rows = [["workload", "goal", "measured", "of the goal"]]
    with running(bootstrap_servers) as address, tempfile.TemporaryDirectory() as folder:
        rows += [_rate(address, Path(folder), rate, runs) for rate in RATES]
        rows += _latency(address, Path(folder), runs)
        rows += _restart(address, Path(folder), runs)
    print(f"\nauc and h, exactly once, 4 partitions; medians of {runs}\n")
    table.rows(sys.stdout, rows)


def _rate(address: str, folder: Path, rate: Rate, runs: int) -> list[str]:
    job = Job(address, "", "", "", 4, rate.workload, folder)
    plan = [(ours(0.1), rate.workload.events)]
    readings = rounds.measure(Broker(address), job, plan, runs)["rocstream"]
    found = statistics.median(reading.steady for reading in readings)
    return [
        rate.name,
        f"{rate.goal:,} events/s",
        f"{found:,.0f} events/s",
        f"{found / rate.goal:.2f}",
    ]


def _latency(address: str, folder: Path, runs: int) -> list[list[str]]:
    rate, seconds = 20_000, 20.0
    found = [
        latency.measure(address, folder, Workload(0), rate, seconds, 0.01)
        for _ in range(min(runs, 3))
    ]
    ages = [one.warm for one in found]
    rounds.say(f"latency: {found}")
    name = "append to visible update, 20,000 events/s, commit_interval 10 ms"
    return [
        _least(f"{name}: p50", 20, statistics.median(one.p50 for one in ages), "ms"),
        _least(f"{name}: p99", 60, statistics.median(one.p99 for one in ages), "ms"),
    ]


def _restart(address: str, folder: Path, runs: int) -> list[list[str]]:
    small = recovery.restart(address, folder, 10, 10_000)
    large = [recovery.restart(address, folder, 1000, 10_000) for _ in range(runs)]
    rounds.say(f"restart: {large}")
    first = statistics.median(one.first for one in large)
    resident = statistics.median(recovery.per_event(small, one)[0] for one in large)
    peak = statistics.median(recovery.per_event(small, one)[1] for one in large)
    return [
        _least("restart with 10 M windowed events, to the first update", 10, first, "s"),
        _least("memory of a windowed event, resident", 48, resident, "bytes"),
        _least("memory of a windowed event, at the restart's peak", 48, peak, "bytes"),
    ]


def _least(name: str, goal: float, found: float, unit: str) -> list[str]:
    """Return the row of a figure that should be small; above 1 of the goal is better here too."""
    return [name, f"{goal:g} {unit}", f"{found:.1f} {unit}", f"{goal / found:.2f}"]


if __name__ == "__main__":
    typer.run(main)
