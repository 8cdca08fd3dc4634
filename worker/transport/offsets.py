"""The offsets committed to the job's group: for lag tools, and a hand in them is noticed.

Nothing relies on them, since a task goes by its cursor. So who moves them with Kafka's own tools
would move nothing; what the worker commits carries a mark, and what does not is answered.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

from config.errors import DecisionError
from config.log import LIBRDKAFKA
from worker.transport.changelog import STALL_SECONDS, RestoreError
from worker.transport.consumer import OFFSET_MARK

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from threading import Event

    from worker.pages import Cursor

_CALL_SECONDS: Final = 5.0


class GroupOffset(NamedTuple):
    """An offset committed to the group, and whether the worker (or `rocstream reset`) did it."""

    offset: int
    ours: bool


def group_offsets(
    client: Mapping[str, str], group: str, topic: str, partitions: Iterable[int], cancelled: Event
) -> dict[int, GroupOffset]:
    """Return what is committed to the group, by partition; left out where nothing is. Blocks.

    Waits for a broker that is away, up to `STALL_SECONDS`.

    Parameters
    ----------
    client
        librdkafka settings of the connection.
    group, topic, partitions
        What to ask for.
    cancelled
        Makes the waiting end.

    Raises
    ------
    RestoreError
        When they could not be had in time, or `cancelled` was set meanwhile.
    """
    settings: dict[str, Any] = {
        **client,
        "group.id": group,
        "enable.auto.commit": False,
        "logger": logging.getLogger(LIBRDKAFKA),
    }
    # Never subscribed, it does not join the group.
    consumer = Consumer(settings)
    wanted = [TopicPartition(topic, partition) for partition in partitions]
    deadline = time.monotonic() + STALL_SECONDS
    try:
        while True:
            try:
                found = consumer.committed(wanted, _CALL_SECONDS)
            except KafkaException as error:
                why = error.args[0].str()
                if cancelled.is_set():
                    raise RestoreError("reading the group's offsets was given up") from error
                if time.monotonic() > deadline:
                    raise RestoreError(
                        f"the offsets of the group {group} could not be had for "
                        f"{STALL_SECONDS:.0f} s: {why}"
                    ) from error
            else:
                break
    finally:
        consumer.close()
    return {
        place.partition: GroupOffset(place.offset, place.metadata == OFFSET_MARK)
        for place in found
        if place.offset >= 0
    }


def refuse_moved_by_hand(group: str, partition: int, cursor: Cursor, found: GroupOffset) -> None:
    """Refuse to go on when somebody has moved the group to another place than the state's.

    Parameters
    ----------
    group, partition
        The job and the task, for the sentence.
    cursor
        Where the task's state ends.
    found
        What is committed to the group.

    Raises
    ------
    DecisionError
        With both offsets and the cure.
    """
    if found.ours or found.offset == cursor.offset:
        return
    raise DecisionError(
        f"the offset of the group {group} for {cursor.topic}, partition {partition}, was set to "
        f"{found.offset} by hand, while the state ends at {cursor.offset}: move the job with "
        f"`rocstream reset`, or set the offset back to {cursor.offset} to go on as before"
    )
