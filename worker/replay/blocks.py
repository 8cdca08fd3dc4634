"""Many JSON values read at once: one call of the JSON reader, then checks a column at a time.

The quick way takes only what ``worker.events.plain`` takes, with the same outcome. A stretch with
anything odd in it is halved until the odd lines are few, and those go through the parser.
"""

from __future__ import annotations

import secrets
from bisect import bisect_left
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import orjson

from worker.events import Parser
from worker.events.document import VALUE_LIMIT
from worker.events.fields import TIME_MAX, Fields
from worker.events.plain import NUMBERS, layout
from worker.events.reading import HEARTBEAT
from worker.events.reasons import RefusedError
from worker.replay.grouping import Columns, Stretch
from worker.replay.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from config import EventSettings
    from worker.events import Batch
    from worker.events.plain import Layout

FEWEST: Final = 64
"""Values that are no longer halved."""

_LABELS: Final = frozenset({int, type(None)})
_CLASSES: Final = frozenset({0, 1, None})
_HIDING: Final = (HEARTBEAT.encode(), b"\\u")
"""Without these bytes, no line can be a heartbeat, however its name is written."""


class Values(NamedTuple):
    """Records as columns.

    Attributes
    ----------
    texts
        Their values.
    offsets
        Where they stand.
    keys, timestamps
        Of each, or of all of them.
    """

    texts: Sequence[bytes | None]
    offsets: Sequence[int]
    keys: Sequence[bytes | None] | bytes | None
    timestamps: Sequence[int] | int

    def part(self, low: int, high: int) -> Values:
        """Return the records from `low` up to `high`, counted from 0."""
        keys, timestamps = self.keys, self.timestamps
        return Values(
            self.texts[low:high],
            self.offsets[low:high],
            keys[low:high] if isinstance(keys, list) else keys,
            timestamps[low:high] if isinstance(timestamps, list) else timestamps,
        )

    def records(self) -> Iterator[Record]:
        """Return them one by one."""
        keys = self.keys if isinstance(self.keys, list) else repeat(self.keys)
        times = self.timestamps if isinstance(self.timestamps, list) else repeat(self.timestamps)
        fields = zip(self.offsets, times, keys, self.texts, strict=False)
        return map(Record._make, fields)


