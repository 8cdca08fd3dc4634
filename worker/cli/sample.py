"""Looks at the newest records of the events topic as the worker would read them, for `check`."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from config.errors import RocstreamError
from config.kafka import librdkafka
from worker.events import Parser
from worker.events.record import Taken

if TYPE_CHECKING:
    from config import Settings

RECORDS: Final = 20_000
"""Records to look at in all, split over the partitions."""

SECONDS: Final = 15.0
_CALL_SECONDS: Final = 10.0
_RUN: Final = 1_000


class Sample(NamedTuple):
    """What was seen.

    Parameters
    ----------
    records
        How many were looked at.
    keys
        How many keys were in them.
    scattered
        Keys in more than one partition, with those.
    rejected
        How many records the worker would refuse, wholly or in part.
    first_rejection
        Why, and where, of the first.
    unlabelled
        How many of their events have no label, so that the worker would skip them.
    """

    records: int
    keys: int
    scattered: dict[str, set[int]]
    rejected: int
    first_rejection: str
    unlabelled: int


def sample(settings: Settings, partitions: int) -> Sample:
    """Read the newest committed records of each partition of the events topic.

    Raises
    ------
    RocstreamError
        When they cannot be read.
    """
    found = _read(settings, partitions)
    parser = Parser(settings.event)
    places: defaultdict[str, set[int]] = defaultdict(set)
    rejected, first, unlabelled = 0, "", 0
    for partition, records in sorted(found.items()):
        for batch in parser.batches(records):
            for key in batch.keys:
                places[key].add(partition)
            rejected += len(batch.rejections)
            unlabelled += batch.counts["unlabelled"]
            if batch.rejections and not first:
                one = batch.rejections[0]
                first = f"{one.sentence} (partition {partition}, offset {one.offset})"
    scattered = {key: where for key, where in places.items() if len(where) > 1}
    looked_at = sum(map(len, found.values()))
    return Sample(looked_at, len(places), scattered, rejected, first, unlabelled)


def _read(settings: Settings, partitions: int) -> dict[int, list[Taken]]:
    topic = settings.topics.events
    consumer = Consumer(
        {
            "log_level": 0,
            **librdkafka(settings, "consumer"),
            # Without subscription or commits it joins nothing; under any other name the user would
            # need one more permission.
            "group.id": settings.kafka.group,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
    )
    try:
        starts = []
        each = max(RECORDS // partitions, 1)
        for number in range(partitions):
            low, high = consumer.get_watermark_offsets(
                TopicPartition(topic, number), timeout=_CALL_SECONDS
            )
            if high > low:
                starts.append(TopicPartition(topic, number, max(low, high - each)))
        consumer.assign(starts)
        return _consume(consumer, {start.partition for start in starts})
    except KafkaException as error:
        raise RocstreamError(f"{topic} cannot be read: {error.args[0].str()}") from error
    finally:
        consumer.close()


def _consume(consumer: Consumer, unread: set[int]) -> dict[int, list[Taken]]:
    found: defaultdict[int, list[Taken]] = defaultdict(list)
    deadline = time.monotonic() + SECONDS
    while unread and time.monotonic() < deadline:
        for message in consumer.consume(_RUN, timeout=0.2):
            partition = message.partition()
            error = message.error()
            if partition is None:
                continue
            if error is None:
                found[partition].append(
                    Taken(
                        message.offset() or 0,
                        message.timestamp()[1],
                        message.key(),
                        message.value(),
                    )
                )
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                unread.discard(partition)
            elif not error.retriable():
                raise KafkaException(error)
    return found
