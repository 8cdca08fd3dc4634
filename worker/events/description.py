"""The JSON Schema of an event, made from the tables and limits that the parser itself uses."""

from __future__ import annotations

from typing import Any

from config import EventSettings
from config.event import KEY_BYTES
from worker.events.document import VALUE_LIMIT
from worker.events.fields import (
    INTEGER_MAX,
    INTEGER_MIN,
    INTEGER_TEXT,
    NUMBER_TEXT,
    TIME_MAX,
    Fields,
)
from worker.events.reading import HEARTBEAT, TIME

DIALECT = "https://json-schema.org/draft/2020-12/schema"

Schema = dict[str, Any]


def schema(event: EventSettings | None = None) -> Schema:
    """Describe the value of an event, with its fields where the settings have them.

    JSON Schema cannot say that arrays are of one length, that a time is not ahead of its record,
    or that a key is no float: the parser checks those besides. Elements of a columnar record are
    described as they should be; the parser refuses bad ones singly.

    Parameters
    ----------
    event
        The [event] section; its defaults when None.

    Returns
    -------
    dict
        A schema of draft 2020-12.
    """
    fields = Fields(EventSettings() if event is None else event)
    one = _described(fields, _score(fields), _label(fields), _weight(fields), _time(fields))
    many = _described(
        fields,
        _array(_score(fields)),
        _array(_label(fields)),
        _one_or_array(_weight(fields)),
        _one_or_array(_time(fields)),
    )
    return {
        "$schema": DIALECT,
        "title": "event",
        "description": (
            f"The value of a record, in UTF-8, at most {VALUE_LIMIT} bytes: one scored and "
            "labelled event, many in arrays of one length, or a heartbeat. A label that is null "
            "or absent is skipped. Other fields are allowed."
        ),
        "type": "object",
        "if": {"properties": {HEARTBEAT: {"const": True}}, "required": [HEARTBEAT]},
        "then": _heartbeat(fields),
        "else": {
            "anyOf": [{"title": "one event", **one}, {"title": "many events, in columns", **many}]
        },
    }


def _described(
    fields: Fields, score: Schema, label: Schema, weight: Schema, time: Schema
) -> Schema:
    described: Schema = {}
    _place(described, fields.score_path, score, required=True)
    _place(described, fields.label_path, label, required=False)
    if fields.weight_path is not None:
        _place(described, fields.weight_path, weight, required=False)
    if fields.time_path is not None:
        _place(described, fields.time_path, time, required=True)
    if fields.key_path is not None:
        _place(described, fields.key_path, _key(), required=True)
    return described


def _place(described: Schema, path: tuple[str, ...], what: Schema, *, required: bool) -> None:
    """Put a field's schema where its path leads, making the objects on the way."""
    for at, part in enumerate(path):
        last = at == len(path) - 1
        if required:
            names = described.setdefault("required", [])
            if part not in names:
                names.append(part)
        inner = described.setdefault("properties", {}).setdefault(part, {})
        if last:
            inner.update(what)
        elif required:
            inner["type"] = "object"
        described = inner


def _score(fields: Fields) -> Schema:
    return {"description": "the classifier's score, finite", **_number(fields)}


def _label(fields: Fields) -> Schema:
    numbers = [int(number) if number.is_integer() else number for number in fields.numbers]
    known: list[Any] = [*numbers, *fields.booleans, *fields.texts]
    if fields.numbers_as_text:
        known += [str(number) for number in numbers if str(number) not in fields.texts]
    return {"description": "the class; null is unlabelled", "enum": [*known, None]}


def _weight(fields: Fields) -> Schema:
    return {"description": "1 when absent; 0 is skipped", **_number(fields, minimum=0)}


def _time(fields: Fields) -> Schema:
    integer: Schema = {
        "type": "integer",
        "minimum": 0,
        "maximum": TIME_MAX * fields.divisor // fields.factor,
    }
    text = {"type": "string", "pattern": f"^{INTEGER_TEXT}$"}
    kinds: Schema = {"anyOf": [integer, text]} if fields.numbers_as_text else integer
    return {"description": f"event time in {fields.unit} since 1970", **kinds}


def _key() -> Schema:
    return {
        "description": f"1 to {KEY_BYTES} bytes of UTF-8, or an integer as its decimal text",
        "anyOf": [
            {"type": "string", "minLength": 1, "maxLength": KEY_BYTES},
            {"type": "integer", "minimum": INTEGER_MIN, "maximum": INTEGER_MAX},
        ],
    }


def _number(fields: Fields, **bounds: int) -> Schema:
    number: Schema = {"type": "number", **bounds}
    if not fields.numbers_as_text:
        return number
    return {"anyOf": [number, {"type": "string", "pattern": f"^{NUMBER_TEXT}$"}]}


def _array(element: Schema) -> Schema:
    return {"type": "array", "items": element}


def _one_or_array(element: Schema) -> Schema:
    return {"anyOf": [element, _array(element)]}


def _heartbeat(fields: Fields) -> Schema:
    time = _time(fields)
    title = "heartbeat: moves the watermark, nothing else"
    if fields.time_path is None:
        return {"title": title, "properties": {TIME: time}}
    configured: Schema = {}
    _place(configured, fields.time_path, time, required=True)
    if fields.time_path == (TIME,):
        return {"title": title, **configured}
    fallback: Schema = {}
    _place(fallback, (TIME,), time, required=True)
    return {"title": title, "anyOf": [configured, fallback]}
