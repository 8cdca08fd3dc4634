"""Events to benchmark with."""

import math

import numpy as np
from numpy.typing import NDArray

Events = tuple[NDArray[np.float64], NDArray[np.uint8]]


def binormal(events: int, size: int) -> Events:  # noqa: ARG001 - all inputs have one signature
    """Two normals one standard deviation apart, half of the events positive."""
    random = np.random.default_rng(1)
    labels = (random.random(events) < 0.5).astype(np.uint8)
    return random.normal(size=events) + labels, labels


def mild_ties(events: int, size: int) -> Events:
    """Two normals on a grid that gives about one tie in ten scores of a window."""
    scores, labels = binormal(events, size)
    return np.round(scores * size * 2) / (size * 2), labels


def heavy_ties(events: int, size: int) -> Events:
    """Two normals with two decimals."""
    scores, labels = binormal(events, size)
    return np.round(scores, 2), labels


def ascending(events: int, size: int) -> Events:
    """Scores that only grow."""
    return np.arange(events, dtype=np.float64), binormal(events, size)[1]


def lattice(events: int, size: int) -> Events:
    """Give the window a hull with as many edges as can be: one per reduced fraction.

    All edges (negatives, positives) with a sum up to k, flattest first, make a few more events than
    the window holds; they come in a random order over and over, so each event heals and hurts.
    """
    edges: list[tuple[int, int]] = []
    total = 0
    step = 0
    points = size + size // 50
    while total < points:
        step += 1
        new = [(d0, step - d0) for d0 in range(step + 1) if math.gcd(d0, step) == 1]
        edges += new
        total += step * len(new)
    edges.sort(key=lambda edge: edge[1] / (edge[0] + edge[1]))
    labels = np.concatenate([[1] * d1 + [0] * d0 for d0, d1 in edges])[:points].astype(np.uint8)
    order = np.random.default_rng(1).permutation(points)
    places = np.resize(order, events)
    return places.astype(np.float64), labels[places]
