"""Lets every allocation of the engine's calls fail, in a process that has `starve.c` in it.

`python starved.py STRUCTURE once` lets each fail alone, `lasting` all those after it as well until
the call is over. It prints how many failures it went through.
"""

from __future__ import annotations

import ctypes
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from engine import LandmarkWindow, reference
from engine import _core as core

if TYPE_CHECKING:
    from collections.abc import Callable

    Call = Callable[[Any], object]

RNG = np.random.default_rng(1)
LABELS = (RNG.random(4000) < 0.4).astype(np.uint8)
SCORES = RNG.normal(size=4000) + LABELS
TIED = SCORES.round(1)
WEIGHTS = RNG.uniform(0.1, 9, 4000)
TIMES = np.arange(4000, dtype=np.int64)
CLASSES = RNG.integers(0, 4, 4000)


def part(start: int, count: int, *columns: Any) -> list[Any]:
    return [None if column is None else column[start : start + count] for column in columns]


def each(method: str, start: int, count: int, *columns: Any) -> list[Call]:
    """Call a method for one event at a time."""
    events = zip(*(column.tolist() for column in part(start, count, *columns)), strict=True)
    return [lambda made, event=event: getattr(made, method)(*event) for event in events]


def bulk(method: str, start: int, count: int, *columns: Any, **words: Any) -> Call:
    """Call a method for many events at once."""
    return lambda made: getattr(made, method)(*part(start, count, *columns), **words)


def read(made: Any) -> object:
    return made.h_measure()


def calls_of_roc() -> list[Call]:
    return [
        *each("add", 0, 200, SCORES, LABELS),
        read,
        bulk("extend", 200, 1500, SCORES, LABELS),
        read,
        *each("add", 1700, 100, TIED, LABELS),
        bulk("extend", 1800, 600, TIED, LABELS),
        read,
        *each("remove", 0, 200, SCORES, LABELS),
        bulk("extend", 2400, 300, SCORES, LABELS, WEIGHTS),
        lambda made: made.h_measure(3, 1.5, (0.8, 0.2)),
        *each("remove", 2400, 300, SCORES, LABELS, WEIGHTS),
        read,
    ]


def calls_of_filled_roc() -> list[Call]:
    return [bulk("extend", 0, 3000, SCORES, LABELS), read, lambda made: made.curve()]


def calls_of_count_window() -> list[Call]:
    return [
        *each("push", 0, 100, SCORES, LABELS),
        bulk("slide", 100, 900, SCORES, LABELS, every=30),
        bulk("slide", 1000, 900, TIED, LABELS, None, TIMES, every=100),
        bulk("slide", 1900, 200, SCORES, LABELS, WEIGHTS, TIMES, every=50),
        lambda made: made.resize(900),
        bulk("extend", 2100, 900, SCORES, LABELS),
        bulk("slide", 3000, 500, SCORES, LABELS, every=7, read=("auc", "ks", "f1@0.5")),
    ]


def calls_of_smallest_window() -> list[Call]:
    """Let each event that comes drive the only one out."""
    return [
        *each("push", 0, 5, SCORES, LABELS),
        bulk("slide", 5, 5, SCORES, LABELS, every=1),
        bulk("extend", 10, 5, TIED, LABELS),
        lambda made: made.resize(2),
        bulk("slide", 15, 6, TIED, LABELS, every=2),
    ]


def calls_of_ordinal_roc() -> list[Call]:
    return [
        *each("add", 0, 200, SCORES, CLASSES),
        bulk("extend", 200, 900, SCORES, CLASSES),
        lambda made: made.vuhs(),
        bulk("extend", 1100, 400, TIED, CLASSES, WEIGHTS),
        lambda made: made.vuhs(),
        *each("remove", 0, 200, SCORES, CLASSES),
    ]


def calls_of_moved_roc() -> list[Call]:
    """Move to weights and back, with none and with one event left, and go on in bulk."""
    return [
        lambda made: made.add(0.5, 1, 2.5),
        lambda made: made.remove(0.5, 1, 2.5),
        bulk("extend", 0, 100, SCORES, LABELS),
        read,
        *each("add", 100, 1, SCORES, LABELS, WEIGHTS),
        *each("remove", 100, 1, SCORES, LABELS, WEIGHTS),
        lambda made: made.auc_interval(),
        lambda made: made.ties(),
        read,
        bulk("extend", 100, 30, SCORES, LABELS),
        *each("remove", 0, 30, SCORES, LABELS),
        read,
    ]


