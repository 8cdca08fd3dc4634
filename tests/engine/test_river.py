"""The metrics for river keep river's contract, and give what the engine gives."""

from __future__ import annotations

import copy
import inspect
import pickle
import random
import subprocess
import sys
from collections import deque
from typing import Any

import pytest
from river import anomaly, base, datasets, evaluate, linear_model, metrics, preprocessing, utils
from river.checks import common
from sklearn.metrics import roc_auc_score

import engine
from engine.river import AUC, HMeasure

EACH = pytest.mark.parametrize("metric", [AUC, HMeasure])
WITHOUT_RIVER = """
import sys
sys.modules["river"] = None
import engine
try:
    import engine.river
except ImportError as error:
    print(error)
"""


def events(count: int, seed: int = 5) -> list[tuple[bool, dict[bool, float], float]]:
    """Make (y_true, y_pred, weight) as river's own checks do, with ties among the scores."""
    draw = random.Random(seed)  # noqa: S311 - test data
    rows = []
    for _ in range(count):
        score = draw.choice([round(draw.random(), 1), draw.random()])
        rows.append((draw.random() < 0.5, {False: 1.0 - score, True: score}, draw.uniform(0.1, 2)))
    return rows


def truth(metric: type, rows: Any, *, weighted: bool = False) -> float:
    """What the engine gives for these events from scratch; 0 while a class is absent."""
    roc = engine.Roc()
    roc.extend(
        [scores[True] for _, scores, _ in rows],
        [label for label, _, _ in rows],
        [weight for *_, weight in rows] if weighted else None,
    )
    if not roc.positives or not roc.negatives:
        return 0.0
    return roc.auc() if metric is AUC else roc.h_measure()


# River's checks of whatever has parameters and a state; tags are for estimators, which learn.
CHECKS = [
    check
    for name, check in inspect.getmembers(common, inspect.isfunction)
    if name.startswith("check_")
    and name != "check_tags"
    and list(inspect.signature(check).parameters) == ["model"]
]


@EACH
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_it_passes_rivers_own_checks(metric: type, check: Any) -> None:
    check(metric())


def test_rivers_checks_are_found() -> None:
    assert len(CHECKS) >= 10


@EACH
def test_a_copy_a_pickle_and_a_clone_are_as_river_has_them(metric: type) -> None:
    one = metric(pos_val=True)
    for weighted in (False, True):
        for label, scores, weight in events(30):
            one.update(label, scores, weight if weighted else 1.0)
        for again in (copy.deepcopy(one), pickle.loads(pickle.dumps(one))):  # noqa: S301 - ours
            assert type(again) is metric
            assert again.get() == one.get()
            # A copy goes its own way, down to the last event.
            for label, scores, weight in events(30):
                again.revert(label, scores, weight if weighted else 1.0)
            assert again.get() != one.get()
    assert one.clone().get() == 0.0
    assert HMeasure(alpha=3).clone().alpha == 3.0


@EACH
def test_its_text_is_its_name_and_percentage_at_any_time(metric: type) -> None:
    one = metric()
    assert str(one) == f"{metric.__name__}: 0.00%"
    for label, scores, _ in events(10):
        one.update(label, scores)
        assert repr(one).startswith(f"{metric.__name__}: ")


@EACH
@pytest.mark.parametrize("weighted", [False, True])
def test_after_every_event_it_is_the_reading_from_scratch(metric: type, weighted: bool) -> None:  # noqa: FBT001 - a parameter
    one, rows = metric(), events(30)
    for count, (label, scores, weight) in enumerate(rows, 1):
        one.update(y_true=label, y_pred=scores, w=weight if weighted else 1.0)
        assert one.get() == pytest.approx(truth(metric, rows[:count], weighted=weighted), abs=1e-12)


def test_weighted_auc_is_that_of_scikit_learn() -> None:
    one, rows = AUC(), events(60)
    for label, scores, weight in rows:
        one.update(label, scores, weight)
    labels, scores, weights = zip(*rows, strict=True)
    expected = roc_auc_score(labels, [score[True] for score in scores], sample_weight=weights)
    assert one.get() == pytest.approx(expected, abs=1e-12)


