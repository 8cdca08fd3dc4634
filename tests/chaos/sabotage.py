"""Workers broken on purpose, to show that the checker sees it: `sabotage.py KIND worker -c FILE`.

``cursor``: a task goes on at the offset that was committed to its group, as consumers without a
state do, and not at the cursor of its state. ``transactions``: updates, pages and cursor leave by
an ordinary idempotent producer, one after the other.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer, TopicPartition

from worker.cli import main
from worker.pages import CURSOR_KEY, pack_cursor
from worker.pipeline import Pipeline
from worker.transport import job
from worker.transport.producer import TaskProducer

if TYPE_CHECKING:
    from worker.transport.producer import Transaction

BETWEEN_SECONDS = 0.2
"""Between the updates and the state, when transactions are off: as on a busy broker."""


def ignore_cursor() -> None:
    """Have tasks take the group's offsets for their place."""
    restore = Pipeline.restore
    build = job.Job._build
    settings: dict[str, str] = {}

    def build_of(self: Any, *arguments: Any) -> Any:
        kafka = self.settings.kafka
        settings.update(
            {"bootstrap.servers": ",".join(kafka.bootstrap_servers), "group.id": kafka.group}
        )
        return build(self, *arguments)

    def restore_elsewhere(self: Pipeline, *arguments: Any) -> bool:
        found = restore(self, *arguments)
        if found:
            place = TopicPartition(self.cursor.topic, self._partition)
            consumer = Consumer(settings)
            [committed] = consumer.committed([place], timeout=20)
            consumer.close()
            self._cursor = replace(self._cursor, offset=max(0, committed.offset), index=0)
        return found

    job.Job._build = build_of
    Pipeline.restore = restore_elsewhere


def do_without_transactions() -> None:
    """Have tasks write what belongs together by and by."""

    def open_plain(self: TaskProducer) -> None:
        settings = dict(self._settings)
        for name in ("transactional.id", "transaction.timeout.ms"):
            del settings[name]
        self._producer = Producer(settings)

    def commit(self: TaskProducer, transaction: Transaction) -> None:
        producer = self._opened()
        updates, rejected, changelog = self._topics
        self._put(producer, updates, transaction.updates)
        self._put(producer, rejected, transaction.rejections)
        producer.flush(30)
        time.sleep(BETWEEN_SECONDS)
        for key, value in (*transaction.pages, (CURSOR_KEY, pack_cursor(transaction.cursor))):
            producer.produce(changelog, value, key, self._partition)
        producer.flush(30)

    TaskProducer.open = open_plain
    TaskProducer.commit = commit


KINDS = {"cursor": ignore_cursor, "transactions": do_without_transactions}

if __name__ == "__main__":
    KINDS[sys.argv.pop(1)]()
    main()