def calls_of_moved_window() -> list[Call]:
    """Let the last event with a weight leave as the last of a call, and go on in every way."""
    names = ("auc", "h", "positives", "ks")
    return [
        lambda made: made.readings(),
        bulk("extend", 0, 1, SCORES, LABELS, WEIGHTS),
        bulk("extend", 1, 50, SCORES, LABELS),
        bulk("slide", 51, 50, SCORES, LABELS, every=10, read=names),
        *each("push", 101, 1, SCORES, LABELS, WEIGHTS),
        *each("push", 101, 50, SCORES, LABELS),
        bulk("slide", 151, 50, SCORES, LABELS, every=10, read=names),
        *each("push", 201, 60, SCORES, LABELS),
        lambda made: made.readings(),
    ]


def rising(weight: float, start: int, stop: int) -> list[Call]:
    return [lambda made, i=i: made.add(float(i), i % 3, weight) for i in range(start, stop)]


def calls_of_rising_ordinals() -> list[Call]:
    """Open a new leaf where the rows of weights are full too, after walks of every kind."""
    # Rows come by 16, 20, 25 and 31: 92 are full as the second leaf of 64 scores is.
    return [
        *rising(1, 0, 36),
        *rising(2.5, 36, 128),
        lambda made: made.remove(0.0, 0),
        *rising(2.5, 128, 131),
        lambda made: made.vuhs(),
        *[lambda made, i=i: made.remove(float(i), i % 3, 2.5) for i in range(36, 131)],
        *rising(1, 36, 70),
    ]


def calls_of_ordinal_window() -> list[Call]:
    return [
        *each("push", 0, 30, SCORES, CLASSES),
        bulk("slide", 30, 400, SCORES, CLASSES, every=30),
        bulk("slide", 430, 60, TIED, CLASSES, WEIGHTS, every=20),
    ]


LATE = TIMES + RNG.integers(-60, 1, 4000)  # up to 60 late, in no order
BEHIND = TIMES + RNG.integers(-290, 1, 4000)  # behind more than a time window moves out of the way


def calls_of_time_window() -> list[Call]:
    """Let events come late, many into the heap, and too late, and leave one by one or at once."""
    names = ("auc", "h", "positives", "ks", "start", "end")
    return [
        *each("push", 0, 40, SCORES, LABELS, np.ones(4000), BEHIND),
        bulk("slide", 40, 300, SCORES, LABELS, None, BEHIND, every=30, read=names),
        bulk("extend", 340, 100, TIED, LABELS, WEIGHTS, BEHIND),
        bulk("slide", 440, 60, TIED, LABELS, WEIGHTS, BEHIND, every=20, read=names),
        lambda made: made.advance(470),
        *each("push", 500, 20, TIED, LABELS, WEIGHTS, BEHIND),
        bulk("slide", 520, 200, SCORES, LABELS, None, BEHIND, every=50, read=names),
        lambda made: made.advance(5000),
        lambda made: made.push(0.5, 1, 1, 7000),
        bulk("extend", 800, 30, SCORES, LABELS, None, TIMES + 7000),
    ]


def calls_of_decay_window() -> list[Call]:
    """Let the scale move on, ties come and go, and the window run empty."""
    names = ("auc", "h", "positives", "ks", "start", "end")
    return [
        *each("push", 0, 30, SCORES, LABELS, WEIGHTS, LATE),
        bulk("slide", 30, 300, SCORES, LABELS, None, LATE, every=40, read=names),
        bulk("slide", 330, 300, TIED, LABELS, WEIGHTS, LATE, every=40, read=names),
        *each("push", 630, 30, TIED, LABELS, WEIGHTS, LATE),
        lambda made: made.push(0.5, 1, 1, 7000),
        bulk("extend", 800, 300, SCORES, LABELS, None, TIMES * 2 + 7000),
    ]


def calls_of_landmark_window() -> list[Call]:
    return [
        *each("push", 0, 20, SCORES, LABELS),
        bulk("slide", 20, 60, SCORES, LABELS, WEIGHTS, TIMES, every=30, read=("auc", "h", "ks")),
        bulk("extend", 320, 60, TIED, LABELS),
    ]


def calls_of_binned_roc() -> list[Call]:
    return [
        *each("add", 0, 20, SCORES, LABELS, WEIGHTS),
        bulk("extend", 20, 300, SCORES, LABELS, WEIGHTS),
        *each("remove", 0, 20, SCORES, LABELS, WEIGHTS),
    ]


