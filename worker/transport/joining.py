"""A worker that joins its group: what it must know, and whether the coordinator is silent.

It answers a join when all members have come, so that a late answer tells nothing of the broker.
Meanwhile it is asked on another connection who the coordinator is: that it answers at once, if it
answers at all.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final

import structlog
from aiokafka.errors import KafkaError
from aiokafka.protocol.coordination import FindCoordinatorRequest
from aiokafka.protocol.group import JoinGroupRequest, SyncGroupRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from aiokafka.client import AIOKafkaClient

log = structlog.get_logger(__name__)

REQUESTS: Final = (JoinGroupRequest, SyncGroupRequest)

PROBE_SECONDS: Final = 2.0
"""How often the coordinator is asked while it does not answer a join."""

TELL_PROBES: Final = 5
"""So many answers after which a join that is not answered is told: in this time a member that has
died is given up, and one that lives commits what it has and comes."""

AGAIN_PROBES: Final = 15
"""Answers between two tellings."""

TOPIC_LOOKS: Final = 20
TOPIC_PAUSE_SECONDS: Final = 0.25

_GROUP_TYPE: Final = 0


async def know_topic(client: AIOKafkaClient, topic: str) -> None:
    """See to it that whoever may have to assign a topic's partitions knows them.

    Faust assigns nothing of a topic that its client has not heard of, and nothing looks again for
    a minute. After `TOPIC_LOOKS` a topic is taken for gone.
    """
    for _ in range(TOPIC_LOOKS):
        if client.cluster.partitions_for_topic(topic) is not None:
            return
        await client.force_metadata_update()
        await asyncio.sleep(TOPIC_PAUSE_SECONDS)


@contextlib.asynccontextmanager
async def probing(
    ask: Callable[[Any], Awaitable[Any]], group: str, on_answer: Callable[[], None]
) -> AsyncIterator[None]:
    """Ask a coordinator whether it is there for as long as a request of `REQUESTS` is under way.

    Parameters
    ----------
    ask
        Sends a request to it and takes note of what does not come back.
    group
        Whose coordinator it is.
    on_answer
        Called each time that it has answered.
    """
    probe = asyncio.create_task(_probe(ask, group, on_answer))
    try:
        yield
    finally:
        probe.cancel()
        await asyncio.wait([probe])
        # Whatever it ran into, the answer to the join counts.
        if not probe.cancelled() and (error := probe.exception()) is not None:
            log.warning("could not ask whether the coordinator is there", error=repr(error))


async def _probe(
    ask: Callable[[Any], Awaitable[Any]], group: str, on_answer: Callable[[], None]
) -> None:
    answers = 0
    while True:
        await asyncio.sleep(PROBE_SECONDS)
        try:
            await ask(FindCoordinatorRequest(group, _GROUP_TYPE))
        except KafkaError:
            # Noted by who was asked to send it.
            continue
        on_answer()
        answers += 1
        if answers % AGAIN_PROBES == TELL_PROBES:
            log.warning(
                "waiting for the group to form",
                group=group,
                error="its coordinator is there, and has not answered the join: other members "
                "have not come yet, or the answer was lost",
                waited_s=answers * PROBE_SECONDS,
            )
