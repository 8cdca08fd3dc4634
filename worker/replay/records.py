"""What the sources of a replay hand out: logs, and runs of their records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from config import EventSettings
    from worker.events import Batch, Parser


class Record(NamedTuple):
    """A record as the parser takes it; `timestamp` in ms, negative without one."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


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

    def batches(self, reading: int) -> Iterator[Batch]:
        """Take the records apart as the reading of this number says."""


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
        inside = [record for record in self.records if start <= record.offset < stop]
        return RecordRun(inside, min(self.last, stop), self.parsers)

    def batches(self, reading: int) -> Iterator[Batch]:
        """Take the records apart as the reading of this number says."""
        return self.parsers[reading].batches(self.records)


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
