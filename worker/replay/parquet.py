"""Parquet as events: whole columns where nothing in them is odd, else row by row as JSON.

The quick way takes only what the rules of ``worker.events`` take with the same outcome; whatever
it does not know (a null, a NaN, a label by name) sends its stretch of rows through the parser.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from config import Own
from config.errors import RocstreamError, SettingsError
from config.paths import render
from worker.events import Parser
from worker.events.fields import KEY_BYTES, TIME_MAX, TIME_UNITS
from worker.replay.files import needed
from worker.replay.grouping import Columns, batch_of
from worker.replay.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from config import EventSettings
    from worker.events import Batch
    from worker.replay.records import Run

RUN_ROWS: Final = 1 << 17

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
            self._file = needed("pyarrow.parquet", f"to read {path}").ParquetFile(
                path, pre_buffer=False
            )
        except self._errors as error:
            raise RocstreamError(
                f"{path} is cut short, or no Parquet file: {_brief(error)}"
            ) from error
        self.schema = self._file.schema_arrow
        self.rows = int(self._file.metadata.num_rows)
        self.columns = [self._columns(event) for event in events]

    def runs(self) -> Iterator[Run]:
        """Yield all rows in runs; memory for some of them at a time.

        Raises
        ------
        RocstreamError
            When the file is damaged.
        """
        tops = {path[0] for columns in self.columns for path in columns.values()}
        offset = 0
        # A reader keeps what it has unpacked: so each group of rows gets a new one.
        batches = (
            batch
            for group in range(self._file.num_row_groups)
            for batch in self._file.iter_batches(RUN_ROWS, row_groups=[group], columns=sorted(tops))
        )
        while True:
            try:
                batch = next(batches, None)
            except self._errors as error:
                raise RocstreamError(
                    f"{self.path} is damaged after row {offset}: {_brief(error)}"
                ) from error
            if batch is None:
                return
            yield TableRun(self, batch, offset)
            offset += batch.num_rows

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
        hint = "; another can be named with --key-field" if name == "key" else ""
        raise SettingsError(
            f'{self.path} has no column "{".".join(path)}" (event.{name}): it has '
            f"{', '.join(self.schema.names)}{hint}"
        )

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
    """Rows of a Parquet file that follow each other."""

    table: Table
    rows: Any
    first: int

    @property
    def last(self) -> int:
        """Offset to go on at."""
        return self.first + len(self)

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.rows.num_rows)

    def cut(self, start: int, stop: int) -> Run:
        """Return the rows with offsets in [start, stop)."""
        low = min(max(start - self.first, 0), len(self))
        high = max(min(stop - self.first, len(self)), low)
        return TableRun(self.table, self.rows.slice(low, high - low), self.first + low)

    def batches(self, reading: int) -> Iterator[Batch]:
        """Take the rows apart as the reading of this number says."""
        whole = self._whole(reading)
        if whole is not None:
            yield whole
            return
        yield from self.table.parsers[reading].batches(self._records(reading))

    def _column(self, path: tuple[str, ...]) -> Any:
        column = self.rows.column(path[0])
        return column if len(path) == 1 else _compute().struct_field(column, list(path[1:]))

    def _whole(self, reading: int) -> Batch | None:
        """Read the columns as they are; None where something is odd."""
        event = self.table.events[reading]
        paths = self.table.columns[reading]
        if event.labels or not len(self):
            return None
        label = self._column(paths["label"])
        known = _labels(label)
        scores = _numbers(self._column(paths["score"]))
        times = self._times(event, paths)
        weights = None if "weight" not in paths else _numbers(self._column(paths["weight"]))
        if known is None or scores is None or times is None:
            return None
        if "weight" in paths and (weights is None or not bool((weights > 0).all())):
            return None
        codes, names = self._keys(paths)
        if codes is None:
            return None
        columns = Columns(codes, names, scores, known, times, weights, self._offsets())
        if label.null_count:
            inside = np.flatnonzero(label.is_valid().to_numpy(zero_copy_only=False))
            columns = Columns(
                codes[inside],
                names,
                scores[inside],
                known[inside],
                times[inside],
                None if weights is None else weights[inside],
                columns.offsets[inside],
            )
        return batch_of(columns, len(self), self.last)

    def _offsets(self) -> Any:
        return np.arange(self.first, self.last)

    def _keys(self, paths: dict[str, tuple[str, ...]]) -> tuple[Any, list[str]]:
        """Return a number per row and the key that each number stands for; None if one is odd."""
        pa = _arrow()
        if "key" not in paths:
            if self.table.fixed is None:
                return None, []
            return np.zeros(len(self), np.int64), [self.table.fixed.decode()]
        column = self._column(paths["key"])
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if column.null_count or not (
            pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)
        ):
            return None, []
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        names = [str(name) for name in coded.dictionary.to_pylist()]
        if any(not 1 <= len(name.encode()) <= KEY_BYTES for name in names):
            return None, []
        return coded.indices.to_numpy().astype(np.int64), names

    def _times(self, event: EventSettings, paths: dict[str, tuple[str, ...]]) -> Any:
        pa = _arrow()
        if "time" not in paths:
            return np.full(len(self), self.table.timestamp)
        column = self._column(paths["time"])
        if column.null_count:
            return None
        if pa.types.is_timestamp(column.type):
            # Rounded down, as times of a finer unit in JSON are.
            times = column.cast(pa.timestamp("ns" if column.type.unit == "ns" else "us"))
            raw = times.cast(pa.int64()).to_numpy()
            times = raw // (1_000_000 if column.type.unit == "ns" else 1_000)
        elif pa.types.is_integer(column.type) and not pa.types.is_uint64(column.type):
            factor, divisor, _ = TIME_UNITS[event.time_unit]
            raw = column.to_numpy().astype(np.int64)
            if raw.size and (raw.max() > TIME_MAX * divisor // factor):
                return None
            times = raw * factor // divisor
        else:
            return None
        if times.size and (times.min() < 0 or times.max() > TIME_MAX):
            return None
        return times

    def _records(self, reading: int) -> Iterator[Record]:
        """Write each row as the JSON that a producer would have sent."""
        event = self.table.events[reading]
        paths = self.table.columns[reading]
        columns = [
            (getattr(event, name), _plain(self._column(path), name, event).to_pylist())
            for name, path in paths.items()
        ]
        table = self.table
        for at in range(len(self)):
            document: dict[str, Any] = {}
            for path, values in columns:
                inner = document
                for part in path[:-1]:
                    inner = inner.setdefault(part, {})
                inner[path[-1]] = values[at]
            value = json.dumps(document, default=str, ensure_ascii=False).encode()
            yield Record(self.first + at, table.timestamp, table.fixed, value)


def _numbers(column: Any) -> Any:
    """Return a column of finite numbers as doubles; None where it is another."""
    pa = _arrow()
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    kind = column.type
    if column.null_count or not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
        return None
    numbers = column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
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
    values = column.to_numpy(zero_copy_only=False)
    if not bool(((values == 0) | (values == 1)).all()):
        return None
    return values.astype(np.uint8)


def _plain(column: Any, name: str, event: EventSettings) -> Any:
    """Give times of Parquet's own type in the unit that the settings ask for."""
    pa = _arrow()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if name == "time" and pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp(event.time_unit), safe=False).cast(pa.int64())
    if pa.types.is_decimal(column.type):
        return column.cast(pa.float64())
    return column


def _brief(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".")
