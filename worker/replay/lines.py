"""JSON lines found in a file, and the numbers they stand under."""

from __future__ import annotations

from bisect import bisect_right
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def runs(file: IO[bytes], lines: Lines) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the lines that are not blank in runs of about a megabyte, each with its offset.

    Parameters
    ----------
    file
        Open for reading; a last line without an end counts like any other.
    lines
        Learns which record stands where.
    """
    offset, number = 0, 1
    for texts in _blocks(file):
        if not texts:
            continue
        kept = texts
        if min(map(len, texts)) >= _SHORT:
            lines.note(offset, number)
        else:
            kept = []
            for at, text in enumerate(texts):
                if text.strip():
                    lines.note(offset + len(kept), number + at)
                    kept.append(text)
        number += len(texts)
        if kept:
            yield offset, kept
        offset += len(kept)


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
