"""Figures known from the papers, from their authors' programs and by hand."""

from __future__ import annotations

from typing import Any

import pytest

FOUR = ([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
TEN = ([0.1, 0.2, 0.2, 0.2, 0.4, 0.4, 0.6, 0.6, 0.8, 0.8], [0, 0, 0, 1, 0, 1, 1, 0, 1, 1])
EIGHT = ([0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.75, 0.75], [1, 0, 1, 0, 0, 0, 1, 0])


@pytest.mark.parametrize(
    ("events", "auc", "h"),
    [(FOUR, 3 / 4, 1 / 2), (TEN, 4 / 5, 229 / 675), (EIGHT, 7 / 10, 15 / 79)],
)
def test_auc_and_h_of_worked_examples(roc_of: Any, events: Any, auc: float, h: float) -> None:
    roc = roc_of(*events)
    assert roc.auc() == auc
    assert roc.h_measure() == pytest.approx(h, rel=1e-14)


@pytest.mark.parametrize(
    ("events", "ratio", "h"),
    [
        (TEN, 0.5, 71 / 225),
        (TEN, 2.0, 0.35122901945144624),
        (EIGHT, 2.0, 0.15972770907504763),
    ],
)
def test_h_under_a_severity_ratio(roc_of: Any, events: Any, ratio: float, h: float) -> None:
    assert roc_of(*events).h_measure(2.0, 1.0 + 1.0 / ratio) == pytest.approx(h, rel=1e-13)


def test_curve_and_hull_of_a_worked_example(roc_of: Any) -> None:
    roc = roc_of(*EIGHT)
    fpr, tpr, thresholds = roc.curve()
    assert fpr.tolist() == [0.0, 1 / 5, 3 / 5, 1.0]
    assert tpr.tolist() == [0.0, 1 / 3, 1.0, 1.0]
    assert thresholds.tolist() == [float("inf"), 0.75, 0.5, 0.25]
    fpr, tpr, thresholds = roc.hull()
    assert fpr.tolist() == [0.0, 3 / 5, 1.0]
    assert tpr.tolist() == [0.0, 1.0, 1.0]
    assert thresholds.tolist() == [float("inf"), 0.5, 0.25]
