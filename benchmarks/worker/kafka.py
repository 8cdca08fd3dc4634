"""The broker's side of a measurement: topics, the events in them, a reader of the updates."""

from __future__ import annotations

import importlib.util
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from benchmarks.worker.workload import Workload

ROOT = Path(__file__).parents[2]

TIMEOUT = 30.0  # seconds for any one request


@contextmanager
def running(bootstrap_servers: str | None) -> Iterator[str]:
    """Give the address of a broker: the one that is named, or one that runs inside the `with`."""
    if bootstrap_servers is not None:
        yield bootstrap_servers
        return
    # By its path: another distribution may have installed a package called `tests`.
    spec = importlib.util.spec_from_file_location("brokers", ROOT / "tests" / "brokers.py")
    if spec is None or spec.loader is None:
        raise RuntimeError("tests/brokers.py cannot be loaded; give --bootstrap-servers")
    brokers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(brokers)
    with brokers.running() as broker:
        print(f"started {broker.name} at {broker.bootstrap_servers}", file=sys.stderr, flush=True)
        yield broker.bootstrap_servers


class Broker:
    """A client of the broker at `bootstrap_servers` that makes topics and fills them."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers})

    def create(self, topic: str, partitions: int, **config: str) -> None:
        """Create a topic; underscores in the names of settings stand for dots."""
        settings = {name.replace("_", "."): value for name, value in config.items()}
        new = NewTopic(topic, partitions, 1, config=settings)
        self._admin.create_topics([new], request_timeout=TIMEOUT)[topic].result(TIMEOUT)

    def delete(self, topics: list[str]) -> None:
        """Delete the topics, those that are not there as well."""
        for future in self._admin.delete_topics(topics, request_timeout=TIMEOUT).values():
            try:
                future.result(TIMEOUT)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise

    def topics(self, prefix: str) -> list[str]:
        """Names of the topics that start with `prefix`."""
        return [
            name
            for name in self._admin.list_topics(timeout=TIMEOUT).topics
            if name.startswith(prefix)
        ]

    def fill(self, topic: str, workload: Workload) -> float:
        """Produce all events, keyed by murmur2; return the seconds it took."""
        failures: list[KafkaError] = []

        def delivered(error: KafkaError | None, _message: Any) -> None:
            if error is not None:
                failures.append(error)

        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "enable.idempotence": True,
                "partitioner": "murmur2_random",
                "linger.ms": 50,
                "log_level": 3,  # a broker just started makes it warn while it waits
                "batch.size": 262_144,
                "queue.buffering.max.messages": 200_000,
            }
        )
        begun = time.monotonic()
        for key, value in workload.messages():
            while True:
                try:
                    producer.produce(topic, value, key, on_delivery=delivered)
                    break
                except BufferError:
                    producer.poll(0.05)
            producer.poll(0)
        if producer.flush(TIMEOUT) or failures:
            msg = f"producing to {topic} failed: {failures[:1] or 'still unsent at the deadline'}"
            raise RuntimeError(msg)
        return time.monotonic() - begun


class Updates:
    """What a read_committed reader has seen of an updates topic so far.

    Attributes
    ----------
    appended : list[int]
        When the broker appended each update (ms), in the order seen.
    counts : dict[bytes, int]
        Updates seen by key.
    last : dict[bytes, bytes]
        The newest update of each key.
    """

    def __init__(self, bootstrap_servers: str, topic: str, partitions: int) -> None:
        self.appended: list[int] = []
        self.counts: dict[bytes, int] = {}
        self.last: dict[bytes, bytes] = {}
        self._reader = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": f"{topic}-reader",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 20,
                "fetch.error.backoff.ms": 20,
            }
        )
        self._reader.assign([TopicPartition(topic, p, 0) for p in range(partitions)])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._reader.close()

    def poll(self) -> int:
        """Take what has become visible, waiting up to 20 ms; return how many updates that is."""
        messages = self._reader.consume(10_000, 0.02)
        for message in messages:
            if message.error() is not None:
                raise KafkaException(message.error())
            key = message.key() or b""
            self.appended.append(message.timestamp()[1])
            self.counts[key] = self.counts.get(key, 0) + 1
            self.last[key] = message.value() or b""
        return len(messages)
