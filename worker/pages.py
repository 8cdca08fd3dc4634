"""The changelog's format: what its keys and values are, byte by byte.

A task's state is a handful of record kinds in the changelog partition of the task's number:

- one **cursor**: how far the input is taken in, and what the numbers in the pages mean;
- per monitor and key, **pages**: the events of the window in order, ``PAGE_EVENTS`` to a page,
  page ``i`` holding those with ordinals in ``[i * PAGE_EVENTS, (i + 1) * PAGE_EVENTS)``.

The newest page of a key also carries its head: the next ordinal is that of its last event plus
one, and ``head`` has room for what other kinds of window must know. So a key that takes events
in costs one record per transaction, not two. A page that left its window gets a tombstone.

Layout (little-endian; ``|`` joins):

- key of the cursor: ``00``
- key of a page: ``01 | u8 length, monitor | u16 length, key | u64 page number, big-endian``
- value: ``u8 version | u8 kind | u32 CRC-32 of the record's key and the body | body``
- body of a page: ``u64 first ordinal | u16 events | u8 flags | u8 length, head | f64 scores
  | labels, one bit each | [i64 base, u8 width, times - base] | [f64 weights]``
- body of the cursor: a JSON object.
"""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zlib import crc32

import numpy as np
import orjson

from config.errors import DecisionError
from engine import Columns
from worker import core

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine import CountWindow

COMPILED: Final = core.COMPILED and sys.byteorder == "little"
if COMPILED:
    from worker import _pages

PAGE_EVENTS: Final = 64
"""Events to a page: a transaction rewrites half a page per key on average, so small pages keep
the write amplification of many quiet keys low; larger ones would only spare record headers."""

FORMAT: Final = 1

CURSOR_KEY: Final = b"\x00"
_PAGE: Final = b"\x01"
_ENVELOPE: Final = struct.Struct("<BBI")
_HEAD: Final = struct.Struct("<QHBB")
_TIMES: Final = struct.Struct("<qB")
_KIND_CURSOR: Final = 0
_KIND_PAGE: Final = 1
_HAS_TIMES: Final = 1
_HAS_WEIGHTS: Final = 2
_WIDTHS: Final = (
    (1 << 8, np.dtype("<u1")),
    (1 << 16, np.dtype("<u2")),
    (1 << 32, np.dtype("<u4")),
    (1 << 64, np.dtype("<u8")),
)
_DTYPES: Final = {dtype.itemsize: dtype for _, dtype in _WIDTHS}


class StateError(DecisionError):
    """A record of the changelog is not what this version wrote."""


class PageKey(NamedTuple):
    """Where a page belongs: monitor, metric key, number of the page among the key's pages."""

    monitor: str
    key: str
    page: int


class Page(NamedTuple):
    """Some events of one window in order; ``first`` is the ordinal of the first of them."""

    first: int
    columns: Columns
    head: bytes = b""


