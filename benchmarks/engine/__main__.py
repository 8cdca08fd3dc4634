"""Print ns per event of the engine, its peers and the baselines of Tatti's paper.

python -m benchmarks.engine [--quick] [--sizes 1e3,1e4] [--only auc] [--save FILE]

Contestants take turns, so that a busy machine is unfair to all alike; the best turn of each counts,
in CPU time. Each row has the ratio to Rust's BTreeSet, which only keeps order, or to what its goal
names; "!" marks a goal that was missed. Baselines are checked against the engine at every reading.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np
from rich.progress import Progress, TimeElapsedColumn

from benchmarks.engine import memory
from benchmarks.engine.inputs import Drawn
from benchmarks.engine.rows import ALL, SET, Bench, Goal, Row, rows
from engine import IMPLEMENTATION, Roc

Figures = dict[str, dict[int, float]]
SLOW = 6.0  # seconds of a turn after which a row has no other


def measure(chosen: list[Row], options: argparse.Namespace) -> Figures:
    """Give every row its turns, until the time is up."""
    figures: Figures = {row.name: {} for row in chosen}
    until = time.monotonic() + 60 * options.minutes
    with Progress(*Progress.get_default_columns(), TimeElapsedColumn()) as progress:
        for size in options.sizes:
            bench = Bench(size, options.events, options.seconds)
            waiting = [row for row in chosen if size in row.sizes]
            task = progress.add_task(f"n = {size:,}", total=len(waiting) * options.rounds)
            for _ in range(options.rounds):
                for row in list(waiting):
                    if time.monotonic() > until:
                        progress.console.print(f"time is up at n = {size:,}: {row.name}")
                        return figures
                    begin = time.monotonic()
                    spent = row.turn(bench)
                    if spent is not None:
                        best = figures[row.name].get(size, math.inf)
                        figures[row.name][size] = min(best, spent)
                    if time.monotonic() - begin > SLOW or spent is None:
                        waiting.remove(row)
                    progress.advance(task)
            progress.update(task, completed=len(waiting) * options.rounds)
    return figures


def compared(row: Row, figures: Figures, size: int) -> tuple[float, float, bool] | None:
    """Return ns of a row, the ratio to what it is compared with, whether it missed its goal."""
    spent = figures[row.name].get(size)
    if spent is None:
        return None
    goal = row.goal or Goal({})
    base = figures.get(goal.to or SET, {}).get(size)
    if base is None:
        return spent, math.nan, False
    ratio = spent / base
    return spent, ratio, goal.met(size, ratio if goal.to else spent) is False


def plain(name: str, cells: list[tuple[float, float, bool] | None], goal: str) -> str:
    """Return a line of the table for a terminal."""
    line = f"{name:38}"
    for cell in cells:
        if cell is None:
            line += f"{'':22}"
            continue
        spent, ratio, missed = cell
        digits = 2 if ratio < 100 else 0
        line += f"{spent:12,.0f}{ratio:9,.{digits}f}{'!' if missed else ' '}"
    return f"{line}   {goal}".rstrip()


def markdown(name: str, cells: list[tuple[float, float, bool] | None], goal: str) -> str:
    """Return a line of the table for a page."""
    texts = []
    for cell in cells:
        if cell is None:
            texts.append("")
            continue
        spent, ratio, missed = cell
        digits = 2 if ratio < 100 else 0
        texts.append(f"{spent:,.0f} ({ratio:,.{digits}f}{'!' if missed else ''})")
    return f"| {' | '.join([name, *texts, goal])} |"


def printed(chosen: list[Row], figures: Figures, sizes: list[int], *, as_page: bool) -> list[str]:
    """Return the lines of the table."""
    lines = [
        f"engine: {IMPLEMENTATION}; CPU ns per event, and the ratio to {SET} or as the goal says"
    ]
    if as_page:
        heads = [f"{size:,}" for size in sizes]
        lines += ["", f"| | {' | '.join(heads)} | goal |", "|---" * (len(sizes) + 2) + "|"]
    else:
        lines.append(f"{'':38}" + "".join(f"{size:>22,}" for size in sizes) + "   goal")
    line_of = markdown if as_page else plain
    for row in chosen:
        if figures[row.name]:
            cells = [compared(row, figures, size) for size in sizes]
            lines.append(line_of(row.name, cells, str(row.goal or "")))
    return lines


def bulk_build(events: int = 1_000_000) -> str:
    """Measure a bulk build of unsorted scores, and the sort in it."""
    scores, labels = Drawn().take(events)
    build = sort = math.inf
    for _ in range(5):
        roc = Roc()
        begin = time.thread_time()
        roc.extend(scores, labels)
        build = min(build, time.thread_time() - begin)
        begin = time.thread_time()
        for label in (0, 1):
            np.sort(scores[labels == label])
        sort = min(sort, time.thread_time() - begin)
    mark = "!" if build > 0.04 else ""
    return (
        f"bulk build of {events:,} unsorted scores: {build * 1e3:.0f} ms{mark} (goal 40), of which "
        f"numpy takes {sort * 1e3:.0f} to sort each class"
    )


def sizes_of(text: str) -> list[int]:
    """Read the sizes of the command line."""
    return [int(float(size)) for size in text.split(",")]


def parsed() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a minute: 1e3 to 1e5, one round")
    parser.add_argument("--sizes", type=sizes_of, help="default 1e3 to 1e7")
    parser.add_argument("--rounds", type=int, help="turns of each row; default 3")
    parser.add_argument("--events", type=int, help="of a turn; default 100,000")
    parser.add_argument("--seconds", type=float, help="of a peer's turn; default 0.5")
    parser.add_argument("--minutes", type=float, default=15.0, help="after which it ends")
    parser.add_argument("--only", default="", help="rows whose name holds one of these, by |")
    parser.add_argument("--markdown", action="store_true", help="print the table for a page")
    parser.add_argument("--save", type=Path, help="write the figures, for benchmarks.engine.growth")
    options = parser.parse_args()
    full = {"sizes": list(ALL), "rounds": 3, "events": 100_000, "seconds": 0.5}
    quick = {"sizes": list(ALL[:3]), "rounds": 1, "events": 20_000, "seconds": 0.1}
    for name, value in (quick if options.quick else full).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    return options


def main() -> None:
    """Measure and print."""
    options = parsed()
    names = options.only.split("|")
    chosen = [
        row
        for row in rows(4 * options.events)
        if row.name == SET or any(name in row.name for name in names)
    ]
    figures = measure(chosen, options)
    if options.save:
        options.save.write_text(json.dumps(figures, indent=1))
    print("\n".join(printed(chosen, figures, options.sizes, as_page=options.markdown)))
    if not options.only:
        print(bulk_build())
        print("\n".join(memory.table([size for size in options.sizes if size <= 1_000_000])))


if __name__ == "__main__":
    main()
