"""Parquet as events: whole columns where nothing in them is odd, else row by row as JSON.

The quick way takes only what the rules of ``worker.events`` take with the same outcome; whatever
it does not know (a null, a NaN, a label by name) sends its stretch of rows through the parser.
"""

from __future__ import annotations

import itertools
import json
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from config import Own
from config.errors import RocstreamError, SettingsError
from config.event import KEY_BYTES
from config.paths import render
from worker.events import Parser
from worker.events.fields import TIME_MAX, TIME_UNITS
from worker.events.record import Taken
from worker.replay.files import needed
from worker.replay.grouping import Columns, Stretch, batches, heavy_enough
from worker.replay.records import BATCH_EVENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from config import EventSettings
    from worker.events import Batch, Stop
    from worker.replay.records import Run

RUN_ROWS: Final = 1 << 19
"""Rows read at once: so many events of a key follow each other that its window stays in the cache,
few enough that their columns take little memory."""

_REALS: Final = {"halffloat": "float16", "float": "float32", "double": "float64"}

PIECE_ROWS: Final = 1 << 21
"""Rows of a group that one process reads; a larger one is decoded by each, and shared out."""

WRITTEN_ROWS: Final = 1 << 14
"""Rows that are written as JSON at once."""

_NAMES: Final = ("key", "score", "label", "time", "weight")


def _arrow() -> Any:
    return needed("pyarrow", "for Parquet")


def _compute() -> Any:
    return needed("pyarrow.compute", "for Parquet")


