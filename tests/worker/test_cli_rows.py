"""Lines of files as records: what `send` makes of JSON and CSV, and what it says of bad lines."""

from __future__ import annotations

import gzip
import io
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from config import EventSettings
from config.errors import RocstreamError, SettingsError
from worker.cli import rows, sources
from worker.cli.rows import Bad
from worker.cli.sources import Format
from worker.events import Parser
from worker.replay.lines import Lines, runs
from worker.rows import Event, Keys

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from worker.cli.sources import Source

OWN_KEY = EventSettings()
NESTED = EventSettings(
    key="model.name",
    score='model."p.fraud"',
    label="outcome",
    time="at",
    weight="amount",
    labels={"fraud": 1, "ok": 0},
)


def of_json(*lines: str, event: EventSettings = OWN_KEY, key: str | None = None) -> list[Any]:
    raw = io.BytesIO("\n".join(lines).encode())
    known = Lines()
    return list(rows.from_json(runs(raw, known), rows.keys(event, key, None), known))


def of_csv(*lines: str, event: EventSettings = OWN_KEY, key: str | None = None) -> list[Any]:
    raw = io.BytesIO("\n".join(lines).encode())
    return list(rows.from_csv(raw, "file.csv", event, rows.keys(event, key, None)))


def test_a_line_of_json_is_sent_as_it_stands() -> None:
    line = '{ "key":"fraud-v3","score":0.10,   "label":1, "extra": [1.0]}'
    assert of_json(line) == [Event(b"fraud-v3", line.encode())]


def test_blank_lines_and_a_byte_order_mark_do_not_count() -> None:
    assert of_json('\ufeff{"score": 1}', "", '  {"score": 2}', key="k") == [
        Event(b"k", b'{"score": 1}'),
        Event(b"k", b'{"score": 2}'),
    ]


def test_the_key_comes_from_the_path_of_the_settings() -> None:
    (event,) = of_json('{"model": {"name": 17}}', event=NESTED)
    assert event.key == b"17"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "not JSON"),
        ('{"score": NaN}', "not JSON"),
        ("[1]", "not a JSON object"),
        ('{"score": 1}', 'no field "key"'),
        ('{"key": null}', "null, neither text nor integer"),
        ('{"key": true}', "true, neither text nor integer"),
        ('{"key": 1.5}', "1.5, neither text nor integer"),
        ('{"key": ""}', "0 bytes"),
        ('{"key": "' + "k" * 1025 + '"}', "1025 bytes"),
    ],
)
def test_a_line_that_cannot_be_sent_is_told_with_its_number(line: str, why: str) -> None:
    good = '{"key": "k"}'
    before, bad, after = of_json(good, line, good)
    assert isinstance(bad, Bad)
    assert bad.line == 2
    assert why in bad.why
    assert before == after == Event(b"k", good.encode())


def test_csv_keys_stay_text_and_figures_become_numbers() -> None:
    assert of_csv("key,score,label", "007,0.5,1", "1e3,-2,0") == [
        Event(b"007", b'{"score":0.5,"label":1}'),
        Event(b"1e3", b'{"score":-2,"label":0}'),
    ]


def test_csv_columns_become_the_fields_that_the_settings_name_and_no_others() -> None:
    (event,) = of_csv(
        "age,at,amount,outcome,model.name,model.p.fraud",
        "44,1764460000000,12.5,fraud,v3,0.25",
        event=NESTED,
    )
    assert event.key == b"v3"
    assert json.loads(event.value) == {
        "model": {"name": "v3", "p.fraud": 0.25},
        "outcome": "fraud",
        "at": 1764460000000,
        "amount": 12.5,
    }


def test_an_empty_label_or_weight_is_left_out() -> None:
    (event,) = of_csv(
        "at,amount,outcome,model.name,model.p.fraud", "1764460000000,,,v3,1", event=NESTED
    )
    assert set(json.loads(event.value)) == {"model", "at"}


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("k,abc,1", "\"score\" has 'abc'"),
        ("k,,1", "\"score\" has ''"),
        ("k,nan,1", "\"score\" has 'nan'"),
        ("k,1_000,1", "\"score\" has '1_000'"),
        ("k,1", "2 cells under 3 columns"),
        (",1,1", "0 bytes"),
        ('"k"x,1,1', "not CSV"),
    ],
)
def test_a_bad_row_is_told_with_its_line(row: str, why: str) -> None:
    before, bad, after = of_csv("key,score,label", "k,1,1", row, "k,1,1")
    assert isinstance(bad, Bad)
    assert bad.line == 3
    assert why in bad.why
    assert before == after


def test_rows_of_several_lines_and_quoted_commas_are_one_event() -> None:
    (event,) = of_csv("key,score,label", '"a,\nb",1,1')
    assert event.key == b"a,\nb"


@pytest.mark.parametrize(
    ("header", "missing"),
    [("score,label", '"key"'), ("key,label", '"score"'), ("key,score", '"label"')],
)
def test_a_missing_column_is_named_with_those_there_are(header: str, missing: str) -> None:
    with pytest.raises(SettingsError, match=f"no column {missing}.*it has [a-z]"):
        of_csv(header, "1,1")


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(SettingsError, match='two columns "score"'):
        of_csv("key,score,score,label")


def test_an_empty_csv_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"file\.csv is empty"):
        of_csv()


def test_one_key_for_all_needs_no_column() -> None:
    assert of_csv("score,label", "1,0", key="v3") == [Event(b"v3", b'{"score":1,"label":0}')]


