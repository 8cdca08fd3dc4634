"""Many JSON lines read at once: one call of the JSON reader, then checks a column at a time.

The quick way takes only what ``worker.events.plain`` takes, with the same outcome. A stretch with
anything odd in it is halved until the odd lines are few, and those go through the parser.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from itertools import count, repeat
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import orjson

from worker.events import Parser
from worker.events.document import VALUE_LIMIT
from worker.events.fields import TIME_MAX, Fields
from worker.events.plain import NUMBERS, layout
from worker.events.reading import HEARTBEAT
from worker.events.reasons import RefusedError
from worker.replay.grouping import Columns, batch_of
from worker.replay.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from config import EventSettings
    from worker.events import Batch
    from worker.events.plain import Layout

FEWEST: Final = 64
"""Lines that are no longer halved."""

_LABELS: Final = frozenset({int, type(None)})
_CLASSES: Final = frozenset({0, 1, None})
_HIDING: Final = (HEARTBEAT.encode(), b"\\u")
"""Without these bytes, no line can be a heartbeat, however its name is written."""


class Reader:
    """One way to read lines.

    Parameters
    ----------
    event
        The settings.
    fixed, timestamp
        The key and the timestamp of all records.
    """

    def __init__(self, event: EventSettings, fixed: bytes | None, timestamp: int) -> None:
        self.parser = Parser(event)
        self._fields = Fields(event)
        self._layout = layout(self._fields)
        self._fixed, self._timestamp = fixed, timestamp
        # Between the lines stands what no line can hold, for nobody can guess it: so no two
        # lines that are wrong by themselves can be right together.
        self._mark = secrets.token_hex(16)
        self._between = b',"' + self._mark.encode() + b'",'

    def batches(self, texts: Sequence[bytes], offset: int) -> Iterator[Batch]:
        """Take the lines apart; the first is the record at `offset`."""
        if not texts:
            return
        whole = None if self._layout is None else self._whole(texts, offset, self._layout)
        if whole is not None:
            yield whole
        elif len(texts) <= FEWEST or self._layout is None:
            yield from self.parser.batches(self.records(texts, offset))
        else:
            middle = len(texts) // 2
            yield from self.batches(texts[:middle], offset)
            yield from self.batches(texts[middle:], offset + middle)

    def records(self, texts: Sequence[bytes], offset: int) -> Iterator[Record]:
        """Return the lines as records."""
        fields = zip(
            count(offset), repeat(self._timestamp), repeat(self._fixed), texts, strict=False
        )
        return map(Record._make, fields)

    def _whole(self, texts: Sequence[bytes], offset: int, names: Layout) -> Batch | None:
        documents = self._documents(texts)
        if documents is None:
            return None
        try:
            scores = [one[names.score] for one in documents]
            known: list[Any] = [one[names.label] for one in documents]
        except KeyError:
            return None
        if not set(map(type, scores)) <= NUMBERS or not set(map(type, known)) <= _LABELS:
            return None
        if not set(known) <= _CLASSES:
            return None
        offsets = np.arange(offset, offset + len(texts))
        if None in known:
            inside = [label is not None for label in known]
            documents = [one for one, there in zip(documents, inside, strict=True) if there]
            scores = [one for one, there in zip(scores, inside, strict=True) if there]
            known = [one for one in known if one is not None]
            offsets = offsets[np.array(inside)]
        columns = self._columns(documents, scores, known, offsets, names)
        return None if columns is None else batch_of(columns, len(texts), offset + len(texts))

    def _documents(self, texts: Sequence[bytes]) -> list[Any] | None:
        """Read all lines at once; None unless each is an object and no heartbeat."""
        if max(map(len, texts)) > VALUE_LIMIT:
            return None
        joined = b"[" + self._between.join(texts) + b"]"
        try:
            read = orjson.loads(joined)
        except orjson.JSONDecodeError:
            return None
        documents, marks = read[::2], read[1::2]
        if len(read) != 2 * len(texts) - 1 or marks.count(self._mark) != len(marks):
            return None
        if set(map(type, documents)) != {dict}:
            return None
        if any(hidden in joined for hidden in _HIDING) and any(
            HEARTBEAT in one for one in documents
        ):
            return None
        return list(documents)

    def _columns(
        self,
        documents: Sequence[Any],
        scores: Sequence[float],
        known: Sequence[int],
        offsets: Any,
        names: Layout,
    ) -> Columns | None:
        keys = self._keys(documents, names.key)
        times = self._times(documents, names.time)
        if keys is None or times is None:
            return None
        weights = None
        if names.weight is not None:
            given = [one.get(names.weight) for one in documents]
            if not set(map(type, given)) <= NUMBERS:
                return None
            weights = np.array(given, np.float64)
            if not bool((weights > 0).all()):
                return None
        labels = np.array(known, np.uint8)
        return Columns(*keys, np.array(scores, np.float64), labels, times, weights, offsets)

    def _keys(self, documents: Sequence[Any], name: str | None) -> tuple[Any, list[str]] | None:
        """Return a number for each line's key, and the keys; None if one is odd."""
        try:
            if name is None:
                key = self._fields.key(self._fixed)
                return np.zeros(len(documents), np.int64), [key]
            keys = [one[name] for one in documents]
            if not set(map(type, keys)) <= {str}:
                return None
            numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
            for key in numbers:
                self._fields.key(key)
        except (KeyError, RefusedError):
            return None
        return np.array(list(map(numbers.__getitem__, keys)), np.int64), list(numbers)

    def _times(self, documents: Sequence[Any], name: str | None) -> Any:
        if name is None:
            return np.full(len(documents), self._timestamp) if self._timestamp >= 0 else None
        try:
            found = [one[name] for one in documents]
        except KeyError:
            return None
        if not set(map(type, found)) <= {int}:
            return None
        factor, divisor = self._fields.factor, self._fields.divisor
        latest = min(self._fields.latest(self._timestamp), TIME_MAX)
        if found and not 0 <= min(found) <= max(found) <= latest * divisor // factor:
            return None
        return np.array(found, np.int64) * factor // divisor


@dataclass(frozen=True, slots=True)
class LineRun:
    """Lines that follow each other: `count` of them in `text`, with ends between them."""

    text: bytes
    count: int
    first: int
    readers: Sequence[Reader]

    @property
    def last(self) -> int:
        """Offset to go on at."""
        return self.first + self.count

    def __len__(self) -> int:
        """Return the number of lines."""
        return self.count

    def cut(self, start: int, stop: int) -> LineRun:
        """Return the lines with offsets in [start, stop)."""
        low = min(max(start - self.first, 0), len(self))
        high = max(min(stop - self.first, len(self)), low)
        text = b"\n".join(self.text.split(b"\n")[low:high])
        return LineRun(text, high - low, self.first + low, self.readers)

    def batches(self, reading: int) -> Iterator[Batch]:
        """Take the lines apart as the reading of this number says."""
        if self.count:
            yield from self.readers[reading].batches(self.text.split(b"\n"), self.first)
