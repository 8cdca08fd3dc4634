"""A plain read_committed reader, which knows nothing of the worker."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple, Self

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

if TYPE_CHECKING:
    from types import TracebackType


class Seen(NamedTuple):
    """A record as the reader got it; `time` is its timestamp in ms."""

    partition: int
    offset: int
    time: int
    key: bytes | None
    value: bytes | None
    headers: dict[str, bytes]


class ReadError(RuntimeError):
    """A topic could not be read to its end in time."""


class Reader:
    """Reads a topic from its beginning, on and on."""

    def __init__(self, servers: str, topic: str) -> None:
        self.topic = topic
        self._admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "chaos-reader",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
                "check.crcs": True,
                "log_level": 0,
            }
        )
        described = self._consumer.list_topics(topic, timeout=20).topics[topic]
        self.places = dict.fromkeys(described.partitions, 0)
        self._consumer.assign([TopicPartition(topic, p, 0) for p in self.places])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._consumer.close()

    def poll(self, seconds: float = 0.05) -> list[Seen]:
        """Return what has become visible since the last call."""
        found = []
        for message in self._consumer.consume(5_000, seconds):
            error = message.error()
            if error is None:
                found.append(
                    Seen(
                        message.partition(),
                        message.offset(),
                        message.timestamp()[1],
                        message.key(),
                        message.value(),
                        dict(message.headers() or []),
                    )
                )
                self.places[message.partition()] = message.offset() + 1
            elif error.code() == KafkaError._PARTITION_EOF:
                # Behind control records and aborted transactions too.
                self.places[message.partition()] = message.offset()
            elif not error.retriable() and error.code() not in {
                KafkaError._ALL_BROKERS_DOWN,
                KafkaError._TRANSPORT,
            }:
                raise KafkaException(error)
        return found

    def to_end(self, seconds: float = 90) -> list[Seen]:
        """Return all there is, once no open transaction hides anything behind it."""
        found: list[Seen] = []
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            ends = self._ends()
            while any(self.places[p] < end for p, end in ends.items()):
                found += self.poll()
                if time.monotonic() > deadline:
                    break
            else:
                return found
        raise ReadError(f"{self.topic} was read to {self.places} in {seconds:.0f} s, not {ends}")

    def _ends(self) -> dict[int, int]:
        asked = {TopicPartition(self.topic, p): OffsetSpec.latest() for p in self.places}
        # The log's very end: that of read_committed stands before the first open transaction.
        told = self._admin.list_offsets(asked, isolation_level=IsolationLevel.READ_UNCOMMITTED)
        return {tp.partition: future.result(20).offset for tp, future in told.items()}
