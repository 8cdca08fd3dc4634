"""Streams of events to benchmark with."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable

Events = tuple[NDArray[np.float64], NDArray[np.uint8]]


class Stream(Protocol):
    """An endless stream; the same one, event by event, however it is cut."""

    def take(self, count: int) -> Events:
        """Return the next events."""
        ...


class Drawn:
    """Two normals `shift` standard deviations apart, half of the events positive."""

    def __init__(self, shift: float = 1.0, grid: float | None = None) -> None:
        self.labels = np.random.default_rng(1)
        self.scores = np.random.default_rng(2)
        self.shift = shift
        self.grid = grid

    def take(self, count: int) -> Events:
        """Return the next events; scores on a grid of so many steps a unit, where there is one."""
        labels = (self.labels.random(count) < 0.5).astype(np.uint8)
        scores = self.scores.normal(size=count) + self.shift * labels
        if self.grid is not None:
            scores = np.round(scores * self.grid) / self.grid
        return scores, labels


class Classes:
    """As many normals as ordered classes, each a standard deviation above the one before."""

    def __init__(self, classes: int) -> None:
        self.labels = np.random.default_rng(1)
        self.scores = np.random.default_rng(2)
        self.classes = classes

    def take(self, count: int) -> Events:
        """Return the next events."""
        labels = self.labels.integers(0, self.classes, count).astype(np.uint8)
        return self.scores.normal(size=count) + labels, labels


class Ascending:
    """Scores that only grow."""

    def __init__(self) -> None:
        self.labels = np.random.default_rng(1)
        self.next = 0

    def take(self, count: int) -> Events:
        """Return the next events."""
        start, self.next = self.next, self.next + count
        labels = (self.labels.random(count) < 0.5).astype(np.uint8)
        return np.arange(start, self.next, dtype=np.float64), labels


class Lattice:
    """Give a window of `size` a hull with as many edges as can be: one per reduced fraction.

    All edges (negatives, positives) with a sum up to k, flattest first, make a few more events than
    the window holds; they come in a random order over and over, so each event heals and hurts.
    """

    def __init__(self, size: int) -> None:
        edges: list[tuple[int, int]] = []
        total = 0
        step = 0
        points = size + size // 50
        while total < points:
            step += 1
            new = [(d0, step - d0) for d0 in range(step + 1) if math.gcd(d0, step) == 1]
            edges += new
            total += step * len(new)
        edges.sort(key=lambda edge: edge[1] / (edge[0] + edge[1]))
        runs = np.array([count for d0, d1 in edges for count in (d1, d0)])
        self.labels = np.repeat(np.tile([1, 0], len(edges)), runs)[:points].astype(np.uint8)
        self.order = np.random.default_rng(1).permutation(points)
        self.next = 0

    def take(self, count: int) -> Events:
        """Return the next events."""
        places = self.order[np.arange(self.next, self.next + count) % len(self.order)]
        self.next += count
        return places.astype(np.float64), self.labels[places]


STREAMS: dict[str, Callable[[int], Stream]] = {
    "binormal": lambda _size: Drawn(),
    "normal": lambda _size: Drawn(shift=0.0),
    # About one score in ten of a window has a twin.
    "mild ties": lambda size: Drawn(grid=2.0 * size),
    "two decimals": lambda _size: Drawn(grid=100.0),
    "ascending": lambda _size: Ascending(),
    "lattice": Lattice,
}
