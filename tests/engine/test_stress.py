"""After ten million adds and removes every reading has the bits of a fresh build."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

core = pytest.importorskip("engine._core")

pytestmark = pytest.mark.slow

CHANGES = 10_000_000
READ: dict[str, Callable[[Any], Any]] = {
    "auc": lambda roc: roc.auc(),
    "h": lambda roc: roc.h_measure(),
    "h, Beta(2.5, 1)": lambda roc: roc.h_measure(2.5, 1),
    "h, priors": lambda roc: roc.h_measure(priors=(0.9, 0.1)),
    "interval": lambda roc: roc.auc_interval(),
    "ties": lambda roc: roc.ties(),
    "ks": lambda roc: roc.ks(),
    "mer": lambda roc: roc.mer(),
    "auch": lambda roc: roc.auch(),
    "f1": lambda roc: roc.confusion(0.5).f1,
    "curve": lambda roc: [column.tolist() for column in roc.curve()],
    "hull": lambda roc: [column.tolist() for column in roc.hull()],
}
SHAPES: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "distinct": lambda rng, count: rng.normal(size=count),
    "two decimals": lambda rng, count: rng.normal(size=count).round(2),
    "two values": lambda rng, count: rng.integers(0, 2, count).astype(float),
    "ascending": lambda _, count: np.arange(count, dtype=float),
    "descending": lambda _, count: -np.arange(count, dtype=float),
    "denormal": lambda rng, count: rng.integers(-3000, 3000, count) * 5e-324,
}


def all_readings(roc: Any) -> dict[str, Any]:
    return {name: read(roc) for name, read in READ.items()}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_adds_and_removes_in_any_order_leave_no_trace(shape: Any) -> None:
    rng = np.random.default_rng(1)
    chance = random.Random(1).random  # noqa: S311 - tests repeat their chances
    count = CHANGES // 2
    scores = shape(rng, count)
    labels = (rng.random(count) < 0.4).astype(np.uint8)
    roc = core.Roc()
    inside: list[tuple[float, int]] = []
    # Five hundred thousand at a time, the more of which stay the longer it goes.
    for start in range(0, count, 500_000):
        part = slice(start, start + 500_000)
        for event in zip(scores[part].tolist(), labels[part].tolist(), strict=True):
            roc.add(*event)
            inside.append(event)
            if len(inside) > 20_000:
                place = int(chance() * len(inside))
                inside[place], inside[-1] = inside[-1], inside[place]
                roc.remove(*inside.pop())
        roc.h_measure()
    for event in inside[5_000:]:
        roc.remove(*event)
    del inside[5_000:]
    roc._check()
    fresh = core.Roc()
    fresh.extend(*zip(*inside, strict=True))
    assert all_readings(roc) == all_readings(fresh)


def lattice(size: int) -> tuple[Floats, NDArray[np.uint8]]:
    """Make the hull with the most edges, in random order, over and over."""
    step, edges = 0, []
    while sum(map(sum, edges)) < size:
        step += 1
        fractions = ((d0, step - d0) for d0 in range(step + 1))
        edges += [edge for edge in fractions if np.gcd(*edge) == 1]
    edges.sort(key=lambda edge: edge[1] / sum(edge))
    labels = np.concatenate([[1] * d1 + [0] * d0 for d0, d1 in edges])[:size].astype(np.uint8)
    places = np.resize(np.random.default_rng(2).permutation(size), CHANGES // 2)
    return places.astype(float), labels[places]


@pytest.mark.parametrize("shape", [*SHAPES, "lattice"])
def test_a_window_slid_by_millions_reads_as_one_rebuilt(shape: str) -> None:
    rng = np.random.default_rng(3)
    size = 10_000
    if shape == "lattice":
        scores, labels = lattice(size + size // 50)
    else:
        scores = SHAPES[shape](rng, CHANGES // 2)
        labels = (rng.random(len(scores)) < 0.4).astype(np.uint8)
    window = core.CountWindow(size)
    every = 1000
    readings = window.slide(scores, labels, every=every, read=("auc", "h", "ks", "positives"))
    window._check()
    fresh = core.Roc()
    fresh.extend(scores[-size:], labels[-size:])
    assert all_readings(window.roc) == all_readings(fresh)
    # And so it was on the way.
    for row in np.linspace(size // every, len(readings.auc) - 1, 50).astype(int).tolist():
        end = (row + 1) * every
        roc = core.Roc()
        roc.extend(scores[end - size : end], labels[end - size : end])
        found = [column[row] for column in readings]
        assert found == [roc.auc(), roc.h_measure(), roc.ks(), roc.positives]


@pytest.mark.parametrize("shape", ["distinct", "two decimals", "two values"])
def test_weights_of_any_size_that_came_and_went_leave_the_rest(shape: str) -> None:
    rng = np.random.default_rng(4)
    size = 200
    count, step = CHANGES // 2, 500_000
    scores = SHAPES[shape](rng, count)
    labels = (rng.random(count) < 0.4).astype(np.uint8)
    weights = 10.0 ** rng.uniform(-6, 6, count)
    window = core.CountWindow(size)
    for start in range(0, count, step):
        part = slice(start, start + step)
        window.extend(scores[part], labels[part], weights[part])
        window._check()
        fresh = core.Roc()
        inside = slice(start + step - size, start + step)
        fresh.extend(scores[inside], labels[inside], weights[inside])
        for name in ("auc", "h", "h, Beta(2.5, 1)", "h, priors", "ks", "mer", "auch"):
            read = READ[name]
            assert read(window.roc) == pytest.approx(read(fresh), abs=1e-12), name


@pytest.mark.parametrize("shape", ["distinct", "two decimals", "ascending"])
def test_decay_over_millions_of_half_lives_reads_as_one_rebuilt(shape: str) -> None:
    rng = np.random.default_rng(5)
    scores = SHAPES[shape](rng, CHANGES // 2)
    labels = (rng.random(len(scores)) < 0.4).astype(np.uint8)
    window = core.DecayWindow(half_life=10.0)
    window.slide(scores, labels, every=1000)
    window._check()
    fresh = core.DecayWindow(half_life=10.0)
    fresh.extend(scores[-len(window) :], labels[-len(window) :])
    assert len(window) == len(fresh) > 250
    for name in ("auc", "h", "h, Beta(2.5, 1)", "h, priors", "ks", "mer"):
        assert READ[name](window.roc) == pytest.approx(READ[name](fresh.roc), abs=1e-12), name


@pytest.mark.parametrize("classes", [3, 4, 5])
@pytest.mark.parametrize("shape", ["distinct", "two values", "ascending"])
def test_ordered_classes_slid_by_millions_read_as_rebuilt(classes: int, shape: str) -> None:
    rng = np.random.default_rng(6)
    size, count = 1000, CHANGES // 5
    scores = SHAPES[shape](rng, count)
    labels = rng.integers(0, classes, count)
    window = core.OrdinalCountWindow(classes, size)
    readings = window.slide(scores, labels, every=1000)
    window._check()
    fresh = core.OrdinalRoc(classes)
    fresh.extend(scores[-size:], labels[-size:])
    assert readings.vuhs[-1] == window.roc.vuhs() == fresh.vuhs()


def test_a_decay_window_larger_than_the_caches_weighs_events_by_their_age() -> None:
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 2, 300_000)
    scores = rng.normal(size=300_000) + labels
    window = core.DecayWindow(half_life=9_000.0)
    readings = window.slide(scores, labels, every=10_000)
    window._check()
    weights = 2.0 ** (np.arange(-299_999, 1)[-len(window) :] / 9_000.0)
    inside = np.argsort(scores[-len(window) :])
    positive, negative = ((labels[-len(window) :] == k) * weights for k in (1, 0))
    below = np.cumsum(negative[inside])
    expected = (positive[inside] * below).sum() / positive.sum() / negative.sum()
    assert len(window) > 200_000
    assert readings.auc[-1] == pytest.approx(expected, rel=1e-11)
    fresh = core.DecayWindow(half_life=9_000.0)
    fresh.extend(scores[-len(window) :], labels[-len(window) :])
    assert readings.h[-1] == pytest.approx(fresh.roc.h_measure(), rel=1e-11)
