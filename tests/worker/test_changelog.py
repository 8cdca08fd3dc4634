"""Reading the changelog with no broker there: it ends, and says what it waited for."""

from __future__ import annotations

from threading import Event

import pytest
from confluent_kafka import Consumer, TopicPartition
from jobs import free_port

from worker.transport import changelog as module
from worker.transport.changelog import Reader, RestoreError

GONE = {
    "bootstrap.servers": f"127.0.0.1:{free_port()}",
    "log_level": "0",
}


def test_a_changelog_that_does_not_come_is_waited_for_so_long_and_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "STALL_SECONDS", 0.3)
    consumer = Consumer({**GONE, "group.id": "job"})
    read = module._Read({0: {}}, {0: 70})
    try:
        consumer.assign([TopicPartition("changelog", 0, 0)])
        with pytest.raises(RestoreError, match=r"stood still for 0 s; .* by partition: {0: 70}"):
            module._drain(consumer, "changelog", read, Event())
    finally:
        consumer.close()


def test_a_read_that_is_given_up_asks_nobody() -> None:
    given_up = Event()
    given_up.set()
    with pytest.raises(RestoreError, match="given up"):
        Reader(GONE, "job").read("changelog", "events", [0], given_up)
