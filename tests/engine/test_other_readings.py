"""The readings beside AUC and H equal their definitions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from engine import readings

FOUR = ([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
SCORES = st.sampled_from([0.0, 0.125, 0.25, 0.3, 0.5, 0.7, 0.75, 1.0])
EVENTS = st.lists(st.tuples(SCORES, st.integers(0, 1), st.just(1)), max_size=20)
BOTH = EVENTS.filter(lambda events: len({label for _, label, _ in events}) == 2)
WEIGHTED = st.lists(st.tuples(SCORES, st.integers(0, 1), st.floats(1e-6, 1e6)), max_size=14).filter(
    lambda events: len({label for _, label, _ in events}) == 2
)


@pytest.fixture(scope="session")
def roc(roc_of: Any) -> Any:
    """Make a Roc of a list of events; skip where the readings are not offered yet."""

    def make(events: Any) -> Any:
        return roc_of(*map(list, zip(*events, strict=True))) if events else roc_of()

    return make


def test_worked_examples(roc_of: Any) -> None:
    roc = roc_of(*FOUR)
    assert roc.ties() == (0.75, 0.0, 0.0)
    assert roc.gini() == 0.5
    assert roc.auch() == 0.875
    assert roc.ks() == 0.5
    assert roc.mer() == 0.25
    assert roc.mwl(0.5) == 0.125
    assert roc.confusion(0.4) == (1, 1, 1, 1)


@pytest.mark.parametrize("labels", [[], [0, 0], [1, 1]], ids=str)
def test_what_takes_two_classes_is_nan_with_fewer(roc_of: Any, labels: Any) -> None:
    roc = roc_of([0.25, 0.5][: len(labels)], labels)
    values = [*roc.ties(), *roc.auc_interval(), roc.gini(), roc.auch(), roc.ks(), roc.mer()]
    values += [roc.mwl(0.3), roc.cost_area("optimal"), roc.cost_area("rate-driven")]
    values += [*roc.cost_curve("optimal").loss, *roc.cost_curve("rate-driven").loss]
    assert all(math.isnan(value) for value in values)


@given(st.one_of(BOTH, WEIGHTED))
@settings(max_examples=80, deadline=None)
def test_ties_split_the_auc(roc: Any, events: Any) -> None:
    made = roc(events)
    n0, n1 = oracles.weight(events, 0), oracles.weight(events, 1)
    pairs = [
        (high > low, high == low, Fraction(v) * Fraction(w))
        for high, y, v in events
        for low, z, w in events
        if (y, z) == (1, 0)
    ]
    strict, tied, bound = made.ties()
    assert strict == pytest.approx(float(sum(w for a, _, w in pairs if a) / (n0 * n1)), abs=1e-12)
    assert tied == pytest.approx(float(sum(w for _, e, w in pairs if e) / (n0 * n1)), abs=1e-12)
    assert made.auc() == pytest.approx(strict + tied / 2, abs=1e-12)
    both = {s for s, y, _ in events if y} & {s for s, y, _ in events if not y}
    shares = [
        float(sum(Fraction(w) for s, y, w in events if s in both and y == k) / n)
        for k, n in ((0, n0), (1, n1))
    ]
    assert bound == pytest.approx(sum(shares) / 4, abs=1e-12)
    assert -1e-12 <= made.auc() - strict <= bound + 1e-12
    assert all(0.0 <= value <= 1.0 for value in (strict, tied, bound))


@given(BOTH, st.floats(0.5, 0.999))
@settings(max_examples=60, deadline=None)
def test_the_interval_is_delongs(roc: Any, events: Any, level: float) -> None:
    low, high = roc(events).auc_interval(level)
    negatives = [s for s, y, _ in events if y == 0]
    positives = [s for s, y, _ in events if y == 1]
    if min(len(negatives), len(positives)) < 2:
        assert math.isnan(low)
        assert math.isnan(high)
        return
    beats = np.array([[(p > n) + (p == n) / 2 for n in negatives] for p in positives])
    variance = beats.mean(1).var(ddof=1) / len(positives)
    variance += beats.mean(0).var(ddof=1) / len(negatives)
    reach = metrics_normal(level) * math.sqrt(variance)
    assert low == pytest.approx(max(beats.mean() - reach, 0.0), abs=1e-7)
    assert high == pytest.approx(min(beats.mean() + reach, 1.0), abs=1e-7)
    assert 0.0 <= low <= high <= 1.0


def metrics_normal(level: float) -> float:
    from statistics import NormalDist  # noqa: PLC0415 - the one use

    return NormalDist().inv_cdf((1 + level) / 2)


def test_the_interval_takes_a_level_and_no_weights(roc_of: Any) -> None:
    roc = roc_of(*FOUR)
    for level in (0.0, 1.0, -1, 2, math.nan):
        with pytest.raises(ValueError, match="level"):
            roc.auc_interval(level)
    narrow, wide = roc.auc_interval(0.5), roc.auc_interval(0.99)
    assert wide[0] <= narrow[0] < 0.75 < narrow[1] <= wide[1]
    roc.add(0.9, 1, 2.0)
    assert all(math.isnan(value) for value in roc.auc_interval())


def test_interval_sums_go_past_64_bits() -> None:
    size = 3_000_000
    low, high = readings.interval_of(np.array([size, 1, 0]), np.array([0, 1, size]))
    assert 0.999 < low < high <= 1.0
    wide = readings.interval_of(np.array([size, size]), np.array([size, size]))
    assert sum(wide) == pytest.approx(1.0, abs=1e-12)


@given(st.one_of(BOTH, WEIGHTED), st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]))
@settings(max_examples=80, deadline=None)
def test_extremes_over_all_thresholds(roc: Any, events: Any, cost: float) -> None:
    made = roc(events)
    p0, p1 = oracles.priors_of(events)
    rates = oracles.rates(events)
    assert made.ks() == pytest.approx(max(1 - miss - false for false, miss in rates), abs=1e-12)
    assert made.mer() == pytest.approx(min(p0 * f + p1 * m for f, m in rates), abs=1e-12)
    assert made.mwl(cost) == pytest.approx(
        min(cost * p0 * f + (1 - cost) * p1 * m for f, m in rates), abs=1e-12
    )
    assert 0.0 <= made.ks() <= 1.0
    assert 0.0 <= made.mer() <= 0.5
    fpr, tpr, _ = made.hull()
    assert made.auch() == pytest.approx(float(np.trapezoid(tpr, fpr)), abs=1e-12)
    assert made.auch() >= max(made.auc(), 0.5) - 1e-12
    assert made.gini() == pytest.approx(2 * made.auc() - 1, abs=1e-12)


@pytest.mark.parametrize("cost", [-0.1, 1.1, math.nan])
def test_a_cost_outside_0_and_1_is_refused(roc_of: Any, cost: float) -> None:
    with pytest.raises(ValueError, match="cost"):
        roc_of(*FOUR).mwl(cost)


@given(BOTH, st.one_of(SCORES, st.sampled_from([-1.0, 0.6, 2.0, math.inf, -math.inf])))
@settings(max_examples=100, deadline=None)
def test_decisions_agree_with_scikit_learn(roc: Any, events: Any, threshold: float) -> None:
    confusion = roc(events).confusion(threshold)
    labels = [label for _, label, _ in events]
    decided = [int(score >= threshold) for score, _, _ in events]
    tn, fp, fn, tp = metrics.confusion_matrix(labels, decided, labels=[0, 1]).ravel()
    assert confusion == (tp, fp, tn, fn)
    assert all(isinstance(count, int) for count in confusion)
    assert confusion.accuracy == pytest.approx(metrics.accuracy_score(labels, decided))
    assert confusion.recall == pytest.approx(metrics.recall_score(labels, decided))
    if tp + fp:
        assert confusion.precision == pytest.approx(metrics.precision_score(labels, decided))
    else:
        assert math.isnan(confusion.precision)
    assert confusion.f1 == pytest.approx(metrics.f1_score(labels, decided, zero_division=math.nan))
    assert confusion.kappa == pytest.approx(metrics.cohen_kappa_score(labels, decided))
    if len(set(decided)) == 2:
        assert confusion.mcc == pytest.approx(metrics.matthews_corrcoef(labels, decided))
    else:
        assert math.isnan(confusion.mcc)


def test_decisions_are_nan_where_they_divide_by_nothing(roc_of: Any) -> None:
    empty = roc_of().confusion(0.5)
    assert empty == (0, 0, 0, 0)
    names = ("accuracy", "precision", "recall", "f1", "kappa", "mcc")
    assert all(math.isnan(getattr(empty, name)) for name in names)
    one_class = roc_of([0.2, 0.6], [0, 0]).confusion(0.5)
    assert one_class.accuracy == 0.5
    assert math.isnan(one_class.recall)
    with pytest.raises(ValueError, match="threshold"):
        roc_of(*FOUR).confusion(math.nan)


def test_decisions_stay_in_range_past_the_doubles() -> None:
    huge = readings.Confusion(2**40, 0, 2**40, 0)
    assert (huge.mcc, huge.kappa, huge.f1) == (1.0, 1.0, 1.0)
    wrong = readings.Confusion(0, 3, 0, 7)
    assert wrong.mcc == -1.0
    assert -1.0 <= wrong.kappa < 0.0


@given(WEIGHTED, SCORES)
@settings(max_examples=40, deadline=None)
def test_weighted_decisions_sum_weights(roc: Any, events: Any, threshold: float) -> None:
    confusion = roc(events).confusion(threshold)
    expected = [
        math.fsum(w for s, y, w in events if (y, s >= threshold) == (label, above))
        for label, above in ((1, True), (0, True), (0, False), (1, False))
    ]
    assert list(confusion) == pytest.approx(expected, rel=1e-12, abs=1e-9)
