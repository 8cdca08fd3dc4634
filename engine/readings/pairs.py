"""Readings over pairs of a positive and a negative: AUC, and what ties have to do with it.

Redolfi, "A review of the receiver operating characteristic curve and a proof about the area
beneath it": AUC is the probability that a positive scores above a negative only where no such
pair ties.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.readings.counts import below, room, total

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Ties(NamedTuple):
    """What of the AUC rests on ties.

    Attributes
    ----------
    strict
        P(positive above negative).
    tied
        P(positive equal to negative); AUC = strict + tied / 2.
    bound
        Redolfi's: AUC - strict is at most a quarter of the two classes' shares that lie at scores
        where both classes are.
    """

    strict: float
    tied: float
    bound: float


def auc_of(negatives: NDArray[Any], positives: NDArray[Any]) -> float:
    """Area under the curve over blocks, or edges of a hull, in increasing score; O(blocks).

    Returns
    -------
    auc
        In [0, 1], correctly rounded for counts; nan while a class is absent.

    Examples
    --------
    >>> import numpy as np
    >>> auc_of(np.array([1, 0, 1, 0]), np.array([0, 1, 0, 1]))
    0.75
    """
    n0, n1 = total(negatives), total(positives)
    if not n0 or not n1:
        return math.nan
    largest = math.ceil(2 * n0 * n1)
    d0, d1 = room(negatives, largest), room(positives, largest)
    twice_u = total(d1 * (2 * below(d0) + d0))
    return min(twice_u / (2 * n0 * n1), 1.0)


def ties_of(negatives: NDArray[Any], positives: NDArray[Any]) -> Ties:
    """Strict probability, tied mass and Redolfi's bound; O(blocks).

    Parameters
    ----------
    negatives, positives
        Weights at each distinct score, in increasing score.

    Returns
    -------
    ties
        All in [0, 1]; nan while a class is absent.

    Examples
    --------
    >>> import numpy as np
    >>> ties_of(np.array([1, 1, 0]), np.array([0, 1, 1]))
    Ties(strict=0.75, tied=0.25, bound=0.25)
    """
    n0, n1 = total(negatives), total(positives)
    largest = math.ceil(2 * n0 * n1)
    d0, d1 = room(negatives, largest), room(positives, largest)
    both = (d0 > 0) & (d1 > 0)
    return ties_from(
        n0,
        n1,
        total(d1 * below(d0)),
        total(d0 * d1),
        (total(d0[both]), total(d1[both])),
    )


def ties_from(
    n0: float, n1: float, strict: float, tied: float, shared: tuple[float, float]
) -> Ties:
    """Return the ties of n0 negatives and n1 positives from sums over them; O(1).

    Parameters
    ----------
    n0, n1
        Weight of each class.
    strict, tied
        Pairs that a positive wins, and those that tie.
    shared
        Weight of negatives and of positives at scores where both classes are.
    """
    if not n0 or not n1:
        return Ties(math.nan, math.nan, math.nan)
    pairs = n0 * n1
    shares = shared[0] * n1 + shared[1] * n0
    return Ties(
        min(strict / pairs, 1.0),
        min(tied / pairs, 1.0),
        min(shares / (4 * pairs), 0.5),
    )
