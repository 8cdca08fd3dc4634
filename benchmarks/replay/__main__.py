"""Prints how fast replays are: JSON lines, Parquet and Kafka, beside what one would write."""

from __future__ import annotations

import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.replay import data
from benchmarks.worker.table import rows

ROOT = Path(__file__).parents[2]
LIVE = ("live worker", "", "Kafka")
TOPIC = ("rocstream", "", "Kafka")
PEER_KEYS = 5

MEANING = """\
Each is a process of its own, held to one core; imports are not counted. CPU: microseconds of it per
event. Ratio: CPU of the peer by that of rocstream on the same file. AUC error: the worst over the
keys' last readings, by scikit-learn's. Peers read AUC alone; rocstream AUC and H. "engine" is its
windows alone on the events of the Parquet file, decoded and sorted by key: no replay is faster.
"live worker" reads the same topic as the replay below it, in turn with it. It may use all cores,
writes updates and state in transactions, and is measured once a tenth of its updates are out."""


def main(
    *,
    events: Annotated[int, typer.Option(help="Events of JSON lines, and of CSV.")] = 1_000_000,
    parquet: Annotated[int, typer.Option(help="Events of Parquet.")] = 4_000_000,
    peer_events: Annotated[int, typer.Option(help="Events that peers get.")] = 100_000,
    keys: Annotated[int, typer.Option()] = 100,
    size: Annotated[int, typer.Option()] = 10_000,
    slide: Annotated[int, typer.Option()] = 100,
    runs: Annotated[int, typer.Option(help="Medians of so many.")] = 1,
    peers: Annotated[str, typer.Option(help="Among pandas,river,plain; or none.")] = "all",
    kafka: Annotated[bool, typer.Option("--kafka", help="Replay a topic as well.")] = False,
) -> None:
    """Measure replays beside peers."""
    # Few keys, so that the windows of the peers fill as well.
    lines, few = data.jsonl(max(events, 1), keys), data.jsonl(peer_events, PEER_KEYS)
    few_cells = str(data.csv(peer_events, PEER_KEYS))
    plan = []
    if events:
        plan = [
            ("rocstream", str(lines), "JSON lines"),
            ("rocstream", str(data.csv(events, keys)), "CSV"),
        ]
    if parquet:
        table_path = str(data.parquet(parquet, keys))
        plan += [("rocstream", table_path, "Parquet"), ("engine", table_path, "memory")]
    wanted = ["pandas", "river", "plain"] if peers == "all" else peers.split(",")
    known = [name for name in wanted if name not in {"", "none"} and _there(name)]
    shared = [(name, str(few), "JSON lines") for name in ("rocstream", *known)]
    if "pandas" in known:
        shared += [("rocstream", few_cells, "CSV"), ("pandas", few_cells, "CSV")]
    plan += shared if known else []
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        if kafka:
            from benchmarks.replay import live  # noqa: PLC0415 - only where asked for
            from benchmarks.worker.workload import Workload  # noqa: PLC0415

            found[LIVE], found[TOPIC] = live.measure(
                Workload(events, keys, size, slide),
                runs,
                lambda source: _run((TOPIC[0], source, TOPIC[2]), size, slide, Path(folder)),
            )
        for _ in range(runs):
            for one in plan:
                found.setdefault(one, []).append(_run(one, size, slide, Path(folder)))
    truth = found.get(("plain", str(few), "JSON lines"), [{"last": {}}])[0]["last"]
    best = {one[1]: _cpu(found[one]) for one in shared if one[0] == "rocstream" and one in found}
    table = [
        ["", "from", "events", "events/s", "CPU us", "ratio", "peak MB", "updates", "AUC error"]
    ]
    for one, readings in found.items():
        first = readings[0]
        cpu = _cpu(readings)
        table.append(
            [
                *(one[0], one[2], f"{first['events']:,}", f"{_rate(readings):,.0f}", f"{cpu:.2f}"),
                f"{cpu / best[one[1]]:.1f}" if one in shared else "",
                f"{max(r['peak'] for r in readings) / 1e6:,.0f}",
                f"{first['updates']:,}",
                f"{_error(first['last'], truth):.0e}" if one in shared and truth else "",
            ]
        )
    print(f"\nCount window {size:,}, slide {slide}, one core, medians of {runs};")
    print(f"{keys} keys where rocstream runs without peers, {PEER_KEYS} beside peers\n")
    rows(sys.stdout, table)
    print(MEANING)


def _there(name: str) -> bool:
    module = {"plain": "sklearn"}.get(name, name)
    if importlib.util.find_spec(module) is None:
        print(f"{name} is left out: pip install {module}", file=sys.stderr)
        return False
    return True


def _run(one: tuple[str, str, str], size: int, slide: int, folder: Path) -> dict[str, Any]:
    name, source, _ = one
    command = [sys.executable, "-m", "benchmarks.replay.contestant", name, source]
    command += [str(size), str(slide), str(folder / "out.jsonl"), "1"]
    ended = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    told: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    rate = told["events"] / told["seconds"]
    print(f"{name} from {Path(source).name}: {rate:,.0f} events/s", file=sys.stderr)
    return told


def _rate(readings: list[dict[str, Any]]) -> float:
    return statistics.median(one["events"] / one["seconds"] for one in readings)


def _cpu(readings: list[dict[str, Any]]) -> float:
    return statistics.median(one["cpu"] / one["events"] for one in readings) * 1e6


def _error(found: dict[str, float], truth: dict[str, float]) -> float:
    return max(abs(found[key] - value) for key, value in truth.items())


if __name__ == "__main__":
    typer.run(main)
