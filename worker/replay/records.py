"""What the sources of a replay hand out: logs, and runs of their records."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Protocol

from worker.events import native

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from config import EventSettings
    from worker.events import Batch, Parser, Record, Stop


BATCH_EVENTS: Final = 1 << 19
"""Events of a batch at the most: many, so that a key's window stays in the cache for long."""

_offset = attrgetter("offset")


@dataclass(frozen=True, slots=True)
class Log:
    """One partition of a topic, or one file.

    Attributes
    ----------
    topic, partition
        What updates name as their source.
    first
        Offset of the first record that is read.
    since
        Offset from which on updates are published; what lies before it warms the windows up.
    goes_on
        Whether its windows are those of the log before it, as with the files of one directory.
    counted
        Whether the windows have seen every event of their keys, so that slides have numbers.
    """

    topic: str
    partition: int = 0
    first: int = 0
    since: int = 0
    goes_on: bool = False
    counted: bool = True


class Run(Protocol):
    """Records of one log that follow each other."""

    @property
    def first(self) -> int:
        """Offset of the first record."""

    @property
    def last(self) -> int:
        """Offset to go on at."""

    def __len__(self) -> int:
        """Return the number of records."""

    def cut(self, start: int, stop: int) -> Run:
        """Return the records with offsets in [start, stop)."""

    def batches(
        self, reading: int, watermark: int = -1, stop: Callable[[], Stop | None] | None = None
    ) -> Iterator[Batch]:
        """Take the records apart as the reading of this number says.

        Parameters
        ----------
        reading
            A number.
        watermark, stop
            Where batches end besides, as for `Parser.batches`.
        """


@dataclass(frozen=True, slots=True)
class RecordRun:
    """Records of bytes, one after the other; `last` may lie behind a gap in the offsets."""

    records: Sequence[Record]
    last: int
    parsers: Sequence[Parser]

    @property
    def first(self) -> int:
        """Offset of the first record."""
        return self.records[0].offset if self.records else self.last

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.records)

    def cut(self, start: int, stop: int) -> RecordRun:
        """Return the records with offsets in [start, stop)."""
        low = bisect_left(self.records, start, key=_offset)
        inside = self.records[low : bisect_left(self.records, stop, key=_offset)]
        return RecordRun(inside, min(self.last, stop), self.parsers)

    def batches(
        self, reading: int, watermark: int = -1, stop: Callable[[], Stop | None] | None = None
    ) -> Iterator[Batch]:
        """Take the records apart as the reading of this number says."""
        parser = self.parsers[reading]
        return parser.batches(self.records, limit=BATCH_EVENTS, watermark=watermark, stop=stop)


@dataclass(frozen=True, slots=True)
class LineRun:
    """Lines that follow each other: `count` of them in `text`, with ends between them.

    `key` and `timestamp` are those of each as a record.
    """

    text: bytes
    count: int
    first: int
    parsers: Sequence[Parser]
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
        return LineRun(text, high - low, first, self.parsers, self.key, self.timestamp)

    def batches(
        self, reading: int, watermark: int = -1, stop: Callable[[], Stop | None] | None = None
    ) -> Iterator[Batch]:
        """Take the lines apart as the reading of this number says."""
        if not self.count:
            return iter(())
        records = native.lines(self.text, self.first, self.key, self.timestamp)
        parser = self.parsers[reading]
        return parser.batches(records, limit=BATCH_EVENTS, watermark=watermark, stop=stop)


class Source(Protocol):
    """Something to replay."""

    name: str
    notes: list[str]
    """Sentences that the person should read at the end."""

    @property
    def several(self) -> bool:
        """Whether there may be more than one log."""

    @property
    def total(self) -> int | None:
        """How much there is to read, in the unit of `position`; None when nobody knows."""

    def load(self) -> None:
        """Import what reading takes, should it be read in processes that are forked from here."""

    def position(self) -> int:
        """Return how much has been read."""

    def runs(self, readings: Sequence[EventSettings]) -> Iterator[tuple[Log, Run]]:
        """Yield the logs one after the other, each in runs.

        Parameters
        ----------
        readings
            The ways in which `Run.batches` will be asked to read the records: the settings of
            the job first.
        """

    def where(self, log: Log, offset: int) -> str:
        """Say where a record stands, for a person: `file:line` or `topic[partition]@offset`."""
