"""The files of a replay: found, told apart by their names, opened, and read one after the other."""

from __future__ import annotations

import gzip
import importlib
import io
import sys
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, cast

from config import Own
from config.errors import RocstreamError, SettingsError
from config.event import KEY_BYTES
from config.paths import of_option, render
from worker.events.fields import TIME_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from config import EventSettings
    from worker.replay.lines import Lines

STDIN: Final = "-"
FORMATS: Final = ("json", "csv", "parquet")

_SUFFIXES: Final = {
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_PACKED: Final = (".gz", ".zst")
_GZIP: Final = b"\x1f\x8b"
_ZSTANDARD: Final = b"\x28\xb5\x2f\xfd"
_PARQUET: Final = b"PAR1"
_BUFFER: Final = 1 << 20
_PIECE: Final = 1 << 16


class Fields(NamedTuple):
    """Where the lines of files have what a record has outside its value.

    Attributes
    ----------
    key
        One key for all events.
    key_field, time_field
        Paths of the fields in place of the record's own key and timestamp.
    """

    key: str | None = None
    key_field: str | None = None
    time_field: str | None = None


class Member(NamedTuple):
    """One file of a source; `form` is a name of `FORMATS`."""

    path: str
    form: str
    size: int

    @property
    def shown(self) -> str:
        """What sentences call it."""
        return "standard input" if self.path == STDIN else self.path


def event_of(event: EventSettings, fields: Fields) -> tuple[EventSettings, bytes | None]:
    """Return how the records of files are read, and the key that all of them have if one.

    A line has no key and timestamp beside its value: where the settings ask for these, fields of
    the line stand in for them.

    Raises
    ------
    SettingsError
        When the options contradict each other or the settings.
    """
    changed: dict[str, Any] = {}
    fixed = None
    if not isinstance(event.key, Own):
        if fields.key is not None or fields.key_field is not None:
            raise SettingsError(
                f'event.key = "{render(event.key)}" takes the key from each line: leave --key and '
                '--key-field out, or set event.key = "$key"'
            )
    elif fields.key is not None:
        if fields.key_field is not None:
            raise SettingsError("--key and --key-field exclude each other: give one")
        fixed = fields.key.encode()
        if not 1 <= len(fixed) <= KEY_BYTES:
            raise SettingsError(f"--key has {len(fixed)} bytes: a key has 1 to {KEY_BYTES:,}")
    else:
        changed["key"] = of_option("--key-field", fields.key_field or "key")
    if fields.time_field is not None:
        if not isinstance(event.time, Own):
            raise SettingsError(
                f'event.time = "{render(event.time)}" takes the time from each line: leave '
                '--time-field out, or set event.time = "$timestamp"'
            )
        changed["time"] = of_option("--time-field", fields.time_field)
    return event.model_copy(update=changed), fixed


def timestamp_of(event: EventSettings) -> int:
    """Return the timestamp that records of files get: no bound where their time is a field."""
    return 0 if isinstance(event.time, Own) else TIME_MAX


def found(names: Sequence[str], form: str | None) -> list[Member]:
    """Return the files that sources name; those of a directory in the order of their names.

    Parameters
    ----------
    names
        Files, directories, or "-" for standard input.
    form
        How all are written, a name of `FORMATS`; None goes by the names.

    Raises
    ------
    SettingsError
        For one that is not there, or whose format cannot be told.
    """
    members = []
    for name in names:
        if name == STDIN:
            if form == "parquet":
                raise SettingsError(
                    "--format parquet: standard input (-) cannot be read from its end, where "
                    "Parquet begins: name a file"
                )
            members.append(Member(STDIN, form or "json", 0))
            continue
        path = Path(name)
        if not path.exists():
            raise SettingsError(f"{name}: there is no such file")
        if not path.is_dir():
            members.append(_member(path, form))
            continue
        inside = [
            _member(one, form)
            for one in sorted(path.rglob("*"))
            if one.is_file()
            and not one.name.startswith((".", "_"))
            and (form is not None or _form(one.name) is not None)
        ]
        if not inside:
            raise SettingsError(
                f"{name} holds no file of events: JSON lines (.jsonl, .ndjson, .json), CSV and "
                "Parquet are known by their names, the first two also with .gz or .zst"
            )
        members += inside
    return members


def _member(path: Path, form: str | None) -> Member:
    known = form or _form(path.name)
    if known is None:
        raise SettingsError(
            f"{path}: the format cannot be told from the name: say --format json (an object per "
            "line), csv or parquet"
        )
    return Member(str(path), known, path.stat().st_size)


def _form(name: str) -> str | None:
    plain = name.lower()
    for packed in _PACKED:
        plain = plain.removesuffix(packed)
    return _SUFFIXES.get(Path(plain).suffix)


@contextmanager
def opened(member: Member, known: Lines) -> Iterator[tuple[IO[bytes], Callable[[], int]]]:
    """Open a file of text; with it comes how many of its bytes (as they lie there) are read.

    `known` says which line was the last that was read, for the sentence.

    Raises
    ------
    RocstreamError
        When it is cut short, packed wrongly or cannot be read; what came before was read.
    """
    try:
        if member.path == STDIN:
            yield _piped(), lambda: 0
            return
        with Path(member.path).open("rb") as raw:
            yield _unpacked(raw, member.path), raw.tell
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise RocstreamError(f"{_cut(member, known, 'gzip')}: {error}") from error
    except OSError as error:
        if error.errno is None:
            # The system gives a number; without one it is what unpacks that complains.
            raise RocstreamError(f"{_cut(member, known, 'zstd')}: {error}") from error
        raise RocstreamError(f"{member.shown} cannot be read: {error.strerror or error}") from error


def _cut(member: Member, known: Lines, kind: str) -> str:
    if known.last:
        return f"{member.shown} is cut short, or damaged, behind line {known.last:,}"
    return f"{member.shown} is cut short, or no {kind} file"


def _piped() -> IO[bytes]:
    """Return standard input as text: it has no name, so its first bytes tell what packs it."""
    piped: Any = sys.stdin.buffer
    start = piped.peek(4)[:4]
    if start.startswith(_GZIP):
        return cast("IO[bytes]", gzip.GzipFile(fileobj=piped))
    if start == _ZSTANDARD:
        raise SettingsError("standard input is packed with zstd: unpack it before, with zstdcat")
    if start == _PARQUET:
        raise SettingsError("standard input is Parquet, which is read from its end: name a file")
    return cast("IO[bytes]", piped)


def _unpacked(raw: IO[bytes], name: str) -> IO[bytes]:
    if name.lower().endswith(".gz"):
        # As it is: a buffer before it would lose what came before the file breaks off.
        return cast("IO[bytes]", gzip.GzipFile(fileobj=raw))
    if name.lower().endswith(".zst"):
        return io.BufferedReader(_Zstandard(raw, needed("pyarrow", f"to read {name}")), _BUFFER)
    return raw


class _Zstandard(io.RawIOBase):
    """A packed file that gives every byte there is before it says that it is cut short.

    What unpacks it loses all of the read within which it fails. So after a failure all that was
    read is read again, and what follows byte by byte.
    """

    def __init__(self, raw: IO[bytes], arrow: Any) -> None:
        super().__init__()
        self._raw, self._arrow = raw, arrow
        self._stream = arrow.CompressedInputStream(raw, "zstd")
        self._given = 0
        self._size = _PIECE

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read a piece."""
        try:
            found = self._stream.read(min(self._size, len(buffer)))
        except OSError:
            if self._size == 1:
                raise
            self._raw.seek(0)
            # It closes the file with itself.
            self._failed = self._stream
            self._stream = self._arrow.CompressedInputStream(self._raw, "zstd")
            left = self._given
            while left:
                left -= len(self._stream.read(min(left, _PIECE)))
            self._size = 1
            return self.readinto(buffer)
        buffer[: len(found)] = found
        self._given += len(found)
        return len(found)


def needed(module: str, purpose: str) -> Any:
    """Import a module of the extra `replay`.

    Raises
    ------
    SettingsError
        When it is not installed, with the cure.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise SettingsError(
            f"{module.partition('.')[0]} is needed {purpose}: pip install 'rocstream[replay]'"
        ) from error
