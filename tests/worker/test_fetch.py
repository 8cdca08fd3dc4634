"""Responses of a broker are taken apart as aiokafka takes them, into blocks."""

from __future__ import annotations

import gc
import gzip
import struct
import sys
import weakref
from typing import TYPE_CHECKING, Any

import cramjam
import pytest
from aiokafka import codec
from aiokafka.consumer import fetcher
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatch, LegacyRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import calc_crc32c, decode_varint, encode_varint
from aiokafka.structs import TopicPartition
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from worker.events import native

if TYPE_CHECKING:
    from collections.abc import Callable

if not native.COMPILED:
    pytest.skip("the core is not built", allow_module_level=True)

from worker.transport import _batches, codecs
from worker.transport.fetch import BatchError, BlockRecords, PlainBatches, Run, RunRecords, joined

TP = TopicPartition("events", 0)
CONTROL, APPENDED = 0x20, 0x08
CODEC, SNAPPY = 0x07, 2
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
        "epoch": st.integers(-1, 3),
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
    struct.pack_into(">i", raw, 12, kind.get("epoch", 0))
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
    except BatchError:
        return found, "corrupt"
    return found, records.next_fetch_offset


def _stamp(timestamp: int | None) -> int:
    return -1 if timestamp is None else timestamp


def blocks(raw: bytes, first: int = 0, aborted: Any = (), isolation: int = 1) -> BlockRecords:
    rest = (list(aborted), first, None, None, True, isolation)
    return BlockRecords(TP, _batches.Batches(raw), *rest)


def stock(raw: bytes, first: int, aborted: Any, isolation: int) -> RunRecords:
    rest = (list(aborted), first, None, None, True, isolation)
    return RunRecords(TP, PlainBatches(raw), *rest)


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


@given(
    st.lists(kinds, max_size=5),
    st.sampled_from([None, 1, 2, 3, 100]),
    st.sampled_from([fetcher.READ_COMMITTED, fetcher.READ_UNCOMMITTED]),
)
@settings(max_examples=200, deadline=None)
def test_a_position_has_the_leader_epoch_of_the_batch_before_it(
    batches: list[dict[str, Any]], most: int | None, isolation: int
) -> None:
    """Also where that one is a marker, or aborted: else its leader would seem to cut it off."""
    begins: dict[int, int] = {}
    offset, raw = 0, b""
    for kind in batches:
        begins[offset] = kind["epoch"]
        made, offset = batch_of(offset, kind)
        raw += made
    for records in (blocks(raw, 0, [(7, 0)], isolation), stock(raw, 0, [(7, 0)], isolation)):
        assert records.leader_epoch == -1
        while records.take(most):
            before = max(start for start in begins if start < records.next_fetch_offset)
            assert records.leader_epoch == begins[before]
        assert records.next_fetch_offset == offset
        assert records.leader_epoch == (list(begins.values()) or [-1])[-1]


@given(kind=kinds, magic=st.sampled_from([0, 1]))
@settings(max_examples=50, deadline=None)
def test_batches_from_before_there_were_leader_epochs_have_none(
    kind: dict[str, Any], magic: int
) -> None:
    raw, _ = batch_of(0, kind | {"magic": magic})
    for records in (blocks(raw), stock(raw, 0, [], 1)):
        assert records.take(None)
        assert records.leader_epoch == -1


@given(kind=kinds, data=st.data())
@settings(max_examples=400, deadline=None)
def test_damage_that_the_checksum_tells_is_told(kind: dict[str, Any], data: st.DataObject) -> None:
    raw = damaged(kind, data)
    found = told(blocks(bytes(raw), isolation=fetcher.READ_UNCOMMITTED), None)
    # Made anew, a batch may differ: gzip writes down the time.
    assert found == ([], "corrupt") or bytes(raw) == signed(bytearray(raw))


