"""A worker that is fenced in its group: another one has joined under the same instance id.

aiokafka's heartbeats and commits of offsets do not say which instance they come from, so a broker
tells the older of two such workers only that it is no member. It then joins anew, which throws the
newer one out, and so on: neither would ever get anything done. Here both name the instance, and
whoever is told that it has been replaced leaves.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar, Final

from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.protocol.api import RequestStruct
from aiokafka.protocol.commit import OffsetCommitRequest, OffsetCommitResponse_v3
from aiokafka.protocol.group import HeartbeatRequest, HeartbeatResponse_v1
from aiokafka.protocol.types import Array, Int32, Int64, Schema, String

from worker.transport.versions import taken

if TYPE_CHECKING:
    from collections.abc import Callable

HEARTBEAT, COMMIT = 3, 7
"""Versions of the requests: the first ones that have a place for the instance (KIP-345)."""

_FENCED: Final = 82
"""What a broker answers to a member whose instance id another one has joined with."""


class HeartbeatResponse(HeartbeatResponse_v1):  # type: ignore[misc]
    """Of version 3, which is as version 1 was."""

    API_VERSION = HEARTBEAT


class HeartbeatStruct(RequestStruct):  # type: ignore[misc]
    """What goes over the wire in version 3."""

    API_KEY = 12
    API_VERSION = HEARTBEAT
    RESPONSE_TYPE = HeartbeatResponse
    SCHEMA: ClassVar[Schema] = Schema(
        ("group", String("utf-8")),
        ("generation_id", Int32),
        ("member_id", String("utf-8")),
        ("group_instance_id", String("utf-8")),
    )


class Heartbeat(HeartbeatRequest):  # type: ignore[misc]
    """A heartbeat that says which instance it comes from, where the broker takes that.

    Parameters
    ----------
    beat
        The heartbeat as aiokafka made it.
    instance
        The worker's ``kafka.group_instance_id``.
    """

    def __init__(self, beat: HeartbeatRequest, instance: str) -> None:
        self.__dict__.update(beat.__dict__)
        self._instance = instance

    def prepare(self, versions: dict[int, tuple[int, int]]) -> Any:
        """Return what is sent to a broker that takes these versions of each request."""
        if not taken(HeartbeatStruct, versions):
            return super().prepare(versions)
        return HeartbeatStruct(self._group, self._generation_id, self._member_id, self._instance)


class CommitResponse(OffsetCommitResponse_v3):  # type: ignore[misc]
    """Of version 7, which is as version 3 was."""

    API_VERSION = COMMIT


class CommitStruct(RequestStruct):  # type: ignore[misc]
    """What goes over the wire in version 7."""

    API_KEY = 8
    API_VERSION = COMMIT
    RESPONSE_TYPE = CommitResponse
    SCHEMA: ClassVar[Schema] = Schema(
        ("group", String("utf-8")),
        ("generation_id", Int32),
        ("member_id", String("utf-8")),
        ("group_instance_id", String("utf-8")),
        (
            "topics",
            Array(
                ("topic", String("utf-8")),
                (
                    "partitions",
                    Array(
                        ("partition", Int32),
                        ("offset", Int64),
                        ("leader_epoch", Int32),
                        ("metadata", String("utf-8")),
                    ),
                ),
            ),
        ),
    )


class Commit(OffsetCommitRequest):  # type: ignore[misc]
    """A commit of offsets that says which instance it comes from, where the broker takes that.

    Parameters
    ----------
    asked
        The request as aiokafka made it.
    instance
        The worker's ``kafka.group_instance_id``.
    """

    def __init__(self, asked: OffsetCommitRequest, instance: str) -> None:
        self.__dict__.update(asked.__dict__)
        self._instance = instance

    def prepare(self, versions: dict[int, tuple[int, int]]) -> Any:
        """Return what is sent to a broker that takes these versions of each request."""
        if not taken(CommitStruct, versions):
            return super().prepare(versions)
        unknown = -1
        return CommitStruct(
            self._consumer_group,
            self._consumer_group_generation_id,
            self._consumer_id,
            self._instance,
            [
                (topic, [(number, offset, unknown, mark) for number, offset, mark in partitions])
                for topic, partitions in self._topics
            ],
        )


def errors(response: Any) -> set[int]:
    """Return the codes that a broker answered with."""
    if isinstance(response, OffsetCommitResponse_v3):
        return {code for _, partitions in response.topics for _, code in partitions}
    return {getattr(response, "error_code", 0)}


def install(client: AIOKafkaClient, instance: str, on_fenced: Callable[[], None]) -> None:
    """Have a client notice when another worker has its instance id.

    Parameters
    ----------
    client
        Of a member of the group.
    instance
        The worker's ``kafka.group_instance_id``.
    on_fenced
        Called, in the client's thread, when it was replaced. The request that was answered so ends
        only when it is called off: aiokafka knows no such answer.
    """
    send = client.send

    async def send_named(
        node: int, request: Any, *, group: ConnectionGroup = ConnectionGroup.DEFAULT
    ) -> Any:
        # A member that has dropped its own id, to join anew, would be told that it is replaced.
        if type(request) is HeartbeatRequest and request._member_id:  # noqa: SLF001 - told nowhere else
            request = Heartbeat(request, instance)
        elif type(request) is OffsetCommitRequest and request._consumer_id:  # noqa: SLF001 - as above
            request = Commit(request, instance)
        response = await send(node, request, group=group)
        if _FENCED in errors(response):
            on_fenced()
            await asyncio.get_running_loop().create_future()
        return response

    client.send = send_named
