"""Replaying files: the live updates to the byte, however the files are written and cut."""

from __future__ import annotations

import gzip
import io
import json
import random
import signal
import subprocess
import sys
import time
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from inmemory import HEAD, MONITORS, Event, Log

import worker.replay
from config.errors import RocstreamError, SettingsError
from worker.cli.commands import run as rocstream
from worker.replay import lines
from worker.replay.filesource import FileSource
from worker.replay.player import Player
from worker.replay.span import Span, span

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import config

START = 1_764_460_000_000


def events(count: int = 900, seed: int = 1) -> list[dict[str, Any]]:
    rng = random.Random(seed)  # noqa: S311 - a seeded stream
    return [
        {
            "key": rng.choice(["007", "NA", "model-a"]),
            "score": round(rng.gauss(label, 1.5), 1),
            "label": label,
            "time": START + number * 1_000,
        }
        for number in range(count)
        for label in [int(rng.random() < 0.3)]
    ]


def csv_of(event: dict[str, Any]) -> list[Any]:
    return [event[name] for name in ("time", "key", "score", "label")]


def jsonl(path: Path, documents: Sequence[Any]) -> Path:
    path.write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in documents))
    return path


def live(settings: config.Settings, topic: str, documents: Sequence[Any]) -> list[bytes]:
    """Updates of the live pipeline for the same records."""
    from worker.pipeline import Pipeline  # noqa: PLC0415

    pipeline = Pipeline(settings, topic, 0)
    pipeline.start_at(0)
    log = Log()
    records = [
        Event(offset, START + 10**9, None, orjson.dumps(one))
        for offset, one in enumerate(documents)
    ]
    for _ in pipeline.process(records):
        pass
    log.commit(pipeline.take())
    return [update.value or b"" for update in log.updates]


def replayed(
    settings: config.Settings,
    *paths: Path,
    span: Span | None = None,
    keys: list[str] | None = None,
) -> list[bytes]:
    player = Player([settings], FileSource([str(path) for path in paths]), span, keys=keys)
    return [update.value or b"" for step in player for update in step.updates[0]]


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., Path]:
    """A settings file with these monitors."""

    def write(text: str = MONITORS) -> Path:
        path = tmp_path / "job.toml"
        path.write_text(HEAD + text)
        return path

    return write


def test_json_lines_give_the_live_updates_to_the_byte(
    settings_of: Callable[..., config.Settings], tmp_path: Path
) -> None:
    documents = events()
    settings = settings_of(MONITORS)
    expected = live(settings, "march.jsonl", documents)
    assert len(expected) > 100
    assert replayed(settings, jsonl(tmp_path / "march.jsonl", documents)) == expected


def test_packed_lines_csv_and_parquet_say_the_same_as_json(
    settings_of: Callable[..., config.Settings], tmp_path: Path
) -> None:
    documents = events(300)
    settings = settings_of(MONITORS)
    plain = jsonl(tmp_path / "x.jsonl", documents)

    def strip(updates: list[bytes]) -> list[Any]:
        found = [json.loads(update) for update in updates]
        for update in found:
            del update["source"]["topic"]
        return found

    expected = strip(replayed(settings, plain))
    packed = tmp_path / "x.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    zst = tmp_path / "x.ndjson.zst"
    with pa.CompressedOutputStream(str(zst), "zstd") as stream:
        stream.write(plain.read_bytes())
    csv = tmp_path / "x.csv"
    csv.write_text(
        "time,key,more,score,label\n"
        + "".join(f"{e['time']},{e['key']},x,{e['score']},{e['label']}\n" for e in documents)
    )
    table = tmp_path / "x.parquet"
    pa.parquet = pytest.importorskip("pyarrow.parquet")
    pa.parquet.write_table(pa.Table.from_pylist(documents), table)
    for path in (packed, zst, csv, table):
        assert strip(replayed(settings, path)) == expected, path.name


@given(data=st.data(), blanks=st.lists(st.sampled_from([b"", b" ", b"\r"]), max_size=5))
@hypothesis_settings(max_examples=30, deadline=None)
def test_blocks_cut_lines_anywhere_and_blank_lines_are_none(
    data: st.DataObject, blanks: list[bytes]
) -> None:
    texts = [b'{"a": %d}' % number for number in range(20)]
    places = {}
    laid: list[bytes] = []
    for offset, text in enumerate(texts):
        laid += data.draw(st.just([]) | st.just(blanks))
        places[offset] = len(laid) + 1
        laid.append(text)
    body = b"\n".join(laid) + data.draw(st.sampled_from([b"", b"\n"]))

    known = lines.Lines()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "FIRST_BYTES", data.draw(st.integers(1, 50)))
        patch.setattr(lines, "BLOCK_BYTES", data.draw(st.integers(1, 50)))
        found = [
            (offset + at, text)
            for offset, run, count in lines.runs(io.BytesIO(body), known)
            for at, text in enumerate(run.split(b"\n"))
            if at < count
        ]
    assert found == list(enumerate(texts))
    assert {offset: known.number(offset) for offset in places} == places


