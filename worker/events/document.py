"""From the bytes of a value to a JSON object, or to the reason why not.

orjson reads; it refuses some JSON that says something all the same. NaN and Infinity (which
Python and others write), numbers beyond a double and escapes of half a surrogate pair get a
second reading, so that the refusal names the field, a columnar record loses only the elements
in question, and a field nobody asked for does no harm.
"""

from __future__ import annotations

import json
from json import JSONDecodeError
from typing import Any

import orjson

from worker.events.reasons import RefusedError, excerpt

VALUE_LIMIT = 1_000_000
"""Largest value in bytes."""

MISSING: Any = object()
"""What `find` gives where a path leads nowhere; JSON null is None."""

CONSTANTS = "NaN or Infinity stands in it"
"""What `not_json` says of them outside the fields."""

_BOM = b"\xef\xbb\xbf"
_FRAME = 5
_SECOND_READING_BRACKETS = 256
_LARGEST_INTEGER_DIGITS = 20


class Constant(float):
    """A NaN or Infinity that stood in the text where JSON knows none."""

    __slots__ = ()


def read(value: bytes) -> tuple[dict[str, Any], int]:
    """Read a value as a JSON object.

    Returns
    -------
    document
        The object; of one name given twice the last counts.
    constants
        How many NaN and Infinity the text has, or -1 where orjson read it: then every number
        is finite. The caller refuses constants outside the fields that it uses.

    Raises
    ------
    RefusedError
        With the code of what is wrong.
    """
    if len(value) > VALUE_LIMIT:
        raise RefusedError("value_too_large", size=len(value), limit=VALUE_LIMIT)
    text = value.removeprefix(_BOM)
    constants = -1
    try:
        document = orjson.loads(text)
    except JSONDecodeError as error:
        document, constants = _second_reading(text, error)
    if type(document) is not dict:
        if constants > 0:
            raise not_json(CONSTANTS)
        raise RefusedError("not_object", value=excerpt(document))
    return document, constants


def find(document: Any, path: tuple[str, ...]) -> Any:
    """Follow a path into nested objects."""
    for name in path:
        if type(document) is not dict:
            return MISSING
        document = document.get(name, MISSING)
    return document


def not_json(detail: str) -> RefusedError:
    """Build the refusal of a text that is no JSON."""
    return RefusedError("not_json", detail=detail)


def _second_reading(value: bytes, error: JSONDecodeError) -> tuple[Any, int]:
    if not value.strip():
        raise not_json("it is empty") from error
    if value[0] == 0 and len(value) >= _FRAME:
        raise RefusedError("schema_registry", id=int.from_bytes(value[1:_FRAME])) from error
    try:
        text = value.decode()
    except UnicodeDecodeError as wrong:
        raise RefusedError("not_utf8", position=wrong.start) from error
    if "depth" in error.msg or "ecursion" in error.msg:
        raise RefusedError("nested_too_deep") from error
    # The second reader recurses on the interpreter's stack: the same records must be refused
    # however deep the caller stands.
    if text.count("[") + text.count("{") > _SECOND_READING_BRACKETS:
        raise not_json(str(error)) from error
    constants = 0

    def constant(name: str) -> Constant:
        nonlocal constants
        constants += 1
        return Constant(name)

    try:
        document = json.loads(text, parse_constant=constant, parse_int=_integer)
    except JSONDecodeError as wrong:
        raise not_json(str(wrong)) from error
    return document, constants


def _integer(digits: str) -> int | float:
    """Read an integer as orjson does: a float beyond 64 bits."""
    if len(digits) <= _LARGEST_INTEGER_DIGITS:
        number = int(digits)
        if -(1 << 63) <= number < 1 << 64:
            return number
    return float(digits)
