"""Runs of a replay say what the parser says of their records, however they are cut."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pyarrow import parquet as parquet_files

from config import EventSettings
from config.errors import SettingsError
from worker.events import Parser, Stop, native
from worker.events.record import Taken
from worker.replay import parquet
from worker.replay.files import timestamp_of
from worker.replay.records import LineRun, RecordRun

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from worker.events import Batch

SETTINGS = [
    EventSettings(key=("key",)),
    EventSettings(),
    EventSettings(key=("key",), time=("time",), time_unit="s", weight=("weight",)),
    EventSettings(key=("key",), time=("time",), time_unit="us"),
    EventSettings(key=("key",), labels={"fraud": 1, "ok": 0}),
    EventSettings(key=("a", "key"), numbers_as_text=True),
]
ODD = [
    *(b"{", b"[]", b"1", b'{"key":"k"}', b'\xef\xbb\xbf{"score":1,"label":1}', b"\xff"),
    *(b'{"key":"k","score":1,"label":1},{"key":"k","score":1,"label":1}', b'{"key":[{}', b"{}]}"),
    *(b'{"heartbeat":true,"time":5}', b'{"key":"k","score":1,"label":1,"he\\u0061rtbeat":true}'),
    *(b'{"key":"k","score":NaN,"label":1}', b'{"key":"","score":1,"label":1}'),
    *(b'{"key":"k","score":[1,2],"label":[0,1]}', b'{"key":7,"score":1,"label":0}'),
    b'{"key":"k","score":true,"label":1}',
]
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "key": st.sampled_from(["a", "b", "c", "007"]),
    "score": st.sampled_from([0, 1, 0.5, -3.25, 2**63]),
    "label": st.sampled_from([0, 1, 0, 1, None]),
    "time": st.integers(0, 2_000_000_000),
    "weight": st.sampled_from([1, 1, 2.5]),
}
RARE: dict[str, st.SearchStrategy[Any]] = {
    "key": st.sampled_from([None, 7, "x" * 2_000]),
    "score": st.sampled_from(["1", None, False]),
    "label": st.sampled_from([2, True, "fraud", 1.0]),
    "time": st.sampled_from([-1, 1.5, 2**62, None]),
    "weight": st.sampled_from([0, -1, "2"]),
}
PARQUET_TYPES = pa.schema(
    [
        ("key", pa.string()),
        ("score", pa.float64()),
        ("label", pa.int64()),
        ("time", pa.int64()),
    ]
)
GOOD = st.fixed_dictionaries(VALUES)
LINE = st.one_of(
    GOOD,
    GOOD,
    st.tuples(GOOD, st.sampled_from(list(RARE)).flatmap(lambda n: st.tuples(st.just(n), RARE[n]))),
    st.sampled_from(ODD),
)


def written(line: Any) -> bytes:
    if isinstance(line, bytes):
        return line
    if isinstance(line, tuple):
        line = line[0] | dict([line[1]])
    return orjson.dumps(line)


def told(batches: Iterable[Batch]) -> Any:
    """All that batches say, however they are cut."""
    keys: dict[str, list[Any]] = {}
    counts: Counter[str] = Counter()
    rejections: list[Any] = []
    watermark = offset = -1
    for batch in batches:
        for key, events in batch.keys.items():
            weights = events.weights if events.weights is not None else [1.0] * len(events)
            for at in range(len(events)):
                row = (events.scores[at], events.labels[at], events.times[at], weights[at])
                place = (events.offsets[at], events.indexes[at])
                keys.setdefault(key, []).append((*map(float, row), *place))
        counts.update(batch.counts)
        rejections += batch.rejections
        watermark, offset = max(watermark, batch.watermark), batch.offset
    return list(keys.items()), +counts, rejections, watermark, offset


@pytest.mark.parametrize("event", SETTINGS)
@given(lines=st.lists(LINE, min_size=1, max_size=12))
@hypothesis_settings(max_examples=40, deadline=None)
def test_lines_are_read_as_records_are(event: EventSettings, lines: list[Any]) -> None:
    texts = [written(line) for line in lines]
    timestamp = timestamp_of(event)
    run = LineRun(b"\n".join(texts), len(texts), 5, [Parser(event)], b"fixed", timestamp)
    records = [Taken(at, timestamp, b"fixed", text) for at, text in enumerate(texts, 5)]
    assert told(run.batches(0)) == told(Parser(event).batches(records))
    assert told(run.cut(6, 9).batches(0)) == told(Parser(event).batches(records[1:4]))


@given(st.lists(st.sampled_from([b"{}", b"", b" {}", b"\t", b"\x0c", b"x\r"]), min_size=1))
def test_lines_are_counted_where_none_begins_with_a_blank(found: list[bytes]) -> None:
    odd = any(line[:1] in b" \t\x0c" for line in found)
    for compiled in {False, native.COMPILED}:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(native, "COMPILED", compiled)
            assert native.count_lines(b"\n".join(found)) == (-1 if odd else len(found))


def test_records_of_a_topic_are_cut_by_their_offsets() -> None:
    event = EventSettings()
    value = b'{"score": 1, "label": 1}'
    records = [Taken(at, 5, b"k", value) for at in (3, 4, 7, 9)]
    run = RecordRun(records, 12, [Parser(event)])
    assert (run.first, run.last, len(run)) == (3, 12, 4)
    assert told(run.cut(4, 9).batches(0)) == told(Parser(event).batches(records[1:3]))
    assert run.cut(4, 9).last == 9


@given(
    times=st.lists(st.integers(0, 60), min_size=1, max_size=30),
    step=st.integers(1, 20),
    unlabelled=st.lists(st.booleans(), min_size=30, max_size=30),
)
@hypothesis_settings(max_examples=60, deadline=None)
def test_rows_of_parquet_end_batches_where_records_do(
    times: list[int],
    step: int,
    unlabelled: list[bool],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    rows = [
        {"key": f"k{at % 3}", "score": 0.5, "label": None if without else at % 2, "time": time}
        for at, (time, without) in enumerate(zip(times, unlabelled, strict=False))
    ]
    path: Path = tmp_path_factory.mktemp("rows") / "x.parquet"
    parquet_files.write_table(pa.Table.from_pylist(rows, PARQUET_TYPES), path)
    event = EventSettings(key=("key",), time=("time",))
    (run,) = parquet.Table(str(path), [event], None, timestamp_of(event)).runs()
    records = [
        Taken(at, timestamp_of(event), None, orjson.dumps(row)) for at, row in enumerate(rows)
    ]

    def ends(batches: Any) -> list[Any]:
        found = []

        def stop() -> Stop:
            time = (clock[0] // step + 1) * step
            return Stop(time, clock[0] - 9, time - 9)

        for batch in batches(-1, stop):
            clock[0] = max(clock[0], batch.watermark)
            found.append((batch.offset, batch.watermark, list(batch.keys), +batch.counts))
        return found

    clock = [-1]
    expected = ends(
        lambda watermark, stop: Parser(event).batches(records, watermark=watermark, stop=stop)
    )
    clock = [-1]
    assert ends(lambda watermark, stop: run.batches(0, watermark, stop)) == expected


@pytest.mark.parametrize("event", SETTINGS[:5])
@given(
    rows=st.lists(
        st.fixed_dictionaries(
            {
                **VALUES,
                "score": st.sampled_from([0.0, 0.5, None, float("nan")]),
                "weight": st.sampled_from([1.0, 2.5, 0.0]),
            }
        ),
        min_size=1,
        max_size=8,
    )
)
@hypothesis_settings(max_examples=15, deadline=None)
def test_columns_of_parquet_are_read_as_rows_are(
    event: EventSettings, rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path: Path = tmp_path_factory.mktemp("rows") / "x.parquet"
    parquet_files.write_table(pa.Table.from_pylist(rows), path)
    table = parquet.Table(str(path), [event], b"fixed", timestamp_of(event))
    (run,) = table.runs()
    assert isinstance(run, parquet.TableRun)
    read = parquet._Rows(table, 0, table.read(0, len(rows)), 0)
    expected = told(Parser(event).batches(read.records()))
    assert told(run.batches(0)) == expected


def test_times_of_parquet_come_in_its_own_units(tmp_path: Path) -> None:
    event = EventSettings(key=("key",), time=("time",), time_unit="s")
    for unit, factor in (("s", 1), ("ms", 1_000), ("us", 1_000_000), ("ns", 1_000_000_000)):
        times = pa.array([1_764_460_000 * factor + 1] * 3, pa.timestamp(unit, "UTC"))
        columns = {"key": ["a", "b", "a"], "score": [1.0, 2.0, 3.0], "label": [1, 0, 1]}
        parquet_files.write_table(pa.table({**columns, "time": times}), tmp_path / "x.parquet")
        table = parquet.Table(str(tmp_path / "x.parquet"), [event], None, 0)
        (run,) = table.runs()
        (batch,) = run.batches(0)
        assert batch.watermark // 1_000 == 1_764_460_000 + (unit == "s")


def test_rows_are_the_same_however_a_parquet_file_is_cut(tmp_path: Path) -> None:
    count = 1_000
    columns = {
        "key": [f"k{at % 7 if at < 600 else at}" for at in range(count)],
        "score": [at / 10 for at in range(count)],
        "label": [at % 3 == 0 for at in range(count)],
    }
    parquet_files.write_table(pa.table(columns), tmp_path / "x.parquet", row_group_size=90)
    event = EventSettings(key=("key",))
    before = parquet.RUN_ROWS
    parquet.RUN_ROWS = 200
    try:
        table = parquet.Table(str(tmp_path / "x.parquet"), [event], None, 0)
        runs = list(table.runs())
        whole = told(batch for run in runs for batch in run.batches(0))
        assert [(run.first, run.last) for run in runs][-1][1] == count
        assert max(map(len, runs)) <= 200
        # Backwards, in pieces, and some twice, as spans and stops ask for them.
        for run in reversed(runs):
            assert told(run.cut(run.last - 5, run.last).batches(0))[1]["records"] == 5
        pieces = [run.cut(at, at + 13) for run in runs for at in range(run.first, run.last, 13)]
        assert told(batch for run in pieces for batch in run.batches(0)) == whole
    finally:
        parquet.RUN_ROWS = before
    read = [key for key, rows in whole[0] for _ in rows]
    assert sorted(read) == sorted(columns["key"])


def test_keys_that_a_dictionary_holds_twice_are_one_key(tmp_path: Path) -> None:
    event = EventSettings(key=("key",))
    keys = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0]), pa.array(["a", "b", "a"]))
    table = pa.table({"key": keys, "score": [1.0, 2.0, 3.0, 4.0], "label": [1, 0, 1, 0]})
    parquet_files.write_table(table, tmp_path / "x.parquet")
    (run,) = parquet.Table(str(tmp_path / "x.parquet"), [event], None, 0).runs()
    (batch,) = run.batches(0)
    assert list(batch.keys["a"].scores) == [1.0, 3.0, 4.0]
    assert list(batch.keys["b"].scores) == [2.0]


def test_a_long_parquet_file_takes_no_more_memory_than_a_short_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = 2_000_000
    table = pa.table({"key": ["k"] * rows, "score": rng.normal(size=rows), "label": [0] * rows})
    parquet_files.write_table(table, tmp_path / "x.parquet", row_group_size=50_000)
    del table
    before = pa.total_allocated_bytes()
    event = EventSettings(key=("key",))
    read = parquet.Table(str(tmp_path / "x.parquet"), [event], None, 0)
    most = max(pa.total_allocated_bytes() for run in read.runs() for _ in run.batches(0))
    assert most - before < 30_000_000


KINDS = [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2), pa.large_string()]


@pytest.mark.parametrize("kind", [*KINDS, pa.dictionary(pa.int32(), pa.binary())])
def test_keys_written_as_bytes_are_the_text_that_they_spell(tmp_path: Path, kind: Any) -> None:
    event, path = EventSettings(key=("key",)), tmp_path / "x.parquet"

    def read(keys: pa.Array) -> Any:
        table = pa.table({"key": keys, "score": [0.1, 0.2, 0.3], "label": [0, 1, 0]})
        parquet_files.write_table(table, path)
        (run,) = parquet.Table(str(path), [event], None, 0).runs()
        return told(run.batches(0))

    texts = pa.array(["ab", "ü", "ab"])
    assert read(texts.cast(pa.binary()).cast(kind)) == read(texts)
    if kind != pa.large_string():
        keys, counts, rejections, *_ = read(pa.array([b"ab", b"\xff\xfe", b"ab"]).cast(kind))
        assert ([key for key, _ in keys], counts["rejected"]) == (["ab"], 1)
        assert (rejections[0].code, b"\xff\xfe" in rejections[0].value) == ("not_utf8", True)


def test_two_columns_of_one_name_are_told_as_such(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    columns = [pa.array([one]) for one in ("k", 0.1, 0.2, 1)]
    names = ["key", "score", "score", "label"]
    parquet_files.write_table(pa.Table.from_arrays(columns, names=names), path)
    with pytest.raises(SettingsError, match='has two columns "score": rename one'):
        parquet.Table(str(path), [EventSettings(key=("key",))], None, 0)
