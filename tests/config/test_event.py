"""Paths, durations and what a changed [event] section means."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import config
from config.paths import parse, render
from config.values import format_duration, parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable

    Load = Callable[..., config.Settings]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("score", ("score",)),
        ("model.score", ("model", "score")),
        (" model . score ", ("model", "score")),
        ('a."b.c"', ("a", "b.c")),
        ("a.'b.c'.d", ("a", "b.c", "d")),
        ('"$key"', ("$key",)),
        (r'"a\"b\u00e4\\"', ('a"bä\\',)),
        ('""', ("",)),
        ("''.a", ("", "a")),
        ("größe in m", ("größe in m",)),
        ("a-b_c:d", ("a-b_c:d",)),
        ("$key", config.Own.KEY),
        ("$timestamp", config.Own.TIMESTAMP),
    ],
)
def test_a_path_is_read_as_toml_reads_keys(text: str, path: config.FieldPath) -> None:
    assert parse(text) == path


@pytest.mark.parametrize(
    "text", ["", ".", "a.", ".a", "a..b", 'a"b', '"a', "'a", '"a"b', '"a" "b"', r'"\q"', "$x", "$"]
)
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"path|quote|own|single dots"):
        parse(text)


def test_a_path_is_bounded() -> None:
    with pytest.raises(ValueError, match="at most 1,024 characters"):
        parse("a." * 600)


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=5), min_size=1, max_size=4))
def test_every_path_can_be_written(parts: list[str]) -> None:
    assert parse(render(tuple(parts))) == tuple(parts)


@given(st.text(max_size=12))
def test_text_is_a_path_or_refused(text: str) -> None:
    try:
        path = parse(text)
    except ValueError:
        return
    assert parse(render(path)) == path


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("100ms", timedelta(milliseconds=100)),
        ("1h", timedelta(hours=1)),
        (" 1 m ", timedelta(minutes=1)),
        ("1.5s", timedelta(seconds=1.5)),
        ("2d", timedelta(days=2)),
        ("0s", timedelta()),
    ],
)
def test_a_duration_is_text_with_a_unit(text: str, span: timedelta) -> None:
    assert parse_duration(text) == span


@pytest.mark.parametrize("text", ["", "1", "s", "1 w", "1h30m", "-1s", "1e3s", "\u0661s", "+1s"])
def test_other_text_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="a number with one of the units"):
        parse_duration(text)


@given(st.integers(0, 10**12))
def test_a_duration_can_be_written_and_read_again(milliseconds: int) -> None:
    span = timedelta(milliseconds=milliseconds)
    assert parse_duration(format_duration(span)) == span


def test_the_fingerprint_stands_for_what_a_record_means(load: Load) -> None:
    plain = load().event_fingerprint()
    changes = [
        'key = "model"',
        'score = "p"',
        'label = "y"',
        'time = "t"',
        'weight = "w"',
        "labels = { a = 1, b = 0 }",
        "labels = { a = 0, b = 1 }",
        'time_unit = "s"',
        "numbers_as_text = true",
        'max_ahead = "2h"',
    ]
    found = [load(event=change).event_fingerprint() for change in changes]
    assert len({plain, *found}) == len(changes) + 1


def test_the_fingerprint_does_not_depend_on_the_spelling(load: Load) -> None:
    plain = load(event="labels = { a = 1, b = 0 }").event_fingerprint()
    spelled = (
        'labels = { b = 0, a = 1 }\nmax_ahead = "60m"\nscore = \'"score"\'\nkey = "$key"\n'
        'weight = "none"\ntime_unit = "MS"'
    )
    assert load(event=spelled, log='level = "debug"').event_fingerprint() == plain


def test_the_fingerprint_is_the_same_in_every_version(load: Load) -> None:
    # Running jobs keep it: another figure here would stop them all.
    assert load().event_fingerprint() == (
        "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    )
    some = load(event='weight = "a.b"\nmax_ahead = "90s"\nlabels = { bad = 1, good = 0 }')
    assert some.event_fingerprint() == (
        "b9e5e2d0d58a9ab70b6fd8f71149f9659707177f07c6737fa51ac447c50e0c0e"
    )
