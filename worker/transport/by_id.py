"""Fetches by the topic's id: a log that was made again under the same name gives nothing.

aiokafka asks by name, so where a new log reaches as far as the old one did it would read on there
as if nothing had happened. Since Kafka 3.1 (KIP-516, version 13 of the request) a broker takes the
id in the place of the name, compares it with its log's when it reads, and answers that it knows no
such topic. aiokafka has no such request, so it is added here, between its fetcher and its
connections; brokers that are older get what they always got.

These fetches also tell the leader epoch of what was read before them, so that a log that was cut
and written anew gives nothing either: see ``divergence``.
"""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any, ClassVar, Final

from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.errors import (
    NotLeaderForPartitionError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
)
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

from worker.transport.epochs import UNKNOWN
from worker.transport.fetch import Read
from worker.transport.versions import taken

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from io import BytesIO

    from worker.transport.divergence import Divergence

VERSION: Final = 13

PAUSE_SECONDS: Final = 0.1
"""Before the next fetch where the topic is not there: aiokafka would ask again at once."""

_ID_BYTES: Final = 16

_DIVERGING: Final = 0
"""The tagged field with where the broker's log has parted from what was read; there only if so."""

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
    """Fields with tagged ones behind them, of which none is sent."""

    def encode(self, item: Sequence[Any]) -> bytes:
        fields: bytes = super().encode(item)
        return fields + bytes(1)

    def decode(self, data: BytesIO) -> tuple[Any, ...]:
        found: tuple[Any, ...] = super().decode(data)
        TaggedFields.decode(data)
        return found


class _Partition(_Tagged):
    """With one more field at the end: whether the log has diverged from what was read of it."""

    def decode(self, data: BytesIO) -> tuple[Any, ...]:
        found: tuple[Any, ...] = Schema.decode(self, data)
        return (*found, _DIVERGING in TaggedFields.decode(data))


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
                            _Partition(
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
    read
        What was read before the offset that is asked for, by partition.
    """

    def __init__(
        self, asked: FetchRequest, ids: Mapping[str, bytes], read: Mapping[int, Read]
    ) -> None:
        self.__dict__.update(asked.__dict__)
        self._ids = ids
        self._read = read

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
                        (partition, unknown, offset, self._read[partition].epoch, unknown, most)
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


def install(
    client: AIOKafkaClient,
    topic: str,
    topic_id: str,
    on_doubt: Callable[[], None],
    divergence: Divergence,
) -> None:
    """Have a client fetch a topic by its id; others are fetched by name.

    Parameters
    ----------
    client
        Whose fetches these are.
    topic, topic_id
        Its name, and its id in Kafka's spelling.
    on_doubt
        Called, in the client's thread, whenever a broker does not have the topic.
    divergence
        Knows what was read of the topic, and is told of answers of a log that has no such records.
    """
    known = {topic: raw(topic_id)}
    names = {topic_id: topic for topic, topic_id in known.items()}
    send = client.send

    async def send_by_id(
        node: int, request: Any, *, group: ConnectionGroup = ConnectionGroup.DEFAULT
    ) -> Any:
        if type(request) is not FetchRequest:
            return await send(node, request, group=group)
        read = {
            number: Read(offset, divergence.epoch(number, offset))
            for name, partitions in request.topics
            if name == topic
            for number, offset, _ in partitions
        }
        response = await send(node, Fetch(request, known, read), group=group)
        if isinstance(response, FetchResponse):
            doubts, outside = _doubts(response, read)
            response.topics = [
                (names[told], [_in_old_words(one, doubts) for one in partitions])
                for told, partitions in response.topics
            ]
            if doubts:
                await divergence.judge(doubts, outside)
                await asyncio.sleep(PAUSE_SECONDS)
        if any(one[1] in _NOT_THERE for _, partitions in response.topics for one in partitions):
            on_doubt()
            await asyncio.sleep(PAUSE_SECONDS)
        return response

    client.send = send_by_id


def _doubts(response: FetchResponse, read: Mapping[int, Read]) -> tuple[dict[int, Read], list[int]]:
    """Return what was read of partitions whose log seems to be another; which lack the offset."""
    doubts = {}
    outside = []
    for _, partitions in response.topics:
        for number, error, *_, diverging in partitions:
            beyond = error == OffsetOutOfRangeError.errno
            if (diverging or beyond) and read[number].epoch != UNKNOWN:
                doubts[number] = read[number]
                outside += [number] if beyond else []
    return doubts, outside


def _in_old_words(partition: tuple[Any, ...], doubts: Mapping[int, Read]) -> tuple[Any, ...]:
    """Return an answer with an error that aiokafka knows: it then looks who leads."""
    number, error, *rest, _ = partition
    if number in doubts:
        error = NotLeaderForPartitionError.errno
    elif error in _NOT_THERE:
        error = UnknownTopicOrPartitionError.errno
    return (number, error, *rest)
