"""Columnar records: many events in arrays, cut and resumed anywhere."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from config import EventSettings
from worker.events import Batch, Parser

pytestmark = pytest.mark.usefixtures("either_way")

NOW = 1_764_460_000_000


@dataclass(frozen=True)
class Record:
    offset: int
    value: bytes | None
    key: bytes | None = b"k"
    timestamp: int = NOW


def batches(*values: Any, limit: int = 4096, index: int = 0, **settings: Any) -> list[Batch]:
    records = [
        Record(at, value if isinstance(value, bytes) else json.dumps(value).encode())
        for at, value in enumerate(values)
    ]
    return list(Parser(EventSettings(**settings)).batches(records, index, limit))


def parse(*values: Any, **options: Any) -> Batch:
    (batch,) = batches(*values, **options)
    return batch


def test_elements_are_events_in_order() -> None:
    batch = parse({"score": [0.1, 1, 0.3], "label": [0, 1, 0]}, {"score": 0.5, "label": 1})
    events = batch.keys["k"]
    assert events.scores == [0.1, 1.0, 0.3, 0.5]
    assert events.labels == [0, 1, 0, 1]
    assert events.offsets == [0, 0, 0, 1]
    assert events.indexes == [0, 1, 2, 0]
    assert events.times == [NOW] * 4
    assert events.weights is None
    assert all(type(score) is float for score in events.scores)
    assert batch.counts == {"records": 2, "events": 4}


def test_time_and_weight_are_arrays_or_one_for_all() -> None:
    paths = {"time": "t", "weight": "w", "key": "key"}
    base = {"key": 7, "score": [0.1, 0.2], "label": [0, 1]}
    batch = parse(
        {**base, "t": [NOW, NOW - 5], "w": [1, 2.5]}, {**base, "t": NOW + 3, "w": 2}, **paths
    )
    assert batch.keys["7"].times == [NOW, NOW - 5, NOW + 3, NOW + 3]
    assert batch.keys["7"].weights == [1.0, 2.5, 2.0, 2.0]
    assert batch.watermark == NOW + 3
    assert parse({**base, "t": NOW}, **paths).keys["7"].weights is None
    assert parse({**base, "t": NOW, "w": [1, 1.0]}, **paths).keys["7"].weights is None


def test_units_are_converted_in_columns() -> None:
    value = {"score": [0.1, 0.2], "label": [0, 1], "t": [1_764_460_000, 1_764_460_001]}
    assert parse(value, time="t", time_unit="s").keys["k"].times == [NOW, NOW + 1000]


@pytest.mark.parametrize(
    "change",
    [
        {"label": [0]},
        {"label": 1},
        {"label": {}},
        {"score": 0.5},
        {"score": None},
        {"score": [0.1]},
        {"t": [NOW]},
        {"w": [1, 1, 1]},
        {"t": []},
    ],
)
def test_unequal_arrays_are_rejected_whole(change: dict[str, Any]) -> None:
    value = {"score": [0.1, 0.2], "label": [0, 1], "t": NOW, "w": 1, **change}
    batch = parse(value, time="t", weight="w")
    (rejection,) = batch.rejections
    assert (rejection.code, rejection.indexes) == ("unequal_arrays", "")
    assert not batch.keys
    assert batch.counts == {"records": 1, "rejected": 1, "rejected.unequal_arrays": 1}


def test_missing_score_beside_an_array_of_labels_is_unequal() -> None:
    assert parse({"label": [0, 1]}).rejections[0].code == "unequal_arrays"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"key": ""}, "key_empty"),
        ({"key": ["a", "b"]}, "key_type"),
        ({"t": -1}, "time_before_1970"),
        ({"t": NOW * 2}, "time_ahead"),
        ({"t": None}, "time_not_integer"),
        ({"w": -1}, "weight_negative"),
        ({"w": 1e200}, "weight_out_of_range"),
        ({"w": "x"}, "weight_not_number"),
    ],
)
def test_bad_value_for_all_rejects_the_record_whole(change: dict[str, Any], code: str) -> None:
    value = {"key": "k", "score": [0.1, 0.2], "label": [0, 1], "t": NOW, "w": 1, **change}
    batch = parse(value, key="key", time="t", weight="w")
    assert [(r.code, r.indexes) for r in batch.rejections] == [(code, "")]
    assert batch.counts["rejected"] == 1
    assert not batch.keys


def test_a_weight_out_of_range_among_others_is_rejected_alone() -> None:
    value = {"key": "k", "score": [0.1, 0.2], "label": [0, 1], "t": NOW, "w": [5e-324, 2]}
    batch = parse(value, key="key", time="t", weight="w")
    assert [(r.code, r.indexes) for r in batch.rejections] == [("weight_out_of_range", "0")]
    assert batch.counts["events"] == 1


def test_bad_elements_make_one_rejection_and_the_rest_counts() -> None:
    value = {
        "score": [0.1, "x", True, 0.4, None, 0.6, 0.7, 0.8],
        "label": [0, 1, 1, 5, 1, 1, None, 0],
        "w": [1, 1, 1, 1, 1, 0, 1, 3],
    }
    batch = parse(value, weight="w")
    events = batch.keys["k"]
    assert (events.scores, events.labels) == ([0.1, 0.8], [0, 0])
    assert (events.indexes, events.weights) == ([0, 7], [1.0, 3.0])
    (rejection,) = batch.rejections
    assert rejection.code == "score_not_number"
    assert rejection.indexes == "1-4"
    assert "element 1" in rejection.sentence
    assert "3 score_not_number, 1 label_unknown" in rejection.sentence
    assert rejection.value == json.dumps(value).encode()
    assert batch.counts == {
        "records": 1,
        "events": 2,
        "unlabelled": 1,
        "zero_weight": 1,
        "rejected": 4,
        "rejected.score_not_number": 3,
        "rejected.label_unknown": 1,
    }


@pytest.mark.parametrize("bad", ["NaN", "Infinity", "-Infinity", "1e999", '"x"', "true", "null"])
def test_one_bad_score_leaves_the_others(bad: str) -> None:
    batch = parse(b'{"score":[0.1,%s,0.3],"label":[1,1,0]}' % bad.encode())
    assert batch.keys["k"].scores == [0.1, 0.3]
    assert batch.rejections[0].indexes == "1"


def test_true_is_a_class_and_no_number() -> None:
    batch = parse({"score": [0.1, 0.2], "label": [True, 0]})
    assert [type(label) for label in batch.keys["k"].labels] == [int, int]
    assert parse({"score": [0.1, True], "label": [1, 0]}).counts["rejected"] == 1


def test_without_labels_every_element_is_unlabelled() -> None:
    for value in ({"score": [1, 2, 3]}, {"score": [1, 2, 3], "label": None}):
        assert parse(value).counts == {"records": 1, "unlabelled": 3}
    assert parse({"score": [1, 2], "label": [None, None]}).counts["unlabelled"] == 2


def test_empty_arrays_are_a_record_without_events() -> None:
    batch = parse({"score": [], "label": []})
    assert batch.counts == {"records": 1}
    assert not batch.rejections
    assert batch.offset == 1


def test_weight_0_for_all_skips_every_element() -> None:
    batch = parse({"score": [1, 2], "label": [0, 1], "w": 0}, weight="w")
    assert batch.counts == {"records": 1, "zero_weight": 2}


def test_columns_of_weights_and_times_are_told_apart_exactly() -> None:
    value = {"score": [1, 2, 3, 4], "label": [1, 0, 1, 0], "w": [1, True, -1, 1]}
    times = [NOW, NOW, NOW, NOW + 10**10]
    batch = parse({**value, "t": times}, weight="w", time="t")
    assert batch.keys["k"].indexes == [0]
    assert batch.rejections[0].indexes == "1-3"


def test_labels_map_holds_in_columns() -> None:
    value = {"score": [1, 2, 3], "label": ["fraud", "ok", "?"]}
    batch = parse(value, labels={"fraud": 1, "ok": 0})
    assert batch.keys["k"].labels == [1, 0]
    batch = parse({"score": [1, 2, 3], "label": [1, 2, 0]}, labels={"2": 1, "1": 0})
    assert batch.keys["k"].labels == [0, 1]


def test_a_batch_ends_inside_a_record_and_the_next_goes_on() -> None:
    value = {"score": [float(i) for i in range(10)], "label": [0, 1] * 5}
    first, second, third = batches({"score": 9, "label": 1}, value, limit=4)
    assert (first.offset, first.index, first.counts["events"]) == (1, 3, 4)
    assert (second.offset, second.index, second.counts["events"]) == (1, 7, 4)
    assert (third.offset, third.index, third.counts["events"]) == (2, 0, 3)
    assert second.keys["k"].indexes == [3, 4, 5, 6]
    assert [b.counts["records"] for b in (first, second, third)] == [1, 0, 1]


def test_rejection_of_a_resumed_record_comes_once_with_its_last_element() -> None:
    value = {"score": [0.1, "bad", 0.3, 0.4, "bad"], "label": [1] * 5}
    first, second = batches(value, limit=2)
    assert (first.index, first.rejections) == (3, [])
    assert (first.counts["rejected"], second.counts["rejected"]) == (1, 1)
    assert [r.indexes for r in second.rejections] == ["1,4"]
    (resumed,) = batches(value, index=3)
    assert resumed.rejections == second.rejections
    assert resumed.keys["k"].indexes == [3]


def test_batches_end_early_when_rejections_grow_large() -> None:
    whole = batches(*[b"x" * 900_000] * 12)
    assert len(whole) > 1
    assert [r.offset for batch in whole for r in batch.rejections] == list(range(12))


def test_limit_must_have_room_for_an_event() -> None:
    with pytest.raises(ValueError, match="limit is 0"):
        batches({"score": 1, "label": 1}, limit=0)


def test_no_records_give_no_batch() -> None:
    assert batches() == []


def test_indexes_of_a_large_record_stay_below_4_kb() -> None:
    size = 20_000
    value = {"score": [i if i % 2 else "x" for i in range(size)], "label": [1] * size}
    found = batches(value, limit=100_000)[0]
    (rejection,) = found.rejections
    assert len(rejection.indexes) <= 4096
    assert rejection.indexes.startswith("0,2,4,")
    assert rejection.indexes.endswith(",...")
    assert f"{size // 2} score_not_number" in rejection.sentence
