"""The changelog's format."""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import Columns, CountWindow
from worker import pages
from worker.pages import (
    COMPILED,
    CURSOR_KEY,
    PAGE_EVENTS,
    Cursor,
    MonitorState,
    Page,
    PageKey,
    StateError,
    joined,
    key_prefix,
    pack_cursor,
    pack_page,
    page_key,
    parse_key,
    unpack_cursor,
    unpack_page,
    windows,
    write,
)
from worker.watch import Kept

KEY = page_key(key_prefix("last-100", "fraud-v3"), 7)

names = st.text("abcXYZ019._-", min_size=1, max_size=64)
keys = (
    st.text(min_size=1, max_size=200)
    .filter(lambda s: s.isprintable() or True)
    .map(lambda s: s.encode("utf-8", "ignore").decode() or "x")
)


@st.composite
def columns(draw: st.DrawFn) -> Columns:
    count = draw(st.integers(1, 64))
    exactly = {"min_size": count, "max_size": count}
    scores = draw(st.lists(st.floats(allow_nan=False, allow_infinity=False), **exactly))
    labels = draw(st.lists(st.integers(0, 1), **exactly))
    weights = draw(st.none() | st.lists(st.floats(1e-12, 1e12), **exactly))
    times = draw(st.none() | st.lists(st.integers(-(2**62), 2**62), **exactly))
    return Columns(
        np.array(scores),
        np.array(labels, np.uint8),
        None if weights is None else np.array(weights),
        None if times is None else np.array(times, np.int64),
    )


@given(names, keys, st.integers(0, 2**60))
def test_a_page_key_says_where_the_page_belongs(monitor: str, key: str, page: int) -> None:
    assert parse_key(page_key(key_prefix(monitor, key), page)) == PageKey(monitor, key, page)


def test_the_cursor_has_a_key_of_its_own() -> None:
    assert parse_key(CURSOR_KEY) is None


@pytest.mark.parametrize(
    "raw",
    [b"", b"\x02", b"\x01", b"\x01\x05ab", b"\x01\x01a\x01\x00\xff" + bytes(8), KEY + b"\x00"],
)
def test_a_foreign_key_is_refused(raw: bytes) -> None:
    with pytest.raises(StateError, match="does not write"):
        parse_key(raw)


@given(columns(), st.integers(0, 2**60), st.binary(max_size=255))
def test_a_page_comes_back_as_it_was(events: Columns, first: int, head: bytes) -> None:
    page = unpack_page(KEY, pack_page(KEY, Page(first, events, head)))
    assert (page.first, page.head) == (first, head)
    np.testing.assert_array_equal(page.columns.scores, events.scores)
    np.testing.assert_array_equal(page.columns.labels, events.labels)
    for kept, given_, neutral in (
        (page.columns.weights, events.weights, 1),
        (page.columns.times, events.times, 0),
    ):
        wanted = np.full(len(events.scores), neutral) if given_ is None else given_
        np.testing.assert_array_equal(wanted if kept is None else kept, wanted)


def test_times_close_together_take_a_byte_each() -> None:
    scores, labels = np.zeros(64), np.zeros(64, np.uint8)
    base = 1_764_460_000_000
    close = Columns(scores, labels, None, np.arange(base, base + 64))
    apart = Columns(scores, labels, None, base + 1000 * np.arange(64))
    assert len(pack_page(KEY, Page(0, apart))) - len(pack_page(KEY, Page(0, close))) == 64


@given(columns(), st.data())
def test_a_flipped_bit_is_noticed(events: Columns, data: st.DataObject) -> None:
    value = bytearray(pack_page(KEY, Page(0, events)))
    at = data.draw(st.integers(0, len(value) - 1))
    value[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(StateError):
        unpack_page(KEY, bytes(value))


def sealed(key: bytes, kind: int, body: bytes) -> bytes:
    """A record whose checksum fits, whatever it holds."""
    return struct.pack("<BBI", pages.FORMAT, kind, crc32(body, crc32(key))) + body


@st.composite
def mutated(draw: st.DrawFn, body: bytes) -> bytes:
    """Bytes changed, cut out and put in; at the beginning and the end above all."""
    found = bytearray(body)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, min(20, len(found))) | st.integers(0, len(found)))
        gone = draw(st.integers(0, 1) | st.integers(0, 12))
        found[at : at + gone] = draw(st.binary(max_size=12) | st.sampled_from([b"\0", b"\xff"]))
    return bytes(found)


