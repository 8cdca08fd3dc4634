"""What all windows share: events come in, alone or many, and readings come out at slides."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from engine.events import at_least, columns_of, label_of, score_of, time_of, weight_of
from engine.readings import (
    OF_WINDOWS,
    READERS,
    Readings,
    check_names,
    check_severity,
)
from engine.reference.pushes import Event, Pushes, events_of
from engine.reference.roc import Roc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class Window(Pushes):
    """Events that come in order of arrival, and the ROC of those that count."""

    __slots__ = ()

    # What makes the ROC: the twin's here, the compiled core's in the public classes.
    _make_roc: ClassVar[type[Any]] = Roc

    def __init__(self) -> None:
        super().__init__()
        self.roc = self._make_roc()

    @property
    @abstractmethod
    def span(self) -> tuple[int, int]:
        """Times of the oldest and of the newest event inside, ms."""

    def push(self, score: float, label: int, weight: float = 1, time: int | None = None) -> None:
        """Put an event in; events that no longer belong to the window leave. O(log n).

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
        event = Event(score_of(score), label_of(label), weight_of(weight), time_of(time))
        self._admit(None if time is None else [event.time], [event.weight])
        self._run([event])

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
        self._run(self._admitted(scores, labels, weights, times))

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
        at_least("every", every, 1)
        names = check_names(read)
        severity = check_severity(alpha, beta)
        rows: list[list[float]] = []

        def read_slide() -> None:
            if self.seen % every == 0:
                rows.append([self._read(name, *severity) for name in names])

        self._run(self._admitted(scores, labels, weights, times), read_slide)
        return _readings(names, rows)

    def readings(
        self, read: Iterable[str] = ("auc", "h"), alpha: float = 2.0, beta: float = 2.0
    ) -> Readings:
        """Read the window as it is.

        Parameters
        ----------
        read, alpha, beta
            As for `slide`.

        Returns
        -------
        readings
            As of `slide`, with one entry.

        Raises
        ------
        ValueError
            When a name or a parameter is bad.
        """
        names = check_names(read)
        severity = check_severity(alpha, beta)
        return _readings(names, [[self._read(name, *severity) for name in names]])

    def _admit(self, times: Any, weights: Iterable[float]) -> None:
        """Refuse what this kind of window cannot take: ValueError."""

    def _admitted(
        self,
        scores: Iterable[Any],
        labels: Iterable[Any],
        weights: Iterable[Any] | None,
        times: Iterable[Any] | None,
    ) -> Iterator[Event]:
        columns = columns_of(scores, labels, weights, times)
        self._admit(times, () if columns.weights is None else columns.weights.tolist())
        return events_of(columns)

    def _read(self, name: str, alpha: float, beta: float) -> float:
        match name:
            case "events":
                return len(self)
            case "start":
                return self.span[0]
            case "end":
                return self.span[1]
            case _:
                return READERS[name](self.roc, alpha, beta)


def _readings(names: tuple[str, ...], rows: Sequence[Sequence[float]]) -> Readings:
    columns = [[row[at] for row in rows] for at in range(len(names))]
    return Readings(names, [_array(*column) for column in zip(names, columns, strict=True)])


def _array(name: str, values: Sequence[float]) -> Any:
    whole = name in OF_WINDOWS or (
        name in {"positives", "negatives"} and all(isinstance(value, int) for value in values)
    )
    return np.array(values, np.int64 if whole else np.float64)