def test_options_for_keys_are_refused_where_the_settings_say_where_keys_are() -> None:
    with pytest.raises(SettingsError, match=r'event.key = "model.name"'):
        rows.keys(NESTED, "v3", None)


def test_one_key_and_a_field_of_keys_exclude_each_other() -> None:
    with pytest.raises(SettingsError, match="exclude each other"):
        rows.keys(OWN_KEY, "v3", "name")


@pytest.mark.parametrize("field", ["$key", "a..b", ""])
def test_a_key_field_that_is_no_path_is_refused(field: str) -> None:
    if not field:
        assert rows.keys(OWN_KEY, None, field) == Keys(None, ("key",))
        return
    with pytest.raises(SettingsError, match="--key-field"):
        rows.keys(OWN_KEY, None, field)


class Taken:
    """A record as the worker's parser takes it."""

    offset, timestamp = 0, 1764460000000

    def __init__(self, event: Event) -> None:
        self.key, self.value = event.key, event.value


@given(
    score=st.floats(allow_nan=False, allow_infinity=False),
    label=st.integers(0, 1),
    key=st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), min_size=1, max_size=99),
)
def test_what_csv_says_is_what_the_worker_reads(score: float, label: int, key: str) -> None:
    quoted = key.replace('"', '""')
    found = of_csv("key,score,label", f'"{quoted}",{score!r},{label}')
    (batch,) = Parser(OWN_KEY).batches([Taken(event) for event in found])
    assert not batch.rejections
    assert batch.keys[key].scores == [score]
    assert batch.keys[key].labels == [label]


CSV = b"key,score,label\nk,1,1\n"
FIELD = Keys(None, ("key",))


def opened(path: Path, keys: Keys = FIELD) -> AbstractContextManager[Source]:
    (member,) = sources.members([str(path)], Format.AUTO)
    return sources.opened(member, OWN_KEY, keys)


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_packed_files_read_as_plain_ones(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"events.csv{suffix}"
    packed = gzip.compress(CSV) if suffix == ".gz" else pa.compress(CSV, "zstd", asbytes=True)
    path.write_bytes(packed)
    with opened(path) as source:
        assert list(source.events) == [Event(b"k", b'{"score":1,"label":1}')]
        assert source.position() == path.stat().st_size


def test_rows_of_parquet_are_sent_with_the_columns_that_the_settings_name(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    columns = {
        "key": pa.array(["007", None, "x"]).dictionary_encode(),
        "score": [0.5, 0.25, 1.0],
        "label": [1, 0, None],
        "more": [1, 2, 3],
    }
    parquet.write_table(pa.table(columns), path)
    with opened(path) as source:
        first, second, third = source.events
        assert source.position() == path.stat().st_size
    assert first == Event(b"007", b'{"score": 0.5, "label": 1}')
    assert isinstance(second, Bad)
    assert source.where(second.line) == f"{path}, row 2"
    assert 'the key "key" is null' in second.why
    assert third == Event(b"x", b'{"score": 1.0, "label": null}')
    columns["key"] = pa.array([b"007", b"\xff", b"x"])
    parquet.write_table(pa.table(columns), path)
    with opened(path) as source:
        first, second, third = source.events
        assert (first.key, third.key) == (b"007", b"x")
        assert isinstance(second, Bad)
        assert second.why == 'the key "key" is not UTF-8'
    with opened(path, Keys(b"one", ())) as source:
        assert [event.key for event in source.events if isinstance(event, Event)] == [b"one"] * 3


def test_a_key_that_the_settings_find_in_the_value_stays_there(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    parquet.write_table(pa.table({"key": [7], "score": [0.5], "label": [1]}), path)
    event = EventSettings(key="key")
    (member,) = sources.members([str(path)], Format.AUTO)
    with sources.opened(member, event, rows.keys(event, None, None)) as source:
        assert list(source.events) == [Event(b"7", b'{"key": 7, "score": 0.5, "label": 1}')]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (gzip.compress(b'{"key": "k"}\n' * 1000)[:-9], "cut short"),
        (b'{"key": "k"}', "no gzip file"),
    ],
)
def test_a_broken_gzip_is_told_in_a_sentence(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "events.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(RocstreamError, match=why), opened(path) as source:
        list(source.events)


def test_a_row_that_is_not_utf_8_is_refused_alone(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_bytes(b"key,score,label\n\xfc,1,1\n\xc3\xbc,1,1\nk,1,1\n")
    with opened(path) as source:
        bad, *good = source.events
    assert bad == rows.Bad(2, "it is not UTF-8")
    assert [one.key for one in good] == ["ü".encode(), b"k"]
    path.write_bytes("key,score,label,größe\n".encode("latin-1"))
    with (
        pytest.raises(SettingsError, match="names the columns, is not UTF-8"),
        opened(path) as source,
    ):
        list(source.events)


def test_sources_are_checked_before_anything_is_sent(tmp_path: Path) -> None:
    there = tmp_path / "a.jsonl"
    there.write_text("{}")
    unknown = tmp_path / "c.txt"
    unknown.write_text("{}")
    for name, why in (
        (tmp_path / "b.jsonl", "no such file"),
        (unknown, "cannot be told"),
    ):
        with pytest.raises(SettingsError, match=why):
            sources.members([str(there), str(name)], Format.AUTO)
    found = sources.members([str(tmp_path), "-"], Format.AUTO)
    assert [member.shown for member in found] == [str(there), "standard input"]
