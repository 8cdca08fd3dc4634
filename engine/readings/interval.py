"""How sure the AUC is: DeLong's interval.

DeLong, DeLong and Clarke-Pearson (1988), "Comparing the areas under two or more correlated
receiver operating characteristic curves: a nonparametric approach".
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

from engine.readings.counts import below, room, total

if TYPE_CHECKING:
    from numpy.typing import NDArray


def interval_of(
    negatives: NDArray[Any], positives: NDArray[Any], level: float = 0.95
) -> tuple[float, float]:
    """Confidence interval of the AUC over blocks of counts in increasing score.

    Parameters
    ----------
    negatives, positives
        Counts at each distinct score. Weights have no interval.
    level
        Of confidence, in (0, 1).

    Returns
    -------
    low, high
        Clipped to [0, 1]; (nan, nan) with fewer than two events of a class, or with weights.

    Raises
    ------
    ValueError
        When the level is not in (0, 1).

    Notes
    -----
    O(blocks). With V the share of the other class that an event beats, ties half, the variance is
    var(V over positives) / n1 + var(V over negatives) / n0. Sums of (2 n V) and of its square are
    whole numbers, so nothing cancels: var = (n1 Q1 - S^2) / (4 n0^2 n1^2 (n1 - 1)) + the like.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = interval_of(np.array([1, 0, 1, 0]), np.array([0, 1, 0, 1]))
    >>> round(low, 4), high
    (0.057, 1.0)
    """
    check_level(level)
    n0, n1 = total(negatives), total(positives)
    if "f" in {negatives.dtype.kind, positives.dtype.kind}:
        return math.nan, math.nan
    largest = int(4 * max(n0, n1) * n0 * n1)
    d0, d1 = room(negatives, largest), room(positives, largest)
    beaten = 2 * below(d0) + d0
    unbeaten = 2 * (n1 - below(d1)) - d1
    return interval_from(
        int(n0),
        int(n1),
        int(total(d1 * beaten)),
        (int(total(d1 * beaten**2)), int(total(d0 * unbeaten**2))),
        level,
    )


def check_level(level: float) -> None:
    """Raise ValueError when a level of confidence is not in (0, 1)."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}")


def interval_from(
    n0: int, n1: int, twice_u: int, squares: tuple[int, int], level: float
) -> tuple[float, float]:
    """Return the interval of n0 negatives and n1 positives from sums over them; O(1).

    Parameters
    ----------
    n0, n1
        Events of each class.
    twice_u
        Sum of 2 n0 V over positives, which is that of 2 n1 V over negatives.
    squares
        Sums of their squares, over positives and over negatives.
    level
        Of confidence, in (0, 1).
    """
    if min(n0, n1) < 2:  # noqa: PLR2004 - a variance takes two
        return math.nan, math.nan
    by_positives = n1 * squares[0] - twice_u**2
    by_negatives = n0 * squares[1] - twice_u**2
    pairs = 4 * n0**2 * n1**2
    variance = by_positives / (pairs * (n1 - 1)) + by_negatives / (pairs * (n0 - 1))
    auc = twice_u / (2 * n0 * n1)
    reach = _quantile((1.0 + level) / 2.0) * math.sqrt(variance)
    return max(auc - reach, 0.0), min(auc + reach, 1.0)


@functools.lru_cache(16)
def _quantile(share: float) -> float:
    """Return the standard normal distribution's quantile."""
    # Importing it takes longer than all of this package, and few ask for intervals.
    from scipy.special import ndtri  # noqa: PLC0415

    return float(ndtri(share))
