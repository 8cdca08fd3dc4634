"""The producer of events behind `send` and the demo: idempotent, and it counts what arrived."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from config.errors import RocstreamError
from config.kafka import librdkafka

if TYPE_CHECKING:
    from config import Settings

DELIVERY_SECONDS: Final = 30.0
"""The broker may take this long to confirm an event; after that it counts as gone."""

_FORBIDDEN: Final = frozenset(
    # The second for want of a right to write to any topic at all.
    {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED}
)


class Publisher:
    """Sends events and knows how many the broker has.

    Parameters
    ----------
    settings
        The job's settings.
    """

    def __init__(self, settings: Settings) -> None:
        self.delivered = 0
        self.skipped = 0
        self.first_skipped = ""
        self._topic = settings.topics.events
        self._servers = ", ".join(settings.kafka.bootstrap_servers)
        self._failure = ""
        self._forbidden = False
        self._producer = Producer(
            {
                "compression.type": "lz4",
                "linger.ms": 20,
                "message.timeout.ms": int(DELIVERY_SECONDS * 1000),
                "log_level": 0,
                **librdkafka(settings, "producer"),
                "enable.idempotence": True,
                # As Java's clients place keys: a key has one partition whoever wrote it.
                "partitioner": "murmur2_random",
                "on_delivery": self._on_delivery,
            }
        )

    def send(self, key: bytes, value: bytes) -> None:
        """Hand an event over to be sent; waits while the broker is behind.

        Raises
        ------
        RocstreamError
            When the broker refused an event, or did not take it in time.
        """
        while True:
            try:
                self._producer.produce(self._topic, value, key)
            except BufferError:
                self._producer.poll(0.1)
                self._check()
            except KafkaException as error:
                self._check()
                raise RocstreamError(
                    f"an event was not sent to {self._topic}: {error.args[0].str()}"
                ) from error
            else:
                return

    def skip(self, why: str) -> None:
        """Count a line that is left out."""
        self.first_skipped = self.first_skipped or why
        self.skipped += 1

    def poll(self) -> None:
        """Take in what the broker has confirmed; raises as `send`."""
        self._producer.poll(0)
        self._check()

    def flush(self) -> None:
        """Wait until the broker has all that was sent; raises as `send`."""
        while len(self._producer):
            self._producer.flush(0.5)
            self._check()
        self._check()

    def close(self) -> None:
        """Let go of what is not delivered, and of the broker; nothing can be sent any more."""
        self._producer.purge()
        self._producer.flush(1)
        # librdkafka's connections end with the last reference, and a callback is one.
        del self._producer

    def _check(self) -> None:
        if self._forbidden:
            raise RocstreamError(
                f"the user may not write the topic {self._topic} (topics.events): grant WRITE on it"
            )
        if self._failure:
            raise RocstreamError(
                f"the broker at {self._servers} did not take all events for {self._topic}: "
                f"{self._failure}"
            )

    def _on_delivery(self, error: KafkaError | None, message: Any) -> None:
        del message
        if error is None:
            self.delivered += 1
        elif not self._failure:
            self._failure = error.str()
            self._forbidden = error.code() in _FORBIDDEN
