"""What a worker would find of the job's state if it started now, for `check`."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Final, NamedTuple

from aiokafka import errors

from config.errors import RocstreamError
from config.kafka import librdkafka
from worker.pipeline import Pipeline
from worker.transport import epochs, footing
from worker.transport.changelog import Reader, RestoreError
from worker.transport.connection import asking, quiet
from worker.transport.offsets import refuse_lost_state, refuse_moved_by_hand

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config import Settings
    from worker.pages import Cursor
    from worker.transport.epochs import End
    from worker.transport.layout import Layout
    from worker.transport.offsets import GroupOffset

SECONDS: Final = 20.0
"""For reading the state of all partitions; what is not read by then is not looked at."""


class State(NamedTuple):
    """What was found.

    Attributes
    ----------
    kept, empty
        How many partitions have a state, and how many have none yet.
    unread
        Partitions that there was no time for.
    refusals
        What a worker would refuse to start for, by partition.
    """

    kept: int
    empty: int
    unread: int
    refusals: dict[int, RocstreamError]


def state(settings: Settings, layout: Layout, offsets: Mapping[int, GroupOffset]) -> State:
    """Read the state of each partition as a worker would at its start; change nothing.

    Parameters
    ----------
    settings, layout
        The job's settings, and what it finds at the broker.
    offsets
        What is committed to its group.
    """
    given_up = threading.Event()
    timer = threading.Timer(SECONDS, given_up.set)
    timer.daemon = True
    timer.start()
    reader = Reader(librdkafka(settings, "consumer"), settings.kafka.group)
    kept: dict[int, Cursor] = {}
    empty = 0
    refusals: dict[int, RocstreamError] = {}
    try:
        for partition in range(layout.partitions):
            try:
                cursor = _look(settings, layout, partition, reader, offsets, given_up)
            except RestoreError:
                if not given_up.is_set():
                    raise
                break
            except RocstreamError as error:
                refusals[partition] = error
            else:
                if cursor is None:
                    empty += 1
                else:
                    kept[partition] = cursor
    finally:
        timer.cancel()
    topic = settings.topics.events
    known = {partition: one.epoch for partition, one in kept.items() if one.epoch != epochs.UNKNOWN}
    for partition, end in _ends(settings, known).items():
        cursor = kept[partition]
        if end.cuts(cursor.taken, cursor.epoch):
            problem = footing.replaced(cursor.offset, cursor.epoch, end)
            refusals[partition] = footing.refused(problem, topic, partition)
            del kept[partition]
    looked_at = len(kept) + empty + len(refusals)
    return State(len(kept), empty, layout.partitions - looked_at, refusals)


def _look(
    settings: Settings,
    layout: Layout,
    partition: int,
    reader: Reader,
    offsets: Mapping[int, GroupOffset],
    given_up: threading.Event,
) -> Cursor | None:
    """Return where a partition's state ends, if it has one; raise what it would be refused for."""
    topic = settings.topics.events
    read = reader.read(layout.changelog, topic, [partition], given_up)
    pipeline = Pipeline(settings, topic, partition, topic_id=layout.events_id)
    found = offsets.get(partition)
    if not pipeline.restore(read.records[partition]):
        if found is not None:
            group = settings.kafka.group
            refuse_lost_state(group, layout.changelog, topic, partition, found)
        return None
    cursor = pipeline.cursor
    # Asked for once more: a worker that runs has moved on meanwhile, and so has the log.
    extent = reader.extents(topic, [partition], given_up)[partition]
    if (gap := footing.gap(cursor, topic, layout.events_id, extent)) is not None:
        raise footing.refused(gap, topic, partition)
    if found is not None:
        refuse_moved_by_hand(settings.kafka.group, partition, cursor, found)
    return cursor


def _ends(settings: Settings, wanted: Mapping[int, int]) -> dict[int, End]:
    """Ask the leaders where epochs end, as `epochs.ends` does; blocks some seconds.

    Raises
    ------
    RocstreamError
        When no broker lets us in.
    """
    topic = settings.topics.events

    async def ask() -> dict[int, End]:
        async with asking(settings) as client:
            await client.set_topics([topic])
            return await epochs.ends(client, topic, wanted)

    if not wanted:
        return {}
    try:
        with quiet():
            return asyncio.run(ask())
    except errors.KafkaError as error:
        raise RocstreamError(
            f"where the leader epochs of {topic} end could not be asked, with the client that a "
            f"worker reads with: {error}"
        ) from error
