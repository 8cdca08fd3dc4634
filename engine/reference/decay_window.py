"""All events, each the lighter the older it is.

The paper on maintaining AUC and H over time knows of no method for exponential decay (Tatti,
section 3). But no reading changes when all weights change by one factor: so instead of making old
events lighter, new ones enter heavier, and nothing inside has to change.
"""
# ruff: noqa: S101 - `_check` asserts the invariants

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sortedcontainers import SortedList

from engine.reference.window import Window

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.reference.pushes import Event

LEAST = 1e-9
# Half-lives between renewals of the scale, and what weights and `least` may be: then no product of
# two sums of weights leaves the doubles.
RENEWAL = 64
LIGHTEST, HEAVIEST = 2.0**-200, 2.0**200


def check_window(half_life: float, least: float) -> tuple[float, float]:
    """Return the parameters of a decay window as doubles.

    Raises
    ------
    ValueError
        When the half-life is not positive and finite or `least` not between 2**-200 and 1.
    """
    if not 0.0 < half_life < math.inf:
        raise ValueError(f"half_life must be positive and finite, got {half_life!r}")
    if not LIGHTEST <= least < 1.0:
        raise ValueError(f"least must lie between 2**-200 and 1, got {least!r}")
    return float(half_life), float(least)


def check_weight(weight: float) -> None:
    """Refuse a weight that decay has no room for.

    Raises
    ------
    ValueError
        When it is outside 2**-200 to 2**200.
    """
    if not LIGHTEST <= weight <= HEAVIEST:
        raise ValueError(f"a weight under decay is 2**-200 to 2**200, got {weight!r}")


class Aged(NamedTuple):
    """One event inside: its step, its ordinal, itself and the weight it has in the ROC."""

    step: int
    ordinal: int
    event: Event
    weight: float


class DecayWindow(Window):
    """Events whose weight halves with every half-life, and their ROC.

    Parameters
    ----------
    half_life
        In events, or in ms when `timed`; positive.
    timed
        Age is event time and not the number of events since. Events may then come out of order.
    least
        What an event's weight has become, as a share of what it was, when it is dropped.

    Attributes
    ----------
    late
        How many events were to be dropped when they came.

    Raises
    ------
    ValueError
        When the half-life is not positive and finite or `least` not between 2**-200 and 1.

    Notes
    -----
    Memory holds the events of log2(1 / least) half-lives: thirty. What is dropped of unit weights,
    aged by events, is at most a share `least` of all weight, so AUC errs by at most
    least / p0 + least / p1, with p0 and p1 the shares of the classes. `roc` holds weights up to one
    common factor; what `slide` reads as positives and negatives has it taken out.

    Examples
    --------
    >>> from engine.reference import DecayWindow
    >>> window = DecayWindow(half_life=1)
    >>> readings = window.slide([0.5, 0.5, 0.1], [0, 1, 1], every=1, read=("auc", "positives"))
    >>> readings.auc.tolist(), readings.positives.tolist()
    ([nan, 0.5, 0.16666666666666666], [0.0, 1.0, 1.5])
    """

    __slots__ = ("_base", "_events", "_newest", "half_life", "late", "least", "timed")

    def __init__(self, half_life: float, *, timed: bool = False, least: float = LEAST) -> None:
        super().__init__()
        self.half_life, self.least = check_window(half_life, least)
        self.timed = timed
        self.late = 0
        self._events: Any = SortedList()
        # Steps at which an event enters with its own weight, and of the newest event.
        self._base = 0
        self._newest: int | None = None

    def __len__(self) -> int:
        """Return how many events are inside; O(1)."""
        return len(self._events)

    @property
    def span(self) -> tuple[int, int]:
        """Times of the oldest and the newest event inside, ms; 0 when empty."""
        if not self._events:
            return 0, 0
        return self._events[0].event.time, self._events[-1].event.time

    @property
    def horizon(self) -> float:
        """Age at which events are dropped, in events or ms."""
        return self.half_life * math.log2(1.0 / self.least)

    def _admit(self, times: Any, weights: Iterable[float]) -> None:
        if self.timed and times is None:
            raise ValueError("decay by time needs a time with every event")
        for weight in weights:
            check_weight(weight)

    def _take(self, event: Event) -> None:
        ordinal = self.seen
        step = event.time if self.timed else ordinal
        self.seen += 1
        if self._newest is None or step > self._newest:
            self._newest = step
            self._let_go(step)
        elif self._newest - step > self.horizon:
            self.late += 1
            return
        if step - self._base > RENEWAL * self.half_life or not self._events:
            self._renew(step)
        aged = Aged(step, ordinal, event, self._scaled(event, step))
        self._events.add(aged)
        self.roc.add(event.score, event.label, aged.weight)

    def _scaled(self, event: Event, step: int) -> float:
        return float(event.weight * 2.0 ** ((step - self._base) / self.half_life))

    def _let_go(self, now: int) -> None:
        while self._events and now - self._events[0].step > self.horizon:
            aged = self._events.pop(0)
            self._left.append(aged)
            self.roc.remove(aged.event.score, aged.event.label, aged.weight)

    def _renew(self, step: int) -> None:
        """Give all events new weights, relative to this step; O(n log n), each 64 half-lives."""
        self._base = step
        self._weigh(self._events)

    def _weigh(self, events: Iterable[Aged]) -> None:
        """Hold events with the weights of the scale; O(n log n)."""
        self._events = SortedList(
            aged._replace(weight=self._scaled(aged.event, aged.step)) for aged in events
        )
        self.roc = self._make_roc()
        if self._events:
            self.roc.extend(
                np.array([aged.event.score for aged in self._events]),
                np.array([aged.event.label for aged in self._events]),
                np.array([aged.weight for aged in self._events]),
            )

    def _read(self, name: str, alpha: float, beta: float) -> float:
        reading = super()._read(name, alpha, beta)
        if name not in {"positives", "negatives"}:
            return reading
        newest = self._base if self._newest is None else self._newest
        return float(reading * 2.0 ** ((self._base - newest) / self.half_life))

    def _mark(self) -> tuple[int, int, int, int | None]:
        return self.seen, self.late, self._base, self._newest

    def _go_back(self, mark: tuple[int, int, int, int | None]) -> None:
        self.seen, self.late, self._base, self._newest = mark
        self._weigh(aged for aged in [*self._left, *self._events] if aged.ordinal < self.seen)

    def _check(self) -> None:
        """Assert the invariants."""
        self.roc._check()  # noqa: SLF001 - invariants of a part
        assert len(self.roc) == len(self._events)
        for aged in self._events:
            assert self._newest is not None
            assert self._newest - aged.step <= self.horizon
            assert aged.weight == self._scaled(aged.event, aged.step)
