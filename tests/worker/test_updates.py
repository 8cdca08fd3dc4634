"""The updates' bytes: those of one JSON object each, however many are written together."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import Readings
from worker import core, updates
from worker.updates import Slides, Writer

if TYPE_CHECKING:
    from collections.abc import Callable

    import config

MONITOR = """
[[monitor]]
name = "last-100"
window = { kind = "count", size = 100, slide = 7 }
metrics = ["h", "accuracy", "auc"]
thresholds = [0.5, 0.25]
h = { alpha = 2, beta = 4.5 }
"""

NAMES = ("events", "positives", "negatives", "start", "end")
VALUES = ("h", "accuracy@0.5", "accuracy@0.25", "auc")

whole = st.integers(0, 2**62)
weights = st.lists(st.one_of(whole, st.floats(0, 1e30)), min_size=2, max_size=2)
values = st.lists(st.one_of(st.just(math.nan), st.floats(0, 1)), min_size=4, max_size=4)
rows = st.lists(
    st.tuples(st.integers(1, 100), weights, st.tuples(whole, whole), values), min_size=1, max_size=9
)


def expected(key: str, seq: int | None, place: int, row: Any, note: str | None) -> bytes:
    """One update, written as the object that it is."""
    events, classes, (start, end), values = row
    positives, negatives = (
        int(weight) if weight < 2**63 and weight == int(weight) else weight for weight in classes
    )
    h, half, quarter, auc = (None if math.isnan(value) else value for value in values)
    reason = None
    if None in {h, half, quarter, auc}:
        reason = "undefined" if positives and negatives else "one_class"
    return orjson.dumps(
        {
            "version": 1,
            "monitor": "last-100",
            "key": key,
            "seq": seq,
            "time": place,
            "window": {
                "kind": "count",
                "size": 100,
                "slide": 7,
                "events": events,
                "full": events == 100,
                "start": start,
                "end": end,
            },
            "positives": positives,
            "negatives": negatives,
            "h": h,
            "accuracy": {"0.5": half, "0.25": quarter},
            "auc": auc,
            "h_alpha": 2,
            "h_beta": 4.5,
            "reason": reason,
            "note": note,
            "source": {"topic": "events", "partition": 3, "offset": place + 1, "index": place + 2},
        }
    )


def arrays(found: list[Any]) -> Readings:
    events, classes, span, values = zip(*found, strict=True)
    counted = all(isinstance(weight, int) for pair in classes for weight in pair)
    kind = np.int64 if counted else np.float64
    columns = [np.array(events)]
    columns += [np.array(column, kind) for column in zip(*classes, strict=True)]
    columns += [np.array(column, np.int64) for column in zip(*span, strict=True)]
    columns += [np.array(column, np.float64) for column in zip(*values, strict=True)]
    return Readings((*NAMES, *VALUES), columns)


@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    key=st.text(min_size=1, max_size=20).filter(lambda text: text.isprintable()),
    found=rows,
    first=st.none() | st.integers(1, 3),
    gap=st.booleans(),
    note=st.none() | st.just("expired"),
)
def test_updates_written_together_have_the_bytes_of_one_object_each(
    settings_of: Callable[..., config.Settings],
    key: str,
    found: list[Any],
    first: int | None,
    gap: bool,  # noqa: FBT001 - drawn
    note: str | None,
) -> None:
    writer = Writer(settings_of(MONITOR).monitors[0], "events", 3)
    places = range(50, 50 + len(found))
    slides = Slides(first, list(places), [at + 1 for at in places], [at + 2 for at in places])
    written = writer.write(key, slides, arrays(found), gap=gap, note=note)
    assert [message.key for message in written] == [key.encode()] * len(found)
    for at, (message, row) in enumerate(zip(written, found, strict=True)):
        seq = None if first is None else first + at
        # Weights come as doubles where one of them is no integer.
        events, classes, span, values = row
        if any(isinstance(weight, float) for other in found for weight in other[1]):
            classes = [float(weight) for weight in classes]
        said = note or ("gap" if gap and seq == 1 else None)
        wanted = expected(key, seq, 50 + at, (events, classes, span, values), said)
        assert message.value == wanted


@pytest.mark.parametrize("key", ["100%b", 'a "quoted" one', "\n", "%", "Größe", "\x00"])
def test_a_key_stands_in_its_updates_whatever_it_holds(
    settings_of: Callable[..., config.Settings], key: str
) -> None:
    writer = Writer(settings_of(MONITOR).monitors[0], "events", 3)
    row = (100, [1, 2], (3, 4), [0.5, math.nan, 1.0, 1e-7])
    (message,) = writer.write(key, Slides(9, [50], [51], [52]), arrays([row]))
    assert message.value == expected(key, 9, 50, row, None)


@pytest.mark.parametrize("compiled", {False, core.COMPILED})
def test_the_end_of_an_update_tells_where_it_comes_from(
    monkeypatch: pytest.MonkeyPatch,
    compiled: bool,  # noqa: FBT001 - a parameter
) -> None:
    monkeypatch.setattr(updates, "COMPILED", compiled)
    sources = [(0, 0), (7, 12), (2**62, 3)]
    values = [
        expected("k", 1, at - 1, (1, (1, 0), (0, 0), [math.nan] * 4), None) for at, _ in sources
    ]
    ends = [value[: value.rfind(b'"index"')] for value in values]
    given_values = [end + b'"index":%d}}' % at for end, (_, at) in zip(ends, sources, strict=True)]
    assert updates.places(given_values).tolist() == [list(source) for source in sources]
    assert updates.places([]).tolist() == []
    for odd in (b"", b"}}", b"{}", b'"index":1}}'):
        with pytest.raises(ValueError, match=r"."):
            updates.places([odd])
