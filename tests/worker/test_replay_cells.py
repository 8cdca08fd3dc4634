"""CSV by columns: exactly what the rows give one by one."""

from __future__ import annotations

import gzip
import io
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from config import EventSettings
from config.errors import RocstreamError
from worker.cli import rows
from worker.events import Parser
from worker.events.record import Taken
from worker.replay import cells
from worker.replay.files import Member, opened
from worker.replay.grouping import Stretch
from worker.replay.lines import Lines
from worker.rows import Keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from worker.events import Batch

TIME_MAX = 253_402_300_799_999
WEIGHTED = EventSettings(key=("key",), time=("time",), weight=("weight",))
WAYS = [
    EventSettings(key=("key",), time=("time",)),
    WEIGHTED,
    WEIGHTED.model_copy(update={"time_unit": "s"}),
    WEIGHTED.model_copy(update={"time_unit": "us", "labels": {"no": 0, "yes": 1}}),
    EventSettings(key=("key",), labels={"1": 0, "2": 1, "": 1}),
    EventSettings(key=("key",), score=("score", "inner")),
]
HEADER = ["score", "key", "score.inner", "label", "time", "weight", "other"]

number = st.sampled_from(["0", "1", "0.5", "12", "-3.25", "1e-3", " 7 ", "+2", ".5", "1e22"])
whole = st.sampled_from(["0", "7", "1764460800", " 12 ", "+3", "2.0", "007", "2025-11-30T06:00Z"])
plain = st.tuples(
    number,
    st.sampled_from(["a", "007", "NA", "\u00e9"]),
    number,
    st.sampled_from(["0", "1", "1", "1.0", "", "2"]),
    whole,
    st.sampled_from(["1", "0.5", "3", ""]),
    st.just("x"),
).map(list)
ODD = [
    *("", " ", "NA", "nan", "inf", "1_0", "-0", "-0.0", "007", "0x1", "1e999", "5e-324", "\u0661"),
    *("9007199254740993", "12345678901234567890", "00000000000000000000012", "2.0", "1.5", "\0"),
    *("true", "yes", "no", "2", "a,b", 'say "x"', "two\nlines", "two\r\nlines", "cr\rhere", "é"),
    *("2025-11-30", "2025-11-30T06:00:00Z", "2025-11-30T06:00:00.25+01:00", "1969-12-31T00:00Z"),
    *("2025-11-30T06:00:00", "30.11.2025", "1764460800000", "-5", "253402300800000", "x" * 1_100),
]
odd = st.sampled_from(ODD)
cell = st.one_of(number, whole, odd)


def _changed(row: list[str], at: int, value: str) -> list[str]:
    return [*row[:at], value, *row[at + 1 :]]


row = st.one_of(
    plain,
    plain,
    st.tuples(plain, st.integers(0, 6), odd).map(lambda one: _changed(*one)),
    st.lists(cell, min_size=len(HEADER), max_size=len(HEADER)),
    st.lists(cell, max_size=len(HEADER) + 1),
)


def written(table: Sequence[Sequence[str]], ends: Sequence[str], quoted: Sequence[bool]) -> str:
    text = []
    for number, one in enumerate(table):
        always = quoted[number % len(quoted)]
        text.append(",".join(_quoted(value, always=always) for value in one))
        text.append(ends[number % len(ends)])
    return "".join(text)


def _quoted(value: str, *, always: bool) -> str:
    if always or any(sign in value for sign in ',"\r\n'):
        return '"' + value.replace('"', '""') + '"'
    return value


def one_by_one(
    raw: bytes, event: EventSettings, fixed: bytes | None, timestamp: int
) -> Iterator[Batch]:
    """What the rows give without any column."""
    keys = Keys(None, event.key) if isinstance(event.key, tuple) else Keys(fixed, ())
    found = list(rows.from_csv(io.BytesIO(raw), "x.csv", event, keys))
    records = []
    refused = cells.Batch()
    for offset, one in enumerate(found):
        if isinstance(one, rows.Bad):
            refused.rejections.append(cells.Rejection(None, None, offset, "bad_row", one.why))
        else:
            records.append(Taken(offset, timestamp, fixed, one.value))
    count = len(refused.rejections)
    refused.counts.update({"records": count, "rejected": count, "rejected.bad_row": count})
    yield refused
    yield from Parser(event).batches(records)


def told(batches: Iterator[Batch]) -> tuple[Any, ...]:
    """All that batches say, whatever their cuts."""
    events: dict[str, list[Any]] = {}
    counts: Counter[str] = Counter()
    rejections = []
    watermark = -1
    for batch in batches:
        counts += batch.counts
        rejections += batch.rejections
        watermark = max(watermark, batch.watermark)
        for key, found in batch.keys.items():
            size = len(found)
            weights = [1.0] * size if found.weights is None else list(map(float, found.weights))
            columns = [list(map(repr, map(float, found.scores))), weights]
            whole = (found.labels, found.times, found.offsets, found.indexes[:size])
            columns += [list(map(int, column)) for column in whole]
            events.setdefault(key, []).extend(zip(*columns, strict=True))
    return events, counts, sorted(rejections, key=lambda one: one.offset), watermark


def by_columns(raw: bytes, *given: Any, reading: int = 0) -> Iterator[Batch]:
    for run in cells.runs(io.BytesIO(raw), "x.csv", *given, Lines()):
        yield from run.batches(reading)


