"""Champion and challenger on the same events: paired, key by key, and compared as windows slide."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import orjson
from rich import box
from rich.table import Table

from config.errors import RocstreamError, SettingsError
from config.paths import of_option, render
from worker.messages import Message
from worker.replay.pairs import Difference, Pair, PairWindow
from worker.replay.summary import ROWS, figure
from worker.replay.thinning import Holder, Thinned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from config import EventSettings, Settings
    from worker.replay.records import Log, Run

PENDING: Final = 1_000_000
"""Events of one model that wait for the other's at most; beyond it the oldest are given up."""

PAIRED: Final = "both"
"""Stands for the key where two keys are compared."""


class Event(NamedTuple):
    """What a batch says of one event."""

    place: tuple[int, int]
    score: float
    label: int
    time: int


class Compared(Thinned[Difference]):
    """The differences of one monitor and key over time, thinned. O(1) memory."""

    def __init__(self) -> None:
        super().__init__()
        self.better = self.worse = 0
        self.last: Difference | None = None

    @property
    def distance(self) -> float:
        """How far the AUCs are apart at the end; -1 where that is not defined."""
        last = self.last
        return -1.0 if last is None or last.difference is None else abs(last.difference)

    def take(self, one: Difference) -> None:
        """Take one in."""
        self.keep(one)
        self.last = one
        if one.low is not None and one.high is not None:
            self.better += one.low > 0
            self.worse += one.high < 0