@dataclass(frozen=True, slots=True)
class MonitorState:
    """What a monitor's pages were written under, and what it has published so far.

    ``slide`` is in events, ``end`` the last published window end in ms (time windows).

    ``pages`` tells how many pages the changelog holds of the monitor, ``seen`` how many events
    its keys have taken in, of those that are there. So a restored state is known to be whole.
    None in what was written before there were such numbers.
    """

    kind: str
    slide: int
    events: int = 0
    updates: int = 0
    end: int | None = None
    pages: int | None = None
    seen: int | None = None


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a task has come: everything before ``offset`` is in its state, once.

    Attributes
    ----------
    topic, topic_id
        The input topic and its id (of the broker that made it), "" where a broker has none.
    offset
        Next offset to take in.
    index
        Elements of the record at ``offset`` that are in the state already.
    watermark
        Largest event time seen, ms; -1 before the first.
    fingerprint
        Of all ``[event]`` settings: pages of other settings mean something else.
    inside
        Names of the monitors whose windows have the event at ``offset`` and ``index`` inside
        already: it makes more keys leave than one transaction should hold. None where no event
        is taken in half-way.
    epoch
        Leader epoch of the last batch that was read up to here, or of a later one; -1 where none
        was, or the broker tells none.
    gap
        Whether the windows once restarted empty behind a gap in the log, on demand.
    monitors, counts
        Per monitor what it did; per kind how many records and events came by.
    """

    topic: str
    topic_id: str
    offset: int
    fingerprint: str
    index: int = 0
    watermark: int = -1
    gap: bool = False
    monitors: dict[str, MonitorState] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    inside: tuple[str, ...] | None = None
    epoch: int = -1

    @property
    def taken(self) -> int:
        """The offset behind the last record of which the state has something."""
        half_way = self.index > 0 or self.inside is not None
        return self.offset + 1 if half_way else self.offset

    @property
    def place(self) -> tuple[int, int, tuple[str, ...] | None]:
        """How far the task has come, in full."""
        return self.offset, self.index, self.inside


@cache
def _monitor_prefix(monitor: str) -> bytes:
    name = monitor.encode()
    return b"%b%c%b" % (_PAGE, len(name), name)


def key_prefix(monitor: str, key: str) -> bytes:
    """Return what the changelog keys of all pages of a window begin with; O(length)."""
    text = key.encode()
    return _monitor_prefix(monitor) + len(text).to_bytes(2, "little") + text


def page_key(prefix: bytes, page: int) -> bytes:
    """Return the changelog key of a page, from the window's `key_prefix`."""
    return prefix + page.to_bytes(8, "big")


def parse_key(raw: bytes) -> PageKey | None:
    """Return where a record belongs; None for the cursor.

    Raises
    ------
    StateError
        When the key is none that this version writes.
    """
    if raw == CURSOR_KEY:
        return None
    found = _split(raw)
    if found is None:
        raise StateError(
            f"the changelog holds a record with the key {raw[:80]!r}, which this version of "
            "rocstream does not write: run the version that wrote it, or take a new kafka.group"
        )
    return found


def _split(raw: bytes) -> PageKey | None:
    if len(raw) < 4 or raw[:1] != _PAGE:  # noqa: PLR2004 - kind and the two lengths
        return None
    start = 2 + raw[1]
    stop = start + 2 + int.from_bytes(raw[start : start + 2], "little")
    if len(raw) != stop + 8:
        return None
    try:
        monitor, key = raw[2:start].decode(), raw[start + 2 : stop].decode()
    except UnicodeDecodeError:
        return None
    return PageKey(monitor, key, int.from_bytes(raw[stop:], "big"))


def pack_page(key: bytes, page: Page) -> bytes:
    """Return the value of a page under its changelog key; O(events)."""
    scores, labels, weights, times = page.columns
    count = len(scores)
    # Columns that say nothing are left out, so that the bytes follow from the events alone.
    if weights is not None and (weights == 1).all():
        weights = None
    if times is not None and not times.any():
        times = None
    flags = (_HAS_TIMES if times is not None else 0) | (_HAS_WEIGHTS if weights is not None else 0)
    parts = [
        _HEAD.pack(page.first, count, flags, len(page.head)),
        page.head,
        scores.astype("<f8", copy=False).tobytes(),
        np.packbits(labels).tobytes(),
    ]
    if times is not None:
        base = int(times.min())
        spread = int(times.max()) - base
        dtype = next(dtype for bound, dtype in _WIDTHS if spread < bound)
        parts += (_TIMES.pack(base, dtype.itemsize), (times - base).astype(dtype).tobytes())
    if weights is not None:
        parts.append(weights.astype("<f8", copy=False).tobytes())
    return _seal(key, _KIND_PAGE, b"".join(parts))