def test_windows_go_on_from_file_to_file_of_a_directory(
    settings_of: Callable[..., config.Settings], tmp_path: Path
) -> None:
    documents = events()
    settings = settings_of(MONITORS)
    folder = tmp_path / "days"
    folder.mkdir()
    (folder / "_SUCCESS").touch()
    jsonl(folder / "1.jsonl", documents[:333])
    jsonl(folder / "2.jsonl", documents[333:])
    whole = [json.loads(one) for one in live(settings, "x", documents)]
    parts = [json.loads(one) for one in replayed(settings, folder)]
    for update in whole:
        offset = update["source"]["offset"]
        update["source"]["topic"] = "1.jsonl" if offset < 333 else "2.jsonl"
        update["source"]["offset"] = offset if offset < 333 else offset - 333
    assert parts == whole


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_a_start_in_the_middle_gives_the_same_updates_from_there_on(
    settings_of: Callable[..., config.Settings], tmp_path: Path, suffix: str
) -> None:
    documents = events()
    settings = settings_of(MONITORS)
    path = jsonl(tmp_path / "x.jsonl", documents)
    if suffix == ".parquet":
        path = tmp_path / "x.parquet"
        pq.write_table(pa.Table.from_pylist(documents), path)
    whole = replayed(settings, path)

    def between(low: int, high: int) -> list[bytes]:
        return [one for one in whole if low <= json.loads(one)["source"]["offset"] < high]

    assert replayed(settings, path, span=span("400", "600", 0, cold=False)) == between(400, 600)
    by_time = span("2025-11-29T23:53:20+00:00", "2025-11-29T23:56:40Z", START + 600_000, cold=False)
    assert by_time.start.value == START + 400_000
    assert replayed(settings, path, span=by_time) == between(400, 600)
    assert replayed(settings, path, span=span("-200s", None, START + 600_000, cold=False)) == (
        between(400, 900)
    )
    cold = replayed(settings, path, span=span("400", None, 0, cold=True))
    assert json.loads(cold[0])["window"]["events"] == 7
    assert json.loads(cold[0])["source"]["offset"] > 400
    assert replayed(settings, path, span=span("latest", None, 0, cold=False)) == []
    assert replayed(settings, path, span=span(None, "earliest", 0, cold=False)) == []


def test_only_the_keys_that_are_asked_for_are_replayed(
    settings_of: Callable[..., config.Settings], tmp_path: Path
) -> None:
    settings = settings_of(MONITORS)
    path = jsonl(tmp_path / "x.jsonl", events())
    expected = [one for one in replayed(settings, path) if json.loads(one)["key"] in {"007", "NA"}]
    assert replayed(settings, path, keys=["0*", "NA"]) == expected


def test_a_limit_of_keys_is_honoured_also_for_the_keys_that_are_asked_for(
    settings_of: Callable[..., config.Settings], tmp_path: Path
) -> None:
    settings = settings_of(MONITORS.replace("slide = 7 }", "slide = 1 }\nkey_limit = 2"))
    documents = [
        {**one, "key": one["key"] if at % 50 < 25 else f"k{at % 7}"}
        for at, one in enumerate(events())
    ]
    expected = live(settings, "x.jsonl", documents)
    path = jsonl(tmp_path / "x.jsonl", documents)
    assert replayed(settings, path) == expected
    assert sum(json.loads(one)["note"] == "key_limit" for one in expected) > 100
    asked = [one for one in expected if json.loads(one)["key"] == "NA"]
    assert replayed(settings, path, keys=["NA"]) == asked


