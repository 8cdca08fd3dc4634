"""Responses of a broker are taken apart as aiokafka takes them, into blocks."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from aiokafka.consumer import fetcher
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import calc_crc32c
from aiokafka.structs import TopicPartition
from hypothesis import given, settings
from hypothesis import strategies as st

from worker.events import native

if not native.COMPILED:
    pytest.skip("the core is not built", allow_module_level=True)

from worker.transport import _batches
from worker.transport.fetch import BlockRecords, RunRecords

TP = TopicPartition("events", 0)
CONTROL, APPENDED = 0x20, 0x08
ABORT, COMMIT = b"\x00\x00\x00\x00", b"\x00\x00\x00\x01"

pieces = st.one_of(st.none(), st.binary(max_size=5), st.just(b"x" * 300))
rows = st.lists(
    st.tuples(
        st.integers(1, 3),  # steps of offsets: compaction leaves gaps
        st.integers(-1, 2**41),
        pieces,
        pieces,
        st.lists(st.tuples(st.text(max_size=3), pieces), max_size=2),
    ),
    min_size=1,
    max_size=5,
)
kinds = st.fixed_dictionaries(
    {
        "rows": rows,
        "codec": st.sampled_from([0, 0, 1, 2, 3, 4]),
        "producer": st.sampled_from([-1, 7, 8]),
        "flags": st.sampled_from([0, 0, APPENDED]),
        "marker": st.sampled_from([None, None, ABORT, COMMIT]),
        "behind": st.integers(0, 2),  # offsets that compaction took from the end
        "magic": st.just(2),
    }
)


def batch_of(start: int, kind: dict[str, Any]) -> tuple[bytes, int]:
    """A batch as a broker sends it, and the offset behind it."""
    if kind["magic"] < 2:
        legacy = LegacyRecordBatchBuilder(kind["magic"], kind["codec"] % 3, 1 << 20)
        at = last = start
        for step, timestamp, key, value, _ in kind["rows"]:
            legacy.append(at, max(timestamp, 0), key, value)
            last, at = at, at + step
        made = bytearray(legacy.build())
        if kind["codec"] % 3:
            # What wraps compressed records has the offset of the last of them, from the broker.
            struct.pack_into(">q", made, 0, last)
        return bytes(made), at
    transactional = kind["producer"] >= 0
    marker = kind["marker"] if transactional else None
    builder = DefaultRecordBatchBuilder(
        2, 0 if marker else kind["codec"], transactional, kind["producer"], 0, 0, 1 << 20
    )
    at = last = 0
    if marker:
        builder.append(0, 5, marker, b"\x00" * 6, [])
        at = 1
    else:
        for step, timestamp, key, value, headers in kind["rows"]:
            assert builder.append(at, timestamp, key, value, headers)
            last, at = at, at + step
    raw = bytearray(builder.build())
    behind = 0 if marker else kind["behind"]
    struct.pack_into(">q", raw, 0, start)
    attributes = struct.unpack_from(">h", raw, 21)[0] | kind["flags"] | (CONTROL if marker else 0)
    struct.pack_into(">h", raw, 21, attributes)
    struct.pack_into(">i", raw, 23, last + behind)
    return signed(raw), start + last + behind + 1


def signed(raw: bytearray) -> bytes:
    struct.pack_into(">I", raw, 17, calc_crc32c(bytes(raw[21:])))
    return bytes(raw)


def told(records: Any, most: int | None) -> tuple[list[Any], Any]:
    """What is delivered, piece by piece with the position behind it; and how it ended."""
    found: list[Any] = []
    try:
        while some := records.take(most):
            found += [(r.offset, _stamp(r.timestamp), r.key, r.value) for r in some]
            assert most is None or len(some) <= most
    except CorruptRecordException:
        return found, "corrupt"
    return found, records.next_fetch_offset


def _stamp(timestamp: int | None) -> int:
    return -1 if timestamp is None else timestamp


def blocks(raw: bytes, first: int = 0, aborted: Any = (), isolation: int = 1) -> BlockRecords:
    rest = (list(aborted), first, None, None, True, isolation)
    return BlockRecords(TP, _batches.Batches(raw), *rest)


def stock(raw: bytes, first: int, aborted: Any, isolation: int) -> RunRecords:
    rest = (list(aborted), first, None, None, True, isolation)
    return RunRecords(TP, MemoryRecords(raw), *rest)


@given(
    st.lists(kinds, max_size=5),
    st.sampled_from([2, 2, 2, 1, 0]),
    st.lists(st.tuples(st.sampled_from([7, 8]), st.integers(0, 30)), max_size=3),
    st.integers(0, 8),
    st.sampled_from([None, 1, 2, 3, 100]),
    st.integers(0, 40),
    st.sampled_from([fetcher.READ_COMMITTED, fetcher.READ_UNCOMMITTED]),
)
@settings(max_examples=400, deadline=None)
def test_responses_are_taken_apart_as_aiokafka_does(
    batches: list[dict[str, Any]],
    magic: int,
    aborted: list[tuple[int, int]],
    first: int,
    most: int | None,
    missing: int,
    isolation: int,
) -> None:
    offset, raw = first, b""
    for kind in batches:
        made, offset = batch_of(offset, kind | {"magic": magic})
        raw += made
    # A response ends where its room ends, and may begin before the offset asked for.
    raw = raw[: len(raw) - missing] if missing < 20 else raw
    asked = (raw, first + missing % 3, aborted, isolation)
    assert told(blocks(*asked), most) == told(stock(*asked), most)
    assert _batches.Batches(raw).has_next() == MemoryRecords(raw).has_next()
    assert _batches.Batches(raw).size_in_bytes() == len(raw)


@given(kind=kinds, data=st.data(), sign=st.booleans())
@settings(max_examples=400, deadline=None)
def test_damage_is_told_or_harmless(
    kind: dict[str, Any], data: st.DataObject, *, sign: bool
) -> None:
    """With a right checksum over wrong bytes too: nothing outside the batch is ever read."""
    kind |= {"magic": 2, "codec": 0}
    raw = bytearray(batch_of(0, kind)[0])
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(21, len(raw) - 1))] = data.draw(st.integers(0, 255))
    raw[22] &= ~7
    signed_or_not = signed(raw) if sign else bytes(raw)
    found = told(blocks(signed_or_not, isolation=fetcher.READ_UNCOMMITTED), None)
    assert sign or found == ([], "corrupt") or bytes(raw) == batch_of(0, kind)[0]


@given(st.binary(max_size=80))
def test_bytes_of_no_kind_never_crash(raw: bytes) -> None:
    told(blocks(raw), 3)


def test_blocks_of_many_batches_are_delivered_in_pieces_of_the_size_asked_for() -> None:
    row = (1, 5, b"k", b"v", [])
    kind = {"rows": [row] * 5, "codec": 3, "producer": -1, "flags": 0, "behind": 0, "magic": 2}
    raw, offset = b"", 0
    for _ in range(10):
        made, offset = batch_of(offset, kind)
        raw += made
    records = blocks(raw)
    pieces = [records.take(7) for _ in range(9)]
    assert [len(piece) for piece in pieces] == [7] * 7 + [1, 0]
    assert [r.offset for piece in pieces for r in piece] == list(range(50))
    assert next(blocks(raw, 3)).offset == 3
