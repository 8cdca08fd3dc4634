"""Records of every kind that may stand in the topic, and all that is told of them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from config import EventSettings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from worker.events import Batch

NOW = 1_764_460_000_000


@dataclass(frozen=True)
class Record:
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int


numbers = st.one_of(
    st.sampled_from([0, 1, 0.0, 1.0, 0.5, -1, 2**63, 2**64, 10**400, NOW, NOW * 2, 1e308]),
    st.floats(),
    st.integers(),
)
odd: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.text(max_size=3), st.just({}), st.just([])
)
scalars = st.one_of(st.floats(0, 1), st.sampled_from([0, 1]), numbers, odd)
times = st.one_of(st.integers(NOW - 9, NOW + 9), scalars)
arrays = st.lists(scalars, max_size=6)
labels = st.one_of(st.sampled_from([0, 1, 0, 1, None, "ok", "fraud"]), scalars)


@st.composite
def columnar(draw: st.DrawFn) -> dict[str, Any]:
    size = draw(st.integers(0, 8))

    def column(elements: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
        return st.lists(elements, min_size=size, max_size=size)

    classes = st.sampled_from([0, 1])
    return {
        "key": draw(st.sampled_from(["a", "b"])),
        "score": draw(st.one_of(column(st.floats(0, 1)), column(scalars))),
        "label": draw(st.one_of(column(classes), column(labels), st.none())),
        "weight": draw(st.one_of(column(st.just(2)), column(scalars), scalars)),
        "time": draw(st.one_of(column(times), times)),
    }


plain = st.fixed_dictionaries(
    {"score": st.one_of(st.floats(0, 1), scalars, arrays), "label": labels},
    optional={
        "key": st.one_of(st.sampled_from(["a", "b", 7]), scalars),
        "time": times,
        "weight": scalars,
        "heartbeat": st.sampled_from([True, True, False, None, 1]),
        "other": scalars,
    },
)
texts = st.one_of(plain, columnar(), st.dictionaries(st.text(max_size=5), scalars)).map(
    lambda value: json.dumps(value).encode()
)
cut_texts = st.builds(lambda text, at: text[: at % (len(text) + 1)], texts, st.integers(0, 999))
values = st.one_of(texts, texts, cut_texts, st.none(), st.binary(max_size=12))
keys = st.one_of(st.sampled_from([b"a", b"b"]), st.none(), st.binary(max_size=3))


@st.composite
def streams(draw: st.DrawFn) -> list[Record]:
    rows = draw(st.lists(st.tuples(keys, values), max_size=8))
    offset, records = draw(st.integers(0, 100)), []
    for key, value in rows:
        timestamp = draw(st.sampled_from([NOW, NOW, NOW + 5, 0, -1]))
        records.append(Record(offset, key, value, timestamp))
        offset += draw(st.integers(1, 3))
    return records


CONFIGURATIONS: list[dict[str, Any]] = [
    {},
    {"key": "key", "time": "time"},
    {"key": "key", "time": "time", "time_unit": "us", "max_ahead": "36500d"},
    {"key": "key", "time": "time", "weight": "weight"},
    {"labels": {"ok": 0, "fraud": 1}, "weight": "weight"},
    {"labels": {"0": 1, "1": 0}, "numbers_as_text": True},
]
configurations = st.sampled_from([EventSettings(**changes) for changes in CONFIGURATIONS])


def rows(batches: Iterable[Batch]) -> dict[str, list[tuple[Any, ...]]]:
    """Give the events of each key in order, as tuples; floats by their exact bits."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for batch in batches:
        for key, events in batch.keys.items():
            size = len(events)
            columns = (
                [score.hex() for score in events.scores],
                events.labels,
                events.times,
                [1.0] * size if events.weights is None else events.weights,
                events.offsets,
                events.indexes,
            )
            assert {len(column) for column in columns} == {size}
            found.setdefault(key, []).extend(zip(*columns, strict=True))
    return found


def total(batches: list[Batch]) -> Counter[str]:
    return sum((batch.counts for batch in batches), Counter())


def outcome(batches: list[Batch]) -> tuple[Any, ...]:
    rejections = [rejection for batch in batches for rejection in batch.rejections]
    watermark = max((batch.watermark for batch in batches), default=-1)
    return rows(batches), rejections, total(batches), watermark
