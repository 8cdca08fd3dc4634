"""The last so many events of ordered classes, in plain Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine.events import at_least, class_of, ordinal_columns_of, ordinal_weight_of, score_of
from engine.reference.ordinal import OrdinalRoc
from engine.reference.pushes import Event, LastEvents, events_of
from engine.results import Readings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class OrdinalCountWindow(LastEvents):
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

    __slots__ = ("classes",)

    def __init__(self, classes: int, size: int) -> None:
        super().__init__(size)
        self.roc = OrdinalRoc(classes)
        self.classes: int = self.roc.classes

    def push(self, score: float, label: int, weight: float = 1) -> None:
        """Put an event in; the oldest leaves when the window is full. O(log n).

        Raises
        ------
        ValueError
            When one is bad as for `OrdinalRoc.add`; nothing has changed then.
        """
        place = class_of(label, self.classes)
        self._run([Event(score_of(score), place, ordinal_weight_of(weight), 0)])

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
        self._run(self._admitted(scores, labels, weights))

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

        def read_slide() -> None:
            if self.seen % every == 0:
                vuhs.append(self.roc.vuhs())
                events.append(len(self))

        self._run(self._admitted(scores, labels, weights), read_slide)
        return Readings(
            ("vuhs", "events"), (np.array(vuhs, np.float64), np.array(events, np.int64))
        )

    def _admitted(
        self, scores: Iterable[Any], labels: Iterable[Any], weights: Iterable[Any] | None
    ) -> Iterator[Event]:
        return events_of(ordinal_columns_of(scores, labels, self.classes, weights))

    def _empty_roc(self) -> OrdinalRoc:
        return OrdinalRoc(self.classes)