class Comparison:
    """Pairs events and compares their scores.

    Parameters
    ----------
    settings
        Whose monitors give size, slide and severities.
    score
        Path of the challenger's score, beside the champion's (event.score) in each record.
    keys
        Instead: the keys of champion and challenger, whose events are records of their own.
    pair_by
        For keys: path of what is the same in both records of an event; without it, the n-th
        events of the two keys go together, and their labels must agree.

    Attributes
    ----------
    wants
        Tells of each key whether its scores are compared; all of them, unless set.

    Raises
    ------
    SettingsError
        When the paths mean nothing.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        score: str | None = None,
        keys: tuple[str, str] | None = None,
        pair_by: str | None = None,
    ) -> None:
        self._monitors = settings.monitors
        self._keys = keys
        self.extra: list[EventSettings] = []
        if keys is not None:
            if keys[0] == keys[1]:
                raise SettingsError(f"--compare-keys {' '.join(keys)}: name two keys")
            self.names = keys
            if pair_by is not None:
                changed = {"key": of_option("--pair-by", pair_by)}
                self.extra.append(settings.event.model_copy(update=changed))
        else:
            path = of_option("--compare", score or "")
            if path == settings.event.score:
                raise SettingsError(
                    f"--compare {score}: that is event.score, the champion: name another score"
                )
            self.names = (render(settings.event.score), render(path))
            self.extra.append(settings.event.model_copy(update={"score": path}))
        self.series: dict[tuple[str, str], Compared] = {}
        self.pairs = self.unequal = self.lost = 0
        self._windows: dict[tuple[str, str], PairWindow] = {}
        self._waiting: tuple[dict[Any, Event], dict[Any, Event]] = ({}, {})
        self._ordinals = [0, 0]
        self._rows: list[tuple[int, Message]] = []
        self._holder = Holder()
        self.wants: Callable[[str], bool] = bool

    def others(self, log: Log, run: Run, published: bool) -> None:  # noqa: FBT001 - as the player calls it
        """Pair the events of a run; what follows from it is for `taken`."""
        rows: list[tuple[int, Message]] = []
        found = self._by_keys(run) if self._keys else self._by_scores(run)
        for key, events in found:
            pairs = [
                Pair(one.score, two.score, one.label, max(one.time, two.time), at, log.topic)
                for one, two, at in events
            ]
            self.pairs += len(pairs) * published
            for monitor in self._monitors:
                place = (monitor.name, key)
                window = self._windows.get(place)
                if window is None:
                    window = self._windows[place] = PairWindow(monitor)
                for difference in window.push(pairs):
                    if published:
                        row = self._keep(place, difference)
                        rows.append((difference.offset, row))
        # Of one record all pairs are of one key, and a run holds whole records: so the order is
        # one for all cuts.
        rows.sort(key=itemgetter(0))
        self._rows += rows

    def taken(self) -> list[Message]:
        """Return the comparisons since the last call, as lines of JSON."""
        return [row for _, row in self.placed()]

    def placed(self) -> list[tuple[int, Message]]:
        """Return the same with the offsets that they follow from."""
        rows, self._rows = self._rows, []
        return rows

    def give(self, rows: Sequence[tuple[int, Message]]) -> None:
        """Take comparisons of other processes, for `taken`."""
        self._rows += rows

    @property
    def by_key(self) -> bool:
        """Whether each key is compared for itself."""
        return self._keys is None

    def settled(self) -> Comparison:
        """Return itself without what only going on needs."""
        self.lost += len(self._waiting[0]) + len(self._waiting[1])
        self._waiting, self._windows, self.wants = ({}, {}), {}, bool
        return self

    def join(self, other: Comparison) -> None:
        """Take over what another, which is settled, compared of other keys."""
        self.series.update(other.series)
        self._holder.join(other._holder)
        self.pairs += other.pairs
        self.unequal += other.unequal
        self.lost += other.lost

    def notes(self) -> Iterator[str]:
        """Yield what a person should know."""
        if self.unequal:
            yield f"{self.unequal:,} pairs were left out: their two records differ in the label"
        waiting = self.lost + len(self._waiting[0]) + len(self._waiting[1])
        if self._keys and waiting:
            yield f"{waiting:,} events had no counterpart of the other key"
        if not self.pairs:
            one, other = self.names
            met = f"{one} met one of {other}" if self._keys else f"has both {one} and {other}"
            yield f"nothing was compared: no event {'of ' if self._keys else ''}{met}"

    def _keep(self, place: tuple[str, str], one: Difference) -> Message:
        series = self.series.get(place)
        if series is None:
            series = self.series[place] = Compared()
        before = series.count
        series.take(one)
        self._holder.grown(series, before)
        return Message(place[1].encode(), orjson.dumps(self._row(place, one)))

    def _row(self, place: tuple[str, str], one: Difference) -> dict[str, Any]:
        return {
            "monitor": place[0],
            "key": place[1],
            "champion": self.names[0],
            "challenger": self.names[1],
            "time": one.time,
            "events": one.events,
            "positives": one.positives,
            "auc_champion": one.auc[0],
            "auc_challenger": one.auc[1],
            "auc_difference": one.difference,
            "auc_difference_low": one.low,
            "auc_difference_high": one.high,
            "p": one.p,
            "h_champion": one.h[0],
            "h_challenger": one.h[1],
            "h_difference": None if None in one.h else _minus(one.h),
            "topic": one.topic,
            "offset": one.offset,
        }

    def _by_scores(self, run: Run) -> Iterator[tuple[str, list[tuple[Event, Event, int]]]]:
        champion, challenger = _events(run, 0), _events(run, 1)
        for key, events in champion.items():
            if not self.wants(key):
                continue
            others = {one.place: one for one in challenger.get(key, ())}
            yield (
                key,
                [(one, others[one.place], one.place[0]) for one in events if one.place in others],
            )

    def _by_keys(self, run: Run) -> Iterator[tuple[str, list[tuple[Event, Event, int]]]]:
        events = _events(run, 0)
        marks: dict[tuple[int, int], str] = {}
        if self.extra:
            marks = {one.place: mark for mark, found in _events(run, 1).items() for one in found}
        both = [(one, side) for side in (0, 1) for one in events.get(self.names[side], ())]
        both.sort(key=lambda item: item[0].place)
        pairs: list[tuple[Event, Event, int]] = []
        for one, side in both:
            mark: Any = marks.get(one.place)
            if not self.extra:
                mark = self._ordinals[side]
                self._ordinals[side] += 1
            elif mark is None:
                self.lost += 1
                continue
            other = self._waiting[1 - side].pop(mark, None)
            if other is None:
                self._wait(side, mark, one)
            elif other.label == one.label:
                pair = (one, other) if side == 0 else (other, one)
                pairs.append((*pair, one.place[0]))
            else:
                self._differ(one)
        yield PAIRED, pairs

    def _wait(self, side: int, mark: Any, one: Event) -> None:
        waiting = self._waiting[side]
        waiting[mark] = one
        if len(waiting) > PENDING:
            del waiting[next(iter(waiting))]
            self.lost += 1

    def _differ(self, one: Event) -> None:
        if not self.extra:
            raise RocstreamError(
                f"the events of {self.names[0]} and {self.names[1]} do not go together in turn: "
                f"the pair completed at offset {one.place[0]} has two labels; name what both "
                "records of an event have in common with --pair-by FIELD"
            )
        self.unequal += 1

    def most(self, count: int) -> list[tuple[tuple[str, str], Compared]]:
        """Return so many series in order, those whose AUCs differ most at the end."""
        found = sorted(self.series.items(), key=lambda item: (-item[1].distance, item[0]))
        return sorted(found[:count])

    def table(self) -> Table:
        """Return both models side by side: at the end, and how often one was surely better."""
        shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
        several = len(self._monitors) > 1
        for name in ("monitor", "key") if several else ("key",):
            shown.add_column(name, overflow="fold")
        for name in (
            *("champion", "challenger", "diff.", "low", "high", "h diff."),
            *("better", "worse"),
        ):
            shown.add_column(name, justify="right", no_wrap=True)
        shown.caption = (
            f"AUC at the end; champion {self.names[0]}, challenger {self.names[1]}; better, worse: "
            "updates whose 95 % interval of the difference leaves 0 out"
        )
        shown.caption_justify = "left"
        if len(self.series) > ROWS:
            shown.caption += (
                f"; {ROWS} of {len(self.series):,} keys, those whose AUC differs most at the end"
            )
        for (monitor, key), series in self.most(ROWS):
            last = series.last
            if last is None:
                continue
            shown.add_row(
                *([monitor] if several else []),
                key,
                *map(figure, last.auc),
                *map(_signed, (last.difference, last.low, last.high)),
                _signed(None if None in last.h else _minus(last.h)),
                f"{series.better / series.count:.0%}",
                f"{series.worse / series.count:.0%}",
            )
        return shown


def columns(pa: Any) -> list[tuple[str, Any]]:
    """Return the columns of comparisons as Parquet."""
    text, whole, real = pa.string(), pa.int64(), pa.float64()
    return [
        *((name, text) for name in ("monitor", "key", "champion", "challenger")),
        *((name, whole) for name in ("time", "events", "positives")),
        *(
            (name, real)
            for name in (
                *("auc_champion", "auc_challenger", "auc_difference"),
                *("auc_difference_low", "auc_difference_high", "p"),
                *("h_champion", "h_challenger", "h_difference"),
            )
        ),
        ("topic", text),
        ("offset", whole),
    ]


def _events(run: Run, reading: int) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = {}
    for batch in run.batches(reading):
        for key, events in batch.keys.items():
            found.setdefault(key, []).extend(_listed(events))
    return found


def _listed(events: Any) -> Iterable[Event]:
    # Arrays or lists; what comes out is written as JSON.
    columns = [
        np.asarray(column).tolist() for column in (events.scores, events.labels, events.times)
    ]
    places = zip(np.asarray(events.offsets).tolist(), events.indexes, strict=False)
    for place, score, label, when in zip(places, *columns, strict=True):
        yield Event(place, float(score), label, when)


def _minus(values: tuple[float | None, float | None]) -> float:
    return (values[1] or 0.0) - (values[0] or 0.0)


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.4f}"
