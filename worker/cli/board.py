"""The live table of readings: a row per monitor and key, the last update of each and its trend."""

from __future__ import annotations

import time
from collections import deque
from statistics import mean
from typing import TYPE_CHECKING, Any, Final

from rich import box
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from config import METRICS
from config.values import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from config import Monitor

SAMPLES: Final = 24
"""Readings that a trend shows: one a second at the most, so that it spans what an eye remembers."""

FEWEST_SAMPLES: Final = 4
"""Where there is less room, a trend is its arrow alone."""

SAMPLE_SECONDS: Final = 1.0
STEADY: Final = {"auc": 0.02, "h": 0.05}
"""A metric that moved less than this over the trend counts as steady."""

# Without the full block, so that rows stay apart.
_BARS: Final = "▁▂▃▄▅▆▇"
# A useless classifier has an AUC of one half: below it there is little to see.
_FLOORS: Final = {"auc": 0.5, "auc_low": 0.5, "auc_high": 0.5, "auc_strict": 0.5, "auch": 0.5}
_TRENDS: Final = ("auc", "h")
_COLUMNS: Final = ("seq", "events", "positives", "full", "age")
# Left out in this order where a terminal is narrow.
_DISPENSABLE: Final = ("seq", "positives", "events", "age")
_UNLIMITED: Final = 10_000
_SECOND: Final = 1_000
_UNITS: Final = (("d", 86_400 * _SECOND), ("h", 3_600 * _SECOND), ("m", 60 * _SECOND))


