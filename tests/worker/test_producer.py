"""A task's producer where no broker is: a real client all the same."""

from __future__ import annotations

import logging
import time
from threading import Thread
from typing import TYPE_CHECKING, Any, cast

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient
from jobs import free_port
from pydantic import ValidationError

from config.connection import KafkaSettings
from config.kafka import librdkafka
from config.librdkafka import ALLOWED
from config.log import LIBRDKAFKA
from worker.transport import producer as module
from worker.transport.changelog import Reader
from worker.transport.layout import Layout
from worker.transport.producer import TaskProducer, Topics, WriteError

if TYPE_CHECKING:
    from collections.abc import Callable

    from config import Settings


def test_a_producer_that_waits_says_what_its_client_says(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CALL_SECONDS", 0.2)
    topics = Topics("updates", "rejected", "changelog")
    producer = TaskProducer({"bootstrap.servers": f"127.0.0.1:{free_port()}"}, topics, 0, "job")
    caplog.set_level(logging.INFO, LIBRDKAFKA)

    def open_until_abandoned() -> None:
        with pytest.raises(WriteError):
            producer.open()

    waiting = Thread(target=open_until_abandoned)
    waiting.start()
    try:
        deadline = time.monotonic() + 20
        while not any(one.name == LIBRDKAFKA for one in caplog.records):
            assert waiting.is_alive()
            assert time.monotonic() < deadline
            waiting.join(0.05)
    finally:
        producer.abandon()
        waiting.join()
        producer.close()


@pytest.mark.parametrize(
    ("code", "cure"),
    [
        (KafkaError.INVALID_TRANSACTION_TIMEOUT, "transaction.max.timeout.ms to 15000 at least"),
        (KafkaError.INVALID_TIMESTAMP, "set the clock that is wrong"),
        (KafkaError.RECORD_LIST_TOO_LARGE, "set max.message.bytes of updates, rejected, changelog"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "`rocstream check` tells what to grant"),
    ],
)
def test_what_a_person_must_mend_is_told_with_the_cure(code: int, cure: str) -> None:
    topics = Topics("updates", "rejected", "changelog")
    producer: Any = TaskProducer({}, topics, 3, "job")
    said = str(producer._failure("could not commit", KafkaError(code)))
    assert said.startswith("task 3 (transactional id job-3) could not commit: Broker: ")
    assert cure in said


@pytest.mark.parametrize("name", sorted(ALLOWED))
def test_what_the_settings_take_every_client_of_a_worker_takes(
    settings_of: Callable[..., Settings], name: str
) -> None:
    settings = settings_of()
    for value in ("-1", "0", "1", "1000", "14000", "60000", str(2**31 - 1), "true"):
        try:
            kafka = KafkaSettings(
                bootstrap_servers=("localhost:9",), group="job", client={name: value}
            )
        except ValidationError:
            continue
        settings = settings.model_copy(update={"kafka": kafka})
        made: Any = TaskProducer.of(settings, Layout(1, "", "changelog", 1_000_000), 0)
        assert Producer({**made._settings, "log_level": 0}) is not None
        reader: Any = Reader(librdkafka(settings, "consumer"), "job")
        Consumer({**reader._settings, "log_level": 0}).close()
        assert AdminClient({**librdkafka(settings, "admin"), "log_level": 0}) is not None


@pytest.mark.parametrize(
    ("wanted", "taken", "batch"),
    [(None, 700_000, 700_000), (900_000, 700_000, 700_000), (9, 700_000, 9)],
)
def test_a_batch_is_no_larger_than_topics_take(
    settings_of: Callable[..., Settings], wanted: int | None, taken: int, batch: int
) -> None:
    settings = settings_of()
    client = {} if wanted is None else {"batch.size": str(wanted)}
    kafka = settings.kafka.model_copy(update={"client": client})
    settings = settings.model_copy(update={"kafka": kafka})
    layout = Layout(1, "", "changelog", 1_000_000, batch_bytes=taken)
    made: Any = cast("Any", TaskProducer.of(settings, layout, 0))
    assert made._settings["batch.size"] == str(batch)
