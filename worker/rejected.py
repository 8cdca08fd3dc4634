"""Dead letters: the refused record with the reason in its headers, cut to what the topic takes."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import orjson

from worker.events.reasons import cut_ranges
from worker.messages import Message

if TYPE_CHECKING:
    from worker.events import Rejection

REASON = "rocstream-reason"
TOPIC = "rocstream-topic"
PARTITION = "rocstream-partition"
OFFSET = "rocstream-offset"
INDEXES = "rocstream-indexes"
TRUNCATED = "rocstream-truncated"

REASON_BYTES = 1000
"""Largest reason header; the contract says under 1 KB."""

# Record format v2: 61 bytes of batch header, and 36 of a record's own lengths, deltas and
# attributes where every varint is as long as it gets; two varints of at most 5 for each header.
_RECORD_OVERHEAD = 61 + 36
_HEADER_OVERHEAD = 10


def message(rejection: Rejection, topic: str, partition: int, limit: int) -> Message:
    """Build the dead letter of a rejection.

    Key and value are the record's own bytes. Where they do not fit, the value is cut first (the
    key keeps at least half of the room, if it needs it), and `TRUNCATED` has the full length and
    the SHA-256 of each as JSON: ``{"key": {"bytes": n, "sha256": hex} | null, "value": ...}``.

    Parameters
    ----------
    rejection
        What the parser gave.
    topic, partition
        Where the record stands.
    limit
        Bytes that the rejected topic takes in one batch (max.message.bytes): all of the record
        counts, its headers and its overhead too.

    Returns
    -------
    Message
        At most `limit` bytes on the wire, for any limit of 2 KB or more: where the headers alone
        are too long, the indexes are cut too.
    """
    headers = [
        (REASON, _cut(f"{rejection.code}: {rejection.sentence}".encode(), REASON_BYTES)),
        (TOPIC, topic.encode()),
        (PARTITION, b"%d" % partition),
        (OFFSET, b"%d" % rejection.offset),
        (INDEXES, rejection.indexes.encode()),
    ]
    key, value = rejection.key, rejection.value
    whole = len(key or b"") + len(value or b"")
    if size(Message(None, None, tuple(headers))) + whole <= limit:
        return Message(key, value, tuple(headers))
    headers.append((TRUNCATED, orjson.dumps({"key": _digest(key), "value": _digest(value)})))
    room = limit - size(Message(None, None, tuple(headers)))
    if room < 0 and rejection.indexes:
        fitting = max(0, len(rejection.indexes) + room)
        headers[4] = (INDEXES, cut_ranges(rejection.indexes, fitting).encode())
        room = limit - size(Message(None, None, tuple(headers)))
    room = max(0, room)
    for_key = min(len(key or b""), max(room // 2, room - len(value or b"")))
    return Message(
        None if key is None else key[:for_key],
        None if value is None else value[: room - for_key],
        tuple(headers),
    )


def size(message: Message) -> int:
    """Tell how many bytes a message takes at most, as the only record of a batch."""
    return (
        _RECORD_OVERHEAD
        + len(message.key or b"")
        + len(message.value or b"")
        + sum(len(name) + len(data) + _HEADER_OVERHEAD for name, data in message.headers)
    )


def _digest(data: bytes | None) -> dict[str, int | str] | None:
    if data is None:
        return None
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _cut(data: bytes, limit: int) -> bytes:
    """Cut UTF-8 text to whole characters."""
    return data if len(data) <= limit else data[:limit].decode("utf-8", "ignore").encode()
