"""The report of a replay: one page that needs no network, for a laptop, a phone, or paper."""

from __future__ import annotations

import html
from datetime import UTC, datetime
from importlib.resources import files
from typing import IO, TYPE_CHECKING, Any, Final

from config.values import plural
from worker.replay.charts import Axis, Band, Line, Mark, axis, label, plot
from worker.replay.series import BASE, INTERVAL, scaling
from worker.replay.story import spread
from worker.replay.summary import figure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from config import Monitor
    from worker.replay.compare import Compared
    from worker.replay.series import Point, Recorder, Series
    from worker.replay.story import Curves, Moment, Story

KEYS: Final = 24
"""Keys that are drawn, those with the lowest mean AUC first."""

COLOURS: Final = 8
ROWS: Final = 60
FIRINGS: Final = 50
NAMES: Final = {"auc": "AUC", "h": "H-measure"}
COSTS: Final = {
    "optimal": "optimal threshold",
    "rate-driven": "rate-driven",
    "brier": "score as threshold (Brier)",
}
_WHOLE: Final = Axis(0.0, 1.0)


def save(story: Story, file: IO[bytes], suffix: str) -> None:  # noqa: ARG001 - one kind of page
    """Write the report."""
    file.write(page(story).encode())


def page(story: Story) -> str:
    """Return the report as HTML."""
    sections = list(_sections(story))
    links = "".join(f'<li><a href="#{name}">{_safe(title)}</a></li>' for name, title, _ in sections)
    body = "".join(
        f'<section id="{name}"><h2>{_safe(title)}</h2>{content}</section>'
        for name, title, content in sections
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{_safe(story.title)}</title><style>{_file('report.css')}</style></head><body>"
        '<a class="skip" href="#main">To the readings</a>'
        f'<header>{_head(story)}</header><nav aria-label="Parts"><ul>{links}</ul></nav>'
        f'<main id="main">{body}</main><script>{_file("report.js")}</script></body></html>\n'
    )


def _sections(story: Story) -> Iterator[tuple[str, str, str]]:
    if story.recorders and any(recorder.series for recorder in story.recorders):
        for number, monitor in enumerate(story.variants[0].settings.monitors):
            yield f"monitor-{number}", f"Monitor {monitor.name}", _monitor(story, monitor)
    if story.comparison is not None and story.comparison.series:
        yield "comparison", "Champion and challenger", _comparison(story)
    if len(story.variants) > 1:
        yield "sweep", "Settings side by side", _sweep(story)
    if _ruled(story):
        yield "alerts", "Alerts", _alerts(story)
    if any(moment.curves for moment in story.moments):
        yield "curves", "Curves", "".join(_moment(moment) for moment in story.moments)
    yield "records", "Records", _records(story)


def _ruled(story: Story) -> bool:
    """Tell whether there are rules that may have fired."""
    return any(any(recorder.watchmen.values()) for recorder in story.recorders)


def _head(story: Story) -> str:
    counts = story.counts
    first = story.recorders[0] if story.recorders else None
    updates = sum(one.count for one in first.series.values()) if first else 0
    fired = sum(
        man.count
        for recorder in story.recorders[:1]
        for men in recorder.watchmen.values()
        for man in men
    )
    several = ""
    if len(story.variants) > 1:
        whole_count = sum(one.count for each in story.recorders for one in each.series.values())
        several = (
            f"<p>{len(story.variants)} settings made {plural(whole_count, 'update')}; counted "
            f"below are those of the first, <b>{_safe(story.variants[0].name)}</b>.</p>"
        )
    cards = [
        ("events", counts["events"]),
        ("updates", updates),
        ("keys", len({key for _, key in first.series}) if first else 0),
        *([("alerts", fired)] if _ruled(story) else []),
        ("unlabelled", counts["unlabelled"]),
        ("rejected", counts["rejected"]),
    ]
    shown = "".join(f"<li><b>{value:,}</b>{name}</li>" for name, value in cards)
    times = [
        point.time
        for series in (first.series.values() if first else ())
        for point in (series.points[0], series.thinned()[-1])
        if series.points and point.time > 0
    ]
    spanned = ""
    if times:
        whole = Axis(0, 48 * 3_600_000, time=True)
        year = datetime.fromtimestamp(max(times) / 1000, UTC).year
        spanned = (
            f"<p>Readings from {label(min(times), whole)} to {label(max(times), whole)} {year}, "
            "UTC.</p>"
        )
    partial = f'<p class="partial">Partial: {_safe(story.partial)}</p>' if story.partial else ""
    notes = "".join(f'<p class="soft">{_safe(note)}</p>' for note in story.notes)
    return (
        f"<h1>{_safe(story.title)}</h1>{partial}<p>{_safe(story.sentence)}</p>"
        f'{spanned}{several}<ul class="cards">{shown}</ul>{notes}'
    )


