"""The last so many events, in plain Python."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from engine.events import at_least, columns_of
from engine.reference.pushes import LastEvents
from engine.reference.window import Window

if TYPE_CHECKING:
    from engine.readings import Columns


class CountWindow(LastEvents, Window):
    """The last `size` events pushed, and their ROC.

    Events are numbered from 0 in the order they were pushed: their ordinals.

    Parameters
    ----------
    size
        How many events at most, 1 or more.

    Raises
    ------
    ValueError
        When the size is less than 1.

    Examples
    --------
    >>> from engine.reference import CountWindow
    >>> window = CountWindow(2)
    >>> window.slide([0.1, 0.7, 0.4], [0, 1, 1], every=1, read=("auc", "events"))
    Readings(auc=array([nan,  1., nan]), events=array([1, 2, 2]))
    >>> window.first, window.seen, len(window)
    (1, 3, 2)
    """

    __slots__ = ()

    @property
    def first(self) -> int:
        """Ordinal of the oldest event inside; `seen` when there is none."""
        return self.seen - len(self._events)

    @property
    def span(self) -> tuple[int, int]:
        """Times of the first and of the last event pushed of those inside, ms; 0 when empty."""
        if not self._events:
            return 0, 0
        return self._events[0].time, self._events[-1].time

    def columns(self, start: int, stop: int) -> Columns:
        """Copy the events with ordinals in [start, stop) that are still inside; O(n)."""
        low = max(start - self.first, 0)
        high = max(stop - self.first, low)
        events = list(islice(self._events, low, high))
        return columns_of(
            np.array([event.score for event in events], np.float64),
            np.array([event.label for event in events], np.uint8),
            np.array([event.weight for event in events], np.float64),
            np.array([event.time for event in events], np.int64),
        )

    @classmethod
    def restore(cls, size: int, first: int, columns: Columns) -> Self:
        """Make a window of events kept elsewhere; O(n log n).

        Parameters
        ----------
        size
            Of the window. Of more events the oldest leave.
        first
            Ordinal of the first event in `columns`, 0 or more.
        columns
            The events, oldest first.

        Raises
        ------
        ValueError
            When a parameter or an event is bad.
        """
        window = cls(size)
        window.seen = at_least("first", first, 0)
        window.extend(*columns)
        return window

    def resize(self, size: int) -> None:
        """Change the size; of more events the oldest leave.

        Raises
        ------
        ValueError
            When the size is less than 1.
        """
        limit = at_least("size", size, 1)

        def drop_all() -> None:
            while len(self._events) > limit:
                self._drop()

        self._all_or_none(drop_all)
        self._size = limit

    def _empty_roc(self) -> Any:
        return self._make_roc()
