"""ROCs in bounded memory or time say how far they may be off, and keep to it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river import metrics

import engine

Y_TRUE, Y_PRED = [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]
PROBABILITIES = st.one_of(
    st.integers(0, 18).map(lambda k: k / 18), st.floats(0, 1), st.sampled_from([0.0, 1.0])
)
# Eighths: River's sums of other weights keep a rounding of what was reverted, and so a class.
WEIGHTS = st.integers(1, 40).map(lambda k: k / 8)
EVENTS = st.lists(st.tuples(PROBABILITIES, st.booleans(), WEIGHTS), max_size=30)


@pytest.mark.parametrize(("thresholds", "auc"), [(10, 0.875), (20, 0.75)])
def test_rivers_own_examples(thresholds: int, auc: float) -> None:
    roc = engine.BinnedRoc(thresholds=thresholds)
    assert roc.n_thresholds == thresholds
    for y_true, y_pred in zip(Y_TRUE, Y_PRED, strict=True):
        roc.update(y_true, y_pred)
    assert roc.get() == auc
    assert repr(roc) == f"BinnedRoc: {auc:.2%}"


def test_a_dict_of_probabilities_is_asked_for_the_positive_one() -> None:
    roc = engine.BinnedRoc()
    roc.update(y_true=True, y_pred={False: 0.3, True: 0.7})
    roc.update(y_true=False, y_pred={False: 0.8, True: 0.2})
    assert roc.get() == 1.0
    spam = engine.BinnedRoc(pos_val="spam")
    spam.update("spam", {"spam": 0.9, "ham": 0.1})
    spam.update("ham", {"ham": 1.0})
    assert (spam.get(), spam.positives, spam.negatives) == (1.0, 1, 1)


@given(EVENTS, st.integers(2, 20))
@settings(max_examples=30, deadline=None)
def test_it_reads_what_river_reads(events: Any, thresholds: int) -> None:
    ours, theirs = engine.BinnedRoc(thresholds), metrics.ROCAUC(n_thresholds=thresholds)
    assert ours.get() == 0.0
    for score, label, weight in events:
        ours.update(label, score, weight)
        theirs.update(label, score, weight)
    assert ours.get() == pytest.approx(theirs.get(), abs=1e-9)
    for score, label, weight in events[::2]:
        ours.revert(label, score, weight)
        theirs.revert(label, score, weight)
    ours._check()
    assert ours.get() == pytest.approx(theirs.get(), abs=1e-9)
    bulk = engine.BinnedRoc(thresholds)
    bulk.extend(*(map(list, zip(*events[1::2], strict=True)) if events[1:] else ([], [])))
    assert ours.get() == pytest.approx(bulk.get(), abs=1e-9)


@given(EVENTS, st.integers(2, 30))
@settings(max_examples=60, deadline=None)
def test_the_exact_auc_is_within_the_error_told(events: Any, thresholds: int) -> None:
    binned, exact = engine.BinnedRoc(thresholds), engine.reference.Roc()
    for score, label, weight in events:
        binned.add(score, label, weight)
        exact.add(score, label, weight)
    if math.isnan(exact.auc()):
        assert math.isnan(binned.auc())
        assert math.isnan(binned.error())
        return
    assert abs(binned.auc() - exact.auc()) <= binned.error() + 1e-12
    assert binned.auc() == pytest.approx(binned.get(), abs=1e-9)
    assert 0.0 <= binned.error() <= 0.5


def test_readings_of_bins_are_those_of_rounded_scores() -> None:
    rng = np.random.default_rng(6)
    labels = rng.integers(0, 2, 500)
    scores = np.clip(rng.normal(0.4 + 0.2 * labels, 0.2), 0, 1)
    binned = engine.BinnedRoc(51)
    binned.extend(scores, labels)
    middles, negatives, positives = binned._blocks()
    exact = engine.reference.Roc()
    exact.extend(
        np.repeat(np.tile(middles, 2), np.concatenate([negatives, positives])),
        np.repeat([0, 1], [negatives.sum(), positives.sum()]),
    )
    assert binned.auc() == pytest.approx(exact.auc(), abs=1e-12)
    for priors in (None, (0.9, 0.1)):
        assert binned.h_measure(2, 1.5, priors) == pytest.approx(
            exact.h_measure(2, 1.5, priors), abs=1e-12
        )
    assert (binned.ks(), binned.mer(), binned.auch()) == (exact.ks(), exact.mer(), exact.auch())
    for ours, theirs in zip(
        (*binned.curve(), *binned.hull()), (*exact.curve(), *exact.hull()), strict=True
    ):
        assert ours.tolist() == theirs.tolist()


def test_bins_refuse_what_they_do_not_hold() -> None:
    roc = engine.BinnedRoc(10)
    roc.extend([0.2, 0.8], [0, 1])
    for bad in ((math.nan, 0), (0.5, 2), (0.5, 1, -1.0)):
        with pytest.raises(ValueError, match=r".+"):
            roc.add(*bad)
    with pytest.raises(KeyError):
        roc.revert(True, 0.2)  # noqa: FBT003 - River's order
    assert (len(roc), roc.auc()) == (2, 1.0)
    roc.remove(0.2, 0)
    roc.remove(0.8, 1)
    assert (len(roc), roc.positives, roc.get()) == (0, 0, 0.0)
    for thresholds in (1, 0, 2.5):
        with pytest.raises(ValueError, match="thresholds"):
            engine.BinnedRoc(thresholds)


def test_weights_that_come_and_go_leave_no_trace() -> None:
    roc = engine.BinnedRoc()
    for weight in (1e6, 1e-6, 1e16, 1.0):
        roc.update(True, 0.5, weight)  # noqa: FBT003 - River's order
    for weight in (1e16, 1e6, 1.0):
        roc.revert(True, 0.5, weight)  # noqa: FBT003 - River's order
    assert (len(roc), roc.positives) == (1, 1e-6)
    roc.revert(True, 0.5, 1e-6)  # noqa: FBT003 - River's order
    roc.extend([0.5, 0.5], [1, 1])
    roc.remove(0.5, 1, 2)
    roc._check()
    assert (len(roc), roc.positives) == (0, 0)


def test_both_names_of_the_thresholds_are_taken() -> None:
    assert engine.BinnedRoc(n_thresholds=7).n_thresholds == engine.BinnedRoc(7).n_thresholds == 7
    assert engine.BinnedRoc().n_thresholds == metrics.ROCAUC().n_thresholds
    with pytest.raises(ValueError, match="two names"):
        engine.BinnedRoc(7, n_thresholds=7)


def test_rivers_weight_of_nothing_is_no_event() -> None:
    roc = engine.BinnedRoc()
    roc.update(True, 0.5, 0.0)  # noqa: FBT003 - River's order
    roc.revert(True, 0.5, 0.0)  # noqa: FBT003 - River's order
    assert len(roc) == 0
    for bad in (None, "0.5", [0.5]):
        with pytest.raises(TypeError, match="a score is a number, not"):
            roc.update(True, bad)  # noqa: FBT003 - River's order


SCORES = st.one_of(st.integers(0, 5).map(float), st.floats(-5, 5))


@given(
    st.lists(st.tuples(SCORES, st.integers(0, 1)), max_size=80),
    st.sampled_from([0.01, 0.3, 1.0, 4.0]),
)
@settings(max_examples=80, deadline=None)
def test_the_approximate_auc_is_within_its_share(events: Any, epsilon: float) -> None:
    near, exact = engine.ApproximateRoc(epsilon), engine.reference.Roc()
    for event in events:
        near.add(*event)
        exact.add(*event)
    near._check()
    if math.isnan(exact.auc()):
        assert math.isnan(near.auc())
        return
    assert abs(near.auc() - exact.auc()) <= epsilon / 2 * exact.auc() + 1e-15
    for event in events[::2]:
        near.remove(*event)
        exact.remove(*event)
    near._check()
    if exact.positives and exact.negatives:
        assert abs(near.auc() - exact.auc()) <= epsilon / 2 * exact.auc() + 1e-15


@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_groups_grow_with_the_logarithm(epsilon: float) -> None:
    rng = np.random.default_rng(7)
    labels = rng.integers(0, 2, 20_000)
    scores = rng.normal(size=20_000) + labels
    near, exact = engine.ApproximateRoc(epsilon), engine.Roc()
    near.extend(scores, labels)
    exact.extend(scores, labels)
    assert abs(near.auc() - exact.auc()) <= epsilon / 2 * exact.auc()
    steps = math.log(near.positives) / math.log1p(epsilon) + 1 / epsilon + 2
    assert len(near._groups()) <= 2 * steps + 1


def test_the_approximate_roc_refuses_bad_events() -> None:
    roc = engine.ApproximateRoc(0.2)
    roc.extend([0.1, 0.9], [0, 1])
    for bad in ((math.inf, 0), (0.5, 2)):
        with pytest.raises(ValueError, match=r".+"):
            roc.add(*bad)
    with pytest.raises(ValueError, match=r".+"):
        roc.extend([0.1, 0.2], [0])
    with pytest.raises(KeyError):
        roc.remove(0.1, 1)
    assert (len(roc), roc.positives, roc.negatives, roc.auc()) == (2, 1, 1, 1.0)
    for epsilon in (0, -1, math.nan):
        with pytest.raises(ValueError, match="epsilon"):
            engine.ApproximateRoc(epsilon)