def _monitor(story: Story, monitor: Monitor) -> str:
    recorder = story.recorders[0]
    found = sorted(recorder.of(monitor.name), key=lambda one: (_order(one), one.key))
    window = monitor.window
    told = (
        f"The last {window.size:,} events of a key, read after every {window.slide:,}. Bands are "
        "95\u00a0% intervals of AUC (DeLong). Charts take the arrow keys once they have the focus."
    )
    if len(story.variants) > 1:
        told = f"Under {story.variants[0].name}. {told}"
    told += _of_all(len(found))
    charts_ = "".join(
        _key(story, recorder, monitor, series) for series in found[:KEYS] if series.points
    )
    return f"<p>{_safe(told)}</p>{charts_}"


def _of_all(keys: int) -> str:
    """Say which keys are drawn, where it is not all of them."""
    return f" The {KEYS} keys with the lowest AUC of {keys:,}." if keys > KEYS else ""


def _order(series: Series) -> float:
    mean = series.mean("auc")
    return mean if mean == mean else 2.0  # noqa: PLR0124 - nan last


def _key(story: Story, recorder: Recorder, monitor: Monitor, series: Series) -> str:
    points = series.thinned()
    place, x, name = _places(points, monitor)
    parts = [
        _reading(story, recorder, monitor, series, metric, (place, x, name)) for metric in BASE
    ]
    share = [
        (place(one), one.positives / (one.positives + one.negatives) if one.events else None)
        for one in points
    ]
    held = {place(one) for one in scaling(points)}
    shares = [value for at, value in share if value is not None and at in held]
    top = max(shares, default=1.0)
    balance = plot(
        "Share of positives in the window",
        x,
        Axis(0.0, min(1.0, top * 1.25) or 1.0, time=False),
        [Line("positives", share, "c2")],
        x_name=name,
    )
    thinned = f"; every {series.stride}th is drawn" if series.stride > 1 else ""
    return (
        f"<h3>{_safe(series.key)}</h3>"
        f'<p class="soft">{plural(series.count, "update")}{thinned}</p>'
        f'<div class="trio">{"".join(parts)}{balance}</div>'
        f"<details><summary>Numbers of {_safe(series.key)}</summary>{_numbers(points)}</details>"
    )


Places = tuple["Callable[[Point], float]", Axis, str]


def _places(points: Sequence[Point], monitor: Monitor) -> Places:
    """Return where points stand: at their times, or without times at the key's events."""
    if all(point.time > 0 for point in points):
        return (lambda one: one.time), axis((one.time for one in points), time=True), ""
    slide = monitor.window.slide
    return (
        (lambda one: one.seq * slide),
        axis(one.seq * slide for one in points),
        "events of the key",
    )


def _reading(
    story: Story,
    recorder: Recorder,
    monitor: Monitor,
    series: Series,
    metric: str,
    placed: Places,
) -> str:
    place, x, name = placed
    points = series.thinned()
    values = [(place(one), one.values.get(metric)) for one in points]
    bands = []
    scaled = scaling(points)
    held = [one.values.get(metric) for one in scaled]
    if metric == "auc":
        band = [
            (place(one), one.values.get("auc_low"), one.values.get("auc_high")) for one in points
        ]
        bands = [Band(band)]
        held += [one.values.get(name) for one in scaled for name in INTERVAL]
    men = [one for one in recorder.watchmen.get(monitor.name, ()) if one.rule.metric == metric]
    rules = [(one.rule.bound, one.rule.text) for one in men]
    known = [value for value in held if value is not None]
    y = axis([*known, *(bound for bound, _ in rules)], margin=0.06)
    y = Axis(max(y.low, 0.0), min(y.high, 1.0))
    marks = [
        Mark(x_at, one.value, f"{man.rule.text}: {one.value:.4f} at offset {one.offset}")
        for man in men
        for one in [each for each in man.firings() if each.key == series.key][:FIRINGS]
        for x_at in [one.time if x.time else one.seq * monitor.window.slide]
    ]
    return plot(
        NAMES[metric],
        x,
        y,
        [Line("", values, "c0" if metric == "auc" else "c1")],
        bands,
        marks,
        rules,
        _changes(story, points, place),
        x_name=name,
    )


def _changes(
    story: Story, points: Sequence[Point], place: Callable[[Point], float]
) -> list[tuple[float, str]]:
    change = story.change
    if change is None:
        return []
    for point in points:
        where = point.time if change.kind == "time" else point.offset
        if where >= change.value:
            return [(place(point), "change")]
    return []


