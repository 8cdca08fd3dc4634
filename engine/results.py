"""What windows give and take and curves consist of: arrays side by side, with names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np


class Curve(NamedTuple):
    """Points of an ROC curve or of its hull, from (0, 0) to (1, 1).

    Attributes
    ----------
    fpr, tpr
        False and true positive rate when scores >= threshold are held positive. nan where the
        class is absent.
    thresholds
        Falling, the first +inf.
    """

    fpr: NDArray[np.float64]
    tpr: NDArray[np.float64]
    thresholds: NDArray[np.float64]


class Columns(NamedTuple):
    """Events in order of arrival, a column for each part of them.

    Attributes
    ----------
    scores
        Finite.
    labels
        0 or 1.
    weights
        Positive; None when every weight is 1.
    times
        In ms since the epoch; None when no event has one.
    """

    scores: NDArray[np.float64]
    labels: NDArray[np.uint8]
    weights: NDArray[np.float64] | None = None
    times: NDArray[np.int64] | None = None


class Readings(tuple[NDArray[Any], ...]):  # noqa: SLOT001 - a tuple's subtype has no slots
    """Arrays of readings, an entry per slide: a tuple in the order asked for, also by name.

    Parameters
    ----------
    names
        What was read.
    arrays
        As many arrays, of one length.

    Examples
    --------
    >>> import numpy as np
    >>> readings = Readings(["auc", "events"], [np.array([0.5, 1.0]), np.array([2, 4])])
    >>> readings["auc"], readings.events
    (array([0.5, 1. ]), array([2, 4]))
    """

    names: tuple[str, ...]

    def __new__(cls, names: Iterable[str], arrays: Iterable[NDArray[Any]]) -> Self:
        """Put names to arrays."""
        self = super().__new__(cls, tuple(arrays))
        self.names = tuple(names)
        if len(self.names) != len(self):
            raise ValueError(f"{len(self.names)} names for {len(self)} arrays")
        return self

    def __getitem__(self, key: Any) -> Any:
        """Return the array of a name, or what a tuple holds at a place."""
        if isinstance(key, str):
            if key not in self.names:
                raise KeyError(key)
            return super().__getitem__(self.names.index(key))
        return super().__getitem__(key)

    def __getattr__(self, name: str) -> NDArray[Any]:
        # Half-made copies have no names yet.
        if name not in self.__dict__.get("names", ()):
            raise AttributeError(name)
        return super().__getitem__(self.names.index(name))

    def __reduce__(self) -> tuple[type[Self], tuple[tuple[str, ...], tuple[NDArray[Any], ...]]]:
        return type(self), (self.names, tuple(self))

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={array!r}" for name, array in zip(self.names, self, strict=True))
        return f"Readings({parts})"
