"""The rules of a single value: key, score, label, weight and time, as the settings have them."""

from __future__ import annotations

import re
from math import isfinite
from typing import TYPE_CHECKING, Any

from config.event import KEY_BYTES
from config.paths import Own, render
from engine.events import HEAVIEST, LIGHTEST
from worker.events.document import MISSING
from worker.events.reasons import RefusedError, bounded, excerpt

if TYPE_CHECKING:
    from config import EventSettings

INTEGER_MIN, INTEGER_MAX = -(1 << 63), (1 << 64) - 1
TIME_MAX = 253_402_300_799_999
"""The last millisecond of the year 9999: no `max_ahead` reaches beyond."""

TIME_UNITS: dict[str, tuple[int, int, str]] = {
    "ms": (1, 1, "milliseconds"),
    "s": (1000, 1, "seconds"),
    "us": (1, 1000, "microseconds"),
}
"""Unit: factor and divisor to ms, and its name."""

NUMBER_TEXT = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
"""Texts that `numbers_as_text` takes for numbers."""
INTEGER_TEXT = r"[+-]?[0-9]{1,19}"
"""Texts that `numbers_as_text` takes for times."""

_CLASSES_BYTES = 300
_NUMBER = re.compile(NUMBER_TEXT)
_INTEGER = re.compile(INTEGER_TEXT)


class Fields:
    """Reads one value each; every method raises `RefusedError` for what cannot be used.

    Parameters
    ----------
    event
        The [event] section.
    """

    def __init__(self, event: EventSettings) -> None:
        self.key_name, self.time_name = render(event.key), render(event.time)
        self.score_name, self.label_name = render(event.score), render(event.label)
        self.weight_name = "" if event.weight is None else render(event.weight)
        self.key_path = None if isinstance(event.key, Own) else event.key
        self.time_path = None if isinstance(event.time, Own) else event.time
        self.score_path, self.label_path = event.score, event.label
        self.weight_path = event.weight
        self.texts: dict[str, int] = dict(event.labels)
        self.numbers = label_numbers(self.texts)
        self.plain_numbers = self.numbers is _PLAIN
        self.booleans = {False: 0, True: 1} if self.plain_numbers else {}
        self.classes = bounded(
            ", ".join([*map(_short, self.numbers), *map(excerpt, self.texts)]), _CLASSES_BYTES
        )
        self.numbers_as_text = event.numbers_as_text
        self.factor, self.divisor, self.unit = TIME_UNITS[event.time_unit]
        self.max_ahead = int(event.max_ahead.total_seconds() * 1000)

    def key(self, value: Any) -> str:
        """Check a key, from the record (bytes) or from its value (JSON)."""
        if isinstance(value, bytes):
            size = len(value)
            try:
                key = value.decode() if size <= KEY_BYTES else ""
            except UnicodeDecodeError as error:
                raise RefusedError("key_not_utf8", field=self.key_name) from error
        elif type(value) is str:
            key = value
            try:
                size = len(value.encode())
            except UnicodeEncodeError as error:
                raise RefusedError("key_not_utf8", field=self.key_name) from error
        elif type(value) is int and INTEGER_MIN <= value <= INTEGER_MAX:
            return str(value)
        elif value is None or value is MISSING:
            shown = "not there" if value is MISSING else "null"
            raise RefusedError("key_missing", field=self.key_name, value=shown)
        else:
            raise RefusedError("key_type", field=self.key_name, value=excerpt(value))
        if size > KEY_BYTES:
            raise RefusedError("key_too_long", field=self.key_name, size=size, limit=KEY_BYTES)
        if not size:
            raise RefusedError("key_empty", field=self.key_name, limit=KEY_BYTES)
        return key

    def score(self, value: Any) -> float:
        """Check a score; integers are widened to doubles."""
        if value is MISSING:
            raise RefusedError("score_missing", field=self.score_name)
        return self._number("score", self.score_name, value)

    def label(self, value: Any) -> int:
        """Find the class of a label that is neither null nor absent."""
        kind = type(value)
        known: int | None = None
        if kind is str:
            known = self.texts.get(value)
            if known is None and self._is_text(value, _NUMBER):
                known = self.numbers.get(float(value))
        elif kind is int or kind is float:
            known = self.numbers.get(value)
        elif kind is bool:
            known = self.texts.get("true" if value else "false", self.booleans.get(value))
        if known is None:
            raise RefusedError(
                "label_unknown",
                field=self.label_name,
                value=excerpt(value),
                classes=self.classes,
            )
        return known

    def weight(self, value: Any) -> float:
        """Check a weight, 0 included; absent means 1."""
        if value is MISSING:
            return 1.0
        weight = self._number("weight", self.weight_name, value)
        if weight < 0.0:
            raise RefusedError("weight_negative", field=self.weight_name, value=excerpt(value))
        if weight and not LIGHTEST <= weight <= HEAVIEST:
            raise RefusedError("weight_out_of_range", field=self.weight_name, value=excerpt(value))
        return weight

    def time(self, value: Any, timestamp: int) -> int:
        """Convert a time to ms since 1970 and hold it against the record's `timestamp` (ms).

        A record without a timestamp (negative) bounds nothing but by the year 9999.
        """
        if value is MISSING:
            raise RefusedError("time_missing", field=self.time_name)
        number = value
        if self._is_text(value, _INTEGER) or (type(value) is float and value.is_integer()):
            number = int(value)
        if type(number) is not int:
            raise RefusedError(
                "time_not_integer", field=self.time_name, value=excerpt(value), unit=self.unit
            )
        if number < 0:
            raise RefusedError("time_before_1970", field=self.time_name, value=excerpt(value))
        time = number * self.factor // self.divisor
        if time > self.latest(timestamp):
            raise RefusedError(
                "time_ahead",
                field=self.time_name,
                value=excerpt(value),
                unit=self.unit,
                timestamp=timestamp,
            )
        return time

    def latest(self, timestamp: int) -> int:
        """Tell the latest time in ms that an event of a record may have."""
        return min(timestamp + self.max_ahead, TIME_MAX) if timestamp >= 0 else TIME_MAX

    def own_time(self, timestamp: int) -> int:
        """Check the record's own timestamp (ms) as an event time."""
        if timestamp < 0:
            raise RefusedError("time_before_1970", field=self.time_name, value=timestamp)
        return timestamp

    def _number(self, what: str, name: str, value: Any) -> float:
        numeric = type(value) is int or isinstance(value, float)
        if not numeric and not self._is_text(value, _NUMBER):
            raise RefusedError(f"{what}_not_number", field=name, value=excerpt(value))
        number = float(value)
        if not isfinite(number):
            raise RefusedError(f"{what}_not_finite", field=name, value=excerpt(value))
        return number

    def _is_text(self, value: Any, form: re.Pattern[str]) -> bool:
        return self.numbers_as_text and type(value) is str and form.fullmatch(value) is not None


_PLAIN: dict[float, int] = {0.0: 0, 1.0: 1}


def label_numbers(texts: dict[str, int]) -> dict[float, int]:
    """Tell which numbers are labels, and their classes.

    0 and 1 mean themselves until the map names a number ("2" = 1): from then on only what it
    names, so that with classes 1 and 2 a stray 0 is not taken for a class. (true and false go
    with 0 and 1, unless the map names them.)
    """
    named = {float(text): known for text, known in texts.items() if _NUMBER.fullmatch(text)}
    return named or _PLAIN


def _short(number: float) -> str:
    return str(int(number)) if number.is_integer() else str(number)
