"""Where a replay writes: never over what it reads, and in place of nothing but files."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from inmemory import HEAD, MONITORS

from worker.cli.commands import run as rocstream
from worker.replay.outputs import in_place

if TYPE_CHECKING:
    from collections.abc import Callable

EVENTS = b"".join(
    orjson.dumps({"key": "k", "score": n % 7 / 7, "label": n % 2, "time": n + 1}) + b"\n"
    for n in range(400)
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "job.toml").write_text(HEAD + MONITORS)
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "x.jsonl"
    path.write_bytes(EVENTS)
    return path


@pytest.fixture
def replay(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def command(*arguments: Any) -> tuple[int, str]:
        capfd.readouterr()
        code = rocstream(["replay", "-c", str(tmp_path / "job.toml"), *map(str, arguments)])
        out, errors = capfd.readouterr()
        return code, out + errors

    return command


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("-o", "x.jsonl"),
        ("--rejected", "x.jsonl"),
        ("-o", "link.jsonl"),
        ("--report", "x.html"),
        ("--plot", "x.svg"),
    ],
)
@pytest.mark.parametrize("directory", [False, True])
def test_what_is_read_is_never_written(
    replay: Callable[..., tuple[int, str]], source: Path, option: str, name: str, *, directory: bool
) -> None:
    there = source.parent / name
    if name == "link.jsonl":
        there.symlink_to(source)
    elif there != source:
        there.symlink_to(source.name)
    given = ["--format", "json", source.parent] if directory else [source]
    code, told = replay(*given, option, there)
    assert (code, "that file is read as well, and would be lost" in told) == (2, True), told
    assert source.read_bytes() == EVENTS


def test_the_partial_file_of_an_output_is_no_source_either(
    replay: Callable[..., tuple[int, str]], source: Path, tmp_path: Path
) -> None:
    partial = source.rename(tmp_path / "u.jsonl.partial")
    code, told = replay("--format", "json", partial, "-o", tmp_path / "u.jsonl")
    assert (code, "would be lost" in told) == (2, True), told
    assert partial.read_bytes() == EVENTS


@pytest.mark.parametrize(
    "options",
    [
        ("-o", "u.jsonl", "--rejected", "u.jsonl"),
        ("--report", "r.html", "-o", "r.html"),
        ("-o", "u.jsonl", "--sweep", "h.beta=2,3", "--rejected", "u.h.beta=3.jsonl"),
    ],
)
def test_two_outputs_are_two_files(
    replay: Callable[..., tuple[int, str]],
    source: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    options: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    code, told = replay(source, *options)
    assert (code, "writes the same file: name two" in told) == (2, True), told


@pytest.mark.parametrize(
    ("option", "name"),
    [("-o", "u.jsonl"), ("--rejected", "u.jsonl"), ("--report", "r.html"), ("--plot", "p.png")],
)
def test_a_place_that_cannot_be_written_is_told_before_anything_is_read(
    replay: Callable[..., tuple[int, str]], source: Path, tmp_path: Path, option: str, name: str
) -> None:
    source.write_bytes(b"\xff")
    code, told = replay(source, option, tmp_path / "nowhere" / name)
    assert code == 2
    assert told.startswith(f"rocstream: {option} {tmp_path / 'nowhere' / name}: there is no dir")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
@pytest.mark.parametrize("name", ["u.jsonl", "u.jsonl.gz", "u.parquet"])
def test_a_device_is_written_to_and_stays_one(
    replay: Callable[..., tuple[int, str]], source: Path, tmp_path: Path, name: str
) -> None:
    link = tmp_path / name
    link.symlink_to("/dev/full")
    code, told = replay(source, "-o", link)
    assert (code, "cannot be written: No space left on device" in told) == (1, True), told
    assert link.is_symlink()
    assert link.is_char_device()
    assert in_place(Path("/dev/stdout"))
    assert in_place(tmp_path)
    assert not in_place(source)


def test_a_named_pipe_gets_the_updates(
    replay: Callable[..., tuple[int, str]], source: Path, tmp_path: Path
) -> None:
    pipe, whole = tmp_path / "pipe", tmp_path / "u.jsonl"
    os.mkfifo(pipe)
    taken: list[bytes] = []
    reader = threading.Thread(target=lambda: taken.append(pipe.read_bytes()), daemon=True)
    reader.start()
    assert replay(source, "-o", pipe)[0] == replay(source, "-o", whole)[0] == 0
    reader.join(30)
    assert taken == [whole.read_bytes()]
    assert pipe.is_fifo()


def test_behind_a_link_it_is_the_file_that_is_new(
    replay: Callable[..., tuple[int, str]], source: Path, tmp_path: Path
) -> None:
    file, link = tmp_path / "u.jsonl", tmp_path / "latest.jsonl"
    file.write_text("old")
    link.symlink_to(file)
    assert replay(source, "-o", link)[0] == 0
    assert link.is_symlink()
    assert file.read_bytes().startswith(b'{"version":1')
    assert list(tmp_path.glob("*.partial")) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
@pytest.mark.parametrize(
    ("option", "name"), [("--report", "r.html"), ("--plot", "p.svg"), ("--rejected", "r.jsonl")]
)
def test_what_there_is_no_room_for_is_named_and_the_tables_are_told(
    replay: Callable[..., tuple[int, str]], source: Path, tmp_path: Path, option: str, name: str
) -> None:
    source.write_bytes(EVENTS + b"{\n")
    (tmp_path / f"{name}.partial").symlink_to("/dev/full")
    code, told = replay(source, option, tmp_path / name)
    assert code == 1
    assert f"{tmp_path / name} cannot be written: No space left on device" in told
    assert option == "--rejected" or "window" in told or "updates" in told
    assert not (tmp_path / name).exists()


def test_how_far_back_the_windows_of_a_file_were_warmed_up_is_told(
    replay: Callable[..., tuple[int, str]], source: Path
) -> None:
    told = replay(source, "--from", "150")[1]
    assert "note: windows were warmed up with the 150 records before --from\n" in told
    assert "warmed up" not in replay(source, "--from", "150", "--cold")[1]
    assert "warmed up" not in replay(source)[1]


def test_what_was_made_is_told_where_it_is(
    replay: Callable[..., tuple[int, str]], source: Path, tmp_path: Path
) -> None:
    out, report = tmp_path / "d.jsonl", tmp_path / "r.html"
    _, told = replay(source, "-o", out, "--report", report, "--compare", "time")
    count = len(out.read_bytes().splitlines())
    assert f": {count} differences in {out}; see {report}\n" in told
    _, told = replay(source, "-o", out, "--sweep", f"h.beta={','.join(map(str, range(1, 8)))}")
    first, last = (tmp_path / f"d.h.beta={beta}.jsonl" for beta in (1, 7))
    assert f" updates in 7 files, from {first} to {last}\n" in told
