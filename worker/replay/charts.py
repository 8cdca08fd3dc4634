"""Charts of a report: lines stretch with the page, text stays as large as text is.

A plot is an SVG without text that takes any shape, under labels and marks of HTML at percentages;
so the page is as easily read on a phone as on a wide screen, and needs no script to be seen.
"""

from __future__ import annotations

import html
import json
import math
from datetime import UTC, datetime
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WIDTH: Final = 1_000.0
HEIGHT: Final = 1_000.0
TICKS: Final = 4
GAP: Final = 6.0
"""A step so many times as long as the median one is a gap in the data."""

_FORMS: Final = ((100, "%Y-%m-%d"), (24, "%d %b %H:%M"), (1, "%H:%M"))
"""How times are written on an axis of more than so many hours."""

_STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
_SECOND: Final = 1_000
_HOUR: Final = 3_600 * _SECOND
_DAY: Final = 24 * _HOUR
_TIME_STEPS: Final = (
    *(_SECOND * one for one in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800)),
    *(_HOUR * one for one in (1, 2, 4, 6, 12)),
    *(_DAY * one for one in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
)
"""Milliseconds from tick to tick that a reader of a clock or a calendar calls round."""

Pair = tuple[float, float | None]


class Line(NamedTuple):
    """A line, broken where a value is missing; `style` is a class of the page's style sheet."""

    name: str
    points: Sequence[Pair]
    style: str = "c0"
    gaps: bool = True


class Band(NamedTuple):
    """What lies between two values at each place."""

    points: Sequence[tuple[float, float | None, float | None]]
    style: str = "c0"


class Mark(NamedTuple):
    """A point with a name, such as an alert."""

    x: float
    y: float
    text: str


class Axis(NamedTuple):
    """The span of an axis, and how its values are written."""

    low: float
    high: float
    time: bool = False

    def share(self, value: float) -> float:
        """Return where a value lies, from 0 to 1."""
        width = self.high - self.low
        return min(max((value - self.low) / width, 0.0), 1.0) if width else 0.5


