"""A topic as the source of a replay: partition after partition, committed records alone.

Nothing is subscribed and nothing committed: the consumer group of the live job never hears of it.
"""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from config.errors import RocstreamError, SettingsError
from config.kafka import librdkafka
from config.log import LIBRDKAFKA
from worker.admin import BrokerAwayError, Cluster
from worker.events import Parser
from worker.events.record import Taken
from worker.replay.records import Log, RecordRun
from worker.replay.span import Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from confluent_kafka import Message

    from config import EventSettings, Settings
    from worker.replay.records import Run
    from worker.replay.span import Bound

STALL_SECONDS: Final = 120.0
"""A read that brings nothing for so long, although its end is not reached, has failed."""

ANSWER_SECONDS: Final = 10.0
WARM_RECORDS: Final = 20_000
"""How far the first look before `--from` goes back; each further look goes twice as far."""

_RUN: Final = 5_000
_PASSING: Final = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
        KafkaError._TRANSPORT,  # noqa: SLF001
        KafkaError._TIMED_OUT,  # noqa: SLF001
        KafkaError._RESOLVE,  # noqa: SLF001
    }
)


class Part(NamedTuple):
    """What is read of one partition: [first, stop), of which [since, stop) is published."""

    number: int
    first: int
    since: int
    stop: int
    counted: bool


