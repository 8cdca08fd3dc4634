"""The compiled way in takes exactly what the rules take, and nothing else."""

from __future__ import annotations

import json
from bisect import bisect_left
from fractions import Fraction
from operator import attrgetter
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from streams import CONFIGURATIONS, NOW, Record, outcome, streams

from config import EventSettings
from worker.events import Parser, native, reading
from worker.events.document import _second_reading
from worker.events.reasons import RefusedError

if not native.COMPILED:
    pytest.skip("the core is not built", allow_module_level=True)

from worker.events import _block, _decimal, _json  # type: ignore[attr-defined]

ODD_NUMBERS = [
    *("0", "-0", "-0.0", "0.0", "1", "01", "1.", ".5", "1E5", "1e+5", "1e-5", "+1", "1e", "1e+"),
    *("1e400", "-1e400", "1e-400", "5e-324", "2.2250738585072014e-308", "2.2250738585072011e-308"),
    *("1.7976931348623157e308", "1.7976931348623159e308", "9007199254740993", "0x1", "1_0", "--1"),
    *("18446744073709551615", "18446744073709551616", "-9223372036854775809", "1e22", "1e23"),
    *("0.1", "0.30000000000000004", "123456789012345678901234567890", "0." + "0" * 30 + "1"),
    *("1" * 400, "0." + "1" * 400, "1e00000000000000000001", "1e99999999999", "9" * 19, "9" * 20),
    *("1764460000000", "253402300799999", "253402300800000", "NaN", "Infinity", "-Infinity", "nan"),
    *("1.0", "10", "true", "false", "null", "tru", "nul", '"1"', '"x"', '"\\u0041"', "[]", "{}"),
    *("[1]", "[1,2]", "[0,1]", "[1,]", "[,1]", "[null]", '{"a":[1,{"b":"\\ud83d\\ude00"}]}'),
    *('"\\ud800"', '"\\x"', '"\x01"', '"\u00e9"', '"\\"', '"', "[" * 70 + "]" * 70, "", " "),
]
SHAPES = [
    '{"a":{"key":"k","b":{"score":%s},"time":7},"label":1}',
    '{"a":{"key":"k","b":{"score":1,"x":{}},"time":%s,"\u00e9":[]},"label":1,"b":{"score":"x"}}',
    '{"a":{"key":"k","b":{"score":1},"time":7},"a":%s,"label":1}',
    '{"a":%s,"a":{"key":"k","b":%s,"b":{"score":1,"score":2},"time":7},"label":1}',
    '{"score":%s,"label":1}',
    '{"score":0.5,"label":%s}',
    '{"score":0.5,"label":1,"key":%s}',
    '{"key":"a","score":0.5,"label":1,"time":%s,"weight":2}',
    '{"key":"a","score":0.5,"label":1,"time":1764460000000,"weight":%s}',
    '{"key":"a","score":0.5,"label":1,"time":1764460000000,"weight":2,"other":%s}',
    '{"score":0.5,"score":%s,"label":1}',
    '{"label":%s,"score":0.5,"label":1}',
    '{"score":[0.5,%s],"label":[1,0],"key":"a","time":1764460000000,"weight":[1,3]}',
    '{"score":[0.5,7],"label":[1,%s],"key":"a","time":[1764460000000,1764460000001],"weight":3}',
    '{"score":[0.5,7],"label":[1,0],"key":"a","time":[1764460000000,%s],"weight":[2,%s]}',
    '{"heartbeat":%s,"score":1,"label":1}',
    '{"a":1,"\u00e9\\u00e9\\n":%s,"score":1,"label":1}',
    ' \t\r\n{ "score" : %s , "label" : 1 } \n',
    "%s",
    '{"score":1,"label":1}%s',
]
EVENTS = [
    *(EventSettings(**changes) for changes in CONFIGURATIONS),
    EventSettings(key=("key",), time=("time",), time_unit="s", labels={"ok": 0, "x": 1, "é": 1}),
    EventSettings(score=("é",), label=("score",)),
    EventSettings(time=("heartbeat",)),
    EventSettings(
        key=("a", "key"), score=("a", "b", "score"), label=("label",), time=("a", "time")
    ),
]


