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
                command = [sys.executable, "-m", "worker", "replay", "-c", str(settings)]
                command += [str(source), "-o", str(out), "--processes", str(processes)]
                begun, cpu = time.monotonic(), _cpu()
                subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
                seconds = time.monotonic() - begun
                found = hashlib.sha256(out.read_bytes()).hexdigest()
                first, digest = first or seconds, digest or found
                table.append(
                    [
                        *(source.suffix, str(processes), f"{seconds:.1f}"),
                        *(f"{count / seconds:,.0f}", f"{first / seconds:.2f}"),
                        f"{_cpu() - cpu:.1f}",
                        "the same" if found == digest else "DIFFERENT",
                    ]
                )
    rows(sys.stdout, table)


def _cpu() -> float:
    """Return the seconds of CPU of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    typer.run(main)
