"""Answers to requests of one kind that never come, while a worker works or starts."""

from __future__ import annotations

import sys
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson
from crew import Crew
from ground import brokers, expected_count, ground, judge, understand_source
from kafka_proxy import Api, Proxy, properties
from reading import Reader
from source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from checker import Verdict
    from crew import Ended
    from ground import Ground

PARTITIONS = 2
RATE = 400.0
RECOVERY_SECONDS = 90.0
H_UPDATES = 50

AT_WORK = (
    Api.PRODUCE,
    Api.FETCH,
    Api.OFFSET_COMMIT,
    Api.HEARTBEAT,
    Api.ADD_PARTITIONS,
    Api.END_TXN,
)
"""What a worker that works asks for all the time."""

AT_START = (
    Api.API_VERSIONS,
    Api.METADATA,
    Api.FIND_COORDINATOR,
    Api.JOIN_GROUP,
    Api.SYNC_GROUP,
    Api.OFFSET_FETCH,
    Api.INIT_PRODUCER_ID,
    Api.LIST_OFFSETS,
)
"""What it asks for when it starts, or connects anew."""

UNNEEDED = (Api.OFFSET_COMMIT, Api.LIST_OFFSETS)
"""What nothing waits for: lag tools, and offsets that nobody asks for while all is well."""

TELL_SECONDS = 8.0
"""After so long a wait has been told."""

SHOWN = {"error", "task", "brokers", "partitions", "coordinator_of", "exception"}
IMPATIENT = """
import sys
import worker.app
from worker.cli import main
from worker.transport import joining
joining.PROBE_SECONDS = 1.0
worker.app.REQUEST_SECONDS = float(sys.argv.pop(1))
main()
"""


@dataclass
class Case:
    """One fault, and what the worker said from its beginning until all was well again.

    Parameters
    ----------
    how
        What becomes of the answer: a method of `Proxy`.
    api
        To requests of which kind.
    seconds
        For how long.
    """

    how: str
    api: Api
    seconds: float
    hurt: int = 0
    back: float | None = None
    said: list[dict[str, Any]] = field(default_factory=list)

    @property
    def told(self) -> bool:
        """Whether the worker said that it waits, or need not have: it did, or not for long."""
        short = self.how == "cut" or self.seconds < TELL_SECONDS or self.api in UNNEEDED
        return short or not self.hurt or any("waiting" in line["event"] for line in self.said)

    @property
    def alarms(self) -> list[str]:
        """What it said that looks like a fault of its own."""
        return [_short(line) for line in self.said if "exception" in line or line["level"] == "?"]


def cases(seconds: float) -> list[Case]:
    """Return every fault there is."""
    return [Case(how, api, seconds) for how in ("swallow", "cut") for api in (*AT_WORK, *AT_START)]


def brief() -> list[Case]:
    """Return faults of each kind for less than a minute."""
    return [
        Case("swallow", Api.JOIN_GROUP, 8),
        Case("swallow", Api.FETCH, 8),
        Case("swallow", Api.FIND_COORDINATOR, 8),
        Case("cut", Api.END_TXN, 2),
    ]


@dataclass
class Result:
    """What came of a run."""

    cases: list[Case]
    ended: list[Ended]
    verdict: Verdict

    @property
    def good(self) -> bool:
        """Whether nothing was lost or doubled, and the worker came back each time."""
        return (
            self.verdict.good
            and not self.ended
            and all(case.back is not None and case.told and not case.alarms for case in self.cases)
        )