def axis(values: Iterable[float], *, time: bool = False, margin: float = 0.0) -> Axis:
    """Return an axis that holds all values."""
    known = [value for value in values if value is not None and not math.isnan(value)]
    low, high = min(known, default=0.0), max(known, default=1.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    room = (high - low) * margin
    return Axis(low - room, high + room, time)


def plot(  # noqa: PLR0913 - a chart has many parts
    title: str,
    x: Axis,
    y: Axis,
    lines: Sequence[Line] = (),
    bands: Sequence[Band] = (),
    marks: Sequence[Mark] = (),
    rules: Sequence[tuple[float, str]] = (),
    verticals: Sequence[tuple[float, str]] = (),
    *,
    square: bool = False,
    x_name: str = "",
    read: bool = True,
) -> str:
    """Return a chart as HTML.

    Parameters
    ----------
    title
        Above it; also what a screen reader says.
    x, y
        The axes.
    lines, bands, marks
        What is drawn, bands below lines below marks.
    rules, verticals
        Straight lines across, with names, at values of y and of x. What rules are called stands
        above the chart, where no line runs.
    square
        Whether it is as high as wide.
    x_name
        Below it.
    read
        Whether pointer and arrow keys read values off it.
    """
    parts = [_band(band, x, y) for band in bands]
    parts += [
        f'<line class="rule" x1="0" x2="{WIDTH:.0f}" y1="{_y(y, value)}" y2="{_y(y, value)}"/>'
        for value, _ in rules
    ]
    parts += [
        f'<line class="rule" x1="{_x(x, value)}" x2="{_x(x, value)}" y1="0" y2="{HEIGHT:.0f}"/>'
        for value, _ in verticals
    ]
    parts += [_line(line, x, y) for line in lines]
    grid = "".join(
        f'<line class="grid" x1="0" x2="{WIDTH:.0f}" y1="{_y(y, at)}" y2="{_y(y, at)}"/>'
        for at in ticks(y)
    )
    labels = [
        f'<span class="y" style="top:{100 - 100 * y.share(at):.2f}%">{number(at)}</span>'
        for at in ticks(y)
    ]
    below = times(x) if x.time else ticks(x)
    labels += [
        f'<span class="x" style="left:{100 * x.share(at):.2f}%">{label(at, x)}</span>'
        for at in below
    ]
    labels += [
        f'<span class="note" style="left:{100 * x.share(value):.2f}%;top:0">{_safe(text)}</span>'
        for value, text in verticals
    ]
    labels += [
        f'<b class="mark" style="left:{100 * x.share(mark.x):.2f}%;'
        f'top:{100 - 100 * y.share(mark.y):.2f}%" title="{_safe(mark.text)}"></b>'
        for mark in marks
    ]
    named = [line for line in lines if line.name]
    legend = "".join(
        f'<li class="{line.style}"><i></i>{_safe(line.name)}</li>'
        for line in (named if len(named) > 1 else ())
    )
    legend += "".join(f'<li class="ruled"><i></i>{_safe(text)}</li>' for _, text in rules)
    cut = ' class="cut"' if _outside(y, lines, bands) else ""
    data = _data(x, lines) if read else ""
    focus = ' tabindex="0"' if read else ""
    shape = "plot square" if square else "plot"
    return (
        f'<figure class="chart"><figcaption>{_safe(title)}'
        + (f"<ul>{legend}</ul>" if legend else "")
        + f'</figcaption><div class="{shape}" role="img" aria-label="{_safe(title)}"{focus}>'
        f'<svg{cut} viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" preserveAspectRatio="none" '
        f'aria-hidden="true">{grid}{"".join(parts)}</svg>{"".join(labels)}</div>'
        + (f'<p class="axis">{_safe(x_name)}</p>' if x_name else "")
        + data
        + ('<output aria-live="polite"></output>' if read else "")
        + "</figure>"
    )


def ticks(span: Axis) -> list[float]:
    """Return round values within an axis, some `TICKS` of them."""
    width = (span.high - span.low) / TICKS
    if width <= 0:
        return [span.low]
    unit = 10.0 ** math.floor(math.log10(width))
    step = next(one * unit for one in _STEPS if one * unit >= width * 0.999)
    first = math.ceil(span.low / step - 1e-9)
    last = math.floor(span.high / step + 1e-9)
    digits = 12 - math.floor(math.log10(step))
    return [round(at * step, digits) for at in range(first, last + 1)]


def times(span: Axis) -> list[float]:
    """Return round times within an axis: at most `TICKS`, two more where they are written short."""
    short = _HOUR < span.high - span.low <= _DAY
    width = (span.high - span.low) / (TICKS + 1 if short else TICKS - 1)
    step = next((one for one in _TIME_STEPS if one >= width), None)
    if step is None or width <= 0:
        return ticks(span)
    first, last = math.ceil(span.low / step), math.floor(span.high / step)
    return [float(at * step) for at in range(first, last + 1)] or [span.low]


def number(value: float) -> str:
    """Write a value as short as it may be."""
    if abs(value) >= 10_000:  # noqa: PLR2004 - from here on digits are too many
        for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
            if abs(value) >= size:
                return f"{value / size:g}{unit}"
    return f"{value:g}"


def label(value: float, span: Axis) -> str:
    """Write a value of an axis: a time as what changes over the axis, else a number."""
    if not span.time:
        return number(value)
    moment = datetime.fromtimestamp(value / 1000, UTC)
    hours = (span.high - span.low) / 3_600_000
    for least, form in _FORMS:
        if hours > least:
            return moment.strftime(form)
    return moment.strftime("%H:%M:%S")


def _x(span: Axis, value: float) -> str:
    return f"{WIDTH * span.share(value):.1f}"


def _y(span: Axis, value: float) -> str:
    width = span.high - span.low
    share = (value - span.low) / width if width else 0.5
    return f"{HEIGHT * (1 - share):.1f}"


def _outside(y: Axis, lines: Sequence[Line], bands: Sequence[Band]) -> bool:
    """Tell whether some of what is drawn lies above or below an axis, and is to be cut there."""
    held = [value for line in lines for _, value in line.points]
    held += [value for band in bands for _, *ends in band.points for value in ends]
    return any(value is not None and not y.low <= value <= y.high for value in held)


def _line(line: Line, x: Axis, y: Axis) -> str:
    path = []
    longest = gap_of([point[0] for point in line.points]) if line.gaps else math.inf
    before: float | None = None
    for at, value in line.points:
        if value is None:
            before = None
            continue
        step = "L" if before is not None and at - before <= longest else "M"
        path.append(f"{step}{_x(x, at)} {_y(y, value)}")
        before = at
    return f'<path class="line {line.style}" d="{"".join(path)}"/>'


def _band(band: Band, x: Axis, y: Axis) -> str:
    longest = gap_of([point[0] for point in band.points])
    pieces: list[list[tuple[float, float, float]]] = [[]]
    for at, low, high in band.points:
        if pieces[-1] and at - pieces[-1][-1][0] > longest:
            pieces.append([])
        if low is None or high is None:
            pieces.append([])
        else:
            pieces[-1].append((at, low, high))
    path = ""
    for piece in pieces:
        if len(piece) > 1:
            edge = [f"{_x(x, at)} {_y(y, high)}" for at, _, high in piece]
            edge += [f"{_x(x, at)} {_y(y, low)}" for at, low, _ in reversed(piece)]
            path += f"M{'L'.join(edge)}Z"
    return f'<path class="band {band.style}" d="{path}"/>'


def gap_of(places: Sequence[float]) -> float:
    """Return the longest step that is none of a gap."""
    steps = [b - a for a, b in pairwise(places) if b > a]
    return GAP * median(steps) if steps else math.inf


def _data(x: Axis, lines: Sequence[Line]) -> str:
    """Return what the page's script reads values off."""
    held: dict[str, Any] = {
        "time": x.time,
        "low": x.low,
        "high": x.high,
        "lines": [
            {
                "name": line.name,
                "x": [point[0] for point in line.points],
                "y": [None if point[1] is None else round(point[1], 5) for point in line.points],
            }
            for line in lines
        ],
    }
    text = json.dumps(held, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json">{text}</script>'


def _safe(text: str) -> str:
    return html.escape(text, quote=True)
