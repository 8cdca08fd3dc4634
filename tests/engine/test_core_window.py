"""The compiled count window: a bulk call equals windows built anew, or changes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

core = pytest.importorskip("engine._core")


def events(count: int, decimals: int, seed: int = 1) -> tuple[Any, Any, Any]:
    chance = np.random.default_rng(seed)
    labels = chance.random(count) < 0.4
    scores = np.round(chance.normal(size=count) + labels, decimals)
    return scores, labels.astype(np.uint8), np.arange(count, dtype=np.int64)


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
@pytest.mark.parametrize("decimals", [1, 15])
def test_every_slide_reads_as_a_roc_of_the_window_alone(size: int, decimals: int) -> None:
    scores, labels, times = events(2500, decimals)
    window = core.CountWindow(size)
    names = ("auc", "h", "ks", "events", "positives", "negatives", "start", "end")
    readings = window.slide(scores, labels, None, times, every=13, read=names)
    assert len(readings.auc) == 2500 // 13
    for row, end in enumerate(range(13, 2501, 13)):
        begin = max(end - size, 0)
        roc = core.Roc()
        roc.extend(scores[begin:end], labels[begin:end])
        expected = [roc.auc(), roc.h_measure(), roc.ks()]
        expected += [len(roc), roc.positives, roc.negatives, begin, end - 1]
        np.testing.assert_array_equal([column[row] for column in readings], expected)
    window._check()


def test_readings_do_not_depend_on_how_the_events_were_cut_into_calls() -> None:
    scores, labels, times = events(6000, 2)
    whole = core.CountWindow(700)
    expected = whole.slide(scores, labels, None, times, every=10)
    chance = np.random.default_rng(2)
    pieces = core.CountWindow(700)
    found = []
    start = 0
    while start < 6000:
        end = min(start + int(chance.integers(1, 400)), 6000)
        columns = scores[start:end], labels[start:end], None, times[start:end]
        if chance.random() < 0.2:
            # Restored from its content, as after a restart.
            held = pieces.columns(pieces.first, pieces.seen)
            pieces = core.CountWindow.restore(700, pieces.first, held)
        if chance.random() < 0.5:
            columns = tuple(None if c is None else c.tolist() for c in columns)
        found.append(pieces.slide(*columns, every=10))
        start = end
    for name in ("auc", "h"):
        joined = np.concatenate([readings[name] for readings in found])
        np.testing.assert_array_equal(joined, expected[name])


def test_a_call_refused_half_way_leaves_the_window_as_it_was() -> None:
    scores, labels, times = events(500, 1)
    window = core.CountWindow(300)
    window.extend(scores, labels, None, times)
    before = window.columns(0, 500), window.roc.auc(), window.roc.h_measure()
    weights = np.ones(400)
    weights[350] = 1e300
    with pytest.raises(ValueError, match="weight"):
        window.slide(*events(400, 1, seed=9)[:2], weights, every=1)
    window._check()
    assert (window.seen, window.first, len(window)) == (500, 200, 300)
    after = window.columns(0, 500), window.roc.auc(), window.roc.h_measure()
    np.testing.assert_array_equal(before[0].scores, after[0].scores)
    assert before[1:] == after[1:]


def test_a_window_forgets_that_it_ever_held_weights() -> None:
    scores, labels, _ = events(3000, 2)
    weighted, plain = core.CountWindow(200), core.CountWindow(200)
    weights = np.ones(3000)
    weights[1000:1005] = [0.5, 3, 1e-6, 1e6, 2]
    one = weighted.slide(scores, labels, weights, every=100, read=("auc", "h"))
    two = plain.slide(scores, labels, every=100, read=("auc", "h"))
    weighted._check()
    same = [slice(0, 10), slice(12, 30)]
    for name in ("auc", "h"):
        for part in same:
            np.testing.assert_array_equal(one[name][part], two[name][part])
        assert (one[name][10:12] != two[name][10:12]).all()
    assert weighted.columns(2800, 3000).weights is None


def test_a_window_takes_memory_as_it_fills() -> None:
    window = core.CountWindow(10**9)
    window.extend([0.5], [1])
    assert window._bytes() < 1000
    window = core.CountWindow(20_000)
    window.slide(*events(60_000, 15)[:2], every=100)
    assert window._bytes() < 28 * 20_000
