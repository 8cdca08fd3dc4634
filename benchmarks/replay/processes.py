"""Prints what a second process brings, and whether the bytes are the same."""

from __future__ import annotations

import hashlib
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.replay import data
from benchmarks.replay.contestant import SETTINGS
from benchmarks.worker.table import rows

ROOT = Path(__file__).parents[2]


def main(
    *,
    events: Annotated[int, typer.Option(help="Lines; ten times as many rows.")] = 2_000_000,
    keys: Annotated[int, typer.Option()] = 100,
    size: Annotated[int, typer.Option()] = 10_000,
    slide: Annotated[int, typer.Option()] = 100,
    most: Annotated[int, typer.Option(help="Processes at most.")] = 2,
) -> None:
    """Replay JSON lines and Parquet with one process and with several, start-up included.

    CPU is that of all processes: where others keep the cores busy, it tells more than seconds do.
    The last row of a source is two replays of it at once, of one process each, that have nothing
    to do with each other: processes that share a replay cannot gain more on the machine.
    """
    table = [["from", "processes", "seconds", "events/s", "ratio", "CPU s", "bytes"]]
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "job.toml"
        settings.write_text(
            SETTINGS.format(
                servers="localhost:1", topic="t", key="key", time="time", size=size, slide=slide
            )
        )
        rows_there = 10 * events
        for source in (data.jsonl(events, keys), data.parquet(rows_there, keys)):
            count = events if source.suffix == ".jsonl" else rows_there
            first, digest = 0.0, ""
            for processes in range(1, most + 1):
                out = Path(folder) / "out.jsonl"
                seconds, cpu = _replay(settings, source, {out: processes})
                found = hashlib.sha256(out.read_bytes()).hexdigest()
                first, digest = first or seconds, digest or found
                table.append(
                    [
                        *(source.suffix, str(processes), f"{seconds:.1f}"),
                        *(f"{count / seconds:,.0f}", f"{first / seconds:.2f}"),
                        f"{cpu:.1f}",
                        "the same" if found == digest else "DIFFERENT",
                    ]
                )
            apart = {Path(folder) / "one.jsonl": 1, Path(folder) / "other.jsonl": 1}
            seconds, cpu = _replay(settings, source, apart)
            table.append(
                [
                    *(source.suffix, "1 and 1", f"{seconds:.1f}"),
                    *(f"{2 * count / seconds:,.0f}", f"{2 * first / seconds:.2f}"),
                    *(f"{cpu:.1f}", ""),
                ]
            )
    rows(sys.stdout, table)


def _replay(settings: Path, source: Path, outs: dict[Path, int]) -> tuple[float, float]:
    """Replay at once into each file, by so many processes; return seconds, and those of CPU."""
    command = [sys.executable, "-m", "worker", "replay", "-c", str(settings), str(source)]
    begun, cpu = time.monotonic(), _cpu()
    running = [
        subprocess.Popen(
            [*command, "-o", str(out), "--processes", str(processes)],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
        )
        for out, processes in outs.items()
    ]
    ended = [one.wait() for one in running]
    if any(ended):
        raise RuntimeError(f"a replay of {source} failed")
    return time.monotonic() - begun, _cpu() - cpu


def _cpu() -> float:
    """Return the seconds of CPU of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    typer.run(main)
