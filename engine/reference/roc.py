"""Exact ROC of a changing multiset of events, in plain Python.

The state is the blocks of equal scores and nothing else, so no reading can depend on history.
Unit weights are integers and other weights fractions: nothing rounds before the last division.
"""
# ruff: noqa: S101 - `_check` asserts the invariants

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from sortedcontainers import SortedDict

from engine.events import columns_of, label_of, score_of, weight_of
from engine.readings import (
    RocReadings,
    check_epsilon,
    check_priors,
    check_severity,
    curve_of,
    h_of_edges,
    hull_edges,
    thin,
)
from engine.reference.cells import EMPTY, exact, put_all
from engine.reference.copies import Copies

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from engine.reference.cells import Cell, Exact
    from engine.results import Curve


class Roc(Copies, RocReadings):
    """Exact ROC of a changing multiset of (score, label, weight).

    A high score speaks for the positive class, label 1. Scores are equal when equal as doubles;
    events of one score are a tie, whichever came first.

    Examples
    --------
    >>> from engine.reference import Roc
    >>> roc = Roc()
    >>> roc.extend([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    >>> roc.auc(), roc.h_measure()
    (0.75, 0.5)
    >>> roc.remove(0.4, 0)
    >>> roc.auc()
    1.0
    """

    __slots__ = ("_cells", "_events", "_uneven", "_weights")

    def __init__(self) -> None:
        # score -> [cell of the negatives, cell of the positives]
        self._cells: Any = SortedDict()
        self._events = 0
        self._weights: list[Exact] = [0, 0]
        self._uneven = 0

    def __len__(self) -> int:
        """Return how many events are inside; O(1)."""
        return self._events

    def __repr__(self) -> str:
        return f"<Roc of {self.positives} positives and {self.negatives} negatives>"

    @property
    def positives(self) -> float:
        """Weight of the positive class: an int while all weights are 1; O(1)."""
        return self._total(1)

    @property
    def negatives(self) -> float:
        """Weight of the negative class: an int while all weights are 1; O(1)."""
        return self._total(0)

    def add(self, score: float, label: int, weight: float = 1) -> None:
        """Put an event in; O(log n).

        Parameters
        ----------
        score
            Finite; -0.0 counts as 0.0.
        label
            0 or 1, or a bool.
        weight
            Positive and finite.

        Raises
        ------
        ValueError
            When one is none of that; nothing has changed then.
        """
        self._add(score_of(score), label_of(label), exact(weight_of(weight)))

    def remove(self, score: float, label: int, weight: float = 1) -> None:
        """Take an event out; O(log n).

        Weight may also be taken in parts: an event stays while some of its weight does.

        Raises
        ------
        KeyError
            When that class has less weight at that score; nothing has changed then.
        ValueError
            As for `add`.
        """
        self._remove(score_of(score), label_of(label), exact(weight_of(weight)))

    def extend(
        self,
        scores: Iterable[Any],
        labels: Iterable[Any],
        weights: Iterable[Any] | None = None,
    ) -> None:
        """Put many events in, all or none; O(k log n).

        Parameters
        ----------
        scores, labels, weights
            Arrays of any float or integer dtype, sequences or iterators, of one length. No
            weights: all 1.

        Raises
        ------
        ValueError
            When an element is bad as for `add`, or the lengths are unequal.
        """
        columns = columns_of(scores, labels, weights)
        heavy = np.ones(len(columns.scores)) if columns.weights is None else columns.weights
        rows = zip(columns.scores.tolist(), columns.labels.tolist(), heavy.tolist(), strict=True)
        put_all(rows, self._add, self._remove)

    def auc(self) -> float:
        """Area under the ROC curve: P(positive above negative) + P(equal) / 2.

        Returns
        -------
        auc
            In [0, 1], correctly rounded; nan while a class is absent.

        Notes
        -----
        O(distinct scores). Mann and Whitney's U over n0 n1, with 2U kept whole: each positive
        counts 2 for a negative below and 1 for one beside it. Tatti, "Maintaining AUC and
        H-measure over time", section 4.
        """
        negatives, positives = self._weights
        if not negatives or not positives:
            return math.nan
        twice_u: Exact = 0
        below: Exact = 0
        for _, beside, here in self._blocks_exact():
            twice_u += here * (2 * below + beside)
            below += beside
        return float(twice_u / (2 * negatives * positives))

    def h_measure(
        self,
        alpha: float = 2.0,
        beta: float = 2.0,
        priors: tuple[float, float] | None = None,
        epsilon: float | None = None,
    ) -> float:
        """H-measure: one minus the expected minimum loss, as a share of that without skill.

        Parameters
        ----------
        alpha, beta
            The relative cost of a false positive is drawn from Beta(alpha, beta).
        priors
            (p0, p1) of the negative and positive class; the shares in the data when None.
        epsilon
            Use only so many vertices of the hull that the loss is at most 1 + epsilon times the
            exact one, so that H lies in [H - epsilon (1 - H), H]. All of them when None.

        Returns
        -------
        h
            In [0, 1]; nan while a class is absent. Nothing is flipped: a classifier that points
            the wrong way has the H of its hull.

        Raises
        ------
        ValueError
            When alpha, beta or epsilon is not positive and finite, or priors are not two positive
            numbers that sum to 1.

        Notes
        -----
        O(distinct scores). Hand (2009), "Measuring classifier performance"; Tatti, sections 5
        and 6.
        """
        alpha, beta = check_severity(alpha, beta)
        scale = None if priors is None else check_priors(priors)
        slack = None if epsilon is None else check_epsilon(epsilon)
        negatives, positives = self._weights
        if not negatives or not positives:
            return math.nan
        edges = hull_edges(self._blocks_exact())
        everything = negatives + positives
        p0, p1 = scale or (float(negatives / everything), float(positives / everything))
        shares0 = np.array([float(edge.negatives / negatives) for edge in edges]) * p0
        shares1 = np.array([float(edge.positives / positives) for edge in edges]) * p1
        if slack is not None:
            shares0, shares1 = thin(shares0, shares1, slack)
        return h_of_edges(shares0, shares1, alpha, beta)

    def curve(self) -> Curve:
        """ROC curve from (0, 0), threshold +inf, to (1, 1), a point per distinct score; O(n)."""
        return curve_of(self._blocks_exact())

    def hull(self) -> Curve:
        """Upper convex hull of the ROC curve; O(n)."""
        return curve_of(hull_edges(self._blocks_exact()))

    def _add(self, score: float, label: int, weight: Exact) -> None:
        total = self._weights[label] + weight
        cells = self._cells.get(score)
        cell = (EMPTY if cells is None else cells[label]).plus(weight)
        if cells is None:
            cells = self._cells[score] = [EMPTY, EMPTY]
        self._set(cells, label, cell)
        self._weights[label] = total

    def _remove(self, score: float, label: int, weight: Exact) -> None:
        cells = self._cells.get(score)
        if cells is None or cells[label].weight < weight:
            raise KeyError(f"class {label} has less weight than {float(weight)!r} at {score!r}")
        total = self._weights[label] - weight
        self._set(cells, label, cells[label].minus(weight))
        self._weights[label] = total
        if not cells[0].events and not cells[1].events:
            del self._cells[score]

    def _set(self, cells: list[Cell], label: int, cell: Cell) -> None:
        """Let a class have a cell at a score."""
        old = cells[label]
        self._uneven += cell.uneven - old.uneven
        self._events += cell.events - old.events
        cells[label] = cell

    def _total(self, label: int) -> float:
        weight = self._weights[label]
        if self._uneven:
            return float(weight)
        return int(weight)

    def _blocks(self) -> tuple[NDArray[np.float64], NDArray[Any], NDArray[Any]]:
        kind = np.float64 if self._uneven else np.int64
        pairs = self._cells.values()
        return (
            np.array(list(self._cells), np.float64),
            np.array([negatives.weight for negatives, _ in pairs], kind),
            np.array([positives.weight for _, positives in pairs], kind),
        )

    def _blocks_exact(self) -> Iterator[tuple[float, Exact, Exact]]:
        for score, (negatives, positives) in self._cells.items():
            yield score, negatives.weight, positives.weight

    def _check(self) -> None:
        """Assert the invariants."""
        events, uneven = 0, 0
        weights: list[Exact] = [0, 0]
        scores = list(self._cells)
        assert scores == sorted(set(scores))
        for score, pair in self._cells.items():
            assert math.isfinite(score)
            assert any(cell.events for cell in pair)
            for label, cell in enumerate(pair):
                assert (cell.events > 0) == (cell.weight > 0)
                events += cell.events
                uneven += cell.uneven
                weights[label] += cell.weight
        assert (events, uneven, weights) == (self._events, self._uneven, self._weights)
