"""JSON lines found in a file, and the numbers they stand under."""

from __future__ import annotations

import select
import zlib
from bisect import bisect_right
from typing import IO, TYPE_CHECKING, Final

from worker.events import native

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST_BYTES: Final = 1 << 18
BLOCK_BYTES: Final = 4 << 20
"""Read at once: little at first, so that something is seen of it soon, then ever more."""

LINE_BYTES: Final = 64 << 20
"""A file without a line end for so long holds no lines; its bytes are given on as one record."""

_BOM: Final = b"\xef\xbb\xbf"
_BREAKS: Final = (EOFError, OSError, zlib.error)
"""What a file that breaks off raises."""


class Lines:
    """Where the records of a file stand: blank lines are no records, so numbers part."""

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._numbers: list[int] = []
        self.last = 0
        """The last line that was read whole."""

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


def runs(file: IO[bytes], lines: Lines) -> Iterator[tuple[int, bytes, int]]:
    """Yield the lines that are not blank in runs of up to some megabytes.

    Parameters
    ----------
    file
        Open for reading; a last line without an end counts like any other.
    lines
        Learns which record stands where.

    Yields
    ------
    tuple
        The offset of the first line; the lines with ends between them; how many they are.

    Raises
    ------
    OSError, EOFError, zlib.error
        Where the file breaks off, once every whole line before that was yielded.
    """
    offset, number = 0, 1
    for text in _blocks(file):
        kept = there = native.count_lines(text)
        if kept < 0:
            there = text.count(b"\n") + 1
            found: list[bytes] = []
            for at, line in enumerate(text.split(b"\n")):
                if line.strip():
                    lines.note(offset + len(found), number + at)
                    found.append(line)
            text, kept = b"\n".join(found), len(found)  # noqa: PLW2901 - the same without blanks
        else:
            lines.note(offset, number)
        number += there
        lines.last = number - 1
        if kept:
            yield offset, text, kept
        offset += kept


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    """Yield whole lines, without the end of the last one."""
    rest = b""
    first = True
    size = FIRST_BYTES
    failure: Exception | None = None
    while failure is None:
        block, failure = _block(file, size)
        if not block:
            break
        size = min(2 * size, BLOCK_BYTES)
        end = block.rfind(b"\n")
        if end < 0:
            rest += block
            if len(rest) <= LINE_BYTES:
                continue
            text, rest = rest, b""
        else:
            text, rest = b"".join((rest, memoryview(block)[:end])), block[end + 1 :]
        yield text.removeprefix(_BOM) if first else text
        first = False
    if failure is not None:
        raise failure
    if rest:
        yield rest.removeprefix(_BOM) if first else rest


def _block(file: IO[bytes], size: int) -> tuple[bytes, Exception | None]:
    """Read so much, or what is there; with what broke it off, if something did."""
    parts: list[bytes] = []
    try:
        while size > 0 and (part := file.read1(size)):  # type: ignore[attr-defined]
            parts.append(part)
            size -= len(part)
            if not more(file):
                break
    except _BREAKS as error:
        return b"".join(parts), error
    return b"".join(parts), None


def more(file: IO[bytes]) -> bool:
    """Tell whether reading on gives something, or the end, at once: of a pipe it may not."""
    try:
        number = file.fileno()
    except OSError:
        # What is unpacked, or in memory, is no pipe.
        return True
    asked = select.poll()
    asked.register(number, select.POLLIN)
    return bool(asked.poll(0))
