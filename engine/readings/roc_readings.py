"""Every reading that needs only the blocks of equal scores, as methods for any ROC to have."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.readings.confusion import Confusion, confusion_of
from engine.readings.cost import CostCurve, cost_area_of, cost_curve_of
from engine.readings.hull import hull_edges
from engine.readings.interval import interval_of
from engine.readings.pairs import Ties, auc_of, ties_of
from engine.readings.thresholds import ks_of, mer_of, mwl_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


class RocReadings:
    """Readings off blocks of equal scores, each in O(distinct scores)."""

    __slots__ = ()

    @abstractmethod
    def auc(self) -> float:
        """Area under the ROC curve."""

    @abstractmethod
    def _blocks(self) -> tuple[NDArray[np.float64], NDArray[Any], NDArray[Any]]:
        """Distinct scores, rising, and the weights of negatives and positives at each.

        Integers while all weights are 1, else doubles.
        """

    def _edges(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Weights of negatives and positives along the edges of the hull."""
        scores, negatives, positives = self._blocks()
        edges = hull_edges(
            zip(scores.tolist(), negatives.tolist(), positives.tolist(), strict=True)
        )
        return (
            np.array([edge.negatives for edge in edges], negatives.dtype),
            np.array([edge.positives for edge in edges], positives.dtype),
        )

    def gini(self) -> float:
        """Gini coefficient: 2 AUC - 1, in [-1, 1]; nan while a class is absent."""
        return 2.0 * self.auc() - 1.0

    def auc_interval(self, level: float = 0.95) -> tuple[float, float]:
        """DeLong's interval of the AUC, see `engine.readings.interval`."""
        _, negatives, positives = self._blocks()
        return interval_of(negatives, positives, level)

    def ties(self) -> Ties:
        """Strict probability, tied mass and Redolfi's bound, see `engine.readings.pairs`."""
        _, negatives, positives = self._blocks()
        return ties_of(negatives, positives)

    def auch(self) -> float:
        """Area under the convex hull of the curve, at least the AUC and 1/2; nan with one class."""
        return auc_of(*self._edges())

    def ks(self) -> float:
        """Largest true minus false positive rate, see `engine.readings.thresholds`."""
        _, negatives, positives = self._blocks()
        return ks_of(negatives, positives)

    def mer(self) -> float:
        """Minimum error rate over all thresholds, see `engine.readings.thresholds`."""
        _, negatives, positives = self._blocks()
        return mer_of(negatives, positives)

    def mwl(self, cost: float) -> float:
        """Minimum weighted loss at a cost in [0, 1], see `engine.readings.thresholds`."""
        _, negatives, positives = self._blocks()
        return mwl_of(negatives, positives, cost)

    def confusion(self, threshold: float) -> Confusion:
        """Decide at a threshold and count, see `engine.readings.confusion`."""
        return confusion_of(*self._blocks(), threshold)

    def cost_curve(self, kind: str, priors: tuple[float, float] | None = None) -> CostCurve:
        """Loss over cost, see `engine.readings.cost`."""
        return cost_curve_of(*self._blocks(), kind, priors)

    def cost_area(self, kind: str, priors: tuple[float, float] | None = None) -> float:
        """Area under a cost curve, see `engine.readings.cost`."""
        return cost_area_of(*self._blocks(), kind, priors)
