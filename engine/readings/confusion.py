"""Decisions at one threshold, and the readings made of their counts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from engine.readings.counts import total

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Confusion(NamedTuple):
    """Confusion matrix: scores >= threshold are held positive.

    Readings are nan where they are not defined: where they would divide by 0.

    Attributes
    ----------
    tp, fp, tn, fn
        True and false positives, true and false negatives: ints while all weights are 1.

    Examples
    --------
    >>> confusion = Confusion(tp=3, fp=1, tn=4, fn=2)
    >>> confusion.accuracy, confusion.precision, confusion.recall
    (0.7, 0.75, 0.6)
    """

    tp: float
    fp: float
    tn: float
    fn: float

    @property
    def accuracy(self) -> float:
        """Share of the right decisions."""
        return _ratio(self.tp + self.tn, self.tp + self.fp + self.tn + self.fn)

    @property
    def precision(self) -> float:
        """Share of the positive decisions that are right."""
        return _ratio(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float:
        """Share of the positives that are found."""
        return _ratio(self.tp, self.tp + self.fn)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return _ratio(2 * self.tp, 2 * self.tp + self.fp + self.fn)

    @property
    def kappa(self) -> float:
        """Cohen's (1960): agreement beyond what chance gives, in [-1, 1]."""
        tp, fp, tn, fn = self
        return _ratio(
            2 * (tp * tn - fp * fn), (tp + fp) * (fp + tn) + (tp + fn) * (fn + tn), low=-1.0
        )

    @property
    def mcc(self) -> float:
        """Matthews' (1975) correlation of decision and label, in [-1, 1]."""
        tp, fp, tn, fn = self
        # Roots of pairs: products of four weights may leave the doubles.
        scale = math.sqrt((tp + fp) * (tp + fn)) * math.sqrt((tn + fp) * (tn + fn))
        return _ratio(tp * tn - fp * fn, scale, low=-1.0)


def _ratio(part: float, whole: float, low: float = 0.0) -> float:
    if not whole:
        return math.nan
    return min(max(part / whole, low), 1.0) + 0.0


def confusion_of(
    scores: NDArray[np.float64],
    negatives: NDArray[Any],
    positives: NDArray[Any],
    threshold: float,
) -> Confusion:
    """Confusion matrix over blocks in increasing score; O(blocks).

    Raises
    ------
    ValueError
        When the threshold is nan.

    Examples
    --------
    >>> import numpy as np
    >>> confusion_of(np.array([0.1, 0.4]), np.array([2, 1]), np.array([0, 3]), 0.4)
    Confusion(tp=3, fp=1, tn=2, fn=0)
    """
    if math.isnan(threshold):
        raise ValueError("a threshold is a number, got nan")
    place = int(np.searchsorted(scores, threshold, side="left"))
    return Confusion(
        tp=total(positives[place:]),
        fp=total(negatives[place:]),
        tn=total(negatives[:place]),
        fn=total(positives[:place]),
    )