def ways(event: EventSettings, records: list[Any], limit: int) -> list[Any]:
    """What comes out below Python, of records and of a block, then by loop, then by rule."""
    compiled, plain, rules = Parser(event), Parser(event), Parser(event)
    plain._scanner = rules._scanner = None
    rules._layout = None
    block = _block.block_of_records(records)
    return [
        outcome(list(parser.batches(found, limit=limit)))
        for parser, found in (
            *((compiled, records), (compiled, block), (plain, records), (rules, records)),
        )
    ]


def assert_alike(event: EventSettings, records: list[Any], limit: int = 4096) -> None:
    found = ways(event, records, limit)
    assert found[:3] == [found[3]] * 3


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("event", EVENTS)
def test_odd_values_in_any_place_are_taken_as_the_rules_have_it(
    event: EventSettings, shape: str
) -> None:
    texts = [shape.replace("%s", value).encode() for value in ODD_NUMBERS]
    for at, text in enumerate(texts):
        assert_alike(event, [Record(at, b"a", text, NOW)])
    assert_alike(event, [Record(at, b"a", text, NOW) for at, text in enumerate(texts)], 7)


@pytest.mark.parametrize("shape", ["%b", '{"score":1,"label":1,"o":"%b"}', '{"key":"%b"}'])
@given(text=st.binary(max_size=8))
@settings(max_examples=150, deadline=None)
def test_bytes_in_any_place_are_taken_as_the_rules_have_it(shape: str, text: bytes) -> None:
    value = shape.encode().replace(b"%b", text)
    records = [Record(1, text, value, NOW), Record(2, text, b'{"score":1,"label":0}', NOW)]
    assert_alike(EVENTS[0], records)
    assert_alike(EVENTS[1], records)


VALID = st.sampled_from(
    [
        b'{"a":{"key":"b","b":{"score":0.5},"time":1764460000000,"a":{"key":1}},"label":1}',
        b'{"id": "event-1", "score": 0.2184907631, "label": 0}',
        b'{"key":"a","score":1,"label":1,"time":1764460000000,"weight":0.5}',
        b'{"score":[0.25,1e-3,3],"label":[0,1,0],"time":[1764460000000,1764460000001,0],"key":"b"}',
        b'{"score":[0.25,3],"label":[0,1],"time":1764460000000,"weight":[2,1],"key":"b","x":[{}]}',
        '{"key":"\u00e9\U0001f600","x":"\\u00e9\\ud83d\\ude00","score":-1.5E+2,"label":1}'.encode(),
    ]
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    text = bytearray(draw(VALID))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(text) - 1))
        kind = draw(st.sampled_from(["change", "drop", "put", "swap", "cut"]))
        byte = draw(
            st.one_of(st.sampled_from(b'{}[]",:0123456789.eE+-\\un tfl\n'), st.integers(0, 255))
        )
        if kind == "change":
            text[at] = byte
        elif kind == "drop":
            del text[at]
        elif kind == "put":
            text.insert(at, byte)
        elif kind == "swap":
            text[at : at + 2] = text[at : at + 2][::-1]
        else:
            del text[at:]
        if not text:
            break
    return bytes(text)


@given(
    st.lists(
        st.tuples(
            mutated() | st.none(),
            st.sampled_from([b"a", b"b", b"a", None, b"", b"\xff", b"x" * 1024, b"x" * 1025]),
            st.sampled_from([NOW, NOW, NOW, 0, -1, None, 2**62]),
            st.integers(1, 3),
        ),
        max_size=8,
    ),
    st.sampled_from(EVENTS),
    st.integers(1, 9),
)
@settings(max_examples=600, deadline=None)
def test_changed_records_are_taken_as_the_rules_have_it(
    rows: list[Any], event: EventSettings, limit: int
) -> None:
    records, offset = [], 0
    for value, key, timestamp, step in rows:
        offset += step
        records.append(Record(offset, key, value, timestamp))
    assert_alike(event, records, limit)


