"""Columns of events grouped by key: one batch of a whole stretch, without a step per event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from worker.events import Batch
from worker.events.batch import KeyedEvents

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class Columns(NamedTuple):
    """Events as columns of one length, in the order of the log.

    Attributes
    ----------
    keys
        The number of each event's key among `names`.
    names
        The keys.
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


class _Whole(np.ndarray[Any, Any]):
    """Integers that come out singly as Python's own, so that they can be written as JSON."""

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        return found.item() if isinstance(found, np.generic) else found


def batch_of(columns: Columns, records: int, last: int) -> Batch:
    """Group events by key: each key's in order, keys in the order of their first event.

    Parameters
    ----------
    columns
        The events that count.
    records
        How many records they are of; the others have no label.
    last
        Offset to go on at.

    Notes
    -----
    O(n); numbers of keys are sorted by radix while there are few enough of them.
    """
    events = len(columns.scores)
    batch = Batch(offset=last)
    batch.counts["records"] = records
    if records > events:
        batch.counts["unlabelled"] = records - events
    if not events:
        return batch
    batch.counts["events"] = events
    batch.watermark = int(columns.times.max())
    few = len(columns.names) <= np.iinfo(np.int16).max
    order = np.argsort(columns.keys.astype(np.int16 if few else np.int64), kind="stable")
    keys, scores, labels = columns.keys[order], columns.scores[order], columns.labels[order]
    times = columns.times[order].view(_Whole)
    offsets = columns.offsets[order].view(_Whole)
    heavy = columns.weights
    weights = None if heavy is None or bool((heavy == 1.0).all()) else heavy[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    ends = np.append(starts[1:], events)
    first = np.argsort(order[starts], kind="stable")
    longest = int((ends - starts).max())
    elements = [0] * longest
    for start, end in zip(starts[first].tolist(), ends[first].tolist(), strict=True):
        part = slice(start, end)
        keyed = KeyedEvents()
        keyed.scores = cast("list[float]", scores[part])
        keyed.labels = cast("list[int]", labels[part])
        keyed.times = cast("list[int]", times[part])
        keyed.offsets = cast("list[int]", offsets[part])
        keyed.indexes = elements
        if weights is not None:
            keyed.weights = cast("list[float]", weights[part])
        batch.keys[columns.names[int(keys[start])]] = keyed
    return batch
