"""Moves a job to another place in its input and drops its state: what `rocstream reset` does.

A task's state is what its changelog partition holds, and its place is the cursor there; so a
reset is a write to the changelog, by the same transactional producer that the task itself would
use. Opening it fences whoever still works on the task.

A partition moves in one transaction: a cursor without monitors, and a tombstone for every page.
Where that would be too much for one, the cursor and the first tombstones go first. From then on
the pages that are left belong to no monitor that the cursor knows, which is the case of a
monitor that was removed from the settings: a worker passes them over, and its first transaction
gives them their tombstones. So whenever a reset ends, by a crash or not, a partition stands
either where it stood, with its windows, or where it was sent, with empty ones; and running the
same reset again finishes it.
"""

from __future__ import annotations

import logging
from enum import Enum
from threading import Event
from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from config.errors import RocstreamError, SettingsError
from config.kafka import librdkafka
from config.log import LIBRDKAFKA
from worker.admin import CALL_SECONDS, Cluster
from worker.pages import CURSOR_KEY, Cursor, StateError, parse_key, unpack_cursor
from worker.transport.changelog import Reader
from worker.transport.offsets import OFFSET_MARK
from worker.transport.producer import TaskProducer, Transaction

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from config import Settings
    from worker.transport.changelog import Extent
    from worker.transport.layout import Layout

TOMBSTONES: Final = 200_000
"""Tombstones in one transaction at the most: some seconds of writing, under its timeout."""


class Kind(Enum):
    """What a `Target`'s number means."""

    EARLIEST = "earliest"
    LATEST = "latest"
    DATETIME = "datetime"
    OFFSET = "offset"


class Target(NamedTuple):
    """Where to: ``value`` is in ms since 1970 for DATETIME, the offset for OFFSET."""

    kind: Kind
    value: int = 0


class Move(NamedTuple):
    """What becomes of one partition.

    ``came_from`` is None where there is no state that tells; ``remarks`` say what is unusual.
    """

    partition: int
    came_from: int | None
    to: int
    pages: int
    remarks: tuple[str, ...] = ()


def transactions(
    keys: Iterable[bytes], cursor: Cursor, limit: int = TOMBSTONES
) -> Iterator[Transaction]:
    """Yield what has to be committed, in order, to leave nothing but the cursor in a changelog.

    Parameters
    ----------
    keys
        Of all live records of the changelog partition.
    cursor
        Where the task goes on; it must know no monitors.
    limit
        Tombstones to a transaction.
    """
    # Keys that no worker can read would stop one, so a crash should not leave them behind.
    dropped = sorted((key for key in keys if key != CURSOR_KEY), key=_readable)
    for start in range(0, max(len(dropped), 1), limit):
        pages: list[tuple[bytes, bytes | None]] = [
            (key, None) for key in dropped[start : start + limit]
        ]
        yield Transaction([], [], pages, cursor)