@given(streams(), st.sampled_from(EVENTS), st.integers(1, 9))
@settings(max_examples=300, deadline=None)
def test_any_records_are_taken_as_the_rules_have_it(
    records: list[Record], event: EventSettings, limit: int
) -> None:
    assert_alike(event, records, limit)


@pytest.mark.parametrize(
    ("value", "changes"),
    [
        (b'{"id": "event-1", "score": 0.2184907631, "label": 0}', {}),
        (b'{"score":1e-7,"label":1,"user":"J\\u00fcrgen","tags":["a",{"b":null}]}', {}),
        ('{"key":"é","score":0.12345678901234567,"label":1}'.encode(), {"key": "key"}),
        (b'{"score":1,"label":0,"time":1764460000,"w":2}', {"time": "time", "time_unit": "s"}),
        (b'{"score":1,"label":"fraud"}', {"labels": {"fraud": 1, "ok": 0}}),
        (
            b'{"a":{"x":[{}],"b":{"s":1}},"label":1,"m":{"t":5}}',
            {"score": "a.b.s", "time": "m.t"},
        ),
        (b'{"score":1,"label":null}', {}),
        (b'{"score":1}', {}),
        (
            b'{"score":[1,2,3],"label":[0,1,1],"w":[1,2,3],"t":[1,2,3]}',
            {"time": "t", "weight": "w"},
        ),
        (b'{"score":[1,2,3],"label":[0,1,1],"w":2,"t":7}', {"time": "t", "weight": "w"}),
    ],
)
def test_common_records_are_read_below_python(
    value: bytes, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "read", None)
    parser = Parser(EventSettings(**changes))
    records = [Record(at, b"k", value, NOW) for at in range(5)]
    batches = list(parser.batches(_block.block_of_records(records), limit=2))
    assert sum(batch.counts["records"] for batch in batches) == 5


def test_many_keys_are_told_apart() -> None:
    keys = [f"{'x' * (at % 40)}-{at}" for at in range(20_000)]
    lines = "\n".join(f'{{"score":{at},"label":1,"key":"{key}"}}' for at, key in enumerate(keys))
    block = _block.block_of_lines(lines.encode(), 5, None, NOW)
    (batch,) = Parser(EventSettings(key=("key",))).batches(block, limit=50_000)
    assert list(batch.keys) == keys
    assert [one.scores[0] for one in batch.keys.values()] == list(range(20_000))
    assert [one.offsets[0] for one in batch.keys.values()] == list(range(5, 20_005))


def test_columns_are_sequences_of_numbers_and_memory() -> None:
    np = pytest.importorskip("numpy")
    values = [b'{"score":[1,2],"label":[0,1],"weight":[1,2]}', b'{"score":-0.5,"label":1}']
    records = [Record(at, b"k", value, NOW) for at, value in enumerate(values)]
    (batch,) = Parser(EventSettings(weight=("weight",))).batches(records)
    events = batch.keys["k"]
    assert len(events) == 3
    for column, kind, expected in (
        (events.scores, np.float64, [1.0, 2.0, -0.5]),
        (events.labels, np.uint8, [0, 1, 1]),
        (events.times, np.int64, [NOW] * 3),
        (events.weights, np.float64, [1.0, 2.0, 1.0]),
        (events.offsets, np.int64, [0, 0, 1]),
        (events.indexes, np.int64, [0, 1, 0]),
    ):
        assert column == expected
        assert [column[at] for at in range(-1, 2)] == [expected[-1], *expected[:2]]
        assert column[1:] == expected[1:]
        assert [type(one) for one in column] == [type(one) for one in expected]
        array = np.asarray(column)
        assert array.dtype == kind
        assert array.tolist() == expected
        assert not array.flags.writeable
        with pytest.raises(IndexError):
            column[3]
    del batch, events
    assert array.tolist() == expected


