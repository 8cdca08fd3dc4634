"""Whatever holds events can be copied and pickled, and goes on from there as the original does."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from engine import ApproximateRoc, BinnedRoc, LandmarkWindow, reference

READ = ("auc", "h", "positives", "events")


def events(size: int, classes: int = 2, *, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, size).astype(np.uint8)
    return (
        (rng.normal(size=size) + labels).round(1),
        labels,
        rng.choice([1.0, 0.3, 1e-9, 7e5], size),
    )


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - its own


WAYS = pytest.mark.parametrize("way", [pickled, copy.copy, copy.deepcopy])


@WAYS
@pytest.mark.parametrize("weighted", [False, True])
def test_a_roc_is_copied_with_all_its_readings(roc_of: Any, way: Any, *, weighted: bool) -> None:
    scores, labels, weights = events(900)
    roc = roc_of(scores, labels, weights) if weighted else roc_of(scores, labels)
    other = way(roc)
    other._check()
    assert len(other) == len(roc)
    assert (other.auc(), other.h_measure()) == pytest.approx((roc.auc(), roc.h_measure()), 1e-12)
    if not weighted:
        assert (other.auc(), other.h_measure(2, 1)) == (roc.auc(), roc.h_measure(2, 1))
        assert isinstance(other.positives, int)


def test_a_deep_copy_goes_its_own_way(roc_of: Any) -> None:
    scores, labels, weights = events(300)
    for columns in ((scores, labels), (scores, labels, weights)):
        roc = roc_of(*columns)
        other = copy.deepcopy(roc)
        for event in zip(*columns, strict=True):
            other.remove(*event)
        other._check()
        assert (len(other), len(roc)) == (0, 300)
        roc._check()


ALL = {
    "Roc": (),
    "OrdinalRoc": (3,),
    "CountWindow": (5,),
    "TimeWindow": (1000,),
    "DecayWindow": (7,),
    "OrdinalCountWindow": (3, 5),
    "BinnedRoc": (20,),
    "ApproximateRoc": (0.1,),
    "LandmarkWindow": (20,),
}


@WAYS
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_copy_and_its_original_leave_each_other_alone(
    engine: Any, way: Any, name: str, *, weighted: bool
) -> None:
    made = getattr(engine, name, getattr(reference, name))(*ALL[name])
    words: dict[str, Any] = {"times": [1, 2]} if hasattr(made, "span") else {}
    if weighted and name != "ApproximateRoc":
        words["weights"] = [0.5, 2.0]

    def told(structure: Any) -> tuple[Any, ...]:
        structure._check()
        roc = getattr(structure, "roc", structure)
        return len(structure), roc.vuhs() if hasattr(roc, "vuhs") else roc.auc()

    made.extend([0.1, 0.9], [0, 1], **words)
    before = told(made)
    other = way(made)
    assert type(other) is type(made)
    assert repr(told(other)) == repr(before)
    other.extend([0.1, 0.9], [1, 0], **words)
    after = told(other)
    assert repr(told(made)) == repr(before)
    made.extend([0.2, 0.9], [1, 1], **words)
    assert repr(told(other)) == repr(after)


@WAYS
def test_empty_ones_are_copied(engine: Any, way: Any) -> None:
    for made in (
        engine.Roc(),
        engine.OrdinalRoc(3),
        engine.CountWindow(5),
        engine.TimeWindow(1000),
        engine.DecayWindow(7),
        engine.OrdinalCountWindow(3, 5),
    ):
        assert len(way(made)) == 0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("way", [pickled, copy.deepcopy])
def test_windows_go_on_from_a_copy(engine: Any, way: Any, *, weighted: bool) -> None:
    scores, labels, weights = events(700)
    times = np.arange(700) * 10 + (np.arange(700) % 3) * 15
    columns = [scores, labels, weights if weighted else None, times]
    for window in (
        engine.CountWindow(200),
        engine.TimeWindow(3000),
        engine.DecayWindow(30, least=1e-3),
        engine.DecayWindow(400, timed=True, least=1e-3),
    ):
        first, rest = (
            [c if c is None else c[part] for c in columns]
            for part in (slice(500), slice(500, None))
        )
        window.extend(*first)
        if isinstance(window, engine.TimeWindow):
            window.advance(5100)
        other = way(window)
        other._check()
        assert (len(other), other.seen) == (len(window), window.seen)
        ours, theirs = (one.slide(*rest, every=7, read=READ) for one in (window, other))
        for name in READ:
            assert getattr(theirs, name) == pytest.approx(getattr(ours, name), rel=1e-12), name
            if not weighted and isinstance(window, engine.CountWindow):
                assert np.array_equal(getattr(theirs, name), getattr(ours, name))
        assert getattr(other, "late", 0) == getattr(window, "late", 0)
        other._check()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("way", [pickled, copy.deepcopy])
def test_ordered_classes_go_on_from_a_copy(engine: Any, way: Any, *, weighted: bool) -> None:
    scores, labels, weights = events(500, 4)
    columns = [scores, labels, weights] if weighted else [scores, labels]
    window = engine.OrdinalCountWindow(4, 150)
    window.extend(*(column[:400] for column in columns))
    roc = way(window.roc)
    roc._check()
    assert roc.vuhs() == pytest.approx(window.roc.vuhs(), rel=1e-12)
    other = way(window)
    other._check()
    rest = [column[400:] for column in columns]
    ours, theirs = window.slide(*rest, every=9), other.slide(*rest, every=9)
    assert theirs.vuhs == pytest.approx(ours.vuhs, rel=1e-12)
    assert np.array_equal(theirs.events, ours.events)
    assert other.seen == window.seen == 500


@pytest.mark.parametrize("way", [pickled, copy.deepcopy])
def test_bounded_memory_is_copied(way: Any) -> None:
    scores, labels, _ = events(400)
    for made in (BinnedRoc(50), ApproximateRoc(0.1)):
        for score, label in zip(scores.tolist(), labels.tolist(), strict=True):
            made.update(label, score) if isinstance(made, BinnedRoc) else made.add(score, label)
        assert way(made).auc() == made.auc()
    window = LandmarkWindow()
    window.extend(scores, labels)
    assert way(window).roc.auc() == window.roc.auc()
