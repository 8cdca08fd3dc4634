"""What a replay says of input that is not as it should be: a clear sentence each."""

from __future__ import annotations

import ast
import contextlib
import gzip
import json
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest
import typer
from inmemory import HEAD

import worker.replay
from config.errors import SettingsError
from worker import admin, rows
from worker.cli.commands import app
from worker.cli.commands import run as rocstream
from worker.replay.span import bound, span
from worker.transport import reader

if TYPE_CHECKING:
    from collections.abc import Callable

MONITOR = """
[[monitor]]
name = "m"
window = { kind = "count", size = 4, slide = 2 }
"""
GOOD = [{"key": "k", "score": 0.1 * n, "label": n % 2} for n in range(6)]


class Result:
    """The exit code of a replay, and what it said."""

    def __init__(self, code: int, out: str, errors: str) -> None:
        self.code, self.out, self.errors = code, out, errors


@pytest.fixture
def replay(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Run the command on sources, with settings of these tables."""

    def command(*arguments: Any, event: str = "") -> Result:
        path = tmp_path / "job.toml"
        path.write_text(HEAD + event + MONITOR)
        capfd.readouterr()
        code = rocstream(["replay", "-c", str(path), *map(str, arguments)])
        return Result(code, *capfd.readouterr())

    return command


def lines(path: Path, *documents: Any) -> Path:
    path.write_bytes(
        b"".join((d if isinstance(d, bytes) else orjson.dumps(d)) + b"\n" for d in documents)
    )
    return path


def test_a_file_that_is_not_there(replay: Callable[..., Result]) -> None:
    result = replay("nowhere.jsonl")
    assert (result.code, result.errors) == (
        2,
        "rocstream: nowhere.jsonl: there is no such file\n",
    )


def test_an_unknown_suffix_and_a_directory_without_files(
    replay: Callable[..., Result], tmp_path: Path
) -> None:
    (tmp_path / "x.log").write_text("{}")
    result = replay(tmp_path / "x.log")
    assert result.code == 2
    assert "say --format json" in result.errors
    (tmp_path / "empty").mkdir()
    result = replay(tmp_path / "empty")
    assert result.code == 2
    assert "holds no file of events" in result.errors


def test_keys_that_nothing_has_are_noted(replay: Callable[..., Result], tmp_path: Path) -> None:
    path = lines(tmp_path / "x.jsonl", {"key": "a", "score": 0.5, "label": 1})
    result = replay(path, "--only", "zz")
    assert result.code == 0
    assert "note: no event that counts has a key like --only zz" in result.errors


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv"])
def test_an_empty_file_is_no_events(
    replay: Callable[..., Result], tmp_path: Path, name: str
) -> None:
    (tmp_path / name).touch()
    result = replay(tmp_path / name)
    assert result.code == 0
    assert f"{name} is empty: 0 events" in result.errors


def test_half_a_last_line_is_rejected_with_its_number(
    replay: Callable[..., Result], tmp_path: Path
) -> None:
    path = lines(tmp_path / "x.jsonl", *GOOD)
    path.write_bytes(path.read_bytes() + b'\n\n{"key": "k", "sco')
    result = replay(path, "--rejected", tmp_path / "bad.jsonl", "-o", tmp_path / "u.jsonl")
    assert result.code == 0
    assert "6 events, 1 rejected (1 not_json)" in result.out
    assert "first rejected: x.jsonl:9: the value is not JSON" in result.errors
    (bad,) = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_bytes().splitlines()]
    assert (bad["where"], bad["offset"], bad["code"]) == ("x.jsonl:9", 6, "not_json")
    assert bad["value"] == '{"key": "k", "sco'
    assert len((tmp_path / "u.jsonl").read_bytes().splitlines()) == 3


def test_a_wrong_column_is_named_with_those_there_are(
    replay: Callable[..., Result], tmp_path: Path
) -> None:
    (tmp_path / "x.csv").write_text("key,points,label\nk,1,0\n")
    result = replay(tmp_path / "x.csv")
    assert result.code == 2
    assert 'no column "score" (event.score): it has key, points, label' in result.errors
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"key": ["k"], "points": [1.0]}), tmp_path / "x.parquet")
    result = replay(tmp_path / "x.parquet")
    assert result.code == 2
    assert 'no column "score" (event.score): it has key, points' in result.errors
    result = replay(lines(tmp_path / "x.jsonl", {"key": "k", "points": 1, "label": 0}))
    assert result.code == 1
    assert "every record was rejected, the first: x.jsonl:1: score is not there" in result.errors


def test_types_come_from_the_settings_never_from_guessing(
    replay: Callable[..., Result], tmp_path: Path
) -> None:
    (tmp_path / "x.csv").write_text(
        "key,score,label,at\n"
        "007,0.5,1,2025-11-30T00:00:00Z\n"
        "NA,0.5,,2025-11-30T00:00:01+00:00\n"
        "007,NA,0,1\n"
        "007,0.1,0,30.11.2025\n"
        "007,0.1,0,2025-11-30T00:00:00\n"
        "007,0.1\n"
        "007,0.2,0,2025-11-30T00:00:02Z\n"
    )
    result = replay(
        tmp_path / "x.csv",
        *("-o", tmp_path / "u.jsonl", "--rejected", tmp_path / "bad.jsonl"),
        event='[event]\ntime = "at"\ntime_unit = "s"\n',
    )
    assert result.code == 0, result.errors
    assert "2 events, 1 without a label, 4 rejected (4 bad_row)" in result.out
    (update,) = [json.loads(line) for line in (tmp_path / "u.jsonl").read_bytes().splitlines()]
    assert update["key"] == "007"
    assert update["window"]["start"] == 1_764_460_800_000
    bad = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_bytes().splitlines()]
    no_time = "which is neither a number nor an ISO time with its zone"
    assert [f"{one['where']}: {one['reason']}".partition("x.csv:")[2] for one in bad] == [
        "4: the column \"score\" has 'NA', which is no number",
        f"5: the column \"at\" has '30.11.2025', {no_time}",
        f"6: the column \"at\" has '2025-11-30T00:00:00', {no_time}",
        "7: 2 cells under 4 columns",
    ]
    assert [one["offset"] for one in bad] == [2, 3, 4, 5]


def test_a_parquet_file_of_mixed_rows_is_read_row_by_row_with_the_same_rules(
    replay: Callable[..., Result], tmp_path: Path
) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table(
        {
            "key": pa.array([7, 7, None, 7, 7, 7]),
            "score": pa.array([0.5, float("nan"), 0.1, None, 0.25, 0.75]),
            "label": pa.array(["ok", "fraud", "ok", "ok", None, "fraud"]),
        }
    )
    pq.write_table(table, tmp_path / "x.parquet")
    result = replay(
        tmp_path / "x.parquet",
        *("--rejected", tmp_path / "bad.jsonl", "-o", tmp_path / "u.jsonl"),
        event="[event]\nlabels = { fraud = 1, ok = 0 }\n",
    )
    assert result.code == 0
    assert "2 events, 1 without a label, 3 rejected" in result.out
    bad = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_bytes().splitlines()]
    assert [(one["where"], one["code"]) for one in bad] == [
        ("x.parquet, row 2", "score_not_finite"),
        ("x.parquet, row 3", "key_missing"),
        ("x.parquet, row 4", "score_not_number"),
    ]
    (update,) = [json.loads(line) for line in (tmp_path / "u.jsonl").read_bytes().splitlines()]
    assert (update["key"], update["auc"]) == ("7", 1.0)


def test_float32_scores_are_warned_of(replay: Callable[..., Result], tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table(
        {
            "key": ["k"] * 4,
            "score": pa.array([0.1] * 4, pa.float32()),
            "label": [0, 1, 0, 1],
        }
    )
    pq.write_table(table, tmp_path / "x.parquet")
    result = replay(tmp_path / "x.parquet")
    assert result.code == 0
    assert "has its scores as score (float)" in result.errors


def test_a_truncated_parquet_or_gzip_file(replay: Callable[..., Result], tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.Table.from_pylist(GOOD), tmp_path / "x.parquet")
    whole = (tmp_path / "x.parquet").read_bytes()
    (tmp_path / "x.parquet").write_bytes(whole[: len(whole) // 2])
    result = replay(tmp_path / "x.parquet")
    assert result.code == 1
    assert "x.parquet is cut short, or no Parquet file" in result.errors
    packed = gzip.compress(b"".join(orjson.dumps(one) + b"\n" for one in GOOD * 10_000))
    (tmp_path / "x.jsonl.gz").write_bytes(packed[:5])
    result = replay(tmp_path / "x.jsonl.gz")
    assert result.code == 1
    assert "x.jsonl.gz is cut short, or no gzip file" in result.errors
    (tmp_path / "x.jsonl.gz").write_bytes(packed[:-200])
    result = replay(tmp_path / "x.jsonl.gz", "--to", "1000", "-o", tmp_path / "u.jsonl")
    assert result.code == 0, "what lies behind --to is not read"
    assert result.out.endswith(f"500 updates in {tmp_path / 'u.jsonl'}\n")


def test_a_range_with_nothing_in_it_is_no_events(
    replay: Callable[..., Result], tmp_path: Path
) -> None:
    path = lines(tmp_path / "x.jsonl", *GOOD)
    result = replay(path, "--from", "100")
    assert result.code == 0
    assert result.out.startswith("0 events from")


def test_events_without_times_are_told_of(replay: Callable[..., Result], tmp_path: Path) -> None:
    assert "--time-field names a field" in replay(lines(tmp_path / "x.jsonl", *GOOD)).errors
    timed = [{**one, "at": 5} for one in GOOD]
    result = replay(lines(tmp_path / "x.jsonl", *timed), "--time-field", "at", "-o", "-")
    assert json.loads(result.out.splitlines()[0])["time"] == 5
    assert "--time-field" not in result.errors


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("2025-11-30T00:00:00", "the time has no zone"),
        ("yesterday", 'it must be "earliest", "latest", an offset'),
        ("-24", "a duration is a number with one of the units"),
        ("2025-13-30T00:00Z", "write an ISO time"),
        ("1969-01-01T00:00Z", "before 1970"),
    ],
)
def test_a_bound_that_means_nothing_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(SettingsError, match=sentence):
        bound(text, "--from", 0)


def test_bounds_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(SettingsError, match="swap them"):
        span("20", "10", 0, cold=False)


def test_options_that_do_not_go_together_are_refused(
    replay: Callable[..., Result], tmp_path: Path
) -> None:
    path = lines(tmp_path / "x.jsonl", *GOOD)
    assert "exclude each other" in replay(path, "--key", "a", "--key-field", "b").errors
    assert "are for topics" in replay(path, "--partition", "0").errors
    assert "are for files" in replay("--key", "a").errors
    assert "leave --key and" in replay(path, "--key", "a", event='[event]\nkey = "key"\n').errors
    assert "insist with --force" in replay(path, "-o", "topic:updates").errors
    assert "it is a directory" in replay(path, "-o", tmp_path).errors


def test_a_stretch_with_nothing_in_it_is_told_with_what_there_is(
    replay: Callable[..., Result], tmp_path: Path
) -> None:
    path = lines(
        tmp_path / "x.jsonl",
        *({"key": "k", "score": 1, "label": 1, "time": 1_764_460_800_000 + n} for n in (0, 2_500)),
    )
    event = '[event]\ntime = "time"\n'
    seen = "times from 2025-11-30T00:00:00Z to 2025-11-30T00:00:02.500000Z"
    for given in (
        ["--from", "2026-01-01T00:00Z"],
        ["--from", "2026-01-01T00:00Z", "--cold"],
        ["--to", "2025-01-01T00:00Z"],
        ["--from", "2025-01-01T00:00Z", "--to", "2025-02-01T00:00Z"],
    ):
        result = replay(path, *given, event=event)
        assert result.code == 0
        assert "0 events from" in result.out
        told = "note: nothing lies between --from and --to: 0 events; what was read has "
        assert f"{told}{seen}" in " ".join(result.errors.split())
    result = replay(path, "--from", "7", event=event)
    assert result.code == 0
    assert "what was read has the offsets 0 to 1" in " ".join(result.errors.split())
    assert "nothing lies" not in replay(path, "--from", "1", event=event).errors


@pytest.mark.parametrize("kind", ["gz", "zst"])
@pytest.mark.parametrize("count", [3, 40_000])
def test_a_file_that_is_cut_short_gives_every_whole_line_and_names_the_last(
    replay: Callable[..., Result], tmp_path: Path, kind: str, count: int
) -> None:
    raw = b"".join(
        orjson.dumps({"key": "k", "score": n * n % 65_537, "label": n * n % 11 % 2}) + b"\n"
        for n in range(count)
    )
    path, out = tmp_path / f"x.jsonl.{kind}", tmp_path / "u.jsonl"
    if kind == "gz":
        # Without compression it is known what is left.
        path.write_bytes(gzip.compress(raw, 0)[: -len(raw) // 3])
        left = zlib.decompressobj(31).decompress(path.read_bytes())
    else:
        pa = pytest.importorskip("pyarrow")
        with pa.CompressedOutputStream(str(path), "zstd") as file:
            file.write(raw)
        packed = path.read_bytes()
        path.write_bytes(packed[:-9] if count < 10 else packed[: len(packed) * 2 // 3])
        left = _unpacked_byte_by_byte(path)
    result = replay(path, "-o", out)
    assert result.code == 1
    whole = left.count(b"\n")
    if not whole:
        assert f"x.jsonl.{kind} is cut short, or no" in result.errors
        return
    assert f"x.jsonl.{kind} is cut short, or damaged, behind line {whole:,}: " in result.errors
    if whole > 1:
        updates = Path(f"{out}.partial").read_bytes().splitlines()
        assert len(updates) == whole // 2


def test_a_csv_that_is_cut_short_gives_every_whole_row_however_it_was_packed(
    replay: Callable[..., Result], tmp_path: Path
) -> None:
    """Text is read in pieces of its own size, and who packs as rows come makes small blocks."""
    pa = pytest.importorskip("pyarrow")
    path, out = tmp_path / "x.csv.zst", tmp_path / "u.jsonl"
    with pa.CompressedOutputStream(str(path), "zstd") as file:
        file.write(b"key,score,label\n")
        for start in range(0, 40_000, 500):
            rows = (f"k,{n * n % 65_537},{n % 2}\n" for n in range(start, start + 500))
            file.write("".join(rows).encode())
            file.flush()
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    left = _unpacked_byte_by_byte(path).count(b"\n")
    result = replay(path, "-o", out)
    assert result.code == 1
    assert f"x.csv.zst is cut short, or damaged, behind line {left:,}: " in result.errors
    assert Path(f"{out}.partial").read_bytes().count(b"\n") == (left - 1) // 2


def _unpacked_byte_by_byte(path: Path) -> bytes:
    pa = pytest.importorskip("pyarrow")
    found = []
    with path.open("rb") as raw, contextlib.suppress(OSError):
        stream = pa.CompressedInputStream(raw, "zstd")
        while byte := stream.read(1):
            found.append(byte)
    return b"".join(found)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
@pytest.mark.parametrize("name", ["u.jsonl", "u.jsonl.gz"])
def test_a_full_disk_is_told_as_such(
    replay: Callable[..., Result], tmp_path: Path, name: str
) -> None:
    (tmp_path / f"{name}.partial").symlink_to("/dev/full")
    result = replay(lines(tmp_path / "x.jsonl", *GOOD), "-o", tmp_path / name)
    assert result.code == 1
    assert f"{tmp_path / name} cannot be written: No space left on device" in result.errors
    assert not (tmp_path / name).exists()


OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
READ_BY_A_REPLAY = [
    *Path(worker.replay.__file__).parent.glob("*.py"),
    *(Path(one.__file__) for one in (admin, reader, rows)),
]


@pytest.mark.parametrize("path", READ_BY_A_REPLAY, ids=lambda path: path.stem)
def test_sentences_name_only_options_that_the_command_has(path: Path) -> None:
    command = typer.main.get_command(app)
    assert isinstance(command, typer.core.TyperGroup)
    known = {option for one in command.commands["replay"].params for option in one.opts}
    texts = [
        node.value
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    named = {option for text in texts for option in OPTION.findall(text)}
    assert named <= known
