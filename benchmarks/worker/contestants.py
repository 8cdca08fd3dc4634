"""Who is measured, how each is started, and what each does and promises."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.worker.workload import Workload

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Job:
    """One run of one contestant: where it reads and writes."""

    bootstrap_servers: str
    name: str  # consumer group and prefix of every internal name
    events: str
    updates: str
    partitions: int
    workload: Workload
    folder: Path

    def arguments(self) -> list[str]:
        """Return the options that the peers' small programs share."""
        return [
            *("--bootstrap-servers", self.bootstrap_servers),
            *("--group", self.name),
            *("--events", self.events),
            *("--updates", self.updates),
            *("--state", str(self.folder / "state")),
            *("--partitions", str(self.partitions)),
            *("--size", str(self.workload.size)),
            *("--slide", str(self.workload.slide)),
        ]


@dataclass(frozen=True)
class Contestant:
    """One row of the table.

    Parameters
    ----------
    name : str
        As given to `--peers`.
    reads : str
        Which readings each update carries, and how ties count.
    promise : str
        What is true after a crash.
    prepare : callable
        Job to a list of commands to be run to their end first.
    command : callable
        Job to the command that is measured.
    """

    name: str
    reads: str
    promise: str
    prepare: Callable[[Job], list[list[str]]]
    command: Callable[[Job], list[str]]


def _nothing(_job: Job) -> list[list[str]]:
    return []


def program() -> str:
    """Return the path of this environment's `rocstream`."""
    return str(Path(sys.executable).parent / "rocstream")


def settings_file(job: Job, commit_interval: float) -> str:
    """Write the settings of a job (`commit_interval` in seconds); return the file's path."""
    path = job.folder / "rocstream.toml"
    window = f'{{ kind = "count", size = {job.workload.size}, slide = {job.workload.slide} }}'
    path.write_text(
        f"""[kafka]
bootstrap_servers = "{job.bootstrap_servers}"
group = "{job.name}"
commit_interval = "{round(commit_interval * 1000)}ms"

[topics]
events = "{job.events}"
updates = "{job.updates}"
rejected = "{job.name}-rejected"
partitions = {job.partitions}
replication = 1
start = "earliest"

[[monitor]]
name = "bench"
window = {window}
metrics = ["auc", "h"]
"""
    )
    return str(path)


def ours(commit_interval: float) -> Contestant:
    """Return this project's worker; `commit_interval` in seconds."""
    return Contestant(
        "rocstream",
        "AUC and H, ties half",
        "exactly once: updates, windows and position in one transaction",
        lambda job: [[program(), "topics", "create", "-c", settings_file(job, commit_interval)]],
        lambda job: [program(), "worker", "-c", settings_file(job, commit_interval)],
    )


def stock(*, durable: bool) -> Contestant:
    """Return the same agent logic on the stock Faust transport."""
    extra = ["--durable"] if durable else []
    return Contestant(
        "faust" if durable else "faust-memory",
        "AUC and H, ties half (our engine)",
        "at least once at best: a replayed event counts twice; a table write per event"
        if durable
        else "at least once at best: windows are lost in a crash",
        _nothing,
        lambda job: [
            *(sys.executable, "-m", "benchmarks.worker.stock_faust"),
            *job.arguments(),
            *extra,
        ],
    )


def quix(commit_interval: float, python: Path, guarantee: str, *, durable: bool) -> Contestant:
    """Return river's RollingROCAUC on Quix Streams, run by the interpreter `python`."""
    once = guarantee == "exactly-once"
    name = ("quix-eos" if once else "quix") + ("" if durable else "-memory")
    promise = guarantee.replace("-", " ")
    promise += "; a state write per event" if durable else " delivery: windows are lost in a crash"
    extra = ["--durable"] if durable else []
    return Contestant(
        name,
        "AUC alone, ties by order of arrival (river)",
        promise,
        _nothing,
        lambda job: [
            *(str(python), str(HERE / "quix_river.py")),
            *job.arguments(),
            *("--guarantee", guarantee, "--commit-interval", str(commit_interval)),
            *extra,
        ],
    )


def every(
    commit_interval: float, quix_commit_interval: float, quix_python: Path
) -> dict[str, Contestant]:
    """Return all contestants by name, ours first; intervals in seconds."""
    found = [
        ours(commit_interval),
        *(
            quix(quix_commit_interval, quix_python, guarantee, durable=durable)
            for guarantee in ("at-least-once", "exactly-once")
            for durable in (False, True)
        ),
        stock(durable=False),
        stock(durable=True),
    ]
    return {contestant.name: contestant for contestant in found}
