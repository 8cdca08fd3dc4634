"""The approximate H keeps its promise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.readings import thin


def binormal(size: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    labels = (rng.random(size) < 0.3).astype(int)
    return rng.normal(size=size) + 1.2 * labels, labels


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 2.0])
@pytest.mark.parametrize("priors", [None, (0.5, 0.5), (0.99, 0.01)])
def test_the_loss_grows_by_epsilon_at_most(roc_of: Any, epsilon: float, priors: Any) -> None:
    for size, seed in ((50, 1), (1000, 2), (5000, 3)):
        roc = roc_of(*binormal(size, seed))
        for severity in ((2, 2), (1, 1), (2, 1.3)):
            exact = roc.h_measure(*severity, priors=priors)
            near = roc.h_measure(*severity, priors=priors, epsilon=epsilon)
            assert exact - epsilon * (1 - exact) - 1e-12 <= near <= exact + 1e-12


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.floats(0, 1), st.integers(0, 1), st.integers(-50, 50).map(lambda k: 2.0**k)),
        min_size=2,
        max_size=12,
    )
)
def test_the_promise_holds_for_weights_of_any_size(roc_of: Any, events: Any) -> None:
    roc = roc_of(*map(list, zip(*events, strict=True)))
    exact, near = roc.h_measure(), roc.h_measure(epsilon=0.1)
    if math.isnan(exact):
        assert math.isnan(near)
        return
    assert exact - 0.1 * (1 - exact) - 1e-14 <= near <= exact + 1e-14


def test_few_vertices_are_left() -> None:
    # A hull of 3,000 edges, as an adversary makes it.
    slopes = np.arange(1, 3001, dtype=float)
    negatives, positives = slopes[::-1], slopes
    total = negatives.sum()
    for epsilon in (0.1, 0.5):
        fewer, _ = thin(negatives, positives, epsilon)
        assert len(fewer) <= 2 * math.log(total) / math.log1p(epsilon) + 2
        assert fewer.sum() == total
    same, _ = thin(negatives, positives, 1e-12)
    assert len(same) == 3000


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_an_epsilon_that_promises_nothing_is_refused(roc_of: Any, epsilon: float) -> None:
    with pytest.raises(ValueError, match="epsilon"):
        roc_of([0.1, 0.9], [0, 1]).h_measure(priors=(0.5, 0.5), epsilon=epsilon)


def test_perfect_and_useless_stay_exact(roc_of: Any) -> None:
    for epsilon in (0.1, 5.0):
        perfect = roc_of([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])
        assert perfect.h_measure(priors=(0.5, 0.5), epsilon=epsilon) == 1.0
        tied = roc_of([0.5, 0.5], [0, 1])
        assert tied.h_measure(priors=(0.4, 0.6), epsilon=epsilon) == 0.0
