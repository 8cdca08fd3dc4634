"""Sweeps and alerts: many settings in one pass are what each alone would be."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inmemory import HEAD

from config.errors import SettingsError
from worker.cli.commands import run as rocstream
from worker.replay import alerts, thinning
from worker.replay.alerts import Watchman, rule
from worker.replay.backtest import Backtest, Options
from worker.replay.series import Point, Recorder, Series
from worker.replay.span import Bound
from worker.replay.sweep import variants
from worker.replay.thinning import POINTS, Holder, Thinned

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import config

MONITOR = """
[event]
key = "key"

[[monitor]]
name = "m"
window = { kind = "count", size = 50, slide = 5 }
"""


def failing(path: Path, count: int = 2_000, change: int = 1_000) -> Path:
    """A model that is good until the event numbered `change`, and useless from there on."""
    rng = random.Random(3)  # noqa: S311 - a seeded stream
    with path.open("wb") as file:
        for number in range(count):
            label = int(rng.random() < 0.4)
            score = rng.gauss(3 * label if number < change else 0, 1)
            file.write(orjson.dumps({"key": "k", "score": score, "label": label}) + b"\n")
    return path


def test_a_sweep_gives_each_setting_the_updates_that_it_gives_alone(
    tmp_path: Path,
) -> None:
    source = failing(tmp_path / "x.jsonl")
    job = tmp_path / "job.toml"
    job.write_text(HEAD + MONITOR)
    sweep = ["--sweep", "window.size=20,50", "--sweep", "h.beta=2,4.5"]
    out = ["-o", str(tmp_path / "u.jsonl")]
    assert rocstream(["replay", "-c", str(job), str(source), *sweep, *out]) == 0
    for size in ("20", "50"):
        for beta in ("2", "4.5"):
            alone = tmp_path / "alone.jsonl"
            text = MONITOR.replace("size = 50", f"size = {size}") + f"h = {{ beta = {beta} }}\n"
            job.write_text(HEAD + text)
            assert rocstream(["replay", "-c", str(job), str(source), "-o", str(alone)]) == 0
            swept = tmp_path / f"u.window.size={size},h.beta={beta}.jsonl"
            assert swept.read_bytes() == alone.read_bytes()
            assert json.loads(alone.read_bytes().splitlines()[0])["h_beta"] == float(beta)


def test_smaller_windows_are_noisier_and_quicker_behind_a_change(
    settings_of: Callable[..., config.Settings], tmp_path: Path
) -> None:
    options = Options(
        sources=(str(failing(tmp_path / "x.jsonl")),),
        sweeps=("window.size=20,50,200",),
        alerts=("auc < 0.75",),
        change="1000",
    )
    backtest = Backtest(settings_of(MONITOR), options)
    for _ in backtest.player:
        pass
    noises, lags = [], []
    for recorder in backtest.recorders:
        (series,) = recorder.series.values()
        (watchman,) = recorder.watchmen["m"]
        noises.append(series.noise("auc"))
        lags += watchman.behind()
        after = [one for one in watchman.firings() if one.offset >= 1_000]
        assert after[0].offset == 1_000 + watchman.behind()[0] - 1
    assert noises == sorted(noises, reverse=True)
    assert lags == sorted(lags)
    assert lags[-1] <= 200


@given(
    st.lists(st.sampled_from([None, 0.1, 0.9]), max_size=40),
    st.integers(1, 4),
    st.lists(st.integers(1, 9)),
)
def test_a_rule_fires_once_each_time_it_comes_to_hold(
    values: list[float | None], runs: int, cuts: list[int]
) -> None:
    watchman = Watchman(rule(f"auc < 0.5 for {runs}"))
    points = [
        Point(at + 1, at, at, "t", 9, 3, 6, full=True, values={"auc": value})
        for at, value in enumerate(values)
    ]
    rest = points
    for cut in [*cuts, len(points)]:
        watchman.take("k", rest[:cut], [-1] * len(rest[:cut]))
        rest = rest[cut:]
    known = [(at, value) for at, value in enumerate(values) if value is not None]
    expected = [
        at
        for n, (at, _) in enumerate(known)
        if n + 1 >= runs
        and all(value < 0.5 for _, value in known[n + 1 - runs : n + 1])
        and (n == runs - 1 or known[n - runs][1] >= 0.5)
    ]
    assert [one.offset for one in watchman.firings()] == expected
    assert watchman.count == watchman.early() == len(expected)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([0.1, 0.9]), st.integers(-1, 1))),
    st.integers(0, 3),
)
def test_what_two_watched_joins_to_what_one_saw(
    readings: list[tuple[str, float, int]], kept: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alerts, "KEPT", kept)
        whole, *parts = (Watchman(rule("auc < 0.5")) for _ in range(3))
        for at, (key, value, behind) in enumerate(readings):
            point = Point(at + 1, at, at, "t", 9, 3, 6, full=True, values={"auc": value})
            for watchman in (whole, parts[key == "a"]):
                watchman.take(key, [point], [behind])
        joined = Watchman(rule("auc < 0.5"))
        for part in parts:
            joined.join(part)
        assert joined.firings() == whole.firings()
    assert joined.count == whole.count
    assert (joined.first(), joined.early()) == (whole.first(), whole.early())
    assert joined.behind() == whole.behind()


def test_windows_that_fill_up_do_not_fire() -> None:
    watchman = Watchman(rule("auc <= 0.5"))
    filling = Point(1, 0, 0, "t", 9, 3, 6, full=False, values={"auc": 0.1})
    watchman.take("k", [filling], [-1])
    assert watchman.first() is None
    watchman.take("k", [filling._replace(full=True)], [-1])
    assert watchman.first() is not None


@given(st.integers(0, 6 * POINTS))
def test_a_series_keeps_its_ends_and_no_more_points_than_it_may(count: int) -> None:
    series = Series("k")
    points = [
        Point(at, at, at, "t", 1, 1, 0, full=True, values={"auc": at % 2}) for at in range(count)
    ]
    series.take(points)
    kept = series.thinned()
    assert len(kept) <= 2 * POINTS + 1
    assert kept[:1] == points[:1]
    assert kept[-1:] == points[-1:]
    if count > 1:
        assert series.noise("auc") == 1.0
        assert series.mean("auc") == count // 2 / count
    else:
        assert math.isnan(series.noise("auc"))


def test_many_keys_share_the_points_that_are_kept(
    settings_of: Callable[..., config.Settings],
) -> None:
    (monitor,) = settings_of(MONITOR).monitors
    recorder = Recorder(held=100)
    for at in range(40):
        for key in range(30):
            values: dict[str, float | None] = {"auc": at / 40}
            recorder.take(monitor, str(key), [Point(at, 0, at, "t", 1, 1, 0, True, values)])  # noqa: FBT003
    series = recorder.of("m")
    assert 60 <= sum(len(one.points) for one in series) <= 130
    assert all(one.points[0].offset == 0 for one in series)
    assert all(one.thinned()[-1].offset == 39 for one in series)
    assert {one.count for one in series} == {40}
    nothing = Recorder(held=0)
    nothing.take(monitor, "k", [Point(1, 0, 1, "t", 1, 1, 0, True, {"auc": 0.5})])  # noqa: FBT003
    assert nothing.of("m")[0].points == []
    assert nothing.of("m")[0].mean("auc") == 0.5


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), max_size=60), st.integers(1, 40))
def test_what_series_keep_together_hangs_on_their_numbers_alone(
    grown: list[tuple[int, int]], most: int
) -> None:
    def held(of: Sequence[tuple[int, int]]) -> tuple[Holder, dict[int, Thinned[int]]]:
        holder, series = Holder(most), {}
        for key, number in of:
            one = series.setdefault(key, Thinned[int]())
            before = one.count
            for at in range(before, before + number):
                one.keep(at)
            holder.grown(one, before)
        return holder, series

    def told(series: dict[int, Thinned[int]]) -> dict[int, tuple[int, list[int]]]:
        return {key: (one.stride, one.points) for key, one in sorted(series.items())}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thinning, "POINTS", 5)
        _, series = held(grown)
        assert sum(len(one.points) - 1 for one in series.values()) <= most
        assert told(held(sorted(grown))[1]) == told(series)
        first, some = held([one for one in grown if one[0] % 2])
        second, others = held([one for one in grown if not one[0] % 2])
        first.join(second)
        assert told({**some, **others}) == told(series)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"sweeps": ("window.sise=1",)}, "there is no such setting of a monitor"),
        ({"sweeps": ("window=1",)}, "there is no such setting of a monitor"),
        (
            {"sweeps": ("window.size",)},
            "write a setting of the monitors and its values",
        ),
        (
            {"sweeps": ("window.size=2",)},
            "cannot have window.size=2: .*larger than the window's",
        ),
        ({"sweeps": ("x:window.size=50",)}, 'there is no monitor "x"'),
        (
            {"sweeps": (f"h.beta={','.join(map(str, range(1, 1100)))}",)},
            "1,000 at most",
        ),
        ({"sweeps": ("name=a,b",)}, "there is no such setting of a monitor"),
        ({"sweeps": ("h.beta=2,3, 2",)}, "2 stands there twice"),
        ({"sweeps": ("h.beta=2,,",)}, "an empty value stands there twice"),
        ({"sweeps": ("h.beta=2", "h.beta=3")}, "h.beta is given twice"),
        ({"alerts": ("auc falls",)}, "a rule is a metric"),
        ({"alerts": ("aucc < 1",)}, "did you mean auc"),
        ({"alerts": ("auc < 0.5 for 0",)}, "a rule fires after 1 update or more"),
        ({"change": "7"}, "alerts count from it"),
        ({"cold": True}, "--cold says how windows begin at --from"),
        ({"report": Path("r.txt")}, "the suffix must be .html"),
        ({"change": "latest"}, "name an offset or a time"),
        ({"sweeps": ("h.beta=2,3",), "out": "-"}, "a sweep writes a file per setting"),
        ({"sweeps": ("h.beta=2,3",), "compare": "b"}, "exclude each other"),
        ({"compare": "b", "compare_keys": ("a", "b")}, "exclude each other"),
        ({"pair_by": "id"}, "--pair-by goes with --compare-keys"),
        ({"compare": "$key"}, "name a field of the records"),
        ({"compare": "score"}, "that is event.score, the champion"),
        ({"compare_keys": ("a", "a")}, "name two keys"),
    ],
)
def test_what_cannot_be_swept_ruled_or_compared_is_refused(
    settings_of: Callable[..., config.Settings],
    tmp_path: Path,
    options: dict[str, Any],
    sentence: str,
) -> None:
    source = failing(tmp_path / "x.jsonl", count=1)
    with pytest.raises(SettingsError, match=sentence):
        Backtest(settings_of(MONITOR), Options(sources=(str(source),), **options))._sinks()


def test_a_sweep_of_one_monitor_leaves_the_others_alone(
    settings_of: Callable[..., config.Settings],
) -> None:
    text = (
        MONITOR
        + MONITOR.partition("[[monitor]]")[1]
        + ('\nname = "n"\nwindow = { kind = "count", size = 9, slide = 3 }\n')
    )
    found = variants(settings_of(text), ["n:window.size=10,20"])
    assert [[one.window.size for one in each.settings.monitors] for each in found] == [
        [50, 10],
        [50, 20],
    ]


def test_lags_go_on_where_a_key_begins_to_count_anew(
    settings_of: Callable[..., config.Settings],
) -> None:
    [monitor] = settings_of(MONITOR).monitors
    watchman = Watchman(rule("auc < 0.5"))
    recorder = Recorder(watchmen={"m": [watchman]}, change=Bound("offset", 40))
    aucs = [0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.4, 0.9]
    for at, (seq, auc) in enumerate(zip([5, 6, 7, 8, 9, 1, 2, 3], aucs, strict=True)):
        point = Point(seq, 0, at * 10, "t", 50.0, 20.0, 30.0, full=True, values={"auc": auc})
        recorder.take(monitor, "k", [point])
    assert (watchman.early(), watchman.behind()) == (0, [3 * monitor.window.slide])