def _numbers(points: Sequence[Point]) -> str:
    names = list(points[-1].values)
    timed = points[-1].time > 0
    rows = [
        [
            label(one.time, Axis(0, 10**12, time=True)) if timed else f"{one.offset:,}",
            f"{one.events:,g}",
            f"{one.positives:,g}",
            *(figure(one.values.get(name)) for name in names),
        ]
        for one in spread(points, ROWS)
    ]
    return _table([("day" if timed else "offset"), "events", "positives", *names], rows)


def _comparison(story: Story) -> str:
    comparison = story.comparison
    assert comparison is not None  # noqa: S101 - the section is asked for only then
    champion, challenger = comparison.names
    told = (
        f"<p>Champion: <b>{_safe(champion)}</b>; challenger: <b>{_safe(challenger)}</b>. The "
        "difference is the challenger's AUC minus the champion's, with DeLong's paired 95\u00a0% "
        f"interval; {comparison.pairs:,} pairs."
    )
    if len(comparison.series) > KEYS:
        told += f" The {KEYS} of {len(comparison.series):,} whose AUC differs most at the end."
    parts = [
        f"<h3>{_safe(key)} ({_safe(monitor)})</h3>" + _compared(series, comparison)
        for (monitor, key), series in comparison.most(KEYS)
    ]
    return f"{told}</p>{''.join(parts)}"


def _compared(series: Compared, comparison: Any) -> str:
    points = series.points
    timed = all(one.time > 0 for one in points)
    at = [one.time if timed else number for number, one in enumerate(points)]
    x = axis(at, time=timed)
    name = "" if timed else "updates"
    differences = [one.difference for one in points]
    band = [(where, one.low, one.high) for where, one in zip(at, points, strict=True)]
    held = [value for _, low, high in band for value in (low, high) if value is not None]
    aucs, hs = (
        [
            Line(one_name, list(zip(at, (pair[side] for pair in pairs), strict=True)), f"c{side}")
            for side, one_name in enumerate(comparison.names)
        ]
        for pairs in ([one.auc for one in points], [one.h for one in points])
    )
    return (
        '<div class="trio">'
        + plot(
            "AUC difference",
            x,
            axis([*held, 0.0], margin=0.06),
            [Line("", list(zip(at, differences, strict=True)), "c2")],
            [Band(band, "c2")],
            rules=[(0.0, "no difference")],
            x_name=name,
        )
        + _two("AUC", x, aucs, name, _known(aucs))
        + _two("H-measure", x, hs, name, _known(hs))
        + "</div>"
    )


def _two(title: str, x: Axis, lines: Sequence[Line], name: str, held: Sequence[float]) -> str:
    return plot(title, x, axis(held, margin=0.06), lines, x_name=name)


def _known(lines: Sequence[Line]) -> list[float]:
    return [value for line in lines for _, value in line.points if value is not None]


def _sweep(story: Story) -> str:
    names = list(story.variants[0].values)
    rows = []
    for variant, recorder in zip(story.variants, story.recorders, strict=True):
        series = list(recorder.series.values())
        row = [*variant.values.values(), f"{sum(one.count for one in series):,}"]
        for metric in BASE:
            for part in ("mean", "noise"):
                values = [getattr(one, part)(metric) for one in series]
                known = [value for value in values if value == value]  # noqa: PLR0124 - not nan
                row.append(figure(sum(known) / len(known) if known else None))
        rows.append(row)
    head = [*names, "updates", "AUC", "noise", "H", "noise"]
    told = (
        "<p>Means over full windows; noise is how much a reading moves from one window to the "
        f"next (root mean square).{_of_all(len(story.recorders[0].series))}</p>"
    )
    return told + _table(head, rows) + "".join(_overlays(story))


def _overlays(story: Story) -> Iterator[str]:
    """Yield a chart per monitor and key with a line per setting, as far as there are colours."""
    shown = list(zip(story.variants, story.recorders, strict=True))[:COLOURS]
    if len(story.variants) > COLOURS:
        yield f'<p class="soft">Drawn are the first {COLOURS} of {len(story.variants)}.</p>'
    first = story.recorders[0]
    worst = sorted(first.series, key=lambda place: (_order(first.series[place]), place))
    for monitor, key in sorted(worst[:KEYS]):
        found = [(variant, recorder.series.get((monitor, key))) for variant, recorder in shown]
        pairs = [(variant, series.thinned()) for variant, series in found if series is not None]
        timed = all(one.time > 0 for _, points in pairs for one in points)
        parts = []
        for metric in BASE:
            lines = [
                Line(
                    variant.name,
                    [
                        (_at(one, variant, monitor, timed=timed), one.values.get(metric))
                        for one in points
                    ],
                    f"c{number}",
                )
                for number, (variant, points) in enumerate(pairs)
            ]
            x = axis((at for line in lines for at, _ in line.points), time=timed)
            name = "" if timed else "events of the key"
            held = [
                value
                for _, points in pairs
                for one in scaling(points)
                if (value := one.values.get(metric)) is not None
            ]
            parts.append(_two(NAMES[metric], x, lines, name, held or _known(lines)))
        yield f'<h3>{_safe(key)} ({_safe(monitor)})</h3><div class="pair">{"".join(parts)}</div>'


