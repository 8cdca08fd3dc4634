"""The rows of the table: how each is measured, and what it is to reach.

Rows of one input share a filled window and go on in its stream, so that even the largest is filled
once. Times are CPU time of the thread.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.engine import baselines, peers
from benchmarks.engine.inputs import STREAMS, Classes, Drawn, Stream
from engine import CountWindow, DecayWindow, OrdinalCountWindow, Roc

if TYPE_CHECKING:
    from collections.abc import Callable

LEAST = 1e-9  # the share of its weight at which a decayed event leaves
SET = "Rust BTreeSet"
AUC, BOTH = ("auc",), ("auc", "h")
EVERY = (1, 10, 100, 1000)
ENDS = (1, 100)  # where two readings tell enough
OTHERS = ("normal", "mild ties", "two decimals", "ascending", "lattice")
ALL = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
TO_1E6 = ALL[:-1]


@dataclass(frozen=True)
class Goal:
    """What a row is to reach: a bound per window size, of its ratio to a row or of its ns."""

    bounds: dict[int, float]
    to: str | None = SET
    least: bool = False

    def met(self, size: int, value: float) -> bool | None:
        """Tell whether it is reached; None where nothing was asked."""
        bound = self.bounds.get(size)
        if bound is None:
            return None
        return value >= bound if self.least else value <= bound

    def __str__(self) -> str:
        bounds = sorted(set(self.bounds.values()))
        of = "ns" if self.to is None else f"x {self.to}"
        sign = ">=" if self.least else "<="
        sizes = "" if len(bounds) > 1 or len(self.bounds) > 2 else f" at {min(self.bounds):.0e}"
        return f"{sign} {' / '.join(f'{bound:,g}' for bound in bounds)} {of}{sizes}"


def everywhere(bound: float, to: str = SET) -> Goal:
    """Ask for the same ratio from 1e3 to 1e6."""
    return Goal(dict.fromkeys(TO_1E6, bound), to)


@dataclass
class Bench:
    """What the rows of one window size share."""

    size: int
    events: int  # of a turn
    seconds: float  # of a peer's turn, at the most
    filled: dict[str, tuple[Any, Stream]] = field(default_factory=dict)

    def window(self, kind: str, made: Callable[[], tuple[Any, Stream]]) -> tuple[Any, Stream]:
        """Return the full window of a kind and what comes after it."""
        if kind not in self.filled:
            window, stream = made()
            window.extend(*stream.take(self.size))
            self.filled[kind] = window, stream
        return self.filled[kind]


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    turn: Callable[[Bench], float | None]
    goal: Goal | None = None
    sizes: tuple[int, ...] = ALL


def slides(
    window: Any, stream: Stream, events: int, every: int, read: tuple[str, ...], alpha: float
) -> float:
    """Return ns per event of one bulk call that reads the full window after each slide."""
    # The first reading after another row's turn has all of that turn to catch up with.
    window.slide(*stream.take(every), every=every, read=read, alpha=alpha)
    chunk = stream.take(events)
    begin = time.thread_time()
    window.slide(*chunk, every=every, read=read, alpha=alpha)
    return (time.thread_time() - begin) / events * 1e9


def full(bench: Bench, name: str = "binormal") -> tuple[CountWindow, Stream]:
    """Return the full count window of an input, and what comes after it."""
    return bench.window(name, lambda: (CountWindow(bench.size), STREAMS[name](bench.size)))


def counted(
    bench: Bench, every: int, read: tuple[str, ...], name: str = "binormal", alpha: float = 2.0
) -> float:
    """Measure a count window."""
    return slides(*full(bench, name), bench.events, every, read, alpha)


def decayed(bench: Bench, every: int, read: tuple[str, ...]) -> float:
    """Measure a decay window that holds as many events."""
    half_life = bench.size / math.log2(1 / LEAST)
    window, stream = bench.window("decay", lambda: (DecayWindow(half_life, least=LEAST), Drawn()))
    return slides(window, stream, bench.events, every, read, 2.0)


def ordered(bench: Bench, every: int) -> float:
    """Measure the volume under the surface of four ordered classes."""
    window, stream = bench.window(
        "ordinal", lambda: (OrdinalCountWindow(4, bench.size), Classes(4))
    )
    window.slide(*stream.take(every), every=every)
    chunk = stream.take(bench.events)
    begin = time.thread_time()
    window.slide(*chunk, every=every)
    return (time.thread_time() - begin) / bench.events * 1e9


def silent(bench: Bench) -> float:
    """Measure the structure alone: a window that nobody reads while it slides."""
    window, stream = full(bench)
    chunk = stream.take(bench.events)
    window.roc.auc()  # a window makes its ROC at the first reading, and keeps it from then on
    begin = time.thread_time()
    window.extend(*chunk)
    return (time.thread_time() - begin) / bench.events * 1e9


def priors(bench: Bench, every: int, epsilon: float | None) -> float:
    """Measure H under priors of one in ten, which are read from Python."""
    window, stream = full(bench)
    count = min(bench.events, 300 * every)
    scores, labels = stream.take(count)
    begin = time.thread_time()
    for at in range(0, count, every):
        window.extend(scores[at : at + every], labels[at : at + every])
        window.roc.h_measure(priors=(0.9, 0.1), epsilon=epsilon)
    return (time.thread_time() - begin) / count * 1e9


def single_calls(bench: Bench) -> float:
    """Measure one remove, one add and one reading called from Python."""
    stream = Drawn()
    roc = Roc()
    before = stream.take(bench.size)
    roc.extend(*before)
    count = min(bench.size, bench.events)
    old = [column[:count].tolist() for column in before]
    new = [column.tolist() for column in stream.take(count)]
    begin = time.thread_time()
    for score, label, later, its_label in zip(*old, *new, strict=True):
        roc.remove(score, label)
        roc.add(later, its_label)
        roc.auc()
    return (time.thread_time() - begin) / count * 1e9


def baseline(bench: Bench, measure: Callable[..., float | None], every: int) -> float | None:
    """Measure a peer over the events that the engine is checked with."""
    count = bench.size + every * max(bench.events // 2 // every, 1)
    return measure(bench.size, events=Drawn().take(count), seconds=bench.seconds)


def ours() -> list[Row]:
    """Rows of the count window."""

    def count(every: int, *words: Any) -> Callable[[Bench], float]:
        return lambda bench: counted(bench, every, *words)

    alone = "structure alone, no reading"
    auc = {1: everywhere(1.2, alone), 100: everywhere(1.0)}
    both = {1: everywhere(5.5), 100: everywhere(3.0)}
    rows = [Row(alone, silent)]
    rows += [Row(f"auc /{every}", count(every, AUC), auc.get(every)) for every in EVERY]
    for name in OTHERS:
        goal = everywhere(1.05) if name == "mild ties" else None
        rows.append(Row(f"auc /100, {name}", count(100, AUC, name), goal))
    rows += [Row(f"auc+h /{every}", count(every, BOTH), both.get(every)) for every in EVERY]
    for name in OTHERS:
        goal = everywhere(10.0) if name == "lattice" else None
        rows += [Row(f"auc+h /{every}, {name}", count(every, BOTH, name), goal) for every in ENDS]
    for alpha in (3.0, 2.5):
        for every in ENDS:
            name = f"auc+h /{every}, Beta({alpha:g}, 2)"
            rows.append(Row(name, count(every, BOTH, "binormal", alpha)))
    return rows


def others() -> list[Row]:
    """Rows of fixed priors, decay, ordered classes and single calls."""
    rows = []
    for every in ENDS:
        for epsilon, kind in ((None, "exact"), (0.1, "eps 0.1")):
            turn = partial(priors, every=every, epsilon=epsilon)
            rows.append(Row(f"h /{every}, fixed priors, {kind}", turn))
    for every in ENDS:
        for read in (AUC, BOTH):
            name = f"{'+'.join(read)} /{every}"
            turn = partial(decayed, every=every, read=read)
            rows.append(Row(f"{name}, decay", turn, everywhere(2.5, name)))
    return [
        *rows,
        Row("vuhs r=4 /1", partial(ordered, every=1), Goal({10_000: 1500.0}, None)),
        Row("vuhs r=4 /100", partial(ordered, every=100), Goal({10_000: 300.0}, None)),
        Row("auc, three single calls", single_calls, Goal({10_000: 600.0}, None)),
    ]


def theirs() -> list[Row]:
    """Rows of peers and baselines."""
    million, thousands = ALL[:-1], ALL[:-2]

    def scratch(name: str, reading: baselines.Reading, every: int, sizes: tuple[int, ...]) -> Row:
        def measure(size: int, **rest: Any) -> float:
            return baselines.from_scratch(name, reading, size, every, **rest)

        return Row(name, partial(baseline, measure=measure, every=every), sizes=sizes)

    def compiled(name: str, kind: str, every: int, sizes: tuple[int, ...]) -> Row:
        def measure(size: int, **rest: Any) -> float | None:
            return baselines.compiled(kind, size, every, **rest)

        return Row(name, partial(baseline, measure=measure, every=every), sizes=sizes)

    rows = []
    for every in ENDS:
        rows += [
            compiled(f"balanced tree, swept /{every}", "tree", every, million),
            compiled(f"Tatti 2018, eps 0.1 /{every}", "tatti", every, million),
            compiled(f"100 bins /{every}", "bins", every, ALL),
            scratch(f"auc from scratch, numpy /{every}", baselines.auc_from_scratch, every, ALL),
            scratch(f"auc from scratch, scikit-learn /{every}", baselines.scikit_learn, every, ALL),
            scratch(f"h from scratch, isotonic /{every}", baselines.h_from_scratch, every, ALL),
            scratch(f"h from scratch, hmeasure /{every}", baselines.hmeasure, every, thousands),
        ]
    rolling = Goal({10_000: 150.0, 100_000: 1500.0}, "auc /1", least=True)
    rows += [
        Row(
            "river RollingROCAUC /1",
            partial(baseline, measure=baselines.river_rolling, every=1),
            rolling,
            thousands,
        ),
        Row(
            "engine.river in river's Rolling /1",
            partial(baseline, measure=baselines.adapter_rolling, every=1),
            sizes=thousands,
        ),
        Row(
            "river ROCAUC, 100 thresholds /1",
            partial(baseline, measure=baselines.river_binned, every=1),
            sizes=thousands,
        ),
    ]
    return rows


def rows(set_events: int) -> list[Row]:
    """All rows, the one that most are compared with first."""

    def ordered_set(source: str) -> Callable[[Bench], float | None]:
        return lambda bench: peers.remove_and_insert(source, bench.size, set_events)

    return [
        Row(SET, ordered_set("btreeset.rs")),
        Row("C++ multiset", ordered_set("multiset.cpp"), sizes=TO_1E6),
        *ours(),
        *others(),
        *theirs(),
    ]