class Run:
    """One worker, reached through a proxy, and one fault after another."""

    def __init__(self, made: Ground, proxy: Proxy, seed: int, program: Sequence[str]) -> None:
        self._made = made
        self._proxy = proxy
        self._crew = Crew(made.job.path, made.folder, program=program)
        topics = made.job.settings.topics
        self._source = Source(made.servers, topics.events, RATE, seed)

    def run(self, cases: Iterable[Case]) -> Result:
        """Do it all; whatever happens, no worker is left."""
        done = []
        try:
            with Reader(self._made.servers, self._made.job.settings.topics.updates) as reader:
                self._start()
                self._source.start()
                self._move(reader, RECOVERY_SECONDS)
                for case in cases:
                    self._do(case, reader)
                    done.append(case)
                self._source.stop()
                understood = understand_source(self._made)
                _say("reading to the end")
                self._finish(expected_count(understood))
                self._crew.stop()
            verdict = judge(self._made, understood, h_updates=H_UPDATES)
        finally:
            self._crew.close()
        return Result(done, self._crew.ended, verdict)

    def _do(self, case: Case, reader: Reader) -> None:
        before = self._proxy.hurt[case.api]
        begins = time.monotonic()
        getattr(self._proxy, case.how)(case.api)
        if case.api in AT_START:
            for worker in list(self._crew.workers):
                self._crew.kill(worker)
            # It would wait for the session of the dead one.
            self._made.job.bury()
            self._start(wait=False)
        mark = 0 if case.api in AT_START else len(self._lines())
        while time.monotonic() < begins + case.seconds:
            reader.poll(0.1)
            time.sleep(0.05)
        case.hurt = self._proxy.hurt[case.api] - before
        self._proxy.heal()
        healed = time.monotonic()
        self._move(reader, 1.0)
        case.back = self._move(reader, RECOVERY_SECONDS, healed)
        case.said = self._lines()[mark:]
        if not self._works():
            self._start()
        _say(_row(case))
        for line, count in Counter(_short(line) for line in case.said).items():
            _say(f"    {count:3} {line}")

    def _move(self, reader: Reader, seconds: float, since: float | None = None) -> float | None:
        """Wait for updates of what was sent from now on; return how long that took."""
        events = self._source.events
        began = time.monotonic()
        while self._source.events < events + 200 and time.monotonic() < began + seconds:
            time.sleep(0.05)
        while time.monotonic() < began + seconds and self._works():
            if reader.poll(0.1):
                return round(time.monotonic() - (since or began), 1)
        return None

    def _finish(self, count: int) -> None:
        with Reader(self._made.servers, self._made.job.settings.topics.updates) as reader:
            found, deadline = 0, time.monotonic() + RECOVERY_SECONDS
            while found < count and time.monotonic() < deadline and self._works():
                found += len(reader.poll(0.1))

    def _start(self, *, wait: bool = True) -> None:
        self._worker = self._crew.start()
        if wait:
            self._crew.wait_until(lambda: self._worker.doing() == "working", "a start")

    def _works(self) -> bool:
        self._crew.sweep()
        return bool(self._crew.workers)

    def _lines(self) -> list[dict[str, Any]]:
        return [_parsed(line) for line in self._worker.text().splitlines()]


def _parsed(line: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = orjson.loads(line)
    except ValueError:
        return {"event": f"Traceback? {line}", "level": "?"}
    return found


def _short(line: dict[str, Any]) -> str:
    more = {name: value for name, value in line.items() if name in SHOWN}
    return f"{line['level']:7} {line['event'][:180]} {str(more)[:300] if more else ''}"


@contextmanager
def _ground() -> Iterator[tuple[Ground, Proxy]]:
    module = brokers()
    direct, controller, behind, port = module.free_ports(4)
    broker = module.with_properties(
        properties(direct, controller, behind, port), (direct, controller)
    )
    with Proxy(port, behind) as proxy, ground(PARTITIONS, broker=broker) as made:
        path = made.job.path
        path.write_text(path.read_text().replace(made.servers, proxy.address))
        yield made, proxy


def run(cases: Iterable[Case], seed: int, *, patience: float | None = None) -> Result:
    """Make the ground and do one after the other there.

    With `patience`, the worker gives a silent connection up after so many seconds.
    """
    program = ("-m", "worker") if patience is None else ("-c", IMPATIENT, str(patience))
    with _ground() as (made, proxy):
        return Run(made, proxy, seed, program).run(cases)


def report(result: Result) -> str:
    """Write what was hurt, how long it took to come back, and what the checker found."""
    lines = [
        f"{'Nothing was found' if result.good else 'FAULTS WERE FOUND'}.",
        "",
        "| answer | answers lost | seconds from the end to the next update | told |",
        "|---|---:|---:|---|",
        *map(_row, result.cases),
        "",
        *(f"{kind}: {count}" for kind, count in result.verdict.counts.items()),
        *(f"{ended}" for ended in result.ended),
        *(f"{case.how} {case.api.name}: {alarm}" for case in result.cases for alarm in case.alarms),
        *(f"{kind}: {examples}" for kind, examples in result.verdict.examples.items()),
    ]
    return "\n".join(lines)


def _row(case: Case) -> str:
    told = "yes" if case.told else "NO"
    return f"| {case.how} {case.api.name} | {case.hurt} | {case.back} | {told} |"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