class Row:
    """The last update of one monitor and key, and what came before it.

    Parameters
    ----------
    metrics
        Names whose trend is kept.
    """

    def __init__(self, metrics: Iterable[str]) -> None:
        self.update: dict[str, Any] = {}
        self.trends: dict[str, deque[float | None]] = {
            name: deque(maxlen=SAMPLES) for name in metrics
        }
        self._sampled: int | None = None

    def take(self, update: dict[str, Any]) -> None:
        """Replace the last update; within a second of event time only one joins the trend."""
        self.update = update
        now = update.get("time", 0)
        renew = self._sampled is not None and now - self._sampled < SAMPLE_SECONDS * _SECOND
        if not renew:
            self._sampled = now
        for name, trend in self.trends.items():
            if renew and trend:
                trend.pop()
            trend.append(update.get(name))

    def moved(self, name: str) -> int:
        """Return 1 when a metric rose over its trend, -1 when it fell, 0 for neither."""
        values = [value for value in self.trends.get(name, ()) if value is not None]
        end = max(len(values) // 4, 1)
        if len(values) <= end:
            return 0
        change = mean(values[-end:]) - mean(values[:end])
        return 0 if abs(change) < STEADY.get(name, 0.0) else 1 if change > 0 else -1


class Board:
    """All rows, and the table made of them.

    Parameters
    ----------
    monitors
        The job's monitors; their metrics are the columns.
    """

    def __init__(self, monitors: Sequence[Monitor]) -> None:
        names = {name: None for monitor in monitors for name in monitor.metrics}
        self._metrics = [name for name in METRICS if name in names]
        self._several = len(monitors) > 1
        self._rows: dict[tuple[str, str], Row] = {}
        self.updates = 0

    def __len__(self) -> int:
        return len(self._rows)

    def take(self, update: dict[str, Any]) -> None:
        """Take one update in."""
        place = (str(update.get("monitor")), str(update.get("key")))
        row = self._rows.get(place)
        if row is None:
            row = self._rows[place] = Row(name for name in _TRENDS if name in self._metrics)
        row.take(update)
        self.updates += 1

    def table(self, status: str, console: Console, *, rows: int | None = None) -> Table:
        """Return the table as it stands, its trends as long as the console has room for.

        Parameters
        ----------
        status
            A line below the table.
        console
            Where it will be printed.
        rows
            Rows that there is room for; the line says how many are left out. None: all.
        """
        shown = sorted(self._rows)[:rows]
        if len(shown) < len(self._rows):
            left = len(self._rows) - len(shown)
            status = f"{plural(left, 'more key')}: --key shows those you name; {status}"
        columns = list(_COLUMNS)
        dispensable = list(_DISPENSABLE)
        bare = self._table(status, shown, columns)
        while (free := console.width - _width(bare, console)) < 0 and dispensable:
            columns.remove(dispensable.pop(0))
            bare = self._table(status, shown, columns)
        trends = sum(name in _TRENDS for name in self._metrics)
        samples = min(free // max(trends, 1), SAMPLES)
        if samples < FEWEST_SAMPLES:
            return bare
        return self._table(status, shown, columns, samples)

    def _table(
        self,
        status: str,
        shown: Sequence[tuple[str, str]],
        columns: Sequence[str],
        samples: int = 0,
    ) -> Table:
        now = time.time() * _SECOND
        table = Table(
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            show_edge=False,
            collapse_padding=True,
            caption=Text(f"\n{status}"),
            caption_justify="left",
        )
        if self._several:
            table.add_column("monitor", no_wrap=True)
        table.add_column("key", no_wrap=True, overflow="ellipsis")
        for name in self._metrics:
            table.add_column(name, no_wrap=True)
        for name in columns:
            table.add_column(name, justify="right", no_wrap=True)
        if self._noted(shown):
            table.add_column("note", no_wrap=True)
        for place in shown:
            table.add_row(*self._cells(place, self._rows[place], now, columns, samples))
        return table

    def _noted(self, shown: Iterable[tuple[str, str]]) -> bool:
        return any(_notes(self._rows[place].update) for place in shown)

    def _cells(
        self,
        place: tuple[str, str],
        row: Row,
        now: float,
        columns: Sequence[str],
        samples: int,
    ) -> Iterable[Text]:
        update = row.update
        if self._several:
            yield Text(place[0])
        yield Text(place[1], style="bold")
        for name in self._metrics:
            moved = row.moved(name)
            style = "red" if moved < 0 else "green" if moved > 0 else ""
            cell = Text(figure(update.get(name)), style=f"bold {style}")
            if name in _TRENDS:
                cell.append("▼" if moved < 0 else "▲" if moved > 0 else " ")
                bars = sparkline(row.trends[name], _FLOORS.get(name, 0.0))
                cell.append(bars[-samples:].ljust(samples) if samples else "", style or "dim cyan")
            yield cell
        for name in columns:
            yield _cell(name, update, now)
        if notes := _notes(update):
            yield Text(notes, style="yellow")


def line(update: dict[str, Any]) -> str:
    """Return an update as one line of text, for pipes and files."""
    window = update.get("window") or {}
    metrics = [f"{name}={figure(update[name])}" for name in METRICS if name in update]
    told = [
        *(str(update.get("monitor")), str(update.get("key"))),
        f"seq={count(update.get('seq')).replace(',', '')}",
        *metrics,
        f"events={window.get('events')}",
        f"positives={update.get('positives')}",
        "full" if window.get("full") else "filling",
        *(f"{name}={update[name]}" for name in ("reason", "note") if update.get(name)),
    ]
    return " ".join(told)


def figure(value: object) -> str:
    """Return a metric with four decimals; what is not defined as a dash."""
    return f"{value:.4f}" if isinstance(value, int | float) else "-"


def count(value: object) -> str:
    """Return a count with separators; what is not known as a dash."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.1f}" if isinstance(value, float) else "-"


def age(milliseconds: float) -> str:
    """Return a span as people say it: 0.3s, 12s, 5m, 3h, 2d."""
    for unit, length in _UNITS:
        if milliseconds >= length:
            return f"{milliseconds / length:.0f}{unit}"
    seconds = max(milliseconds, 0.0) / _SECOND
    return f"{seconds:.1f}s" if seconds < 10 else f"{seconds:.0f}s"  # noqa: PLR2004 - two digits


def sparkline(values: Iterable[float | None], floor: float) -> str:
    """Return a bar per value between `floor` and 1; a blank for one that is not defined."""
    bars = []
    for value in values:
        if value is None:
            bars.append(" ")
            continue
        share = (value - floor) / (1.0 - floor)
        bars.append(_BARS[min(max(int(share * len(_BARS)), 0), len(_BARS) - 1)])
    return "".join(bars)


def _cell(name: str, update: dict[str, Any], now: float) -> Text:
    window = update.get("window") or {}
    match name:
        case "events":
            return Text(count(window.get("events")))
        case "full":
            return _fullness(window)
        case "age":
            return Text(age(now - update.get("time", now)), style="dim")
    return Text(count(update.get(name)))


def _width(table: Table, console: Console) -> int:
    unlimited = console.options.update(width=_UNLIMITED)
    return Measurement.get(console, unlimited, table).maximum


def _notes(update: dict[str, Any]) -> str:
    told = (update.get("note"), update.get("reason"))
    return " ".join(str(one) for one in told if one)


def _fullness(window: dict[str, Any]) -> Text:
    if window.get("full"):
        return Text("✓", style="green")
    events, size = window.get("events"), window.get("size")
    if isinstance(events, int | float) and isinstance(size, int) and size:
        return Text(f"{events / size:.0%}", style="dim")
    return Text("-")
