"""Draw how ns per event grow with the window, from figures that a run has saved.

python -m benchmarks.engine --save figures.json
python -m benchmarks.engine.growth figures.json [more.json] docs/growth.svg
"""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from math import log10
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from benchmarks.engine.rows import SET

BLUE, RED, GREEN, GREY = "#1f5fa8", "#c03d3d", "#2f7d4f", "#777777"
ORANGE, VIOLET, BROWN = "#b8650a", "#7a4fa3", "#7b5a3c"
STYLE = {
    "svg.hashsalt": "rocstream",  # else names of clips and markers are drawn by lot
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
}

# Rows of the table, and how they are called and drawn here. Solid lines are this engine.
EACH = {
    "auc /1": ("AUC", BLUE, "-"),
    "auc+h /1": ("AUC and H", VIOLET, "-"),
    SET: ("BTreeSet, no reading", GREY, ":"),
    "100 bins /1": ("100 bins", BROWN, "--"),
    "Tatti 2018, eps 0.1 /1": ("Tatti 2018", GREEN, "--"),
    "balanced tree, swept /1": ("swept tree", RED, "--"),
    "river RollingROCAUC /1": ("river", ORANGE, "--"),
    "auc from scratch, numpy /1": ("AUC from scratch", GREY, "--"),
}
HUNDREDTH = {
    "auc /100": ("AUC", BLUE, "-"),
    "auc+h /100": ("AUC and H", VIOLET, "-"),
    SET: ("BTreeSet, no reading", GREY, ":"),
    "100 bins /100": ("100 bins", BROWN, "--"),
    "Tatti 2018, eps 0.1 /100": ("Tatti 2018", GREEN, "--"),
    "balanced tree, swept /100": ("swept tree", RED, "--"),
    "auc from scratch, numpy /100": ("AUC from scratch", GREY, "--"),
    "h from scratch, hmeasure /100": ("H by hmeasure", ORANGE, "--"),
}
OURS = {
    SET: ("Rust BTreeSet", GREY, ":"),
    "auc /1": ("AUC", BLUE, "-"),
    "auc /1, decay": ("AUC, decay", GREEN, "-"),
    "auc+h /1": ("AUC and H", VIOLET, "-"),
    "auc+h /1, lattice": ("AUC and H, lattice", BROWN, "-"),
    "auc+h /1, decay": ("AUC and H, decay", ORANGE, "-"),
    "vuhs r=4 /1": ("VUHS, 4 classes", RED, "-"),
}
PARTS = {
    "read after each event": EACH,
    "read after each 100th event": HUNDREDTH,
    "this engine, read after each event": OURS,
}


def spread(values: list[float], least: float) -> list[float]:
    """Move logarithms apart until any two differ by `least`, in their order."""
    order = sorted(range(len(values)), key=values.__getitem__)
    placed = list(values)
    for _ in range(200):
        for low, high in pairwise(order):
            lacking = least - (placed[high] - placed[low])
            if lacking > 1e-9:
                placed[low] -= lacking / 2
                placed[high] += lacking / 2
    return placed


def draw(axes: Any, figures: dict[str, dict[int, float]], lines: dict[str, Any]) -> None:
    """Draw the lines of one part, each with its name at its end."""
    ends = []
    for name, (label, color, style) in lines.items():
        sizes = sorted(figures.get(name, {}))
        if not sizes:
            continue
        spent = [figures[name][size] for size in sizes]
        width = 2.0 if style == "-" else 1.4
        axes.plot(sizes, spent, color=color, ls=style, lw=width, marker="o", ms=3)
        ends.append((label, color, sizes[-1], spent[-1]))
    axes.set(xscale="log", yscale="log", xlabel="events in the window, n")
    axes.set_xlim(700, 2.5e9)
    bottom, top = (float(bound) for bound in axes.get_ylim())
    gap = 0.048 * (log10(top) - log10(bottom))
    places = spread([log10(end[3]) for end in ends], gap)
    for (label, color, size, spent), place in zip(ends, places, strict=True):
        axes.annotate(
            label, (size, spent), (2e7, 10**place), color=color, va="center", fontsize=9,
            arrowprops={"arrowstyle": "-", "color": color, "lw": 0.5, "alpha": 0.6},
        )  # fmt: skip
    axes.xaxis.set_major_locator(LogLocator(numticks=5, subs=(1.0,)))
    axes.set_xticks([10**power for power in range(3, 8)])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda n, _: f"1e{round(log10(n))}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda ns, _: duration(ns)))
    axes.grid(axis="y", color="#dddddd", lw=0.6)
    axes.spines["bottom"].set_bounds(700, 1.4e7)


def duration(ns: float) -> str:
    """Say a time in the unit that suits it."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:g} {unit}"
    return f"{ns:g} ns"


def main() -> None:
    """Read figures, and write the picture."""
    *sources, target = sys.argv[1:]
    figures: dict[str, dict[int, float]] = {}
    for source in sources:
        for name, cells in json.loads(Path(source).read_text()).items():
            figures.setdefault(name, {}).update({int(size): ns for size, ns in cells.items()})
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(12.4, 4.6), layout="constrained")
        for axes, (title, lines) in zip(figure.subplots(1, 3), PARTS.items(), strict=True):
            draw(axes, figures, lines)
            axes.set_title(title)
            axes.set_ylabel("CPU time per event")
        path = Path(target)
        figure.savefig(
            path, metadata={"Date": None}, facecolor="white", bbox_inches="tight", pad_inches=0.2
        )
    # Paths come with spaces at the ends of their lines.
    path.write_text("\n".join(line.rstrip() for line in path.read_text().splitlines()) + "\n")
    print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
