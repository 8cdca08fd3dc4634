"""Windows by time, decay and landmark read as one rebuilt from their content."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import reference

EVENTS = st.lists(
    st.tuples(st.integers(0, 6).map(float), st.integers(0, 1), st.integers(0, 60)),
    min_size=1,
    max_size=50,
)


@pytest.fixture(scope="session")
def windows(engine: Any) -> Any:
    """The windows, over the Roc of the implementation under test."""

    class Windows:
        TimeWindow = engine.TimeWindow
        DecayWindow = engine.DecayWindow

    return Windows


def same(ours: Any, theirs: Any, tolerance: float = 0.0) -> None:
    for left, right in zip(ours, theirs, strict=True):
        assert left == pytest.approx(right, abs=tolerance, nan_ok=True)


@given(EVENTS, st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_a_time_window_holds_what_is_younger_than_its_duration(
    windows: Any, engine: Any, events: Any, duration: int
) -> None:
    window = windows.TimeWindow(duration)
    now, late = -1, 0
    for count, (score, label, time) in enumerate(events, 1):
        window.push(score, label, time=time)
        now = max(now, time)
        late += time <= now - duration
        inside = [event for event in events[:count] if event[2] > now - duration]
        window._check()
        assert (len(window), window.seen, window.now, window.late) == (
            len(inside),
            count,
            now,
            late,
        )
        times = [event[2] for event in inside]
        assert window.span == (min(times), max(times))
        fresh = engine.Roc()
        fresh.extend([event[0] for event in inside], [event[1] for event in inside])
        same(
            (window.roc.auc(), window.roc.h_measure()),
            (fresh.auc(), fresh.h_measure()),
        )


def test_advancing_drops_what_lies_at_or_before_time_minus_duration(windows: Any) -> None:
    window = windows.TimeWindow(10)
    window.extend([0.1, 0.2, 0.3], [0, 1, 1], times=[0, 1, 10])
    assert len(window) == 2
    window.advance(10)
    assert len(window) == 2
    window.advance(11)
    assert window.span == (10, 10)
    window.advance(5)
    assert window.now == 11
    window.advance(1000)
    assert (len(window), len(window.roc), window.span) == (0, 0, (1000, 1000))
    window.push(0.5, 1, time=990)
    assert (window.late, len(window)) == (1, 0)
    window.push(0.5, 1, time=991)
    assert (window.late, len(window)) == (1, 1)
    window._check()


def test_slides_of_a_time_window(windows: Any) -> None:
    window = windows.TimeWindow(3)
    readings = window.slide(
        [0.1, 0.9, 0.5, 0.4],
        [0, 1, 0, 1],
        times=[1, 3, 2, 9],
        every=1,
        read=("auc", "events", "start", "end"),
    )
    same(readings.auc, [math.nan, 1.0, 1.0, math.nan])
    assert readings.events.tolist() == [1, 2, 3, 1]
    assert readings.start.tolist() == [1, 1, 1, 9]
    assert readings.end.tolist() == [1, 3, 3, 9]


def test_a_time_window_refuses_events_without_times(windows: Any) -> None:
    window = windows.TimeWindow(3)
    window.push(0.5, 1, time=0)
    for call in (
        lambda: window.push(0.1, 0),
        lambda: window.extend([0.1], [0]),
        lambda: window.slide([0.1], [0], every=1),
        lambda: window.extend([0.1], [2], times=[5]),
        lambda: window.advance(1.5),
    ):
        with pytest.raises(ValueError, match=r".+"):
            call()
    assert (len(window), window.seen, window.now) == (1, 1, 0)
    for duration in (0, -5, 1.5, math.inf):
        with pytest.raises(ValueError, match="duration"):
            windows.TimeWindow(duration)


@given(EVENTS, st.sampled_from([0.5, 1.0, 3.0, 40.0]), st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_decay_window_weighs_events_by_their_age(
    windows: Any,
    events: Any,
    half_life: float,
    timed: bool,  # noqa: FBT001 - a case
) -> None:
    window = windows.DecayWindow(half_life, timed=timed, least=2.0**-30)
    scores, labels, times = map(list, zip(*events, strict=True))
    readings = window.slide(
        scores, labels, times=times, every=1, read=("auc", "h", "positives", "negatives", "events")
    )
    window._check()
    for count in range(1, len(events) + 1):
        steps = times[:count] if timed else list(range(count))
        # Arrival matters too: what came when it was too old never entered.
        aged = [
            (score, label, 2.0 ** ((step - max(steps)) / half_life))
            for score, label, step in zip(scores, labels, steps, strict=False)
            if (max(steps) - step) / half_life <= 30
        ]
        twin = reference.Roc()
        twin.extend(*map(list, zip(*aged, strict=True)))
        expected = (twin.auc(), twin.h_measure(), twin.positives, twin.negatives, len(aged))
        same([array[count - 1] for array in readings], expected, 1e-11)
        assert readings.auc[count - 1] == pytest.approx(oracles.auc(aged), abs=1e-11, nan_ok=True)


@pytest.mark.parametrize("kind", ["apart", "without skill", "tied", "weighted"])
def test_h_under_decay_is_the_same_however_seldom_it_is_read(windows: Any, kind: str) -> None:
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, 1_500)
    scores = rng.normal(size=1_500) + labels * (kind != "without skill")
    if kind == "tied":
        scores = scores.round(1)
    weights = 10.0 ** rng.uniform(-12, 12, 1_500) if kind == "weighted" else None
    often, seldom = (windows.DecayWindow(30) for _ in range(2))
    left = often.slide(scores, labels, weights, every=10).h[49::50]
    right = seldom.slide(scores, labels, weights, every=500).h
    assert left == pytest.approx(right, rel=1e-12, abs=1e-12)


def test_decay_does_not_drift_over_many_half_lives(windows: Any) -> None:
    rng = np.random.default_rng(1)
    window = windows.DecayWindow(half_life=2, least=1e-6)
    labels = rng.integers(0, 2, 3000)
    scores = (rng.normal(size=3000) + labels).round(1)
    readings = window.slide(scores, labels, every=500)
    window._check()
    assert len(window) == 40
    for place, end in enumerate(range(500, 3001, 500)):
        twin = reference.Roc()
        ages = np.arange(39, -1, -1)
        twin.extend(scores[end - 40 : end], labels[end - 40 : end], 0.5 ** (ages / 2))
        assert readings.auc[place] == pytest.approx(twin.auc(), abs=1e-12)
        assert readings.h[place] == pytest.approx(twin.h_measure(), abs=1e-12)


def test_what_decay_drops_matters_less_than_it_says(windows: Any) -> None:
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, 600)
    scores = rng.normal(size=600) + labels
    exact = windows.DecayWindow(20, least=1e-12)
    exact.extend(scores, labels)
    everything = 0.5 ** (np.arange(599, -1, -1) / 20)
    for least in (0.1, 0.01, 1e-4):
        window = windows.DecayWindow(20, least=least)
        window.extend(scores, labels)
        assert len(window) < len(exact)
        bound = sum(
            least * everything.sum() / everything[labels == label].sum() for label in (0, 1)
        )
        assert abs(window.roc.auc() - exact.roc.auc()) <= bound


def test_a_decay_window_refuses_what_it_cannot_hold(windows: Any) -> None:
    window = windows.DecayWindow(5)
    window.push(0.5, 1)
    for weight in (1e200, 1e-200):
        with pytest.raises(ValueError, match="weight"):
            window.extend([0.1, 0.2], [0, 1], [1.0, weight])
        with pytest.raises(ValueError, match="weight"):
            window.push(0.1, 0, weight)
    with pytest.raises(ValueError, match="time"):
        windows.DecayWindow(5, timed=True).push(0.5, 1)
    assert (len(window), window.seen) == (1, 1)
    for half_life in (0, -1, math.nan, math.inf):
        with pytest.raises(ValueError, match="half_life"):
            windows.DecayWindow(half_life)
    for least in (1.0, 0.0, 1e-100):
        with pytest.raises(ValueError, match="least"):
            windows.DecayWindow(5, least=least)


def test_a_landmark_window_never_forgets_and_never_grows() -> None:
    rng = np.random.default_rng(3)
    window = reference.LandmarkWindow(thresholds=200)
    labels = rng.integers(0, 2, 5000)
    scores = np.clip(rng.normal(0.4 + 0.2 * labels, 0.2), 0, 1)
    readings = window.slide(scores, labels, every=1000, read=("auc", "h", "events", "ks", "auch"))
    assert readings.events.tolist() == [1000, 2000, 3000, 4000, 5000]
    for place, end in enumerate(range(1000, 5001, 1000)):
        exact = reference.Roc()
        exact.extend(scores[:end], labels[:end])
        assert readings.auc[place] == pytest.approx(exact.auc(), abs=0.005)
        assert readings.h[place] == pytest.approx(exact.h_measure(), abs=0.01)
    assert len(window) == window.seen == 5000
    assert window.roc._bins.nbytes < 4000
    window._check()


def test_the_public_windows_stand_on_the_public_roc() -> None:
    import engine as public  # noqa: PLC0415 - the fixture has the name

    window = public.TimeWindow(5)
    window.extend([0.1, 0.9], [0, 1], times=[1, 2])
    assert isinstance(window.roc, public.Roc)
    assert window.roc.auc() == 1.0
