"""The convex hull of an ROC curve, as edges between its vertices."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction
    from typing import TypeAlias

    Weight: TypeAlias = int | float | Fraction


class Edge(NamedTuple):
    """One edge of the hull, in increasing score.

    Attributes
    ----------
    score
        The lowest of its scores: the threshold of the vertex above it.
    negatives, positives
        The weights of its two classes.
    """

    score: float
    negatives: Weight
    positives: Weight


def hull_edges(blocks: Iterable[tuple[float, Weight, Weight]]) -> list[Edge]:
    """Merge neighbouring blocks until negatives/positives falls strictly from edge to edge.

    Parameters
    ----------
    blocks
        (score, weight of negatives, weight of positives) in increasing score, not both 0.

    Returns
    -------
    edges
        In increasing score. Exact when the weights are integers or fractions.

    Notes
    -----
    O(blocks): every block is merged at most once. Andrew (1979), "Another efficient algorithm for
    convex hulls in two dimensions".

    Examples
    --------
    >>> hull_edges([(0.1, 1, 0), (0.35, 0, 1), (0.4, 1, 0), (0.8, 0, 1)])
    ... # doctest: +NORMALIZE_WHITESPACE
    [Edge(score=0.1, negatives=1, positives=0), Edge(score=0.35, negatives=1, positives=1),
     Edge(score=0.8, negatives=0, positives=1)]
    """
    edges: list[tuple[float, Weight, Weight]] = []
    for block in blocks:
        score, negatives, positives = block
        while edges:
            low, below0, below1 = edges[-1]
            if below0 * positives > negatives * below1:
                break
            edges.pop()
            score = low
            negatives += below0
            positives += below1
        edges.append((score, negatives, positives))
    return list(map(Edge._make, edges))
