"""Champion and challenger: paired events, exact readings of both, DeLong's paired interval."""

from __future__ import annotations

import json
import math
import random
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inmemory import HEAD
from sklearn.metrics import roc_auc_score

from config.errors import RocstreamError
from worker.cli.commands import run as rocstream
from worker.replay.backtest import Backtest, Options
from worker.replay.pairs import paired_delong

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import config

MONITOR = """
[event]
key = "key"

[[monitor]]
name = "m"
window = { kind = "count", size = 60, slide = 20 }
"""
SCORES = st.sampled_from([0.0, 0.25, 0.5, 1.0])
EVENTS = st.lists(st.tuples(SCORES, SCORES, st.integers(0, 1)), min_size=1, max_size=25)


@given(EVENTS)
def test_the_paired_interval_is_that_of_the_definition(
    events: list[tuple[float, float, int]],
) -> None:
    a, b, y = (np.array(column) for column in zip(*events, strict=True))
    found = paired_delong(a, b, y)
    positives, negatives = events_of(events, 1), events_of(events, 0)
    if min(len(positives), len(negatives)) < 2:
        assert all(map(math.isnan, found))
        return

    def beats(over: float, under: float) -> float:
        return (over > under) + (over == under) / 2

    def gain(p: tuple[float, float], n: tuple[float, float]) -> float:
        return beats(p[1], n[1]) - beats(p[0], n[0])

    every = [gain(p, n) for p, n in product(positives, negatives)]
    by_p = [np.mean([gain(p, n) for n in negatives]) for p in positives]
    by_n = [np.mean([gain(p, n) for p in positives]) for n in negatives]
    variance = np.var(by_p, ddof=1) / len(by_p) + np.var(by_n, ddof=1) / len(by_n)
    assert found[0] == pytest.approx(np.mean(every), abs=1e-12)
    reach = 1.959963984540054 * math.sqrt(variance)
    assert found[1] == pytest.approx(max(found[0] - reach, -1), abs=1e-9)
    assert found[2] == pytest.approx(min(found[0] + reach, 1), abs=1e-9)
    assert 0 <= found[3] <= 1


def events_of(events: list[tuple[float, float, int]], label: int) -> list[tuple[float, float]]:
    return [(a, b) for a, b, y in events if y == label]


def scored(count: int = 400) -> list[dict[str, Any]]:
    rng = random.Random(4)  # noqa: S311 - a seeded stream
    return [
        {
            "id": number,
            "a": rng.gauss(label, 1),
            "b": rng.gauss(2 * label, 1),
            "label": label,
        }
        for number in range(count)
        for label in [int(rng.random() < 0.4)]
    ]


def write(path: Path, documents: list[dict[str, Any]]) -> Path:
    path.write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in documents))
    return path


def rows(settings: config.Settings, **options: Any) -> list[dict[str, Any]]:
    backtest = Backtest(settings, Options(**options))
    assert backtest.comparison is not None
    for _ in backtest.player:
        pass
    return [json.loads(one.value or b"") for one in backtest.comparison.taken()]


def assert_right(found: list[dict[str, Any]], events: list[dict[str, Any]]) -> None:
    assert len(found) == len(events) // 20
    for number, row in enumerate(found, start=1):
        inside = events[max(0, number * 20 - 60) : number * 20]
        labels = [one["label"] for one in inside]
        aucs = [roc_auc_score(labels, [one[name] for one in inside]) for name in ("a", "b")]
        assert row["auc_champion"] == pytest.approx(aucs[0], abs=1e-12)
        assert row["auc_challenger"] == pytest.approx(aucs[1], abs=1e-12)
        assert row["auc_difference"] == row["auc_challenger"] - row["auc_champion"]
        assert row["auc_difference_low"] <= row["auc_difference"] <= row["auc_difference_high"]
        assert row["events"] == len(inside)


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_two_scores_of_one_record_are_compared(
    settings_of: Callable[..., config.Settings], tmp_path: Path, form: str
) -> None:
    events = scored()
    documents = [{"key": "k", "score": e["a"], "new": e["b"], "label": e["label"]} for e in events]
    path = write(tmp_path / "x.jsonl", documents)
    if form == "csv":
        path = tmp_path / "x.csv"
        lines = [f"k,{d['score']!r},{d['new']!r},{d['label']}" for d in documents]
        path.write_text("\n".join(["key,score,new,label", *lines]))
    elif form == "parquet":
        path = tmp_path / "x.parquet"
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.Table.from_pylist(documents), path)
    found = rows(settings_of(MONITOR), sources=(str(path),), compare="new")
    assert_right(found, events)
    assert {row["key"] for row in found} == {"k"}


def test_two_keys_are_compared_in_turn_or_by_what_their_records_share(
    settings_of: Callable[..., config.Settings], tmp_path: Path
) -> None:
    events = scored()
    both = [
        {"key": name, "id": str(one["id"]), "score": one[name], "label": one["label"]}
        for one in events
        for name in ("a", "b")
    ]
    settings = settings_of(MONITOR)
    path = write(tmp_path / "x.jsonl", both)
    found = rows(settings, sources=(str(path),), compare_keys=("a", "b"))
    assert_right(found, events)

    # Out of turn: all of the challenger's records come some time after the champion's.
    late = [
        one
        for at in range(0, 800, 80)
        for name in "ab"
        for one in both[at : at + 80]
        if one["key"] == name
    ]
    assert late != both
    path = write(tmp_path / "y.jsonl", late)
    found = rows(settings, sources=(str(path),), compare_keys=("a", "b"), pair_by="id")
    assert_right(found, events)


def test_keys_that_do_not_go_together_in_turn_are_told_of(
    settings_of: Callable[..., config.Settings], tmp_path: Path
) -> None:
    documents = [
        {"key": key, "score": 1, "label": label}
        for key, label in [("a", 1), ("b", 1), ("b", 0), ("a", 1)]
    ]
    path = write(tmp_path / "x.jsonl", documents)
    with pytest.raises(RocstreamError, match=r"completed at offset 3 has two labels.*--pair-by"):
        rows(settings_of(MONITOR), sources=(str(path),), compare_keys=("a", "b"))


def test_a_comparison_is_told_and_written(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    job = tmp_path / "job.toml"
    job.write_text(HEAD + MONITOR)
    documents = [
        {"key": "k", "score": e["a"], "new": e["b"], "label": e["label"]} for e in scored()
    ]
    source = write(tmp_path / "x.jsonl", documents)
    command = ["replay", "-c", str(job), str(source), "--compare", "new", "-o"]
    assert rocstream([*command, str(tmp_path / "c.jsonl")]) == 0
    told = capfd.readouterr().out
    assert "champion score, challenger new" in told
    written = [json.loads(line) for line in (tmp_path / "c.jsonl").read_bytes().splitlines()]
    assert len(written) == 20
    pq = pytest.importorskip("pyarrow.parquet")
    assert rocstream([*command, str(tmp_path / "c.parquet")]) == 0
    assert pq.read_table(tmp_path / "c.parquet").to_pylist() == written
    assert rocstream([*command[:-2], "missing", "-o", "-"]) == 0
    assert "nothing was compared: no event has both score and missing" in capfd.readouterr().err
