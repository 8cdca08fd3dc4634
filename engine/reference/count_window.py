"""The last so many events, in plain Python."""
# ruff: noqa: S101 - `_check` asserts the invariants

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from engine.events import columns_of, label_of, score_of, time_of, weight_of
from engine.readings import OF_WINDOWS, READERS, Columns, Readings, check_names, check_severity
from engine.reference.roc import Roc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class Event(NamedTuple):
    """One event of a window; `time` in ms, 0 when it has none."""

    score: float
    label: int
    weight: float
    time: int


class CountWindow:
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

    __slots__ = ("_events", "_size", "roc", "seen")

    def __init__(self, size: int) -> None:
        self._size = _at_least("size", size, 1)
        self._events: deque[Event] = deque()
        self.roc = Roc()
        self.seen = 0

    def __len__(self) -> int:
        """Return how many events are inside; O(1)."""
        return len(self._events)

    @property
    def size(self) -> int:
        """How many events at most."""
        return self._size

    @property
    def first(self) -> int:
        """Ordinal of the oldest event inside; `seen` when there is none."""
        return self.seen - len(self._events)

    def push(self, score: float, label: int, weight: float = 1, time: int | None = None) -> None:
        """Put an event in; the oldest leaves when the window is full. O(log n).

        Parameters
        ----------
        score, label, weight
            As for `Roc.add`.
        time
            Event time in ms since the epoch; 0 when None.

        Raises
        ------
        ValueError
            When one is bad; nothing has changed then.
        """
        self._push(Event(score_of(score), label_of(label), weight_of(weight), time_of(time)))

    def extend(
        self,
        scores: Iterable[Any],
        labels: Iterable[Any],
        weights: Iterable[Any] | None = None,
        times: Iterable[Any] | None = None,
    ) -> None:
        """Push many events, all or none; O(k log n).

        Raises
        ------
        ValueError
            When an element is bad, or the lengths are unequal.
        """
        for event in _events_of(columns_of(scores, labels, weights, times)):
            self._push(event)

    def slide(
        self,
        scores: Iterable[Any],
        labels: Iterable[Any],
        weights: Iterable[Any] | None = None,
        times: Iterable[Any] | None = None,
        *,
        every: int,
        read: Iterable[str] = ("auc", "h"),
        alpha: float = 2.0,
        beta: float = 2.0,
    ) -> Readings:
        """Push many events, all or none, and read the window each time `seen` is a multiple.

        Parameters
        ----------
        scores, labels, weights, times
            As for `extend`.
        every
            Read after every so many events, counted from the window's first one ever.
        read
            Names of readings, see `engine.readings.names`.
        alpha, beta
            Severity of the H-measure.

        Returns
        -------
        readings
            An array per name, an entry per slide. Counts, and the weights of classes while all
            weights are 1, and times (ms) are int64, the rest float64.

        Raises
        ------
        ValueError
            When an element, a name or a parameter is bad; nothing has changed then.
        """
        _at_least("every", every, 1)
        names = check_names(read)
        severity = check_severity(alpha, beta)
        columns = columns_of(scores, labels, weights, times)
        rows: list[list[float]] = []
        for event in _events_of(columns):
            self._push(event)
            if self.seen % every == 0:
                rows.append([self._read(name, *severity) for name in names])
        arrays = [_array(name, [row[column] for row in rows]) for column, name in enumerate(names)]
        return Readings(names, arrays)

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
    def restore(cls, size: int, first: int, columns: Columns) -> CountWindow:
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
        window.seen = _at_least("first", first, 0)
        window.extend(*columns)
        return window

    def resize(self, size: int) -> None:
        """Change the size; of more events the oldest leave.

        Raises
        ------
        ValueError
            When the size is less than 1.
        """
        self._size = _at_least("size", size, 1)
        while len(self._events) > self._size:
            self._drop()

    def _push(self, event: Event) -> None:
        if len(self._events) == self._size:
            self._drop()
        self._events.append(event)
        self.roc.add(event.score, event.label, event.weight)
        self.seen += 1

    def _drop(self) -> None:
        event = self._events.popleft()
        self.roc.remove(event.score, event.label, event.weight)

    def _read(self, name: str, alpha: float, beta: float) -> float:
        match name:
            case "events":
                return len(self._events)
            case "start":
                return self._events[0].time
            case "end":
                return self._events[-1].time
            case _:
                return READERS[name](self.roc, alpha, beta)

    def _check(self) -> None:
        """Assert the invariants."""
        self.roc._check()  # noqa: SLF001 - invariants of a part
        assert len(self._events) <= self._size
        assert self.first >= 0
        content = Roc()
        for event in self._events:
            content.add(event.score, event.label, event.weight)
        assert content._cells == self.roc._cells  # noqa: SLF001 - the same


def _at_least(name: str, value: int, least: int) -> int:
    if isinstance(value, bool) or value != int(value) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def _events_of(columns: Columns) -> Iterator[Event]:
    count = len(columns.scores)
    weights = np.ones(count) if columns.weights is None else columns.weights
    times = np.zeros(count, np.int64) if columns.times is None else columns.times
    rows = zip(
        columns.scores.tolist(),
        columns.labels.tolist(),
        weights.tolist(),
        times.tolist(),
        strict=True,
    )
    return map(Event._make, rows)


def _array(name: str, values: Sequence[float]) -> Any:
    whole = name in OF_WINDOWS or (
        name in {"positives", "negatives"} and all(isinstance(value, int) for value in values)
    )
    return np.array(values, np.int64 if whole else np.float64)
