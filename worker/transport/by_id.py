"""Fetches by the topic's id: a log that was made again under the same name gives nothing.

aiokafka asks by name, so where a new log reaches as far as the old one did it would read on there
as if nothing had happened. Since Kafka 3.1 (KIP-516, version 13 of the request) a broker takes the
id in the place of the name, compares it with its log's when it reads, and answers that it knows no
such topic. aiokafka has no such request, so it is added here, between its fetcher and its
connections; brokers that are older get what they always got.
"""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any, ClassVar, Final

from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.errors import UnknownTopicOrPartitionError
from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.api import RequestStruct, Response
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.types import (
    CompactArray,
    CompactBytes,
    CompactString,
    Int8,
    Int16,
    Int32,
    Int64,
    Schema,
    TaggedFields,
)

from worker.transport.versions import taken

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from io import BytesIO

VERSION: Final = 13

PAUSE_SECONDS: Final = 0.1
"""Before the next fetch where the topic is not there: aiokafka would ask again at once."""

_ID_BYTES: Final = 16

_UNKNOWN_ID, _OTHER_ID = 100, 103
"""What a broker answers when no topic has the id, and when its log is of a topic with another."""

_NOT_THERE: Final = {_UNKNOWN_ID, _OTHER_ID, UnknownTopicOrPartitionError.errno}


class _Uuid(AbstractType[bytes]):  # type: ignore[misc]
    @classmethod
    def encode(cls, value: bytes) -> bytes:
        return value

    @classmethod
    def decode(cls, data: BytesIO) -> bytes:
        return data.read(_ID_BYTES)


class _Tagged(Schema):  # type: ignore[misc]
    """Fields with tagged ones behind them, of which none is sent and none is wanted."""

    def encode(self, item: Sequence[Any]) -> bytes:
        fields: bytes = super().encode(item)
        return fields + bytes(1)

    def decode(self, data: BytesIO) -> tuple[Any, ...]:
        found: tuple[Any, ...] = super().decode(data)
        TaggedFields.decode(data)
        return found


class FetchResponse(Response):  # type: ignore[misc]
    """Of version 13; aiokafka's fetcher takes it for its own version 11, once topics have names."""

    API_KEY = 1
    API_VERSION = VERSION
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("session_id", Int32),
        (
            "topics",
            CompactArray(
                _Tagged(
                    ("topic_id", _Uuid),
                    (
                        "partitions",
                        CompactArray(
                            _Tagged(
                                ("partition", Int32),
                                ("error_code", Int16),
                                ("highwater_offset", Int64),
                                ("last_stable_offset", Int64),
                                ("log_start_offset", Int64),
                                (
                                    "aborted_transactions",
                                    CompactArray(
                                        _Tagged(("producer_id", Int64), ("first_offset", Int64))
                                    ),
                                ),
                                ("preferred_read_replica", Int32),
                                ("message_set", CompactBytes),
                            )
                        ),
                    ),
                )
            ),
        ),
        ("tags", TaggedFields),
    )

    topics: list[tuple[Any, list[tuple[Any, ...]]]]


class FetchStruct(RequestStruct):  # type: ignore[misc]
    """What goes over the wire in version 13."""

    FLEXIBLE_VERSION = True
    API_KEY = 1
    API_VERSION = VERSION
    RESPONSE_TYPE = FetchResponse
    SCHEMA: ClassVar[Schema] = Schema(
        ("replica_id", Int32),
        ("max_wait_time", Int32),
        ("min_bytes", Int32),
        ("max_bytes", Int32),
        ("isolation_level", Int8),
        ("session_id", Int32),
        ("session_epoch", Int32),
        (
            "topics",
            CompactArray(
                _Tagged(
                    ("topic_id", _Uuid),
                    (
                        "partitions",
                        CompactArray(
                            _Tagged(
                                ("partition", Int32),
                                ("current_leader_epoch", Int32),
                                ("fetch_offset", Int64),
                                ("last_fetched_epoch", Int32),
                                ("log_start_offset", Int64),
                                ("max_bytes", Int32),
                            )
                        ),
                    ),
                )
            ),
        ),
        (
            "forgotten_topics_data",
            CompactArray(_Tagged(("topic_id", _Uuid), ("partitions", CompactArray(Int32)))),
        ),
        ("rack_id", CompactString("utf-8")),
        ("tags", TaggedFields),
    )


class Fetch(FetchRequest):  # type: ignore[misc]
    """A fetch that asks by id, where the broker takes that and all of its topics have one.

    Parameters
    ----------
    asked
        The fetch as aiokafka made it.
    ids
        By the topic's name.
    """

    def __init__(self, asked: FetchRequest, ids: Mapping[str, bytes]) -> None:
        self.__dict__.update(asked.__dict__)
        self._ids = ids

    def prepare(self, versions: dict[int, tuple[int, int]]) -> Any:
        """Return what is sent to a broker that takes these versions of each request."""
        if not taken(FetchStruct, versions) or any(
            name not in self._ids for name, _ in self.topics
        ):
            return super().prepare(versions)
        unknown = -1
        return FetchStruct(
            unknown,  # nobody's replica
            self._max_wait_ms,
            self._min_bytes,
            self._max_bytes,
            self._isolation_level,
            0,  # no session,
            unknown,  # and none to be made
            [
                (
                    self._ids[topic],
                    [
                        (partition, unknown, offset, unknown, unknown, most)
                        for partition, offset, most in partitions
                    ],
                )
                for topic, partitions in self.topics
            ],
            [],
            self._rack_id,
            {},
        )


def raw(topic_id: str) -> bytes:
    """Return the 16 bytes of an id in Kafka's spelling (base64 without padding)."""
    # Java writes - and _ where librdkafka writes + and /.
    return base64.b64decode(f"{topic_id}==".replace("-", "+").replace("_", "/"))


def install(client: AIOKafkaClient, ids: Mapping[str, str], on_doubt: Callable[[], None]) -> None:
    """Have a client fetch by id.

    Parameters
    ----------
    client
        Whose fetches these are.
    ids
        By the topic's name, in Kafka's spelling; topics without one are fetched by name.
    on_doubt
        Called, in the client's thread, whenever a broker does not have a topic that was asked for.
    """
    known = {topic: raw(topic_id) for topic, topic_id in ids.items()}
    names = {topic_id: topic for topic, topic_id in known.items()}
    send = client.send

    async def send_by_id(
        node: int, request: Any, *, group: ConnectionGroup = ConnectionGroup.DEFAULT
    ) -> Any:
        if type(request) is not FetchRequest:
            return await send(node, request, group=group)
        response = await send(node, Fetch(request, known), group=group)
        if isinstance(response, FetchResponse):
            response.topics = [
                (names[topic_id], [_in_old_words(one) for one in partitions])
                for topic_id, partitions in response.topics
            ]
        if any(one[1] in _NOT_THERE for _, partitions in response.topics for one in partitions):
            on_doubt()
            await asyncio.sleep(PAUSE_SECONDS)
        return response

    client.send = send_by_id


def _in_old_words(partition: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return an answer with an error that aiokafka knows: it then looks who leads."""
    number, error, *rest = partition
    if error not in _NOT_THERE:
        return partition
    return (number, UnknownTopicOrPartitionError.errno, *rest)
