"""Random walks through ordered classes and their window, held against the twin at each step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import shapes
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from engine import reference

if TYPE_CHECKING:
    from collections.abc import Callable

SPECIAL = [0.0, -0.0, 5e-324, -5e-324, 1.0, 1.0 + 2**-52, -1.7e308, 1.7e308]
SCORES = st.one_of(
    st.integers(0, 3).map(float),
    st.sampled_from(SPECIAL),
    st.floats(allow_nan=False, allow_infinity=False),
)
WEIGHTS = st.sampled_from([1.0, 1.0, 0.1, 0.3, 2.0, 1e-12, 1e12, 1e-300, 1e300])


class Walk(RuleBasedStateMachine):
    """Walk over the OrdinalRoc of `classes` that `make` makes; `unit`: all weights are 1."""

    make: Callable[..., Any]
    classes: int
    unit: bool

    def __init__(self) -> None:
        super().__init__()
        self.roc = self.make(self.classes)
        self.twin = reference.OrdinalRoc(self.classes)
        self.events: list[tuple[float, int, float]] = []

    def put(self, score: float, label: int, weight: float) -> None:
        event = (score, label % self.classes, 1.0 if self.unit else weight)
        self.roc.add(*event)
        self.twin.add(*event)
        self.events.append(event)

    @rule(score=SCORES, label=st.integers(0, 7), weight=WEIGHTS)
    def add(self, score: float, label: int, weight: float) -> None:
        self.put(score, label, weight)

    @rule(events=st.lists(st.tuples(SCORES, st.integers(0, 7), WEIGHTS), max_size=60))
    def extend(self, events: Any) -> None:
        for event in events:
            self.put(*event)

    @rule(run=shapes.runs(classes=8), seed=st.integers(0, 9))
    def pour(self, run: shapes.Run, seed: int) -> None:
        weights = [1.0] * len(run) if self.unit else shapes.heavy(len(run), seed)
        columns = [(s, y % self.classes, w) for (s, y), w in zip(run, weights, strict=True)]
        self.roc.extend(*zip(*columns, strict=True))
        self.twin.extend(*zip(*columns, strict=True))
        self.events += columns

    @rule(chance=st.randoms(use_true_random=False))
    def remove_all(self, chance: Any) -> None:
        chance.shuffle(self.events)
        while self.events:
            event = self.events.pop()
            self.roc.remove(*event)
            self.twin.remove(*event)

    @rule(start=st.integers(0, 100), ascending=st.booleans(), label=st.integers(0, 7))
    def add_in_order(self, start: int, ascending: bool, label: int) -> None:  # noqa: FBT001 - drawn
        for step in range(150) if ascending else range(150, 0, -1):
            self.put(start + step / 70, label + step % 3, 1.0)

    @rule(data=st.data(), most=st.integers(1, 120))
    def remove(self, data: Any, most: int) -> None:
        if self.events:
            place = data.draw(st.integers(0, len(self.events) - 1))
            for event in self.events[place : place + most]:
                self.roc.remove(*event)
                self.twin.remove(*event)
            del self.events[place : place + most]

    @rule(score=SCORES, label=st.integers(0, 7))
    def remove_absent(self, score: float, label: int) -> None:
        label %= self.classes
        held = math.fsum(w for s, y, w in self.events if (s, y) == (score, label))
        for weight in (2 * held + 1, 1.0) if held < 1 else (2 * held,):
            with pytest.raises(KeyError):
                self.roc.remove(score, label, weight)

    @invariant()
    def reads_as_the_twin(self) -> None:
        self.roc._check()
        assert len(self.roc) == len(self.twin)
        ours, theirs = self.roc.vuhs(), self.twin.vuhs()
        tolerance = 0 if self.unit else 1e-12
        assert ours == pytest.approx(theirs, rel=0, abs=tolerance, nan_ok=True)
        assert not ours < 0
        assert not ours > 1


@pytest.mark.parametrize("classes", [2, 3, 4, 8])
@pytest.mark.parametrize("unit", [True, False], ids=["unit weights", "weights"])
def test_every_step_reads_as_the_twin(engine: Any, classes: int, unit: bool) -> None:  # noqa: FBT001 - a case
    walk = type(
        "Walk", (Walk,), {"make": staticmethod(engine.OrdinalRoc), "classes": classes, "unit": unit}
    )
    few = settings(max_examples=12, stateful_step_count=15, deadline=None)
    run_state_machine_as_test(walk, settings=few)


EVENTS = st.lists(
    st.tuples(st.integers(0, 8).map(float), st.integers(0, 2), st.sampled_from([1.0, 1.0, 0.5])),
    max_size=40,
)


@given(EVENTS, EVENTS, st.integers(1, 25), st.integers(1, 7), st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_window_reads_as_one_rebuilt_from_its_content(
    engine: Any,
    before: Any,
    events: Any,
    size: int,
    every: int,
    weighted: bool,  # noqa: FBT001 - drawn
) -> None:
    window = engine.OrdinalCountWindow(classes=3, size=size)
    before, events = (
        [(s, y, w if weighted else 1.0) for s, y, w in part] for part in (before, events)
    )
    for event in before:
        window.push(*event)
    columns = zip(*events, strict=True) if events else ((), (), ())
    readings = window.slide(*columns, every=every)
    window._check()
    everything = before + events
    assert (window.seen, len(window)) == (len(everything), min(len(everything), size))
    ends = [end for end in range(len(before) + 1, len(everything) + 1) if end % every == 0]
    assert readings.names == ("vuhs", "events")
    assert readings.events.tolist() == [min(end, size) for end in ends]
    for value, end in zip(readings.vuhs.tolist(), ends, strict=True):
        fresh = reference.OrdinalRoc(classes=3)
        for event in everything[max(end - size, 0) : end]:
            fresh.add(*event)
        tolerance = 1e-12 if weighted else 0
        assert value == pytest.approx(fresh.vuhs(), rel=0, abs=tolerance, nan_ok=True)


def test_a_window_refuses_all_or_nothing(engine: Any) -> None:
    window = engine.OrdinalCountWindow(3, 4)
    window.extend([0.1, 0.2, 0.3], [0, 1, 2])
    for call in (
        lambda: window.push(math.nan, 0),
        lambda: window.push(0.5, 3),
        lambda: window.push(0.5, 1, 0),
        lambda: window.extend([0.5, 0.6], [0, 3]),
        lambda: window.extend([0.5], [0, 1]),
        lambda: window.slide([0.5, math.inf], [0, 1], every=1),
        lambda: window.slide([0.5], [0], every=0),
        lambda: engine.OrdinalCountWindow(3, 0),
        lambda: engine.OrdinalCountWindow(9, 1),
    ):
        with pytest.raises(ValueError, match=r".+"):
            call()
    assert (window.seen, len(window), window.size, window.roc.vuhs()) == (3, 3, 4, 1.0)
    window._check()


def test_a_large_window_forgets_as_it_slides(engine: Any) -> None:
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 4, 9000)
    scores = np.concatenate([np.arange(3000.0), np.arange(6000.0, 3000, -1), rng.random(3000)])
    window = engine.OrdinalCountWindow(4, 2500)
    readings = window.slide(scores, labels, every=1500)
    window._check()
    for value, end in zip(readings.vuhs.tolist(), range(1500, 9001, 1500), strict=True):
        fresh = reference.OrdinalRoc(4)
        first = max(end - 2500, 0)
        fresh.extend(scores[first:end], labels[first:end])
        assert value == fresh.vuhs()
