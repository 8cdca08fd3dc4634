"""Lines of JSON, rows of CSV and Parquet as records to send, or why they cannot be sent."""

from __future__ import annotations

import csv
import io
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from config import Own
from config.errors import SettingsError
from config.event import KEY_BYTES
from config.paths import of_option, render
from worker.rows import MISSING, NO_TEXT, Event, Keys, Shape, header_of, is_text, key_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from config import EventSettings
    from worker.replay.lines import Lines
    from worker.replay.parquet import Table

_BOM: Final = b"\xef\xbb\xbf"


class Bad(NamedTuple):
    """A line that cannot be sent; `line` counts from 1."""

    line: int
    why: str


def keys(event: EventSettings, key: str | None, field: str | None) -> Keys:
    """Return where keys come from, by the settings and the options `--key` and `--key-field`.

    Raises
    ------
    SettingsError
        When the options contradict each other or the settings.
    """
    if not isinstance(event.key, Own):
        if key is not None or field is not None:
            raise SettingsError(
                f'event.key = "{render(event.key)}" takes the key from each line: leave --key and '
                '--key-field out, or set event.key = "$key"'
            )
        return Keys(None, event.key)
    if key is not None and field is not None:
        raise SettingsError("--key and --key-field exclude each other: give one")
    if key is None:
        return Keys(None, of_option("--key-field", field or "key"))
    raw = key.encode()
    if not 1 <= len(raw) <= KEY_BYTES:
        raise SettingsError(f"--key has {len(raw)} bytes: a key has 1 to {KEY_BYTES:,}")
    return Keys(raw, ())


def from_json(
    blocks: Iterable[tuple[int, bytes, int]], keys: Keys, known: Lines
) -> Iterator[Event | Bad]:
    """Yield a record per line that is a JSON object, its bytes as they stand.

    Parameters
    ----------
    blocks, known
        The lines, as `worker.replay.lines.runs` has them, and the numbers it gives them.
    keys
        Where the keys come from.
    """
    for offset, block, _ in blocks:
        for at, line in enumerate(block.split(b"\n"), offset):
            text = line.strip().removeprefix(_BOM)
            try:
                document = orjson.loads(text)
            except orjson.JSONDecodeError as error:
                yield Bad(known.number(at), f"not JSON: {error}")
                continue
            if type(document) is not dict:
                yield Bad(known.number(at), "not a JSON object")
                continue
            key = keys.fixed or key_of(_find(document, keys.field), keys.field)
            yield Bad(known.number(at), key) if isinstance(key, str) else Event(key, text)


def from_rows(table: Table, keys: Keys, event: EventSettings) -> Iterator[Event | Bad]:
    """Yield a record per row of Parquet: its columns that the settings name."""
    rows = table.documents(keyed=not isinstance(event.key, Own))
    for number, (value, document) in enumerate(rows, start=1):
        key = keys.fixed or key_of(value, keys.field)
        yield Bad(number, key) if isinstance(key, str) else Event(key, document)


def from_csv(file: IO[bytes], name: str, event: EventSettings, keys: Keys) -> Iterator[Event | Bad]:
    """Yield a record per row: the columns that the settings name become the event's fields.

    Keys stay text, so that 007 stays 007; scores, times and weights are numbers; an empty label
    is one that is not known yet.

    Raises
    ------
    SettingsError
        When the first line lacks a column that the settings name.
    """
    # What is no UTF-8 is for its row to answer for, not for the rest.
    with io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="") as text:
        rows = csv.reader(text, strict=True)
        shape = Shape(header_of(rows, name), name, event, keys)
        for row, why in _rows(rows):
            if row is None:
                yield Bad(rows.line_num, why)
                continue
            if not row:
                continue
            built = shape.event(row)
            yield Bad(rows.line_num, built) if isinstance(built, str) else built


def _rows(rows: Any) -> Iterator[tuple[list[str] | None, str]]:
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            yield None, f"not CSV: {error}"
        else:
            yield (row, "") if is_text(row) else (None, NO_TEXT)


def _find(document: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if type(document) is not dict or name not in document:
            return MISSING
        document = document[name]
    return document
