"""The compiled way in, where there is one: as `worker.core` decides it, once, at import."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from worker import core
from worker.events.batch import Gathering
from worker.events.reading import HEARTBEAT
from worker.events.record import Taken

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from worker.events._block import Block
    from worker.events._scan import Scanner
    from worker.events.fields import Fields
    from worker.events.record import Record

COMPILED: Final = core.COMPILED
"""Whether blocks can be made and read."""

if COMPILED:
    from worker.events import _block, _columns, _reading, _scan


def scanner(fields: Fields) -> Scanner | None:
    """Make what reads records as the settings say; None where that is left to the plain loop."""
    if not COMPILED or not fields.plain_numbers or len(fields.texts) > _reading.MOST_TEXTS:
        return None
    paths = (
        *(fields.score_path, fields.label_path),
        *(fields.key_path, fields.time_path, fields.weight_path),
    )
    if any(path and (path[0] == HEARTBEAT or len(path) > _reading.MOST_PARTS) for path in paths):
        return None
    return _scan.Scanner(paths, fields.texts, fields.factor, fields.divisor, fields.max_ahead)


def blocks(records: Iterable[Record], ahead: int) -> Iterator[Block]:
    """Give records in blocks; those that are in none yet, `ahead` at a time."""
    if isinstance(records, _block.Block):
        yield records
        return
    stream = iter(records)
    while some := list(islice(stream, ahead)):
        yield _block.block_of_records(some)


def lines(text: bytes, first: int, key: bytes | None, timestamp: int) -> Sequence[Record]:
    """Take the lines of a text for values; offsets count from `first`, the rest is that of each."""
    if COMPILED:
        return _block.block_of_lines(text, first, key, timestamp)
    values = enumerate(text.split(b"\n"), first)
    return [Taken(offset, timestamp, key, value) for offset, value in values]


def count_lines(text: bytes) -> int:
    """Return how many lines a text has; -1 where one begins with a blank, or is empty."""
    if COMPILED:
        return _block.count_lines(text)
    lines = text.split(b"\n")
    return -1 if any(line[:1] <= b" " for line in lines) else len(lines)


if COMPILED:
    grouped = _columns.grouped


def gathering(*, compiled: bool) -> Gathering:
    """Make a place for the events of a batch."""
    return _columns.Gathering() if compiled else Gathering()
