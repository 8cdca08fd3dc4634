"""The live table: what it shows of an update, and what it leaves out where room is scarce."""

from __future__ import annotations

import io
import time
from typing import Any

import pytest
from rich.console import Console

from config import Monitor
from worker.cli.board import SAMPLES, Board, Row, age, line, sparkline

MONITOR = Monitor(name="last-1k", window={"kind": "count", "size": 1000, "slide": 50})
SMALL = Monitor(
    name="last-100", window={"kind": "count", "size": 100, "slide": 50}, metrics=["auc"]
)


def update(**changes: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "monitor": "last-1k",
        "key": "fraud-v3",
        "seq": 1234,
        "time": int(time.time() * 1000) - 120_000,
        "window": {"kind": "count", "size": 1000, "slide": 50, "events": 500, "full": False},
        "positives": 31,
        "negatives": 469,
        "auc": 0.93125,
        "h": 0.5,
        "reason": None,
        "note": None,
        **changes,
    }


def shown(board: Board, width: int = 120, **options: Any) -> str:
    console = Console(file=io.StringIO(), width=width)
    with console.capture() as captured:
        console.print(board.table("status", console, **options))
    return captured.get()


def test_a_row_tells_the_last_update_of_its_key() -> None:
    board = Board([MONITOR])
    board.take(update(auc=0.1))
    board.take(update())
    text = shown(board)
    for told in ("fraud-v3", "0.9313", "0.5000", "1,234", "500", "31", "50%", "2m", "status"):
        assert told in text
    assert "0.1000" not in text


def test_a_metric_that_is_not_defined_is_a_dash_with_its_reason() -> None:
    board = Board([MONITOR])
    board.take(update(auc=None, h=None, reason="one_class", note="gap"))
    assert "gap one_class" in shown(board)


def test_keys_of_text_that_looks_like_markup_are_shown_as_they_are() -> None:
    board = Board([MONITOR])
    board.take(update(key="[red]x[/]"))
    assert "[red]x[/]" in shown(board)


def test_monitors_are_named_where_there_are_several() -> None:
    board = Board([MONITOR, SMALL])
    board.take(update())
    board.take(update(monitor="last-100"))
    text = shown(board)
    assert text.index("last-100") < text.index("last-1k")


def test_a_narrow_terminal_loses_trends_first_and_columns_then() -> None:
    board = Board([MONITOR, SMALL])
    board.take(update())
    assert all(len(row) <= 60 for row in shown(board, width=60).splitlines())
    assert "seq" not in shown(board, width=60)
    assert "0.9313" in shown(board, width=60)


def test_rows_beyond_the_screen_are_counted() -> None:
    board = Board([MONITOR])
    for number in range(10):
        board.take(update(key=f"key-{number}"))
    text = shown(board, rows=3)
    assert "7 more keys" in text
    assert "key-3" not in text


@pytest.mark.parametrize(("last", "moved"), [(0.5, -1), (0.9, 0), (0.89, 0), (1.0, 1)])
def test_a_trend_is_what_changed_over_the_samples(last: float, moved: int) -> None:
    row = Row(["auc"])
    for number in range(12):
        row.take(update(auc=0.9 if number < 9 else last, time=number * 1000))
    assert row.moved("auc") == moved


def test_within_a_second_of_event_time_only_the_newest_reading_joins_the_trend() -> None:
    row = Row(["auc"])
    for number in range(100):
        row.take(update(auc=number / 100, time=1_000_000 + number * 10))
    assert list(row.trends["auc"]) == [0.99]


def test_a_trend_is_bounded() -> None:
    row = Row(["auc"])
    for number in range(100):
        row.take(update(time=number * 1000))
    assert len(row.trends["auc"]) == SAMPLES


def test_sparklines_span_the_floor_to_one() -> None:
    assert sparkline([0.5, 0.75, 1.0, 0.2, None], 0.5) == "▁▄▇▁ "


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(-5, "0.0s"), (340, "0.3s"), (12_000, "12s"), (61_000, "1m"), (7_200_000, "2h"), (2e8, "2d")],
)
def test_ages_are_said_as_people_do(milliseconds: float, text: str) -> None:
    assert age(milliseconds) == text


def test_a_plain_line_has_name_and_figure_of_everything() -> None:
    assert line(update(note="gap")) == (
        "last-1k fraud-v3 seq=1234 auc=0.9313 h=0.5000 events=500 positives=31 filling note=gap"
    )
