"""Ties, absent classes, exact ranges and the ends of the doubles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest


def test_an_empty_roc_has_no_readings(roc_of: Any) -> None:
    roc = roc_of()
    assert (len(roc), roc.positives, roc.negatives) == (0, 0, 0)
    assert math.isnan(roc.auc())
    assert math.isnan(roc.h_measure())


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_has_neither_auc_nor_h(roc_of: Any, label: int) -> None:
    roc = roc_of([0.1, 0.2, 0.2], [label] * 3)
    assert math.isnan(roc.auc())
    assert math.isnan(roc.h_measure())
    assert math.isnan(roc.h_measure(3, 1, priors=(0.5, 0.5)))
    assert (roc.positives, roc.negatives) == ((3, 0) if label else (0, 3))
    rates = (roc.curve().tpr, roc.curve().fpr)
    assert np.isnan(rates[label]).all()
    assert rates[1 - label][-1] == 1.0


@pytest.mark.parametrize(("alpha", "beta"), [(2, 2), (1, 1), (2, 1.5), (0.5, 7), (40, 3)])
def test_ranges_hold_exactly(roc_of: Any, alpha: float, beta: float) -> None:
    for size in (1, 2, 3, 7, 10, 49, 97):
        low, high = [float(i) for i in range(size)], [float(size + i) for i in range(size)]
        labels = [0] * size + [1] * size
        perfect = roc_of(low + high, labels)
        assert perfect.auc() == 1.0
        assert perfect.h_measure(alpha, beta) == 1.0
        wrong = roc_of(high + low, labels)
        for value in (wrong.auc(), wrong.h_measure(alpha, beta)):
            assert value == 0.0
            assert math.copysign(1.0, value) == 1.0
        tied = roc_of([3.0] * (2 * size + 1), [*labels, 1])
        assert tied.auc() == 0.5
        assert math.copysign(1.0, tied.h_measure(alpha, beta)) == 1.0
        assert tied.h_measure(alpha, beta) == 0.0
        assert tied.h_measure(alpha, beta, priors=(0.3, 0.7)) == 0.0
        assert perfect.h_measure(alpha, beta, priors=(0.3, 0.7)) == 1.0


def test_negative_zero_equals_zero(roc_of: Any) -> None:
    roc = roc_of([-0.0, 0.0, 0.0], [0, 1, 0])
    assert roc.auc() == 0.5
    roc.add(0.0, 1)
    roc.remove(-0.0, 1)
    assert math.copysign(1.0, roc.curve().thresholds[1]) == 1.0
    roc.remove(0.0, 0)
    roc.remove(0.0, 0)
    roc.remove(-0.0, 1)
    assert len(roc) == 0
    roc._check()


def test_the_smallest_difference_counts(roc_of: Any) -> None:
    above_one = math.nextafter(1.0, 2.0)
    assert roc_of([0.0, 5e-324], [0, 1]).auc() == 1.0
    assert roc_of([-5e-324, -0.0], [0, 1]).auc() == 1.0
    assert roc_of([1.0, above_one], [0, 1]).auc() == 1.0
    assert roc_of([above_one, 1.0], [0, 1]).auc() == 0.0


def test_scores_are_compared_and_never_subtracted(roc_of: Any) -> None:
    huge = 1.7976931348623157e308
    assert roc_of([-huge, huge, 0.0], [0, 1, 0]).auc() == 1.0
    assert roc_of([huge, -huge], [0, 1]).auc() == 0.0


def test_integers_past_the_doubles_round_to_them(roc_of: Any) -> None:
    assert roc_of([2**53, 2**53 + 1], [0, 1]).auc() == 0.5


def test_weights_of_very_different_size_live_together(roc_of: Any) -> None:
    roc = roc_of([0.5], [0], [1e-3])
    for label in (0, 1):
        roc.add(0.5, label, 1e9)
        roc.add(0.7, label, 1e9)
    for label in (0, 1):
        roc.remove(0.5, label, 1e9)
        roc.remove(0.7, label, 1e9)
    roc._check()
    roc.add(0.6, 1)
    assert roc.auc() == 1.0
    assert roc.negatives == pytest.approx(1e-3, rel=1e-12)
    assert len(roc) == 2


def test_counts_are_integers_until_a_weight_is_given(roc_of: Any) -> None:
    roc = roc_of([0.1, 0.2], [0, 1])
    assert isinstance(roc.positives, int)
    assert isinstance(roc.negatives, int)
    roc.add(0.3, 1, 2.5)
    assert roc.positives == 3.5
    assert roc.negatives == 1.0


def test_a_roc_emptied_is_as_new(roc_of: Any) -> None:
    roc = roc_of([0.3, 0.1, 0.1], [1, 0, 1], [0.1, 0.7, 1e9])
    for score, label, weight in ((0.1, 1, 1e9), (0.3, 1, 0.1), (0.1, 0, 0.7)):
        roc.remove(score, label, weight)
    roc._check()
    assert (len(roc), roc.positives, roc.negatives) == (0, 0, 0)
    roc.extend([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    assert (roc.auc(), roc.h_measure()) == (0.75, 0.5)
