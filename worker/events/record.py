"""What is read of a record, whatever delivers it."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Record(Protocol):
    """What is read of a record; aiokafka's ConsumerRecord fits."""

    @property
    def offset(self) -> int:
        """Position in the partition."""

    @property
    def timestamp(self) -> int | None:
        """The record's own timestamp in ms; None or negative without one."""

    @property
    def key(self) -> bytes | None:
        """The record's key."""

    @property
    def value(self) -> bytes | None:
        """The record's value; None is a tombstone."""


class Taken(NamedTuple):
    """A record by itself; `timestamp` in ms, negative without one."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
