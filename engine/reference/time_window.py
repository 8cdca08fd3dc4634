"""The events of the last so many milliseconds, in whatever order they come."""
# ruff: noqa: S101 - `_check` asserts the invariants

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sortedcontainers import SortedList

from engine.events import at_least, time_of
from engine.reference.pushes import Event, roc_of
from engine.reference.window import Window

if TYPE_CHECKING:
    from collections.abc import Iterable


class TimeWindow(Window):
    """Events with now - duration < time <= now, and their ROC.

    Now is the greatest time pushed or advanced to. Events may come out of order; one that has
    already left when it comes is counted as late and otherwise ignored.

    Parameters
    ----------
    duration
        In ms, 1 or more.

    Attributes
    ----------
    now
        In ms; None before the first event.
    late
        How many events came too late.

    Raises
    ------
    ValueError
        When the duration is less than 1.

    Examples
    --------
    >>> from engine.reference import TimeWindow
    >>> window = TimeWindow(1000)
    >>> window.extend([0.1, 0.9, 0.5], [0, 1, 0], times=[0, 700, 500])
    >>> len(window), window.roc.auc()
    (3, 1.0)
    >>> window.advance(1500)
    >>> len(window), window.span
    (1, (700, 700))
    """

    __slots__ = ("_events", "duration", "late", "now")

    def __init__(self, duration: int) -> None:
        super().__init__()
        self.duration = at_least("duration", duration, 1)
        self.now: int | None = None
        self.late = 0
        # Of tuples: time, ordinal, event.
        self._events: Any = SortedList()

    def __len__(self) -> int:
        """Return how many events are inside; O(1)."""
        return len(self._events)

    @property
    def span(self) -> tuple[int, int]:
        """Least and greatest time inside, ms; now when empty."""
        if not self._events:
            now = self.now or 0
            return now, now
        return self._events[0][0], self._events[-1][0]

    def advance(self, time: int) -> None:
        """Move on to a time: what lies at or before time - duration leaves. O(log n) each.

        A time before now changes nothing.

        Raises
        ------
        ValueError
            When the time is not a whole number of ms.
        """
        moment = time_of(time)
        self._all_or_none(lambda: self._move_to(moment))

    def _move_to(self, moment: int) -> None:
        if self.now is not None and moment <= self.now:
            return
        self.now = moment
        while self._events and self._events[0][0] <= moment - self.duration:
            row = self._events.pop(0)
            self._left.append(row)
            event = row[2]
            self.roc.remove(event.score, event.label, event.weight)

    def _admit(self, times: Any, weights: Iterable[float]) -> None:  # noqa: ARG002 - any will do
        if times is None:
            raise ValueError("a time window needs a time with every event")

    def _take(self, event: Event) -> None:
        self._move_to(event.time)
        ordinal = self.seen
        self.seen += 1
        if self.now is not None and event.time <= self.now - self.duration:
            self.late += 1
            return
        self._events.add((event.time, ordinal, event))
        self.roc.add(event.score, event.label, event.weight)

    def _mark(self) -> tuple[int, int, int | None]:
        return self.seen, self.late, self.now

    def _go_back(self, mark: tuple[int, int, int | None]) -> None:
        self.seen, self.late, self.now = mark
        rows = [row for row in [*self._left, *self._events] if row[1] < self.seen]
        self._events = SortedList(rows)
        self.roc = roc_of(self._make_roc(), (event for _, _, event in rows))

    def _check(self) -> None:
        """Assert the invariants."""
        self.roc._check()  # noqa: SLF001 - invariants of a part
        assert len(self.roc) == len(self._events)
        assert self.late + len(self._events) <= self.seen
        for time, _, event in self._events:
            assert time == event.time
            assert self.now is not None
            assert self.now - self.duration < time <= self.now
