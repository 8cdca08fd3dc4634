"""Readings at the best threshold: KS, the least error rate, the least weighted loss.

They look for an extreme over all thresholds, which the hull has as well as the curve, so they take
blocks and edges alike.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.readings.counts import room, total

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _up_to(weights: NDArray[Any]) -> NDArray[Any]:
    """Weight at or below each threshold, one below all scores among them."""
    return np.concatenate([np.zeros(1, weights.dtype), np.cumsum(weights)])


def ks_of(negatives: NDArray[Any], positives: NDArray[Any]) -> float:
    """Kolmogorov and Smirnov's distance: the largest true minus false positive rate; O(blocks).

    Returns
    -------
    ks
        In [0, 1]; nan while a class is absent.

    Examples
    --------
    >>> import numpy as np
    >>> ks_of(np.array([1, 0, 1, 0]), np.array([0, 1, 0, 1]))
    0.5
    """
    n0, n1 = total(negatives), total(positives)
    if not n0 or not n1:
        return math.nan
    largest = math.ceil(n0 * n1)
    rejected, missed = (_up_to(room(d, largest)) for d in (negatives, positives))
    if negatives.dtype.kind == "f":
        return min(float(np.max(rejected / n0 - missed / n1)), 1.0)
    return int(np.max(rejected * n1 - missed * n0)) / (n0 * n1)


def mer_of(negatives: NDArray[Any], positives: NDArray[Any]) -> float:
    """Minimum error rate: the least share of wrong decisions at any threshold; O(blocks).

    Returns
    -------
    mer
        In [0, 1/2]; nan while a class is absent.

    Examples
    --------
    >>> import numpy as np
    >>> mer_of(np.array([1, 0, 1, 0]), np.array([0, 1, 0, 1]))
    0.25
    """
    n0, n1 = total(negatives), total(positives)
    if not n0 or not n1:
        return math.nan
    errors = n0 - _up_to(negatives) + _up_to(positives)
    # Running sums of weights may end a rounding apart from the total.
    return min(max(float(np.min(errors)) / (n0 + n1), 0.0), 0.5)


def mwl_of(negatives: NDArray[Any], positives: NDArray[Any], cost: float) -> float:
    """Minimum weighted loss: c p0 P(s > t | 0) + (1 - c) p1 P(s <= t | 1) at the best t.

    Parameters
    ----------
    negatives, positives
        Weights in increasing score.
    cost
        c in [0, 1], the relative cost of a false positive; a missed positive costs 1 - c.

    Returns
    -------
    mwl
        In [0, 1/2], half the least error rate at c = 1/2; nan while a class is absent.

    Raises
    ------
    ValueError
        When the cost is not in [0, 1].

    Notes
    -----
    O(blocks).

    Examples
    --------
    >>> import numpy as np
    >>> mwl_of(np.array([1, 0, 1, 0]), np.array([0, 1, 0, 1]), 0.5)
    0.125
    """
    if not 0.0 <= cost <= 1.0:
        raise ValueError(f"cost must lie in [0, 1], got {cost!r}")
    n0, n1 = total(negatives), total(positives)
    if not n0 or not n1:
        return math.nan
    losses = cost * (n0 - _up_to(negatives)) + (1.0 - cost) * _up_to(positives)
    return min(max(float(np.min(losses)) / (n0 + n1), 0.0), 0.5)
