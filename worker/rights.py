"""What the job's user may do with its group and its transactional ids, and where the group stands.

confluent-kafka has no calls for it, so these are made with the client that the worker's consumer
uses. Each is one that changes nothing: the broker looks at permissions first, and then refuses a
member, or a producer, that nobody ever was.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog
from aiokafka import errors
from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
from aiokafka.protocol.commit import OffsetFetchRequest
from aiokafka.protocol.group import HeartbeatRequest
from aiokafka.protocol.transaction import AddOffsetsToTxnRequest

from config.errors import RocstreamError
from worker.admin import Cluster, plans
from worker.transport.connection import asking, quiet
from worker.transport.offsets import OFFSET_MARK, GroupOffset

if TYPE_CHECKING:
    from collections.abc import Iterable

    from config import Settings

log = structlog.get_logger(__name__)

SECONDS: Final = 10.0
"""What the answers for `_MANY` partitions may take."""

_MANY: Final = 1_000
_AT_ONCE: Final = 100
"""Requests under way at a time: one after the other, each would cost the way to the broker."""

_NOBODY: Final = 0
"""A producer id that is never under a transactional id with epoch -1."""

_NO_GROUP: Final = errors.GroupAuthorizationFailedError
_NO_ID: Final = errors.TransactionalIdAuthorizationFailed


_WORK: Final = ("worker", "check", "reset")
"""Commands that do a worker's work, or look whether it could be done."""


class Right(NamedTuple):
    """What the user of some commands must be allowed to do; READ and WRITE include DESCRIBE.

    Attributes
    ----------
    resource
        Of what kind: topic, group, or transactional id (by prefix).
    name
        Which one: the setting with its name, or a name made from ``<group>``.
    operation
        In capitals.
    commands
        That need it.
    """

    resource: str
    name: str
    operation: str
    commands: tuple[str, ...]

    def of(self, settings: Settings) -> str:
        """Return the name that the resource has in a job."""
        topics, group = settings.topics, settings.kafka.group
        return {
            "topics.events": topics.events,
            "topics.updates": topics.updates,
            "topics.rejected": topics.rejected,
            "<group>-windows-changelog": settings.changelog,
            "kafka.group": group,
        }.get(self.name) or self.name.replace("<group>", group)


NEEDED: Final = (
    Right("topic", "topics.events", "READ", (*_WORK, "replay")),
    Right("topic", "topics.updates", "WRITE", _WORK),
    Right("topic", "topics.rejected", "WRITE", _WORK),
    Right("topic", "<group>-windows-changelog", "READ", _WORK),
    Right("topic", "<group>-windows-changelog", "WRITE", _WORK),
    Right("group", "kafka.group", "READ", _WORK),
    Right("transactional id", "<group>-", "WRITE", _WORK),
    Right("topic", "topics.updates", "READ", ("tail",)),
    Right("group", "<group>-tail", "READ", ("tail",)),
    Right("topic", "topics.events", "WRITE", ("send",)),
    Right("topic", "topics.events", "CREATE", ("topics create",)),
    Right("topic", "topics.updates", "CREATE", ("topics create",)),
    Right("topic", "topics.rejected", "CREATE", ("topics create",)),
    Right("topic", "<group>-windows-changelog", "CREATE", ("topics create",)),
)
"""The least that each command can do with: the table under Permissions in docs/operations.md."""


class Rights(NamedTuple):
    """What a broker says.

    Attributes
    ----------
    refused
        A sentence for each thing that the user may not do, with what to grant.
    offsets
        What is committed to the group, by partition of the events topic.
    """

    refused: list[str]
    offsets: dict[int, GroupOffset]


def rights(settings: Settings, partitions: Iterable[int]) -> Rights:
    """Ask a broker what the job's user may do; blocks for `SECONDS` at the most.

    With more than 1,000 partitions it is as much more.

    Parameters
    ----------
    settings
        The job's settings.
    partitions
        Of the events topic: each has a transactional id.

    Raises
    ------
    RocstreamError
        When the broker does not tell.
    """
    numbers = list(partitions)
    seconds = SECONDS * max(len(numbers) / _MANY, 1)
    try:
        with quiet():
            return asyncio.run(asyncio.wait_for(_rights(settings, numbers), seconds))
    except (TimeoutError, errors.KafkaError) as error:
        raise RocstreamError(
            f"what the user may do in the group {settings.kafka.group} could not be asked, with "
            f"the client that a worker reads with: {error or 'no answer'}"
        ) from error


def refuse_forbidden(settings: Settings, partitions: int) -> None:
    """Refuse to begin as a user who lacks a worker's permissions: it would stop in the middle.

    Only a broker that knows who we are is asked. Blocks some seconds at the most.

    Raises
    ------
    RocstreamError
        With everything that is to be granted.
    """
    if settings.kafka.security.protocol == "PLAINTEXT":
        return
    cluster = Cluster(settings)
    lacking = [sentence for plan in plans(settings) for sentence in cluster.lacking(plan)]
    try:
        lacking += rights(settings, range(partitions)).refused
    except RocstreamError as error:
        log.warning("permissions not looked at", error=str(error))
    if lacking:
        raise RocstreamError("; ".join(lacking))


async def _rights(settings: Settings, partitions: list[int]) -> Rights:
    group = settings.kafka.group
    async with asking(settings) as client:
        refused = []
        if await _error(client, HeartbeatRequest(group, 0, "nobody")) is _NO_GROUP:
            refused.append(f"the user may not read the group {group}: grant READ on it")
        ids = [f"{group}-{partition}" for partition in partitions]
        denied: list[str] = []
        for start in range(0, len(ids), _AT_ONCE):
            some = ids[start : start + _AT_ONCE]
            told = await asyncio.gather(
                *(_error(client, AddOffsetsToTxnRequest(one, _NOBODY, -1, group)) for one in some)
            )
            denied += [one for one, error in zip(some, told, strict=True) if error is _NO_ID]
        if denied:
            many = "" if len(denied) == 1 else f" and {len(denied) - 1} more"
            refused.append(
                f"the user may not write under the transactional id {denied[0]}{many}: grant "
                f"WRITE on the transactional ids with the prefix {group}-"
            )
        offsets = {} if refused else await _offsets(client, settings, partitions)
        return Rights(refused, offsets)


async def _error(client: AIOKafkaClient, request: Any) -> Any:
    """Return the kind of error that any broker answers with; whose group it is comes later."""
    answer = await client.send(client.get_random_node(), request)
    return errors.for_code(answer.error_code)


async def _offsets(
    client: AIOKafkaClient, settings: Settings, partitions: list[int]
) -> dict[int, GroupOffset]:
    topic, group = settings.topics.events, settings.kafka.group
    try:
        node = await client.coordinator_lookup(CoordinationType.GROUP, group)
        answer = await client.send(
            node,
            OffsetFetchRequest(group, [(topic, partitions)]),
            group=ConnectionGroup.COORDINATION,
        )
    except errors.CoordinatorNotAvailableError:
        # No group was ever here.
        return {}
    return {
        partition: GroupOffset(offset, metadata == OFFSET_MARK)
        for _, told in answer.topics
        for partition, offset, metadata, code in told
        if offset >= 0 and not code
    }
