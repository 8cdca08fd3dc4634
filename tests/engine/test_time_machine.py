"""Random walks through time windows, held against the twin at each step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import shapes
from hypothesis import settings
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

SCORES = st.one_of(
    st.integers(0, 3).map(float),
    st.sampled_from([0.0, -0.0, 5e-324, 1.7e308]),
    st.floats(allow_nan=False, allow_infinity=False),
)
WEIGHTS = st.sampled_from([1.0, 1.0, 0.1, 3.0, 1e-6, 1e6])
EVENTS = st.tuples(SCORES, st.integers(0, 1), WEIGHTS, st.integers(-30, 9))
READ = ("auc", "h", "positives", "negatives", "events", "start", "end", "ks")


class Walk(RuleBasedStateMachine):
    """Walk over a TimeWindow that `make` makes."""

    make: Callable[..., Any]

    def __init__(self) -> None:
        super().__init__()
        self.now = 0

    @initialize(
        duration=st.sampled_from([1, 20, 150, 2**70]),
        weighted=st.booleans(),
        start=st.sampled_from([0, -(2**63), 1_764_460_000_000]),
    )
    def begin(self, duration: int, weighted: bool, start: int) -> None:  # noqa: FBT001 - drawn
        self.window, self.twin = self.make(duration), reference.TimeWindow(duration)
        self.weighted = weighted
        self.now = start

    def event(self, event: Any) -> tuple[float, int, float, int]:
        score, label, weight, step = event
        self.now += max(step, 0)
        time = max(self.now + min(step, 0), -(2**63))
        return score, label, weight if self.weighted else 1.0, time

    @rule(event=EVENTS)
    def push(self, event: Any) -> None:
        drawn = self.event(event)
        self.window.push(*drawn)
        self.twin.push(*drawn)

    @rule(leap=st.sampled_from([0, 5, 10_000]))
    def advance(self, leap: int) -> None:
        self.now += leap
        self.window.advance(self.now)
        self.twin.advance(self.now)

    @rule(run=shapes.runs(), seed=st.integers(0, 9), pace=st.sampled_from([0, 1, 50]))
    def pour(self, run: shapes.Run, seed: int, pace: int) -> None:
        weights = shapes.heavy(len(run), seed)
        self.slide([(*event, w, pace) for event, w in zip(run, weights, strict=True)], 25)

    @rule(run=shapes.runs(), seed=st.integers(0, 9), spread=st.sampled_from([60, 300]))
    def scatter(self, run: shapes.Run, seed: int, spread: int) -> None:
        """Let events come in no order at all, so that many younger ones are there before them."""
        weights = shapes.heavy(len(run), seed)
        steps = np.random.default_rng(seed).integers(-spread, 3, len(run)).tolist()
        self.slide([(*event, *rest) for event, *rest in zip(run, weights, steps, strict=True)], 25)

    @rule(events=st.lists(EVENTS, min_size=1, max_size=90), every=st.integers(1, 30))
    def slide(self, events: Any, every: int) -> None:
        columns = list(zip(*map(self.event, events), strict=True))
        ours = self.window.slide(*columns, every=every, read=READ)
        theirs = self.twin.slide(*columns, every=every, read=READ)
        for name, left, right in zip(READ, ours, theirs, strict=True):
            assert left.dtype == right.dtype
            assert left == pytest.approx(right, rel=1e-12, abs=1e-12, nan_ok=True), name

    @rule(
        columns=st.sampled_from(
            [([0.5], [2], None, [5]), ([math.nan], [0], None, [5]), ([0.5], [0])]
        )
    )
    def refuse(self, columns: Any) -> None:
        with pytest.raises(ValueError, match=r".+"):
            self.window.slide(*columns, every=1)

    @invariant()
    def reads_as_the_twin(self) -> None:
        if not hasattr(self, "window"):
            return
        self.window._check()
        for name in ("seen", "late", "now", "span", "duration"):
            assert getattr(self.window, name) == getattr(self.twin, name)
        assert len(self.window) == len(self.twin) == len(self.window.roc)
        ours, theirs = self.window.roc, self.twin.roc
        for read in (lambda roc: roc.auc(), lambda roc: roc.h_measure()):
            assert read(ours) == pytest.approx(read(theirs), abs=1e-12, nan_ok=True)


def test_every_step_reads_as_the_twin(engine: Any) -> None:
    walk = type("Walk", (Walk,), {"make": staticmethod(engine.TimeWindow)})
    few = settings(max_examples=30, stateful_step_count=15, deadline=None)
    run_state_machine_as_test(walk, settings=few)