class TopicSource:
    """The events topic of a job, or another topic with events like it.

    Parameters
    ----------
    settings
        The job's settings: where the brokers are, and how records are read.
    span
        What to replay of each partition.
    topic
        Its name; None is the events topic.
    partitions
        Numbers of the partitions to read; None reads all.
    window
        Events that the largest window holds: so many of each key are read before the start.
    """

    def __init__(
        self,
        settings: Settings,
        span: Span | None = None,
        *,
        topic: str | None = None,
        partitions: Sequence[int] | None = None,
        window: int = 0,
    ) -> None:
        self.name = topic or settings.topics.events
        self.notes: list[str] = []
        self._span = span or Span()
        self._window = window
        self._event = settings.event
        self._servers = ", ".join(settings.kafka.bootstrap_servers)
        self._wanted = partitions
        self._client: dict[str, Any] = {
            # By default it rests for a second whenever it is a little ahead.
            "fetch.queue.backoff.ms": 5,
            "fetch.wait.max.ms": 50,
            **librdkafka(settings, "consumer"),
            # librdkafka wants a name; without subscription or commits the group never is.
            "group.id": f"{settings.kafka.group}-replay",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            "check.crcs": True,
            "logger": logging.getLogger(LIBRDKAFKA),
        }
        self._settings = settings
        self._parts: list[Part] = []
        self._read = 0

    @property
    def several(self) -> bool:
        """Whether more than one partition may be read."""
        return self._wanted is None or len(self._wanted) > 1

    @property
    def total(self) -> int | None:
        """Offsets to read; None before the first is read."""
        return sum(part.stop - part.first for part in self._parts) if self._parts else None

    def position(self) -> int:
        """Return how many offsets are read."""
        return self._read

    def partitions(self) -> list[int]:
        """Return the partitions that are read.

        Raises
        ------
        RocstreamError
            When no broker answers.
        SettingsError
            When the topic or one of the partitions does not exist, or a broker does not let us in.
        """
        self._await_broker()
        consumer = Consumer(self._client)
        try:
            return self._numbers(consumer)
        finally:
            consumer.close()

    def runs(self, readings: Sequence[EventSettings]) -> Iterator[tuple[Log, Run]]:
        """Yield the partitions one after the other, in the order of their numbers.

        Raises
        ------
        RocstreamError
            When no broker answers, or the log ends before its end was reached.
        SettingsError
            When the topic does not exist, or `--from` lies before what is kept of it.
        """
        parsers = [Parser(event) for event in readings]
        self._await_broker()
        consumer = Consumer(self._client)
        try:
            self._parts = [self._part(consumer, number) for number in self._numbers(consumer)]
            self._tell()
            for part in self._parts:
                log = Log(self.name, part.number, part.first, part.since, counted=part.counted)
                yield log, RecordRun([], part.first, parsers)
                for run in self._runs(consumer, part, parsers):
                    yield log, run
                    self._read += run.last - run.first
        except KafkaException as error:
            raise RocstreamError(f"{self.name} cannot be read: {error.args[0].str()}") from error
        finally:
            consumer.close()

    def where(self, log: Log, offset: int) -> str:
        """Say where a record stands: `topic[partition]@offset`."""
        return f"{log.topic}[{log.partition}]@{offset}"

    def _await_broker(self) -> None:
        try:
            Cluster(self._settings).wait(ANSWER_SECONDS)
        except BrokerAwayError as error:
            raise RocstreamError(f"{error}, or name a file to replay") from error

    def _numbers(self, consumer: Consumer) -> list[int]:
        try:
            topics = consumer.list_topics(timeout=ANSWER_SECONDS).topics
        except KafkaException as error:
            raise RocstreamError(
                f"{self._servers} did not answer: {error.args[0].str()}"
            ) from error
        if self.name not in topics or topics[self.name].error is not None:
            raise SettingsError(
                f"the topic {self.name} does not exist at {self._servers}: correct the name "
                "(topics.events, or --topic)"
            )
        there = sorted(topics[self.name].partitions)
        wanted = there if self._wanted is None else sorted(set(self._wanted))
        if missing := [number for number in wanted if number not in there]:
            raise SettingsError(
                f"--partition {missing[0]}: {self.name} has the partitions 0 to {there[-1]}"
            )
        return wanted

    def _part(self, consumer: Consumer, number: int) -> Part:
        found = consumer.get_watermark_offsets(
            TopicPartition(self.name, number), timeout=ANSWER_SECONDS, cached=False
        )
        if found is None:
            raise RocstreamError(
                f"the offsets of {self.name}, partition {number}, could not be had"
            )
        low, high = found
        since = self._offset(consumer, number, self._span.start, low, high)
        stop = max(self._offset(consumer, number, self._span.stop, low, high), since)
        if self._span.start.kind == "offset" and self._span.start.value < low:
            raise SettingsError(
                f"--from {self._span.start.value}: partition {number} of {self.name} holds nothing "
                f"before offset {low}, the first that retention has left: start there, or with "
                "--from earliest"
            )
        first = since
        if since > low and since < stop and not self._span.cold:
            first = self._warm(consumer, number, low, since)
        # Only from offset 0 on has one seen every event there was.
        return Part(number, first, since, stop, counted=first == 0)

    def _offset(self, consumer: Consumer, number: int, bound: Bound, low: int, high: int) -> int:
        match bound.kind:
            case "earliest":
                return low
            case "latest":
                return high
            case "offset":
                return max(min(bound.value, high), low)
        [found] = consumer.offsets_for_times(
            [TopicPartition(self.name, number, bound.value)], timeout=ANSWER_SECONDS
        )
        if found.error is not None:
            raise KafkaException(found.error)
        return high if found.offset < 0 else max(min(found.offset, high), low)

    def _warm(self, consumer: Consumer, number: int, low: int, since: int) -> int:
        """Return how far back each key met has its window full, or everything is read."""
        parser = Parser(self._event)
        seen: Counter[str] = Counter()
        first, stride = since, max(WARM_RECORDS, self._window)
        while first > low:
            begin = max(low, first - stride)
            part = Part(number, begin, begin, first, counted=False)
            for run in self._runs(consumer, part, [parser]):
                for batch in run.batches(0):
                    for key, events in batch.keys.items():
                        seen[key] += len(events)
            first, stride = begin, 2 * stride
            if seen and min(seen.values()) >= self._window:
                break
        return first

    def _tell(self) -> None:
        for part in self._parts:
            if part.since > part.first:
                self.notes.append(
                    f"partition {part.number}: windows were warmed up from offset {part.first} on, "
                    f"{part.since - part.first:,} offsets before the start at {part.since}"
                    + ("" if part.counted else "; seq is null, for slides cannot be counted")
                )
            elif part.first and part.stop > part.first:
                self.notes.append(
                    f"partition {part.number}: read from offset {part.first} with empty windows"
                    + (
                        ", the first that retention has left"
                        if self._span.start.kind == "earliest"
                        else ""
                    )
                    + "; seq is null, for slides cannot be counted"
                )
        if all(part.stop == part.since for part in self._parts):
            self.notes.append(f"{self.name} has nothing in that range: 0 events")

    def _runs(
        self, consumer: Consumer, part: Part, parsers: Sequence[Parser]
    ) -> Iterator[RecordRun]:
        """Yield the records of [first, stop) in runs."""
        number, at, stop = part.number, part.first, part.stop
        if at >= stop:
            return
        consumer.assign([TopicPartition(self.name, number, at)])
        progress = time.monotonic()
        while at < stop:
            messages = consumer.consume(_RUN, 0.2)
            if any(message.error() is not None for message in messages):
                found = messages
                messages = [message for message in found if message.error() is None]
                ends = [
                    self._note(error, message, number)
                    for message in found
                    if (error := message.error()) is not None
                ]
                at = max(at, *ends)
            now = time.monotonic()
            if messages:
                progress = now
                at = max(at, (messages[-1].offset() or 0) + 1)
                yield RecordRun(_records(messages, stop), min(at, stop), parsers)
            elif now - progress > STALL_SECONDS:
                raise RocstreamError(
                    f"{self.name}, partition {number}: nothing came for {STALL_SECONDS:.0f} s, "
                    f"although offsets {at} to {stop} are there; is the broker at {self._servers} "
                    "up?"
                )
        consumer.unassign()

    def _note(self, error: KafkaError, message: Message, number: int) -> int:
        """Return the offset that an end of the log tells; raise for what does not pass."""
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
            return message.offset() or 0
        if error.code() == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001
            raise RocstreamError(
                f"{self.name}, partition {number}: retention has removed what was to be read next: "
                "start again with --from earliest"
            )
        if not error.retriable() and error.code() not in _PASSING:
            raise RocstreamError(f"{self.name} cannot be read: {error.str()}")
        return 0


def _records(messages: Sequence[Message], stop: int) -> list[Taken]:
    """Return messages as records, those before `stop`."""
    offsets: list[Any] = [message.offset() for message in messages]
    inside = messages[: bisect_left(offsets, stop)]
    return [
        Taken(offset, message.timestamp()[1], message.key(), message.value())
        for offset, message in zip(offsets, inside, strict=False)
    ]
