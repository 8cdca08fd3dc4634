"""Readings over time, taken off the windows as they slide: for tables, reports and plots."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engine import Readings
from worker.replay.tape import Tape, UncountedWriter
from worker.replay.thinning import HELD, Holder, Thinned
from worker.updates import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from config import Monitor, Settings
    from worker.messages import Message
    from worker.replay.alerts import Watchman
    from worker.replay.records import Log
    from worker.replay.span import Bound
    from worker.updates import Slides

BASE: Final = ("auc", "h")
INTERVAL: Final = ("auc_low", "auc_high")


class Point(NamedTuple):
    """One reading: where the window slid (`seq` counts slides), and what was read."""

    seq: int
    time: int
    offset: int
    topic: str
    events: float
    positives: float
    negatives: float
    full: bool
    values: dict[str, float | None]


def scaling(points: Sequence[Point]) -> Sequence[Point]:
    """Return the points that an axis is to hold: those of full windows, where there are any.

    The first few events of a window that fills up read anything, mostly 0 or 1.
    """
    return [one for one in points if one.full] or points


class Series(Thinned[Point]):
    """The readings of one monitor and key: thinned points, and exact sums. O(1) memory."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self.key = key
        self._tail: Point | None = None
        self._sums: dict[str, _Sums] = {}

    def take(self, points: Sequence[Point], *, keep: bool = True) -> None:
        """Take in points in order; `keep` says whether they will be drawn."""
        for point in points:
            if keep:
                self.keep(point)
            if point.full:
                for name, value in point.values.items():
                    if value is not None:
                        self._sums.setdefault(name, _Sums()).take(value)
        if not keep:
            self.count += len(points)
        self._tail = points[-1] if points else self._tail

    def thinned(self) -> list[Point]:
        """Return the points that were kept, the last one always among them."""
        if self._tail is not None and self.points and self.points[-1] != self._tail:
            return [*self.points, self._tail]
        return list(self.points)

    def mean(self, name: str) -> float:
        """Return the mean of a reading over full windows; nan without one."""
        sums = self._sums.get(name)
        return math.nan if sums is None else sums.total / sums.count

    def noise(self, name: str) -> float:
        """Return how much a reading moves from slide to slide; nan with fewer than two.

        The root mean square of the differences between windows that follow each other: a slow
        drift counts little in it.
        """
        sums = self._sums.get(name)
        if sums is None or sums.count < 2:  # noqa: PLR2004 - a difference takes two
            return math.nan
        return math.sqrt(sums.squares / (sums.count - 1))


class _Sums:
    __slots__ = ("count", "last", "squares", "total")

    def __init__(self) -> None:
        self.count, self.total, self.squares, self.last = 0, 0.0, 0.0, 0.0

    def take(self, value: float) -> None:
        if self.count:
            self.squares += (value - self.last) ** 2
        self.count += 1
        self.total += value
        self.last = value


