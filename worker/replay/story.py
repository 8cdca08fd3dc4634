"""What a report tells: gathered while a replay runs, in memory that does not grow with it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from engine import Roc

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Sequence

    from config import Settings
    from engine import CountWindow
    from worker.replay.compare import Comparison
    from worker.replay.player import Step
    from worker.replay.series import Recorder
    from worker.replay.span import Bound
    from worker.replay.sweep import Variant
    from worker.replay.tape import Tape

BINS: Final = 120
CURVE_POINTS: Final = 400
MOMENT_KEYS: Final = 12
"""Keys of which curves are kept at each moment: those with the lowest AUC."""

_worst = attrgetter("auc", "key")

COSTS: Final = ("optimal", "rate-driven", "brier")

Points = list[tuple[float, float]]


class Bin(NamedTuple):
    """What became of a stretch of records."""

    records: int
    events: int
    unlabelled: int
    rejected: int


class Intake:
    """Counts records in stretches of the log; there are never more than twice `BINS`."""

    def __init__(self) -> None:
        self.bins: list[Bin] = []
        self._width = 1
        self._open = Bin(0, 0, 0, 0)

    def take(self, step: Step) -> None:
        """Take a step in."""
        counts = step.batch.counts
        added = (counts["records"], counts["events"], counts["unlabelled"], counts["rejected"])
        self._open = _sum(self._open, Bin(*added))
        if self._open.records >= self._width:
            self.bins.append(self._open)
            self._open = Bin(0, 0, 0, 0)
        if len(self.bins) >= 2 * BINS:
            self.bins = [_sum(*pair) for pair in zip(self.bins[::2], self.bins[1::2], strict=True)]
            self._width = max(one.records for one in self.bins)

    def all(self) -> list[Bin]:
        """Return the stretches in their order."""
        return [*self.bins, self._open] if any(self._open) else list(self.bins)


class Curves(NamedTuple):
    """The curves of one window at one moment, thinned; each a list of (x, y)."""

    monitor: str
    key: str
    events: int
    auc: float
    roc: Points
    hull: Points
    costs: dict[str, Points]


@dataclass(slots=True)
class Moment:
    """A place in the log, and the curves of the windows there."""

    name: str
    bound: Bound
    curves: list[Curves] = field(default_factory=list)
    left_out: int = 0

    def take(self, tape: Tape) -> None:
        """Take the curves of a tape's windows."""
        found: dict[str, list[tuple[float, str, CountWindow]]] = {}
        for monitor, key, window in tape.windows():
            auc = window.roc.auc()
            if not math.isnan(auc):
                found.setdefault(monitor.name, []).append((auc, key, window))
        for name, windows in found.items():
            windows.sort(key=itemgetter(0, 1))
            self.curves += [_curves(name, key, window) for _, key, window in windows[:MOMENT_KEYS]]
            self.left_out += len(windows[MOMENT_KEYS:])

    def join(self, others: Sequence[Moment], settings: Settings) -> None:
        """Take over what others took of the windows of other keys, at the same place."""
        curves = sorted((one for other in others for one in other.curves), key=_worst)
        self.left_out = sum(other.left_out for other in others)
        for monitor in settings.monitors:
            found = [one for one in curves if one.monitor == monitor.name]
            self.curves += found[:MOMENT_KEYS]
            self.left_out += len(found[MOMENT_KEYS:])


@dataclass(slots=True)
class Story:
    """All that a report is made of.

    Attributes
    ----------
    title, sentence
        What was replayed; what it came to.
    settings
        Of the job.
    variants, recorders
        The settings that were replayed, and what each read.
    counts
        As `Batch.counts`.
    intake, moments, comparison
        See there.
    change
        Where something changed, as a person said.
    notes
        Sentences that the person should read.
    partial
        Why the replay ended early; empty when it did not.
    """

    title: str
    sentence: str
    settings: Settings
    variants: Sequence[Variant]
    recorders: Sequence[Recorder]
    counts: Counter[str]
    intake: Intake
    moments: Sequence[Moment]
    comparison: Comparison | None = None
    change: Bound | None = None
    notes: Sequence[str] = ()
    partial: str = ""


def _curves(monitor: str, key: str, window: CountWindow) -> Curves:
    columns = window.columns(window.first, window.seen)
    # Made anew, so that with weights nothing hangs on what was in the window before.
    roc = Roc()
    roc.extend(columns.scores, columns.labels, columns.weights)
    curve, hull = roc.curve(), roc.hull()
    costs = {kind: roc.cost_curve(kind) for kind in COSTS}
    return Curves(
        monitor,
        key,
        len(columns.scores),
        roc.auc(),
        _thinned(curve.fpr, curve.tpr),
        _thinned(hull.fpr, hull.tpr),
        {
            kind: _thinned(found.cost, found.loss)
            for kind, found in costs.items()
            if not np.isnan(found.loss).any()
        },
    )


def _sum(one: Bin, other: Bin) -> Bin:
    return Bin(*(a + b for a, b in zip(one, other, strict=True)))


def _thinned(x: Any, y: Any) -> Points:
    """Return points of a curve: its ends, and others at even distances along it."""
    if len(x) > CURVE_POINTS:
        length = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y)))])
        at = np.searchsorted(length, np.linspace(0.0, length[-1], CURVE_POINTS))
        keep = np.unique(np.clip([0, *at, len(x) - 1], 0, len(x) - 1))
        x, y = x[keep], y[keep]
    return list(zip(x.tolist(), y.tolist(), strict=True))


def spread(values: Sequence[Any], most: int) -> Iterator[Any]:
    """Yield at most `most` values, evenly spread, the first and the last among them."""
    if len(values) <= most:
        yield from values
        return
    for number in range(most):
        yield values[round(number * (len(values) - 1) / (most - 1))]