@pytest.mark.parametrize("form", ["jsonl", "parquet", "csv"])
def test_keys_that_expire_do_so_where_they_did_live(
    settings_of: Callable[..., config.Settings], tmp_path: Path, form: str
) -> None:
    settings = settings_of(
        MONITORS.replace("slide = 7 }", 'slide = 7 }\nkey_ttl = "30s"').replace(
            "slide = 10 }", 'slide = 10 }\nkey_ttl = "45s"\nkey_limit = 5'
        )
    )
    documents = [
        {**one, "key": f"k{at // 60 % 4}"} if at % 3 else one for at, one in enumerate(events())
    ]
    name = f"x.{form}"
    expected = live(settings, name, documents)
    notes = [json.loads(one)["note"] for one in expected]
    assert notes.count("expired") > 10
    path = tmp_path / name
    if form == "jsonl":
        jsonl(path, documents)
    elif form == "csv":
        rows = ["time,key,score,label", *(",".join(map(str, csv_of(e))) for e in documents)]
        path.write_text("\n".join(rows))
    else:
        pq.write_table(pa.Table.from_pylist(documents), path, row_group_size=100)
    assert replayed(settings, path) == expected
    asked = [one for one in expected if json.loads(one)["key"] == "k1"]
    assert replayed(settings, path, keys=["k1"]) == asked


def test_each_setting_of_a_sweep_lets_keys_expire_by_itself(
    settings_of: Callable[..., config.Settings], tmp_path: Path
) -> None:
    documents = [{**one, "key": f"k{at // 60 % 4}"} for at, one in enumerate(events())]
    path = jsonl(tmp_path / "x.jsonl", documents)
    found = [
        settings_of(MONITORS.replace("slide = 7 }", f'slide = 7 }}\nkey_ttl = "{ttl}s"'))
        for ttl in (20, 31, 77)
    ]
    swept: list[list[bytes]] = [[], [], []]
    for step in Player(found, FileSource([str(path)])):
        for updates, taken in zip(swept, step.updates, strict=True):
            updates += [one.value or b"" for one in taken]
    assert swept == [live(settings, "x.jsonl", documents) for settings in found]


def test_updates_as_parquet_are_those_of_json(job: Callable[..., Path], tmp_path: Path) -> None:
    jsonl(tmp_path / "x.jsonl", events())
    for out in ("u.parquet", "u.jsonl", "u.jsonl.gz"):
        command = ["replay", "-c", str(job()), str(tmp_path / "x.jsonl"), "-o"]
        assert rocstream([*command, str(tmp_path / out)]) == 0
    expected = [json.loads(one) for one in (tmp_path / "u.jsonl").read_bytes().splitlines()]
    packed = gzip.decompress((tmp_path / "u.jsonl.gz").read_bytes())
    assert packed == (tmp_path / "u.jsonl").read_bytes()
    rows = pq.read_table(tmp_path / "u.parquet").to_pylist()
    assert [(r["monitor"], r["key"], r["seq"], r["auc"], r["source_offset"]) for r in rows] == [
        (u["monitor"], u["key"], u["seq"], u["auc"], u["source"]["offset"]) for u in expected
    ]
    assert rows[5]["window_size"] == expected[5]["window"]["size"]


def program(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "worker", *arguments],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


def test_ctrl_c_keeps_what_is_done_and_marks_it_as_partial(
    job: Callable[..., Path], tmp_path: Path
) -> None:
    process = program(
        *("replay", "-c", str(job()), "-", "-o", str(tmp_path / "u.jsonl")),
        stdin=subprocess.PIPE,
    )
    assert process.stdin is not None
    body = b"".join(orjson.dumps(one) + b"\n" for one in events(30_000))
    process.stdin.write(body)
    process.stdin.flush()
    partial = tmp_path / "u.jsonl.partial"
    deadline = time.monotonic() + 30
    while not (partial.exists() and partial.stat().st_size):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert b"PARTIAL, ended by Ctrl-C before standard-input:" in out
    assert not (tmp_path / "u.jsonl").exists()
    assert all(json.loads(line)["version"] == 1 for line in partial.read_bytes().splitlines())
    assert b"Traceback" not in errors


