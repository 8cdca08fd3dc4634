"""Where weights differ cells are exact, tell whether all are 1, and are changed as one step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine as public
from engine.reference.cells import Cell

if TYPE_CHECKING:
    from collections.abc import Callable


def test_weights_that_sum_up_to_their_number_are_no_unit_weights(roc_of: Any) -> None:
    roc = roc_of([0.5, 0.5, 0.1, 0.2], [1, 1, 0, 0], [0.5, 1.5, 1, 1])
    assert isinstance(roc.positives, float)
    assert all(map(math.isnan, roc.auc_interval()))
    roc.remove(0.5, 1, 1.5)
    roc.remove(0.5, 1, 0.5)
    roc.extend([0.5, 0.5], [1, 1])
    roc._check()
    assert (roc.positives, type(roc.positives)) == (2, int)
    assert roc.auc_interval() == roc_of([0.5, 0.5, 0.1, 0.2], [1, 1, 0, 0]).auc_interval()


def test_what_is_left_of_the_last_event_is_known(roc_of: Any) -> None:
    roc = roc_of([0.5, 0.5, 0.1], [1, 1, 0], [0.5, 1.5, 1])
    roc.remove(0.5, 1, 0.5)
    roc.remove(0.5, 1, 0.5)
    roc._check()
    assert (len(roc), roc.positives, type(roc.positives)) == (2, 1, int)


EVENTS = st.tuples(
    st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    st.integers(0, 1),
    st.sampled_from([1.0, 1.0, 0.5, 1.5, 2.0, 1e-6, 1e6, 1e16]),
)


@settings(max_examples=80)
@given(st.lists(st.tuples(EVENTS, st.booleans(), st.integers(0, 4)), max_size=40))
def test_readings_are_those_of_what_is_inside(engine: Any, changes: Any) -> None:
    """To the bit while all weights are 1, wherever readings fall between the changes."""
    roc, binned = engine.Roc(), public.BinnedRoc(5)
    inside: list[Any] = []
    for event, leaves, read in changes:
        if leaves and inside:
            gone = inside.pop(len(inside) // 2)
            roc.remove(*gone)
            binned.remove(*gone)
        else:
            inside.append(event)
            roc.add(*event)
            binned.add(*event)
        if read:
            continue
        unit = all(weight == 1 for _, _, weight in inside)
        for mine in (roc, binned):
            fresh = type(mine)(*([5] if mine is binned else []))
            fresh.extend(*map(list, zip(*inside, strict=True)) if inside else ([], []))
            mine._check()
            assert len(mine) == len(inside)
            assert isinstance(mine.positives, int) == unit
            told = [
                [each.positives, each.negatives, each.auc(), each.h_measure(), each.ks()]
                for each in (mine, fresh)
            ]
            slack = 0.0 if unit else 1e-12
            assert np.allclose(*told, rtol=slack, atol=slack, equal_nan=True)


def test_many_events_move_between_counts_and_weights(engine: Any) -> None:
    rng = np.random.default_rng(3)
    scores, labels = rng.normal(size=500), rng.integers(0, 2, 500)
    roc, twin = engine.Roc(), engine.Roc()
    roc.extend(scores, labels)
    twin.extend(scores, labels)
    for step, (score, label) in enumerate(zip(scores[:200], labels[:200], strict=True)):
        roc.add(0.5, 1, 2.5)
        roc.remove(0.5, 1, 2.5)
        roc.remove(score, label)
        twin.remove(score, label)
        if step % 9 == 0:
            assert (roc.auc(), roc.positives, len(roc)) == (twin.auc(), twin.positives, len(twin))
        if step % 50 == 0:
            roc._check()
            assert roc.confusion(0.1) == twin.confusion(0.1)
            assert roc.h_measure() == twin.h_measure()
    with pytest.raises(KeyError):
        roc.remove(scores[300], labels[300], 2.0)
    roc._check()
    assert roc.auc_interval() == twin.auc_interval()


def test_a_threshold_parts_all_weights(engine: Any) -> None:
    rng = np.random.default_rng(4)
    scores, labels = rng.normal(size=1500).round(2), rng.integers(0, 2, 1500)
    weights = 10.0 ** rng.uniform(-6, 6, 1500)
    roc = engine.Roc()
    assert tuple(roc.confusion(0.0)) == (0, 0, 0, 0)
    roc.extend(scores, labels, weights)
    thresholds = [-np.inf, np.inf, -9.0, 9.0, *np.unique(scores)[::9], *rng.normal(size=40)]
    for threshold in thresholds:
        over = scores >= threshold
        expected = [
            math.fsum(weights[side & (labels == label)])
            for side, label in ((over, 1), (over, 0), (~over, 0), (~over, 1))
        ]
        assert roc.confusion(threshold) == pytest.approx(expected, rel=1e-12)


def test_more_events_than_are_counted_are_refused() -> None:
    core = pytest.importorskip("engine._core")
    roc = core.Roc._of_counts(np.array([0.1]), np.array([2**32 - 3]), np.array([1]))
    roc.add(0.1, 0, 0.5)
    for weight in (1, 0.5):
        with pytest.raises(OverflowError, match="4294967295"):
            roc.add(0.1, 0, weight)
    roc._check()
    assert len(roc) == 2**32 - 1
    roc.remove(0.1, 0, 0.5)
    assert (roc.negatives, roc.auc()) == (2**32 - 3, 0.5)


# Half-way through a change: another thread's call, and memory that is out.


@pytest.fixture
def halfway(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[int], object]], None]:
    """Call something each time that a cell is about to change, with the number of the time."""
    plus = Cell.plus
    times = -1

    def arrange(act: Callable[[int], object]) -> None:
        def changed(self: Cell, weight: Any) -> Cell:
            nonlocal times
            times += 1
            act(times)
            return plus(self, weight)

        monkeypatch.setattr(Cell, "plus", changed)

    return arrange


def test_ordered_classes_refuse_a_call_from_within_a_change(halfway: Any) -> None:
    core = pytest.importorskip("engine._core")
    roc = core.OrdinalRoc(3)
    roc.extend([0.1, 0.5, 0.9], [0, 1, 2])
    refused = 0

    def intrude(_: int) -> None:
        nonlocal refused
        for call in (
            lambda: roc.add(0.3, 1),
            lambda: roc.remove(0.1, 0),
            lambda: roc.extend([0.3], [1]),
            lambda: roc.extend([0.3], [1], [2.5]),
            roc.vuhs,
            roc.__reduce__,
        ):
            with pytest.raises(RuntimeError, match="another thread"):
                call()
            refused += 1

    halfway(intrude)
    roc.add(0.5, 1, 2.5)
    roc.extend([0.2, 0.5], [1, 0], [1, 0.1])
    roc._check()
    assert (len(roc), refused) == (6, 18)
    roc.remove(0.5, 1, 2.5)
    roc.remove(0.5, 0, 0.1)
    assert roc.vuhs() == pytest.approx(1.0)


@pytest.mark.parametrize("before", [[], [1.0, 1.0, 1.0], [0.3, 1.0, 2.0]])
def test_a_bulk_call_on_ordered_classes_is_taken_back_without_memory(
    halfway: Any, monkeypatch: pytest.MonkeyPatch, before: list[float]
) -> None:
    core = pytest.importorskip("engine._core")
    scores, labels = [0.1, 0.5, 0.9, 0.1, 0.7, 0.5], [0, 1, 2, 0, 1, 1]
    weights = [0.3, 0.7, 1.0, 1.7, 1.0, 0.3]
    roc = core.OrdinalRoc(3)
    roc.extend(scores[: len(before)], labels[: len(before)], before)
    told = len(roc), roc.vuhs()

    def no_memory(at: int) -> None:
        if at == 5:
            raise MemoryError("as asked for")

    def unwanted(*_: Any) -> None:
        raise MemoryError("taking back wants memory")

    halfway(no_memory)
    monkeypatch.setattr(Cell, "minus", unwanted)
    with pytest.raises(MemoryError, match="as asked for"):
        roc.extend(scores, labels, weights)
    roc._check()
    assert np.array_equal([len(roc), roc.vuhs()], told, equal_nan=True)
