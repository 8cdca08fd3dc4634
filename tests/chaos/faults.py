"""The fault run: a stream, workers and a broker, and seeded faults to all of them."""

from __future__ import annotations

import heapq
import itertools
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from crew import Crew
from ground import compaction, expected_count, ground, judge, understand_source
from reading import Reader
from source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from checker import Verdict
    from crew import Ended, Worker
    from ground import Ground

PARTITIONS = 4
SLOTS = ("chaos-0", "chaos-1")
"""Workers with static membership: one that is back at once has its partitions again at once, so
most kills land in a worker that works, and not in a group that waits for a session to end."""

LARGEST_CREW = 3
PROGRESS_SECONDS = 5.0
H_UPDATES = 300

FREEZE_SECONDS = (11.0, 14.0)
"""A frozen worker's session is over after 10 s."""

STALL_SECONDS = 90.0
"""No update for so long at the end, although some are missing: they will not come."""

LINGER_SECONDS = 1.5
"""All updates are there: what should not come may follow."""


class Plan(NamedTuple):
    """What a run is asked for."""

    kills: int
    minutes: float
    seed: int
    rate: float
    sabotage: str = ""
    broker_faults: bool = True
    zombies: bool = True


@dataclass
class Result:
    """What came of a run."""

    plan: Plan
    broker: str
    verdict: Verdict
    done: Counter[str]
    kills_while: Counter[str]
    ended: list[Ended]
    fenced: int
    facts: dict[str, object] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Whether the checker found nothing, and no worker ended by itself."""
        return self.verdict.good and not self.ended


def schedule(plan: Plan) -> list[tuple[float, str]]:
    """Draw the moments of all faults, in seconds from the beginning."""
    rng = random.Random(plan.seed)
    counts = {"kill": plan.kills, "stop": max(1, plan.kills // 6), "come or go": plan.kills // 4}
    if plan.zombies:
        counts["freeze"] = max(1, plan.kills // 8)
    if plan.broker_faults:
        counts["kill broker"] = max(1, plan.kills // 12)
        counts["freeze broker"] = max(1, plan.kills // 12)
        counts["restart broker"] = plan.kills // 25
    seconds = plan.minutes * 60
    return sorted(
        (rng.uniform(0.02, 1.0) * seconds, what)
        for what, count in counts.items()
        for _ in range(count)
    )


class Run:
    """One run, on the ground that was made for it."""

    def __init__(self, plan: Plan, made: Ground) -> None:
        self.plan = plan
        self._made = made
        self._rng = random.Random(plan.seed + 7)
        self.crew = Crew(made.job.path, made.folder, plan.sabotage)
        topics = made.job.settings.topics
        self._source = Source(made.servers, topics.events, plan.rate, plan.seed)
        self.done: Counter[str] = Counter()
        self.kills_while: Counter[str] = Counter()
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._updates = 0
        self._reader: Reader | None = None
        self._began = time.monotonic()
        self._told = 0.0
        self._broker_up = True

    def run(self) -> Result:
        """Do it all; whatever happens, no worker is left."""
        try:
            with Reader(self._made.servers, self._made.job.settings.topics.updates) as reader:
                self._reader = reader
                self._hurt()
                self._mend()
                understood = understand_source(self._made)
                self._wait_for(expected_count(understood))
                self._say("stopping the workers")
                self.crew.sweep()
                self.crew.stop()
            self._say("checking")
            verdict = judge(self._made, understood, h_updates=H_UPDATES)
            given_out, left = compaction(self._made)
        finally:
            self.crew.close()
        facts = {
            "seconds": round(time.monotonic() - self._began),
            "records of the source": understood.records,
            "events of the source": understood.events,
            "transactions of the source": self._source.committed,
            "transactions of the source that were aborted": self._source.aborted,
            "records refused": len(understood.refused),
            "updates compared": verdict.updates,
            "of them with H": verdict.with_h,
            "dead letters compared": verdict.rejections,
            "offsets given out in the changelog": given_out,
            "records left in the changelog by compaction": left,
        }
        return Result(
            self.plan,
            self._made.broker.name,
            verdict,
            self.done,
            self.kills_while,
            self.crew.ended,
            self.crew.fenced,
            facts,
        )

    def _hurt(self) -> None:
        for slot in SLOTS:
            self.crew.start(slot, static=True)
        self.crew.wait_until(
            lambda: all(worker.doing() == "working" for worker in self.crew.workers), "a start"
        )
        self._source.start()
        self._began = time.monotonic()
        for moment, what in schedule(self.plan):
            self._pass_time(self._began + moment)
            self._do(what)
        self._pass_time(time.monotonic() + 1)

    def _mend(self) -> None:
        """Let everything that is under way come to its end, and see that a worker is there."""
        while self._later:
            self._pass_time(self._later[0][0])
        self._source.stop()
        if not self.crew.awake():
            self._start_missing()

    def _wait_for(self, count: int) -> None:
        """Wait for the updates, or until no more come."""
        moved, before = time.monotonic(), -1
        while time.monotonic() - moved < STALL_SECONDS:
            self._pass_time(time.monotonic() + 0.2)
            if self._updates != before:
                moved, before = time.monotonic(), self._updates
            elif self._updates >= count and time.monotonic() - moved > LINGER_SECONDS:
                return
        self._say(f"only {self._updates} of {count} updates came")

    def _do(self, what: str) -> None:
        awake = self.crew.awake()
        if what.endswith("broker"):
            if not self._broker_up:
                self._after(3.0, lambda: self._do(what))
                return
            self._hurt_broker(what)
        elif what == "come or go" and len(self.crew.workers) < LARGEST_CREW:
            self.done["workers that joined"] += 1
            self.crew.start()
        elif not awake:
            self._after(1.0, lambda: self._do(what))
        elif what == "kill":
            self._kill(self._victim(awake))
        elif what == "freeze":
            self._freeze(self._rng.choice(awake))
        else:
            worker = self._rng.choice(awake)
            self.done["SIGTERM to a worker" if what == "stop" else "workers that left"] += 1
            self.crew.ask_to_stop(worker)
            self._after(self._rng.uniform(0, 2), self._start_missing)

    def _victim(self, awake: list[Worker]) -> Worker:
        """Choose one, mostly one that is at work: there is the most to lose."""
        working = [worker for worker in awake if worker.doing() == "working"]
        return self._rng.choice(working if working and self._rng.random() < 0.75 else awake)

    def _kill(self, worker: Worker) -> None:
        self.done["kill -9 of a worker"] += 1
        doing = worker.doing()
        self.kills_while[doing if self._broker_up else f"{doing}, no broker"] += 1
        self.crew.kill(worker)
        # Mostly a supervisor starts another at once, sometimes it takes its time.
        self._after(self._rng.choice((0, 0, 0, 4)), self._start_missing)

    def _freeze(self, worker: Worker) -> None:
        self.done["workers frozen past their session"] += 1
        worker.freeze()
        if worker.static and self._rng.random() < 0.5:
            # Somebody starts another under the same static name: the first must not come back.
            self.done["of them replaced under their static name"] += 1
            self.crew.twins.add(worker.name)
            self.crew.start(worker.name, static=True)
        elif len(self.crew.workers) < LARGEST_CREW:
            self.crew.start()

        def wake() -> None:
            if worker.alive:
                worker.thaw()

        self._after(self._rng.uniform(*FREEZE_SECONDS), wake)

    def _hurt_broker(self, what: str) -> None:
        broker = self._made.broker
        self._broker_up = False

        def start() -> None:
            broker.start()
            self._broker_up = True

        def thaw() -> None:
            broker.thaw()
            self._broker_up = True

        if what == "freeze broker":
            self.done["broker frozen"] += 1
            broker.freeze()
            # Sometimes for longer than a transaction lives.
            self._after(self._rng.choice((2.0, 5.0, 18.0)), thaw)
        elif what == "kill broker":
            self.done["kill -9 of the broker"] += 1
            broker.kill()
            self._after(self._rng.uniform(0, 5), start)
        else:
            self.done["orderly restart of the broker"] += 1
            broker.stop()
            self._after(0, start)

    def _start_missing(self) -> None:
        """Start the static workers that are not there."""
        here = {worker.name for worker in self.crew.workers}
        for slot in SLOTS:
            if slot not in here:
                self.crew.start(slot, static=True)

    def _after(self, seconds: float, call: Callable[[], None]) -> None:
        heapq.heappush(self._later, (time.monotonic() + seconds, next(self._numbers), call))

    def _pass_time(self, until: float) -> None:
        """Let time pass, and do what comes due."""
        while True:
            now = time.monotonic()
            if self._later and self._later[0][0] <= now:
                heapq.heappop(self._later)[2]()
                continue
            if now >= until:
                return
            if self._reader is not None:
                self._updates += len(self._reader.poll(0.02))
            time.sleep(0.02)
            if self.crew.sweep():
                self._start_missing()
            if now - self._told > PROGRESS_SECONDS:
                self._told = now
                self._progress()

    def _progress(self) -> None:
        frozen = sum(worker.frozen for worker in self.crew.workers)
        self._say(
            f"{self._source.events:,} events sent, {self._updates:,} updates seen, "
            f"{self.done['kill -9 of a worker']}/{self.plan.kills} kills, "
            f"{sum(self.done.values())} faults, {len(self.crew.workers)} workers"
            + (f" ({frozen} frozen)" if frozen else "")
            + ("" if self._broker_up else ", no broker")
            + (f", {len(self.crew.ended)} ended by themselves" if self.crew.ended else "")
        )

    def _say(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:6.0f} s  {text}", file=sys.stderr, flush=True)


def run(plan: Plan) -> Result:
    """Make the ground and run a plan on it."""
    with ground(PARTITIONS, compacting=True) as made:
        return Run(plan, made).run()
