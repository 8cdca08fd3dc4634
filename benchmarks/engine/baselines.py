"""The baselines of Tatti's paper, each checked against the engine at every reading it is timed for.

From scratch in O(n log n): AUC with numpy and with scikit-learn, H with scipy's isotonic
regression and with `hmeasure`. Compiled from `baselines.cpp`: a balanced tree that is swept at each
reading, and Tatti's approximation of 2018; where there is no g++, the tree is one of
`sortedcontainers`. Binning: compiled, and as river has it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from hmeasure import h_score
from river.metrics import ROCAUC, RollingROCAUC
from river.utils import Rolling
from scipy.optimize import isotonic_regression
from sklearn.metrics import roc_auc_score
from sortedcontainers import SortedDict

from benchmarks.engine.peers import built
from engine import CountWindow
from engine.river import AUC

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from benchmarks.engine.inputs import Events

    Reading = Callable[[NDArray[np.float64], NDArray[np.uint8]], float]

EPSILON = 0.1  # of Tatti's approximation, as in baselines.cpp
THRESHOLDS = 100


def blocks(
    scores: NDArray[np.float64], labels: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sort, and count negatives and positives at each distinct score."""
    order = np.argsort(scores)
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)
    positives = np.diff(np.cumsum(labels[order], dtype=np.int64)[ends], prepend=0)
    return np.diff(ends, prepend=-1) - positives, positives


def auc_from_scratch(scores: NDArray[np.float64], labels: NDArray[np.uint8]) -> float:
    """Mann and Whitney's U over the number of pairs."""
    negatives, positives = blocks(scores, labels)
    below = np.cumsum(negatives) - negatives
    twice_u = int((positives * (2 * below + negatives)).sum())
    return twice_u / (2 * int(negatives.sum()) * int(positives.sum()))


def h_from_scratch(scores: NDArray[np.float64], labels: NDArray[np.uint8]) -> float:
    """H for Beta(2, 2), where the edges of the hull are the pools of isotonic regression."""
    negatives, positives = blocks(scores, labels)
    both = negatives + positives
    starts = isotonic_regression(positives / both, weights=both).blocks[:-1]
    d0, d1 = np.add.reduceat(negatives, starts), np.add.reduceat(positives, starts)

    def loss(d0: NDArray[np.float64], d1: NDArray[np.float64]) -> NDArray[np.float64]:
        cost = d1 / (d0 + d1)
        left = cost**3 * (2 - 1.5 * cost)
        return np.asarray(d0 * left + d1 * (0.5 - cost**2 * (3 - 4 * cost + 1.5 * cost**2)))

    return 1 - float(loss(d0, d1).sum() / loss(negatives.sum(), positives.sum()))


def checked(
    name: str,
    readings: Sequence[float],
    window: tuple[int, int, Events],
    read: str = "auc",
    slack: float = 1e-9,
) -> None:
    """Refuse a baseline whose readings are not the engine's, but for a share of `slack`."""
    size, every, (scores, labels) = window
    if size % every:
        raise ValueError(f"slides of {every} do not divide a window of {size}")
    count = len(readings) * every
    ours = CountWindow(size)
    ours.extend(scores[:size], labels[:size])
    later = slice(size, size + count)
    expected = ours.slide(scores[later], labels[later], every=every, read=(read,))[read]
    error = np.abs(np.asarray(readings) - expected) - slack * np.maximum(expected, 1e-9)
    if error.max() > 0:
        worst = int(error.argmax())
        raise ValueError(f"{name}: {readings[worst]} at reading {worst}, not {expected[worst]}")


def from_scratch(
    name: str, reading: Reading, size: int, every: int, events: Events, seconds: float
) -> float:
    """Return CPU ns per event when a reading is formed anew at each slide."""
    scores, labels = events
    readings: list[float] = []
    begin = time.thread_time()
    for end in range(size + every, len(scores) + 1, every):
        readings.append(reading(scores[end - size : end], labels[end - size : end]))
        if time.thread_time() - begin > seconds:
            break
    spent = time.thread_time() - begin
    checked(name, readings, (size, every, events), "h" if name.startswith("h ") else "auc")
    return spent / (len(readings) * every) * 1e9


def scikit_learn(scores: NDArray[np.float64], labels: NDArray[np.uint8]) -> float:
    """Read the AUC with scikit-learn."""
    return float(roc_auc_score(labels, scores))


