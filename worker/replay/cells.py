"""CSV as events: whole columns where nothing in them is odd, else row by row as `send` has it.

The quick way takes only what a row by itself would give with the same outcome; whatever it does not
know (a short row, a score that is no number, a label that is no class) sends its piece of the rows
to the rules of ``worker.rows`` and through the parser.
"""

from __future__ import annotations

import csv
import io
import itertools
import zlib
from bisect import bisect_left
from dataclasses import dataclass, field
from operator import attrgetter
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np

from config.event import KEY_BYTES
from worker.events import Batch, Parser, Rejection
from worker.events.fields import Fields
from worker.events.reasons import RefusedError
from worker.events.record import Taken
from worker.replay.grouping import Columns, Stretch, batches, heavy_enough
from worker.replay.lines import more
from worker.replay.records import RecordRun
from worker.rows import NO_TEXT, Keys, Shape, header_of, is_text, label_of, time_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from config import EventSettings
    from worker.events import Stop
    from worker.replay.lines import Lines
    from worker.replay.records import Run

FIRST_ROWS: Final = 1 << 13
MOST_ROWS: Final = 1 << 16
"""Rows read at once: few at first, so that something is seen of them soon, then ever more."""

MOST_CELLS: Final = 1 << 19
"""Cells read at once, where rows have many."""

PIECE_ROWS: Final = 1 << 10
"""Rows that go through the rules together where something among them is odd."""

BAD_ROW: Final = "bad_row"

_CLASSES: Final = 256
"""Different labels of a file that are remembered: more than that are no labels."""

_EXACT: Final = 1 << 53
"""Below, integers are the same as doubles."""

_UNLABELLED: Final = -1
_ODD: Final = -2

_offset = attrgetter("offset")

# What a file that breaks off raises; what it held before is delivered all the same.
_BREAKS: Final = (EOFError, OSError, zlib.error)


@dataclass(frozen=True, slots=True)
class RowRun:
    """Rows of a CSV: those that are records, by reading, and the refused ones of the first."""

    good: tuple[Stretch | RecordRun, ...]
    bad: Sequence[Rejection]
    first: int
    last: int

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.last - self.first

    def cut(self, start: int, stop: int) -> Run:
        """Return the rows with offsets in [start, stop)."""
        first = min(max(start, self.first), self.last)
        return RowRun(
            tuple(good.cut(start, stop) for good in self.good),
            [one for one in self.bad if start <= one.offset < stop],
            first,
            max(min(stop, self.last), first),
        )

    def batches(
        self, reading: int, watermark: int = -1, stop: Callable[[], Stop | None] | None = None
    ) -> Iterator[Batch]:
        """Take the rows apart; what is refused comes in the order of the rows."""
        return batches(self.parts(reading, watermark, stop), watermark, stop)

    def parts(
        self, reading: int, watermark: int = -1, stop: Callable[[], Stop | None] | None = None
    ) -> Iterator[Stretch | Batch]:
        """Take the rows apart; what is read by columns is not grouped yet, nor cut at stops."""
        good = self.good[reading]
        if isinstance(good, RecordRun):
            bad = [] if reading else list(self.bad)
            for batch in good.batches(reading, watermark, stop):
                before = bisect_left(bad, batch.offset, key=_offset)
                yield _refusing(batch, bad[:before])
                bad = bad[before:]
            if bad:
                yield _refusing(Batch(offset=self.last), bad)
        elif good.first < good.last:
            yield good


