"""The ROC curve as arrays."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from engine.results import Curve

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from engine.readings.hull import Weight


def curve_of(blocks: Iterable[tuple[float, Weight, Weight]]) -> Curve:
    """ROC curve through the upper ends of blocks given in increasing score; O(blocks).

    Every block gives a point, also those on a straight line.

    Examples
    --------
    >>> curve = curve_of([(0.2, 1, 0), (0.5, 1, 1)])
    >>> curve.fpr.tolist(), curve.tpr.tolist(), curve.thresholds.tolist()
    ([0.0, 0.5, 1.0], [0.0, 1.0, 1.0], [inf, 0.5, 0.2])
    """
    thresholds = [math.inf]
    false: list[Weight] = [0]
    true: list[Weight] = [0]
    for score, negatives, positives in sorted(blocks, reverse=True):
        thresholds.append(score)
        false.append(false[-1] + negatives)
        true.append(true[-1] + positives)
    return Curve(_rates(false), _rates(true), np.array(thresholds))


def _rates(running: list[Weight]) -> NDArray[np.float64]:
    total = running[-1]
    if not total:
        return np.full(len(running), math.nan)
    return np.array([float(part / total) for part in running])
