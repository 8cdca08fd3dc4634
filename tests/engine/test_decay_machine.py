"""Random walks through decay windows, held against the twin at each step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import shapes
from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from engine import reference

if TYPE_CHECKING:
    from collections.abc import Callable

SPECIAL = [0.0, -0.0, 5e-324, 1.0, 1.0 + 2**-52, -1.7e308, 1.7e308]
SCORES = st.one_of(
    st.integers(0, 3).map(float),
    st.sampled_from(SPECIAL),
    st.floats(allow_nan=False, allow_infinity=False),
)
WEIGHTS = st.sampled_from([1.0, 1.0, 0.1, 3.0, 1e-6, 1e6, 1e-30, 1e30])
EVENTS = st.tuples(SCORES, st.integers(0, 1), WEIGHTS, st.integers(-12, 9))
READ = ("auc", "h", "positives", "negatives", "events", "start", "end", "auch", "ks")


class Walk(RuleBasedStateMachine):
    """Walk over a DecayWindow that `make` makes."""

    make: Callable[..., Any]

    def __init__(self) -> None:
        super().__init__()
        self.now = 0

    @initialize(
        half_life=st.sampled_from([0.5, 1.0, 3.7, 60.0]),
        timed=st.booleans(),
        least=st.sampled_from([1e-9, 0.01, 2.0**-200]),
        weighted=st.booleans(),
    )
    def begin(self, half_life: float, timed: bool, least: float, weighted: bool) -> None:  # noqa: FBT001 - drawn
        self.window = self.make(half_life, timed=timed, least=least)
        self.twin = reference.DecayWindow(half_life, timed=timed, least=least)
        self.weighted = weighted

    def event(self, event: Any) -> tuple[float, int, float, int]:
        score, label, weight, step = event
        self.now += max(step, 0)
        return score, label, weight if self.weighted else 1.0, self.now + min(step, 0)

    @rule(event=EVENTS)
    def push(self, event: Any) -> None:
        drawn = self.event(event)
        self.window.push(*drawn)
        self.twin.push(*drawn)

    @rule(leap=st.sampled_from([100, 10_000, 2**40]))
    def fall_silent(self, leap: int) -> None:
        assume(self.now < 2**60)
        self.now += leap

    @rule(run=shapes.runs(), seed=st.integers(0, 9), pace=st.sampled_from([0, 1, 50]))
    def pour(self, run: shapes.Run, seed: int, pace: int) -> None:
        weights = shapes.heavy(len(run), seed)
        self.slide([(*event, w, pace) for event, w in zip(run, weights, strict=True)], 25)

    @rule(events=st.lists(EVENTS, min_size=1, max_size=90), every=st.integers(1, 30))
    def slide(self, events: Any, every: int) -> None:
        columns = list(zip(*map(self.event, events), strict=True))
        ours = self.window.slide(*columns, every=every, read=READ)
        theirs = self.twin.slide(*columns, every=every, read=READ)
        for name, left, right in zip(READ, ours, theirs, strict=True):
            assert left.dtype == right.dtype or not len(left)
            assert left == pytest.approx(right, rel=1e-12, abs=1e-12, nan_ok=True), name

    @rule(columns=st.sampled_from([([0.5], [2]), ([math.nan], [0]), ([0.5], [0], [1e99], [5])]))
    def refuse(self, columns: Any) -> None:
        with pytest.raises(ValueError, match=r".+"):
            self.window.slide(*columns, every=1)

    @invariant()
    def reads_as_the_twin(self) -> None:
        if not hasattr(self, "window"):
            return
        self.window._check()
        for name in ("seen", "late", "span"):
            assert getattr(self.window, name) == getattr(self.twin, name)
        assert len(self.window) == len(self.twin) == len(self.window.roc)
        ours, theirs = self.window.roc, self.twin.roc
        for read in READINGS:
            assert read(ours) == pytest.approx(read(theirs), abs=1e-12, nan_ok=True)
        assert not ours.auc() > 1
        assert not ours.h_measure() > 1


READINGS: list[Callable[[Any], Any]] = [
    lambda roc: roc.auc(),
    lambda roc: roc.h_measure(),
    lambda roc: roc.h_measure(2, 1.25),
    lambda roc: roc.h_measure(priors=(0.75, 0.25)),
    lambda roc: roc.mer(),
    lambda roc: roc.confusion(1.0).recall,
    lambda roc: list(roc.curve().tpr),
    lambda roc: roc.cost_area("rate-driven"),
]


def test_every_step_reads_as_the_twin(engine: Any) -> None:
    walk = type("Walk", (Walk,), {"make": staticmethod(engine.DecayWindow)})
    few = settings(max_examples=30, stateful_step_count=15, deadline=None)
    run_state_machine_as_test(walk, settings=few)


def test_a_giant_that_leaves_a_tied_score_leaves_the_rest_exact(engine: Any) -> None:
    weights = np.array([2.0**150, 1.0, 1.0, 0.1, 1e-12])
    window = engine.DecayWindow(1.0, least=2.0**-8)
    labels = [1, 1, 0, 1, 0]
    window.extend([0.5] * 5, labels, weights)
    window.extend([0.25, 0.75, 0.25, 0.75], [0, 1, 1, 0])
    assert len(window) == 9
    window.push(0.6, 1)
    assert len(window) == 9
    window._check()
    ages = np.arange(8, -1, -1)
    twin = reference.Roc()
    twin.extend(
        [0.5] * 4 + [0.25, 0.75, 0.25, 0.75, 0.6],
        [*labels[1:], 0, 1, 1, 0, 1],
        np.concatenate([weights[1:], np.ones(5)]) * 0.5**ages,
    )
    assert window.roc.auc() == pytest.approx(twin.auc(), abs=1e-12)
    assert window.roc.h_measure() == pytest.approx(twin.h_measure(), abs=1e-12)


def test_decay_is_right_after_a_hundred_thousand_half_lives(engine: Any) -> None:
    rng = np.random.default_rng(7)
    window = engine.DecayWindow(0.3)
    scores, labels = rng.integers(0, 6, 30_000) / 4, rng.integers(0, 2, 30_000)
    window.extend(scores, labels)
    window._check()
    inside = int(0.3 * math.log2(1e9)) + 1
    assert len(window) == inside
    twin = reference.Roc()
    weights = 0.5 ** (np.arange(inside - 1, -1, -1) / 0.3)
    twin.extend(scores[-inside:], labels[-inside:], weights)
    assert window.roc.auc() == pytest.approx(twin.auc(), abs=1e-12)
    assert window.roc.h_measure() == pytest.approx(twin.h_measure(), abs=1e-12)
