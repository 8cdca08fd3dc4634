"""Where in a record a field stands: paths such as ``model.score``, written as TOML writes keys."""

from __future__ import annotations

import re
import tomllib
from enum import Enum
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, PlainSerializer

from config.errors import SettingsError
from config.values import refuse

_PART: Final = re.compile(r"""\s*(?:("(?:[^"\\]|\\.)*")|'([^']*)'|([^."']*?))\s*(?:(\.)|$)""")
_LENGTH: Final = 1_024


class Own(Enum):
    """What a record has outside its value."""

    KEY = "$key"
    TIMESTAMP = "$timestamp"


FieldPath = tuple[str, ...] | Own


def parse(text: str) -> FieldPath:
    """Return the names that lead to a field, outermost first, or what is the record's own.

    Parameters
    ----------
    text
        Names with dots between; a name with a dot, a quote or outer blanks is quoted as in TOML.
        ``$key`` and ``$timestamp`` are the record's own; quoted, they are names like any other.

    Raises
    ------
    ValueError
        With the cure, when `text` is no path.

    Examples
    --------
    >>> parse("model.score")
    ('model', 'score')
    >>> parse('a."b.c"')
    ('a', 'b.c')
    >>> parse("$key")
    <Own.KEY: '$key'>
    """
    if len(text) > _LENGTH:
        raise ValueError(f"a path has at most {_LENGTH:,} characters")
    if text.strip().startswith("$"):
        if text.strip() not in {own.value for own in Own}:
            raise ValueError(
                'only "$key" and "$timestamp" are the record\'s own; '
                "quote a field whose name begins with $: '\"$name\"'"
            )
        return Own(text.strip())
    parts: list[str] = []
    at = 0
    while True:
        match = _PART.match(text, at)
        if match is None:
            raise ValueError("a part with a dot or a quote must be quoted as in TOML: 'a.\"b.c\"'")
        basic, literal, bare, dot = match.groups()
        if bare == "":
            raise ValueError("a part of the path is empty: write names with single dots between")
        parts.append(_unescape(basic) if basic is not None else literal or bare or "")
        at = match.end()
        if dot is None:
            return tuple(parts)


def of_option(option: str, text: str) -> tuple[str, ...]:
    """Return the path that an option of a command gives: of a field, never the record's own.

    Raises
    ------
    SettingsError
        With the option, what it was given, and the cure.
    """
    try:
        path = parse(text)
    except ValueError as error:
        raise SettingsError(f'{option} "{text}": {error}') from error
    if isinstance(path, Own):
        raise SettingsError(f'{option} "{text}": name a field of the records')
    return path


def _unescape(quoted: str) -> str:
    try:
        return str(tomllib.loads(f"part = {quoted}")["part"])
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{quoted} is not quoted as in TOML") from error


def render(path: FieldPath) -> str:
    """Return the text that `parse` reads as `path`; each path has one such text."""
    if isinstance(path, Own):
        return path.value
    return ".".join(part if re.fullmatch(r"[\w-]+", part) else _quoted(part) for part in path)


def _quoted(part: str) -> str:
    escaped = part.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda char: f"\\u{ord(char[0]):04x}", escaped) + '"'


def _reader(own: Own | None, *, none: bool = False) -> Any:
    """Return the annotation of a path that may also be `own`, or "none"."""

    def check(value: object) -> FieldPath | None:
        if none and (value is None or value == "none"):
            return None
        if isinstance(value, Own | tuple):
            return value
        if not isinstance(value, str):
            raise refuse("a path is text in quotes, such as \"score\" or 'model.score'")
        try:
            path = parse(value)
        except ValueError as error:
            raise refuse(str(error)) from error
        if isinstance(path, Own) and path is not own:
            also = f' or "{own.value}"' if own else ""
            raise refuse(f"this field comes from the record's value: give a path{also}")
        return path

    return BeforeValidator(check, json_schema_input_type=str | None if none else str)


_AS_TEXT: Final = PlainSerializer(
    lambda path: None if path is None else render(path), return_type=str | None
)
ValuePath = Annotated[tuple[str, ...], _reader(None), _AS_TEXT]
OptionalPath = Annotated[tuple[str, ...] | None, _reader(None, none=True), _AS_TEXT]
KeyPath = Annotated[FieldPath, _reader(Own.KEY), _AS_TEXT]
TimePath = Annotated[FieldPath, _reader(Own.TIMESTAMP), _AS_TEXT]