class Table:
    """An open file, its columns found by the paths of the settings.

    Parameters
    ----------
    path
        Of the file.
    events
        The ways to read it.
    fixed
        The key of all rows, if they have one.
    timestamp
        That of each record where rows go through the parser.
    """

    def __init__(
        self, path: str, events: Sequence[EventSettings], fixed: bytes | None, timestamp: int
    ) -> None:
        self.path = path
        self.fixed, self.timestamp = fixed, timestamp
        self.events = events
        self.parsers = [Parser(event) for event in events]
        arrow = needed("pyarrow", f"to read {path}")
        self._errors: tuple[type[BaseException], ...] = (arrow.ArrowException, OSError)
        try:
            self._file = needed("pyarrow.parquet", f"to read {path}").ParquetFile(path)
        except self._errors as error:
            raise RocstreamError(
                f"{path} is cut short, or no Parquet file: {_brief(error)}"
            ) from error
        self.schema = self._file.schema_arrow
        metadata = self._file.metadata
        self.rows = int(metadata.num_rows)
        self.columns = [self._columns(event) for event in events]
        self._file.close()
        # Keys come as numbers of a dictionary, as they lie in the file: no text per row.
        texts = {columns["key"] for columns in self.columns if "key" in columns}
        self._options: dict[str, Any] = {
            "metadata": metadata,
            "pre_buffer": False,
            "read_dictionary": [key for key, *inner in texts if not inner and self._text((key,))],
        }
        self._groups = [0]
        for group in range(metadata.num_row_groups):
            self._groups.append(self._groups[-1] + int(metadata.row_group(group).num_rows))
        # The rows [first, last) that were read most recently, and what follows them.
        self._held: tuple[int, int, Any] = (0, 0, None)
        self._following: Iterator[Any] = iter(())

    def runs(self) -> Iterator[Run]:
        """Yield all rows in runs; each is read when its events are asked for."""
        first = 0
        for last in [*self._groups[1:-1], self.rows]:
            while last - first > RUN_ROWS:
                yield TableRun(self, first, first + RUN_ROWS)
                first += RUN_ROWS
            # Groups of few rows are read together, others for themselves.
            if last - first > RUN_ROWS // 2 or last == self.rows:
                yield TableRun(self, first, last)
                first = last

    def documents(self, *, keyed: bool) -> Iterator[tuple[Any, bytes]]:
        """Yield each row as JSON, beside its key; `keyed` says whether the key stands in both.

        Raises
        ------
        RocstreamError
            When the file is damaged.
        """
        columns = self.columns[0]
        names = [name for name in columns if name != "key" or keyed]
        for first in range(0, self.rows, WRITTEN_ROWS):
            last = min(first + WRITTEN_ROWS, self.rows)
            rows = _Rows(self, 0, self.read(first, last), first)
            keys = rows.values("key") if "key" in columns else itertools.repeat(None, last - first)
            yield from zip(keys, rows.documents(names), strict=True)

    def read(self, first: int, last: int) -> Any:
        """Return the rows with offsets in [first, last); memory for a run at a time.

        Raises
        ------
        RocstreamError
            When the file is damaged.
        """
        low, high, rows = self._held
        if rows is None or not low <= first <= high:
            high, self._following = self._from(first)
            taken = []
        else:
            taken = [rows.slice(first - low)]
        try:
            while high < last:
                batch = next(self._following, None)
                if batch is None:
                    raise OSError(f"rows end at {high:,} instead of {self.rows:,}")
                high += batch.num_rows
                if high > first:
                    taken.append(batch)
        except self._errors as error:
            raise RocstreamError(
                f"{self.path} is damaged after row {high}: {_brief(error)}"
            ) from error
        taken = [batch for batch in taken if batch.num_rows] or taken[:1]
        rows = taken[0] if len(taken) == 1 else _joined(taken)
        self._held = (high - rows.num_rows, high, rows)
        return rows.slice(first - high + rows.num_rows, last - first)

    def _from(self, offset: int) -> tuple[int, Iterator[Any]]:
        """Return where the group with a row begins, and its rows and all that follow."""
        group = bisect_right(self._groups, offset) - 1
        tops = sorted({path[0] for columns in self.columns for path in columns.values()})
        arrow = needed("pyarrow.parquet", f"to read {self.path}")

        def batches() -> Iterator[Any]:
            for number in range(group, len(self._groups) - 1):
                # A reader keeps what it has unpacked: so each group of rows gets a new one.
                with arrow.ParquetFile(self.path, **self._options) as file:
                    yield from file.iter_batches(
                        RUN_ROWS, row_groups=[number], columns=tops, use_threads=False
                    )

        return self._groups[group], batches()

    def piece(self, offset: int) -> int:
        """Return what stands for all rows that are decoded with this one at little cost."""
        group = bisect_right(self._groups, offset) - 1
        rows = self._groups[min(group + 1, len(self._groups) - 1)] - self._groups[group]
        return self._groups[group] if rows <= PIECE_ROWS else offset

    def narrow(self) -> list[str]:
        """Return the score columns that have less than 64 bits, with their types."""
        return [
            f"{'.'.join(columns['score'])} ({self._type(columns['score'])})"
            for columns in self.columns
            if str(self._type(columns["score"])) in {"float", "halffloat"}
        ]

    def _columns(self, event: EventSettings) -> dict[str, tuple[str, ...]]:
        found = {}
        for name in _NAMES:
            path = getattr(event, name)
            if path is None or isinstance(path, Own):
                continue
            found[name] = self._find(path, name)
        return found

    def _find(self, path: tuple[str, ...], name: str) -> tuple[str, ...]:
        for candidate in (path, (".".join(path),), (render(path),)):
            if self._type(candidate) is not None:
                return candidate
        tops = [top for top in (".".join(path), path[0]) if self.schema.names.count(top) > 1]
        if tops:
            raise SettingsError(f'{self.path} has two columns "{tops[0]}": rename one')
        hint = "; another can be named with --key-field" if name == "key" else ""
        raise SettingsError(
            f'{self.path} has no column "{".".join(path)}" (event.{name}): it has '
            f"{', '.join(self.schema.names)}{hint}"
        )

    def _text(self, path: tuple[str, ...]) -> bool:
        types, kind = _arrow().types, self._type(path)
        return bool(types.is_string(kind) or types.is_large_string(kind))

    def _type(self, path: tuple[str, ...]) -> Any:
        kind: Any = self.schema
        for name in path:
            at = kind.get_field_index(name) if hasattr(kind, "get_field_index") else -1
            if at < 0:
                return None
            kind = kind.field(at).type
        return kind