def unpack_page(key: bytes, value: bytes) -> Page:
    """Return the page in a changelog record.

    Raises
    ------
    StateError
        When version, checksum or lengths do not fit.
    """
    body = _unseal(key, _KIND_PAGE, value)
    width = _width(body)
    if width is None:
        raise _unfit(key)
    first, count, flags, head_size = _HEAD.unpack_from(body)
    at = _HEAD.size
    head = body[at : at + head_size]
    at += head_size
    scores = np.frombuffer(body, "<f8", count, at).astype(np.float64)
    at += 8 * count
    packed = -(-count // 8)
    labels = np.unpackbits(np.frombuffer(body, np.uint8, packed, at), count=count)
    at += packed
    times = weights = None
    if flags & _HAS_TIMES:
        base, _ = _TIMES.unpack_from(body, at)
        at += _TIMES.size
        times = np.frombuffer(body, _DTYPES[width], count, at).astype(np.int64) + base
        at += width * count
    if flags & _HAS_WEIGHTS:
        weights = np.frombuffer(body, "<f8", count, at).astype(np.float64)
    return Page(first, Columns(scores, labels, weights, times), head)


def _width(body: bytes) -> int | None:
    """Return the bytes that a page has for each time, 0 without any; None for what is no page."""
    if len(body) < _HEAD.size:
        return None
    _, count, flags, head_size = _HEAD.unpack_from(body)
    size = _HEAD.size + head_size + 8 * count + -(-count // 8)
    width = 0
    if flags & _HAS_TIMES:
        width = body[size + 8] if len(body) >= size + _TIMES.size else 0
        if width not in _DTYPES:
            return None
        size += _TIMES.size + width * count
    if flags & _HAS_WEIGHTS:
        size += 8 * count
    return width if count and size == len(body) else None


def write(
    target: dict[bytes, bytes | None],
    window: CountWindow,
    prefix: bytes,
    first_page: int = 0,
    since: int = 0,
    head: bytes = b"",
) -> int:
    """Write what the changelog lacks of a window; O(events of the pages that are written).

    Parameters
    ----------
    target
        Gets the values of pages with new events, and None for pages that left the window.
    window
        Whose events.
    prefix
        The window's `key_prefix`.
    first_page
        The oldest page that the changelog holds.
    since
        The first ordinal that may not have been written.
    head
        What the newest page carries besides, at most 255 bytes.

    Returns
    -------
    int
        How many pages the changelog then holds more than before.
    """
    if COMPILED:
        return _pages.write(target, window, prefix, first_page, since, head)
    oldest, last = window.first // PAGE_EVENTS, -(-window.seen // PAGE_EVENTS)
    written = -(-since // PAGE_EVENTS)
    for page in range(max(since, window.first) // PAGE_EVENTS, last):
        first = max(page * PAGE_EVENTS, window.first)
        columns = window.columns(first, min((page + 1) * PAGE_EVENTS, window.seen))
        key = page_key(prefix, page)
        carried = head if page + 1 == last else b""
        target[key] = pack_page(key, Page(first, columns, carried))
    for page in range(first_page, min(oldest, written)):
        target[page_key(prefix, page)] = None
    return last - oldest - (written - first_page)


def windows(
    records: Mapping[bytes, bytes],
) -> Iterator[tuple[PageKey, list[tuple[bytes, bytes]]]]:
    """Yield where the oldest page of each window belongs, and all its pages' records in order.

    Raises
    ------
    StateError
        When there is a key that this version does not write.
    """
    # Only the last eight bytes of its pages' keys, which are their number, differ within a window.
    found: dict[bytes, list[bytes]] = {}
    for raw in records:
        if raw != CURSOR_KEY:
            found.setdefault(raw[:-8], []).append(raw)
    for keys in found.values():
        keys.sort()
        oldest = parse_key(keys[0])
        assert oldest is not None  # noqa: S101 - the cursor is not among them
        yield oldest, [(key, records[key]) for key in keys]


def joined(records: list[tuple[bytes, bytes]]) -> Page:
    """Return the events of one window from the records of its pages; O(events).

    Parameters
    ----------
    records
        Key and value of each page, one at least, in order.

    Returns
    -------
    Page
        All events, with the head of the newest page.

    Raises
    ------
    StateError
        When a page is damaged, from another version, or one between others is missing.
    """
    if COMPILED and (found := _pages.unpack(records)) is not None:
        return Page(*found)
    parts = [unpack_page(key, value) for key, value in records]
    for (raw, _), (page, following) in zip(records, pairwise(parts), strict=False):
        if page.first + len(page.columns.scores) != following.first:
            at = _split(raw)
            assert at is not None  # noqa: S101 - whose window it is was read off the key
            raise StateError(
                f"the changelog lacks events of the key {at.key[:80]!r} of monitor {at.monitor} "
                f"between its pages {at.page} and {at.page + 1}: it was damaged; restore it, or "
                "run `rocstream reset`"
            )
    return Page(parts[0].first, _concatenate([page.columns for page in parts]), parts[-1].head)


def _concatenate(parts: list[Columns]) -> Columns:
    """Join pages; a column that only some have is filled with its neutral value elsewhere."""
    if len(parts) == 1:
        return parts[0]
    weighted = any(part.weights is not None for part in parts)
    timed = any(part.times is not None for part in parts)
    return Columns(
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.labels for part in parts]),
        np.concatenate([np.ones(len(p.scores)) if p.weights is None else p.weights for p in parts])
        if weighted
        else None,
        np.concatenate(
            [np.zeros(len(p.scores), np.int64) if p.times is None else p.times for p in parts]
        )
        if timed
        else None,
    )


def pack_cursor(cursor: Cursor) -> bytes:
    """Return the cursor's value under `CURSOR_KEY`."""
    fields = {name: getattr(cursor, name) for name in cursor.__slots__}
    if cursor.inside is None:
        del fields["inside"]
    if cursor.epoch < 0:
        del fields["epoch"]
    return _seal(CURSOR_KEY, _KIND_CURSOR, orjson.dumps(fields, option=orjson.OPT_SORT_KEYS))


def unpack_cursor(value: bytes) -> Cursor:
    """Return the cursor in a changelog record.

    Raises
    ------
    StateError
        When version, checksum or fields do not fit.
    """
    body = _unseal(CURSOR_KEY, _KIND_CURSOR, value)
    try:
        fields: dict[str, Any] = orjson.loads(body)
        fields["monitors"] = {k: MonitorState(**v) for k, v in fields["monitors"].items()}
        if "inside" in fields:
            fields["inside"] = tuple(fields["inside"])
        return Cursor(**fields)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise _unfit(CURSOR_KEY) from error


def _unfit(key: bytes) -> StateError:
    return StateError(
        f"the changelog record with the key {key[:80]!r} does not fit its own lengths or "
        "fields: the topic was written by something else; restore it, or run `rocstream reset`"
    )


def _seal(key: bytes, kind: int, body: bytes) -> bytes:
    return _ENVELOPE.pack(FORMAT, kind, crc32(body, crc32(key))) + body


def _unseal(key: bytes, kind: int, value: bytes) -> bytes:
    if len(value) < _ENVELOPE.size or value[0] != FORMAT or value[1] != kind:
        raise StateError(
            f"the changelog record with the key {key[:80]!r} has format {value[:2].hex() or '-'}, "
            f"this version of rocstream reads {FORMAT:02x}{kind:02x}: run the version that wrote "
            "it, or take a new kafka.group"
        )
    body = value[_ENVELOPE.size :]
    if _ENVELOPE.unpack_from(value)[2] != crc32(body, crc32(key)):
        raise StateError(
            f"the changelog record with the key {key[:80]!r} fails its checksum: the topic was "
            "written by something else or damaged; restore it, or run `rocstream reset`"
        )
    return body
