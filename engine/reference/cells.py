"""Equal scores of a ROC, counted and weighed exactly."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TypeAlias

    Exact: TypeAlias = int | Fraction


def exact(weight: float) -> Exact:
    """Return a weight as the rational number that it is, so that no sum of them ever rounds."""
    return int(weight) if weight.is_integer() else Fraction(weight)


class Cell:
    """Events of one score and one class.

    Attributes
    ----------
    events
        How many.
    weight
        Their weights' exact sum.
    """

    __slots__ = ("events", "weight")

    def __init__(self) -> None:
        self.events = 0
        self.weight: Exact = 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Cell):
            return NotImplemented
        return (self.events, self.weight) == (other.events, other.weight)

    __hash__ = None  # type: ignore[assignment] # it changes

    @property
    def uneven(self) -> bool:
        """Whether the weight is another than unit weights would give."""
        return self.weight != self.events

    def add(self, weight: Exact) -> None:
        """Put one event in."""
        self.events += 1
        self.weight += weight

    def remove(self, weight: Exact) -> int:
        """Take weight out, at most what is there, and return how many events left with it.

        An event stays while some of its weight does, and none stays without.
        """
        before = self.events
        self.weight -= weight
        if not self.weight:
            self.events = 0
        elif self.events > 1:
            self.events -= 1
        return before - self.events
