"""A count window holds the last so many events and reads as a ROC made of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

EVENTS = st.lists(
    st.tuples(st.integers(0, 6).map(float), st.integers(0, 1), st.just(1), st.integers(0, 99)),
    min_size=1,
    max_size=60,
)


def columns(events: Any) -> tuple[list[Any], ...]:
    return tuple(map(list, zip(*events, strict=True))) if events else ([], [], [], [])


def naive(
    engine: Any, events: Any, size: int, every: int, names: Any, seen: int = 0
) -> dict[str, list[float]]:
    """Readings by a ROC made anew at every slide."""
    rows: dict[str, list[float]] = {name: [] for name in names}
    for end in range(1, len(events) + 1):
        if (seen + end) % every:
            continue
        inside = events[max(end - size, 0) : end]
        roc = engine.Roc()
        roc.extend(*columns(inside)[:3])
        values = {
            "auc": roc.auc(),
            "h": roc.h_measure(),
            "events": len(inside),
            "positives": roc.positives,
            "negatives": roc.negatives,
            "start": inside[0][3],
            "end": inside[-1][3],
        }
        for name in names:
            rows[name].append(values[name])
    return rows


NAMES = ("h", "auc", "events", "positives", "negatives", "start", "end")


@given(EVENTS, st.integers(1, 9), st.integers(1, 7))
@settings(max_examples=60, deadline=None)
def test_a_slide_reads_what_a_fresh_roc_of_the_content_reads(
    engine: Any, events: Any, size: int, every: int
) -> None:
    window = engine.CountWindow(size)
    scores, labels, weights, times = columns(events)
    readings = window.slide(scores, labels, weights, times, every=every, read=NAMES)
    assert readings.names == NAMES
    for name, expected in naive(engine, events, size, every, NAMES).items():
        np.testing.assert_array_equal(readings[name], expected)
        assert readings[name] is getattr(readings, name)
    window._check()


@given(EVENTS, st.integers(1, 9), st.integers(1, 7), st.data())
@settings(max_examples=60, deadline=None)
def test_readings_do_not_depend_on_how_events_are_cut(
    engine: Any, events: Any, size: int, every: int, data: Any
) -> None:
    whole = engine.CountWindow(size)
    expected = whole.slide(*columns(events), every=every, read=NAMES)
    cut = data.draw(st.integers(0, len(events)))
    window = engine.CountWindow(size)
    before = window.slide(*columns(events[:cut]), every=every, read=NAMES)
    if data.draw(st.booleans()):
        content = window.columns(window.first, window.seen)
        window = engine.CountWindow.restore(size, window.first, content)
    after = window.slide(*columns(events[cut:]), every=every, read=NAMES)
    for name in NAMES:
        joined = np.concatenate([before[name], after[name]])
        assert joined.tobytes() == expected[name].tobytes()
    assert (window.seen, window.first, len(window)) == (whole.seen, whole.first, len(whole))


def test_push_extend_and_slide_are_one(engine: Any) -> None:
    rng = np.random.default_rng(2)
    scores, labels = rng.integers(0, 9, 50), rng.integers(0, 2, 50)
    windows = [engine.CountWindow(20) for _ in range(3)]
    for score, label in zip(scores, labels, strict=True):
        windows[0].push(score, label)
    windows[1].extend(scores, labels)
    windows[2].slide(scores, labels, every=1)
    assert len({(w.seen, w.first, len(w), w.roc.auc(), w.roc.h_measure()) for w in windows}) == 1
    for window in windows:
        assert (window.seen, window.first, len(window)) == (50, 30, 20)
        window._check()


def test_slides_count_from_the_first_event_ever(engine: Any) -> None:
    window = engine.CountWindow(3)
    window.push(0.1, 0)
    assert len(window.slide([0.2], [1], every=3).auc) == 0
    assert window.slide([0.3], [1], every=3).auc.tolist() == [1.0]
    restored = engine.CountWindow.restore(3, window.first, window.columns(0, 3))
    assert restored.seen == 3
    assert len(restored.slide([0.1] * 4, [0] * 4, every=3).auc) == 1


def test_kinds_of_arrays(engine: Any) -> None:
    window = engine.CountWindow(4)
    names = ("auc", "h", "events", "positives", "negatives", "start", "end")
    readings = window.slide([0.1, 0.2], [0, 1], every=1, read=names)
    kinds = [array.dtype for array in readings]
    assert kinds == [np.float64, np.float64, *[np.int64] * 5]
    assert math.isnan(readings["auc"][0])
    assert readings["auc"][1] == 1.0
    heavy = window.slide([0.1], [0], [2.5], every=1, read=("events", "negatives"))
    assert heavy["negatives"].dtype == np.float64
    assert heavy["negatives"].tolist() == [3.5]
    assert heavy["events"].tolist() == [3]
    auc, h = window.slide([], [], every=1)
    assert (auc.size, h.size) == (0, 0)
    assert len(window.slide([0.1], [0], every=1, read=())) == 0


def test_the_severity_asked_for_is_read(engine: Any) -> None:
    scores, labels = [0.1, 0.4, 0.35, 0.8, 0.35], [0, 0, 1, 1, 0]
    window = engine.CountWindow(5)
    readings = window.slide(scores, labels, every=5, read=["h"], alpha=2.0, beta=1.5)
    assert readings.h.tolist() == [window.roc.h_measure(2.0, 1.5)]


def test_columns_are_what_is_still_inside(engine: Any) -> None:
    window = engine.CountWindow(4)
    window.extend([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0, 1, 0, 1, 0, 1])
    assert (window.first, window.seen) == (2, 6)
    for start, stop, expected in (
        (0, 9, [0.3, 0.4, 0.5, 0.6]),
        (3, 5, [0.4, 0.5]),
        (0, 3, [0.3]),
        (0, 2, []),
        (5, 4, []),
        (6, 9, []),
    ):
        scores, labels, weights, times = window.columns(start, stop)
        assert scores.tolist() == expected
        assert labels.tolist() == [round(score * 10) % 2 ^ 1 for score in expected]
        assert scores.dtype == np.float64
        assert labels.dtype == np.uint8
        assert weights is None
        assert times is None
    copied = window.columns(2, 6).scores
    copied[:] = 9.0
    assert window.columns(2, 6).scores.tolist() == [0.3, 0.4, 0.5, 0.6]


def test_weights_and_times_come_back_once_given(engine: Any) -> None:
    window = engine.CountWindow(4)
    window.push(0.1, 0)
    window.push(0.2, 1, 2.5)
    window.push(0.3, 1, time=1_764_460_000_000)
    _, _, weights, times = window.columns(0, 3)
    assert weights.tolist() == [1.0, 2.5, 1.0]
    assert times.tolist() == [0, 0, 1_764_460_000_000]
    assert weights.dtype == np.float64
    assert times.dtype == np.int64
    window.extend([0.4, 0.5], [0, 1], None, [7, 8])
    assert window.columns(0, 9).times.tolist() == [0, 1_764_460_000_000, 7, 8]
    assert window.roc.positives == 4.5


def test_restoring_more_than_fits_drops_the_oldest(engine: Any) -> None:
    window = engine.CountWindow(5)
    window.extend([0.1, 0.2, 0.3, 0.4, 0.5], [0, 1, 0, 1, 0], None, [1, 2, 3, 4, 5])
    smaller = engine.CountWindow.restore(3, 10, window.columns(0, 5))
    assert (smaller.first, smaller.seen, len(smaller)) == (12, 15, 3)
    assert smaller.columns(0, 99).scores.tolist() == [0.3, 0.4, 0.5]
    assert smaller.columns(0, 99).times.tolist() == [3, 4, 5]
    smaller._check()
    larger = engine.CountWindow.restore(9, 10, window.columns(0, 5))
    assert (larger.first, larger.seen, len(larger)) == (10, 15, 5)
    empty = engine.CountWindow.restore(9, 10, window.columns(0, 0))
    assert (empty.first, empty.seen, len(empty)) == (10, 10, 0)


def test_resizing_lets_the_oldest_leave_and_makes_room(engine: Any) -> None:
    window = engine.CountWindow(4)
    window.extend([0.1, 0.2, 0.3, 0.4, 0.5], [0, 1, 0, 1, 0])
    window.resize(2)
    assert (window.first, window.seen, len(window), len(window.roc)) == (3, 5, 2, 2)
    window._check()
    window.resize(3)
    window.extend([0.6, 0.7, 0.8], [1, 0, 1])
    assert window.columns(0, 99).scores.tolist() == [0.6, 0.7, 0.8]
    window._check()


@pytest.mark.parametrize("size", [0, -1, 2.5, math.nan], ids=repr)
def test_a_window_holds_at_least_one_event(engine: Any, size: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        engine.CountWindow(size)
    window = engine.CountWindow(2)
    window.extend([0.1, 0.2], [0, 1])
    with pytest.raises((ValueError, TypeError)):
        window.resize(size)
    assert len(window) == 2


@pytest.mark.parametrize(
    "columns",
    [
        ([0.1, math.nan], [0, 1]),
        ([0.1, 0.2], [0, 2]),
        ([0.1, 0.2], [0, 1], [1.0, 0.0]),
        ([0.1, 0.2], [0]),
        ([0.1, 0.2], [0, 1], None, [1]),
        ([0.1, 0.2], [0, 1], None, [1, 2.5]),
    ],
    ids=repr,
)
def test_a_bad_event_leaves_the_window_as_it_was(engine: Any, columns: Any) -> None:
    window = engine.CountWindow(2)
    window.extend([0.1, 0.2, 0.3], [0, 1, 1])
    for call in (window.extend, lambda *given: window.slide(*given, every=1)):
        with pytest.raises((ValueError, TypeError)):
            call(*columns)
        assert (window.seen, window.first) == (3, 1)
        assert window.columns(0, 9).scores.tolist() == [0.2, 0.3]
        window._check()
    with pytest.raises(ValueError, match=r".+"):
        window.push(math.inf, 1)
    assert window.seen == 3


def test_unknown_names_are_refused_with_the_nearest(engine: Any) -> None:
    window = engine.CountWindow(2)
    with pytest.raises(ValueError, match="auc"):
        window.slide([0.1], [0], every=1, read=("aucc",))
    for bad in ({"every": 0}, {"every": -1}, {"every": 1, "alpha": 0}, {"every": 1, "beta": -1}):
        with pytest.raises(ValueError, match=r".+"):
            window.slide([0.1], [0], **bad)
    assert window.seen == 0


def test_a_long_run_reads_the_bits_of_a_window_made_anew(engine: Any) -> None:
    rng = np.random.default_rng(8)
    window = engine.CountWindow(300)
    for kind in ("spread", "tied", "drift"):
        scores = rng.normal(size=1500)
        labels = rng.integers(0, 2, 1500)
        if kind == "tied":
            scores = scores.round(1)
        elif kind == "drift":
            scores += np.linspace(0, 50, 1500)
        readings = window.slide(scores + labels, labels, every=250)
        fresh = engine.CountWindow(300)
        again = fresh.slide(scores[-300:] + labels[-300:], labels[-300:], every=300)
        assert again.auc.tobytes() == readings.auc[-1:].tobytes()
        assert again.h.tobytes() == readings.h[-1:].tobytes()
        window._check()


@given(events=st.lists(st.tuples(st.sampled_from([0.1, 0.5, 0.9]), st.integers(0, 1)), max_size=30))
def test_a_window_can_be_read_between_slides(engine: Any, events: list[tuple[float, int]]) -> None:
    names = ("auc", "h", "events", "positives", "negatives", "start", "end", "f1@0.5")
    window, slid = engine.CountWindow(7), engine.CountWindow(7)
    empty = window.readings(names)
    assert [column.tolist() for column in empty][2:7] == [[0], [0], [0], [0], [0]]
    for time, (score, label) in enumerate(events):
        window.push(score, label, time=time)
        expected = slid.slide([score], [label], None, [time], every=1, read=names)
        found = window.readings(names)
        assert found.names == names
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(ValueError, match="no reading"):
        window.readings(("aucc",))