@dataclass(frozen=True, slots=True)
class TableRun:
    """Rows of a Parquet file that follow each other: those with offsets in [first, last)."""

    table: Table
    first: int
    last: int

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.last - self.first

    @property
    def piece(self) -> tuple[str, int]:
        """What had better be read together: a group of rows, unless it is a large one."""
        return self.table.path, self.table.piece(self.first)

    def cut(self, start: int, stop: int) -> Run:
        """Return the rows with offsets in [start, stop)."""
        low = min(max(start, self.first), self.last)
        return TableRun(self.table, low, max(min(stop, self.last), low))

    def batches(
        self, reading: int, watermark: int = -1, stop: Callable[[], Stop | None] | None = None
    ) -> Iterator[Batch]:
        """Take the rows apart as the reading of this number says."""
        return batches(self.parts(reading, watermark, stop), watermark, stop)

    def parts(
        self, reading: int, watermark: int = -1, stop: Callable[[], Stop | None] | None = None
    ) -> Iterator[Stretch | Batch]:
        """Take the rows apart; what is read by columns is not grouped yet, nor cut at stops.

        Raises
        ------
        RocstreamError
            When the file is damaged.
        """
        if self.first == self.last:
            return
        rows = _Rows(self.table, reading, self.table.read(self.first, self.last), self.first)
        whole = rows.stretch()
        if whole is not None:
            yield whole
            return
        yield from self.table.parsers[reading].batches(
            rows.records(), limit=BATCH_EVENTS, watermark=watermark, stop=stop
        )


