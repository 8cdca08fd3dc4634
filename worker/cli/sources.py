"""Files of events for `send`: JSON lines and CSV, plain or gzipped, or standard input.

A line becomes the key and the value of a record, or a reason why it cannot be one.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from config.errors import RocstreamError, SettingsError
from worker.cli.rows import Bad, Event, Keys, from_csv, from_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from config import EventSettings

STDIN: Final = "-"

_SUFFIXES: Final = {".jsonl": "json", ".ndjson": "json", ".json": "json", ".csv": "csv"}


class Format(StrEnum):
    """How a source is written; `auto` goes by the name."""

    AUTO = "auto"
    JSON = "json"
    CSV = "csv"


class Source(NamedTuple):
    """An open source.

    Parameters
    ----------
    name
        For sentences.
    events
        Its lines in order.
    position
        Returns the bytes of the file read so far; compressed ones where it is compressed.
    """

    name: str
    events: Iterator[Event | Bad]
    position: Callable[[], int]


def sizes(names: list[str], form: Format) -> dict[str, int | None]:
    """Return the size of each source in bytes; None for standard input.

    Raises
    ------
    SettingsError
        For a source that is not there or whose format is not known: before anything is sent.
    """
    found: dict[str, int | None] = {}
    for name in names:
        _format(name, form)
        if name == STDIN:
            found[name] = None
            continue
        path = Path(name)
        if not path.exists():
            raise SettingsError(f"{name}: there is no such file")
        if path.is_dir():
            raise SettingsError(f"{name} is a directory: name the files in it, as in {name}/*")
        found[name] = path.stat().st_size
    return found


@contextmanager
def opened(name: str, form: Format, event: EventSettings, keys: Keys) -> Iterator[Source]:
    """Open a source; closed after the `with` block.

    Raises
    ------
    SettingsError
        For a CSV without the columns that the settings name.
    """
    if name == STDIN:
        yield Source("standard input", _records(sys.stdin.buffer, name, form, event, keys), _zero)
        return
    with Path(name).open("rb") as raw:
        unpacked: Any = gzip.GzipFile(fileobj=raw) if name.endswith(".gz") else raw
        try:
            yield Source(name, _records(unpacked, name, form, event, keys), raw.tell)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise RocstreamError(f"{name} is cut short, or no gzip file: {error}") from error
        except UnicodeDecodeError as error:
            raise RocstreamError(f"{name} is no UTF-8 text: {error}") from error


def _records(
    file: IO[bytes], name: str, form: Format, event: EventSettings, keys: Keys
) -> Iterator[Event | Bad]:
    if _format(name, form) is Format.JSON:
        return from_json(file, keys)
    return from_csv(file, name, event, keys)


def _zero() -> int:
    return 0


def _format(name: str, form: Format) -> Format:
    if form is not Format.AUTO:
        return form
    if name == STDIN:
        return Format.JSON
    suffix = Path(name.removesuffix(".gz")).suffix.lower()
    if suffix not in _SUFFIXES:
        raise SettingsError(
            f"{name}: the format cannot be told from the name: say --format json (an object per "
            "line) or --format csv"
        )
    return Format(_SUFFIXES[suffix])
