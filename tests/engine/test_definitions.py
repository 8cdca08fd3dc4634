"""Readings equal the definitions, by brute force and by other people's programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracles
import pytest
from hmeasure import h_score
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score, roc_curve

SCORES = st.one_of(
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 1.0, 1.0 + 2**-52, -1.7e308, 1.7e308, 0.5]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-3, 3).map(float),
)
EVENTS = st.lists(st.tuples(SCORES, st.integers(0, 1), st.just(1)), max_size=14)
WEIGHTED = st.lists(
    st.tuples(SCORES, st.integers(0, 1), st.floats(1e-6, 1e6)), min_size=1, max_size=10
)
WHOLE = st.sampled_from([1.0, 2.0, 3.0, 5.0])


def columns(events: Any) -> tuple[list[float], list[int], list[float]]:
    return tuple(map(list, zip(*events, strict=True))) if events else ([], [], [])


@given(EVENTS)
@settings(max_examples=150, deadline=None)
def test_auc_is_the_share_of_ordered_pairs(roc_of: Any, events: Any) -> None:
    assert roc_of(*columns(events)).auc() == pytest.approx(oracles.auc(events), abs=0, nan_ok=True)


@given(WEIGHTED)
@settings(max_examples=100, deadline=None)
def test_weighted_auc_is_the_share_of_ordered_weight(roc_of: Any, events: Any) -> None:
    roc = roc_of(*columns(events))
    assert roc.auc() == pytest.approx(oracles.auc(events), abs=1e-12, nan_ok=True)
    assert roc.positives == pytest.approx(float(oracles.weight(events, 1)), rel=1e-12)
    assert roc.negatives == pytest.approx(float(oracles.weight(events, 0)), rel=1e-12)


@given(EVENTS, WHOLE, WHOLE)
@settings(max_examples=60, deadline=None)
def test_h_is_the_expected_loss_that_skill_saves(
    roc_of: Any, events: Any, alpha: float, beta: float
) -> None:
    assert roc_of(*columns(events)).h_measure(alpha, beta) == pytest.approx(
        oracles.h_measure(events, alpha, beta), abs=1e-12, nan_ok=True
    )


@given(WEIGHTED, st.floats(0.01, 0.99))
@settings(max_examples=40, deadline=None)
def test_h_under_given_priors_and_weights(roc_of: Any, events: Any, p1: float) -> None:
    roc = roc_of(*columns(events))
    for priors in (None, (1 - p1, p1)):
        assert roc.h_measure(priors=priors) == pytest.approx(
            oracles.h_measure(events, priors=priors), abs=1e-11, nan_ok=True
        )


@pytest.mark.parametrize(("alpha", "beta"), [(1.5, 2.5), (1.2, 1.9), (7.25, 3.5)])
def test_h_under_other_severities(roc_of: Any, alpha: float, beta: float) -> None:
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, 12)
    scores = (rng.normal(size=12) + labels).round(1)
    events = oracles.events_of(scores.tolist(), labels.tolist())
    assert roc_of(scores, labels).h_measure(alpha, beta) == pytest.approx(
        oracles.h_measure(events, alpha, beta), abs=1e-9
    )


@pytest.mark.parametrize("digits", [0, 1, 16])
@pytest.mark.parametrize("shift", [2.0, 0.3, -0.5])
def test_auc_and_curve_agree_with_scikit_learn(roc_of: Any, digits: int, shift: float) -> None:
    rng = np.random.default_rng(digits)
    labels = rng.integers(0, 2, 400)
    scores = (rng.normal(size=400) + shift * labels).round(digits)
    roc = roc_of(scores, labels)
    assert roc.auc() == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)
    expected = roc_curve(labels, scores, drop_intermediate=False)
    for ours, theirs in zip(roc.curve(), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-14)


@pytest.mark.parametrize("digits", [0, 1, 16])
@pytest.mark.parametrize("ratio", [1.0, 0.25, 3.0])
def test_h_agrees_with_hmeasure(roc_of: Any, digits: int, ratio: float) -> None:
    rng = np.random.default_rng(digits)
    labels = rng.integers(0, 2, 300)
    scores = (rng.normal(size=300) + labels).round(digits)
    # It takes scores in [0, 1] only.
    probabilities = (scores - scores.min()) / np.ptp(scores)
    expected = h_score(labels, probabilities, severity_ratio=ratio)
    assert roc_of(scores, labels).h_measure(2.0, 1.0 + 1.0 / ratio) == pytest.approx(
        expected, abs=1e-12
    )


def test_pairs_beyond_what_a_double_counts(roc_of: Any) -> None:
    # 2U and 2 n0 n1 lie past 2^53; the quotient is still the double nearest to the true one.
    weights = [2.0**27 + 1, 2.0**27 - 1, 3.0, 2.0**27]
    scores, labels = [1.0, 1.0, 2.0, 0.5], [0, 1, 0, 1]
    events = oracles.events_of(scores, labels, weights)
    assert roc_of(scores, labels, weights).auc() == pytest.approx(oracles.auc(events), abs=1e-15)
