"""Rules such as ``auc < 0.8 for 3``: when they would have fired, key by key."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from config import METRICS
from config.errors import SettingsError
from config.values import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from worker.replay.series import Point

_RULE: Final = re.compile(
    r"\s*([a-z_]+)\s*(<=|>=|<|>)\s*([0-9]*\.?[0-9]+)\s*(?:for\s+([0-9]{1,6}))?\s*"
)
_COMPARED: Final[dict[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
KEPT: Final = 1_000
"""Firings that are kept one by one; all are counted."""


class Rule(NamedTuple):
    """A metric, a bound, and how many updates in a row it takes."""

    text: str
    metric: str
    sign: str
    bound: float
    runs: int

    def holds(self, value: float) -> bool:
        """Tell whether a reading meets the condition."""
        return _COMPARED[self.sign](value, self.bound)


def rule(text: str) -> Rule:
    """Return the rule that a text means.

    Raises
    ------
    SettingsError
        When it means none, or its metric is none that can be ruled by.

    Examples
    --------
    >>> rule("auc < 0.8 for 3")
    Rule(text='auc < 0.8 for 3', metric='auc', sign='<', bound=0.8, runs=3)
    """
    match = _RULE.fullmatch(text)
    if match is None:
        raise SettingsError(
            f'--alert "{text}": a rule is a metric, <, <=, > or >=, a number, and perhaps for how '
            'many updates in a row: "auc < 0.8 for 3"'
        )
    metric, sign, bound, runs = match.groups()
    if runs is not None and not int(runs):
        raise SettingsError(f'--alert "{text}": a rule fires after 1 update or more: for 1')
    usable = [name for name, one in METRICS.items() if not one.at_thresholds]
    if metric not in usable:
        near = nearest(metric, usable)
        guess = f"did you mean {near}? " if near else ""
        raise SettingsError(
            f'--alert "{text}": {metric} is no metric to rule by: {guess}there are '
            f"{', '.join(usable)}"
        )
    return Rule(" ".join(text.split()), metric, sign, float(bound), int(runs or 1))


class Firing(NamedTuple):
    """Where a rule fired.

    Attributes
    ----------
    key, value
        The key, and the reading that completed the rule.
    time, offset, topic
        Of the event that made the window slide.
    seq
        Number of the slide.
    behind
        Events of the key since the change that was asked about; -1 without one, or before it.
    """

    key: str
    value: float
    time: int
    offset: int
    topic: str
    seq: int
    behind: int


@dataclass(slots=True)
class Watchman:
    """Follows one rule; fires once when it comes to hold, and anew after it ceased to.

    Only full windows count: a window that fills up is noisy for that alone.
    """

    rule: Rule
    count: int = 0
    _kept: list[Firing] = field(default_factory=list)
    _lengths: dict[str, int] = field(default_factory=dict)
    _early: int = 0
    _first: Firing | None = None
    _behind: dict[str, int] = field(default_factory=dict)

    def take(self, key: str, points: Iterable[Point], behind: Iterable[int]) -> None:
        """Take in a key's readings in order; undefined ones change nothing."""
        length = self._lengths.get(key, 0)
        for point, since in zip(points, behind, strict=True):
            value = point.values.get(self.rule.metric)
            if value is None or not point.full:
                continue
            length = length + 1 if self.rule.holds(value) else 0
            if length == self.rule.runs:
                self._fire(
                    Firing(key, value, point.time, point.offset, point.topic, point.seq, since)
                )
        self._lengths[key] = length

    def _fire(self, firing: Firing) -> None:
        self.count += 1
        self._kept.append(firing)
        if len(self._kept) >= 2 * KEPT:
            self._kept = self.firings()
        if firing.behind < 0:
            self._early += 1
        else:
            self._behind.setdefault(firing.key, firing.behind)
        self._first = earliest((self._first, firing))

    def join(self, other: Watchman) -> None:
        """Take over what another saw, who followed the same rule over other keys."""
        self.count += other.count
        self._kept += other._kept
        self._lengths.update(other._lengths)
        self._early += other._early
        self._behind.update(other._behind)
        self._first = earliest((self._first, other._first))

    def firings(self) -> list[Firing]:
        """Return the first firings, by time, log and offset."""
        return sorted(self._kept, key=_when)[:KEPT]

    def first(self) -> Firing | None:
        """Return the first firing, by time, log and offset."""
        return self._first

    def behind(self) -> list[int]:
        """Return, by key, the events between the change and the first firing after it."""
        return sorted(self._behind.values())

    def early(self) -> int:
        """Return how often it fired before the change."""
        return self._early


def earliest(firings: Iterable[Firing | None]) -> Firing | None:
    """Return the first of firings, by time, log and offset; None without one."""
    known = [firing for firing in firings if firing is not None]
    return min(known, key=_when, default=None)


def _when(firing: Firing) -> tuple[int, str, int]:
    return firing.time, firing.topic, firing.offset