class Reset:
    """A job about to be moved. Every method blocks.

    Parameters
    ----------
    settings
        The job's settings.
    layout
        What it finds at the broker.
    """

    def __init__(self, settings: Settings, layout: Layout) -> None:
        self._settings = settings
        self._layout = layout
        self._group = settings.kafka.group
        self._events = settings.topics.events
        self._cluster = Cluster(settings)
        self._reader = Reader(librdkafka(settings, "consumer"), self._group)

    def refuse_while_running(self) -> None:
        """Refuse while the group has members.

        Raises
        ------
        RocstreamError
            With the client and host of each.
        """
        found = self._cluster.client.describe_consumer_groups(
            [self._group], request_timeout=CALL_SECONDS
        )[self._group]
        try:
            members = found.result().members
        except KafkaException as error:
            if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
                return
            raise RocstreamError(
                f"whether workers of the group {self._group} run could not be told: "
                f"{error.args[0].str()}"
            ) from error
        if members:
            shown = ", ".join(
                sorted(f"{one.client_id} at {one.host.lstrip('/')}" for one in members)
            )
            count = "a worker runs" if len(members) == 1 else f"{len(members)} workers run"
            raise RocstreamError(
                f"{count} in the group {self._group} ({shown}): stop them first, then reset (one "
                "that was killed counts for some seconds more)"
            )

    def moves(self, target: Target) -> list[Move]:
        """Work out what becomes of each partition; changes nothing. O(state).

        Raises
        ------
        SettingsError
            When the target is an offset that a partition does not have.
        RocstreamError
            When the broker does not tell.
        """
        # Asked before the logs' ends, so that what it gives never lies behind them.
        times = self._first_since(target.value) if target.kind is Kind.DATETIME else {}
        moves = []
        outside = []
        for partition in range(self._layout.partitions):
            # One after the other: the state of a whole job need not fit into memory here.
            read = self._reader.read(self._layout.changelog, self._events, [partition], Event())
            extent, records = read.inputs[partition], read.records[partition]
            to, late = _destination(target, extent, times.get(partition))
            if to is None:
                outside.append(f"partition {partition} holds {extent.start} to {extent.end}")
                continue
            came_from, unusual = self._place(records)
            remarks = tuple(filter(None, (unusual, late)))
            moves.append(
                Move(partition, came_from, to, len(records.keys() - {CURSOR_KEY}), remarks)
            )
        if outside:
            raise SettingsError(
                f"--to-offset {target.value} lies outside the log of {self._events} "
                f"({', '.join(outside)}): give an offset that every partition has, or "
                "--to-datetime, --to-earliest or --to-latest"
            )
        return moves

    def apply(self, moves: Sequence[Move]) -> Iterator[Move]:
        """Move the partitions one after the other, yielding each that is done; then the group.

        Raises
        ------
        RocstreamError
            When workers run, or the broker refuses; it says what was moved by then.
        """
        self.refuse_while_running()
        done: list[int] = []
        for move in moves:
            try:
                self._move(move)
            except (RocstreamError, KafkaException) as error:
                why = error.args[0].str() if isinstance(error, KafkaException) else str(error)
                moved = f"partitions {', '.join(map(str, done))} are" if done else "nothing is"
                raise RocstreamError(
                    f"partition {move.partition} was not moved: {why}; {moved} "
                    "moved so far: see that no worker runs, then reset again"
                ) from error
            done.append(move.partition)
            yield move
        self._commit_offsets(moves)

    def _place(self, records: Mapping[bytes, bytes]) -> tuple[int | None, str]:
        """Return where the state ends, and what is to be said about it."""
        if CURSOR_KEY not in records:
            return None, "its state has no cursor" if records else "it has no state yet"
        try:
            cursor = unpack_cursor(records[CURSOR_KEY])
        except StateError:
            return None, "its state cannot be read"
        if cursor.topic_id and self._layout.events_id not in {"", cursor.topic_id}:
            return None, "its state is of a topic that was deleted"
        return cursor.offset, ""

    def _first_since(self, milliseconds: int) -> dict[int, int]:
        """Return the first offset with a record that late, by partition; -1 where there is none."""
        consumer = Consumer(
            {
                **librdkafka(self._settings, "consumer"),
                "group.id": self._group,
                "isolation.level": "read_committed",
                "logger": logging.getLogger(LIBRDKAFKA),
            }
        )
        wanted = [
            TopicPartition(self._events, partition, milliseconds)
            for partition in range(self._layout.partitions)
        ]
        try:
            found = consumer.offsets_for_times(wanted, timeout=CALL_SECONDS)
            _check(found)
        except KafkaException as error:
            raise RocstreamError(
                f"the offsets of {self._events} for a time could not be had: {error.args[0].str()}"
            ) from error
        finally:
            consumer.close()
        return {place.partition: place.offset for place in found}

    def _move(self, move: Move) -> None:
        cursor = Cursor(
            self._events, self._layout.events_id, move.to, self._settings.event_fingerprint()
        )
        producer = TaskProducer.of(self._settings, self._layout, move.partition)
        try:
            producer.open()
            # Read once more: only behind the fence it is all that there will ever be.
            read = self._reader.read(
                self._layout.changelog, self._events, [move.partition], Event()
            )
            for transaction in transactions(read.records[move.partition], cursor):
                producer.commit(transaction)
        finally:
            producer.close()

    def _commit_offsets(self, moves: Sequence[Move]) -> None:
        places = [
            TopicPartition(self._events, move.partition, move.to, metadata=OFFSET_MARK)
            for move in moves
        ]
        asked = self._cluster.client.alter_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(self._group, places)], request_timeout=CALL_SECONDS
        )
        try:
            _check(asked[self._group].result().topic_partitions or ())
        except KafkaException as error:
            raise RocstreamError(
                f"the job is moved, but not the offsets of its group {self._group}, which lag "
                f"tools read ({error.args[0].str()}): see that no worker runs, then reset again"
            ) from error


def _destination(target: Target, extent: Extent, since: int | None) -> tuple[int | None, str]:
    """Return the offset to go to, None where the log has no such offset, and a remark."""
    if target.kind is Kind.EARLIEST:
        return extent.start, ""
    if target.kind is Kind.LATEST:
        return extent.end, ""
    if target.kind is Kind.OFFSET:
        return (target.value if extent.start <= target.value <= extent.end else None), ""
    if since is None or since < 0:
        return extent.end, "no record is that late, so it goes to the end"
    return since, ""


def _check(places: Iterable[TopicPartition]) -> None:
    """Raise what the broker says of a single partition, which the client only notes."""
    for place in places:
        if place.error is not None:
            raise KafkaException(place.error)


def _readable(key: bytes) -> bool:
    try:
        parse_key(key)
    except StateError:
        return False
    return True
