"""Compressed records, decompressed within bounds: a megabyte at the broker may be gigabytes here.

aiokafka decompresses to the end whatever comes. These take its place, with the same library.
"""

from __future__ import annotations

import contextlib
import struct
import sys
from typing import TYPE_CHECKING, Final

import cramjam
from aiokafka.record.default_records import DefaultRecordBatch
from aiokafka.record.legacy_records import LegacyRecordBatch

if TYPE_CHECKING:
    from collections.abc import Callable

CEILING: Final = 256 << 20
"""Bytes that a batch may have once it is decompressed: 256 times what a broker takes by default."""

_USUAL: Final = 16
"""Records are seldom compressed to less than a 16th; those that are cost a second attempt."""

_XERIAL_HEADER: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES: Final = 16


def _within(decompress: Callable[[bytes, bytearray], int], payload: bytes) -> bytes:
    """Decompress into a buffer that does not grow; memory is taken as it is written."""
    room = _USUAL * len(payload) + 4096
    if room < CEILING:
        # Whatever is wrong comes again below, with all the room there may be.
        with contextlib.suppress(cramjam.DecompressionError):
            return _filled(decompress, payload, room)
    return _filled(decompress, payload, CEILING)


def _filled(decompress: Callable[[bytes, bytearray], int], payload: bytes, room: int) -> bytes:
    buffer = bytearray(room)
    return bytes(memoryview(buffer)[: decompress(payload, buffer)])


def gzip_decode(payload: bytes) -> bytes:
    """Decompress gzip, any number of members.

    Raises
    ------
    cramjam.DecompressionError
        When it is none, or more than `CEILING` bytes; so do the others.
    """
    return _within(cramjam.gzip.decompress_into, bytes(payload))


def lz4_decode(payload: bytes) -> bytes:
    """Decompress LZ4 frames."""
    return _within(cramjam.lz4.decompress_into, payload)


def zstd_decode(payload: bytes) -> bytes:
    """Decompress Zstandard frames."""
    return _within(cramjam.zstd.decompress_into, payload)


def snappy_decode(payload: bytes) -> bytes:
    """Decompress Snappy: a block, or blocks behind the header of xerial's Java library."""
    if not payload.startswith(_XERIAL_HEADER):
        return _block(payload, CEILING)
    parts: list[bytes] = []
    left, at = CEILING, _XERIAL_HEADER_BYTES
    while at < len(payload):
        (size,) = struct.unpack_from(">i", payload, at)
        at += 4
        if not 0 <= size <= len(payload) - at:
            raise cramjam.DecompressionError("snappy: a block is cut off")
        parts.append(_block(payload[at : at + size], left))
        left -= len(parts[-1])
        at += size
    return b"".join(parts)


def _block(payload: bytes, room: int) -> bytes:
    size = cramjam.snappy.decompress_raw_len(payload)
    if size > room:
        raise cramjam.DecompressionError(f"snappy: {size} bytes, with room for {room}")
    return bytes(cramjam.snappy.decompress_raw(payload))


DECODERS: Final = {1: gzip_decode, 2: snappy_decode, 3: lz4_decode, 4: zstd_decode}
"""By the number of the codec."""


def install() -> None:
    """Have aiokafka's own decoders of batches, which read what ours do not, keep the bounds."""
    for batch in (DefaultRecordBatch, LegacyRecordBatch):
        module = sys.modules[batch.__module__]
        for decoder in DECODERS.values():
            if hasattr(module, decoder.__name__):
                setattr(module, decoder.__name__, decoder)