@given(kind=kinds, data=st.data())
@settings(max_examples=400, deadline=None)
def test_damage_under_a_right_checksum_is_told_or_read_as_aiokafka_reads_it(
    kind: dict[str, Any], data: st.DataObject
) -> None:
    """Compressed or not: nothing outside the batch is ever read."""
    raw = signed(damaged(kind, data))
    # aiokafka reads a record's attributes, one byte, as a number of any length.
    assume(all(byte < 128 for byte in attributes_of(raw)))
    with pytest.MonkeyPatch.context() as patch:
        # Each try of all the room there may be takes some time.
        patch.setattr(codecs, "CEILING", 1 << 20)
        found = told(blocks(raw, isolation=fetcher.READ_UNCOMMITTED), None)
    same = told(stock(raw, 0, [], fetcher.READ_UNCOMMITTED), None)
    # Of a batch that is broken within, aiokafka delivers the first records, we none; it also reads
    # headers as text, which we pass over. A block of Snappy that ends before its size says is cut
    # off for us, as it is for Java; aiokafka takes it.
    cut_off = raw[22] & CODEC == SNAPPY and found == ([], "corrupt")
    assert found == same or same[1] == "corrupt" or cut_off
    assert found[1] != "corrupt" or same[1] == "corrupt" or cut_off


def attributes_of(raw: bytes) -> list[int]:
    """The attributes of a batch's records, as far as those can be told apart."""
    found: list[int] = []
    payload, at = raw[61:], 0
    try:
        if raw[22] & CODEC:
            payload = codecs.DECODERS[raw[22] & CODEC](payload)
        while at < len(payload):
            length, start = decode_varint(payload, at)
            found.append(payload[start])
            at = start + max(length, 1)
    except (cramjam.DecompressionError, KeyError, IndexError, ValueError, struct.error):
        pass
    return found


def damaged(kind: dict[str, Any], data: st.DataObject) -> bytearray:
    raw = bytearray(batch_of(0, kind)[0])
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(21, len(raw) - 1))] = data.draw(st.integers(0, 255))
    return raw


ROW = (1, 5, b"k", b"v", [])
PLAIN = {"producer": -1, "flags": 0, "marker": None, "behind": 0, "magic": 2, "codec": 0}


def compressed(codec: int, payload: bytes, start: int = 0) -> bytes:
    """A batch of one record with any bytes for its compressed records, and a right checksum."""
    raw = bytearray(batch_of(start, PLAIN | {"rows": [ROW]})[0][:61] + payload)
    struct.pack_into(">i", raw, 8, len(raw) - 12)
    struct.pack_into(">h", raw, 21, codec)
    return signed(raw)


@pytest.fixture
def bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """aiokafka's decoders with our bounds, for this test."""
    for batch in (DefaultRecordBatch, LegacyRecordBatch):
        module = sys.modules[batch.__module__]
        for decoder in codecs.DECODERS.values():
            if hasattr(module, decoder.__name__):
                monkeypatch.setattr(module, decoder.__name__, getattr(module, decoder.__name__))
    codecs.install()


BOMBS = {
    1: lambda zeros: gzip.compress(zeros, 9),
    2: lambda zeros: bytes(cramjam.snappy.compress_raw(zeros)),
    3: lambda zeros: bytes(cramjam.lz4.compress(zeros)),
    4: lambda zeros: bytes(cramjam.zstd.compress(zeros)),
}