def _refusing(batch: Batch, bad: Sequence[Rejection]) -> Batch:
    """Return a batch with refused rows among its records."""
    if bad:
        batch.rejections = sorted([*batch.rejections, *bad], key=_offset)
        for name in ("records", "rejected", f"rejected.{BAD_ROW}"):
            batch.counts[name] += len(bad)
    return batch


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows that are not blank: cell behind cell, which is less for the collector than lists are.

    Attributes
    ----------
    width
        Cells of a row.
    cells
        Of all rows; empty ones where a row is none.
    lines
        The line that each row ends in.
    errors
        By number, why a row is none.
    """

    width: int
    cells: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    errors: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.lines)

    def __iter__(self) -> Iterator[list[str]]:
        for start in range(0, len(self.cells), self.width):
            yield self.cells[start : start + self.width]

    def column(self, number: int) -> list[str]:
        return self.cells[number :: self.width]

    def bad(self, line: int, why: str) -> None:
        self.errors[len(self.lines)] = why
        self.cells.extend([""] * self.width)
        self.lines.append(line)

    def refuse_bytes(self) -> None:
        """Make none of the rows whose bytes are no text, which came as lone surrogates."""
        if is_text(self.cells):
            return
        for at, row in enumerate(self):
            if not is_text(row):
                self.errors[at] = NO_TEXT
                self.cells[at * self.width : (at + 1) * self.width] = [""] * self.width

    def note(self, known: Lines, offset: int) -> None:
        plain = self.lines[-1] - self.lines[0] == len(self.lines) - 1
        for at, line in enumerate(self.lines[:1] if plain else self.lines, offset):
            known.note(at, line)
        known.last = self.lines[-1]

    def piece(self, start: int) -> _Rows:
        stop = start + PIECE_ROWS
        return _Rows(
            self.width,
            self.cells[start * self.width : stop * self.width],
            self.lines[start:stop],
            {at - start: why for at, why in self.errors.items() if start <= at < stop},
        )


def runs(
    file: IO[bytes],
    name: str,
    events: Sequence[EventSettings],
    fixed: bytes | None,
    timestamp: int,
    known: Lines,
) -> Iterator[Run]:
    """Yield the rows below the header in runs.

    Parameters
    ----------
    file, name
        The file, and its name for sentences.
    events
        The ways to read it.
    fixed, timestamp
        The key of all rows, if they have one, and the timestamp that each record gets.
    known
        Learns in which line each row ends.

    Raises
    ------
    SettingsError
        When a column that the settings name is missing.
    """
    piped = None if file.seekable() else _Piped(file)
    raw: Any = piped or file
    # What is no UTF-8 is for its row to answer for, not for the rest.
    with io.TextIOWrapper(raw, "utf-8-sig", "surrogateescape", newline="") as text:
        reader = csv.reader(text, strict=True)
        header = header_of(reader, name)
        parsers = [Parser(event) for event in events]
        ways = [_Way(header, name, event, fixed, timestamp) for event in events]
        offset = 0
        for rows in _read(reader, len(header), piped):
            rows.note(known, offset)
            for run in _runs(rows, offset, ways, parsers):
                yield run
                offset = run.last


class _Piped(io.BufferedIOBase):
    """A file that perhaps has nothing to read for now, and counts the lines read so far."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file, self._ends = file, 0

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def read1(self, size: int = -1, /) -> bytes:
        """Read what is there."""
        part: bytes = self._file.read1(size)  # type: ignore[attr-defined]
        self._ends += part.count(b"\n")
        return part

    def waits(self, line: int) -> bool:
        """Tell whether there is nothing for now behind a line."""
        return line >= self._ends and not more(self._file)