class Recorder:
    """Keeps what the windows of one setting read.

    Parameters
    ----------
    extra
        Readings to take besides those that the monitors publish.
    watchmen
        Rules, by monitor, that are followed.
    change
        Where something changed, as a person says: lags are counted from there.
    held
        Points that are kept at most, of all keys; 0 when nothing will be drawn.

    Attributes
    ----------
    wants
        Tells whether a key is asked for; all are at first.
    """

    def __init__(
        self,
        extra: Sequence[str] = (),
        watchmen: dict[str, list[Watchman]] | None = None,
        change: Bound | None = None,
        held: int = HELD,
    ) -> None:
        self.extra = tuple(extra)
        self.wants: Callable[[str], bool] = _any
        self.watchmen = watchmen or {}
        self.series: dict[tuple[str, str], Series] = {}
        self._change = change
        self._changed: dict[tuple[str, str], int] = {}
        self._holder = Holder(held)

    def tape(self, settings: Settings, log: Log) -> Tape:
        """Return a tape whose windows are recorded."""
        return _RecordedTape(settings, log, self)

    def names(self, monitor: Monitor) -> tuple[str, ...]:
        """Return what is read besides the metrics of a monitor."""
        ruled = [one.rule.metric for one in self.watchmen.get(monitor.name, ())]
        wanted = dict.fromkeys([*self.extra, *ruled])
        return tuple(name for name in wanted if name not in monitor.metrics)

    def take(self, monitor: Monitor, key: str, points: list[Point]) -> None:
        """Take in the readings of one key, in order."""
        place = (monitor.name, key)
        series = self.series.get(place)
        if series is None:
            series = self.series[place] = Series(key)
        before = series.count
        series.take(points, keep=self._holder.most > 0)
        self._holder.grown(series, before)
        for watchman in self.watchmen.get(monitor.name, ()):
            watchman.take(key, points, self._behind(place, points, monitor.window.slide))

    def join(self, other: Recorder) -> None:
        """Take over what another recorded of the same setting, of other keys."""
        self.series.update(other.series)
        self._holder.join(other._holder)
        for name, watchmen in self.watchmen.items():
            for own, its in zip(watchmen, other.watchmen[name], strict=True):
                own.join(its)

    def of(self, monitor: str) -> list[Series]:
        """Return the series of a monitor, keys in order."""
        return [series for (name, _), series in sorted(self.series.items()) if name == monitor]

    def _behind(self, place: tuple[str, str], points: list[Point], slide: int) -> Iterator[int]:
        change = self._change
        for point in points:
            where = point.time if change and change.kind == "time" else point.offset
            if change is None or where < change.value:
                yield -1
                continue
            # Counted here, for a key that expires begins to count its slides anew.
            slides = self._changed[place] = self._changed.get(place, 0) + 1
            yield slides * slide


class _RecordedTape(Tape):
    """A tape that shows a recorder what its windows read."""

    def __init__(self, settings: Settings, log: Log, recorder: Recorder) -> None:
        self._recorder = recorder
        super().__init__(settings, log)

    def _writer(self, monitor: Monitor, log: Log) -> Writer:
        kind = _RecordedWriter if log.counted else _RecordedUncountedWriter
        return kind(monitor, log, self, self._recorder)


class _RecordedWriter(Writer):
    """Writes the updates of a monitor and shows the readings, some more among them."""

    def __init__(self, monitor: Monitor, log: Log, tape: Tape, recorder: Recorder) -> None:
        super().__init__(monitor, log.topic, log.partition)
        self._tape, self._recorder = tape, recorder
        self._own = len(self.read)
        self.read = (*self.read, *recorder.names(monitor))

    def write(
        self,
        key: str,
        slides: Slides,
        readings: Readings,
        *,
        gap: bool = False,
        note: str | None = None,
    ) -> list[Message]:
        """Return one message per slide."""
        # A key's last update repeats what its window held.
        if self._tape.published and note is None and self._recorder.wants(key):
            self._recorder.take(self._monitor, key, self._points(slides, readings))
        own = Readings(readings.names[: self._own], tuple(readings)[: self._own])
        return super().write(key, slides, own, gap=gap, note=note)

    def _points(self, slides: Slides, readings: Readings) -> list[Point]:
        columns = {
            name: readings[name].tolist()
            for name in readings.names
            if name not in {"start", "end"} and "@" not in name
        }
        events, positives = columns.pop("events"), columns.pop("positives")
        negatives = columns.pop("negatives")
        size = self._monitor.window.size
        first = slides.first or 0
        return [
            Point(
                first + at,
                slides.times[at],
                slides.offsets[at],
                self._topic,
                events[at],
                positives[at],
                negatives[at],
                events[at] == size,
                {name: _defined(column[at]) for name, column in columns.items()},
            )
            for at in range(len(slides.times))
        ]


class _RecordedUncountedWriter(_RecordedWriter, UncountedWriter):
    """The same, of windows that began in the middle."""


def _any(_key: str) -> bool:
    return True


def _defined(value: Any) -> float | None:
    return None if math.isnan(value) else float(value)
