"""Every row of the input table: what becomes of one plain record."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from config import EventSettings
from engine import events as engine_events
from worker.events import REASONS, Batch, Parser, fields

pytestmark = pytest.mark.usefixtures("either_way")

NOW = 1_764_460_000_000
HOUR = 3_600_000


@dataclass(frozen=True)
class Record:
    offset: int
    value: bytes | None
    key: bytes | None = b"fraud-v3"
    timestamp: int | None = NOW


IN_VALUE = {"key": "key", "time": "time", "weight": "weight"}


def value_of(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else json.dumps(value).encode()


def parse(*values: Any, settings: dict[str, Any] | None = None, **record: Any) -> Batch:
    parser = Parser(EventSettings(**(settings or {})))
    records = [Record(at, value_of(value), **record) for at, value in enumerate(values)]
    batches = list(parser.batches(records))
    assert len(batches) == 1
    return batches[0]


def event(**changes: Any) -> dict[str, Any]:
    whole = {"key": "k", "score": 0.5, "label": 1, "time": NOW, "weight": 1, **changes}
    return {name: value for name, value in whole.items() if value is not ...}


def columns(batch: Batch, key: str = "fraud-v3") -> tuple[Any, ...]:
    events = batch.keys[key]
    return events.scores, events.labels, events.times, events.weights


def code(batch: Batch) -> str:
    (rejection,) = batch.rejections
    assert not batch.keys
    assert batch.counts == {"records": 1, "rejected": 1, f"rejected.{rejection.code}": 1}
    assert rejection.indexes == ""
    assert 0 < len(rejection.sentence.encode()) <= 900
    return rejection.code


def test_plain_event_takes_key_and_time_from_its_record() -> None:
    batch = parse({"score": 0.83, "label": 1})
    assert columns(batch) == ([0.83], [1], [NOW], None)
    assert batch.counts == {"records": 1, "events": 1}
    assert (batch.offset, batch.index, batch.watermark) == (1, 0, NOW)


def test_fields_stand_where_the_paths_say() -> None:
    settings = {"key": "key", "score": 'm."p.fraud"', "label": "y.is", "time": "t", "weight": "w"}
    value = {"key": "k", "m": {"p.fraud": 0.25}, "y": {"is": 0}, "t": NOW + 5, "w": 2}
    batch = parse(value, settings=settings)
    assert columns(batch, "k") == ([0.25], [0], [NOW + 5], [2.0])


@pytest.mark.parametrize("score", [0, 1, -3, 2**63, 2**64 - 1, 10**300, 1e308, -0.0, 5e-324])
def test_any_finite_number_is_a_score(score: float) -> None:
    assert columns(parse({"score": score, "label": 0}))[0] == [float(score)]
    assert isinstance(columns(parse({"score": score, "label": 0}))[0][0], float)


@pytest.mark.parametrize(("label", "known"), [(0, 0), (1, 1), (1.0, 1), (0.0, 0), (True, 1)])
def test_a_label_is_the_class_it_means(label: Any, known: int) -> None:
    labels = columns(parse({"score": 0.5, "label": label}))[1]
    assert labels == [known]
    assert type(labels[0]) is int


def test_labels_map_names_classes_by_text() -> None:
    settings = {"labels": {"fraud": 1, "ok": 0}}
    values = [{"score": 0.5, "label": label} for label in ("fraud", "ok", 1, 0)]
    assert columns(parse(*values, settings=settings))[1] == [1, 0, 1, 0]
    assert code(parse({"score": 0.5, "label": "Fraud"}, settings=settings)) == "label_unknown"


def test_labels_map_with_numbers_leaves_no_other_number_a_class() -> None:
    settings = {"labels": {"1": 0, "2": 1}}
    values = [{"score": 0.5, "label": label} for label in (1, 2, "2", 2.0)]
    assert columns(parse(*values, settings=settings))[1] == [0, 1, 1, 1]
    for label in (0, 3, False, True):
        assert code(parse({"score": 0.5, "label": label}, settings=settings)) == "label_unknown"


@pytest.mark.parametrize(
    "value",
    [{"score": 0.5}, {"score": 0.5, "label": None}, {"label": None, "score": "bad"}, {}],
)
def test_unlabelled_is_skipped_and_counted(value: Any) -> None:
    batch = parse(value)
    assert batch.counts == {"records": 1, "unlabelled": 1}
    assert not batch.keys
    assert not batch.rejections
    assert batch.watermark == -1


@pytest.mark.parametrize("weight", [0, 0.0, -0.0])
def test_weight_0_is_skipped_and_counted(weight: float) -> None:
    batch = parse(event(weight=weight), settings=IN_VALUE)
    assert batch.counts == {"records": 1, "zero_weight": 1}
    assert not batch.keys
    assert batch.watermark == -1


def test_tombstone_is_skipped_and_counted() -> None:
    batch = parse(None)
    assert batch.counts == {"records": 1, "tombstones": 1}
    assert (batch.keys, batch.rejections, batch.offset) == ({}, [], 1)


def test_heartbeat_moves_the_watermark_and_nothing_else() -> None:
    beat = {"heartbeat": True, "time": NOW + 7}
    for settings in (None, IN_VALUE, {"time": "meta.ts"}):
        batch = parse(beat, settings=settings)
        assert batch.counts == {"records": 1, "heartbeats": 1}
        assert (batch.keys, batch.rejections, batch.watermark) == ({}, [], NOW + 7)
    assert parse({**event(), **beat}).counts == {"records": 1, "heartbeats": 1}


def test_heartbeat_time_follows_the_configured_path_and_unit() -> None:
    beat = {"heartbeat": True, "ts": 1_764_460_001}
    assert parse(beat, settings={"time": "ts", "time_unit": "s"}).watermark == NOW + 1000
    assert parse({"heartbeat": True}).watermark == NOW
    assert code(parse({"heartbeat": True}, settings=IN_VALUE)) == "time_missing"
    assert code(parse({"heartbeat": True, "time": NOW + 2 * HOUR})) == "time_ahead"


@pytest.mark.parametrize("mark", [False, 1, "true", None])
def test_only_true_makes_a_heartbeat(mark: Any) -> None:
    assert parse({"heartbeat": mark, "score": 0.5, "label": 1}).counts["events"] == 1


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        ("0.5", "score_not_number"),
        (True, "score_not_number"),
        (None, "score_not_number"),
        ({}, "score_not_number"),
        (..., "score_missing"),
        (float("nan"), "score_not_finite"),
        (float("inf"), "score_not_finite"),
        (float("-inf"), "score_not_finite"),
        (10**400, "score_not_finite"),
    ],
)
def test_bad_score_is_rejected(score: Any, expected: str) -> None:
    assert code(parse(event(score=score))) == expected


@pytest.mark.parametrize("text", [b"1e999", b"-1e999", b"1" * 5000])
def test_number_beyond_a_double_is_rejected_as_a_score(text: bytes) -> None:
    batch = parse(b'{"score": ' + text + b', "label": 1}')
    assert code(batch) == "score_not_finite"


@pytest.mark.parametrize("text", [b"1e999", b"1" * 5000, rb'"\ud800"', b'[{"a":[]}]'])
def test_what_stands_in_other_fields_does_no_harm(text: bytes) -> None:
    batch = parse(b'{"score": 0.5, "label": 1, "other": ' + text + b"}")
    assert columns(batch) == ([0.5], [1], [NOW], None)


@pytest.mark.parametrize("text", [b"NaN", b"Infinity", b"-Infinity", b"[NaN]"])
def test_nan_in_another_field_is_no_json(text: bytes) -> None:
    assert code(parse(b'{"score": 0.5, "label": 1, "other": ' + text + b"}")) == "not_json"


@pytest.mark.parametrize(
    "label", [2, -1, 0.5, "fraud", "1", float("nan"), [], {}, "", 10**400, 1e308]
)
def test_label_outside_its_classes_is_rejected(label: Any) -> None:
    expected = "unequal_arrays" if label == [] else "label_unknown"
    assert code(parse({"score": 0.5, "label": label})) == expected


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        (-1, "weight_negative"),
        (-1e-300, "weight_negative"),
        (1e200, "weight_out_of_range"),
        (5e-324, "weight_out_of_range"),
        (float("nan"), "weight_not_finite"),
        (float("inf"), "weight_not_finite"),
        ("1", "weight_not_number"),
        (None, "weight_not_number"),
        (True, "weight_not_number"),
        ([1], "weight_not_number"),
    ],
)
def test_bad_weight_is_rejected(weight: Any, expected: str) -> None:
    assert code(parse(event(weight=weight), settings=IN_VALUE)) == expected


def test_weights_that_pass_are_those_that_the_engine_takes() -> None:
    assert (fields.LIGHTEST, fields.HEAVIEST) == (engine_events.LIGHTEST, engine_events.HEAVIEST)
    for weight in (fields.LIGHTEST, fields.HEAVIEST):
        batch = parse(event(weight=weight), settings=IN_VALUE)
        assert columns(batch, "k")[3] == [weight]


def test_absent_weight_is_1_and_ones_make_no_column() -> None:
    batch = parse(event(weight=...), event(), settings=IN_VALUE)
    assert columns(batch, "k")[3] is None
    batch = parse(event(), event(weight=2.5), event(), settings=IN_VALUE)
    assert columns(batch, "k")[3] == [1.0, 2.5, 1.0]


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        (..., "time_missing"),
        (None, "time_not_integer"),
        ("2026-01-01", "time_not_integer"),
        (str(NOW), "time_not_integer"),
        (NOW + 0.5, "time_not_integer"),
        (True, "time_not_integer"),
        ([NOW], "time_not_integer"),
        (float("nan"), "time_not_integer"),
        (-1, "time_before_1970"),
        (NOW + HOUR + 1, "time_ahead"),
        (2**64 - 1, "time_ahead"),
        (1e300, "time_ahead"),
    ],
)
def test_bad_time_is_rejected(time: Any, expected: str) -> None:
    assert code(parse(event(time=time), settings=IN_VALUE)) == expected


@pytest.mark.parametrize("time", [0, NOW - 10**12, NOW, NOW + HOUR])
def test_time_may_be_old_and_an_hour_ahead(time: int) -> None:
    batch = parse(event(time=time), settings=IN_VALUE)
    assert columns(batch, "k")[2] == [time]
    assert batch.watermark == time


def test_max_ahead_is_a_setting() -> None:
    settings = {**IN_VALUE, "max_ahead": "2s"}
    assert parse(event(time=NOW + 2000), settings=settings).counts["events"] == 1
    assert code(parse(event(time=NOW + 2001), settings=settings)) == "time_ahead"


@pytest.mark.parametrize(
    ("unit", "time", "ms"),
    [("s", NOW // 1000, NOW), ("us", NOW * 1000 + 1999, NOW + 1), ("ms", float(NOW), NOW)],
)
def test_time_is_converted_to_whole_ms(unit: str, time: float, ms: int) -> None:
    batch = parse(event(time=time), settings={**IN_VALUE, "time_unit": unit})
    assert columns(batch, "k")[2] == [ms]
    assert type(columns(batch, "k")[2][0]) is int


def test_time_unit_does_not_touch_the_records_own_time() -> None:
    assert columns(parse({"score": 0, "label": 1}, settings={"time_unit": "s"}))[2] == [NOW]


def test_record_without_a_timestamp() -> None:
    value = {"score": 0.5, "label": 1}
    assert code(parse(value, timestamp=-1)) == "time_before_1970"
    assert parse(event(), settings=IN_VALUE, timestamp=-1).watermark == NOW
    far = event(time=253_402_300_800_000)
    assert code(parse(far, settings=IN_VALUE, timestamp=-1)) == "time_ahead"


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (None, "key_missing"),
        (b"", "key_empty"),
        (b"k" * 1025, "key_too_long"),
        ("é".encode() * 513, "key_too_long"),
        (b"k" * 1_000_000, "key_too_long"),
        (b"\xff", "key_not_utf8"),
        (b"\xed\xa0\x80", "key_not_utf8"),
    ],
)
def test_bad_record_key_is_rejected(key: bytes | None, expected: str) -> None:
    assert code(parse({"score": 0.5, "label": 1}, key=key)) == expected


@pytest.mark.parametrize("key", ["k", "k" * 1024, "é" * 512, "\0", "😀" * 256])
def test_key_is_text_of_1_to_1024_bytes(key: str) -> None:
    batch = parse({"score": 0.5, "label": 1}, key=key.encode())
    assert list(batch.keys) == [key]
    assert list(parse(event(key=key), settings=IN_VALUE).keys) == [key]


@pytest.mark.parametrize("key", [0, 42, -(2**63), 2**64 - 1])
def test_integer_key_is_its_decimal_text(key: int) -> None:
    assert list(parse(event(key=key), settings=IN_VALUE).keys) == [str(key)]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (..., "key_missing"),
        (None, "key_missing"),
        ("", "key_empty"),
        ("k" * 1025, "key_too_long"),
        ("é" * 513, "key_too_long"),
        (True, "key_type"),
        (1.0, "key_type"),
        (1.5, "key_type"),
        (2**64, "key_type"),
        (-(2**63) - 1, "key_type"),
        (10**400, "key_type"),
        (["k"], "key_type"),
        ({}, "key_type"),
        ("\ud800", "key_not_utf8"),
    ],
)
def test_bad_key_in_the_value_is_rejected(key: Any, expected: str) -> None:
    assert code(parse(event(key=key), settings=IN_VALUE)) == expected


def test_text_and_integer_of_one_spelling_are_one_key() -> None:
    batch = parse(event(key=7), event(key="7"), event(key=7), settings={"key": "key"})
    assert batch.keys["7"].offsets == [0, 1, 2]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"", "not_json"),
        (b" \n", "not_json"),
        (b"score=0.5", "not_json"),
        (b'{"score":0.5,"label":1', "not_json"),
        (b"{'score':0.5}", "not_json"),
        (b'{"score":0.5,"label":1}{}', "not_json"),
        (b'{"score":00.5,"label":1}', "not_json"),
        (b'{"score":NaN,"label":1', "not_json"),
        (b"null", "not_object"),
        (b"1", "not_object"),
        (b"NaN", "not_json"),
        (b'"text"', "not_object"),
        (b'[{"score":0.5,"label":1}]', "not_object"),
        (b'{"score":0.5,"label":1,"x":"\xff"}', "not_utf8"),
        ('{"score":0.5,"label":1}'.encode("utf-16"), "not_utf8"),
        (b'\x00\x00\x00\x00\x07{"score":0.5,"label":1}', "schema_registry"),
        (b"\x00\x00\x00\x00\x07\x02\x80", "schema_registry"),
        (b"[" * 100_000 + b"]" * 100_000, "nested_too_deep"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested_too_deep"),
        (b'{"score":0.5,"label":1,"x":' + b"[" * 100_000, "nested_too_deep"),
        (b'{"score":0.5,"label":1,"x":"' + b"x" * 1_000_000 + b'"}', "value_too_large"),
        (b"\xff" * 1_000_001, "value_too_large"),
    ],
)
def test_unreadable_value_is_rejected_by_name(value: bytes, expected: str) -> None:
    batch = parse(value)
    assert code(batch) == expected
    assert batch.rejections[0].value == value
    assert batch.rejections[0].key == b"fraud-v3"


def test_value_of_exactly_the_limit_is_read() -> None:
    head, tail = b'{"score":0.5,"label":1,"x":"', b'"}'
    value = head + b"x" * (1_000_000 - len(head) - len(tail)) + tail
    assert parse(value).counts["events"] == 1


def test_schema_registry_frame_is_named_with_its_schema_id() -> None:
    (rejection,) = parse(b"\x00\x00\x00\x01\x00\x02").rejections
    assert "Schema Registry" in rejection.sentence
    assert "256" in rejection.sentence


def test_last_of_one_name_counts_and_a_bom_is_stripped() -> None:
    value = b'\xef\xbb\xbf{"score":0.1,"label":"x","score":0.9,"label":1}'
    assert columns(parse(value)) == ([0.9], [1], [NOW], None)
    assert columns(parse(b'{"score":1e999,"label":0,"score":0.9}'))[0] == [0.9]
    assert code(parse(b"\xef\xbb\xbf\xef\xbb\xbf{}")) == "not_json"


def test_numbers_as_text_reads_texts_only_when_asked() -> None:
    value = event(score=" 0.5", weight="2", time=str(NOW), label="1")
    assert code(parse(value, settings=IN_VALUE)) == "score_not_number"
    settings = {**IN_VALUE, "numbers_as_text": True}
    assert code(parse(value, settings=settings)) == "score_not_number"
    value["score"] = "-.5e-1"
    assert columns(parse(value, settings=settings), "k") == ([-0.05], [1], [NOW], [2.0])
    for text in ("nan", "inf", "1_0", "", "0x1", "\uff11"):
        assert code(parse(event(score=text), settings=settings)) == "score_not_number"
    assert code(parse(event(score="1e999"), settings=settings)) == "score_not_finite"
    assert code(parse(event(time="1.5"), settings=settings)) == "time_not_integer"


def test_good_records_around_bad_ones_are_counted_right() -> None:
    good = {"score": 0.5, "label": 1}
    batch = parse(good, b"bad", good, None, {"label": 3, "score": 1}, good, {"score": 1}, good)
    assert batch.keys["fraud-v3"].offsets == [0, 2, 5, 7]
    assert batch.keys["fraud-v3"].indexes == [0, 0, 0, 0]
    assert [(r.offset, r.code) for r in batch.rejections] == [(1, "not_json"), (4, "label_unknown")]
    assert batch.offset == 8
    assert batch.counts == {
        "records": 8,
        "events": 4,
        "tombstones": 1,
        "unlabelled": 1,
        "rejected": 2,
        "rejected.not_json": 1,
        "rejected.label_unknown": 1,
    }


def test_sentences_are_bounded_and_printable_whatever_the_value() -> None:
    name = "longname" * 100
    settings = {"score": name, "labels": {"x" * 900: 1, "y": 0}}
    for value in (
        {name: 1, "label": "\udfff" * 5000},
        {name: "\ud800\n" * 10_000, "label": "y"},
        {name: ["x" * 9000, None], "label": ["y", "\ud800"]},
        {name: [1], "label": "y" * 9000},
    ):
        (rejection,) = parse(value, settings=settings).rejections
        assert len(rejection.sentence.encode()) <= 900
        assert rejection.sentence.isprintable()


@pytest.mark.parametrize(
    ("score", "shown"),
    [(float("nan"), "NaN"), (None, "null"), (True, "true"), ("a\n", '"a\\n"'), ({}, "an object")],
)
def test_sentence_names_the_field_and_the_value(score: Any, shown: str) -> None:
    (rejection,) = parse(
        {"model": {"p": score}, "label": 1}, settings={"score": "model.p"}
    ).rejections
    assert rejection.sentence.startswith("model.p is ")
    assert shown in rejection.sentence


def test_every_reason_is_a_stable_snake_case_code_with_a_sentence() -> None:
    for name, sentence in REASONS.items():
        assert name.replace("_", "").isalnum()
        assert name == name.lower()
        assert len(sentence) > 10


@pytest.mark.parametrize("timestamp", [None, -1])
@pytest.mark.parametrize(
    "value",
    [b'{"score": 0.5, "label": 1}', b'{"score": [0.5], "label": [1]}', b'{"heartbeat": true}'],
)
def test_a_record_without_a_timestamp_is_refused_where_its_time_counts(
    timestamp: int | None, value: bytes
) -> None:
    batch = parse(value, timestamp=timestamp)
    assert [rejection.code for rejection in batch.rejections] == ["time_before_1970"]


@pytest.mark.parametrize("timestamp", [None, -1])
def test_a_record_without_a_timestamp_may_have_its_time_in_the_value(
    timestamp: int | None,
) -> None:
    batch = parse(
        {"score": 0.5, "label": 1, "time": NOW}, settings={"time": "time"}, timestamp=timestamp
    )
    assert batch.keys["fraud-v3"].times == [NOW]
