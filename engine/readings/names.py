"""The one table of what windows read at their slides: a name, and how it is read off a ROC."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Readable(Protocol):
    """What a ROC offers to be read."""

    @property
    def positives(self) -> float:
        """Weight of the positive class."""

    @property
    def negatives(self) -> float:
        """Weight of the negative class."""

    def auc(self) -> float:
        """Area under the ROC curve."""

    def h_measure(self, alpha: float = ..., beta: float = ...) -> float:
        """H-measure."""


READERS: dict[str, Callable[[Readable, float, float], float]] = {
    "auc": lambda roc, _alpha, _beta: roc.auc(),
    "h": lambda roc, alpha, beta: roc.h_measure(alpha, beta),
    "positives": lambda roc, _alpha, _beta: roc.positives,
    "negatives": lambda roc, _alpha, _beta: roc.negatives,
}

# What the window knows, not its ROC.
OF_WINDOWS = ("events", "start", "end")


def check_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names as a tuple.

    Raises
    ------
    ValueError
        When one is unknown; it names the nearest known one.
    """
    checked = tuple(names)
    known = (*READERS, *OF_WINDOWS)
    for name in checked:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            hint = f", did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"there is no reading {name!r}{hint}")
    return checked
