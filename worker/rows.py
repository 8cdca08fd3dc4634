"""Rows under a header as events: what `send` publishes of a CSV, and `replay` reads of one."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from config import Own
from config.errors import SettingsError
from config.event import KEY_BYTES
from config.paths import render

if TYPE_CHECKING:
    from collections.abc import Iterable

    from config import EventSettings

MISSING: Final = object()
"""In the place of a key that is not there."""

_INTEGER: Final = re.compile(r"\s*[+-]?[0-9]{1,18}\s*")
_DATE: Final = re.compile(r"\s*[0-9]{4}-[0-9]{2}-[0-9]{2}")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TICKS: Final = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "us": timedelta(microseconds=1),
}
_SHOWN: Final = 40

NO_TEXT: Final = "it is not UTF-8"
"""Why a row is none whose bytes are no text."""


class Event(NamedTuple):
    """One record to send."""

    key: bytes
    value: bytes


class Keys(NamedTuple):
    """Where the records' keys come from: one for all, or a field of each line."""

    fixed: bytes | None
    field: tuple[str, ...]


class Column(NamedTuple):
    """A column that becomes the field of an event at `path`."""

    number: int
    name: str
    path: tuple[str, ...]
    may_be_empty: bool


class Shape:
    """How the rows under a header become events.

    Parameters
    ----------
    header, name
        The columns' names, and the file's for sentences.
    event, keys
        What the events have, and where their keys come from.

    Attributes
    ----------
    width
        Cells of a row.
    columns
        Those that become fields, but for the key.
    key_column
        The number of the key's; None where one key is that of all.

    Raises
    ------
    SettingsError
        When a column that the settings name is missing.
    """

    def __init__(self, header: list[str], name: str, event: EventSettings, keys: Keys) -> None:
        self.width = len(header)
        self.columns = _columns(header, name, event, keys)
        self.key_column = None if keys.fixed else header.index(_column(header, keys.field))
        self._settings, self._keys = event, keys
        self._key_path = None if event.key is Own.KEY else keys.field

    def event(self, row: list[str]) -> Event | str:
        """Return the event of a row, or as text why it is none."""
        if len(row) != self.width:
            return f"{len(row)} cells under {self.width} columns"
        fixed, at = self._keys.fixed, self.key_column
        key = fixed if at is None else key_of(row[at], self._keys.field)
        return _event(row, self.columns, self._settings, self._key_path, key)


def is_text(cells: Iterable[str]) -> bool:
    """Tell whether cells that were read with ``surrogateescape`` are text, all of them."""
    joined = "".join(cells)
    if joined.isascii():
        return True
    try:
        joined.encode()
    except UnicodeEncodeError:
        return False
    return True


def header_of(rows: Any, name: str) -> list[str]:
    """Return the names of the columns, which the first of the rows holds.

    Raises
    ------
    SettingsError
        When there is none, or one name stands there twice.
    """
    try:
        header = [column.strip() for column in next(rows)]
    except StopIteration:
        raise SettingsError(f"{name} is empty: its first line names the columns") from None
    if not is_text(header):
        raise SettingsError(f"{name}: its first line, which names the columns, is not UTF-8")
    if len(set(header)) < len(header):
        twice = next(column for column in header if header.count(column) > 1)
        raise SettingsError(f'{name} has two columns "{twice}": rename one')
    return header


def _columns(header: list[str], name: str, event: EventSettings, keys: Keys) -> tuple[Column, ...]:
    """Return the columns that become fields of the event; the others are left out."""
    # No label yet, and the weight 1, are written as an empty cell.
    wanted = [
        ("event.score", event.score, False),
        ("event.label", event.label, True),
        ("event.time", event.time if isinstance(event.time, tuple) else (), False),
        ("event.weight", event.weight or (), True),
    ]
    if not keys.fixed and _column(header, keys.field) not in header:
        raise SettingsError(
            f'{name} has no column "{".".join(keys.field)}" for the key: it has '
            f"{', '.join(header)}; name another with --key-field, or give all one with --key"
        )
    found = []
    for setting, path, may_be_empty in wanted:
        if not path:
            continue
        column = _column(header, path)
        if column not in header:
            raise SettingsError(
                f'{name} has no column "{column}" ({setting}): it has {", ".join(header)}'
            )
        found.append(Column(header.index(column), column, path, may_be_empty))
    return tuple(found)


def _column(header: list[str], path: tuple[str, ...]) -> str:
    """Return the column of a path: named as the settings write it, or by its parts with dots."""
    plain = ".".join(path)
    return plain if plain in header else render(path)


def _event(
    row: list[str],
    columns: tuple[Column, ...],
    event: EventSettings,
    key_path: tuple[str, ...] | None,
    key: bytes | str | None,
) -> Event | str:
    if not isinstance(key, bytes):
        return str(key)
    document: dict[str, Any] = {}
    if key_path:
        _put(document, key_path, key.decode())
    for column in columns:
        cell = row[column.number]
        if column.may_be_empty and not cell.strip():
            continue
        what = "no number"
        try:
            if column.path == event.label:
                value = label_of(cell, event)
            elif column.path == event.time:
                what = "neither a number nor an ISO time with its zone"
                value = time_of(cell, event.time_unit)
            else:
                value = _number(cell)
        except ValueError:
            shown = cell if len(cell) <= _SHOWN else cell[:_SHOWN] + "..."
            return f'the column "{column.name}" has {shown!r}, which is {what}'
        _put(document, column.path, value)
    return Event(key, orjson.dumps(document))


def _number(cell: str) -> int | float:
    if _INTEGER.fullmatch(cell):
        return int(cell)
    number = float(cell)
    # Python takes 1_000 for a number; in a file it is a mistake.
    if not math.isfinite(number) or "_" in cell:
        raise ValueError(cell)
    return number


def time_of(cell: str, unit: str) -> int | float:
    """Return a time in the unit, from a number in it or an ISO time; ValueError for others."""
    if _DATE.match(cell) is None:
        return _number(cell)
    time = datetime.fromisoformat(cell.strip())
    if time.tzinfo is None:
        raise ValueError(cell)
    return (time - _EPOCH) // _TICKS[unit]


def label_of(cell: str, event: EventSettings) -> int | float | str:
    """Return a label as it is sent: a number where it looks like one that no text stands for."""
    # Whether a label means a class is the worker's to judge, which keeps what it refuses.
    if cell in event.labels:
        return cell
    try:
        return _number(cell)
    except ValueError:
        return cell


def _put(document: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for name in path[:-1]:
        document = document.setdefault(name, {})
    document[path[-1]] = value


def key_of(value: Any, field: tuple[str, ...]) -> bytes | str:
    """Return the bytes of a key, or as text why it is none."""
    name = ".".join(field)
    if value is MISSING:
        return f'there is no field "{name}" for the key: give --key or --key-field'
    if type(value) is bytes:
        # Some write text as bytes to Parquet.
        value = value.decode(errors="surrogateescape")
    if type(value) is int:
        value = str(value)
    if type(value) is not str:
        return (
            f'the key "{name}" is {orjson.dumps(value, default=repr).decode()[:_SHOWN]}, neither '
            "text nor integer"
        )
    if not is_text([value]):
        return f'the key "{name}" is not UTF-8'
    raw = value.encode()
    if not 1 <= len(raw) <= KEY_BYTES:
        return f'the key "{name}" has {len(raw)} bytes: it must have 1 to {KEY_BYTES:,}'
    return raw
