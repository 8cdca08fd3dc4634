"""The plot of a replay: AUC and H over time as SVG or PNG, for a slide or a message."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any, Final

from config.errors import SettingsError
from worker.replay.charts import axis, gap_of
from worker.replay.files import needed
from worker.replay.series import BASE, scaling

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from worker.replay.compare import Compared
    from worker.replay.series import Point
    from worker.replay.story import Story

LINES: Final = 10
"""Lines that a panel shows at most."""

SUFFIXES: Final = (".svg", ".png", ".pdf")
NAMES: Final = {"auc": "AUC", "h": "H-measure"}


def check(path: Path) -> None:
    """Refuse a file that no plot can be written to, before anything is read.

    Raises
    ------
    SettingsError
        For another suffix than those there are, or without matplotlib.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise SettingsError(f"--plot {path}: the suffix must be .svg, .png or .pdf")
    needed("matplotlib", "to plot")


def save(story: Story, file: IO[bytes], suffix: str) -> None:
    """Draw the readings of every monitor, and the comparison if there is one, into a file."""
    matplotlib = needed("matplotlib", "to plot")
    needed("matplotlib.figure", "to plot")
    monitors = [one.name for one in story.settings.monitors]
    rows = len(monitors) + (story.comparison is not None)
    # Words stay words in an SVG; and the same readings give the same file.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "rocstream"}):
        figure = matplotlib.figure.Figure(figsize=(11, 3.4 * rows + 0.8), layout="constrained")
        figure.suptitle(story.title + (" (partial)" if story.partial else ""), fontsize=12)
        axes = figure.subplots(rows, 2, squeeze=False)
        for row, monitor in zip(axes, monitors, strict=False):
            for panel, metric in zip(row, BASE, strict=True):
                _panel(story, panel, monitor, metric)
        if story.comparison is not None:
            for panel, (place, series) in zip(
                axes[-1], story.comparison.most(len(axes[-1])), strict=False
            ):
                _difference(panel, f"{place[1]} ({place[0]})", series)
        metadata = {"Date": None} if suffix == ".svg" else None
        figure.savefig(file, format=suffix.removeprefix("."), dpi=150, metadata=metadata)


def _panel(story: Story, panel: Any, monitor: str, metric: str) -> None:
    lowest = _lowest(story, monitor)
    found = [
        (variant, series)
        for variant, recorder in zip(story.variants, story.recorders, strict=True)
        for series in recorder.of(monitor)
        if lowest in {None, series.key}
    ]
    timed, held = False, list[float]()
    for variant, series in found[:LINES]:
        slide = next(m.window.slide for m in variant.settings.monitors if m.name == monitor)
        points = _broken(series.thinned())
        x = _places(points, slide)
        timed = isinstance(x[0], datetime)
        held += _values(scaling(points), metric)
        name = series.key if lowest is None else variant.name
        [line] = panel.plot(x, _values(points, metric), label=name, linewidth=1.4)
        if metric == "auc" and len(story.variants) == 1:
            low, high = _values(points, "auc_low"), _values(points, "auc_high")
            panel.fill_between(x, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
            held += [*_values(scaling(points), "auc_low"), *_values(scaling(points), "auc_high")]
    for man in story.recorders[0].watchmen.get(monitor, ()):
        if man.rule.metric == metric:
            panel.axhline(man.rule.bound, color="0.4", linestyle="--", linewidth=1)
            held.append(man.rule.bound)
    span = axis(held, margin=0.05)
    panel.set_ylim(span.low, span.high)
    more = f", {LINES} of {len(found)} keys" if len(found) > LINES else ""
    if lowest is not None:
        more = f", the key with the lowest AUC: {lowest}"
    panel.set_title(f"{NAMES[metric]} ({monitor}{more})", fontsize=10)
    panel.grid(alpha=0.3)
    if not found:
        return
    if timed:
        dates = needed("matplotlib.dates", "to plot")
        panel.xaxis.set_major_formatter(dates.ConciseDateFormatter(panel.xaxis.get_major_locator()))
        panel.xaxis.get_offset_text().set_fontsize(8)
    else:
        panel.set_xlabel("events of the key", fontsize=9)
    panel.tick_params(axis="x", labelsize=8)
    below: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2), "ncols": 3}
    panel.legend(fontsize=8, frameon=False, **below)


def _lowest(story: Story, monitor: str) -> str | None:
    """Return the key whose settings are drawn, where there are several settings of each."""
    if len(story.variants) == 1:
        return None
    known = [(series.mean("auc"), series.key) for series in story.recorders[0].of(monitor)]
    return min((one for one in known if not math.isnan(one[0])), default=(0.0, None))[1]


def _difference(panel: Any, name: str, series: Compared) -> None:
    points = [one for one in series.points if one.difference is not None]
    x = (
        [datetime.fromtimestamp(one.time / 1000, UTC) for one in points]
        if all(one.time > 0 for one in points)
        else list(range(len(points)))
    )
    panel.plot(x, [one.difference for one in points], linewidth=1.4)
    low = [float("nan") if one.low is None else one.low for one in points]
    high = [float("nan") if one.high is None else one.high for one in points]
    panel.fill_between(x, low, high, alpha=0.15, linewidth=0)
    panel.axhline(0.0, color="0.4", linestyle="--", linewidth=1)
    panel.set_title(f"AUC, challenger minus champion: {name}", fontsize=10)
    panel.grid(alpha=0.3)
    panel.tick_params(axis="x", labelrotation=20, labelsize=8)


def _broken(points: Sequence[Point]) -> list[Point]:
    """Return the points with one without values in every gap, so that no line bridges it."""
    longest = gap_of([one.time for one in points])
    found: list[Point] = []
    for one in points:
        if found and one.time - found[-1].time > longest:
            found.append(found[-1]._replace(values={}))
        found.append(one)
    return found


def _places(points: Sequence[Point], slide: int) -> list[Any]:
    if all(one.time > 0 for one in points):
        return [datetime.fromtimestamp(one.time / 1000, UTC) for one in points]
    return [one.seq * slide for one in points]


def _values(points: Sequence[Point], metric: str) -> list[float]:
    values = [one.values.get(metric) for one in points]
    return [float("nan") if value is None else value for value in values]