def _read(reader: Any, width: int, piped: _Piped | None) -> Iterator[_Rows]:
    """Yield rows, ever more at once; those before a failure come before it."""
    limit = min(MOST_ROWS, max(MOST_CELLS // width, PIECE_ROWS))
    most, ended = min(FIRST_ROWS, limit), False
    while not ended:
        rows = _Rows(width)
        failure: BaseException | None = None
        while not ended and len(rows) < most:
            try:
                ended = _take(reader, rows, most, piped)
                break
            except csv.Error as error:
                rows.bad(reader.line_num, f"not CSV: {error}")
            except _BREAKS as error:
                failure, ended = error, True
        if len(rows):
            rows.refuse_bytes()
            yield rows
        if failure is not None:
            raise failure
        most = min(2 * most, limit)


def _take(reader: Any, rows: _Rows, most: int, piped: _Piped | None) -> bool:
    """Take rows until there are so many, or no more for now; tell whether the file ended."""
    width, cells, lines = rows.width, rows.cells, rows.lines
    for row in reader:
        if len(row) == width:
            cells += row
            lines.append(reader.line_num)
        elif row:
            rows.bad(reader.line_num, _odd(row, width))
        if len(lines) >= most or (piped is not None and piped.waits(reader.line_num)):
            return False
    return True


def _odd(row: list[str], width: int) -> str:
    return f"{len(row)} cells under {width} columns" if is_text(row) else NO_TEXT


def _runs(
    rows: _Rows, offset: int, ways: Sequence[_Way], parsers: Sequence[Parser]
) -> Iterator[RowRun]:
    last = offset + len(rows)
    stretches = [way.stretch(rows, offset) for way in ways]
    quick = tuple(stretch for stretch in stretches if stretch is not None)
    if len(quick) == len(ways):
        yield RowRun(quick, [], offset, last)
    elif len(rows) > PIECE_ROWS:
        for start in range(0, len(rows), PIECE_ROWS):
            yield from _runs(rows.piece(start), offset + start, ways, parsers)
    else:
        good, bad = zip(*(way.records(rows, offset) for way in ways), strict=True)
        yield RowRun(tuple(RecordRun(one, last, parsers) for one in good), bad[0], offset, last)


class _Way:
    """One way to read rows."""

    def __init__(
        self,
        header: list[str],
        name: str,
        event: EventSettings,
        fixed: bytes | None,
        timestamp: int,
    ) -> None:
        keys = Keys(None, event.key) if isinstance(event.key, tuple) else Keys(fixed, ())
        self._shape = Shape(header, name, event, keys)
        self._event = event
        self._fixed, self._timestamp = fixed, timestamp
        self._fields = Fields(event)
        self._classes: dict[str, int] = {}
        self._numbers = {column.path: column.number for column in self._shape.columns}
        paths = [column.path for column in self._shape.columns]
        if isinstance(event.key, tuple):
            paths.append(event.key)
        # Options may name one field twice, of which the row then has the last.
        self._apart = not any(
            one[: len(other)] == other for one, other in itertools.permutations(paths, 2)
        )

    def records(self, rows: _Rows, first: int) -> tuple[list[Taken], list[Rejection]]:
        """Take rows one by one: the records, and what is none."""
        good: list[Taken] = []
        bad: list[Rejection] = []
        for number, row in enumerate(rows):
            built = rows.errors.get(number) or self._shape.event(row)
            at = first + number
            if isinstance(built, str):
                bad.append(Rejection(None, None, at, BAD_ROW, built))
            else:
                good.append(Taken(at, self._timestamp, self._fixed, built.value))
        return good, bad

    def stretch(self, rows: _Rows, first: int) -> Stretch | None:
        """Take rows by columns; None where something is odd."""
        if rows.errors or not self._apart:
            return None
        labels = self._labels(rows)
        if labels is None:
            return None
        scores = _numbers(self._column(rows, self._event.score))
        times = self._times(rows)
        coded = self._keys(rows)
        if scores is None or times is None or coded is None:
            return None
        weights = None
        if self._event.weight is not None:
            weights = _numbers(self._column(rows, self._event.weight), blank="1")
            if weights is None or not heavy_enough(weights):
                return None
        last = first + len(rows)
        known = labels.astype(np.uint8)
        offsets = np.arange(first, last)
        columns = Columns(*coded, scores, known, times, weights, offsets)
        if bool((labels < 0).any()):
            columns = columns.chosen(np.flatnonzero(labels >= 0))
        return Stretch(columns, first, last)

    def _column(self, rows: _Rows, path: tuple[str, ...]) -> list[str]:
        return rows.column(self._numbers[path])

    def _keys(self, rows: _Rows) -> tuple[NDArray[Any], list[str]] | None:
        at = self._shape.key_column
        if at is None:
            return np.zeros(len(rows), np.int64), [(self._fixed or b"").decode()]
        keys = rows.column(at)
        known = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        if any(not 1 <= len(key.encode()) <= KEY_BYTES for key in known):
            return None
        return np.fromiter(map(known.__getitem__, keys), np.int64, len(keys)), list(known)

    def _labels(self, rows: _Rows) -> NDArray[np.int8] | None:
        """Return the classes, negative for none yet; None where one is unknown."""
        cells, known = self._column(rows, self._event.label), self._classes
        for cell in set(cells) - known.keys():
            if len(known) >= _CLASSES:
                return None
            known[cell] = self._class(cell)
        labels = np.fromiter(map(known.__getitem__, cells), np.int8, len(cells))
        return None if bool((labels == _ODD).any()) else labels

    def _class(self, cell: str) -> int:
        if not cell.strip():
            return _UNLABELLED
        try:
            return self._fields.label(label_of(cell, self._event))
        except RefusedError:
            return _ODD

    def _times(self, rows: _Rows) -> NDArray[np.int64] | None:
        """Return a time in ms for each row; None where one is odd."""
        path = self._event.time
        if not isinstance(path, tuple):
            return np.full(len(rows), self._timestamp)
        cells = self._column(rows, path)
        # Python takes 1_000 for a number, and finer ones than doubles for integers.
        raw: NDArray[Any] | None
        try:
            raw = np.fromiter(map(int, cells), np.int64, len(cells))
            if "_" in "".join(cells):
                return None
        except OverflowError:
            return None
        except ValueError:
            raw = self._dates(cells)
        if raw is None or bool((raw < 0).any()) or bool((raw >= _EXACT).any()):
            return None
        times = raw.astype(np.int64) * self._fields.factor // self._fields.divisor
        return None if bool((times > self._fields.latest(self._timestamp)).any()) else times

    def _dates(self, cells: list[str]) -> NDArray[Any] | None:
        """Return ISO times, or numbers with a point, in the unit; None where one is odd."""
        unit = self._event.time_unit
        try:
            times = np.array([time_of(cell, unit) for cell in cells], np.float64)
        except ValueError:
            return None
        return times if bool((times == np.floor(times)).all()) else None


def _numbers(cells: list[str], blank: str | None = None) -> NDArray[np.float64] | None:
    """Return finite numbers; None where one is another, or would lose its sign on the way.

    `blank` is what an empty cell stands for.
    """
    try:
        numbers = np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        if blank is None or all(map(str.strip, cells)):
            return None
        return _numbers([cell if cell.strip() else blank for cell in cells])
    # Row by row, -0 is an integer, which has no sign; and 1_000 is no number.
    odd = not np.isfinite(numbers).all() or (np.signbit(numbers) & (numbers == 0)).any()
    return None if odd or "_" in "".join(cells) else numbers