@given(
    st.lists(
        st.sampled_from(
            ["k,1,1", "k,1,2", "k,1", '"a\nb",1,3', "", '"k,1', "ü,1,1", "\udcff,1,1", "k,\udcff"]
        )
    ),
    st.integers(1, 4),
)
def test_each_refused_row_is_known_by_the_line_it_ends_in(table: list[str], first: int) -> None:
    raw = "\n".join(["key,score,label", *table, ""]).encode(errors="surrogateescape")
    event, known = EventSettings(key=("key",)), Lines()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "FIRST_ROWS", first)
        runs = list(cells.runs(io.BytesIO(raw), "x.csv", [event], None, 0, known))
    found = rows.from_csv(io.BytesIO(raw), "x.csv", event, Keys(None, ("key",)))
    bad = {at: (one.line, one.why) for at, one in enumerate(found) if isinstance(one, rows.Bad)}
    refused = [one for run in runs for batch in run.batches(0) for one in batch.rejections]
    told = {
        one.offset: (known.number(one.offset), one.sentence)
        for one in refused
        if one.code == "bad_row"
    }
    assert told == bad


@given(
    st.lists(row, max_size=12),
    st.lists(st.sampled_from(["\n", "\r\n", "\n", "\r", "\n\n"]), min_size=1, max_size=3),
    st.lists(st.booleans(), min_size=1, max_size=3),
    st.sampled_from([*WAYS, None]),
    st.sampled_from(["", "\ufeff"]),
    st.sampled_from(["", '"', '0,"open\n0', '0,"x"y,1\n1,2\n', "0,1"]),
)
@example([["1"] * 7] * 12, ["\r\n"], [True], WAYS[1], "\ufeff", "")
def test_columns_give_what_the_rows_give_one_by_one(
    table: list[list[str]],
    ends: list[str],
    quoted: list[bool],
    event: EventSettings | None,
    bom: str,
    rest: str,
) -> None:
    raw = (bom + written([HEADER, *table], ends, quoted) + rest).encode()
    way, fixed = (EventSettings(), b"all") if event is None else (event, None)
    timestamp = TIME_MAX if isinstance(way.time, tuple) else 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "FIRST_ROWS", 4)
        patch.setattr(cells, "PIECE_ROWS", 2)
        found = told(by_columns(raw, [way], fixed, timestamp))
    assert found == told(one_by_one(raw, way, fixed, timestamp))


def test_every_reading_of_the_same_rows_is_what_it_is_alone() -> None:
    raw = b"key,score,other,label,time,weight\n" + b"".join(
        b"%d,0.%d,%s,%d,%d,1\n" % (n % 3, n % 7, b"x" if n == 70 else b"2", n % 2, n)
        for n in range(100)
    )
    first = WAYS[0]
    other = first.model_copy(update={"score": ("other",)})
    for reading, way in enumerate((first, other)):
        found = told(by_columns(raw, [first, other], None, TIME_MAX, reading=reading))
        alone = told(one_by_one(raw, way, None, TIME_MAX))
        assert found[0] == alone[0]
        assert len(found[2]) == 0


def test_a_field_that_options_name_twice_goes_row_by_row() -> None:
    raw = b"key,score,label\n1,0.5,1\n2,0.25,0\n"
    twice = EventSettings().model_copy(update={"key": ("score",)})
    [run] = cells.runs(io.BytesIO(raw), "x.csv", [twice], None, 0, Lines())
    assert not any(isinstance(part, Stretch) for part in run.parts(0))
    assert told(run.batches(0)) == told(one_by_one(raw, twice, None, 0))


def test_plain_rows_are_read_by_columns_and_cut_where_asked() -> None:
    raw = b"key,score,label\n" + b"".join(b"k%d,0.5,%d\n" % (n % 2, n % 2) for n in range(10))
    [run] = cells.runs(io.BytesIO(raw), "x.csv", [EventSettings(key=("key",))], None, 0, Lines())
    [part] = run.parts(0)
    assert isinstance(part, Stretch)
    [inner] = run.cut(3, 7).parts(0)
    assert isinstance(inner, Stretch)
    assert inner.columns.offsets.tolist() == [3, 4, 5, 6]
    assert (inner.first, inner.last) == (3, 7)
    assert not list(run.cut(20, 30).parts(0))


def test_rows_before_a_break_are_delivered_before_it_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.gz"
    # Stored as it is, so that what is cut off is rows.
    path.write_bytes(gzip.compress(b"key,score,label\n" + b"k,0.5,1\n" * 20_000, 0)[:-5_000])
    taken: list[int] = []

    def read() -> None:
        with opened(Member(str(path), "csv", 1), Lines()) as (file, _):
            for run in cells.runs(file, "x.csv", [EventSettings(key=("key",))], None, 0, Lines()):
                taken.append(len(run))  # noqa: PERF401 - they count when it raises as well

    with pytest.raises(RocstreamError, match="is cut short"):
        read()
    assert sum(taken) > 19_000


@given(
    st.lists(st.sampled_from(["k,1,1", "k,1", "k,x,1", ",1,0", "k,0.5,7"]), max_size=40),
    st.integers(1, 8),
    st.integers(1, 8),
)
def test_what_is_refused_comes_in_the_order_of_the_rows_however_they_are_cut(
    table: list[str], rows_at_once: int, piece: int
) -> None:
    raw = "\n".join(["key,score,label", *table, ""]).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "FIRST_ROWS", rows_at_once)
        patch.setattr(cells, "PIECE_ROWS", piece)
        found = list(by_columns(raw, [EventSettings(key=("key",))], None, 0))
    refused = [one.offset for batch in found for one in batch.rejections]
    assert refused == [at for at, row in enumerate(table) if row != "k,1,1"]
    assert all(one.offset < batch.offset for batch in found for one in batch.rejections)
    assert sum(batch.counts["records"] for batch in found) == len(table)