@pytest.mark.parametrize("read", [blocks, lambda raw, first: stock(raw, first, (), 1)])
@pytest.mark.parametrize("codec", [1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize("payload", [b"", b"\0", b"garbage" * 9, b"\xff" * 40])
@pytest.mark.usefixtures("bounded")
def test_records_that_do_not_decompress_are_told_with_their_place(
    read: Callable[[bytes, int], Any], codec: int, payload: bytes
) -> None:
    good = batch_of(7, PLAIN | {"rows": [ROW] * 3})[0]
    records = read(good + compressed(codec, payload, 10), 7)
    # What comes before is delivered, so that the position is where the log cannot be read.
    assert [record.offset for record in records.take(None)] == [7, 8, 9]
    assert records.next_fetch_offset == 10
    for _ in range(2):
        with pytest.raises(
            BatchError, match="offset 10 of the topic events, partition 0, "
        ) as told:
            records.take(None)
        assert "kafka-delete-records" in str(told.value)


@pytest.mark.parametrize("read", [blocks, lambda raw, first: stock(raw, first, (), 1)])
@pytest.mark.parametrize("codec", [1, 2, 3, 4])
@pytest.mark.usefixtures("bounded")
def test_a_batch_that_grows_beyond_all_bounds_is_refused(
    read: Callable[[bytes, int], Any], codec: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codecs, "CEILING", 1 << 20)
    fits = BOMBS[codec](bytes(codecs.CEILING))
    assert codecs.DECODERS[codec](fits) == bytes(codecs.CEILING)
    bomb = compressed(codec, BOMBS[codec](bytes(codecs.CEILING + 1)), 4)
    with pytest.raises(BatchError, match=r"offset 4 of the topic events.*(whole buffer|room)"):
        read(bomb, 4).take(None)


def test_blocks_of_snappy_share_one_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codecs, "CEILING", 1 << 20)
    fits = codec.snappy_encode(bytes(1 << 20))
    assert codecs.snappy_decode(fits) == bytes(1 << 20)
    with pytest.raises(cramjam.DecompressionError, match="room"):
        codecs.snappy_decode(codec.snappy_encode(bytes((1 << 20) + 1)))


@given(st.binary(max_size=3000), st.sampled_from([1, 2, 3, 4]))
def test_what_aiokafka_compresses_is_decompressed(payload: bytes, number: int) -> None:
    names = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
    packed = getattr(codec, f"{names[number]}_encode")(payload)
    assert codecs.DECODERS[number](packed) == payload


@pytest.mark.parametrize("read", [blocks, lambda raw, first: stock(raw, first, (), 1)])
def test_a_batch_with_a_wrong_checksum_is_told_with_its_place(
    read: Callable[[bytes, int], Any],
) -> None:
    raw = bytearray(batch_of(5, PLAIN | {"rows": [ROW] * 2})[0])
    raw[-1] ^= 1
    with pytest.raises(BatchError, match="offset 5 of the topic events, partition 0, "):
        read(bytes(raw), 5).take(None)


def test_the_last_offset_there_can_be_is_refused() -> None:
    """None could come behind it; and nothing is left to be said of where to go on."""
    row = b"\x00\x00" + varint(2**63 - 1) + varint(-1) * 2 + varint(0)
    raw = bytearray(batch_of(0, PLAIN | {"rows": [ROW]})[0][:61] + varint(len(row)) + row)
    struct.pack_into(">i", raw, 8, len(raw) - 12)
    with pytest.raises(BatchError, match="no offset that another may follow"):
        blocks(signed(raw)).take(None)


def varint(number: int) -> bytes:
    made = bytearray()
    encode_varint(number, made.append)
    return bytes(made)


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


@pytest.mark.parametrize("read", [blocks, lambda raw, first: stock(raw, first, (), 1)])
def test_runs_that_follow_each_other_make_one(read: Callable[[bytes, int], Any]) -> None:
    runs = []
    for start in (3, 9):
        raw, end = batch_of(start, PLAIN | {"rows": [ROW] * 4})
        runs += [Run(read(raw, start).take(None), start, end, 50 - end), Run((), end, end + 2, 9)]
    whole = joined(runs)
    assert (whole.start, whole.end, whole.unread) == (3, 15, 9)
    assert [record.offset for record in whole.records] == [3, 4, 5, 6, 9, 10, 11, 12]
    assert joined(runs[1:2]) is runs[1]
    assert len(joined([runs[1], Run((), 9, 9)])) == 0


def test_what_was_fetched_goes_with_its_last_block_and_waits_for_no_collector() -> None:
    row = (1, 5, b"k", b"v", [])
    kind = {"rows": [row] * 5, "codec": 0, "producer": -1, "flags": 0, "behind": 0, "magic": 2}
    records = blocks(batch_of(0, kind)[0])
    there = weakref.ref(records)
    gc.disable()
    try:
        assert len(records.take(None)) == 5
        del records
        assert there() is None
    finally:
        gc.enable()
