"""Cost curves: the loss at each cost, by how the threshold follows the cost.

Hernandez-Orallo and Flach (2011), "Technical note: towards ROC curves in cost space". With c the
relative cost of a false positive and p0, p1 the priors,

    loss(c) = 2 (c p0 P(s > t | 0) + (1 - c) p1 P(s <= t | 1))

where t is the best threshold ("optimal"), that at which the share of negative decisions is c
("rate-driven", the ROC cost curve), or c itself ("brier", for scores that are probabilities).
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from engine.readings.counts import total
from engine.readings.hull import hull_edges
from engine.readings.pairs import auc_of
from engine.readings.severity import check_priors, edge_losses

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

KINDS = ("optimal", "rate-driven", "brier")


class CostCurve(NamedTuple):
    """Loss over cost.

    Attributes
    ----------
    cost
        From 0 to 1, not falling. Where the loss jumps, its cost stands twice.
    loss
        In [0, 1] for data priors; nan where the curve is not defined. Linear between points; the
        rate-driven curve is a parabola between every other point, with the middle between them.
    """

    cost: Floats
    loss: Floats


def cost_curve_of(
    scores: Floats,
    negatives: NDArray[Any],
    positives: NDArray[Any],
    kind: str,
    priors: tuple[float, float] | None = None,
) -> CostCurve:
    """Cost curve over blocks in increasing score.

    Parameters
    ----------
    scores, negatives, positives
        Distinct scores and the weights there.
    kind
        "optimal", "rate-driven" or "brier".
    priors
        (p0, p1); the shares in the data when None. (1/2, 1/2) gives Drummond and Holte's curve.

    Returns
    -------
    curve
        With a loss of nan while a class that the curve needs is absent, and for "brier" when a
        score lies outside [0, 1].

    Raises
    ------
    ValueError
        When the kind is unknown or the priors are none.

    Notes
    -----
    O(blocks).
    """
    _check_kind(kind)
    scaled = _scaled(negatives, positives, kind, priors)
    if scaled is None or (kind == "brier" and not _probabilities(scores)):
        return CostCurve(np.array([0.0, 1.0]), np.array([math.nan, math.nan]))
    if kind == "optimal":
        return _optimal(scores, *scaled)
    if kind == "rate-driven":
        return _rate_driven(*scaled)
    return _brier(scores, *scaled)


def cost_area_of(
    scores: Floats,
    negatives: NDArray[Any],
    positives: NDArray[Any],
    kind: str,
    priors: tuple[float, float] | None = None,
) -> float:
    """Area under a cost curve, in closed form: the expected loss when all costs are as likely.

    Parameters
    ----------
    scores, negatives, positives, kind, priors
        As for `cost_curve_of`.

    Returns
    -------
    area
        nan where the curve is.

    Raises
    ------
    ValueError
        When the kind is unknown or the priors are none.

    Notes
    -----
    O(blocks). "optimal": the sum of d0 d1 / (d0 + d1) over the hull's edges, scaled by the priors.
    "rate-driven": 2 p0 p1 (1 - AUC) + 1/3 - p0 p1, ties included. "brier": the Brier score.

    Examples
    --------
    >>> import numpy as np
    >>> blocks = np.array([0.1, 0.35, 0.4, 0.8]), np.array([1, 0, 1, 0]), np.array([0, 1, 0, 1])
    >>> [round(cost_area_of(*blocks, kind), 6) for kind in ("optimal", "rate-driven", "brier")]
    [0.125, 0.208333, 0.158125]
    """
    _check_kind(kind)
    scaled = _scaled(negatives, positives, kind, priors)
    if scaled is None or (kind == "brier" and not _probabilities(scores)):
        return math.nan
    d0, d1 = scaled
    if kind == "optimal":
        _, e0, e1 = _edges(scores, d0, d1)
        return 2.0 * math.fsum(edge_losses(e0, e1, 1.0, 1.0))
    if kind == "rate-driven":
        product = math.fsum(d0) * math.fsum(d1)
        return 2.0 * product * (1.0 - auc_of(negatives, positives)) + 1.0 / 3.0 - product
    return math.fsum([*(d0 * scores**2), *(d1 * (1.0 - scores) ** 2)])


def _check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise ValueError(f"a cost curve is one of {', '.join(KINDS)}; got {kind!r}")


def _probabilities(scores: Floats) -> bool:
    return bool(np.all((scores >= 0.0) & (scores <= 1.0)))


def _scaled(
    negatives: NDArray[Any],
    positives: NDArray[Any],
    kind: str,
    priors: tuple[float, float] | None,
) -> tuple[Floats, Floats] | None:
    """Weights as shares that sum to the priors; None where a class that is needed is absent."""
    pair = None if priors is None else check_priors(priors)
    n0, n1 = total(negatives), total(positives)
    if not n0 + n1:
        return None
    if (not n0 or not n1) and (kind != "brier" or pair is not None):
        return None
    if pair is None:
        return negatives / (n0 + n1), positives / (n0 + n1)
    return negatives * (pair[0] / n0), positives * (pair[1] / n1)


def _edges(scores: Floats, d0: Floats, d1: Floats) -> tuple[Floats, Floats, Floats]:
    edges = hull_edges(zip(scores.tolist(), d0.tolist(), d1.tolist(), strict=True))
    low, e0, e1 = zip(*edges, strict=True)
    return np.array(low), np.array(e0), np.array(e1)


def _optimal(scores: Floats, d0: Floats, d1: Floats) -> CostCurve:
    _, e0, e1 = _edges(scores, d0, d1)
    turns = e1 / (e0 + e1)
    losses = 2.0 * (turns * (math.fsum(e0) - np.cumsum(e0)) + (1.0 - turns) * np.cumsum(e1))
    inside = (turns > 0.0) & (turns < 1.0)
    return CostCurve(
        np.concatenate([[0.0], turns[inside], [1.0]]),
        np.concatenate([[0.0], np.maximum(losses[inside], 0.0), [0.0]]),
    )


def _rate_driven(d0: Floats, d1: Floats) -> CostCurve:
    rejected, missed = (np.concatenate([[0.0], np.cumsum(d)]) for d in (d0, d1))
    rejected, missed = (_with_middles(points) for points in (rejected, missed))
    costs = np.minimum(rejected + missed, 1.0)
    costs[-1] = 1.0
    losses = 2.0 * (costs * (rejected[-1] - rejected) + (1.0 - costs) * missed)
    return CostCurve(costs, losses)


def _with_middles(points: Floats) -> Floats:
    both = np.empty(2 * len(points) - 1)
    both[::2] = points
    both[1::2] = (points[:-1] + points[1:]) / 2.0
    return both


def _brier(scores: Floats, d0: Floats, d1: Floats) -> CostCurve:
    costs: list[float] = []
    losses: list[float] = []
    ends = [0.0, *scores.tolist(), 1.0]
    accepted = (math.fsum(d0) - np.concatenate([[0.0], np.cumsum(d0)])).tolist()
    missed = np.concatenate([[0.0], np.cumsum(d1)]).tolist()
    for (start, end), above, under in zip(pairwise(ends), accepted, missed, strict=True):
        if start == end:
            continue
        for cost in (start, end):
            costs.append(cost)
            losses.append(max(2.0 * (cost * above + (1.0 - cost) * under), 0.0))
    return CostCurve(np.array(costs), np.array(losses))
