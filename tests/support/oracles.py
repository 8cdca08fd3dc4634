"""Readings by brute force, straight from the definitions, for small sets of events."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product
from typing import TYPE_CHECKING

import numpy as np
from scipy.integrate import quad
from scipy.stats import beta as beta_distribution

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Event = tuple[float, int, float]


def events_of(
    scores: Sequence[float], labels: Sequence[int], weights: Sequence[float] | None = None
) -> list[Event]:
    """Put columns together."""
    return list(zip(scores, labels, weights or [1] * len(scores), strict=True))


def weight(events: Sequence[Event], label: int) -> Fraction:
    """Exact weight of a class."""
    return sum((Fraction(w) for _, y, w in events if y == label), Fraction(0))


def auc(events: Sequence[Event]) -> float:
    """Share of the pairs that are in order, ties half."""
    negatives = [(s, Fraction(w)) for s, y, w in events if y == 0]
    positives = [(s, Fraction(w)) for s, y, w in events if y == 1]
    if not negatives or not positives:
        return math.nan
    won = sum(
        v * w * (2 if high > low else high == low) for high, v in positives for low, w in negatives
    )
    return float(won / (2 * weight(events, 0) * weight(events, 1)))


def rates(events: Sequence[Event]) -> list[tuple[float, float]]:
    """P(s > t | 0) and P(s <= t | 1) at every threshold t, one below all scores among them."""
    n0, n1 = weight(events, 0), weight(events, 1)
    thresholds = [-math.inf, *sorted({s for s, _, _ in events})]
    return [
        (
            float(sum(Fraction(w) for s, y, w in events if y == 0 and s > t) / n0),
            float(sum(Fraction(w) for s, y, w in events if y == 1 and s <= t) / n1),
        )
        for t in thresholds
    ]


def priors_of(events: Sequence[Event]) -> tuple[float, float]:
    """Shares of the two classes."""
    n0, n1 = weight(events, 0), weight(events, 1)
    return float(n0 / (n0 + n1)), float(n1 / (n0 + n1))


def expected(
    loss: Callable[[float], float], breaks: Sequence[float], alpha: float, beta: float
) -> float:
    """E loss(c), c ~ Beta(alpha, beta), for a loss that is smooth between breaks."""
    density = beta_distribution(alpha, beta).pdf
    edges = sorted({0.0, 1.0, *(c for c in breaks if 0.0 < c < 1.0)})
    if float(alpha).is_integer() and float(beta).is_integer():
        # Polynomials: Gauss' nodes are exact.
        nodes, weights = np.polynomial.legendre.leggauss(int(alpha + beta) // 2 + 3)
        return math.fsum(
            (high - low) / 2 * w * loss(c := low + (high - low) * (x + 1) / 2) * float(density(c))
            for low, high in pairwise(edges)
            for x, w in zip(nodes.tolist(), weights.tolist(), strict=True)
        )
    return math.fsum(
        quad(lambda c: loss(c) * float(density(c)), low, high, epsabs=1e-13, epsrel=1e-12)[0]
        for low, high in pairwise(edges)
    )


def expected_loss(
    events: Sequence[Event],
    alpha: float = 2,
    beta: float = 2,
    priors: tuple[float, float] | None = None,
) -> tuple[float, float]:
    """Expected loss at the best thresholds, and without skill."""
    p0, p1 = priors or priors_of(events)
    lines = [(p0 * false, p1 * missed) for false, missed in rates(events)]
    trivial = [(p0, 0.0), (0.0, p1)]

    def least(of: list[tuple[float, float]]) -> float:
        breaks = [(v - w) / (x - u + v - w) for u, v in of for x, w in of if (x - u + v - w) != 0]
        return expected(lambda c: min(c * u + (1 - c) * v for u, v in of), breaks, alpha, beta)

    return least(lines), least(trivial)


def h_measure(
    events: Sequence[Event],
    alpha: float = 2,
    beta: float = 2,
    priors: tuple[float, float] | None = None,
) -> float:
    """H by quadrature over the costs of the least loss over all thresholds."""
    if not weight(events, 0) or not weight(events, 1):
        return math.nan
    loss, most = expected_loss(events, alpha, beta, priors)
    return 1 - loss / most


def vuhs_direct(samples: Sequence[Sequence[float]]) -> Fraction:
    """Weigh every choice of one score per class, as Wu et al. define the estimator (4)."""
    total = Fraction(0)
    for choice in product(*samples):
        if any(low > high for low, high in pairwise(choice)):
            continue
        weight, run = Fraction(1), 1
        for low, high in pairwise(choice):
            run = run + 1 if low == high else 1
            weight /= run
        total += weight
    return total / math.prod(map(len, samples))


def vuhs_by_patterns(samples: Sequence[Sequence[float]]) -> Fraction:
    """Count the events of each pattern of equalities, by Wu et al.'s dynamic programme."""
    scores = sorted({score for sample in samples for score in sample})
    counts = [[sample.count(score) for score in scores] for sample in samples]
    total = Fraction(0)
    for equal in product((False, True), repeat=len(samples) - 1):
        runs = [[0]]
        for place, same in enumerate(equal, 1):
            if same:
                runs[-1].append(place)
            else:
                runs.append([place])
        below = [1] * len(scores)  # chains of the runs so far that end below each score
        for run in runs:
            here = [
                chains * math.prod(counts[place][at] for place in run)
                for at, chains in enumerate(below)
            ]
            below = [sum(here[:at]) for at in range(len(scores))]
            events = sum(here)
        total += Fraction(events, math.prod(math.factorial(len(run)) for run in runs))
    return total / math.prod(map(len, samples))