def unpacked(value: bytes, *, compiled: bool) -> list[Any] | None:
    """What a page holds, as plain values; None where it is refused."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "COMPILED", compiled)
        try:
            page = joined([(KEY, value)])
        except StateError:
            return None
    columns = [None if column is None else column.tobytes() for column in page.columns]
    return [page.first, page.head, *columns]


@settings(max_examples=200)
@given(columns(), st.integers(0, 2**60), st.binary(max_size=255), st.data())
def test_a_page_that_does_not_fit_its_lengths_is_refused(
    events: Columns, first: int, head: bytes, data: st.DataObject
) -> None:
    body = pack_page(KEY, Page(first, events, head))[6:]
    value = sealed(KEY, 1, data.draw(mutated(body)))
    plain = unpacked(value, compiled=False)
    if COMPILED:
        compiled = pages._pages.unpack([(KEY, value)])
        assert (compiled is None) == (plain is None)
        assert unpacked(value, compiled=True) == plain


@pytest.mark.parametrize("width", [0, 3, 5, 16, 255])
def test_a_width_of_times_that_there_is_not_is_refused(width: int) -> None:
    body = struct.pack("<QHBBdBqB", 0, 1, 1, 0, 0.5, 0x80, 7, width) + bytes(width)
    assert unpacked(sealed(KEY, 1, body), compiled=False) is None
    assert not COMPILED or pages._pages.unpack([(KEY, sealed(KEY, 1, body))]) is None


@pytest.mark.parametrize("flags", [0, 1, 2, 3])
def test_a_page_without_events_is_refused(flags: int) -> None:
    body = struct.pack("<QHBB", 0, 0, flags, 0) + struct.pack("<qB", 0, 1) * (flags & 1)
    assert unpacked(sealed(KEY, 1, body), compiled=False) is None
    assert not COMPILED or pages._pages.unpack([(KEY, sealed(KEY, 1, body))]) is None


@settings(max_examples=200)
@given(st.data())
def test_a_cursor_that_lacks_its_fields_is_refused(data: st.DataObject) -> None:
    monitors = {"m": MonitorState("count", 3, 4, 5)}
    body = pack_cursor(Cursor("t", "i", 1, "f", monitors=monitors, inside=("m",)))[6:]
    value = sealed(CURSOR_KEY, 0, data.draw(mutated(body)))
    with suppress(StateError):
        assert isinstance(unpack_cursor(value), Cursor)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"7", b"[]", b"{}", b'{"monitors":7}', b'{"monitors":{"m":7}}', b'{"monitors":{}}'],
)
def test_a_cursor_of_something_else_is_refused(body: bytes) -> None:
    with pytest.raises(StateError, match="does not fit"):
        unpack_cursor(sealed(CURSOR_KEY, 0, body))


def written(
    window: CountWindow, since: int = 0, head: bytes = b"", prefix: bytes = KEY[:-8]
) -> list[tuple[bytes, bytes]]:
    """Return the pages of a window with events from an ordinal on."""
    target: dict[bytes, bytes | None] = {}
    write(target, window, prefix, window.first // PAGE_EVENTS, since, head)
    return [(key, value) for key, value in target.items() if value is not None]


def test_a_page_under_another_key_is_noticed() -> None:
    events = Columns(np.array([0.5]), np.array([1], np.uint8), None, None)
    value = pack_page(KEY, Page(0, events))
    with pytest.raises(StateError, match="checksum"):
        unpack_page(page_key(key_prefix("last-100", "fraud-v3"), 8), value)


@pytest.mark.parametrize("length", range(6))
def test_a_cut_page_is_noticed(length: int) -> None:
    events = Columns(np.array([0.5]), np.array([1], np.uint8), None, None)
    with pytest.raises(StateError):
        unpack_page(KEY, pack_page(KEY, Page(0, events))[:length])


def test_a_later_version_is_refused_by_name() -> None:
    value = b"\x63" + pack_cursor(Cursor("events", "", 1, "f"))[1:]
    with pytest.raises(StateError, match="has format 6300"):
        unpack_cursor(value)


@given(
    st.builds(
        Cursor,
        topic=names,
        topic_id=names,
        offset=st.integers(0, 2**63 - 1),
        fingerprint=names,
        index=st.integers(0, 10**6),
        watermark=st.integers(-1, 2**62),
        gap=st.booleans(),
        monitors=st.dictionaries(
            names,
            st.builds(
                MonitorState,
                kind=names,
                slide=st.integers(1, 10**9),
                events=st.integers(0, 2**62),
                updates=st.integers(0, 2**62),
                end=st.none() | st.integers(0, 2**62),
                pages=st.none() | st.integers(0, 2**62),
                seen=st.none() | st.integers(0, 2**62),
            ),
            max_size=3,
        ),
        counts=st.dictionaries(names, st.integers(0, 2**62), max_size=3),
        inside=st.none() | st.lists(names, max_size=3).map(tuple),
        epoch=st.integers(-1, 2**31 - 1),
    )
)
def test_a_cursor_comes_back_as_it_was(cursor: Cursor) -> None:
    assert unpack_cursor(pack_cursor(cursor)) == cursor


def test_the_format_is_what_it_was() -> None:
    """Golden bytes: a change here is a new format, and asks for a new version."""
    events = Columns(
        np.array([0.25, 0.5]), np.array([1, 0], np.uint8), np.array([1.0, 2.0]), np.array([7, 9])
    )
    key = page_key(key_prefix("m", "k"), 1)
    assert key.hex() == "01016d01006b0000000000000001"
    assert pack_page(key, Page(64, events)).hex() == (
        "010169d6023c"  # version, kind, CRC-32
        "400000000000000002000300"  # first ordinal, events, flags, no head
        "000000000000d03f000000000000e03f"  # scores
        "80"  # labels
        "0700000000000000010002"  # times: base, width, deltas
        "000000000000f03f0000000000000040"  # weights
    )
    cursor = Cursor(
        "events",
        "id",
        9,
        "print",
        index=1,
        watermark=7,
        gap=True,
        monitors={"m": MonitorState("count", 3, pages=2, seen=70)},
        counts={"events": 4},
        inside=("m",),
        epoch=5,
    )
    sealed_cursor = pack_cursor(cursor)
    assert sealed_cursor[:6].hex() == "010074ff9d99"
    assert sealed_cursor[6:] == (
        b'{"counts":{"events":4},"epoch":5,"fingerprint":"print","gap":true,"index":1,"inside":["m"],'
        b'"monitors":{"m":{"kind":"count","slide":3,"events":0,"updates":0,"end":null,'
        b'"pages":2,"seen":70}},"offset":9,'
        b'"topic":"events","topic_id":"id","watermark":7}'
    )


weight = st.sampled_from([1.0, 1.0, 1.0, 2.5])
time = st.sampled_from([0, 0, 3, 300, 70_000, 1_764_460_000_000, -(2**62), 2**62])
event = st.tuples(st.floats(0, 1), st.integers(0, 1), weight, time)


@settings(max_examples=100)
@given(
    size=st.integers(1, 400),
    quiet=st.integers(0, 200),
    events=st.lists(event, max_size=300),
    since=st.integers(0, 600),
    head=st.binary(max_size=255),
)
def test_the_pages_of_a_window_are_those_packed_one_by_one_and_come_back(
    size: int, quiet: int, events: list[tuple[float, int, float, int]], since: int, head: bytes
) -> None:
    window = CountWindow(size)
    window.extend([0.5] * quiet, [1] * quiet)
    if events:
        scores, labels, weights, times = map(list, zip(*events, strict=True))
        window.extend(scores, labels, weights, times)
    prefix = key_prefix("last-100", "fraud-v3")
    packed = written(window, since, head)
    begin = max(since, window.first) // PAGE_EVENTS
    last = -(-window.seen // PAGE_EVENTS)
    expected = []
    for page in range(begin, last):
        first = max(page * PAGE_EVENTS, window.first)
        columns = window.columns(first, min((page + 1) * PAGE_EVENTS, window.seen))
        key = page_key(prefix, page)
        carried = head if page + 1 == last else b""
        expected.append((key, pack_page(key, Page(first, columns, carried))))
    assert packed == expected
    if packed:
        page = joined(packed)
        assert (page.first, page.head) == (max(begin * PAGE_EVENTS, window.first), head)
        for found, wanted in zip(
            page.columns, window.columns(page.first, window.seen), strict=True
        ):
            np.testing.assert_array_equal(found, wanted)


@given(st.integers(1, 200), st.integers(0, 400), st.integers(0, 400), st.integers(0, 7))
def test_pages_that_left_the_window_get_a_tombstone(
    size: int, since: int, more: int, first_page: int
) -> None:
    window = CountWindow(size)
    window.extend([0.5] * (since + more), [1] * (since + more))
    target: dict[bytes, bytes | None] = {}
    write(target, window, KEY[:-8], first_page, since)
    gone = [key for key, value in target.items() if value is None]
    # Of those that were written before, each one whose last event is older than the window's.
    assert gone == [
        page_key(KEY[:-8], page)
        for page in range(first_page, -(-since // PAGE_EVENTS))
        if (page + 1) * PAGE_EVENTS <= window.first
    ]
    assert [pair for pair in target.items() if pair[1] is not None] == written(window, since)


@pytest.mark.parametrize("compiled", {COMPILED, False})
@given(st.integers(1, 200), st.lists(st.integers(1, 200), max_size=8))
def test_what_is_written_tells_how_many_pages_there_are(
    compiled: bool,  # noqa: FBT001 - a parameter of a test
    size: int,
    steps: list[int],
) -> None:
    window = CountWindow(size)
    kept = Kept(window, 0, 0)
    live: dict[bytes, bytes | None] = {}
    count = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "COMPILED", compiled)
        for step in steps:
            window.extend([0.5] * step, [1] * step)
            count += kept.write(live, KEY[:-8])
            live = {key: value for key, value in live.items() if value is not None}
            assert count == len(live) == len(kept.pages)


def test_windows_are_told_apart_and_their_pages_put_in_order() -> None:
    window = CountWindow(200)
    window.extend([0.5] * 200, [1] * 200)
    found = {
        name: written(window, prefix=key_prefix(monitor, key))
        for name, monitor, key in (("a", "m", "k"), ("b", "m", "kk"), ("c", "mk", "k"))
    }
    shuffled = [record for records in zip(*found.values(), strict=True) for record in records[::-1]]
    kept = {CURSOR_KEY: b"", **dict(reversed(shuffled))}
    assert sorted(windows(kept)) == [
        (PageKey("m", "k", 0), found["a"]),
        (PageKey("m", "kk", 0), found["b"]),
        (PageKey("mk", "k", 0), found["c"]),
    ]


@pytest.mark.parametrize("gone", range(1, 3))
def test_a_page_missing_between_others_is_noticed(gone: int) -> None:
    window = CountWindow(1000)
    window.extend([0.5] * 250, [1] * 250)
    records = written(window)
    del records[gone]
    with pytest.raises(StateError, match=f"lacks events .* its pages {gone - 1} and {gone}"):
        joined(records)


def test_a_damaged_page_among_others_is_noticed() -> None:
    window = CountWindow(1000)
    window.extend([0.5] * 250, [1] * 250)
    records = written(window)
    key, value = records[2]
    records[2] = (key, value[:30] + b"\xff" + value[31:])
    with pytest.raises(StateError, match="fails its checksum"):
        joined(records)


def test_a_head_stands_before_the_scores() -> None:
    """Golden bytes, as above; and what was written so is read, by either reader."""
    key = page_key(key_prefix("m", "k"), 1)
    page = Page(64, Columns(np.array([0.25]), np.array([1], np.uint8), None, None), b"\x05head")
    value = bytes.fromhex("0101e417a6bf4000000000000000010000050568656164000000000000d03f80")
    assert pack_page(key, page) == value
    for compiled in {COMPILED, False}:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pages, "COMPILED", compiled)
            found = joined([(key, value)])
        assert (found.first, found.head) == (64, b"\x05head")
        assert [None if c is None else c.tolist() for c in found.columns] == [
            *([0.25], [1]),
            *(None, None),
        ]


def test_a_cursor_that_an_earlier_version_wrote_is_read() -> None:
    """Golden bytes: running jobs have them. What is added to cursors must do without."""
    plain = b'{"counts":{},"fingerprint":"f","gap":false,"index":0,"monitors":{},"offset":7,'
    plain += b'"topic":"events","topic_id":"","watermark":-1}'
    assert unpack_cursor(bytes.fromhex("01005cab627f") + plain) == Cursor("events", "", 7, "f")
    full = b'{"counts":{"events":4},"fingerprint":"f","gap":true,"index":2,"inside":["m"],'
    full += b'"monitors":{"m":{"kind":"count","slide":3,"events":4,"updates":5,"end":null}},'
    full += b'"offset":7,"topic":"events","topic_id":"id","watermark":9}'
    assert unpack_cursor(bytes.fromhex("010085ec2dfc") + full) == Cursor(
        "events",
        "id",
        7,
        "f",
        index=2,
        watermark=9,
        gap=True,
        monitors={"m": MonitorState("count", 3, 4, 5)},
        counts={"events": 4},
        inside=("m",),
    )
    epoch = b'{"counts":{"events":4},"epoch":5,"fingerprint":"print","gap":true,"index":1,'
    epoch += b'"inside":["m"],"monitors":{"m":{"kind":"count","slide":3,"events":0,"updates":0,'
    epoch += b'"end":null}},"offset":9,"topic":"events","topic_id":"id","watermark":7}'
    assert unpack_cursor(bytes.fromhex("0100344477db") + epoch) == Cursor(
        "events",
        "id",
        9,
        "print",
        index=1,
        watermark=7,
        gap=True,
        monitors={"m": MonitorState("count", 3)},
        counts={"events": 4},
        inside=("m",),
        epoch=5,
    )