def test_a_block_is_a_sequence_of_records() -> None:
    block = _block.block_of_lines(b'{"a":1}\n\n{}', 7, b"k", 5)
    assert [tuple(record) for record in block] == [
        (7, 5, b"k", b'{"a":1}'),
        (8, 5, b"k", b""),
        (9, 5, b"k", b"{}"),
    ]
    assert len(block) == 3
    assert [record.offset for record in block[1:]] == [8, 9]
    assert block[1:][-1].offset == 9
    assert len(block[2:1]) == 0
    assert bisect_left(block, 8, key=attrgetter("offset")) == 1
    assert [r.offset for r in _block.block_of_blocks([block[1:], block[:0], block[:2]])] == [
        8,
        9,
        7,
        8,
    ]
    with pytest.raises(IndexError):
        block[3]
    with pytest.raises(ValueError, match="no step"):
        block[::2]
    with pytest.raises(TypeError):
        _block.Block()


@given(st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.floats(0, 1)))
@settings(max_examples=1000)
@example(5e-324)
@example(2.2250738585072014e-308)
@example(1.7976931348623157e308)
def test_doubles_come_back_as_they_were_written(number: float) -> None:
    for text in (repr(abs(number)), f"{abs(number):.17e}", f"{abs(number):.25e}"):
        assert_nearest(text)


@given(st.integers(0, 10**30), st.integers(-340, 320))
@settings(max_examples=2000)
@example(9007199254740993, 0)
@example(9007199254740995, -1)
@example(2**64 - 1, 0)
@example(10**19 - 1, 280)
@example(1, -300)
def test_digits_are_rounded_to_the_nearest_double(digits: int, exponent: int) -> None:
    assert_nearest(f"{digits}e{exponent}")


@given(st.floats(1e-290, 1e290), st.integers(-2, 2))
@settings(max_examples=2000)
def test_what_lies_between_two_doubles_goes_to_the_even_one(number: float, nudge: int) -> None:
    mantissa, exponent = number.hex().split("p")
    digits = int(mantissa.replace(".", "").removeprefix("0x"), 16)
    middle = Fraction(2 * digits + 1) * Fraction(2) ** (int(exponent) - 53)
    scale = 0
    while middle >= 10**19:
        middle, scale = middle / 10, scale + 1
    while middle < 10**18:
        middle, scale = middle * 10, scale - 1
    assert_nearest(f"{int(middle) + nudge}e{scale}")


def assert_nearest(text: str) -> None:
    digits, _, power = text.partition("e")
    whole, _, fraction = digits.partition(".")
    digits = (whole + fraction).lstrip("0")
    exponent = int(power or 0) - len(fraction)
    exponent += max(len(digits) - 19, 0)
    found = _decimal._nearest(int(digits[:19] or 0), exponent, bool(digits[19:].strip("0")))
    assert found is None or found.hex() == float(text).hex()
    if 1e-280 < float(text) < 1e280 and len(digits) <= 19:
        assert found is not None


@given(st.one_of(st.binary(max_size=6), st.text(max_size=4).map(str.encode)))
@settings(max_examples=1000)
def test_utf8_is_what_python_takes_for_it(text: bytes) -> None:
    try:
        text.decode()
        expected = True
    except UnicodeDecodeError:
        expected = False
    assert _json._is_utf8(text) is expected


def _is_json(text: bytes) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        try:
            return _second_reading(text, error)[1] == 0
        except RefusedError:
            return False
    return True


@given(st.one_of(mutated(), st.sampled_from([t.encode() for t in ODD_NUMBERS]), st.binary()))
@settings(max_examples=1000)
def test_nothing_passes_for_json_that_is_none(text: bytes) -> None:
    if _json._anything(text):
        assert _is_json(text)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.floats(-1e200, 1e200)
    | st.integers(-(10**15), 10**15)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(value=json_values, ascii_only=st.booleans(), indent=st.sampled_from([None, 1, "\t"]))
@settings(max_examples=300)
def test_json_passes_for_json(value: Any, *, ascii_only: bool, indent: Any) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert _json._anything(text.encode("utf-8", "surrogatepass")) == _is_json(
        text.encode("utf-8", "surrogatepass")
    )
