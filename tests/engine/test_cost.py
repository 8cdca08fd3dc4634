"""Cost curves follow their definitions, and their areas the closed forms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import simpson

SCORES = st.sampled_from([0.0, 0.125, 0.25, 0.3, 0.5, 0.7, 0.75, 1.0])
WEIGHTS = st.one_of(st.just(1), st.floats(0.01, 100))
EVENTS = st.lists(st.tuples(SCORES, st.integers(0, 1), WEIGHTS), max_size=14).filter(
    lambda events: len({label for _, label, _ in events}) == 2
)
PRIORS = st.sampled_from([None, (0.5, 0.5), (0.9, 0.1)])


@pytest.fixture(scope="session")
def roc(roc_of: Any) -> Any:
    """Make a Roc of a list of events."""
    return lambda events: roc_of(*map(list, zip(*events, strict=True)))


def loss_at(events: Any, cost: float, threshold: float, priors: Any) -> float:
    p0, p1 = priors or oracles.priors_of(events)
    n0, n1 = oracles.weight(events, 0), oracles.weight(events, 1)
    false = math.fsum(w for s, y, w in events if y == 0 and s > threshold) / float(n0)
    missed = math.fsum(w for s, y, w in events if y == 1 and s <= threshold) / float(n1)
    return 2 * (cost * p0 * false + (1 - cost) * p1 * missed)


@given(EVENTS, PRIORS)
@settings(max_examples=60, deadline=None)
def test_the_optimal_curve_is_the_least_loss(roc: Any, events: Any, priors: Any) -> None:
    made = roc(events)
    cost, loss = made.cost_curve("optimal", priors)
    thresholds = [-math.inf, *sorted({s for s, _, _ in events})]
    grid = np.linspace(0, 1, 41)
    expected = [min(loss_at(events, c, t, priors) for t in thresholds) for c in grid.tolist()]
    np.testing.assert_allclose(np.interp(grid, cost, loss), expected, atol=1e-12)
    area = made.cost_area("optimal", priors)
    assert area == pytest.approx(float(np.trapezoid(loss, cost)), abs=1e-12)
    assert area == pytest.approx(2 * oracles.expected_loss(events, 1, 1, priors)[0], abs=1e-11)


@given(EVENTS, PRIORS)
@settings(max_examples=60, deadline=None)
def test_the_brier_curve_decides_at_the_cost(roc: Any, events: Any, priors: Any) -> None:
    made = roc(events)
    cost, loss = made.cost_curve("brier", priors)
    for c in (0.06, 0.2, 0.28, 0.4, 0.61, 0.72, 0.9):
        assert float(np.interp(c, cost, loss)) == pytest.approx(
            loss_at(events, c, c, priors), abs=1e-12
        )
    area = made.cost_area("brier", priors)
    assert area == pytest.approx(float(np.trapezoid(loss, cost)), abs=1e-12)
    if priors is None:
        total = math.fsum(w for _, _, w in events)
        score = math.fsum(w * (y - s) ** 2 for s, y, w in events) / total
        assert area == pytest.approx(score, abs=1e-12)


@given(EVENTS, PRIORS)
@settings(max_examples=60, deadline=None)
def test_the_rate_driven_area_is_linear_in_the_auc(roc: Any, events: Any, priors: Any) -> None:
    made = roc(events)
    cost, loss = made.cost_curve("rate-driven", priors)
    assert (np.diff(cost) >= 0).all()
    assert (cost[0], cost[-1]) == (0.0, 1.0)
    # A parabola per piece: Simpson's rule over its ends and its middle is exact.
    area = math.fsum(
        float(simpson(loss[i : i + 3], x=cost[i : i + 3])) for i in range(0, len(cost) - 2, 2)
    )
    assert made.cost_area("rate-driven", priors) == pytest.approx(area, abs=1e-12)


@given(EVENTS)
@settings(max_examples=40, deadline=None)
def test_the_rate_driven_loss_accepts_as_many_as_the_cost_says(roc: Any, events: Any) -> None:
    cost, loss = roc(events).cost_curve("rate-driven")
    total = math.fsum(w for _, _, w in events)
    for threshold in {s for s, _, _ in events}:
        share = math.fsum(w for s, _, w in events if s <= threshold) / total
        expected = loss_at(events, share, threshold, None)
        nearest = int(np.argmin(np.abs(cost - share)))
        assert cost[nearest] == pytest.approx(share, abs=1e-12)
        assert float(np.min(np.abs(loss[np.abs(cost - share) < 1e-9] - expected))) < 1e-9


def test_areas_of_a_worked_example(roc_of: Any) -> None:
    roc = roc_of([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    assert roc.cost_area("optimal") == pytest.approx(1 / 8, abs=1e-15)
    assert roc.cost_area("rate-driven") == pytest.approx(5 / 24, abs=1e-15)
    assert roc.cost_area("brier") == pytest.approx(0.158125, abs=1e-15)


def test_brier_takes_probabilities_and_one_class_will_do(roc_of: Any) -> None:
    assert roc_of([0.5, 0.25], [0, 0]).cost_area("brier") == pytest.approx(0.15625)
    assert math.isnan(roc_of([0.5, 1.5], [0, 1]).cost_area("brier"))
    assert np.isnan(roc_of([-0.5, 0.5], [0, 1]).cost_curve("brier").loss).all()
    assert math.isnan(roc_of().cost_area("brier"))


def test_unknown_kinds_and_priors_are_refused(roc_of: Any) -> None:
    roc = roc_of([0.1, 0.9], [0, 1])
    for call in (roc.cost_curve, roc.cost_area):
        with pytest.raises(ValueError, match="rate-driven"):
            call("best")
        with pytest.raises(ValueError, match="prior"):
            call("optimal", (0.5, 0.6))
