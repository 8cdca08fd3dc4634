"""The report and the plot: self-contained, honest about what is missing, safe with any key."""

from __future__ import annotations

import json
import random
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from inmemory import HEAD

from worker.cli.commands import run as rocstream
from worker.events import Batch
from worker.replay import report
from worker.replay.charts import TICKS, Axis, Band, Line, axis, gap_of, plot, ticks, times
from worker.replay.player import Step
from worker.replay.records import Log
from worker.replay.series import Point, scaling
from worker.replay.story import BINS, Intake, spread

if TYPE_CHECKING:
    from pathlib import Path

MONITOR = """
[event]
key = "key"
time = "time"

[[monitor]]
name = "m"
window = { kind = "count", size = 60, slide = 5 }
"""
HOSTILE = "<script>alert(1)</script>&\"'"


class Page(HTMLParser):
    """Checks that tags are closed; collects what the page would load, and its text."""

    VOID = frozenset({"meta", "link", "img", "br", "line", "path", "input"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loaded: list[str] = []
        self.names: list[str] = []
        self.words = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.loaded += [value or "" for name, value in attrs if name in {"src", "href"}]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["script"]:
            self.words += data


@pytest.fixture
def source(tmp_path: Path) -> Path:
    rng = random.Random(5)  # noqa: S311 - a seeded stream
    (tmp_path / "job.toml").write_text(HEAD + MONITOR)
    path = tmp_path / "x.jsonl"
    with path.open("wb") as file:
        for number in range(1_500):
            label = int(rng.random() < 0.4)
            score = rng.gauss(2 * label if number < 800 else 0, 1)
            time = 1_764_460_000_000 + number * 1_000 + 3_600_000 * (number > 1_000)
            document = {"key": HOSTILE, "score": score, "label": label, "time": time}
            document["new"] = score + rng.gauss(0, 1)
            file.write(orjson.dumps(document | ({"label": None} if number % 50 == 0 else {})))
            file.write(b"\n" if number % 70 else b"\n{}{\n")
    return path


def replay(source: Path, *arguments: Any) -> int:
    command = ["replay", "-c", str(source.with_name("job.toml")), str(source)]
    return rocstream([*command, *map(str, arguments)])


def test_a_report_needs_no_network_and_escapes_what_it_shows(source: Path) -> None:
    path = source.with_name("report.html")
    options = ("--alert", "auc < 0.7", "--change", "800", "--moment", "500", "--compare", "new")
    code = replay(source, *("--report", path, *options))
    assert code == 0
    text = path.read_text("utf-8")
    again = source.with_name("again.html")
    assert replay(source, *("--report", again, *options)) == 0
    assert again.read_text("utf-8") == text
    page = Page(text)
    assert all(one.startswith("#") for one in page.loaded), page.loaded
    assert "url(" not in text
    assert "@import" not in text
    assert re.findall(r"https?://", text) == []
    assert "<script>alert" not in text
    assert HOSTILE in page.words
    assert "prefers-color-scheme:dark" in text
    assert 'name="viewport"' in text
    for words in (
        *("Monitor m", "Champion and challenger", "Alerts", "At 500", "At the end"),
        *("ROC curve, AUC", "Cost curves", "rejected: not_json", "late", "auc < 0.7"),
    ):
        assert words in page.words, words
    assert page.names.count("svg") == text.count('tabindex="0"') - text.count('class="wide"')


def test_what_a_chart_reads_out_is_what_was_published(source: Path) -> None:
    path, out = source.with_name("report.html"), source.with_name("u.jsonl")
    assert replay(source, "--report", path, "-o", out) == 0
    blocks = re.findall(r'<script type="application/json">(.*?)</script>', path.read_text("utf-8"))
    (line,) = json.loads(blocks[0])["lines"]
    updates = [json.loads(one) for one in out.read_bytes().splitlines()]
    assert line["x"] == [one["time"] for one in updates]
    assert line["y"] == [None if one["auc"] is None else round(one["auc"], 5) for one in updates]


def test_a_sweep_is_laid_side_by_side(source: Path) -> None:
    path = source.with_name("report.html")
    assert replay(source, "--report", path, "--sweep", "window.size=20,60") == 0
    page = Page(path.read_text("utf-8"))
    assert "Settings side by side" in page.words
    assert "window.size=20" in page.words


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_a_plot_is_written(source: Path, suffix: str) -> None:
    pytest.importorskip("matplotlib")
    path = source.with_name(f"plot.{suffix}")
    assert replay(source, "--plot", path, "--compare", "new") == 0
    begin = path.read_bytes()[:200]
    assert begin.startswith(b"\x89PNG") if suffix == "png" else b"<svg" in path.read_bytes()
    again = source.with_name(f"again.{suffix}")
    assert replay(source, "--plot", again, "--compare", "new") == 0
    assert again.read_bytes() == path.read_bytes()


def test_pictures_that_cannot_be_are_refused_before_anything_is_read(
    source: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert replay(source, "--plot", "plot.gif") == 2
    assert "the suffix must be .svg, .png or .pdf" in capfd.readouterr().err
    assert replay(source, "--moment", "5") == 2
    assert "name it with --report FILE" in capfd.readouterr().err


def test_nothing_to_draw_is_a_page_all_the_same(source: Path) -> None:
    path = source.with_name("report.html")
    assert replay(source, "--from", "99999", "--report", path) == 0
    page = Page(path.read_text("utf-8"))
    assert "Records" in page.words
    assert "Alerts" not in page.words


@example([-2.8e-221, -6.3e-224], 0.0)
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1),
    st.sampled_from([0.0, 0.06]),
)
def test_ticks_are_few_and_lie_within_the_axis(values: list[float], margin: float) -> None:
    span = axis(values, margin=margin)
    found = ticks(span)
    assert 1 <= len(found) <= 6
    slack = (span.high - span.low) * 1e-6
    assert all(span.low - slack <= one <= span.high + slack for one in found)


def test_a_line_is_broken_where_a_value_is_missing_and_over_a_gap_in_the_data() -> None:
    points = [(at, None if at == 3 else 0.5) for at in (*range(10), *range(100, 105))]
    drawn = plot("t", Axis(0, 105), Axis(0, 1), [Line("", points)], read=False)
    path = re.search(r'<path class="line c0" d="([^"]*)"', drawn)
    assert path is not None
    assert path[1].count("M") == 3
    assert gap_of([0, 1, 2]) < 90
    band = [(at, None, None) if at == 3 else (at, 0.4, 0.6) for at in range(10)]
    drawn = plot("t", Axis(0, 10), Axis(0, 1), bands=[Band(band)], read=False)
    path = re.search(r'<path class="band c0" d="([^"]*)"', drawn)
    assert path is not None
    assert path[1].count("Z") == 2


@given(st.lists(st.integers(0, 50), max_size=4 * BINS))
def test_stretches_stay_few_and_lose_no_record(sizes: list[int]) -> None:
    intake = Intake()
    for size in sizes:
        batch = Batch()
        batch.counts.update(records=size, rejected=size // 2)
        intake.take(Step(Log("x"), batch, [[]]))
    assert len(intake.all()) <= 2 * BINS + 1
    assert sum(one.records for one in intake.all()) == sum(sizes)
    assert sum(one.rejected for one in intake.all()) == sum(size // 2 for size in sizes)


def test_spread_keeps_both_ends() -> None:
    assert list(spread(range(1_000), 5)) == [0, 250, 500, 749, 999]
    assert list(spread([1, 2], 5)) == [1, 2]


def test_what_a_rule_is_called_stands_above_the_chart_where_no_line_runs() -> None:
    line = Line("auc", [(0.0, 0.5), (1.0, 0.5)])
    page = plot("AUC", Axis(0, 1), Axis(0, 1), [line], rules=[(0.5, "auc < 0.5")])
    assert '<li class="ruled"><i></i>auc &lt; 0.5</li></ul></figcaption>' in page


@given(st.integers(0, 2 * 10**12), st.integers(1_000, 10**11))
def test_times_on_an_axis_are_round_and_few(low: int, width: int) -> None:
    span = Axis(low, low + width, time=True)
    found = times(span)
    assert 1 <= len(found) <= (TICKS + 2 if 3_600_000 < width <= 86_400_000 else TICKS)
    assert all(low <= one <= low + width for one in found)
    if len(found) > 1:
        assert all(one % (found[1] - found[0]) == 0 for one in found)


def test_windows_that_fill_up_do_not_scale_an_axis_and_are_cut_off() -> None:
    def point(at: int, auc: float, *, full: bool) -> Point:
        return Point(at, at, at, "t", 1.0, 1.0, 0.0, full, {"auc": auc})

    points = [point(1, 1.0, full=False), point(2, 0.7, full=True), point(3, 0.6, full=True)]
    held = [one.values["auc"] or 0.0 for one in scaling(points)]
    assert held == [0.7, 0.6]
    assert scaling(points[:1]) == points[:1]
    line = Line("", [(one.time, one.values["auc"]) for one in points])
    assert '<svg class="cut"' in plot("AUC", Axis(1, 3), axis(held), [line])
    assert '<svg class="cut"' not in plot("AUC", Axis(1, 3), Axis(0, 1), [line])


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 keys, of which the last goes bad and the first 30 have alerts before it does."""
    rng = random.Random(7)  # noqa: S311 - a seeded stream
    folder = tmp_path_factory.mktemp("many")
    (folder / "job.toml").write_text(HEAD + MONITOR)
    with (folder / "x.jsonl").open("wb") as file:
        for number in range(40 * 200):
            key, turn = number % 40, number // 40
            label = int(rng.random() < 0.4)
            good = turn < 100 if key == 39 else not (key < 30 and 60 < turn < 90)
            score = rng.gauss(3 * label, 1) if good else rng.gauss((-2 * label) * (key == 39), 1)
            document = {"key": f"k{key:02}", "score": score, "label": label}
            document |= {"time": 1_764_460_000_000 + number * 1_000, "new": score * (key != 39)}
            file.write(orjson.dumps(document) + b"\n")
    return folder / "x.jsonl"


def test_of_many_keys_the_worst_are_shown_everywhere(
    many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = many.with_name("report.html")
    monkeypatch.setattr(report, "FIRINGS", 20)
    options = ("--alert", "auc < 0.9", "--moment", "7900", "--sweep", "window.size=60,30")
    assert replay(many, "--report", path, *options) == 0
    text = path.read_text("utf-8")
    monitor, sweep, alerts, curves = (
        re.search(rf'<section id="{name}">(.*?)</section>', text)[1]  # type: ignore[index]
        for name in ("monitor-0", "sweep", "alerts", "curves")
    )
    assert "The 24 keys with the lowest AUC of 40" in monitor
    assert re.findall("<h3>(.*?)</h3>", monitor)[0] == "k39"
    first = monitor[: monitor.index("Numbers of k39")]
    assert first.count('class="mark"') == 1
    assert "The 24 keys with the lowest AUC of 40" in sweep
    assert "k39 (m)" in sweep
    assert curves.count("28 more are left out") == 2
    assert curves.count("k39 (m)") == 2
    assert alerts.count("<tr>") == 1 + 2 * 20
    assert re.search(
        r"The first 20 of each rule under each setting; [0-9]+ more are left out", alerts
    )


def test_of_many_compared_keys_the_most_apart_are_shown(
    many: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = many.with_name("compared.html")
    assert replay(many, "--report", path, "--compare", "new") == 0
    out = " ".join(capfd.readouterr().out.split())
    assert "20 of 40 keys, those whose AUC differs most at the end" in out
    assert "k39" in out
    text = path.read_text("utf-8")
    assert "The 24 of 40 whose AUC differs most at the end" in text
    assert "<h3>k39 (m)</h3>" in text
