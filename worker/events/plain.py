"""The fast loop for the records that nearly all records look like.

A flat JSON object with a number for a score, 0 or 1 for a label, and a key and a time where the
settings say: those are taken in one loop without a call per field. Anything odd in the least, bad
or merely rare, is handed back for ``reading``, which has the rules; what the loop takes, the rules
take with the same outcome.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from worker.events.batch import KeyedEvents
from worker.events.document import VALUE_LIMIT
from worker.events.reading import HEARTBEAT
from worker.events.reasons import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker.events.fields import Fields
    from worker.events.parser import Filling, Record


class Layout(NamedTuple):
    """Top-level names of the fields; None for key or time means the record's own."""

    score: str
    label: str
    key: str | None
    time: str | None


def layout(fields: Fields) -> Layout | None:
    """Tell where the loop finds the fields; None when the settings are not for it."""
    paths = [fields.score_path, fields.label_path]
    paths += [path for path in (fields.key_path, fields.time_path) if path is not None]
    if fields.weight_path is not None or not fields.plain_numbers:
        return None
    if any(len(path) > 1 for path in paths):
        return None
    return Layout(
        fields.score_path[0],
        fields.label_path[0],
        None if fields.key_path is None else fields.key_path[0],
        None if fields.time_path is None else fields.time_path[0],
    )


def take(  # noqa: C901, PLR0915 - one loop: a call per field would double its time
    stream: Iterator[Record], filling: Filling, layout: Layout, fields: Fields
) -> Record | None:
    """Take records into a batch until one is odd, the batch is full, or there are no more.

    Returns
    -------
    record
        The odd one, of which nothing was taken; None in the other cases.
    """
    score_name, label_name, key_name, time_name = layout
    key_type = bytes if key_name is None else str
    latest, factor, divisor = fields.latest, fields.factor, fields.divisor
    loads, heartbeat, limit = orjson.loads, HEARTBEAT, VALUE_LIMIT
    open_keys = filling.open_keys
    room, watermark = filling.room, filling.batch.watermark
    record, odd = None, None
    for record in stream:
        try:
            value: Any = record.value
            document = loads(value)
            score = document[score_name]
            label = document[label_name]
            key: Any = record.key if key_name is None else document[key_name]
            time = record.timestamp if time_name is None else document[time_name]
        except (ValueError, KeyError, TypeError):
            odd = record
            break
        kind = type(score)
        if kind is int:
            score = float(score)
        elif kind is not float:
            odd = record
            break
        if (
            type(label) is not int
            or not 0 <= label <= 1
            or type(key) is not key_type
            or type(time) is not int
            or time < 0
            or heartbeat in document
            or len(value) > limit
        ):
            odd = record
            break
        if time_name is not None:
            time = time * factor // divisor
            if time > latest(record.timestamp):
                odd = record
                break
        events = open_keys.get(key)
        if events is None:
            events = _open(key, filling, fields)
            if events is None:
                odd = record
                break
        offset = record.offset
        events.scores.append(score)
        events.labels.append(label)
        events.times.append(time)
        events.offsets.append(offset)
        events.indexes.append(0)
        if time > watermark:  # noqa: PLR1730 - max() takes three times as long
            watermark = time
        room -= 1
        if not room:
            break
    if room != filling.room:
        filling.records += filling.room - room
        filling.next_offset = offset + 1
        filling.room, filling.batch.watermark = room, watermark
    return odd


def _open(key: bytes | str, filling: Filling, fields: Fields) -> KeyedEvents | None:
    """Give the columns of a key that the loop has not met; None when the key is refused."""
    try:
        name = fields.key(key)
    except RefusedError:
        return None
    events = filling.batch.keys.get(name)
    if events is None:
        events = filling.batch.keys[name] = KeyedEvents()
    # A batch whose weights are all 1 needs no column of them; one that has it cannot come here,
    # for settings with a weight have no fast loop.
    filling.open_keys[key] = events
    return events
