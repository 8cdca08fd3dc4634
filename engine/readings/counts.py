"""Sums over blocks of equal scores that do not overflow: shared by the readings."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST = 2**63 - 1


def below(weights: NDArray[Any]) -> NDArray[Any]:
    """Return how much of a class lies below each block, given in increasing score."""
    running = np.cumsum(weights)
    return np.asarray(running - weights)


def room(weights: NDArray[Any], largest: int) -> NDArray[Any]:
    """Return counts as integers of 64 bits, or of Python where results may grow past those.

    Parameters
    ----------
    weights
        Counts or weights; the latter come back as they are.
    largest
        What no partial result exceeds.
    """
    if weights.dtype.kind == "f":
        return weights
    return weights.astype(np.int64 if largest <= LARGEST else object)


def total(weights: NDArray[Any]) -> float:
    """Return the sum: an int of counts, a correctly rounded float of weights."""
    if weights.dtype.kind == "f":
        return math.fsum(weights)
    return int(weights.sum()) if len(weights) else 0


def whole_or_weights(weights: NDArray[Any], *, unit: bool) -> NDArray[Any]:
    """Return counts as integers when all weights are 1, else weights as doubles."""
    return weights.astype(np.int64 if unit else np.float64)
