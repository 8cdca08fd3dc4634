"""Print ns per event of the engine's windows, its peers beside them in one run.

python -m benchmarks.engine [--sizes 1000,10000] [--rounds 3] [--only auc]

Contestants take turns, so that a busy machine is unfair to all alike; the best round of each
counts. The ratio is to Rust's BTreeSet, which only keeps order.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np

from benchmarks.engine import inputs, peers
from engine import IMPLEMENTATION, CountWindow, Roc

Run = Callable[[], float | None]
EVENTS = 400_000


def slides(
    size: int, events: inputs.Events, every: int, read: tuple[str, ...], severity: float = 2.0
) -> float:
    """Return ns per event of one bulk call that reads the full window after each slide."""
    scores, labels = events
    window = CountWindow(size)
    window.extend(scores[:size], labels[:size])
    window.slide(scores[:0], labels[:0], every=every, read=read, alpha=severity)
    begin = time.perf_counter()
    window.slide(scores[size:], labels[size:], every=every, read=read, alpha=severity)
    return (time.perf_counter() - begin) / (len(scores) - size) * 1e9


def single_calls(size: int, events: inputs.Events) -> float:
    """Return ns of one add, one remove and one reading called from Python."""
    scores, labels = (column.tolist() for column in events)
    roc = Roc()
    roc.extend(scores[:size], labels[:size])
    count = min(len(scores) - size, 100_000)
    begin = time.perf_counter()
    for i in range(count):
        roc.remove(scores[i], labels[i])
        roc.add(scores[size + i], labels[size + i])
        roc.auc()
    return (time.perf_counter() - begin) / count * 1e9


def contestants(size: int, events: int) -> dict[str, Run]:
    """Return what to measure at one window size, by the name of its row."""
    normal = inputs.binormal(size + events, size)

    def window(
        make: Callable[[int, int], inputs.Events],
        every: int,
        read: tuple[str, ...],
        severity: float = 2.0,
    ) -> Run:
        made = make(size + events, size)
        return lambda: slides(size, made, every, read, severity)

    auc, both = ("auc",), ("auc", "h")
    return {
        "Rust BTreeSet": lambda: peers.btreeset(size, events),
        "C++ multiset": lambda: peers.multiset(size, events),
        "auc /100": window(inputs.binormal, 100, auc),
        "auc /1": window(inputs.binormal, 1, auc),
        "auc /100, mild ties": window(inputs.mild_ties, 100, auc),
        "auc /100, two decimals": window(inputs.heavy_ties, 100, auc),
        "auc /100, ascending": window(inputs.ascending, 100, auc),
        "auc+h /1": window(inputs.binormal, 1, both),
        "auc+h /10": window(inputs.binormal, 10, both),
        "auc+h /100": window(inputs.binormal, 100, both),
        "auc+h /1000": window(inputs.binormal, 1000, both),
        "auc+h /100, two decimals": window(inputs.heavy_ties, 100, both),
        "auc+h /1, lattice": window(inputs.lattice, 1, both),
        "auc+h /100, lattice": window(inputs.lattice, 100, both),
        "auc+h /1, Beta(3, 2)": window(inputs.binormal, 1, both, 3.0),
        "auc+h /100, Beta(3, 2)": window(inputs.binormal, 100, both, 3.0),
        "auc, single calls": lambda: single_calls(size, normal),
        "scikit-learn /100": lambda: peers.scikit_learn(size, normal, 100),
        "river RollingROCAUC /1": lambda: peers.river(size, normal) if size <= 100_000 else None,
    }


def memory(size: int) -> tuple[float, float]:
    """Return bytes per event of a full window, and ms of a bulk build of as many scores."""
    scores, labels = inputs.binormal(2 * size, size)
    window = CountWindow(size)
    window.slide(scores, labels, every=max(size // 100, 1))
    best = np.inf
    for _ in range(3):
        roc = Roc()
        begin = time.perf_counter()
        roc.extend(scores[:size], labels[:size])
        best = min(best, time.perf_counter() - begin)
    measured = getattr(window, "_bytes", lambda: np.nan)()
    return measured / size, best * 1e3


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="1000,10000,100000,1000000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--only", default="", help="rows whose name holds this text")
    options = parser.parse_args()
    sizes = [int(float(size)) for size in options.sizes.split(",")]
    best: dict[str, dict[int, float]] = {}
    for size in sizes:
        rows = contestants(size, options.events)
        for _ in range(options.rounds):
            for name, run in rows.items():
                if options.only not in name and name != "Rust BTreeSet":
                    continue
                spent = run()
                if spent is not None:
                    cell = best.setdefault(name, {})
                    cell[size] = min(cell.get(size, np.inf), spent)
    print(f"engine: {IMPLEMENTATION}; ns per event, and the ratio to Rust's BTreeSet")
    print(f"{'':26}" + "".join(f"{size:>18,}" for size in sizes))
    base = best.get("Rust BTreeSet", {})
    for name, cells in best.items():
        line = f"{name:26}"
        for size in sizes:
            spent = cells.get(size)
            ratio = f"{spent / base[size]:8.2f}" if spent and size in base else " " * 8
            line += f"{spent:10,.0f}{ratio}" if spent else " " * 18
        print(line)
    for size in sizes:
        width, build = memory(size)
        print(f"n = {size:,}: {width:.1f} bytes an event, window in all; bulk build {build:.1f} ms")


if __name__ == "__main__":
    main()
