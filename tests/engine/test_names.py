"""Windows read every name of the table, and refuse others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import config
from engine import LandmarkWindow, reference
from engine.readings import AT_THRESHOLDS, OF_WINDOWS, READERS, check_names

if TYPE_CHECKING:
    from collections.abc import Callable

DECISIONS = tuple(f"{metric}@{threshold}" for metric in AT_THRESHOLDS for threshold in (0.5, 0.25))


def test_every_metric_of_the_settings_is_a_reading() -> None:
    check_names(name for name in config.METRICS if name not in AT_THRESHOLDS)


def test_a_window_reads_every_name_as_its_roc_does(engine: Any) -> None:
    rng = np.random.default_rng(9)
    labels = rng.integers(0, 2, 60)
    scores = (rng.random(60) / 2 + labels / 4).round(2)
    names = (*READERS, *OF_WINDOWS, *DECISIONS)
    window = engine.CountWindow(40)
    readings = window.slide(scores, labels, every=20, read=names, alpha=2, beta=1.5)
    assert readings.names == names
    roc = engine.Roc()
    roc.extend(scores[-40:], labels[-40:])
    confusion = roc.confusion(0.25)
    low, high = roc.auc_interval()
    expected = {
        "auc": roc.auc(),
        "h": roc.h_measure(2, 1.5),
        "auc_low": low,
        "auc_high": high,
        "auc_strict": roc.ties().strict,
        "tie_mass": roc.ties().tied,
        "tie_bound": roc.ties().bound,
        "gini": roc.gini(),
        "auch": roc.auch(),
        "ks": roc.ks(),
        "mer": roc.mer(),
        "brier": roc.cost_area("brier"),
        "cost_optimal": roc.cost_area("optimal"),
        "cost_rate_driven": roc.cost_area("rate-driven"),
        "kappa@0.25": confusion.kappa,
        "f1@0.25": confusion.f1,
        "events": 40,
    }
    for name, value in expected.items():
        assert readings[name].tolist()[-1] == value, name
    for array in readings:
        assert len(array) == 3


WINDOWS: dict[str, Callable[[Any], Any]] = {
    "count": lambda engine: engine.CountWindow(40),
    "time": lambda engine: engine.TimeWindow(40),
    "decay": lambda engine: engine.DecayWindow(13),
    "timed decay": lambda engine: engine.DecayWindow(13, timed=True),
    "landmark": lambda _: LandmarkWindow(),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["unit weights", "weights"])
@pytest.mark.parametrize("kind", WINDOWS)
def test_every_window_reads_every_name_off_its_roc(
    engine: Any,
    kind: str,
    weighted: bool,  # noqa: FBT001 - a case
) -> None:
    rng = np.random.default_rng(9)
    labels = rng.integers(0, 2, 60)
    scores = (rng.random(60) / 2 + labels / 4).round(2)
    weights = rng.uniform(0.5, 2, 60) if weighted else None
    names = (*READERS, *OF_WINDOWS, *DECISIONS)
    window = WINDOWS[kind](engine)
    readings = window.slide(scores, labels, weights, range(60), every=20, read=names)
    twin = WINDOWS[kind](reference)
    expected = twin.slide(scores, labels, weights, range(60), every=20, read=names)
    for name in names:
        found = readings[name].tolist()
        assert found == pytest.approx(expected[name].tolist(), rel=1e-12, nan_ok=True), name
        # Weights of a decay window are up to a factor, which slides have taken out.
        if name not in {*OF_WINDOWS, "positives", "negatives"}:
            now = float(READERS[name](window.roc, 2, 2))
            assert found[-1] == pytest.approx(now, rel=1e-12, nan_ok=True), name


def test_other_metrics_are_null_with_one_class(engine: Any) -> None:
    names = [name for name in READERS if name not in {"positives", "negatives", "brier"}]
    readings = engine.CountWindow(4).slide([0.1, 0.2], [1, 1], every=2, read=names)
    assert all(np.isnan(array).all() for array in readings)


@pytest.mark.parametrize("name", ["auk", "f1", "f1@", "f1@x", "f1@nan", "auc@0.5", "", 7, None])
def test_what_is_no_name_is_refused(engine: Any, name: Any) -> None:
    with pytest.raises(ValueError, match="there is no reading"):
        engine.CountWindow(4).slide([0.1], [1], every=1, read=(name,))
