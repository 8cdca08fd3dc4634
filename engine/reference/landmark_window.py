"""Everything since the beginning, in fixed memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.reference.binned import BinnedRoc
from engine.reference.window import Window

if TYPE_CHECKING:
    from engine.reference.pushes import Event


class LandmarkWindow(Window):
    """All events ever pushed, on a `BinnedRoc`, so that memory stays bounded.

    Parameters
    ----------
    thresholds
        Of the bins, 2 or more.

    Raises
    ------
    ValueError
        When there are fewer than two thresholds.

    Examples
    --------
    >>> from engine.reference import LandmarkWindow
    >>> window = LandmarkWindow()
    >>> window.extend([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    >>> window.roc.auc(), window.roc.error()
    (0.75, 0.0)
    """

    __slots__ = ("_first", "_last")

    def __init__(self, thresholds: int = 1000) -> None:
        super().__init__()
        self.roc = BinnedRoc(thresholds)
        self._first = 0
        self._last = 0

    def __len__(self) -> int:
        """Return how many events are inside: all; O(1)."""
        return len(self.roc)

    @property
    def span(self) -> tuple[int, int]:
        """Times of the first and of the last event pushed, ms; 0 when empty."""
        return self._first, self._last

    def _take(self, event: Event) -> None:
        if not self.seen:
            self._first = event.time
        self._last = event.time
        self.roc.add(event.score, event.label, event.weight)
        self.seen += 1

    def _mark(self) -> Any:
        return self.seen, self._first, self._last, self.roc._mark()  # noqa: SLF001 - of a part

    def _go_back(self, mark: Any) -> None:
        self.seen, self._first, self._last, content = mark
        self.roc._go_back(content)  # noqa: SLF001 - of a part

    def _check(self) -> None:
        """Assert the invariants."""
        self.roc._check()  # noqa: SLF001 - invariants of a part