def calls_of_approximate_roc() -> list[Call]:
    return [
        *each("add", 0, 20, SCORES, LABELS),
        bulk("extend", 20, 3000, SCORES, LABELS),
        bulk("extend", 3020, 10, TIED, LABELS),
        *each("remove", 0, 20, SCORES, LABELS),
    ]


STRUCTURES: dict[str, tuple[Callable[[], Any], Callable[[], list[Call]]]] = {
    "roc": (core.Roc, calls_of_roc),
    "filled roc": (core.Roc, calls_of_filled_roc),
    "count window": (partial(core.CountWindow, 700), calls_of_count_window),
    "smallest window": (partial(core.CountWindow, 1), calls_of_smallest_window),
    "ordinal roc": (partial(core.OrdinalRoc, 4), calls_of_ordinal_roc),
    "moved roc": (core.Roc, calls_of_moved_roc),
    "moved window": (partial(core.CountWindow, 50), calls_of_moved_window),
    "rising ordinals": (partial(core.OrdinalRoc, 3), calls_of_rising_ordinals),
    "ordinal window": (partial(core.OrdinalCountWindow, 4, 200), calls_of_ordinal_window),
    "time window": (partial(core.TimeWindow, 250), calls_of_time_window),
    "decay window": (partial(core.DecayWindow, 2, least=1e-30), calls_of_decay_window),
    "timed decay window": (partial(core.DecayWindow, 2, timed=True), calls_of_decay_window),
    "landmark window": (LandmarkWindow, calls_of_landmark_window),
    "binned roc": (reference.BinnedRoc, calls_of_binned_roc),
    "approximate roc": (partial(reference.ApproximateRoc, 0.1), calls_of_approximate_roc),
}


def state(made: Any) -> list[Any]:
    """All that can be told of a structure, in numbers."""
    made._check()
    names = ("seen", "first", "size", "late", "now")
    parts: list[Any] = [len(made), *(getattr(made, name, None) or 0 for name in names)]
    parts += getattr(made, "span", ())
    roc = getattr(made, "roc", made)
    if hasattr(roc, "vuhs"):
        return [*parts, roc.vuhs()]
    parts += [roc.positives, roc.negatives, roc.auc()]
    if not hasattr(roc, "curve"):
        return parts
    columns = [roc.h_measure(), *roc.curve(), *roc.hull()]
    if hasattr(made, "columns"):
        columns += [c for c in made.columns(made.first, made.seen) if c is not None]
    return [*parts, *columns]


def numbers(result: Any) -> list[Any]:
    """What a call gave, in numbers."""
    if result is None:
        return []
    return list(result) if isinstance(result, tuple) else [result]


def same(one: list[Any], two: list[Any]) -> bool:
    """Tell whether all is the same, but for the last digits of what weights add up to."""
    return len(one) == len(two) and all(
        np.shape(left) == np.shape(right)
        and np.allclose(left, right, rtol=1e-12, atol=1e-12, equal_nan=True)
        for left, right in zip(one, two, strict=True)
    )


def starved(make: Callable[[], Any], calls: list[Call], *, lasting: bool) -> int:
    """Fail the first allocation, then the second, and so on until all calls need fewer.

    A structure that refused a call must be what one is that had none but the calls before, and go
    on as that does.
    """
    memory = ctypes.CDLL(None)
    whole = make()
    told = [call(whole) for call in calls]
    expected = state(whole)
    failures = 0
    while True:
        made = make()
        done = 0
        results: list[Any] = [None] * len(calls)
        memory.starve(failures, lasting)
        try:
            for done, call in enumerate(calls):
                results[done] = call(made)
            refused = False
        except (MemoryError, SystemError):
            # Parts of numpy fail without saying how.
            refused = True
        failed = memory.feed()
        if not failed:
            assert not refused
            return failures
        if refused:
            twin = make()
            for call in calls[:done]:
                call(twin)
            assert same(state(made), state(twin)), f"allocation {failures}, call {done}"
            results[done:] = [call(made) for call in calls[done:]]
        assert same(state(made), expected), f"allocation {failures}, call {done}"
        for at, (left, right) in enumerate(zip(results, told, strict=True)):
            assert same(numbers(left), numbers(right)), (
                f"allocation {failures}, result of call {at}"
            )
        failures += 1


def main() -> None:
    make, calls = STRUCTURES[sys.argv[1]]
    sys.stdout.write(str(starved(make, calls(), lasting=sys.argv[2] == "lasting")))


if __name__ == "__main__":
    main()
