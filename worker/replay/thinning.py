"""Points of many series over time, thinned as they come: one bound for all of them together.

What is kept is a function of how many points each series had, not of the order in which they came:
so several processes, each with some of the series, keep what one would have.
"""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

P = TypeVar("P")

POINTS: Final = 800
"""Most points of a series that are kept; beyond twice as many every other one is dropped."""

HELD: Final = 200_000
"""Points of all series together, besides one of each; beyond it each is thinned."""


class Thinned(Generic[P]):
    """Every `stride`-th point of a series, the first among them; the stride is a power of 2."""

    def __init__(self) -> None:
        self.points: list[P] = []
        self.stride = 1
        self.count = 0

    def keep(self, point: P) -> None:
        """Take the next point. O(1) amortised."""
        if self.count % self.stride == 0:
            self.points.append(point)
            if len(self.points) >= 2 * POINTS:
                self.thin(2 * self.stride)
        self.count += 1

    def thin(self, stride: int) -> None:
        """Have points so far apart at least, from now on and of those that are there."""
        if stride > self.stride:
            self.points = self.points[:: stride // self.stride]
            self.stride = stride


class Holder:
    """Bounds the points of many series together.

    Parameters
    ----------
    most
        Points of all of them, besides one of each; 0 when nothing will be drawn.
    """

    def __init__(self, most: int = HELD) -> None:
        self.most = most
        self._series: list[Thinned[Any]] = []
        self._stride = 1
        self._held = 0

    def grown(self, one: Thinned[Any], before: int) -> None:
        """Note that a series has more points than before; thin all if there are too many.

        O(1), and O(series) where all are thinned.
        """
        if not before:
            self._series.append(one)
        self._held += self._room(one.count) - self._room(before)
        one.thin(self._stride)
        self._fit()

    def join(self, other: Holder) -> None:
        """Take over the series of another."""
        self._series += other._series
        self._held = sum(self._room(one.count) for one in self._series)
        self._fit()
        for one in self._series:
            one.thin(self._stride)

    def _fit(self) -> None:
        while self.most and self._held > self.most:
            self._stride *= 2
            self._held = sum(self._room(one.count) for one in self._series)
            for one in self._series:
                one.thin(self._stride)

    def _room(self, count: int) -> int:
        """Return what a series may take besides one point; never less for a larger count."""
        return max(min(-(-count // self._stride), 2 * POINTS) - 1, 0)
