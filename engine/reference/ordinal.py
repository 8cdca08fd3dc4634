"""ROC of more than two ordered classes: the volume under its hyper-surface, exactly.

Wu, Zhu, Xiao and Xu (2024), "Fast and unbiased estimation of volume under ordered multi-class ROC
hyper-surface with discrete measurements", count the events of 2^(r-1) patterns of equalities. Here
one product of matrices over the distinct scores holds them all.
"""
# ruff: noqa: S101 - `_check` asserts the invariants

from __future__ import annotations

import math
from math import comb, factorial, prod
from typing import TYPE_CHECKING, Any

import numpy as np
from sortedcontainers import SortedDict

from engine.events import class_of, ordinal_columns_of, ordinal_weight_of, score_of
from engine.reference.cells import EMPTY, exact, put_all
from engine.reference.copies import Copies

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.reference.cells import Cell, Exact

MOST_CLASSES = 8


class OrdinalRoc(Copies):
    """Changing multiset of (score, label, weight) with labels 0 .. r-1 in order.

    Parameters
    ----------
    classes
        r, from 2 to 8.

    Raises
    ------
    ValueError
        When there are fewer classes or more.

    Examples
    --------
    >>> from engine.reference import OrdinalRoc
    >>> roc = OrdinalRoc(classes=3)
    >>> roc.extend([0.1, 0.5, 0.5, 0.9], [0, 1, 2, 2])
    >>> roc.vuhs()
    0.75
    """

    __slots__ = ("_cells", "_events", "_weights", "classes")

    def __init__(self, classes: int) -> None:
        if isinstance(classes, bool) or classes not in range(2, MOST_CLASSES + 1):
            raise ValueError(f"classes must be 2 to {MOST_CLASSES}, got {classes!r}")
        self.classes = int(classes)
        # score -> a cell per class
        self._cells: Any = SortedDict()
        self._weights = self._nothing()
        self._events = 0

    def __len__(self) -> int:
        """Return how many events are inside; O(1)."""
        return self._events

    def add(self, score: float, label: int, weight: float = 1) -> None:
        """Put an event in; O(log n).

        Raises
        ------
        ValueError
            When the score or the weight is bad, or the label none of the classes; nothing has
            changed then.
        """
        self._add(score_of(score), class_of(label, self.classes), exact(ordinal_weight_of(weight)))

    def remove(self, score: float, label: int, weight: float = 1) -> None:
        """Take an event out; O(log n).

        Raises
        ------
        KeyError
            When that class has less weight at that score; nothing has changed then.
        ValueError
            As for `add`.
        """
        place = class_of(label, self.classes)
        self._remove(score_of(score), place, exact(ordinal_weight_of(weight)))

    def extend(
        self,
        scores: Iterable[Any],
        labels: Iterable[Any],
        weights: Iterable[Any] | None = None,
    ) -> None:
        """Put many events in, all or none; O(k log n).

        Raises
        ------
        ValueError
            When an element is bad as for `add`, or the lengths are unequal.
        """
        columns = ordinal_columns_of(scores, labels, self.classes, weights)
        heavy = np.ones(len(columns.scores)) if columns.weights is None else columns.weights
        rows = zip(columns.scores.tolist(), columns.labels.tolist(), heavy.tolist(), strict=True)
        put_all(rows, self._add, self._remove)

    def vuhs(self) -> float:
        """Volume under the ROC hyper-surface: P(X0 <= X1 <= ... <= X(r-1)), one X of each class.

        A run of b equalities counts 1 / (b + 1)!, so that useless scores give 1 / r!.

        Returns
        -------
        vuhs
            In [0, 1], correctly rounded; nan while a class is absent. With two classes the AUC.

        Notes
        -----
        O(r^2) per distinct score. A block of equal scores with weights d stands for the matrix
        M[a][b] = d_a ... d_(b-1) / (b - a)!, which takes chains through classes below a to chains
        through classes below b. The top row of the product is kept, times b! to stay whole.
        """
        if not all(self._weights):
            return math.nan
        chains: list[Exact] = [1, *self._nothing()]
        for cells in self._cells.values():
            weights = [cell.weight for cell in cells]
            for end in range(self.classes, 0, -1):
                through: Exact = 1
                for start in range(end - 1, -1, -1):
                    through *= weights[start]
                    if not through:
                        break
                    chains[end] += comb(end, start) * through * chains[start]
        return float(chains[-1] / (factorial(self.classes) * prod(self._weights)))

    def _nothing(self) -> list[Exact]:
        return [0] * self.classes

    def _add(self, score: float, label: int, weight: Exact) -> None:
        total = self._weights[label] + weight
        cells: list[Cell] | None = self._cells.get(score)
        cell = (EMPTY if cells is None else cells[label]).plus(weight)
        if cells is None:
            cells = self._cells[score] = [EMPTY] * self.classes
        cells[label] = cell
        self._weights[label] = total
        self._events += 1

    def _remove(self, score: float, label: int, weight: Exact) -> None:
        cells: list[Cell] | None = self._cells.get(score)
        if cells is None or cells[label].weight < weight:
            raise KeyError(f"class {label} has less weight than {float(weight)!r} at {score!r}")
        total = self._weights[label] - weight
        cell = cells[label].minus(weight)
        self._events += cell.events - cells[label].events
        cells[label] = cell
        self._weights[label] = total
        if not any(cell.events for cell in cells):
            del self._cells[score]

    def _check(self) -> None:
        """Assert the invariants."""
        cells = list(self._cells.values())
        assert list(self._cells) == sorted(set(self._cells))
        assert all(any(cell.events for cell in row) for row in cells)
        assert self._events == sum(cell.events for row in cells for cell in row)
        for label, weight in enumerate(self._weights):
            assert weight == sum(row[label].weight for row in cells)
