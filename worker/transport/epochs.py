"""Leader epochs: whether the records that were read still are those that the log holds.

Each time that a partition gets a leader its epoch rises, and a leader writes its epoch into every
batch that it takes. Where the log was cut and written anew, because a replica that lacked records
became leader (unclean election) or a broker lost what it had acknowledged, the new records are of
a later epoch, which begins before the offset where the old ones were read. A leader tells where
an epoch ends in its log (KIP-320, request 23; ``LeaderEpochFileCache.endOffsetFor`` of Apache
Kafka). aiokafka has no such request, so it is here.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from aiokafka import errors
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Int16, Int32, Int64, Schema, String
from aiokafka.structs import TopicPartition

from worker.transport.versions import taken

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiokafka.client import AIOKafkaClient

UNKNOWN: Final = -1
"""The epoch of a place in the log that nobody has told one of."""

SECONDS: Final = 3.0
"""For so long leaders are looked for; whoever asks can do without an answer."""

_PAUSE_SECONDS: Final = 0.1
_CONSUMER: Final = -1
_NOBODY: Final = -1

_PASSING: Final = (
    errors.NotLeaderForPartitionError,
    errors.UnknownTopicOrPartitionError,
    errors.LeaderNotAvailableError,
    errors.ReplicaNotAvailableError,
    errors.KafkaStorageError,
)
"""Answers of a broker that does not lead the partition, or not now."""


class End(NamedTuple):
    """What a leader tells of an epoch.

    Attributes
    ----------
    epoch
        The largest one in its log that is not larger than the one that was asked for.
    offset
        Behind the last record of it; `UNKNOWN`, both of them, where it cannot tell.
    """

    epoch: int
    offset: int

    def cuts(self, offset: int, epoch: int) -> bool:
        """Tell whether what was read up to an offset, the last of it in an epoch, is there no more.

        False where that is not known. O(1).
        """
        known = UNKNOWN not in self
        return known and (self.epoch < epoch or self.offset < offset)

    def holds(self, offset: int, epoch: int) -> bool:
        """Tell whether it all is there: False, too, where that is not known. O(1)."""
        return self.epoch == epoch and self.offset >= offset


NOT_TOLD: Final = End(UNKNOWN, UNKNOWN)


class EndsResponse(Response):  # type: ignore[misc]
    """Of version 3."""

    API_KEY = 23
    API_VERSION = 3
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            Array(
                ("topic", String("utf-8")),
                (
                    "partitions",
                    Array(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader_epoch", Int32),
                        ("end_offset", Int64),
                    ),
                ),
            ),
        ),
    )

    topics: list[tuple[str, list[tuple[int, int, int, int]]]]


class EndsStruct(RequestStruct):  # type: ignore[misc]
    """What goes over the wire in version 3, which brokers take since Kafka 2.3."""

    API_KEY = 23
    API_VERSION = 3
    RESPONSE_TYPE = EndsResponse
    SCHEMA: ClassVar[Schema] = Schema(
        ("replica_id", Int32),
        (
            "topics",
            Array(
                ("topic", String("utf-8")),
                (
                    "partitions",
                    Array(
                        ("partition", Int32),
                        ("current_leader_epoch", Int32),
                        ("leader_epoch", Int32),
                    ),
                ),
            ),
        ),
    )


class EndsRequest(Request[EndsStruct]):  # type: ignore[misc]
    """Asks a leader where epochs of its partitions end.

    Parameters
    ----------
    topic
        Of the partitions.
    epochs
        By partition.
    """

    API_KEY = 23

    def __init__(self, topic: str, epochs: Mapping[int, int]) -> None:
        self._topic = topic
        self._epochs = epochs

    def prepare(self, versions: dict[int, tuple[int, int]]) -> Any:
        """Return what is sent; raises `IncompatibleBrokerVersion` where a broker takes none."""
        if not taken(EndsStruct, versions):
            raise errors.IncompatibleBrokerVersion("it does not tell where leader epochs end")
        return self.build(EndsStruct)

    def build(self, request_struct_class: type[EndsStruct]) -> EndsStruct:
        """Return what is sent."""
        asked = [(number, UNKNOWN, epoch) for number, epoch in self._epochs.items()]
        return request_struct_class(_CONSUMER, [(self._topic, asked)])


async def ends(
    client: AIOKafkaClient,
    topic: str,
    epochs: Mapping[int, int],
    *,
    seconds: float = SECONDS,
) -> dict[int, End]:
    """Ask the leaders where epochs end.

    Parameters
    ----------
    client
        That knows who leads.
    topic
        Of the partitions.
    epochs
        By partition.
    seconds
        How long to look for leaders.

    Returns
    -------
    dict of int to End
        Without the partitions whose leader did not answer in that time. `NOT_TOLD` is an answer:
        asking again would bring no other.
    """
    told: dict[int, End] = {}
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while left := epochs.keys() - told.keys():
                by_leader: dict[int, dict[int, int]] = {}
                for number in left:
                    leader = client.cluster.leader_for_partition(TopicPartition(topic, number))
                    if leader is not None and leader != _NOBODY:
                        by_leader.setdefault(leader, {})[number] = epochs[number]
                for node, some in by_leader.items():
                    told |= await _ask(client, node, topic, some)
                if told.keys() != epochs.keys():
                    # A client learns of a new leader only when it asks.
                    await client.force_metadata_update()
                    await asyncio.sleep(_PAUSE_SECONDS)
    return told


async def _ask(
    client: AIOKafkaClient, node: int, topic: str, epochs: Mapping[int, int]
) -> dict[int, End]:
    """Return what a broker tells now."""
    try:
        # Past those who watch what the client sends: it is nothing of theirs.
        answer = await type(client).send(client, node, EndsRequest(topic, epochs))
    except errors.IncompatibleBrokerVersion:
        return dict.fromkeys(epochs, NOT_TOLD)
    except errors.KafkaError:
        return {}
    return {
        number: NOT_TOLD if code else End(epoch, offset)
        for _, partitions in answer.topics
        for code, number, epoch, offset in partitions
        if errors.for_code(code) not in _PASSING
    }