class Reader:
    """One way to read values.

    Parameters
    ----------
    event
        The settings.
    """

    def __init__(self, event: EventSettings) -> None:
        self._parser = Parser(event)
        self._fields = Fields(event)
        self._layout = layout(self._fields)
        # Between the lines stands what no line can hold, for nobody can guess it: so no two
        # lines that are wrong by themselves can be right together.
        self._mark = secrets.token_hex(16)
        self._between = b',"' + self._mark.encode() + b'",'

    def batches(self, values: Values) -> Iterator[Batch]:
        """Take records apart."""
        for part in self.parts(values):
            yield part.batch() if isinstance(part, Stretch) else part

    def parts(self, values: Values) -> Iterator[Stretch | Batch]:
        """Take records apart; what is read at once is not grouped yet."""
        count = len(values.texts)
        if not count:
            return
        whole = None if self._layout is None else self._whole(values, self._layout)
        if whole is not None:
            yield whole
        elif count <= FEWEST or self._layout is None:
            yield from self._parser.batches(values.records())
        else:
            middle = count // 2
            yield from self.parts(values.part(0, middle))
            yield from self.parts(values.part(middle, count))

    def _whole(self, values: Values, names: Layout) -> Stretch | None:
        documents = self._documents(values.texts)
        if documents is None:
            return None
        try:
            known: list[Any] = [one[names.label] for one in documents]
            scores = [one[names.score] for one in documents]
        except KeyError:
            return None
        if not set(map(type, scores)) <= NUMBERS or not set(map(type, known)) <= _LABELS:
            return None
        if not set(known) <= _CLASSES:
            return None
        last = values.offsets[-1] + 1
        count = len(documents)
        if None in known:
            inside = [at for at, label in enumerate(known) if label is not None]
            documents = [documents[at] for at in inside]
            scores = [scores[at] for at in inside]
            known = [known[at] for at in inside]
            keys, times = values.keys, values.timestamps
            values = Values(
                (),
                [values.offsets[at] for at in inside],
                [keys[at] for at in inside] if isinstance(keys, list) else keys,
                [times[at] for at in inside] if isinstance(times, list) else times,
            )
        columns = self._columns(documents, scores, known, values, names)
        return None if columns is None else Stretch(columns, count, last)

    def _documents(self, texts: Sequence[Any]) -> list[Any] | None:
        """Read all values at once; None unless each is an object and no heartbeat."""
        try:
            if max(map(len, texts)) > VALUE_LIMIT:
                return None
            joined = b"[" + self._between.join(texts) + b"]"
            read = orjson.loads(joined)
        except (orjson.JSONDecodeError, TypeError):
            # A value that is none, of a deleted record, raises the latter.
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
        values: Values,
        names: Layout,
    ) -> Columns | None:
        keys = self._keys(documents, names.key, values.keys)
        times = self._times(documents, names.time, values.timestamps)
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
        labels, offsets = np.array(known, np.uint8), np.array(values.offsets, np.int64)
        return Columns(*keys, np.array(scores, np.float64), labels, times, weights, offsets)

    def _keys(
        self, documents: Sequence[Any], name: str | None, own: Any
    ) -> tuple[Any, list[str]] | None:
        """Return a number for each record's key, and the keys; None if one is odd."""
        try:
            if name is not None:
                keys = [one[name] for one in documents]
            elif isinstance(own, list):
                keys = own
            else:
                return np.zeros(len(documents), np.int64), [self._fields.key(own)]
            if not set(map(type, keys)) <= {str if name is not None else bytes}:
                return None
            numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
            found = [self._fields.key(key) for key in numbers]
        except (KeyError, RefusedError):
            return None
        return np.array(list(map(numbers.__getitem__, keys)), np.int64), found

    def _times(self, documents: Sequence[Any], name: str | None, own: Any) -> Any:
        """Return a time for each record; None if one is odd."""
        stamps = np.array(own, np.int64) if isinstance(own, list) else np.int64(own)
        if not documents:
            return np.zeros(0, np.int64)
        if not bool((stamps >= 0).all()):
            return None
        if name is None:
            return np.full(len(documents), stamps)
        found = [one.get(name) for one in documents]
        factor, divisor = self._fields.factor, self._fields.divisor
        most = TIME_MAX * divisor // factor
        if not set(map(type, found)) <= {int} or not 0 <= min(found) <= max(found) <= most:
            return None
        times = np.array(found, np.int64) * factor // divisor
        ahead = np.minimum(stamps + self._fields.max_ahead, TIME_MAX)
        return times if bool((times <= ahead).all()) else None


@dataclass(frozen=True, slots=True)
class LineRun:
    """Lines that follow each other: `count` of them in `text`, with ends between them."""

    text: bytes
    count: int
    first: int
    readers: Sequence[Reader]
    key: bytes | None
    timestamp: int

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
        first = self.first + low
        return LineRun(text, high - low, first, self.readers, self.key, self.timestamp)

    def batches(self, reading: int) -> Iterator[Batch]:
        """Take the lines apart as the reading of this number says."""
        return self.readers[reading].batches(self._values())

    def parts(self, reading: int) -> Iterator[Stretch | Batch]:
        """Take the lines apart; what is read at once is not grouped yet."""
        return self.readers[reading].parts(self._values())

    def _values(self) -> Values:
        texts = self.text.split(b"\n") if self.count else []
        return Values(texts, range(self.first, self.last), self.key, self.timestamp)


@dataclass(frozen=True, slots=True)
class ValueRun:
    """Records of a topic, as columns; `last` may lie behind a gap in the offsets."""

    values: Values
    last: int
    readers: Sequence[Reader]

    @property
    def first(self) -> int:
        """Offset of the first record."""
        return self.values.offsets[0] if self.values.offsets else self.last

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.values.texts)

    def cut(self, start: int, stop: int) -> ValueRun:
        """Return the records with offsets in [start, stop)."""
        low, high = (bisect_left(self.values.offsets, at) for at in (start, stop))
        return ValueRun(self.values.part(low, high), min(self.last, stop), self.readers)

    def batches(self, reading: int) -> Iterator[Batch]:
        """Take the records apart as the reading of this number says."""
        return self.readers[reading].batches(self.values)

    def parts(self, reading: int) -> Iterator[Stretch | Batch]:
        """Take the records apart; what is read at once is not grouped yet."""
        return self.readers[reading].parts(self.values)