def _at(point: Point, variant: Any, monitor: str, *, timed: bool) -> float:
    if timed:
        return point.time
    slide = next(one.window.slide for one in variant.settings.monitors if one.name == monitor)
    return float(point.seq * slide)


def _alerts(story: Story) -> str:
    several = len(story.variants) > 1
    men = [
        (variant, monitor, man)
        for variant, recorder in zip(story.variants, story.recorders, strict=True)
        for monitor, watchmen in recorder.watchmen.items()
        for man in watchmen
    ]
    rows = [
        [
            man.rule.text,
            *([variant.name] if several else []),
            monitor,
            one.key,
            figure(one.value),
            f"{one.topic}@{one.offset}",
            label(one.time, Axis(0, 10**8, time=True)) if one.time > 0 else "-",
            f"{one.behind:,}" if one.behind >= 0 else "-",
        ]
        for variant, monitor, man in men
        for one in man.firings()[:FIRINGS]
    ]
    if not rows:
        return "<p>No rule fired.</p>"
    setting = ["setting"] if several else []
    lag = "events since the change"
    head = ["rule", *setting, "monitor", "key", "reading", "where", "when (UTC)", lag]
    of = " rule under each setting" if several else " rule"
    more = sum(max(man.count - FIRINGS, 0) for _, _, man in men)
    told = f"<p>The first {FIRINGS} of each{of}; {more:,} more are left out.</p>" if more else ""
    return told + _table(head, rows)


def _moment(moment: Moment) -> str:
    told = f"<h3>{_safe(moment.name)}</h3>"
    if moment.left_out:
        told += (
            f'<p class="soft">The keys with the lowest AUC; {moment.left_out:,} more are left '
            "out.</p>"
        )
    return told + "".join(_curves(one) for one in moment.curves)


def _curves(one: Curves) -> str:
    roc = plot(
        f"ROC curve, AUC {one.auc:.4f}",
        _WHOLE,
        _WHOLE,
        [
            Line("hull", one.hull, "c1", gaps=False),
            Line("curve", one.roc, "c0", gaps=False),
        ],
        square=True,
        x_name="false positive rate; upwards: true positive rate",
    )
    held = [loss for points in one.costs.values() for _, loss in points]
    costs = plot(
        "Cost curves",
        _WHOLE,
        Axis(0.0, max(held, default=1.0) * 1.05 or 1.0),
        [
            Line(COSTS[kind], points, f"c{number}", gaps=False)
            for number, (kind, points) in enumerate(one.costs.items())
        ],
        square=True,
        x_name="cost of a false positive; upwards: loss",
    )
    return (
        f"<details open><summary>{_safe(one.key)} ({_safe(one.monitor)}), {one.events:,} events"
        f'</summary><div class="few">{roc}{costs}</div></details>'
    )


def _records(story: Story) -> str:
    bins = story.intake.all()
    counts = story.counts
    rows = [
        [name, f"{counts[name]:,}"]
        for name in ("records", "events", "unlabelled", "zero_weight", "tombstones", "heartbeats")
    ]
    rows += [
        [f"rejected: {name.removeprefix('rejected.')}", f"{count:,}"]
        for name, count in sorted(counts.items())
        if name.startswith("rejected.")
    ]
    # Windows of counted events take every event in offset order: none comes too late.
    rows.append(["late", f"{counts['late']:,}"])
    table = _table(["what", "number"], rows)
    if not bins:
        return table
    at, lines = 0, dict[str, list[tuple[float, float | None]]]()
    for one in bins:
        for name in ("rejected", "unlabelled"):
            share = getattr(one, name) / max(one.records, 1)
            lines.setdefault(name, []).append((at, share))
        at += one.records
    top = max((value or 0.0 for line in lines.values() for _, value in line), default=0.0)
    chart = plot(
        "Share of records rejected and unlabelled",
        Axis(0.0, float(at)),
        Axis(0.0, min(1.0, top * 1.25) or 0.01),
        [Line("rejected", lines["rejected"], "bad"), Line("unlabelled", lines["unlabelled"], "c0")],
        x_name="records",
    )
    return f'<div class="pair">{chart}<div>{table}</div></div>'


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f'<th scope="col">{_safe(name)}</th>' for name in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{_safe(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        f'<div class="wide" tabindex="0"><table><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _file(name: str) -> str:
    return files(__package__ or "worker.replay").joinpath(name).read_text("utf-8")


def _safe(text: str) -> str:
    return html.escape(text, quote=True)
