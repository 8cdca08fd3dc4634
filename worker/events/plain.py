"""The fast loop for the records that nearly all records look like.

A flat JSON object with a number for a score, 0 or 1 for a label, and a key and a time where the
settings say: those are taken in one loop without a call per field. Anything odd in the least, bad
or merely rare, is handed back for ``reading``, which has the rules; what the loop takes, the rules
take with the same outcome.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from engine.events import HEAVIEST, LIGHTEST
from worker.events.document import VALUE_LIMIT
from worker.events.fields import TIME_MAX
from worker.events.reading import HEARTBEAT
from worker.events.reasons import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker.events.batch import ListedEvents
    from worker.events.fields import Fields
    from worker.events.filling import Filling
    from worker.events.record import Record

NUMBERS = frozenset({int, float})


class Layout(NamedTuple):
    """Top-level names of the fields; None for key or time means the record's own."""

    score: str
    label: str
    key: str | None
    time: str | None
    weight: str | None


def layout(fields: Fields) -> Layout | None:
    """Tell where the loop finds the fields; None when the settings are not for it."""
    optional = (fields.key_path, fields.time_path, fields.weight_path)
    paths = (fields.score_path, fields.label_path, *optional)
    if not fields.plain_numbers or any(path and len(path) > 1 for path in paths):
        return None
    key, time, weight = (path[0] if path else None for path in optional)
    return Layout(fields.score_path[0], fields.label_path[0], key, time, weight)


def take(  # noqa: C901, PLR0912, PLR0915 - one loop: a call per field would double its time
    stream: Iterator[Record], filling: Filling, layout: Layout, fields: Fields
) -> Record | None:
    """Take records into a batch until one is odd, the batch is full, or there are no more.

    Returns
    -------
    record
        The odd one, of which nothing was taken; None in the other cases.
    """
    score_name, label_name, key_name, time_name, weight_name = layout
    key_type = bytes if key_name is None else str
    factor, divisor, scaled = fields.factor, fields.divisor, fields.factor != fields.divisor
    max_ahead, time_max = fields.max_ahead, TIME_MAX
    loads, heartbeat, limit = orjson.loads, HEARTBEAT, VALUE_LIMIT
    open_keys, (stop, low, high) = filling.open_keys, filling.stop
    room, watermark, unlabelled = filling.room, filling.batch.watermark, 0
    offset = filling.next_offset - 1
    odd = None
    for record in stream:
        odd = record
        try:
            value: Any = record.value
            document = loads(value)
            score = document[score_name]
            label = document[label_name]
            key: Any = record.key if key_name is None else document[key_name]
            time = record.timestamp if time_name is None else document[time_name]
        except (ValueError, KeyError, TypeError):
            break
        kind = type(score)
        if kind is int:
            score = float(score)
        elif kind is not float:
            break
        if heartbeat in document or len(value) > limit:
            break
        if label is None:
            unlabelled += 1
            offset = record.offset
            continue
        if (
            type(label) is not int
            or not 0 <= label <= 1
            or type(key) is not key_type
            or type(time) is not int
            or time < 0
        ):
            break
        if time_name is not None:
            if scaled:
                time = time * factor // divisor
            stamp = record.timestamp
            if type(stamp) is not int or time > stamp + max_ahead or time > time_max:
                break
        if weight_name is not None:
            weight = document.get(weight_name)
            if type(weight) not in NUMBERS or not LIGHTEST <= weight <= HEAVIEST:
                break
        events = open_keys.get(key)
        if events is None:
            events = _open(key, filling, fields)
            if events is None:
                break
        if weight_name is not None:
            events.weigh(float(weight))
        offset = record.offset
        events.scores.append(score)
        events.labels.append(label)
        events.times.append(time)
        events.offsets.append(offset)
        events.indexes.append(0)
        room -= 1
        watermark = max(watermark, time)
        if time >= stop or low < time < high:
            filling.stopped = True
            odd = None
            break
        if not room:
            odd = None
            break
    else:
        odd = None
    if unlabelled:
        filling.batch.counts["unlabelled"] += unlabelled
    filling.records += filling.room - room + unlabelled
    filling.next_offset = offset + 1
    filling.room, filling.batch.watermark = room, watermark
    return odd


def _open(key: bytes | str, filling: Filling, fields: Fields) -> ListedEvents | None:
    """Give the columns of a key that the loop has not met; None when the key is refused."""
    try:
        name = fields.key(key)
    except RefusedError:
        return None
    events = filling.events.of(name)
    filling.open_keys[key] = events
    return events