def hmeasure(scores: NDArray[np.float64], labels: NDArray[np.uint8]) -> float:
    """Read H for Beta(2, 2) with `hmeasure`, which takes scores in [0, 1] only."""
    low, high = scores.min(), scores.max()
    return float(h_score(labels, (scores - low) / (high - low), severity_ratio=1.0))


def compiled(kind: str, size: int, every: int, events: Events, seconds: float) -> float | None:
    """Return CPU ns per event of a baseline in C++; None where there is no g++."""
    program = built("baselines.cpp")
    if program is None:
        return swept(size, every, events, seconds) if kind == "tree" else None
    scores, labels = events
    columns = np.array([len(scores)], np.uint64), scores, labels
    stdin = b"".join(column.tobytes() for column in columns)
    ns, *readings = map(float, program.run(kind, size, every, seconds, stdin=stdin).split())
    slack = {"tree": 1e-12, "tatti": EPSILON / 2, "bins": 0.05}[kind]
    checked(kind, readings, (size, every, events), slack=slack)
    return ns


def swept(size: int, every: int, events: Events, seconds: float) -> float:
    """Return CPU ns per event of a sorted dictionary that is swept at each reading, in Python."""
    scores, labels = (column.tolist() for column in events)
    tree: SortedDict[float, list[int]] = SortedDict()
    for score, label in zip(scores[:size], labels[:size], strict=True):
        tree.setdefault(score, [0, 0])[label] += 1
    readings = []
    begin = time.thread_time()
    for at in range(len(scores) - size):
        gone, new = tree[scores[at]], tree.setdefault(scores[at + size], [0, 0])
        gone[labels[at]] -= 1
        new[labels[at + size]] += 1
        if gone == [0, 0]:
            del tree[scores[at]]
        if (at + 1) % every:
            continue
        below = twice_u = 0
        for d0, d1 in tree.values():
            twice_u += d1 * (2 * below + d0)
            below += d0
        readings.append(twice_u / (2 * below * (size - below)))
        if time.thread_time() - begin > seconds:
            break
    spent = time.thread_time() - begin
    checked("tree", readings, (size, every, events))
    return spent / (len(readings) * every) * 1e9


def river_rolling(size: int, events: Events, seconds: float) -> float:
    """Return CPU ns per update + get of river's RollingROCAUC, after the window has filled."""
    return rolled(RollingROCAUC(window_size=size), size, events, seconds)


def adapter_rolling(size: int, events: Events, seconds: float) -> float:
    """Return the same of this engine's metric in river's Rolling, call by call from Python."""
    return rolled(Rolling(AUC, window_size=size), size, events, seconds)


def rolled(metric: Any, size: int, events: Events, seconds: float) -> float:
    """Return CPU ns per update + get of a rolling metric, after its window has filled."""
    scores, labels = events
    for score, label in zip(scores[:size].tolist(), labels[:size].tolist(), strict=True):
        metric.update(bool(label), score)
    metric.get()
    readings = []
    begin = time.thread_time()
    for score, label in zip(scores[size:].tolist(), labels[size:].tolist(), strict=True):
        metric.update(bool(label), score)
        readings.append(metric.get())
        # Looking at the clock takes time too.
        if len(readings) % 16 == 0 and time.thread_time() - begin > seconds:
            break
    spent = time.thread_time() - begin
    checked("river", readings, (size, 1, events))
    return spent / len(readings) * 1e9


def river_binned(size: int, events: Events, seconds: float) -> float:
    """Return CPU ns per update + revert + get of river's ROCAUC with 100 thresholds.

    Its trapezoids stray from the AUC of the scores by half the pairs that share a bin.
    """
    scores, labels = events
    # It bins probabilities.
    chances = ((scores - scores.min()) / np.ptp(scores)).tolist()
    known = labels.astype(bool).tolist()
    metric = ROCAUC(n_thresholds=THRESHOLDS)
    for chance, label in zip(chances[:size], known[:size], strict=True):
        metric.update(label, chance)
    readings = []
    begin = time.thread_time()
    for at in range(len(chances) - size):
        metric.revert(known[at], chances[at])
        metric.update(known[at + size], chances[at + size])
        readings.append(metric.get())
        # Looking at the clock takes time too.
        if len(readings) % 16 == 0 and time.thread_time() - begin > seconds:
            break
    spent = time.thread_time() - begin
    checked("river's ROCAUC", readings, (size, 1, events), slack=0.05)
    return spent / len(readings) * 1e9
