"""A topic as the source of a replay: partition after partition, committed records alone.

Nothing is subscribed and nothing committed: the consumer group of the live job never hears of it.
Records come as the worker gets them, in blocks of a fetch (`worker.transport.reader`); what there
is to read is asked with confluent-kafka.
"""

from __future__ import annotations

import importlib
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from config.errors import RocstreamError, SettingsError
from worker.admin import BrokerAwayError, Cluster
from worker.events import Parser
from worker.replay.records import Log, RecordRun
from worker.replay.span import Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from confluent_kafka.admin import AdminClient

    from config import EventSettings, Settings
    from worker.events import Batch, Stop
    from worker.replay.records import Run
    from worker.replay.span import Bound
    from worker.transport.reader import Reader

ANSWER_SECONDS: Final = 10.0
WARM_RECORDS: Final = 20_000
"""How far the first look before `--from` goes back; each further look goes twice as far."""

CHUNK: Final = 1 << 18
"""Offsets that one of several processes fetches; what comes behind them is fetched in vain."""

_RUN: Final = 100_000
"""Records of a run at the most: many, for a key's window then stays in the cache for long."""


HELD: Final = 6
"""Partitions of which it is told what they hold, where none holds what was asked for."""


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
        self._settings = settings
        self._parts: list[Part] = []
        self._there: dict[int, tuple[int, int]] = {}
        self._read = 0
        self._known = self._shared = False

    @property
    def several(self) -> bool:
        """Whether more than one partition may be read."""
        return self._wanted is None or len(self._wanted) > 1

    @property
    def total(self) -> int | None:
        """Offsets to read; None before the first is read."""
        return sum(part.stop - part.first for part in self._parts) if self._parts else None

    def load(self) -> None:
        """Import what reading takes."""
        importlib.import_module("worker.transport.reader")

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
        return self._numbers(self._broker())

    def look_up(self) -> list[Part]:
        """Find what there is to read, for the next `runs`.

        Raises
        ------
        RocstreamError, SettingsError
            As `runs`.
        """
        broker = self._broker()
        with self._reader() as reader:
            self._parts = self._look_up(broker, reader)
        self._tell()
        self._known = True
        return self._parts

    def found(self, parts: Sequence[Part], lot: tuple[int, int] | None) -> None:
        """Read what another process has looked up.

        Parameters
        ----------
        parts
            All of it.
        lot
            Which of the parts: those from the first number on, each second number; None reads all,
            in runs that are the same in each process, and fetched where they are asked for.
        """
        self._parts = list(parts if lot is None else parts[lot[0] :: lot[1]])
        self._known, self._shared = True, lot is None

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
        if not self._known:
            self.look_up()
        self._known = False
        with self._reader() as reader:
            for part in self._parts:
                done = self._read
                log = Log(self.name, part.number, part.first, part.since, counted=part.counted)
                yield log, RecordRun([], part.first, parsers)
                runs = self._chunks if self._shared else self._runs
                for run in runs(reader, part, parsers):
                    yield log, run
                    self._read = done + run.last - part.first

    def where(self, log: Log, offset: int) -> str:
        """Say where a record stands: `topic[partition]@offset`."""
        return f"{log.topic}[{log.partition}]@{offset}"

    def _reader(self) -> Reader:
        # The worker's own client takes half a second to load, which files need not wait for.
        from worker.transport.reader import Reader  # noqa: PLC0415

        return Reader(self._settings)

    def _broker(self) -> AdminClient:
        cluster = Cluster(self._settings)
        try:
            cluster.wait(ANSWER_SECONDS)
        except BrokerAwayError as error:
            raise RocstreamError(f"{error}, or name a file to replay") from error
        return cluster.client

    def _numbers(self, broker: AdminClient) -> list[int]:
        try:
            topics = broker.list_topics(timeout=ANSWER_SECONDS).topics
        except KafkaException as error:
            raise RocstreamError(
                f"{self._servers} did not answer: {error.args[0].str()}"
            ) from error
        if self.name not in topics or topics[self.name].error is not None:
            if Cluster(self._settings).hidden(self.name):
                raise RocstreamError(
                    f"the user may not see the topic {self.name}: grant READ on it"
                )
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

    def _look_up(self, broker: AdminClient, reader: Reader) -> list[Part]:
        numbers = self._numbers(broker)
        try:
            low = self._offsets(broker, numbers, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
            high = self._offsets(broker, numbers, OffsetSpec.latest())  # type: ignore[no-untyped-call]
            since = self._bound(broker, self._span.start, low, high)
            stop = self._bound(broker, self._span.stop, low, high)
        except KafkaException as error:
            raise RocstreamError(f"{self.name} cannot be read: {error.args[0].str()}") from error
        self._there = {number: (low[number], high[number]) for number in numbers}
        return [
            self._part(reader, number, low[number], since[number], stop[number])
            for number in numbers
        ]

    def _offsets(
        self, broker: AdminClient, numbers: Sequence[int], spec: OffsetSpec
    ) -> dict[int, int]:
        """Return the offset of each partition that is asked for; -1 where there is none."""
        asked = broker.list_offsets(
            {TopicPartition(self.name, number): spec for number in numbers},
            # The end of a log is then before what belongs to an open transaction.
            isolation_level=IsolationLevel.READ_COMMITTED,
            request_timeout=ANSWER_SECONDS,
        )
        return {place.partition: future.result().offset for place, future in asked.items()}

    def _bound(
        self, broker: AdminClient, bound: Bound, low: dict[int, int], high: dict[int, int]
    ) -> dict[int, int]:
        """Return where a bound lies in each partition, between its ends."""
        match bound.kind:
            case "earliest":
                return low
            case "latest":
                return high
            case "offset":
                found = dict.fromkeys(low, bound.value)
            case _:
                found = self._offsets(broker, list(low), OffsetSpec.for_timestamp(bound.value))
        return {
            number: high[number] if at < 0 else max(min(at, high[number]), low[number])
            for number, at in found.items()
        }

    def _part(self, reader: Reader, number: int, low: int, since: int, stop: int) -> Part:
        if self._span.start.kind == "offset" and self._span.start.value < low:
            raise SettingsError(
                f"--from {self._span.start.value}: partition {number} of {self.name} holds nothing "
                f"before offset {low}, the first that retention has left: start there, or with "
                "--from earliest"
            )
        first, stop = since, max(stop, since)
        if since > low and since < stop and not self._span.cold:
            first = self._warm(reader, number, low, since)
        # Only from offset 0 on has one seen every event there was.
        return Part(number, first, since, stop, counted=first == 0)

    def _warm(self, reader: Reader, number: int, low: int, since: int) -> int:
        """Return how far back each key met has its window full, or everything is read."""
        parser = Parser(self._event)
        seen: Counter[str] = Counter()
        first, stride = since, max(WARM_RECORDS, self._window)
        while first > low:
            begin = max(low, first - stride)
            part = Part(number, begin, begin, first, counted=False)
            for run in self._runs(reader, part, [parser]):
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
            self.notes.append(f"{self.name} has nothing in that range: 0 events; {self._held()}")

    def _held(self) -> str:
        """Say what there is in place of what was asked for."""
        if not any(high for _, high in self._there.values()):
            return "nothing was ever written to it"
        held = [
            f"{low:,} to {high - 1:,} in partition {number}"
            if low < high
            else f"none in partition {number}, of which retention has removed all before {high:,}"
            for number, (low, high) in self._there.items()
            if high
        ]
        more = f" and so on in {len(held) - HELD:,} more" if len(held) > HELD else ""
        return f"there are the offsets {', '.join(held[:HELD])}{more}"

    def _runs(self, reader: Reader, part: Part, parsers: Sequence[Parser]) -> Iterator[RecordRun]:
        """Yield the records of [first, stop) in runs."""
        if part.first >= part.stop:
            return
        for run in reader.runs(self.name, part.number, part.first, part.stop, _RUN):
            found = RecordRun(run.records, run.end, parsers)
            yield found if run.end <= part.stop else found.cut(part.first, part.stop)

    def _chunks(self, reader: Reader, part: Part, parsers: Sequence[Parser]) -> Iterator[FetchRun]:
        def read(first: int, stop: int) -> Iterator[RecordRun]:
            yield from self._runs(reader, part._replace(first=first, stop=stop), parsers)

        for bounds in _cuts(part):
            yield FetchRun(read, *bounds)


def _cuts(part: Part) -> Iterator[tuple[int, int]]:
    """Yield stretches of a partition of at most `CHUNK` offsets, cut where updates begin."""
    for low, high in ((part.first, part.since), (part.since, part.stop)):
        for first in range(low, high, CHUNK):
            yield first, min(first + CHUNK, high)


class FetchRun:
    """A stretch of a partition that is fetched when its records are asked for, and then kept."""

    def __init__(
        self, read: Callable[[int, int], Iterator[RecordRun]], first: int, last: int
    ) -> None:
        self._read = read
        self.first, self.last = first, last
        self._found: list[RecordRun] | None = None

    def __len__(self) -> int:
        """Return the number of offsets, each of which may have a record."""
        return self.last - self.first

    def cut(self, start: int, stop: int) -> FetchRun:
        """Return the records with offsets in [start, stop)."""
        first = min(max(start, self.first), self.last)
        return FetchRun(self._read, first, max(min(stop, self.last), first))

    def batches(
        self, reading: int, watermark: int = -1, stop: Callable[[], Stop | None] | None = None
    ) -> Iterator[Batch]:
        """Take the records apart as the reading of this number says."""
        if self._found is None:
            self._found = list(self._read(self.first, self.last))
        for run in self._found:
            yield from run.batches(reading, watermark, stop)