@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_pipe_is_followed_line_by_line(job: Callable[..., Path], form: str) -> None:
    command = ("replay", "-c", str(job()), "-", "-o", "-", "--format", form)
    with program(*command, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        if form == "csv":
            process.stdin.write(b"key,score,label,time\n")
        for document in events(40):
            text = orjson.dumps(document)
            if form == "csv":
                text = "{key},{score},{label},{time}".format(**document).encode()
            process.stdin.write(text + b"\n")
            process.stdin.flush()
        # The pipe stays open: what has come is answered all the same.
        assert json.loads(process.stdout.readline())["version"] == 1
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert b"PARTIAL, ended by Ctrl-C before standard-input:" in process.stderr.read()


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input_may_be_packed(job: Callable[..., Path], *, packed: bool) -> None:
    body = b"".join(orjson.dumps(one) + b"\n" for one in events(300))
    process = program("replay", "-c", str(job()), "-", stdin=subprocess.PIPE)
    out, _ = process.communicate(gzip.compress(body) if packed else body, timeout=30)
    assert b"300 events from standard input" in out


@pytest.mark.parametrize("start", [b"PAR1", b"\x28\xb5\x2f\xfd"])
def test_standard_input_that_cannot_be_read_is_told_with_the_cure(
    job: Callable[..., Path], start: bytes
) -> None:
    process = program("replay", "-c", str(job()), "-", stdin=subprocess.PIPE)
    _, errors = process.communicate(start + b"\0" * 100, timeout=30)
    assert process.returncode == 2
    assert errors.startswith(b"rocstream: standard input is ")


def test_a_closed_pipe_is_no_error(job: Callable[..., Path], tmp_path: Path) -> None:
    path = jsonl(tmp_path / "x.jsonl", events(20_000))
    with program("replay", "-c", str(job()), str(path), "-o", "-") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        first = process.stdout.readline()
        assert json.loads(first)["key"]
        process.stdout.close()
        assert process.wait(30) == 0
        assert process.stderr.read() == b""


def test_a_run_to_standard_output_tells_of_itself_on_standard_error_alone(
    job: Callable[..., Path], tmp_path: Path
) -> None:
    path = jsonl(tmp_path / "x.jsonl", events(200))
    process = program("replay", "-c", str(job()), str(path), "-o", "-")
    out, errors = process.communicate(timeout=30)
    assert [json.loads(line)["version"] for line in out.splitlines()]
    assert b"200 events from" in errors


def test_a_notebook_gets_updates_as_dicts_and_as_a_table(
    settings_of: Callable[..., config.Settings],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = settings_of(MONITORS)
    path = jsonl(tmp_path / "x.jsonl", events())
    updates = worker.replay.run(settings, path)
    expected = [json.loads(one) for one in replayed(settings, path)]
    assert list(updates) == expected
    assert updates.tally.counts["events"] == 900
    assert list(worker.replay.run(settings, [path], start="400", keys=["N*"])) == [
        one for one in expected if one["key"] == "NA" and one["source"]["offset"] >= 400
    ]

    nothing = jsonl(tmp_path / "y.jsonl", [{"key": "k", "skore": 1, "label": 1, "time": 1}] * 2)
    with pytest.raises(RocstreamError, match=r"every record was rejected, the first: y\.jsonl:1: "):
        list(worker.replay.run(settings, nothing))

    class Library:
        @staticmethod
        def DataFrame(rows: list[Any], *, infer_schema_length: int | None = 100) -> list[Any]:  # noqa: N802 - as there
            assert infer_schema_length is None
            return rows

    monkeypatch.setitem(sys.modules, "polars", Library)
    rows = updates.frame("polars")
    assert len(rows) == len(expected)
    assert rows[0]["window_size"] == 40
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(SettingsError, match="pip install polars"):
        updates.frame("polars")


def test_a_table_of_pandas_has_the_columns_of_parquet(
    settings_of: Callable[..., config.Settings], tmp_path: Path
) -> None:
    path = jsonl(tmp_path / "x.jsonl", events())
    updates = worker.replay.run(settings_of(MONITORS), path)
    frame = updates.frame()
    assert isinstance(frame, pd.DataFrame)
    expected = list(updates)
    assert len(frame) == len(expected)
    assert frame["key"].tolist() == [one["key"] for one in expected]
    assert frame["source_offset"].tolist() == [one["source"]["offset"] for one in expected]
    assert frame["window_full"].dtype == bool
    short = frame[frame["monitor"] == "short"]
    h = [one["h"] for one in expected if one["monitor"] == "short"]
    assert [None if isnan(value) else value for value in short["h"]] == h


def test_a_table_of_polars_takes_what_is_null_for_long(
    settings_of: Callable[..., config.Settings], tmp_path: Path
) -> None:
    text = MONITORS + 'key_ttl = "1m"\n'
    documents = [*events(1_500), {"key": "x", "score": 1, "label": 1, "time": START + 10**8}]
    updates = worker.replay.run(settings_of(text), jsonl(tmp_path / "x.jsonl", documents))
    frame = updates.frame("polars")
    expected = list(updates)
    assert frame["note"].to_list() == [one["note"] for one in expected]
    assert frame["note"].to_list().count("expired") == 3
    assert frame["auc"].to_list() == [one["auc"] for one in expected]
    assert frame["h_alpha"].to_list() == [one.get("h_alpha") for one in expected]
