"""How events get into a window: all of a call's, or none and the window is as it was."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from engine.events import at_least
from engine.reference.copies import Copies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from engine.results import Columns


class Event(NamedTuple):
    """One event of a window; `time` in ms, 0 when it has none."""

    score: float
    label: int
    weight: float
    time: int


class Pushes(Copies, ABC):
    """A window that takes events one by one and can go back to what it was before them.

    A kind of window says what it takes to go back: `_mark` what to remember, `_go_back` what to do,
    beside what left meanwhile. The ROC is made anew then: it may have been stopped anywhere.

    Attributes
    ----------
    roc
        Of what is inside.
    seen
        How many events were ever pushed.
    """

    __slots__ = ("_left", "roc", "seen")

    roc: Any

    def __init__(self) -> None:
        self.seen = 0
        # What left during the call that is under way, in the order it did.
        self._left: list[Any] = []

    @abstractmethod
    def __len__(self) -> int:
        """Return how many events are inside."""

    @abstractmethod
    def _take(self, event: Event) -> None:
        """Put a checked event in and let go of those that leave."""

    @abstractmethod
    def _mark(self) -> Any:
        """Return what `_go_back` wants; O(1)."""

    @abstractmethod
    def _go_back(self, mark: Any) -> None:
        """Be what the window was at a mark; O(n log n)."""

    def _run(self, events: Iterable[Event], after_each: Callable[[], object] | None = None) -> None:
        """Take events, and do something after each of them."""

        def take_all() -> None:
            for event in events:
                self._take(event)
                if after_each is not None:
                    after_each()

        self._all_or_none(take_all)

    def _all_or_none(self, change: Callable[[], object]) -> None:
        """Change the window; where that raises, it is as it was."""
        mark = self._mark()
        try:
            change()
        except BaseException:
            self._go_back(mark)
            raise
        finally:
            self._left.clear()


class LastEvents(Pushes):
    """The last so many events, whatever their ROC is."""

    __slots__ = ("_events", "_size")

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = at_least("size", size, 1)
        self._events: deque[Event] = deque()

    @abstractmethod
    def _empty_roc(self) -> Any:
        """Make a ROC of the window's kind without events."""

    def __len__(self) -> int:
        """Return how many events are inside; O(1)."""
        return len(self._events)

    @property
    def size(self) -> int:
        """How many events at most."""
        return self._size

    def _take(self, event: Event) -> None:
        if len(self._events) == self._size:
            self._drop()
        self._events.append(event)
        self.roc.add(event.score, event.label, event.weight)
        self.seen += 1

    def _drop(self) -> None:
        event = self._events.popleft()
        self._left.append(event)
        self.roc.remove(event.score, event.label, event.weight)

    def _mark(self) -> tuple[int, int]:
        return self.seen, len(self._events)

    def _go_back(self, mark: tuple[int, int]) -> None:
        self.seen, held = mark
        # They came in the order they leave in, so those of the call are the last.
        self._events = deque([*self._left, *self._events][:held])
        self.roc = roc_of(self._empty_roc(), self._events)

    def _check(self) -> None:
        """Assert the invariants."""
        self.roc._check()  # noqa: SLF001 - invariants of a part
        assert len(self._events) <= min(self._size, self.seen)  # noqa: S101 - that is its purpose
        content = roc_of(self._empty_roc(), self._events)
        assert content._cells == self.roc._cells  # noqa: S101, SLF001 - the same


def events_of(columns: Columns) -> Iterator[Event]:
    """Give the events of columns one by one."""
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


def roc_of(roc: Any, events: Iterable[Event]) -> Any:
    """Fill a ROC."""
    for event in events:
        roc.add(event.score, event.label, event.weight)
    return roc
