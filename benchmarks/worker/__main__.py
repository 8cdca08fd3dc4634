"""`python -m benchmarks.worker`: produce the events once, measure everyone, print a table."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.worker import contestants, rounds, table
from benchmarks.worker.contestants import Contestant, Job
from benchmarks.worker.kafka import Broker, running
from benchmarks.worker.workload import Workload

ROOT = Path(__file__).parents[2]
QUIX = ROOT / ".cache" / "quix"  # its virtual environment


def main(  # noqa: PLR0913 - one parameter per option of the command
    *,
    events: Annotated[int, typer.Option(help="Events for rocstream.", min=1)] = 1_000_000,
    quix_events: Annotated[int, typer.Option(help="Events for Quix Streams, at most.")] = 500_000,
    stock_events: Annotated[int, typer.Option(help="Events for stock Faust, at most.")] = 50_000,
    runs: Annotated[int, typer.Option(help="Runs of each; medians are shown.", min=1)] = 1,
    peers: Annotated[
        str, typer.Option(help="Peers to run: names with commas, 'all' or 'none'.")
    ] = "all",
    keys: Annotated[int, typer.Option(min=1)] = 100,
    size: Annotated[int, typer.Option(help="Window, events of a key.", min=1)] = 10_000,
    slide: Annotated[int, typer.Option(help="An update after so many.", min=1)] = 100,
    per_record: Annotated[
        int, typer.Option(help="Events in a record; peers read single ones alone.", min=1)
    ] = 1,
    partitions: Annotated[int, typer.Option(min=1)] = 4,
    commit_interval: Annotated[
        float, typer.Option(help="Seconds between commits of rocstream (its default).")
    ] = 0.1,
    quix_commit_interval: Annotated[
        float, typer.Option(help="The same of Quix Streams (its default; shorter is slower).")
    ] = 5.0,
    bootstrap_servers: Annotated[
        str | None, typer.Option(help="A Kafka that runs; without it one is started.")
    ] = None,
    quix_python: Annotated[
        Path | None, typer.Option(help="An interpreter that has quixstreams and river.")
    ] = None,
) -> None:
    """Measure events a second of this worker and its peers on one Apache Kafka."""
    python = quix_python or QUIX / "bin" / "python"
    everyone = contestants.every(commit_interval, quix_commit_interval, python)
    chosen = [everyone["rocstream"], *_peers(everyone, peers)]
    if quix_python is None and any(one.name.startswith("quix") for one in chosen):
        _install_quix()
    if per_record > 1 and len(chosen) > 1:
        raise typer.BadParameter("columnar records are read by rocstream alone: --peers none")
    workload = Workload(events, keys, size, slide, per_record=per_record)
    limits = {"rocstream": events, "quix": quix_events, "faust": stock_events}
    plan = [(one, min(events, limits[one.name.split("-")[0]])) for one in chosen]
    with running(bootstrap_servers) as address, tempfile.TemporaryDirectory() as folder:
        job = Job(address, "", "", "", partitions, workload, Path(folder))
        readings = rounds.measure(Broker(address), job, plan, runs)
    table.show(sys.stdout, workload, partitions, [one for one, _ in plan], readings)


def _peers(everyone: dict[str, Contestant], wanted: str) -> list[Contestant]:
    peers = {name: one for name, one in everyone.items() if name != "rocstream"}
    if wanted == "all":
        return list(peers.values())
    names = [] if wanted == "none" else wanted.split(",")
    unknown = [name for name in names if name not in peers]
    if unknown:
        known = ", ".join(peers)
        raise typer.BadParameter(f"no peer is called {unknown[0]!r}; there are {known}")
    return [peers[name] for name in names]


def _install_quix() -> None:
    if (QUIX / "done").exists():
        return
    rounds.say(f"installing Quix Streams and river into {QUIX.relative_to(ROOT)}")
    venv.create(QUIX, with_pip=True, clear=True)
    requirements = Path(__file__).with_name("quix.txt")
    subprocess.run(
        [QUIX / "bin" / "python", "-m", "pip", "install", "--quiet", "-r", requirements], check=True
    )
    (QUIX / "done").touch()


if __name__ == "__main__":
    typer.run(main)
