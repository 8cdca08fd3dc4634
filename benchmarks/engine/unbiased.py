"""Repeat the experiment of Wu et al. (2024): the volume is unbiased on discrete samples.

python -m benchmarks.engine.unbiased [--runs 1000]

As there, r classes of Poisson samples of one mean and of one size, 1000 runs each: the true
volume is 1 / r!. Beside it means 1.5 apart. The mean of the runs has its standard error beside, as
a share of the truth; its relative error against the direct estimator, formula (4), on the same
samples, is the paper's figure of merit. Two ways of not minding ties show what bias looks like: all
of them held right, and all held wrong. Then CPU time of an estimate: direct, by their dynamic
programme, and here.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from engine import OrdinalRoc

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from oracles import vuhs_by_patterns, vuhs_direct

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MEAN, APART = 3.0, 1.5
TOO_SLOW = 300_000  # choices of one score per class


def volume(draw: Floats) -> float:
    """Estimate with the engine, samples of the classes in rows."""
    roc = OrdinalRoc(len(draw))
    roc.extend(draw.ravel(), np.repeat(np.arange(len(draw)), draw.shape[1]))
    return roc.vuhs()


def careless(draw: Floats, *, ties_count: bool) -> float:
    """Count chains of which each step rises, or does not fall; ties weigh 1 or 0."""
    scores = np.unique(draw)
    counts = [(sample[:, None] == scores).sum(axis=0) for sample in draw]
    chains = counts[0]
    for here in counts[1:]:
        below = np.cumsum(chains) - (0 if ties_count else chains)
        chains = below * here
    return float(chains.sum() / draw.shape[1] ** len(draw))


def truth(means: list[float]) -> float:
    """Return the volume of the distributions themselves."""
    support = np.arange(80)
    roc = OrdinalRoc(len(means))
    logs = [math.lgamma(k + 1) for k in support.tolist()]
    for label, mean in enumerate(means):
        mass = np.exp(support * math.log(mean) - mean - logs)
        roc.extend(support, np.full(len(support), label), np.maximum(mass, 1e-60))
    return roc.vuhs()


def milliseconds(estimate: Callable[[], object], least: float = 0.1) -> float:
    """Return CPU ms of one call."""
    calls = 0
    begin = time.thread_time()
    while time.thread_time() - begin < least:
        estimate()
        calls += 1
    return (time.thread_time() - begin) / calls * 1e3


def row(classes: int, apart: float, size: int, runs: int) -> str:
    """Return a line of the table."""
    means = [MEAN + apart * k for k in range(classes)]
    expected = truth(means)
    rng = np.random.default_rng(size)
    draws = rng.poisson(np.array(means)[:, None], (runs, classes, size)).astype(float)
    values = np.array([volume(draw) for draw in draws])
    error = values.std(ddof=1) / math.sqrt(runs)
    exact = [float(vuhs_by_patterns(draw.tolist())) for draw in draws[:50]]
    merit = np.mean(values[: len(exact)] - exact) / np.mean(exact)
    cells = [f"{classes:2}{f'+{apart:g}':>7}{size:6}{expected:10.5f}"]
    cells.append(f"{values.mean() / expected - 1:+9.2%} +-{error / expected:6.2%}{merit:9.0e}")
    for ties_count in (True, False):
        mean = np.mean([careless(draw, ties_count=ties_count) for draw in draws])
        cells.append(f"{mean / expected - 1:+8.0%}")
    first = draws[0].tolist()
    slow = size**classes < TOO_SLOW
    cells.append(f"{milliseconds(lambda: vuhs_direct(first)):11.1f}" if slow else " " * 11)
    cells.append(f"{milliseconds(lambda: vuhs_by_patterns(first)):13.2f}")
    cells.append(f"{milliseconds(lambda: volume(draws[0])):9.3f}")
    return "".join(cells)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    runs = parser.parse_args().runs
    print("error of the mean and its standard error; against direct; ties all right, all wrong; ms")
    print(
        f"{'r':>2}{'means':>7}{'size':>6}{'truth':>10}{'error':>19}{'direct':>9}"
        f"{'right':>8}{'wrong':>8}{'direct ms':>11}{'patterns ms':>13}{'here ms':>9}"
    )
    for classes in (4, 5):
        for apart in (0.0, APART):
            for size in (5, 10, 20, 50, 100):
                print(row(classes, apart, size, runs))


if __name__ == "__main__":
    main()
