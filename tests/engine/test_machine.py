"""Random walks through the operations, held against a plain list of events at each step."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import pytest
import shapes
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from engine import reference

if TYPE_CHECKING:
    from collections.abc import Callable

SPECIAL = [0.0, -0.0, 5e-324, -5e-324, 1e-310, 1.0, 1.0 + 2**-52, -1.7e308, 1.7e308]
SCORES = st.one_of(
    st.integers(0, 3).map(float),
    st.sampled_from(SPECIAL),
    st.floats(allow_nan=False, allow_infinity=False),
)
WEIGHTS = st.one_of(st.just(1.0), st.sampled_from([1e-6, 0.1, 0.3, 2.0, 1e6]), st.floats(0.01, 9))


class Walk(RuleBasedStateMachine):
    """Walk over the Roc that `make` makes; `unit` says that all weights are 1."""

    make: Callable[[], Any]
    unit: bool

    def __init__(self) -> None:
        super().__init__()
        self.roc = self.make()
        self.events: list[tuple[float, int, float]] = []

    @rule(score=SCORES, label=st.integers(0, 1), weight=WEIGHTS)
    def add(self, score: float, label: int, weight: float) -> None:
        event = (score, label, 1 if self.unit else weight)
        self.roc.add(*event)
        self.events.append(event)

    @rule(run=shapes.runs(), seed=st.integers(0, 9), bulk=st.booleans())
    def pour(self, run: shapes.Run, seed: int, bulk: bool) -> None:  # noqa: FBT001 - drawn
        weights = [1.0] * len(run) if self.unit else shapes.heavy(len(run), seed)
        events = [(*event, weight) for event, weight in zip(run, weights, strict=True)]
        if bulk:
            self.roc.extend(*zip(*events, strict=True))
        else:
            for event in events:
                self.roc.add(*event)
        self.events.extend(events)

    @rule(start=st.integers(0, 100), ascending=st.booleans(), label=st.integers(0, 1))
    def add_in_order(self, start: int, ascending: bool, label: int) -> None:  # noqa: FBT001 - drawn
        scores = [start + step / 70 for step in itertools.accumulate(range(1, 12))]
        for score in scores if ascending else reversed(scores):
            self.add(score, label, 1)

    @rule(data=st.data(), most=st.integers(1, 100))
    def remove(self, data: Any, most: int) -> None:
        if self.events:
            place = data.draw(st.integers(0, len(self.events) - 1))
            for event in self.events[place : place + most]:
                self.roc.remove(*event)
            del self.events[place : place + most]

    @rule(label=st.integers(0, 1))
    def remove_class(self, label: int) -> None:
        for event in [event for event in self.events if event[1] == label]:
            self.roc.remove(*event)
            self.events.remove(event)

    @rule(chance=st.randoms(use_true_random=False))
    def remove_all(self, chance: Any) -> None:
        chance.shuffle(self.events)
        while self.events:
            self.roc.remove(*self.events.pop())

    @rule(score=SCORES, label=st.integers(0, 1))
    def remove_absent(self, score: float, label: int) -> None:
        held = math.fsum(w for s, y, w in self.events if (s, y) == (score, label))
        with pytest.raises(KeyError):
            self.roc.remove(score, label, 2 * held + 1)

    @rule(
        columns=st.sampled_from(
            [
                ([0.5, math.nan], [0, 1]),
                ([0.5, 0.6], [0, 2]),
                ([0.5, math.inf], [1, 1]),
                ([0.5, 0.6], [0, 1], [1.0, -1.0]),
                ([0.5], [0, 1]),
            ]
        )
    )
    def refuse(self, columns: Any) -> None:
        with pytest.raises(ValueError, match=r".+"):
            self.roc.extend(*columns)

    @invariant()
    def reads_as_a_fresh_twin(self) -> None:
        self.roc._check()
        twin = reference.Roc()
        if self.events:
            twin.extend(*zip(*self.events, strict=True))
        assert len(self.roc) == len(twin)
        for name in ("positives", "negatives"):
            expected = getattr(twin, name)
            assert getattr(self.roc, name) == pytest.approx(expected, rel=1e-12, abs=0)
        if self.unit:
            assert self.roc.auc() == pytest.approx(twin.auc(), abs=0, nan_ok=True)
        for name, read in READ.items():
            found, expected = read(self.roc), read(twin)
            assert found == pytest.approx(expected, abs=1e-12, nan_ok=True), name
            low, high = RANGES.get(name, (0, 1))
            assert not found < low
            assert not found > high


READ: dict[str, Callable[[Any], float]] = {
    "auc": lambda roc: roc.auc(),
    "h": lambda roc: roc.h_measure(),
    "h, Beta(2, 1.25)": lambda roc: roc.h_measure(2, 1.25),
    "h, priors": lambda roc: roc.h_measure(priors=(0.75, 0.25)),
    "low": lambda roc: roc.auc_interval()[0],
    "high": lambda roc: roc.auc_interval()[1],
    "strict": lambda roc: roc.ties().strict,
    "tied": lambda roc: roc.ties().tied,
    "bound": lambda roc: roc.ties().bound,
    "auch": lambda roc: roc.auch(),
    "ks": lambda roc: roc.ks(),
    "mer": lambda roc: roc.mer(),
    "mwl": lambda roc: roc.mwl(0.2),
    "cost, optimal": lambda roc: roc.cost_area("optimal"),
    "recall": lambda roc: roc.confusion(0.5).recall,
    "mcc": lambda roc: roc.confusion(0.25).mcc,
}
RANGES = {"mcc": (-1, 1), "mer": (0, 0.5), "auch": (0.5, 1), "bound": (0, 0.5)}


@pytest.mark.parametrize("unit", [True, False], ids=["unit weights", "weights"])
def test_every_step_reads_as_a_fresh_twin(engine: Any, unit: bool) -> None:  # noqa: FBT001 - a case
    walk = type("Walk", (Walk,), {"make": staticmethod(engine.Roc), "unit": unit})
    few = settings(max_examples=20, stateful_step_count=20, deadline=None)
    run_state_machine_as_test(walk, settings=few)
