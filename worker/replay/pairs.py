"""Two scores of the same events in one window: AUC and H of both, and the difference."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from engine import CountWindow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from config import Monitor

    Floats = NDArray[np.float64]

LEVEL: Final = 0.95


class Pair(NamedTuple):
    """One event with both scores; where it stands is where it was completed."""

    champion: float
    challenger: float
    label: int
    time: int
    offset: int
    topic: str


class Difference(NamedTuple):
    """What a window of pairs reads.

    Attributes
    ----------
    time, offset, topic
        Of the newest pair.
    events, positives
        How many pairs are inside.
    auc, h
        Of the champion and of the challenger; None where not defined.
    difference, low, high
        AUC of the challenger minus that of the champion, with its 95 % interval; None where not
        defined.
    p
        Of the hypothesis that both have one AUC.
    """

    time: int
    offset: int
    topic: str
    events: int
    positives: int
    auc: tuple[float | None, float | None]
    h: tuple[float | None, float | None]
    difference: float | None
    low: float | None
    high: float | None
    p: float | None


def paired_delong(
    champion: Floats, challenger: Floats, labels: NDArray[Any], level: float = LEVEL
) -> tuple[float, float, float, float]:
    """Compare the AUCs of two scores of the same events.

    Parameters
    ----------
    champion, challenger
        The scores, an entry per event.
    labels
        0 or 1.
    level
        Of confidence.

    Returns
    -------
    difference, low, high, p
        AUC of the challenger minus that of the champion, its interval clipped to [-1, 1], and
        the two-sided p-value of no difference. nan with fewer than two events of a class; the
        interval is a point, and p is 1, where the scores order all pairs alike.

    Notes
    -----
    O(n log n). DeLong, DeLong and Clarke-Pearson (1988), "Comparing the areas under two or more
    correlated receiver operating characteristic curves: a nonparametric approach": the variance of
    the difference is that of the differences of the structural components, so that what both
    scores have in common cancels.

    Examples
    --------
    >>> scores = np.array([0.1, 0.4, 0.35, 0.8])
    >>> paired_delong(scores, scores, np.array([0, 0, 1, 1]))
    (0.0, 0.0, 0.0, 1.0)
    """
    # It takes a while to import, which other replays need not wait for.
    from scipy.special import ndtr, ndtri  # noqa: PLC0415

    positive = labels == 1
    n1 = int(positive.sum())
    n0 = len(labels) - n1
    if min(n0, n1) < 2:  # noqa: PLR2004 - a variance takes two
        return math.nan, math.nan, math.nan, math.nan
    over = [_components(scores[positive], scores[~positive]) for scores in (champion, challenger)]
    by_positives = over[1][0] - over[0][0]
    by_negatives = over[1][1] - over[0][1]
    difference = float(by_positives.mean())
    deviation = math.sqrt(by_positives.var(ddof=1) / n1 + by_negatives.var(ddof=1) / n0)
    reach = float(ndtri((1.0 + level) / 2.0)) * deviation
    if deviation:
        p = float(2.0 * ndtr(-abs(difference) / deviation))
    else:
        p = 1.0 if difference == 0.0 else 0.0
    return difference, max(difference - reach, -1.0), min(difference + reach, 1.0), p


def _components(positives: Floats, negatives: Floats) -> tuple[Floats, Floats]:
    """Return the share of the other class that each event beats, ties half, positives first."""
    low, high = np.sort(negatives), np.sort(positives)
    below = np.searchsorted(low, positives, "left") + np.searchsorted(low, positives, "right")
    above = np.searchsorted(high, negatives, "left") + np.searchsorted(high, negatives, "right")
    return below / (2.0 * len(low)), 1.0 - above / (2.0 * len(high))


class PairWindow:
    """The last pairs of one key, as a monitor's window holds them.

    Parameters
    ----------
    monitor
        Whose size, slide and severities.
    """

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        size = monitor.window.size
        self._windows = (CountWindow(size), CountWindow(size))
        self._scores = np.zeros((2, size))
        self._labels = np.zeros(size, np.uint8)
        self.seen = 0

    def push(self, pairs: Sequence[Pair]) -> Iterator[Difference]:
        """Take pairs in; yield what the window reads after every `slide`-th."""
        every, size = self._monitor.window.slide, self._monitor.window.size
        severity = self._monitor.h
        labels = [pair.label for pair in pairs]
        scores = [pair.champion for pair in pairs], [pair.challenger for pair in pairs]
        readings = [
            window.slide(
                column,
                labels,
                every=every,
                read=("auc", "h"),
                alpha=float(severity.alpha),
                beta=float(severity.beta),
            )
            for window, column in zip(self._windows, scores, strict=True)
        ]
        slide = 0
        for pair in pairs:
            at = self.seen % size
            self._scores[:, at] = pair.champion, pair.challenger
            self._labels[at] = pair.label
            self.seen += 1
            if self.seen % every:
                continue
            auc = _both(readings, "auc", slide)
            yield self._difference(pair, auc, _both(readings, "h", slide))
            slide += 1

    def _difference(
        self,
        pair: Pair,
        auc: tuple[float | None, float | None],
        h: tuple[float | None, float | None],
    ) -> Difference:
        held = min(self.seen, self._monitor.window.size)
        labels = self._labels[:held]
        found = paired_delong(self._scores[0, :held], self._scores[1, :held], labels)
        told = [_defined(value) for value in found]
        if auc[0] is not None and auc[1] is not None:
            # Exactly the difference of the AUCs beside it.
            told[0] = auc[1] - auc[0]
        positives = int(labels.sum())
        return Difference(*pair[3:], held, positives, auc, h, *told)


def _both(readings: Sequence[Any], name: str, at: int) -> tuple[float | None, float | None]:
    first, second = (_defined(one[name][at]) for one in readings)
    return first, second


def _defined(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