@EACH
@pytest.mark.parametrize("size", [1, 2, 5, 10])
def test_rolling_it_is_the_reading_of_the_window(metric: type, size: int) -> None:
    rolling: Any = utils.Rolling(metric, window_size=size)
    window: deque[Any] = deque(maxlen=size)
    for row in events(60):
        rolling.update(y_true=row[0], y_pred=row[1])
        window.append(row)
        assert rolling.get() == truth(metric, window)


@pytest.mark.parametrize("size", [2, 50, 300])
def test_a_window_without_ties_reads_what_rivers_rolling_auc_does(size: int) -> None:
    draw = random.Random(size)  # noqa: S311 - test data
    theirs, ours = metrics.RollingROCAUC(window_size=size), utils.Rolling(AUC, window_size=size)
    window = engine.CountWindow(size)
    for label, score in [(draw.random() < 0.3, draw.gauss(0, 1)) for _ in range(700)]:
        for metric in (theirs, ours):
            metric.update(label, score)
        window.push(score, label)
        if window.roc.positives and window.roc.negatives:
            assert ours.get() == window.roc.auc() == pytest.approx(theirs.get(), abs=1e-12)


@EACH
def test_a_revert_of_what_is_not_inside_is_refused_and_changes_nothing(metric: type) -> None:
    one = metric()
    one.update(True, 0.7)  # noqa: FBT003 - a label
    one.update(False, 0.2, 3.0)  # noqa: FBT003 - a label
    before = one.get()
    for event in ((False, 0.7), (True, 0.8), (False, 0.2, 1.0)):
        with pytest.raises(KeyError):
            one.revert(*event)
    with pytest.raises(ValueError, match="finite"):
        one.update(True, float("nan"))  # noqa: FBT003 - a label
    assert one.get() == before == 1.0
    one.revert(False, 0.2, 3.0)  # noqa: FBT003 - a label
    one.revert(True, 0.7)  # noqa: FBT003 - a label
    assert one.get() == 0.0


def test_an_event_of_no_weight_is_none() -> None:
    one = AUC()
    one.update(True, 0.7, 0.0)  # noqa: FBT003 - a label
    one.revert(True, 0.7, 0.0)  # noqa: FBT003 - a label
    assert one.get() == 0.0


def test_any_value_may_be_the_positive_one() -> None:
    one = AUC(pos_val="spam")
    for label, scores in (("spam", {"spam": 0.9, "ham": 0.1}), ("ham", {"ham": 1.0})):
        one.update(label, scores)
    assert one.get() == 1.0


@EACH
def test_it_works_with_what_gives_scores_and_asks_for_no_labels(metric: type) -> None:
    one = metric()
    assert one.works_with(linear_model.LogisticRegression())
    assert one.works_with(anomaly.HalfSpaceTrees())
    assert not one.works_with(linear_model.LinearRegression())
    assert not one.requires_labels
    assert one.works_with_weights
    assert one.bigger_is_better
    assert isinstance(one, base.Base)


def test_metrics_go_together_with_rivers() -> None:
    together = AUC() + HMeasure() + metrics.Accuracy()
    for label, scores, _ in events(20):
        together.update(label, scores)
    assert together.get()[:2] == [truth(AUC, events(20)), truth(HMeasure, events(20))]


@pytest.mark.parametrize("window", [None, 200])
def test_progressive_validation_reads_the_engine(window: int | None) -> None:
    def model() -> Any:
        return preprocessing.StandardScaler() | linear_model.LogisticRegression()

    def measure(metric: Any) -> Any:
        return evaluate.progressive_val_score(datasets.Phishing(), model(), metric).get()

    def metric(kind: Any) -> Any:
        return kind() if window is None else utils.Rolling(kind, window_size=window)

    auc, h = measure(metric(AUC)), measure(metric(HMeasure))
    pupil = model()
    rows = []
    for x, y in datasets.Phishing():
        rows.append((y, {True: pupil.predict_proba_one(x).get(True, 0.0)}, 1.0))
        pupil.learn_one(x, y)
    rows = rows[-window:] if window else rows
    assert auc == truth(AUC, rows)
    assert h == truth(HMeasure, rows)
    assert 0.5 < h < auc < 1.0


def test_without_river_the_import_says_what_to_install() -> None:
    found = subprocess.run(
        [sys.executable, "-c", WITHOUT_RIVER], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == (
        "engine.river gives metrics to river, which is not installed: pip install river"
    )
