"""Random walks through count windows, held against windows of the twin's made anew at each step."""

from __future__ import annotations

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

    Event = tuple[float, int, float, int]

READ = ("auc", "h", "positives", "negatives", "events", "start", "end", "ks", "auch", "f1@0.5")


class Walk(RuleBasedStateMachine):
    """Walk over a CountWindow; `unit` says that all weights are 1."""

    kind: type[Any]
    unit: bool

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Event] = []  # all there ever were

    @initialize(size=st.sampled_from([1, 2, 7, 64, 200]))
    def begin(self, size: int) -> None:
        self.size = size
        self.window = self.kind(size)
        # The window of the twin has the same events, so that it tells its readings at each slide.
        self.twin = reference.CountWindow(size)

    def columns(self, run: shapes.Run, seed: int) -> tuple[Any, ...]:
        count = len(run)
        weights = [1.0] * count if self.unit or seed % 2 else shapes.heavy(count, seed)
        times = range(len(self.events), len(self.events) + count)
        scores, labels = zip(*run, strict=True)
        self.events += zip(scores, labels, weights, times, strict=True)
        return scores, labels, None if self.unit and seed % 3 else weights, times

    @rule(run=shapes.runs(), seed=st.integers(0, 9), every=st.sampled_from([1, 3, 20, 1000]))
    def slide(self, run: shapes.Run, seed: int, every: int) -> None:
        columns = self.columns(run, seed)
        ours = self.window.slide(*columns, every=every, read=READ)
        theirs = self.twin.slide(*columns, every=every, read=READ)
        for name, left, right in zip(READ, ours, theirs, strict=True):
            assert left.dtype == right.dtype or not len(left), name
            tolerance = 0 if self.unit and name == "auc" else 1e-12
            assert left == pytest.approx(right, rel=tolerance, abs=tolerance, nan_ok=True), name

    @rule(run=shapes.runs(most=12), seed=st.integers(0, 9))
    def push(self, run: shapes.Run, seed: int) -> None:
        before = len(self.events)
        self.columns(run, seed)
        for event in self.events[before:]:
            self.window.push(*event)
            self.twin.push(*event)

    @rule(run=shapes.runs(), seed=st.integers(0, 9))
    def extend(self, run: shapes.Run, seed: int) -> None:
        columns = self.columns(run, seed)
        self.window.extend(*columns)
        self.twin.extend(*columns)

    @rule(size=st.sampled_from([1, 3, 30, 150, 300]))
    def resize(self, size: int) -> None:
        self.size = size
        self.window.resize(size)
        self.twin.resize(size)

    @rule()
    def restart(self) -> None:
        held = self.window.columns(self.window.first, self.window.seen)
        self.window = self.kind.restore(self.size, self.window.first, held)

    @rule(
        columns=st.sampled_from(
            [
                ([0.5, np.nan], [0, 1]),
                ([0.5, 0.6], [0, 2]),
                ([0.5, 0.6], [0, 1], [1.0, 0.0]),
                ([0.5], [0, 1]),
            ]
        )
    )
    def refuse(self, columns: Any) -> None:
        with pytest.raises(ValueError, match=r".+"):
            self.window.slide(*columns, every=1)

    @invariant()
    def holds_and_reads_the_last_events(self) -> None:
        if not hasattr(self, "window"):
            return
        self.window._check()
        seen, held = self.twin.seen, len(self.twin)
        window = self.window
        assert (window.seen, window.size, len(window)) == (seen, self.size, held)
        assert window.first == seen - held
        inside = self.events[seen - held :]
        columns = window.columns(window.first, seen)
        assert columns.scores.tolist() == [event[0] for event in inside]
        assert columns.labels.tolist() == [event[1] for event in inside]
        roc = reference.Roc()
        if inside:
            roc.extend(*list(zip(*inside, strict=True))[:3])
        for read in READINGS:
            assert read(window.roc) == pytest.approx(read(roc), abs=1e-12, nan_ok=True)


READINGS: list[Callable[[Any], Any]] = [
    len,
    lambda roc: roc.auc(),
    lambda roc: roc.h_measure(),
    lambda roc: roc.h_measure(2.5, 1, (0.9, 0.1)),
    lambda roc: roc.mer(),
    lambda roc: roc.confusion(0.5).recall,
]


@pytest.mark.parametrize("unit", [True, False], ids=["unit weights", "weights"])
def test_every_step_reads_as_a_fresh_twin(engine: Any, unit: bool) -> None:  # noqa: FBT001 - a case
    walk = type("Walk", (Walk,), {"kind": engine.CountWindow, "unit": unit})
    few = settings(max_examples=20, stateful_step_count=15, deadline=None)
    run_state_machine_as_test(walk, settings=few)
