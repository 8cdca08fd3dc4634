"""How severe errors are held to be: the Beta weight over costs behind the H-measure.

Hand (2009), "Measuring classifier performance: a coherent alternative to the area under the ROC
curve"; Tatti, "Maintaining AUC and H-measure over time", sections 3, 5 and 6.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

PRIOR_SLACK = 1e-9  # by how much the two priors may miss a sum of 1


def check_severity(alpha: float, beta: float) -> tuple[float, float]:
    """Return the parameters of Beta(alpha, beta) as doubles.

    Raises
    ------
    ValueError
        When one is not positive and finite.
    """
    for name, value in (("alpha", alpha), ("beta", beta)):
        if not 0.0 < value < math.inf:
            raise ValueError(f"{name} must be positive and finite, got {float(value)!r}")
    return float(alpha), float(beta)


def check_priors(priors: Any) -> tuple[float, float]:
    """Return the priors of the negative and of the positive class.

    Raises
    ------
    ValueError
        When they are not two positive numbers that sum to 1.
    """
    pair = tuple(float(prior) for prior in priors)
    if len(pair) != 2 or not all(prior > 0.0 for prior in pair):  # noqa: PLR2004 - two classes
        raise ValueError(f"priors are two positive numbers, got {priors!r}")
    if abs(math.fsum(pair) - 1.0) > PRIOR_SLACK:
        raise ValueError(f"priors must sum to 1, got {priors!r}")
    return pair[0], pair[1]


def edge_losses(negatives: Floats, positives: Floats, alpha: float, beta: float) -> Floats:
    """Compute the expected minimum loss that each edge of a hull stands for.

    An edge (d0, d1) turns at the cost c = d1 / (d0 + d1): its negatives are false positives for
    all costs below, its positives are missed for all costs above. With c ~ Beta(alpha, beta):

        F = d0 E[c; c <= x] + d1 E[1 - c; c > x],    x = d1 / (d0 + d1)
          = d0 a/(a+b) I_x(a+1, b) + d1 b/(a+b) I_y(b+1, a),    y = d0 / (d0 + d1)

    which for Beta(2, 2) is d0 d1 / n (1 + d0 d1 / n^2) / 2 with n = d0 + d1.

    Parameters
    ----------
    negatives, positives
        d0 and d1 of each edge, not both 0.
    alpha, beta
        Of the Beta distribution.

    Returns
    -------
    losses
        One per edge; F is homogeneous: edges twice as long lose twice as much.

    Notes
    -----
    O(edges). Both tails are computed as such, so none loses digits near 0 or 1.
    """
    lengths = negatives + positives
    below = positives / lengths
    above = negatives / lengths
    if alpha == beta == 2.0:  # noqa: PLR2004 - Hand's severity
        product = below * above
        return np.asarray(lengths * product * (1.0 + product) / 2.0)
    # Importing it takes longer than all of this package, and most severities are Beta(2, 2).
    from scipy.special import betainc  # noqa: PLC0415

    mean = alpha / (alpha + beta)
    return np.asarray(
        negatives * mean * betainc(alpha + 1.0, beta, below)
        + positives * (1.0 - mean) * betainc(beta + 1.0, alpha, above)
    )


def h_of_edges(
    negatives: Floats, positives: Floats, alpha: float = 2.0, beta: float = 2.0
) -> float:
    """H-measure of a hull given by its edges: 1 - sum of F(edge) / F(all of it).

    Parameters
    ----------
    negatives, positives
        Shares of the edges, already scaled by the priors; both classes are there.
    alpha, beta
        Of the Beta distribution.

    Returns
    -------
    h
        In [0, 1]: 0 for a hull of one edge, 1 for one of two.

    Examples
    --------
    >>> import numpy as np
    >>> h_of_edges(np.array([1.0, 1.0, 0.0]), np.array([0.0, 1.0, 1.0]))
    0.5
    """
    whole = edge_losses(
        np.array([math.fsum(negatives)]), np.array([math.fsum(positives)]), alpha, beta
    )
    loss = math.fsum(edge_losses(negatives, positives, alpha, beta))
    # The sum of the parts exceeds the whole, or falls below 0, by rounding alone.
    return min(max(1.0 - loss / float(whole[0]), 0.0), 1.0)


def check_epsilon(epsilon: float) -> float:
    """Return how far the loss may be from the exact one.

    Raises
    ------
    ValueError
        When it is not positive and finite.
    """
    if not 0.0 < epsilon < math.inf:
        raise ValueError(f"epsilon must be positive and finite, got {epsilon!r}")
    return float(epsilon)


def thin(negatives: Floats, positives: Floats, epsilon: float) -> tuple[Floats, Floats]:
    """Leave out vertices of a hull while the expected loss grows by at most a factor 1 + epsilon.

    Parameters
    ----------
    negatives, positives
        Of the edges, in increasing score.
    epsilon
        Positive.

    Returns
    -------
    negatives, positives
        Of the fewer edges between the vertices kept: at most 2 log(n) / epsilon of them.

    Notes
    -----
    A group of neighbouring vertices within which neither the negatives above nor the positives
    below change by more than the factor is represented by its first vertex: at every cost its loss
    is within the factor of the group's best one. And no vertex can do better than all of them, so
    L <= L' <= (1 + epsilon) L. Groups are found by binary search. Tatti, "Maintaining AUC and
    H-measure over time", section 6.

    Examples
    --------
    >>> import numpy as np
    >>> thin(np.array([8.0, 1.0, 1.0]), np.array([1.0, 1.0, 8.0]), 9.0)
    (array([8., 2.]), array([1., 9.]))
    """
    if not len(negatives):
        return negatives, positives
    under1 = np.concatenate([[0.0], np.cumsum(positives)])
    # Both rise from one group to the next; the former as the negatives above fall.
    above0 = -np.concatenate([[0.0], np.cumsum(negatives[::-1])])[::-1]
    kept = [0]
    while kept[-1] < len(negatives):
        first = kept[-1]
        last = min(
            int(np.searchsorted(above0, above0[first] / (1.0 + epsilon), side="right")),
            int(np.searchsorted(under1, under1[first] * (1.0 + epsilon), side="right")),
        )
        kept.append(min(max(last, first + 1), len(negatives)))
    # Each edge is summed by itself: differences of running sums would lose what is small.
    return np.add.reduceat(negatives, kept[:-1]), np.add.reduceat(positives, kept[:-1])
