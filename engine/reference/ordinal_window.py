"""The last so many events of ordered classes, in plain Python."""
# ruff: noqa: S101 - `_check` asserts the invariants

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.events import class_of, ordinal_columns_of, ordinal_weight_of, score_of
from engine.reference.ordinal import OrdinalRoc
from engine.reference.window import at_least
from engine.results import Readings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.results import Columns


class OrdinalCountWindow:
    """The last `size` events pushed, with labels 0 .. r-1 in order, and their ROC.

    Parameters
    ----------
    classes
        r, from 2 to 8.
    size
        How many events at most, 1 or more.

    Attributes
    ----------
    roc
        Of what is inside.
    seen
        How many events were ever pushed.

    Raises
    ------
    ValueError
        When there are fewer classes or more, or the size is less than 1.

    Examples
    --------
    >>> from engine.reference import OrdinalCountWindow
    >>> window = OrdinalCountWindow(classes=3, size=3)
    >>> window.slide([0.1, 0.5, 0.9, 1.0], [0, 1, 2, 0], every=1)
    Readings(vuhs=array([nan, nan,  1.,  0.]), events=array([1, 2, 3, 3]))
    """

    __slots__ = ("_events", "_size", "roc", "seen")

    def __init__(self, classes: int, size: int) -> None:
        self.roc = OrdinalRoc(classes)
        self._size = at_least("size", size, 1)
        self._events: deque[tuple[float, int, float]] = deque()
        self.seen = 0

    def __len__(self) -> int:
        """Return how many events are inside; O(1)."""
        return len(self._events)

    @property
    def size(self) -> int:
        """How many events at most."""
        return self._size

    def push(self, score: float, label: int, weight: float = 1) -> None:
        """Put an event in; the oldest leaves when the window is full. O(log n).

        Raises
        ------
        ValueError
            When one is bad as for `OrdinalRoc.add`; nothing has changed then.
        """
        self._take(score_of(score), class_of(label, self.roc.classes), ordinal_weight_of(weight))

    def extend(
        self,
        scores: Iterable[Any],
        labels: Iterable[Any],
        weights: Iterable[Any] | None = None,
    ) -> None:
        """Push many events, all or none; O(k log n).

        Raises
        ------
        ValueError
            When an element is bad, or the lengths are unequal.
        """
        for event in self._admitted(scores, labels, weights):
            self._take(*event)

    def slide(
        self,
        scores: Iterable[Any],
        labels: Iterable[Any],
        weights: Iterable[Any] | None = None,
        *,
        every: int,
    ) -> Readings:
        """Push many events, all or none, and read the window each time `seen` is a multiple.

        Parameters
        ----------
        scores, labels, weights
            As for `extend`.
        every
            Read after every so many events, counted from the window's first one ever.

        Returns
        -------
        readings
            `vuhs` (float64) and `events` (int64), an entry per slide.

        Raises
        ------
        ValueError
            When an element or `every` is bad; nothing has changed then.
        """
        at_least("every", every, 1)
        vuhs: list[float] = []
        events: list[int] = []
        for event in self._admitted(scores, labels, weights):
            self._take(*event)
            if self.seen % every == 0:
                vuhs.append(self.roc.vuhs())
                events.append(len(self))
        return Readings(
            ("vuhs", "events"), (np.array(vuhs, np.float64), np.array(events, np.int64))
        )

    def _admitted(
        self, scores: Iterable[Any], labels: Iterable[Any], weights: Iterable[Any] | None
    ) -> Iterator[tuple[float, int, float]]:
        columns: Columns = ordinal_columns_of(scores, labels, self.roc.classes, weights)
        heavy = np.ones(len(columns.scores)) if columns.weights is None else columns.weights
        return zip(columns.scores.tolist(), columns.labels.tolist(), heavy.tolist(), strict=True)

    def _take(self, score: float, label: int, weight: float) -> None:
        if len(self._events) == self._size:
            self.roc.remove(*self._events.popleft())
        self._events.append((score, label, weight))
        self.roc.add(score, label, weight)
        self.seen += 1

    def _check(self) -> None:
        """Assert the invariants."""
        self.roc._check()  # noqa: SLF001 - invariants of a part
        assert len(self.roc) == len(self._events) <= min(self._size, self.seen)
        fresh = OrdinalRoc(self.roc.classes)
        for event in self._events:
            fresh.add(*event)
        assert fresh._cells == self.roc._cells  # noqa: SLF001 - the same
