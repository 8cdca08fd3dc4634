"""Columns of events, grouped by key: one batch of a whole stretch, without a step per event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np

from engine.events import HEAVIEST, LIGHTEST
from worker.events import Batch, native
from worker.events.batch import ListedEvents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from worker.events import KeyedEvents, Stop


FIRST_LOOK: Final = 256
"""Events looked at first where the next stop is searched for."""


class Columns(NamedTuple):
    """Events as columns of one length, in the order of the log.

    Attributes
    ----------
    keys
        The number of each event's key among `names`.
    names
        The keys, each once; there may be more than events have.
    scores, labels, times, weights
        Checked; weights None stands for ones.
    offsets
        The record of each.
    """

    keys: NDArray[Any]
    names: Sequence[str]
    scores: NDArray[np.float64]
    labels: NDArray[np.uint8]
    times: NDArray[np.int64]
    weights: NDArray[np.float64] | None
    offsets: NDArray[np.int64]

    def chosen(self, which: Any) -> Columns:
        """Return the events that a slice, a mask or numbers choose. O(events chosen)."""
        return Columns(
            self.keys[which],
            self.names,
            self.scores[which],
            self.labels[which],
            self.times[which],
            None if self.weights is None else self.weights[which],
            self.offsets[which],
        )


class Stretch(NamedTuple):
    """Records that were read without a rejection: their events, not grouped yet.

    Attributes
    ----------
    columns
        The events that count.
    first, last
        Offsets of their records: [first, last). The others have no label.
    """

    columns: Columns
    first: int
    last: int

    def head(self) -> Batch:
        """Return the batch without its events."""
        batch = Batch(offset=self.last)
        events, records = len(self.columns.scores), self.last - self.first
        batch.counts["records"] = records
        if records > events:
            batch.counts["unlabelled"] = records - events
        if events:
            batch.counts["events"] = events
            batch.watermark = int(self.columns.times.max())
        return batch

    def cut(self, start: int, stop: int) -> Stretch:
        """Return the records with offsets in [start, stop). O(log events)."""
        low, high = np.searchsorted(self.columns.offsets, (start, stop)).tolist()
        first = min(max(start, self.first), self.last)
        last = max(min(stop, self.last), first)
        return Stretch(self.columns.chosen(slice(low, high)), first, last)

    def batches(
        self, watermark: int = -1, stop: Callable[[], Stop | None] | None = None
    ) -> Iterator[Batch]:
        """Group the events by key; batches end at stops, as `Parser.batches` has it."""
        rest = self
        while stop is not None and (found := stop()) is not None and rest.first < rest.last:
            end = rest._end(found)
            if found.time <= watermark or not end:
                break
            last = int(rest.columns.offsets[end - 1]) + 1
            part = Stretch(rest.columns.chosen(slice(end)), rest.first, last)
            watermark = max(watermark, int(part.columns.times.max()))
            yield part._grouped()
            rest = Stretch(rest.columns.chosen(slice(end, None)), last, rest.last)
        if rest.first < rest.last:
            yield rest._grouped()

    def _end(self, stop: Stop) -> int:
        """Return how many events there are up to a stop, 0 where there is none; O(that many)."""
        first, many = 0, FIRST_LOOK
        while first < len(self.columns.times):
            times = self.columns.times[first : first + many]
            found = (times >= stop.time) | ((times > stop.low) & (times < stop.high))
            if found.any():
                return first + int(found.argmax()) + 1
            first, many = first + many, 2 * many
        return 0

    def _grouped(self) -> Batch:
        batch = self.head()
        batch.keys = grouped(self.columns)
        return batch


def batches(
    parts: Iterable[Stretch | Batch], watermark: int, stop: Callable[[], Stop | None] | None
) -> Iterator[Batch]:
    """Group by key what of a run's parts is not yet."""
    for part in parts:
        if isinstance(part, Stretch):
            yield from part.batches(watermark, stop)
        else:
            yield part


def grouped(columns: Columns) -> dict[str, KeyedEvents]:
    """Group events by key: each key's in order, keys in the order of their first event.

    Notes
    -----
    O(n); numbers of keys are sorted by radix while there are few enough of them.
    """
    if native.COMPILED:
        return native.grouped(
            list(columns.names),
            _plain(columns.keys, np.int32),
            _plain(columns.scores, np.float64),
            _plain(columns.labels, np.uint8),
            _plain(columns.times, np.int64),
            _heavy(columns.weights),
            _plain(columns.offsets, np.int64),
        )
    return _sorted(columns)


def heavy_enough(weights: NDArray[np.float64]) -> bool:
    """Tell whether the engine takes all of these weights."""
    return bool(((weights >= LIGHTEST) & (weights <= HEAVIEST)).all())


def _plain(column: Any, kind: Any) -> NDArray[Any]:
    """Return a column as memory without gaps; a copy only where it is none."""
    return np.ascontiguousarray(column, kind)


def _heavy(weights: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    """Return weights unless all of them are 1."""
    return None if weights is None or bool((weights == 1.0).all()) else _plain(weights, np.float64)


def _sorted(columns: Columns) -> dict[str, KeyedEvents]:
    """Group as `grouped` does, by sorting."""
    few = len(columns.names) <= np.iinfo(np.int16).max
    numbers = columns.keys.astype(np.int16 if few else np.int64, copy=False)
    order = np.argsort(numbers, kind="stable")
    events = len(order)
    if not events:
        return {}
    keys, _, scores, labels, times, weights, offsets = columns.chosen(order)
    if weights is not None and bool((weights == 1.0).all()):
        weights = None
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    ends = np.append(starts[1:], events)
    first = np.argsort(order[starts], kind="stable")
    elements = [0] * int((ends - starts).max())
    found: dict[str, KeyedEvents] = {}
    for start, end in zip(starts[first].tolist(), ends[first].tolist(), strict=True):
        part = slice(start, end)
        keyed = ListedEvents()
        keyed.scores = cast("list[float]", scores[part])
        keyed.labels = cast("list[int]", labels[part])
        keyed.times = cast("list[int]", times[part])
        keyed.offsets = cast("list[int]", offsets[part])
        keyed.indexes = elements
        if weights is not None:
            keyed.weights = cast("list[float]", weights[part])
        found[columns.names[int(keys[start])]] = keyed
    return found
