"""The kinds of value that settings are made of; each refuses with the cure in its sentence."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Generic, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer
from pydantic_core import PydanticCustomError

if TYPE_CHECKING:
    from collections.abc import Iterable

UNITS: Final = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}
_DURATION: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*(ms|s|m|h|d)")
_KAFKA_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")


class Section(BaseModel):
    """A table of the settings: closed, frozen, and silent about what it was given."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class FromVariable(str):
    """Text that an environment variable gave: it may stand for a number or a flag.

    In the file such text is a mistake, for TOML has numbers and flags of its own.
    """

    __slots__ = ()


V = TypeVar("V")


class Table(Mapping[str, V], Generic[V]):
    """A dict that stays as it is; unlike a mapping proxy it can be copied and pickled."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, V] | None = None) -> None:
        self._items = dict(items or {})

    def __getitem__(self, name: str) -> V:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return repr(self._items)


def refuse(why: str, *at: str | int) -> PydanticCustomError:
    """Return the error to raise for a value.

    Parameters
    ----------
    why
        What is wrong and the cure, to stand behind ``setting = value:``.
    at
        The setting below the validated one that is to blame, part by part.
    """
    return PydanticCustomError("refused", "{why}", {"why": why, "at": at})


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most like `name`, or None when none is alike.

    One or two letters are like too many names to guess.
    """
    if len(name) <= 2:  # noqa: PLR2004 -- as said
        return None
    by_case = {other.lower(): other for other in known}
    found = difflib.get_close_matches(name.lower(), by_case, n=1, cutoff=0.6)
    return by_case[found[0]] if found else None


def listed(names: Iterable[str]) -> str:
    """Return ``"a", "b" and "c"``."""
    *first, last = (f'"{name}"' for name in names)
    return f"{', '.join(first)} and {last}" if first else last


def plural(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 key``, ``1,000 keys``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def choice(*choices: str) -> Any:
    """Return the annotation of text that is one of `choices`, written in any case."""
    by_case = {one.lower(): one for one in choices}

    def choose(value: object) -> str:
        if isinstance(value, str) and value.lower() in by_case:
            return by_case[value.lower()]
        near = nearest(value, choices) if isinstance(value, str) else None
        guess = f'; did you mean "{near}"?' if near else ""
        if len(choices) == 1:
            raise refuse(f'the only choice is "{choices[0]}"{guess}')
        raise refuse(f"the choices are {listed(choices)}{guess}")

    return BeforeValidator(choose, json_schema_input_type=Literal[choices])


def whole(low: int, high: int, *, also: int | None = None) -> Any:
    """Return the annotation of an integer from `low` to `high`, or exactly `also`."""
    wanted = f"it must be a whole number from {low:,} to {high:,}"
    if also is not None:
        wanted += f", or {also}"

    def check(value: object) -> int:
        if isinstance(value, FromVariable) and re.fullmatch(r"[+-]?[0-9]{1,30}", value.strip()):
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise refuse(wanted)
        if not low <= value <= high and value != also:
            raise refuse(wanted)
        return value

    bounds: Any = Annotated[int, Field(ge=low, le=high)]
    return BeforeValidator(
        check,
        json_schema_input_type=bounds
        if also is None
        else bounds | Annotated[int, Field(ge=also, le=also)],
    )


def number(low: float, high: float) -> Any:
    """Return the annotation of a number from `low` to `high`; integers stay integers."""
    wanted = f"it must be a number from {low:g} to {high:g}"

    def check(value: object) -> int | float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise refuse(wanted)
        if not math.isfinite(value) or not low <= value <= high:
            raise refuse(wanted)
        return value

    return BeforeValidator(check, json_schema_input_type=Annotated[float, Field(ge=low, le=high)])


def duration(low: str, high: str) -> Any:
    """Return the annotation of a time span, as text with a unit, from `low` to `high`."""
    least, most = parse_duration(low), parse_duration(high)

    def check(value: object) -> timedelta:
        if isinstance(value, timedelta):
            found = value
        elif not isinstance(value, str):
            example = low
            if isinstance(value, int) and least <= value * UNITS["ms"] <= most:
                example = f"{int(value)}ms"
            raise refuse(f'a duration is text with a unit: write "{example}", or with s, m, h, d')
        else:
            try:
                found = parse_duration(value)
            except ValueError as error:
                raise refuse(str(error)) from error
        if not least <= found <= most:
            raise refuse(f"it must be from {low} to {high}")
        return found

    pattern = rf"^\s*{_DURATION.pattern}\s*$"
    return BeforeValidator(check, json_schema_input_type=Annotated[str, Field(pattern=pattern)])


def parse_duration(text: str) -> timedelta:
    """Return the time span that `text` means: a number and one of the units ms, s, m, h, d.

    Raises
    ------
    ValueError
        With what was expected, when `text` is no such thing.
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError(
            'a duration is a number with one of the units ms, s, m, h, d, such as "100ms" or "1h"'
        )
    amount, unit = match.groups()
    try:
        return float(amount) * UNITS[unit]
    except OverflowError as error:
        raise ValueError("the duration is too long") from error


def format_duration(span: timedelta) -> str:
    """Return `span` as text in the largest unit that leaves a whole number."""
    if not span:
        return "0s"
    for unit, length in reversed(UNITS.items()):
        if not span % length:
            return f"{span // length}{unit}"
    return f"{span / UNITS['ms']:g}ms"


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, FromVariable) and value.strip().lower() in {"true", "false"}:
        return value.strip().lower() == "true"
    raise refuse("it must be true or false")


def kafka_name(length: int) -> Any:
    """Return the annotation of a name that Kafka takes, of at most `length` characters."""

    def check(value: object) -> str:
        if not isinstance(value, str) or not value:
            raise refuse("it must be a name in quotes")
        if _KAFKA_NAME.fullmatch(value) is None:
            raise refuse('Kafka takes only letters, digits, ".", "_" and "-" in this name')
        if value in {".", ".."}:
            raise refuse('Kafka does not take "." and ".." as names')
        if len(value) > length:
            raise refuse(f"it has {len(value)} characters: at most {length} fit")
        return str(value)

    pattern = f"^{_KAFKA_NAME.pattern}$"
    return BeforeValidator(
        check,
        json_schema_input_type=Annotated[str, Field(pattern=pattern, max_length=length)],
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise refuse("it must be text in quotes")
    if not value or value.strip() != value or not value.isprintable():
        raise refuse("it must be text without control characters and without outer blanks")
    return str(value)


def _readable(value: object) -> Path:
    """Return the path of a file that can be opened: librdkafka's own message names no setting."""
    if not isinstance(value, str | Path) or not str(value):
        raise refuse("it must be the path of a file, in quotes")
    try:
        with Path(value).open("rb") as file:
            file.read(1)
    except (OSError, ValueError) as error:
        raise refuse(f"the file cannot be read: {reason(error)}") from error
    return Path(value)


def reason(error: OSError | ValueError) -> str:
    """Return why a file could not be read, without its name."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


Flag = Annotated[bool, BeforeValidator(_flag, json_schema_input_type=bool)]
Text = Annotated[str, BeforeValidator(_text, json_schema_input_type=str)]
ReadableFile = Annotated[Path, BeforeValidator(_readable, json_schema_input_type=str)]
DurationText: Final = PlainSerializer(format_duration, return_type=str)
GroupName = Annotated[str, kafka_name(200)]
TopicName = Annotated[str, kafka_name(249)]
