"""Runs of events in the shapes that break ordered structures, for hypothesis to draw."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Run = list[tuple[float, int]]

LARGEST = 1.7976931348623157e308

SCORES: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "spread": lambda rng, count: rng.normal(size=count),
    "all tied": lambda _, count: np.full(count, 0.5),
    "two values": lambda rng, count: rng.choice([0.25, 0.75], count),
    "few values": lambda rng, count: rng.integers(0, 12, count) / 4,
    "ascending": lambda rng, count: np.sort(rng.normal(size=count)),
    "descending": lambda rng, count: -np.sort(rng.normal(size=count)),
    "denormal": lambda rng, count: rng.integers(-40, 40, count) * 5e-324,
    "huge": lambda rng, count: rng.choice([-1.0, 1.0], count) * LARGEST * rng.random(count),
    "zeros of both signs": lambda rng, count: rng.choice([0.0, -0.0], count),
    "neighbours": lambda rng, count: 1.0 + rng.integers(0, 9, count) * 2.0**-52,
}


@cache
def lattice(largest: int = 12) -> Run:
    """Make the hull with the most edges: one per reduced fraction, scores ascending."""
    edges = [
        (d0, total - d0)
        for total in range(1, largest + 1)
        for d0 in range(total + 1)
        if math.gcd(d0, total) == 1
    ]
    edges.sort(key=lambda edge: edge[1] / sum(edge))
    labels = [label for d0, d1 in edges for label in [1] * d1 + [0] * d0]
    return [(place / 64, label) for place, label in enumerate(labels)]


def run(shape: str, count: int, seed: int, classes: int, only: int | None) -> Run:
    """Make a run of a shape; `only` one class, where it is given."""
    rng = np.random.default_rng(seed)
    if shape == "lattice":
        events = lattice()
        chosen = rng.permutation(len(events))[:count].tolist()
        return [events[place] for place in chosen]
    scores = SCORES[shape](rng, count).tolist()
    labels = rng.integers(0, classes, count) if only is None else np.full(count, only % classes)
    return list(zip(scores, labels.tolist(), strict=True))


def runs(classes: int = 2, most: int = 150) -> st.SearchStrategy[Run]:
    """Draw runs of any shape; what is drawn is small, so that it shrinks."""
    return st.builds(
        run,
        shape=st.sampled_from([*SCORES, "lattice"]),
        count=st.integers(1, most),
        seed=st.integers(0, 9),
        classes=st.just(classes),
        only=st.sampled_from([None, None, 0, 1]),
    )


def heavy(count: int, seed: int) -> list[float]:
    """Make weights over twelve orders of magnitude."""
    return (10.0 ** np.random.default_rng(seed).uniform(-6, 6, count)).tolist()
