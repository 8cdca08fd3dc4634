"""Several processes give what one gives: updates, tables, comparisons, reports and plots."""

from __future__ import annotations

import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import threading
from itertools import count
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from inmemory import HEAD, MONITORS

from config.errors import RocstreamError
from worker.cli.commands import run as rocstream
from worker.events import Parser
from worker.replay import exchange, lines, shards
from worker.replay.exchange import Exchange
from worker.replay.owner import Plan, ProcessError, serve
from worker.replay.records import Log, RecordRun
from worker.replay.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from pathlib import Path

    from config import Settings
    from worker.replay.player import Step

START = 1_764_460_000_000
KEYS = ("007", "NA", "model-a", "model-b", "ключ")
WAIT_SECONDS = 30.0


@pytest.fixture
def days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of all formats, read in many runs."""
    rng = random.Random(1)  # noqa: S311 - a seeded stream
    documents = [
        {
            "key": rng.choice(KEYS),
            "score": round(rng.gauss(label, 1.5), 1),
            "new": round(rng.gauss(label, 1.2), 1),
            "label": label,
            "time": START + number * 1_000,
        }
        for number in range(4_000)
        for label in [int(rng.random() < 0.3)]
    ]
    folder = tmp_path / "days"
    folder.mkdir()
    bad = {"key": 1.5, "score": 1, "label": 1, "time": START}
    (folder / "1.jsonl").write_bytes(
        b"".join(orjson.dumps(one) + b"\n" for one in [*documents[:1_500], bad, {}])
    )
    pq.write_table(
        pa.Table.from_pylist(documents[1_500:3_000]), folder / "2.parquet", row_group_size=200
    )
    (folder / "3.csv").write_text(
        "time,key,score,new,label\n"
        + "".join(
            "{time},{key},{score},{new},{label}\n".format_map(one) for one in documents[3_000:]
        )
        + "x,k,1\n"
    )
    (tmp_path / "job.toml").write_text(HEAD + MONITORS)
    # Processes that are forked have these as well.
    monkeypatch.setattr(lines, "FIRST_BYTES", 1 << 12)
    monkeypatch.setattr(lines, "BLOCK_BYTES", 1 << 13)
    return folder


def replayed(days: Path, processes: int, out: str, *options: str) -> tuple[int, Path]:
    """Replay into a folder of its own; return the exit code and the folder."""
    folder = days.with_name(f"with-{processes}")
    folder.mkdir(exist_ok=True)
    command = ["replay", "-c", str(days.with_name("job.toml")), str(days)]
    command += ["-o", str(folder / out), "-j", str(processes), *options]
    given = [one.replace("FOLDER", str(folder)) for one in command]
    return rocstream(given), folder


def told(text: str) -> str:
    """What was told, without what no two runs share."""
    return re.sub(r"in [0-9.]+ s \([0-9,]+/s\)|with-[0-9]", "", " ".join(text.split()))


@pytest.mark.parametrize(
    "options",
    [
        ["--from", "500", "--only", "[!N]*", "--rejected", "FOLDER/bad"],
        ["--from", "2025-11-30T00:08:00Z", "--to", "2025-11-30T00:50:00Z", "--cold"],
        ["--sweep", "short:window.size=20,60", "--alert", "auc < 0.9 for 2", "--change", "700"],
        ["--compare", "new"],
        ["--compare-keys", "007", "NA", "--pair-by", "label", "--rejected", "FOLDER/bad"],
        ["--report", "FOLDER/r.html", "--moment", "600", "--alert", "h > 0.1"],
        ["--plot", "FOLDER/p.svg", "--compare", "new", "--only", "*[7a]"],
    ],
    ids=lambda options: options[0] + options[2][:6] if len(options) > 2 else options[0],
)
def test_several_processes_give_what_one_gives(
    days: Path, capfd: pytest.CaptureFixture[str], options: list[str]
) -> None:
    found = []
    for processes in (1, 2, 3):
        code, folder = replayed(days, processes, "u.jsonl", *options)
        assert code == 0
        said = capfd.readouterr()
        files = {one.name: one.read_bytes() for one in sorted(folder.iterdir())}
        for name in files.keys() & {"r.html"}:
            files[name] = told(files[name].decode()).encode()
        found.append((told(said.out), told(said.err), files))
    assert any(content.count(b"\n") > 20 for content in found[0][2].values())
    for one in found[1:]:
        assert one[2] == found[0][2]
        assert one[:2] == found[0][:2]


def test_a_moment_before_all_that_is_played_has_nothing(
    days: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = []
    for processes in (1, 2):
        options = ["--report", "FOLDER/r.html", "--moment", "1", "--from", "2030-01-01T00:00:00Z"]
        code, folder = replayed(days, processes, "u.jsonl", *options, "--cold")
        assert code == 0
        assert "nothing lies between" in " ".join(capfd.readouterr().err.split())
        found.append(told((folder / "r.html").read_text()))
    assert found[0] == found[1]


def test_processes_that_are_not_forked_give_it_too(
    days: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, folder = replayed(days, 1, "u.jsonl", "--compare", "new")
    assert code == 0
    monkeypatch.setattr(shards, "_context", lambda: multiprocessing.get_context("spawn"))
    code, other = replayed(days, 2, "u.jsonl", "--compare", "new")
    assert code == 0
    assert (other / "u.jsonl").read_bytes() == (folder / "u.jsonl").read_bytes()


def test_what_lies_before_a_cut_comes_out_of_several_processes(
    days: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (days / "4.jsonl.gz").write_bytes(b"\x1f\x8b\x08")
    found = []
    for processes in (1, 2):
        code, folder = replayed(days, processes, "u.jsonl")
        assert code == 1
        found.append((folder / "u.jsonl.partial").read_bytes())
        assert "4.jsonl.gz is cut short" in capfd.readouterr().err
    assert found[0] == found[1]
    assert found[0].count(b"\n") > 500


def test_what_one_process_cannot_read_ends_all_of_them(
    days: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """One of them reads the damaged rows, the others wait for its share and send it theirs."""
    damaged = days / "4.parquet"
    shutil.copy(days / "2.parquet", damaged)
    first = pq.ParquetFile(damaged).metadata.row_group(5).column(1).data_page_offset
    content = bytearray(damaged.read_bytes())
    content[first : first + 400] = bytes(400)
    damaged.write_bytes(content)
    (days / "5.jsonl").write_bytes((days / "1.jsonl").read_bytes() * 40)
    found = []
    for processes in (1, 2, 3):
        code, folder = replayed(days, processes, "u.jsonl")
        assert code == 1
        assert "4.parquet is damaged" in capfd.readouterr().err
        found.append((folder / "u.jsonl.partial").read_bytes())
    assert found[1:] == found[:1] * 2
    assert found[0].count(b"\n") > 500


def test_keys_that_leave_files_are_not_shared_out(
    days: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    days.with_name("job.toml").write_text(HEAD + MONITORS + 'key_ttl = "1h"\n')
    assert replayed(days, 2, "u.jsonl")[0] == 2
    said = " ".join(capfd.readouterr().err.split())
    assert 'which keys of the monitor "long" leave (key_ttl, key_limit) hangs on all keys' in said
    assert "and files are one: leave --processes out, or replay a topic" in said


class Broken:
    """A source that cannot be read."""

    name = "broken"
    several = False

    def __init__(self, error: Exception) -> None:
        self.notes: list[str] = []
        self.error = error

    def runs(self, _readings: Any) -> Any:
        raise self.error


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (RocstreamError("so it is"), RocstreamError, "so it is"),
        (MemoryError(), RocstreamError, "out of memory: take fewer with --processes"),
        (ZeroDivisionError("by 0"), ProcessError, "failed: ZeroDivisionError: by 0"),
        (KeyError("k"), ProcessError, "failed: KeyError: 'k'"),
    ],
)
def test_an_error_is_the_last_word_of_a_process(
    settings_of: Callable[..., Settings], error: Exception, kind: type[Exception], says: str
) -> None:
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    plan = Plan([settings_of()], Broken(error))  # type: ignore[arg-type]
    child = context.Process(target=serve, args=(plan, 0, there, Exchange(context, 1)))
    child.start()
    try:
        assert here.poll(WAIT_SECONDS)
        answer = here.recv()
        child.join(WAIT_SECONDS)
        # Others wait for nothing that will not come.
        assert child.exitcode == int(error.args != ("so it is",))
    finally:
        child.terminate()
        child.join(WAIT_SECONDS)
        for end in (here, there):
            end.close()
    assert type(answer) is kind
    assert says in str(answer)
    if kind is ProcessError:
        assert "in runs" in answer.__notes__[0]


class Dying(Broken):
    """A source whose process ends while it reads, as one does that is killed."""

    def load(self) -> None:
        """Import nothing."""

    def runs(self, _readings: Any) -> Any:
        import os  # noqa: PLC0415 - in the process

        os._exit(9)


def test_a_process_that_is_gone_is_told_of(settings_of: Callable[..., Settings]) -> None:
    plan = Plan([settings_of()], Dying(KeyError()))  # type: ignore[arg-type]
    player = shards.ShardedPlayer(plan, 2)
    with player.running(), pytest.raises(RocstreamError, match=r"process \d .* ended unexpectedly"):
        list(player)


class Stuck(Dying):
    """A source of which nothing comes."""

    def runs(self, _readings: Any) -> Any:
        threading.Event().wait()


def test_a_process_that_is_gone_is_told_of_while_another_is_waited_for(
    settings_of: Callable[..., Settings],
) -> None:
    player = shards.ShardedPlayer(Plan([settings_of()], Stuck(KeyError())), 2)  # type: ignore[arg-type]
    with player.running():
        player._children[1].kill()
        with pytest.raises(RocstreamError, match=r"process 1 .* ended unexpectedly"):
            list(player)


def stuck(settings: Settings, link: Connection) -> None:
    player = shards.ShardedPlayer(Plan([settings], Stuck(KeyError())), 3)  # type: ignore[arg-type]
    with player.running():
        link.send("running")
        threading.Event().wait()


def test_no_process_outlives_the_one_that_started_it(settings_of: Callable[..., Settings]) -> None:
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    parent = context.Process(target=stuck, args=(settings_of(), there))
    parent.start()
    there.close()
    try:
        assert here.poll(WAIT_SECONDS)
        assert here.recv() == "running"
        parent.kill()
        # All of them hold the other end open.
        assert here.poll(WAIT_SECONDS)
        with pytest.raises(EOFError):
            here.recv()
    finally:
        parent.kill()
        parent.join(WAIT_SECONDS)
        here.close()


class Growing(Broken):
    """A source in which each process finds more than the one before."""

    def load(self) -> None:
        """Import nothing."""
        self.found = multiprocessing.Value("q", 0)

    def position(self) -> int:
        """Return nothing of it."""
        return 0

    def where(self, log: Log, offset: int) -> str:
        """Say where a record stands."""
        return f"{log.topic}:{offset}"

    def runs(self, readings: Any) -> Any:
        with self.found:
            self.found.value += 1
            last = self.found.value
        yield Log("growing"), RecordRun([], last, [Parser(one) for one in readings])


def test_a_source_that_changes_is_told_of(settings_of: Callable[..., Settings]) -> None:
    player = shards.ShardedPlayer(Plan([settings_of()], Growing(KeyError())), 3)  # type: ignore[arg-type]
    with player.running(), pytest.raises(RocstreamError, match="broken changed while it was read"):
        list(player)


def test_memory_that_cannot_be_shared_is_told_of(
    settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "SHARE_BYTES", 1 << 60)
    player = shards.ShardedPlayer(Plan([settings_of()], Growing(KeyError())), 2)  # type: ignore[arg-type]
    with pytest.raises(RocstreamError, match="have no memory to share"):
        player.running().__enter__()


@pytest.mark.parametrize("name", ["1.jsonl", "3.csv"])
def test_a_pipe_is_read_by_one_process(
    days: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    pipe = days.with_name("pipe") / name
    pipe.parent.mkdir()
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=((days / name).read_bytes(),))
    writer.start()
    found = []
    for source in (pipe, days / name):
        out = days.with_name("u.jsonl")
        command = ["replay", "-c", str(days.with_name("job.toml")), str(source), "-o", str(out)]
        assert rocstream([*command, "-j", "3"]) == 0
        found.append(out.read_bytes())
        said = " ".join(capfd.readouterr().err.split())
        assert ("was read by one process: --processes is for files" in said) == (source == pipe)
    writer.join(WAIT_SECONDS)
    assert found[0] == found[1]
    assert found[0].count(b"\n") > 50


def test_ctrl_c_while_processes_start_comes_when_they_have(
    settings_of: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    context = multiprocessing.get_context("fork")

    class Interrupted(context.Process):  # type: ignore[misc, name-defined]
        def start(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            super().start()

    monkeypatch.setattr(context, "Process", Interrupted, raising=False)
    player = shards.ShardedPlayer(Plan([settings_of()], Stuck(KeyError())), 3)  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        player.running().__enter__()
    assert not multiprocessing.active_children()


def test_no_room_for_what_a_process_is_ahead_with_is_told_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shards, "IN_MEMORY", 100)
    spool = shards._Spool()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
    try:
        with pytest.raises(RocstreamError, match=r"cannot be kept in .*: make room, have TMPDIR"):
            spool.put(bytes(5_000))
        spool.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def interrupted_at(number: int) -> Callable[[Session, Step], None]:
    """Return what a session writes with until Ctrl-C comes."""
    steps = count(1)

    def write(_session: Session, _step: Step) -> None:
        if next(steps) == number:
            raise KeyboardInterrupt

    return write


def test_an_early_end_is_named_as_one_process_names_it(
    days: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Blank lines are no records, so only who has read a file knows where a record stands."""
    first = days / "1.jsonl"
    first.write_bytes(first.read_bytes().replace(b"\n", b"\n\n"))
    found = []
    for processes in (1, 2):
        with monkeypatch.context() as patched:
            patched.setattr(Session, "_write", interrupted_at(3))
            assert replayed(days, processes, "u.jsonl")[0] == 130
        said = " ".join(capfd.readouterr().out.split())
        found.append(re.findall(r"ended by Ctrl-C before (\S+):", said))
    assert found[0] == found[1]
    assert found[0][0].startswith("1.jsonl:")


def test_what_a_process_is_ahead_with_comes_in_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "IN_MEMORY", 100)
    spool = shards._Spool()
    for turn in range(3):
        for number in range(50):
            spool.put(b"%d" % number * turn)
        assert [spool.take() for _ in range(30)] == [b"%d" % n * turn for n in range(30)]
        spool.put(b"last")
        assert [spool.take() for _ in range(20)] == [b"%d" % n * turn for n in range(30, 50)]
        assert (spool.take(), spool.take(), spool.empty) == (b"last", None, True)
    spool.close()
