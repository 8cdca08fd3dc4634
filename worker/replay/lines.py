"""JSON lines as records: the bytes of each line as they stand, read as live ones are."""

from __future__ import annotations

from bisect import bisect_right
from itertools import count, repeat
from typing import IO, TYPE_CHECKING, Final

from worker.replay.records import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BLOCK_BYTES: Final = 1 << 20
LINE_BYTES: Final = 64 << 20
"""A file without a line end for so long holds no lines; its bytes are given on as one record."""

_BOM: Final = b"\xef\xbb\xbf"
_SHORT: Final = 3


class Lines:
    """Where the records of a file stand: blank lines are no records, so numbers part."""

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._numbers: list[int] = []

    def note(self, offset: int, number: int) -> None:
        """Say that the record at `offset` stands in line `number`, counted from 1."""
        if not self._offsets or number - offset != self._numbers[-1] - self._offsets[-1]:
            self._offsets.append(offset)
            self._numbers.append(number)

    def number(self, offset: int) -> int:
        """Return the line of a record. O(log blank lines)."""
        at = bisect_right(self._offsets, offset) - 1
        if at < 0:
            return offset + 1
        return self._numbers[at] + offset - self._offsets[at]


def records(
    file: IO[bytes], key: bytes | None, timestamp: int, lines: Lines
) -> Iterator[list[Record]]:
    """Yield the lines that are not blank in runs of about a megabyte.

    Parameters
    ----------
    file
        Open for reading; a last line without an end counts like any other.
    key, timestamp
        What each record gets.
    lines
        Learns which record stands where.
    """
    return _numbered(_blocks(file), _maker(key, timestamp), lines)


def _maker(key: bytes | None, timestamp: int) -> Callable[[int, list[bytes]], list[Record]]:
    def make(offset: int, texts: list[bytes]) -> list[Record]:
        fields = zip(count(offset), repeat(timestamp), repeat(key), texts, strict=False)
        return list(map(Record._make, fields))

    return make


def _blocks(file: IO[bytes]) -> Iterator[list[bytes]]:
    """Yield whole lines without their ends."""
    rest = b""
    first = True
    while block := file.read(BLOCK_BYTES):
        texts = (rest + block).split(b"\n")
        rest = texts.pop()
        if first and texts:
            texts[0] = texts[0].removeprefix(_BOM)
            first = False
        if len(rest) > LINE_BYTES:
            texts.append(rest)
            rest = b""
        yield texts
    yield [rest] if rest else []


def _numbered(
    blocks: Iterator[list[bytes]], make: Callable[[int, list[bytes]], list[Record]], lines: Lines
) -> Iterator[list[Record]]:
    offset, number = 0, 1
    for texts in blocks:
        if not texts:
            continue
        if min(map(len, texts)) >= _SHORT:
            lines.note(offset, number)
            found = make(offset, texts)
        else:
            kept: list[bytes] = []
            for at, text in enumerate(texts):
                if text.strip():
                    lines.note(offset + len(kept), number + at)
                    kept.append(text)
            found = make(offset, kept)
        number += len(texts)
        offset += len(found)
        if found:
            yield found
