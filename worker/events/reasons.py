"""Why a record or an element of it is refused: the one table of codes, and the rejection."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

REASONS: dict[str, str] = {
    "value_too_large": "the value has {size} bytes, more than the {limit} an event may have",
    "schema_registry": (
        "the value is a Schema Registry frame (magic byte 0, schema id {id}), not plain JSON; "
        "produce the events with a JSON or string serializer"
    ),
    "not_utf8": "the value is not UTF-8: byte {position} does not fit",
    "nested_too_deep": "the value is nested deeper than JSON is read here",
    "not_json": "the value is not JSON: {detail}",
    "not_object": "the value is {value}, where a JSON object must stand",
    "unequal_arrays": "{field} is {value}, which does not go with {other} of {size} elements",
    "key_missing": "{field} is {value}, where a key of text must stand",
    "key_empty": "{field} is an empty text; a key has 1 to {limit} bytes",
    "key_too_long": "{field} has {size} bytes; a key has 1 to {limit} bytes",
    "key_type": (
        "{field} is {value}; a key is text or an integer from -2^63 to 2^64 - 1, "
        "never a boolean, a fraction or anything larger"
    ),
    "key_not_utf8": "{field} cannot be written as UTF-8 text",
    "score_missing": "{field} is not there",
    "score_not_number": "{field} is {value}, where a number must stand",
    "score_not_finite": "{field} is {value}; a score is finite, within the range of a double",
    "label_unknown": "{field} is {value}, which is none of its classes ({classes})",
    "weight_not_number": "{field} is {value}, where a number must stand",
    "weight_not_finite": "{field} is {value}; a weight is finite, within the range of a double",
    "weight_negative": "{field} is {value}; a weight is 0 or more",
    "weight_out_of_range": (
        "{field} is {value}; a weight is 0 or from 2^-400 (about 4e-121) to 2^400 (about 2.5e120)"
    ),
    "time_missing": "{field} is not there, and the settings say that the event time stands in it",
    "time_not_integer": "{field} is {value}, where whole {unit} since 1970 must stand",
    "time_before_1970": "{field} is {value}, before 1970",
    "time_ahead": (
        "{field} is {value} in {unit}, more than max_ahead past the timestamp "
        "of its record ({timestamp} ms)"
    ),
}

SENTENCE_BYTES = 900
RANGES_BYTES = 4096
_EXCERPT = 60


class Rejection(NamedTuple):
    """A record that is refused whole or in part.

    Attributes
    ----------
    key, value
        The record's own bytes.
    offset
        The record's offset.
    code
        A name of `REASONS`: why the first bad element (or the record) was refused.
    sentence
        The same for a person, at most `SENTENCE_BYTES` bytes of UTF-8.
    indexes
        The refused elements of a columnar record as ranges ("3-5,9"), at most
        `RANGES_BYTES` bytes (then ending in "..."); empty where the whole record is refused.
    """

    key: bytes | None
    value: bytes | None
    offset: int
    code: str
    sentence: str
    indexes: str = ""


class RefusedError(Exception):
    """One value cannot be used; carries what its sentence needs and never leaves this package."""

    def __init__(self, code: str, **details: Any) -> None:
        super().__init__(code)
        self.code = code
        self.details = details

    def sentence(self) -> str:
        """Write the sentence: bounded, and encodable whatever the record held."""
        return bounded(REASONS[self.code].format_map(self.details))


def bounded(text: str, limit: int = SENTENCE_BYTES) -> str:
    """Cut to `limit` bytes of UTF-8; lone surrogates become question marks."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit:
        return raw.decode()
    return raw[: limit - 3].decode("utf-8", "ignore") + "..."


def excerpt(value: object) -> str:
    """Show a JSON value in a sentence: short, in ASCII, never recursing into it."""
    if isinstance(value, str):
        cut = value if len(value) <= _EXCERPT else value[:_EXCERPT] + "..."
        return f"the text {json.dumps(cut)}"
    if isinstance(value, list):
        return f"an array of {len(value)} elements"
    if isinstance(value, dict):
        return "an object"
    if value is None or isinstance(value, bool | float):
        return json.dumps(value)
    return str(value)


def ranges(indexes: Iterable[int], limit: int = RANGES_BYTES) -> str:
    """Write ascending indexes as ranges, "0,3-5,9", cut to whole ranges within `limit` bytes."""
    spans: list[list[int]] = []
    for index in indexes:
        if spans and spans[-1][1] == index - 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    text = ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)
    if len(text) <= limit:
        return text
    return cut_ranges(text, limit)


def cut_ranges(text: str, limit: int) -> str:
    """Cut what `ranges` wrote to whole ranges and "..." within `limit` bytes."""
    return text[: text.rfind(",", 0, limit - 3) + 1] + "..."
