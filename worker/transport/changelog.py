"""Reads the changelog of tasks to its end, and the facts of the logs that a task stands on."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from config.errors import RocstreamError
from config.log import LIBRDKAFKA
from worker.transport.waiting import Wait

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from threading import Event

    from confluent_kafka import Message

log = structlog.get_logger(__name__)

STALL_SECONDS: Final = 120.0
"""A read that brings nothing for this long, although the end is not reached, has failed."""

SILENT_SECONDS: Final = 15
"""A broker that answers nothing for so long is connected to anew."""

_REPORT_SECONDS: Final = 5.0
_AGAIN_SECONDS: Final = 0.2
_PASSING: Final = frozenset({KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT})  # noqa: SLF001


class RestoreError(RocstreamError):
    """The changelog could not be read to its end."""


class Extent(NamedTuple):
    """Offsets that a partition holds: the first there is, and the one after the last."""

    start: int
    end: int


class Restored(NamedTuple):
    """What was read, by partition: the last value of each key; and where the input stands."""

    records: dict[int, dict[bytes, bytes]]
    inputs: dict[int, Extent]


class Reader:
    """Reads changelog partitions with read_committed, in bulk, in a thread.

    Parameters
    ----------
    client
        librdkafka settings of the connection.
    group
        The job; nothing is committed under it.
    """

    def __init__(self, client: Mapping[str, str], group: str) -> None:
        self._settings: dict[str, Any] = {
            # A connection that brings nothing any more would be held for a minute.
            "socket.timeout.ms": SILENT_SECONDS * 1000,
            **client,
            "group.id": group,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 10,
            "queued.max.messages.kbytes": 65_536,
            "check.crcs": True,
            "logger": logging.getLogger(LIBRDKAFKA),
        }

    def read(
        self, changelog: str, inputs: str, partitions: Iterable[int], cancelled: Event
    ) -> Restored:
        """Read the live records of each partition of the changelog.

        O(records). Waits for a broker that is away, up to `STALL_SECONDS` without progress.

        Raises
        ------
        RestoreError
            When the end is not reached in time, or once `cancelled` is set.
        """
        numbers = sorted(partitions)
        consumer = Consumer(self._settings)
        try:
            extents = {p: self._extent(consumer, inputs, p, cancelled) for p in numbers}
            ends = {p: self._extent(consumer, changelog, p, cancelled) for p in numbers}
            read = _Read(
                {p: {} for p in numbers},
                {p: extent.end for p, extent in ends.items() if extent.end > extent.start},
            )
            if read.wanted:
                consumer.assign([TopicPartition(changelog, p, ends[p].start) for p in read.wanted])
                _drain(consumer, changelog, read, cancelled)
        finally:
            consumer.close()
        return Restored(read.records, extents)

    def extents(self, topic: str, partitions: Iterable[int], cancelled: Event) -> dict[int, Extent]:
        """Return what each partition of a topic holds now; raises as `read`."""
        consumer = Consumer(self._settings)
        try:
            return {p: self._extent(consumer, topic, p, cancelled) for p in partitions}
        finally:
            consumer.close()

    def _extent(self, consumer: Consumer, topic: str, partition: int, cancelled: Event) -> Extent:
        wait = Wait("waiting for the broker to read from", topic=topic, partitions=[partition])
        deadline = time.monotonic() + STALL_SECONDS
        while True:
            began = time.monotonic()
            if cancelled.is_set():
                raise RestoreError("reading the state was given up")
            try:
                found = consumer.get_watermark_offsets(
                    TopicPartition(topic, partition), timeout=5.0, cached=False
                )
            except KafkaException as error:
                if time.monotonic() > deadline:
                    raise RestoreError(
                        f"the offsets of {topic}, partition {partition}, could not be had for "
                        f"{STALL_SECONDS:.0f} s: {error.args[0].str()}"
                    ) from error
                wait.tell(error.args[0].str(), began)
                # Some errors come at once.
                cancelled.wait(_AGAIN_SECONDS)
                continue
            if found is not None:
                wait.over()
                return Extent(*found)


@dataclass(slots=True)
class _Read:
    """What has come of a read: by partition the records, and the ends not yet reached."""

    records: dict[int, dict[bytes, bytes]]
    wanted: dict[int, int]
    count: int = 0

    def take(self, message: Message) -> None:
        error = message.error()
        partition = message.partition()
        if partition is None:
            partition = -1
        if error is None:
            # What comes behind the end may be of a transaction of which the rest is still to come.
            if partition in self.wanted:
                self._keep(self.records[partition], message.key(), message.value())
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
            # The end is told by position, not by the last record: a transactional log ends in a
            # marker that is never delivered, and compaction may have taken the last ones away.
            if (message.offset() or 0) >= self.wanted.get(partition, 0):
                self.wanted.pop(partition, None)
        elif not error.retriable() and error.code() not in _PASSING:
            raise RestoreError(f"the changelog could not be read: {error.str()}")

    def _keep(self, records: dict[bytes, bytes], key: bytes | None, value: bytes | None) -> None:
        self.count += 1
        if key is None:
            return
        if value is None:
            records.pop(key, None)
        else:
            records[key] = value


def _drain(consumer: Consumer, changelog: str, read: _Read, cancelled: Event) -> None:
    """Read until each partition's end is reached."""
    wait = Wait("waiting for the broker to read from", topic=changelog)
    began = reported = progress = time.monotonic()
    while read.wanted:
        if cancelled.is_set():
            raise RestoreError("reading the state was given up")
        messages = consumer.consume(5000, 0.05)
        now = time.monotonic()
        for message in messages:
            read.take(message)
        if messages:
            progress = now
            wait.over()
        elif now - progress > STALL_SECONDS:
            raise RestoreError(
                f"reading the changelog stood still for {STALL_SECONDS:.0f} s; ends not reached, "
                f"by partition: {read.wanted}"
            )
        if now - progress > _REPORT_SECONDS:
            wait.tell("nothing comes", progress)
        elif now - reported > _REPORT_SECONDS:
            reported = now
            log.info("reading state", records=read.count, partitions_to_go=len(read.wanted))
    log.info("state read", records=read.count, seconds=round(time.monotonic() - began, 3))
