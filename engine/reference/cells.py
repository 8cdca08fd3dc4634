"""Equal scores of a ROC, counted and weighed exactly."""

from __future__ import annotations

import sys
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

    Exact: TypeAlias = int | Fraction

MOST = int(sys.float_info.max)


def exact(weight: float) -> Exact:
    """Return a weight as the rational number that it is, so that no sum of them ever rounds."""
    return int(weight) if weight.is_integer() else Fraction(weight)


def put_all(
    rows: Iterable[tuple[float, int, float]],
    put: Callable[[float, int, Exact], object],
    take_back: Callable[[float, int, Exact], object],
) -> None:
    """Put events in by score, label and weight, all or none."""
    events = [(score, label, exact(weight)) for score, label, weight in rows]
    done = 0
    try:
        for event in events:
            put(*event)
            done += 1
    except BaseException:
        for event in events[:done]:
            take_back(*event)
        raise


class Cell(NamedTuple):
    """Events of one score and one class.

    Attributes
    ----------
    events
        How many.
    weight
        Their weights' exact sum.
    odd
        How many of them have a weight other than 1, as far as taking parts of events lets tell.
    """

    events: int = 0
    weight: Exact = 0
    odd: int = 0

    @property
    def uneven(self) -> bool:
        """Whether a weight other than 1 is inside."""
        return self.odd > 0 or self.weight != self.events

    def plus(self, weight: Exact) -> Cell:
        """Put one event in.

        Raises
        ------
        OverflowError
            When the sum of weights leaves the doubles.
        """
        total = self.weight + weight
        if total > MOST:
            raise OverflowError("the weights of one score and class add up to more than a double")
        return Cell(self.events + 1, total, self.odd + (weight != 1))

    def minus(self, weight: Exact) -> Cell:
        """Take weight out, at most what is there.

        An event stays while some of its weight does, and none stays without.
        """
        total = self.weight - weight
        if not total:
            return EMPTY
        if self.events <= 2:  # noqa: PLR2004 - then one is left, and its weight is known
            return Cell(1, total, int(total != 1))
        odd = self.odd - (weight != 1 and self.odd > 0)
        return Cell(self.events - 1, total, min(odd, self.events - 1))


EMPTY = Cell()
