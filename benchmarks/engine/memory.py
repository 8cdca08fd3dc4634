"""What structures take, told by the operating system of a process that does nothing else. Linux.

python -m benchmarks.engine.memory SIZE INPUT READ prints bytes as JSON; `table` starts it.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.engine.inputs import STREAMS
from engine import CountWindow, Roc

EMPTY = 100_000
# What is asked of each, in bytes, by what is read: a distinct score, and a windowed event in all.
GOALS = {
    ("binormal", "auc"): (18.0, 28.0),
    ("binormal", "auc,h"): (20.0, 28.0),
    ("mild ties", "auc,h"): (40.0, None),
    ("two decimals", "auc,h"): (None, 28.0),
    ("lattice", "auc,h"): (20.0, 28.0),
}


def resident() -> int:
    """Return bytes of this process that are in memory."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def measured(size: int, name: str, read: tuple[str, ...]) -> dict[str, float]:
    """Return bytes per distinct score and per event of a window that has turned over twice."""
    stream = STREAMS[name](size)
    chunks = [stream.take(size // 10) for _ in range(30)]
    distinct = len(np.unique(np.concatenate([scores for scores, _ in chunks[-10:]])))
    # Warm what the first use of numpy and of a window allocates.
    CountWindow(10).slide(*STREAMS["binormal"](10).take(1000), every=1, read=read)
    before = resident()
    window = CountWindow(size)
    for chunk in chunks:
        window.slide(*chunk, every=max(size // 100, 1), read=read)
    after = resident()
    return {
        "score": window.roc._bytes() / distinct,  # noqa: SLF001 - for benchmarks and tests
        "event": window._bytes() / size,  # noqa: SLF001 - the same
        "resident": (after - before) / size,
    }


def empty() -> float:
    """Return bytes of an empty Roc."""
    before = resident()
    kept = [Roc() for _ in range(EMPTY)]
    return (resident() - before) / len(kept)


def asked(*arguments: object) -> Any:
    """Return what a process of its own measures."""
    command = [sys.executable, "-m", "benchmarks.engine.memory", *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def table(sizes: list[int]) -> list[str]:
    """Return the lines of the table."""
    lines = [
        "bytes per distinct score (goal), per event with the window's ring (goal), and per event",
        "as the operating system counts them, from 1e6 events",
    ]
    for (name, read), (score_goal, event_goal) in GOALS.items():
        for size in sizes:
            found = asked(size, name, read)
            line = f"{f'{name}, {read}':24}{size:>12,}"
            line += cell(found["score"], score_goal) + cell(found["event"], event_goal)
            # Smaller windows drown in what the allocator keeps at hand.
            resident = f"{found['resident']:10.1f}" if size >= 1_000_000 else ""
            lines.append(f"{line}{resident}")
    lines.append(f"an empty Roc: {asked()['empty']:.0f} bytes (goal 1,024)")
    return lines


def cell(value: float, goal: float | None) -> str:
    """Return a figure beside its goal, marked where it is missed."""
    if goal is None:
        return f"{value:10.1f}{'':7}"
    return f"{value:10.1f}{f' ({goal:.0f})':6}{'!' if value > goal else ' '}"


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print(json.dumps({"empty": empty()}))
    else:
        print(json.dumps(measured(int(sys.argv[1]), sys.argv[2], tuple(sys.argv[3].split(",")))))
