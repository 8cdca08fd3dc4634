"""Produces the seeded stream at a steady rate, a part of it in transactions that may abort."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, Producer
from stream import records

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stream import Record

SLICE_SECONDS = 0.05
PLAIN = {
    "partitioner": "murmur2_random",
    "linger.ms": 5,
    # Without it a retry may change the order, or write twice.
    "enable.idempotence": True,
    "message.timeout.ms": 300_000,
    "log_level": 0,
}


class Source:
    """Two producers at work in threads of their own.

    Parameters
    ----------
    servers, topic
        Where to.
    rate
        Events a second, of both together.
    seed
        Of the stream, and of which transactions abort.
    """

    def __init__(self, servers: str, topic: str, rate: float, seed: int) -> None:
        self._servers = servers
        self._topic = topic
        self._rate = rate
        self._seed = seed
        self._stop = threading.Event()
        self.events = 0
        self.committed = 0
        self.aborted = 0
        self.errors: list[str] = []
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,), daemon=True)
            for work in (self._produce, self._produce_in_transactions)
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self, seconds: float = 120) -> None:
        """End; what was begun is delivered or aborted."""
        self._stop.set()
        for thread in self._threads:
            thread.join(seconds)
            if thread.is_alive():
                self.errors.append("a producer of the source did not end")
        if self.errors:
            raise RuntimeError(f"the source failed: {self.errors}")

    def _guarded(self, work: object) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - told by `stop`
            self.errors.append(repr(error))

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": self._servers, **PLAIN})
        stream = records(self._seed)
        failed: list[str] = []
        began, sent = time.monotonic(), 0
        while not self._stop.wait(SLICE_SECONDS):
            due = (time.monotonic() - began) * self._rate * 0.75
            while sent < due and not self._stop.is_set():
                record = next(stream)
                _put(producer, self._topic, record, failed)
                sent += record.events
                self.events += record.events
            producer.poll(0)
        if producer.flush(120) or failed:
            raise RuntimeError(f"not delivered: {failed[:1]}")

    def _produce_in_transactions(self) -> None:
        rng = random.Random(self._seed + 1)
        stream = records(self._seed + 2)
        producer = self._transactional()
        while not self._stop.wait(1.0):
            goal, batch = self._rate * 0.25 * (1.0 + SLICE_SECONDS), []
            while sum(record.events for record in batch) < goal:
                batch.append(next(stream))
            try:
                producer.begin_transaction()
                for record in batch:
                    _put(producer, self._topic, record, [])
                if rng.random() < 0.3:
                    # What is still in the client would be dropped there, and prove nothing.
                    producer.flush(20)
                    producer.abort_transaction(30)
                    self.aborted += 1
                else:
                    producer.commit_transaction(30)
                    self.committed += 1
                    self.events += sum(record.events for record in batch)
            except KafkaException:
                # The broker was away; whatever became of the transaction, it is over after this.
                with contextlib.suppress(KafkaException):
                    producer.abort_transaction(1)
                producer = self._transactional()

    def _transactional(self) -> Producer:
        producer = Producer(
            {
                "bootstrap.servers": self._servers,
                **PLAIN,
                "message.timeout.ms": 20_000,
                "transaction.timeout.ms": 20_000,
                "transactional.id": f"{self._topic}-source",
            }
        )
        while True:
            try:
                producer.init_transactions(10)
            except KafkaException as raised:
                if not raised.args[0].retriable():
                    raise
            else:
                return producer


def publish(servers: str, topic: str, batch: Iterable[Record]) -> None:
    """Publish some records, and wait until they are there."""
    producer = Producer({"bootstrap.servers": servers, **PLAIN})
    failed: list[str] = []
    for record in batch:
        _put(producer, topic, record, failed)
    if producer.flush(60) or failed:
        raise RuntimeError(f"not delivered: {failed[:1]}")


def _put(producer: Producer, topic: str, record: Record, failed: list[str]) -> None:
    while True:
        try:
            producer.produce(
                topic,
                record.value,
                record.key,
                on_delivery=lambda error, _: failed.append(str(error)) if error else None,
            )
        except BufferError:
            producer.poll(0.1)
        else:
            return
