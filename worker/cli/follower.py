"""Reads the updates topic as it grows: committed updates alone, and commits nothing itself."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import orjson
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from config.errors import RocstreamError
from config.kafka import librdkafka
from worker.access import refusal
from worker.admin import Cluster, plans

if TYPE_CHECKING:
    from config import Settings

_PROBE_SECONDS: Final = 2.0
_ANSWER_SECONDS: Final = 1.0
_RUN: Final = 2_000
_FORBIDDEN: Final = frozenset(
    {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED}
)


class Follower:
    """Follows one topic of updates.

    Parameters
    ----------
    settings
        The job's settings.
    from_beginning
        Whether to read what is there already, instead of what comes from now on.
    """

    def __init__(self, settings: Settings, *, from_beginning: bool) -> None:
        self.topic = settings.topics.updates
        self.unreadable = 0
        self._servers = ", ".join(settings.kafka.bootstrap_servers)
        self._start = OFFSET_BEGINNING if from_beginning else OFFSET_END
        self._settings = settings
        self._told = ""
        self._away = False
        self._probed = 0.0
        self._unread: set[int] = set()
        self._consumer = Consumer(
            {
                "log_level": 0,
                **librdkafka(settings, "consumer"),
                # librdkafka wants a name; without subscription or commits the group never is.
                "group.id": f"{settings.kafka.group}-tail",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "error_cb": self._on_error,
            }
        )

    def open(self) -> bool:
        """Find the topic and begin to follow it; False when no broker answers within a second.

        Raises
        ------
        SettingsError
            When the topic does not exist, or a broker does not let us in.
        RocstreamError
            When the user may not see it.
        CertificateError
            When the broker's certificate is not valid now.
        """
        try:
            topics = self._consumer.list_topics(timeout=_ANSWER_SECONDS).topics
        except KafkaException:
            self._consumer.poll(0)
            if (why := refusal(self._settings, self._told)) is not None:
                raise why from None
            return False
        if self.topic not in topics or topics[self.topic].error is not None:
            _, updates, *_ = plans(self._settings)
            raise Cluster(self._settings).absent(updates, "READ")
        self._unread = set(topics[self.topic].partitions)
        self._consumer.assign(
            [TopicPartition(self.topic, number, self._start) for number in self._unread]
        )
        return True

    def read(self, seconds: float) -> list[tuple[bytes, dict[str, Any]]]:
        """Return updates that came within `seconds`, each as its bytes and its content.

        Raises
        ------
        RocstreamError
            When the broker refuses to be read from.
        """
        found = []
        for message in self._consumer.consume(_RUN, timeout=seconds):
            error = message.error()
            if error is not None:
                self._note(error, message.partition())
                continue
            self._away = False
            value = message.value() or b""
            try:
                update = orjson.loads(value)
            except orjson.JSONDecodeError:
                update = None
            if isinstance(update, dict) and "monitor" in update and "key" in update:
                found.append((value, update))
            else:
                self.unreadable += 1
        return found

    def ended(self) -> bool:
        """Tell whether all that was there has been read."""
        return not self._unread

    def trouble(self) -> str | None:
        """Return the sentence that no broker answers, while that is so."""
        if self._away and time.monotonic() - self._probed > _PROBE_SECONDS:
            self._probed = time.monotonic()
            try:
                self._consumer.list_topics(self.topic, timeout=_ANSWER_SECONDS)
                self._away = False
            except KafkaException:
                self._away = True
        return self.away() if self._away else None

    def away(self) -> str:
        """Return the sentence that says no broker answers."""
        return (
            f"no Kafka broker answers at {self._servers} (kafka.bootstrap_servers): waiting for it"
        )

    def close(self) -> None:
        """Leave."""
        self._consumer.close()

    def _note(self, error: KafkaError, partition: int | None) -> None:
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
            self._unread.discard(-1 if partition is None else partition)
        elif error.code() in _FORBIDDEN:
            what = f"topic {self.topic} (topics.updates)"
            if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                what = f"group {self._settings.kafka.group}-tail"
            raise RocstreamError(f"the user may not read the {what}: grant READ on it")
        elif not error.retriable() and not _passing(error):
            raise RocstreamError(f"{self.topic} cannot be read: {error.str()}")

    def _on_error(self, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001
            self._away = True
        else:
            self._told = error.str()


def _passing(error: KafkaError) -> bool:
    return error.code() in {
        KafkaError._TRANSPORT,  # noqa: SLF001
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
        KafkaError._TIMED_OUT,  # noqa: SLF001
        KafkaError._RESOLVE,  # noqa: SLF001
    }
