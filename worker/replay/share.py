"""Events on their way from one process of a replay to another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from worker.events.batch import ListedEvents

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from worker.events import KeyedEvents


class Share(NamedTuple):
    """Events of one owner on their way to it: key after key, in columns.

    Attributes
    ----------
    names, sizes
        The keys, and how many events of each follow each other.
    scores, labels, times, weights, offsets, indexes
        As in `KeyedEvents`; None for ones as weights and zeros as indexes.
    """

    names: list[str]
    sizes: list[int]
    scores: NDArray[np.float64]
    labels: NDArray[np.uint8]
    times: NDArray[np.int64]
    weights: NDArray[np.float64] | None
    offsets: NDArray[np.int64]
    indexes: NDArray[np.int64] | None

    @classmethod
    def of(cls, keys: dict[str, KeyedEvents]) -> Share:
        """Pack grouped events. O(events)."""
        found = list(keys.values())
        heavy = any(one.weights is not None for one in found)
        weights = [np.ones(len(one)) if one.weights is None else one.weights for one in found]
        indexes = _joined([one.indexes for one in found], np.int64)
        return cls(
            list(keys),
            list(map(len, found)),
            _joined([one.scores for one in found], np.float64),
            _joined([one.labels for one in found], np.uint8),
            _joined([one.times for one in found], np.int64),
            _joined(weights, np.float64) if heavy else None,
            _joined([one.offsets for one in found], np.int64),
            indexes if indexes.any() else None,
        )

    def keys(self) -> dict[str, KeyedEvents]:
        """Return the events grouped again. O(keys)."""
        found: dict[str, KeyedEvents] = {}
        start = 0
        for name, size in zip(self.names, self.sizes, strict=True):
            part = slice(start, start + size)
            events = ListedEvents()
            events.scores = cast("list[float]", self.scores[part])
            events.labels = cast("list[int]", self.labels[part])
            events.times = cast("list[int]", self.times[part])
            events.offsets = cast("list[int]", self.offsets[part])
            events.indexes = [0] * size if self.indexes is None else self.indexes[part].tolist()
            if self.weights is not None and not bool((self.weights[part] == 1.0).all()):
                events.weights = cast("list[float]", self.weights[part])
            found[name] = events
            start += size
        return found


def _joined(columns: Sequence[Any], kind: Any) -> NDArray[Any]:
    if not columns:
        return np.zeros(0, kind)
    return np.concatenate([np.asarray(column, kind) for column in columns])