class _Rows:
    """Some rows in memory, and one way to read them."""

    def __init__(self, table: Table, reading: int, rows: Any, first: int) -> None:
        self._table, self._rows, self._first = table, rows, first
        self._event, self._paths = table.events[reading], table.columns[reading]

    def _column(self, name: str) -> Any:
        path = self._paths[name]
        column = self._rows.column(path[0])
        return column if len(path) == 1 else _compute().struct_field(column, list(path[1:]))

    def stretch(self) -> Stretch | None:
        """Read the columns as they are; None where something is odd."""
        paths, count = self._paths, self._rows.num_rows
        if self._event.labels:
            return None
        label = self._column("label")
        known = _labels(label)
        scores = _numbers(self._column("score"))
        times = self._times()
        weights = None if "weight" not in paths else _numbers(self._column("weight"))
        if known is None or scores is None or times is None:
            return None
        if "weight" in paths and (weights is None or not heavy_enough(weights)):
            return None
        codes, names = self._keys()
        if codes is None:
            return None
        last = self._first + count
        columns = Columns(codes, names, scores, known, times, weights, np.arange(self._first, last))
        if label.null_count:
            columns = columns.chosen(
                np.flatnonzero(_values(label.is_valid().cast(_arrow().uint8())))
            )
        return Stretch(columns, self._first, last)

    def _keys(self) -> tuple[Any, list[str]]:
        """Return a number per row and the key that each number stands for; None if one is odd."""
        pa, rows = _arrow(), self._rows.num_rows
        if "key" not in self._paths:
            fixed = self._table.fixed
            return (None, []) if fixed is None else (np.zeros(rows, np.int64), [fixed.decode()])
        column = _as_text(self._column("key"))
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if column.null_count or not (
            pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)
        ):
            return None, []
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        if coded.dictionary.null_count:
            return None, []
        names = [str(name) for name in coded.dictionary.to_pylist()]
        if any(not 1 <= len(name.encode()) <= KEY_BYTES for name in names):
            return None, []
        codes = _values(coded.indices)
        known = {name: number for number, name in enumerate(dict.fromkeys(names))}
        if len(known) < len(names):
            codes = np.array([known[name] for name in names])[codes]
        return codes, list(known)

    def _times(self) -> Any:
        """Return a time for each row; None if one is odd."""
        pa = _arrow()
        if "time" not in self._paths:
            return np.full(self._rows.num_rows, self._table.timestamp)
        column = self._column("time")
        if column.null_count:
            return None
        if pa.types.is_timestamp(column.type):
            # Rounded down, as times of a finer unit in JSON are.
            times = column.cast(pa.timestamp("ns" if column.type.unit == "ns" else "us"))
            raw = _values(times.cast(pa.int64()))
            times = raw // (1_000_000 if column.type.unit == "ns" else 1_000)
        elif pa.types.is_integer(column.type) and not pa.types.is_uint64(column.type):
            factor, divisor, _ = TIME_UNITS[self._event.time_unit]
            raw = _values(column).astype(np.int64, copy=False)
            if raw.size and (raw.max() > TIME_MAX * divisor // factor):
                return None
            times = raw if factor == divisor else raw * factor // divisor
        else:
            return None
        if times.size and (times.min() < 0 or times.max() > TIME_MAX):
            return None
        return times

    def values(self, name: str) -> list[Any]:
        """Return a column as Python has it."""
        values: list[Any] = _plain(self._column(name), name, self._event).to_pylist()
        return values

    def documents(self, names: Iterable[str]) -> Iterator[bytes]:
        """Write these columns of each row as the JSON that a producer would have sent."""
        columns = [(getattr(self._event, name), self.values(name)) for name in names]
        for at in range(self._rows.num_rows):
            document: dict[str, Any] = {}
            for path, values in columns:
                inner = document
                for part in path[:-1]:
                    inner = inner.setdefault(part, {})
                inner[path[-1]] = values[at]
            # Bytes that are no text are for the parser to refuse.
            written = json.dumps(document, default=_shown, ensure_ascii=False)
            yield written.encode(errors="surrogateescape")

    def records(self) -> Iterator[Taken]:
        """Take each row as a record."""
        table = self._table
        for at, value in enumerate(self.documents(self._paths), self._first):
            yield Taken(at, table.timestamp, table.fixed, value)


def _shown(value: Any) -> str:
    """Return as text what JSON has no type for."""
    return value.decode(errors="surrogateescape") if isinstance(value, bytes) else str(value)


def _as_text(column: Any) -> Any:
    """Return text that was written as bytes as text; what is none stays as it is."""
    pa = _arrow()
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
        return column
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return column


def _joined(batches: Sequence[Any]) -> Any:
    """Return batches as one; their dictionaries become the same."""
    pa = _arrow()
    [whole] = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks().to_batches()
    return whole


def _numbers(column: Any) -> Any:
    """Return a column of finite numbers as doubles; None where it is another."""
    pa = _arrow()
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    kind = column.type
    if column.null_count or not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
        return None
    numbers = _values(column).astype(np.float64, copy=False)
    return numbers if bool(np.isfinite(numbers).all()) else None


def _labels(column: Any) -> Any:
    """Return a column of classes, whatever stands for nulls; None where it has others than 0, 1."""
    pa = _arrow()
    kind = column.type
    if not (pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return None
    if column.null_count:
        column = column.fill_null(
            pa.scalar(value=False, type=kind) if pa.types.is_boolean(kind) else 0
        )
    if pa.types.is_boolean(kind):
        return _values(column.cast(pa.uint8()))
    values = _values(column)
    if pa.types.is_integer(kind):
        fits = not values.size or bool(values.min() >= 0 and values.max() <= 1)
    else:
        fits = bool(((values == 0) | (values == 1)).all())
    return values.astype(np.uint8) if fits else None


def _values(column: Any) -> Any:
    """Return numbers without nulls as they lie there.

    `to_numpy` would load pandas where it is installed, which takes longer than many a replay.
    """
    name = str(column.type)
    kind = np.dtype(_REALS.get(name, name))
    if not len(column):
        return np.zeros(0, kind)
    return np.frombuffer(column.buffers()[1], kind, len(column), column.offset * kind.itemsize)


def _plain(column: Any, name: str, event: EventSettings) -> Any:
    """Give times of Parquet's own type in the unit that the settings ask for."""
    pa = _arrow()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if name == "time" and pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp(event.time_unit), safe=False).cast(pa.int64())
    if pa.types.is_decimal(column.type):
        return column.cast(pa.float64())
    return _as_text(column)


def _brief(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".")
