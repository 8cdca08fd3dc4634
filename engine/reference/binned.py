"""ROC in fixed memory: scores are rounded to bins between evenly spaced thresholds.

Bouckaert (2006), "Efficient AUC learning curve calculation"; the contract is that of
`river.metrics.ROCAUC`, which keeps a confusion matrix per threshold where this keeps two weights,
and them exactly: what comes and goes leaves no trace.
"""
# ruff: noqa: S101 - `_check` asserts the invariants

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.events import at_least, columns_of, label_of, score_of, weight_of
from engine.readings import (
    RocReadings,
    check_priors,
    check_severity,
    curve_of,
    h_of_edges,
    hull_edges,
    ties_of,
    whole_or_weights,
)
from engine.reference.cells import EMPTY, Cell, exact
from engine.reference.copies import Copies

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from engine.results import Columns, Curve

MARGIN = 1e-7  # by which River's first and last threshold lie outside [0, 1]


class BinnedRoc(Copies, RocReadings):
    """ROC of any number of events in fixed memory, for scores that are probabilities.

    All readings are those of scores rounded to the middle of their bin; `error` bounds what that
    does to the AUC.

    Parameters
    ----------
    thresholds
        How many, 2 or more; 10 when None.
    pos_val
        The value of `y_true` that is positive.
    n_thresholds
        The same as `thresholds`, as River calls it.

    Raises
    ------
    ValueError
        When there are fewer than two thresholds, or both names give them.

    Examples
    --------
    >>> from engine.reference import BinnedRoc
    >>> roc = BinnedRoc(thresholds=10)
    >>> for y_true, y_pred in zip([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]):
    ...     roc.update(y_true, y_pred)
    >>> roc.get(), roc.error()
    (0.875, 0.125)
    >>> finer = BinnedRoc(thresholds=20)
    >>> finer.extend([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    >>> finer.get(), finer.error()
    (0.75, 0.0)
    """

    __slots__ = ("_bins", "_cells", "_events", "_uneven", "pos_val", "thresholds")

    def __init__(
        self,
        thresholds: int | None = None,
        pos_val: Any = True,  # noqa: FBT002 - River's
        *,
        n_thresholds: int | None = None,
    ) -> None:
        if thresholds is not None and n_thresholds is not None:
            raise ValueError("thresholds and n_thresholds are two names of one number: give one")
        given = n_thresholds if thresholds is None else thresholds
        count = at_least("thresholds", 10 if given is None else given, 2)
        self.pos_val = pos_val
        points = np.array([place / (count - 1) for place in range(count)])
        points[0] -= MARGIN
        points[-1] += MARGIN
        self.thresholds: NDArray[np.float64] = points
        # Events of each class at or below the first threshold, between two, above the last.
        self._cells: list[list[Cell]] = [[EMPTY] * (count + 1) for _ in range(2)]
        # What their weights round to.
        self._bins = np.zeros((2, count + 1))
        self._events = 0
        self._uneven = 0

    def __len__(self) -> int:
        """Return how many events are inside; O(1)."""
        return self._events

    def __repr__(self) -> str:
        return f"BinnedRoc: {self.get():.2%}"

    @property
    def n_thresholds(self) -> int:
        """How many thresholds, as River calls it."""
        return len(self.thresholds)

    @property
    def positives(self) -> float:
        """Weight of the positive class: an int while all weights are 1."""
        return self._total(1)

    @property
    def negatives(self) -> float:
        """Weight of the negative class: an int while all weights are 1."""
        return self._total(0)

    def update(self, y_true: Any, y_pred: float | Mapping[Any, float], w: float = 1.0) -> None:
        """Put an event in, by River's contract; O(log thresholds).

        Parameters
        ----------
        y_true
            Positive when it equals `pos_val`.
        y_pred
            Probability of the positive class, or of each class by its value.
        w
            Weight. One of 0 is no event.

        Raises
        ------
        ValueError
            When the probability is not finite or the weight negative or not finite; nothing has
            changed then.
        TypeError
            When one is no number.
        """
        if w != 0.0:
            self.add(self._probability(y_pred), bool(y_true == self.pos_val), w)

    def revert(self, y_true: Any, y_pred: float | Mapping[Any, float], w: float = 1.0) -> None:
        """Take an event out, by River's contract; O(log thresholds).

        Raises
        ------
        KeyError
            When that class has less weight in that bin; nothing has changed then.
        ValueError, TypeError
            As for `update`.
        """
        if w != 0.0:
            self.remove(self._probability(y_pred), bool(y_true == self.pos_val), w)

    def get(self) -> float:
        """AUC by River's contract: trapezoids between the thresholds, 0.0 without both classes."""
        totals = self._bins.sum(axis=1)
        if not totals.all():
            return 0.0
        above = totals[:, None] - np.cumsum(self._bins, axis=1)[:, :-1]
        fpr, tpr = above / totals[:, None]
        return min(max(float(-np.trapezoid(tpr, fpr)), 0.0), 1.0)

    def add(self, score: float, label: int, weight: float = 1) -> None:
        """Put an event in; O(log thresholds).

        Raises
        ------
        ValueError
            When the score is not finite, the label no class or the weight not positive and finite;
            nothing has changed then.
        """
        place, label, mass = self._bin(score), label_of(label), exact(weight_of(weight))
        self._set(label, place, self._cells[label][place].plus(mass))

    def remove(self, score: float, label: int, weight: float = 1) -> None:
        """Take an event out; O(log thresholds).

        Raises
        ------
        KeyError
            When that class has less weight in that bin; nothing has changed then.
        ValueError
            As for `add`.
        """
        place, label, mass = self._bin(score), label_of(label), exact(weight_of(weight))
        cell = self._cells[label][place]
        if cell.weight < mass:
            raise KeyError(
                f"class {label} has less weight than {float(mass)!r} in the bin of {score!r}"
            )
        self._set(label, place, cell.minus(mass))

    def _set(self, label: int, place: int, cell: Cell) -> None:
        """Let a class have a cell in a bin."""
        old, weight = self._cells[label][place], float(cell.weight)
        events = self._events + cell.events - old.events
        self._cells[label][place] = cell
        self._bins[label, place] = weight
        self._events = events
        self._uneven += cell.uneven - old.uneven

    def extend(
        self,
        scores: Iterable[Any],
        labels: Iterable[Any],
        weights: Iterable[Any] | None = None,
    ) -> None:
        """Put many events in, all or none; O(k log thresholds).

        Raises
        ------
        ValueError
            When an element is bad as for `add`, or the lengths are unequal.
        """
        columns = columns_of(scores, labels, weights)
        mark = self._mark()
        try:
            self._count(columns)
        except BaseException:
            self._go_back(mark)
            raise

    def _count(self, columns: Columns) -> None:
        places = np.searchsorted(self.thresholds, columns.scores, side="left")
        if columns.weights is not None:
            rows = zip(
                columns.labels.tolist(), places.tolist(), columns.weights.tolist(), strict=True
            )
            for label, place, weight in rows:
                self._set(label, place, self._cells[label][place].plus(exact(weight)))
            return
        for label in range(2):
            counts = np.bincount(places[columns.labels == label])
            for place in np.flatnonzero(counts).tolist():
                events, weight, odd = self._cells[label][place]
                more = int(counts[place])
                self._set(label, place, Cell(events + more, weight + more, odd))

    def auc(self) -> float:
        """AUC of the rounded scores; the exact one is at most `error` away; nan with one class."""
        ties = self.ties()
        return min(ties.strict + ties.tied / 2.0, 1.0)

    def error(self) -> float:
        """How far the AUC may be from that of the scores as they came; nan with one class.

        Half the pairs that share a bin: their order is all that rounding forgets.
        """
        _, negatives, positives = self._blocks()
        return ties_of(negatives, positives).tied / 2.0

    def h_measure(
        self,
        alpha: float = 2.0,
        beta: float = 2.0,
        priors: tuple[float, float] | None = None,
    ) -> float:
        """H-measure of the rounded scores, see `Roc.h_measure`; O(thresholds)."""
        alpha, beta = check_severity(alpha, beta)
        scale = None if priors is None else check_priors(priors)
        negatives, positives = self._edges()
        n0, n1 = float(negatives.sum()), float(positives.sum())
        if not n0 or not n1:
            return math.nan
        p0, p1 = scale or (n0 / (n0 + n1), n1 / (n0 + n1))
        return h_of_edges(negatives * (p0 / n0), positives * (p1 / n1), alpha, beta)

    def curve(self) -> Curve:
        """ROC curve of the rounded scores, a point per bin with events."""
        return curve_of(zip(*(column.tolist() for column in self._blocks()), strict=True))

    def hull(self) -> Curve:
        """Upper convex hull of that curve."""
        return curve_of(
            hull_edges(zip(*(column.tolist() for column in self._blocks()), strict=True))
        )

    def _mark(self) -> tuple[Any, ...]:
        """Return what `_go_back` wants; O(thresholds)."""
        cells = [row.copy() for row in self._cells]
        return cells, self._bins.copy(), self._events, self._uneven

    def _go_back(self, mark: tuple[Any, ...]) -> None:
        """Be what it was at a mark."""
        self._cells, self._bins, self._events, self._uneven = mark

    def _probability(self, y_pred: float | Mapping[Any, float]) -> float:
        return y_pred.get(self.pos_val, 0.0) if isinstance(y_pred, Mapping) else y_pred

    def _bin(self, score: float) -> int:
        return int(np.searchsorted(self.thresholds, score_of(score), side="left"))

    def _total(self, label: int) -> float:
        weight = float(self._bins[label].sum())
        return weight if self._uneven else int(weight)

    def _blocks(self) -> tuple[NDArray[np.float64], NDArray[Any], NDArray[Any]]:
        ends = np.concatenate([[-math.inf], self.thresholds, [math.inf]])
        used = self._bins.any(axis=0)
        negatives, positives = (
            whole_or_weights(weights[used], unit=not self._uneven) for weights in self._bins
        )
        middles = (ends[:-1] + ends[1:]) / 2.0
        return middles[used], negatives, positives

    def _check(self) -> None:
        """Assert the invariants."""
        cells = [cell for row in self._cells for cell in row]
        assert self._bins.ravel().tolist() == [float(cell.weight) for cell in cells]
        assert self._events == sum(cell.events for cell in cells)
        assert self._uneven == sum(cell.uneven for cell in cells)
        for cell in cells:
            assert (cell.events > 0) == (cell.weight > 0)
            assert 0 <= cell.odd <= cell.events
