"""Taking any record apart, whatever the settings: the general way beside the fast loop."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from worker.events import columns, document
from worker.events.document import MISSING, find
from worker.events.filling import NOWHERE
from worker.events.reasons import RefusedError, Rejection, bounded, ranges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.events.fields import Fields
    from worker.events.filling import Filling
    from worker.events.record import Record

_LEAD_BYTES = 500
HEARTBEAT = "heartbeat"
TIME = "time"
"""Where a heartbeat has its time when the configured path leads nowhere in it."""


@dataclass(slots=True)
class Reading:
    """All that one record says.

    Attributes
    ----------
    scores, labels, times, weights
        The columns of the events that count; `weights` None stands for ones.
    indexes
        Their element numbers, ascending.
    notes
        (element, counter) of the other elements, ascending.
    heartbeat
        The time in ms that a heartbeat tells, else -1.
    rejection
        The refusal of the record, whole or in part.
    """

    key: str = ""
    scores: Sequence[float] = ()
    labels: Sequence[int] = ()
    times: Sequence[int] = ()
    weights: Sequence[float] | None = None
    indexes: Sequence[int] = ()
    notes: list[tuple[int, str]] = field(default_factory=list)
    heartbeat: int = -1
    rejection: Rejection | None = None

    def pour(self, filling: Filling, offset: int, start: int) -> int:
        """Add what there is room for to a batch, from element `start` on.

        Returns
        -------
        index
            The element to go on at, or -1 when nothing of the record is left.
        """
        batch, stop = filling.batch, filling.stop
        first = bisect_left(self.indexes, start)
        last = min(first + filling.room, len(self.indexes))
        if stop is not NOWHERE:
            ends = (at + 1 for at in range(first, last) if stop.at(self.times[at]))
            end = next(ends, None)
            if end is not None:
                last, filling.stopped = end, True
        done = last == len(self.indexes)
        if last > first:
            part = slice(first, last)
            times = self.times[part]
            weights = None if self.weights is None else self.weights[part]
            scores, labels, indexes = self.scores[part], self.labels[part], self.indexes[part]
            filling.events.add(self.key, scores, labels, times, weights, offset, indexes)
            filling.room -= last - first
            newest = max(times)
            batch.watermark = max(batch.watermark, newest)
        low = bisect_left(self.notes, (start, ""))
        high = len(self.notes) if done else bisect_left(self.notes, (self.indexes[last], ""))
        for _, name in self.notes[low:high]:
            batch.counts[name] += 1
            if name.startswith("rejected."):
                batch.counts["rejected"] += 1
        if not done:
            return self.indexes[last]
        batch.watermark = max(batch.watermark, self.heartbeat)
        if self.rejection is not None:
            batch.rejections.append(self.rejection)
        return -1


def read(record: Record, fields: Fields) -> Reading:
    """Take a record apart: every element is an event, noted, or both noted and refused."""
    if record.value is None:
        return Reading(notes=[(0, "tombstones")])
    try:
        return _read(record, record.value, fields)
    except RefusedError as refused:
        rejection = Rejection(
            record.key, record.value, record.offset, refused.code, refused.sentence()
        )
        return Reading(notes=[(0, f"rejected.{refused.code}")], rejection=rejection)


def _read(record: Record, value: bytes, fields: Fields) -> Reading:
    found, constants = document.read(value)
    if constants > 0 and constants != _constants(found, fields):
        raise document.not_json(document.CONSTANTS)
    if found.get(HEARTBEAT) is True:
        return Reading(
            notes=[(0, "heartbeats")], heartbeat=_heartbeat(found, _stamp(record), fields)
        )
    score = find(found, fields.score_path)
    label = find(found, fields.label_path)
    if type(score) is list or type(label) is list:
        return _columnar(record, found, fields, finite=constants < 0)
    if label is None or label is MISSING:
        return Reading(notes=[(0, "unlabelled")])
    key = _key(record, found, fields)
    number = fields.score(score)
    known = fields.label(label)
    weight = MISSING if fields.weight_path is None else find(found, fields.weight_path)
    heaviness = fields.weight(weight)
    time = _time(record, found, fields)
    if not heaviness:
        return Reading(notes=[(0, "zero_weight")])
    weights = None if heaviness == 1.0 else (heaviness,)
    return Reading(key, (number,), (known,), (time,), weights, (0,))


def _columnar(record: Record, found: Any, fields: Fields, *, finite: bool) -> Reading:
    score, label = find(found, fields.score_path), find(found, fields.label_path)
    known = columns.labels(score, label, fields)
    size = len(score)
    if all(one is None for one in known):
        return Reading(notes=[(at, "unlabelled") for at in range(size)])
    key = _key(record, found, fields)
    weight: Any = 1.0
    if fields.weight_path is not None:
        weight = find(found, fields.weight_path)
        if type(weight) is list:
            columns.same_size(fields.weight_name, weight, size, fields)
        else:
            weight = fields.weight(weight)
    time = MISSING if fields.time_path is None else find(found, fields.time_path)
    if type(time) is list:
        columns.same_size(fields.time_name, time, size, fields)
    else:
        time = _time(record, found, fields)
    arrays = columns.Columns(score, known, weight, time)
    result = columns.read(arrays, _stamp(record), fields, finite=finite)
    rejection = _partial(record, result, size) if result.bad else None
    return Reading(
        key,
        result.scores,
        result.labels,
        result.times,
        result.weights,
        result.indexes,
        result.notes,
        rejection=rejection,
    )


def _partial(record: Record, result: columns.Result, size: int) -> Rejection:
    """Reject elements of a columnar record: the first reason, how many of each, where."""
    first, code = result.bad[0]
    counts = Counter(code for _, code in result.bad)
    many = ", ".join(f"{count} {name}" for name, count in counts.items())
    lead = bounded(result.sentence, _LEAD_BYTES)
    sentence = bounded(f"element {first}: {lead}; refused of {size} elements: {many}")
    indexes = ranges(index for index, _ in result.bad)
    return Rejection(record.key, record.value, record.offset, code, sentence, indexes)


def _key(record: Record, found: Any, fields: Fields) -> str:
    if fields.key_path is not None:
        return fields.key(find(found, fields.key_path))
    return fields.key(MISSING if record.key is None else bytes(record.key))


def _time(record: Record, found: Any, fields: Fields) -> int:
    if fields.time_path is None:
        return fields.own_time(_stamp(record))
    return fields.time(find(found, fields.time_path), _stamp(record))


def _stamp(record: Record) -> int:
    return -1 if record.timestamp is None else record.timestamp


def _heartbeat(found: Any, timestamp: int, fields: Fields) -> int:
    time = MISSING if fields.time_path is None else find(found, fields.time_path)
    if time is MISSING:
        time = found.get(TIME, MISSING)
    if time is MISSING and fields.time_path is None:
        return fields.own_time(timestamp)
    return fields.time(time, timestamp)


def _constants(found: Any, fields: Fields) -> int:
    """Count the NaN and Infinity that stand where a field or an element of one is read."""
    paths = (
        fields.key_path,
        fields.score_path,
        fields.label_path,
        fields.weight_path,
        fields.time_path,
    )
    count = 0
    for path in {path for path in paths if path is not None}:
        value = find(found, path)
        elements = value if type(value) is list else (value,)
        count += sum(type(element) is document.Constant for element in elements)
    return count
