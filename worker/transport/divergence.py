"""Whether a log that is read goes on behind what was read of it, or was cut there and written anew.

A fetch that tells the leader epoch of the record before its offset gets no records from a log that
has that epoch end before the offset, or lacks it; the broker compares when it reads (version 12 of
the request; ``Partition.readRecords`` of Apache Kafka). A replica that only lags behind answers so
too, and replicas are asked by who fetches from them and by who has not heard of a new leader yet.
So whether anything was lost is for the leader to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from aiokafka.structs import TopicPartition

from worker.transport import epochs, footing
from worker.transport.epochs import UNKNOWN
from worker.transport.fetch import Read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aiokafka.client import AIOKafkaClient
    from aiokafka.consumer.subscription_state import SubscriptionState

    from config.errors import DecisionError
    from worker.pages import Cursor

log = structlog.get_logger(__name__)


class Divergence:
    """What was read of the partitions of a topic, as their next fetches tell it.

    All methods belong to the consumer's thread.

    Parameters
    ----------
    client, subscriptions
        Of the consumer.
    topic
        What is read.
    cursor
        Returns where the state of a partition's task ends; None where there is no task.
    on_loss
        Called once a leader has said that records that were read are there no more.
    """

    def __init__(
        self,
        client: AIOKafkaClient,
        subscriptions: SubscriptionState,
        topic: str,
        cursor: Callable[[int], Cursor | None],
        on_loss: Callable[[DecisionError], None],
    ) -> None:
        self._client = client
        self._subscriptions = subscriptions
        self._topic = topic
        self._cursor = cursor
        self._on_loss = on_loss
        self._waived: dict[int, Read] = {}

    def epoch(self, partition: int, offset: int) -> int:
        """Return the leader epoch of what was read up to an offset, `UNKNOWN` where nobody knows.

        It is known behind what was fetched last, and where a task stands when it is opened: an
        offset that was come to in another way has no epoch.
        """
        for known in (self._read(partition), self._cursor(partition)):
            if known is not None and known.offset == offset and known.epoch != UNKNOWN:
                told = Read(offset, known.epoch)
                return UNKNOWN if self._waived.get(partition) == told else told.epoch
        return UNKNOWN

    async def judge(self, doubts: dict[int, Read], out_of_range: Iterable[int]) -> None:
        """Ask the leaders of partitions whose fetch has found another log.

        Where one says that all is there, the fetch is for whoever leads now. Where it cannot say,
        the next fetch tells no epoch.

        Parameters
        ----------
        doubts
            What the fetches told, by partition.
        out_of_range
            Those of them to which the broker says that it has not even the offset; it says so of
            an epoch that it has not heard of, too.
        """
        told = await epochs.ends(
            self._client, self._topic, {number: read.epoch for number, read in doubts.items()}
        )
        outside = set(out_of_range)
        for number, end in told.items():
            read = doubts[number]
            if end.cuts(*read):
                problem = f"{footing.replaced(*read, end)}, while we ran"
                self._on_loss(footing.refused(problem, self._topic, number))
            elif number in outside or not end.holds(*read):
                self._waived[number] = read
            else:
                log.debug("fetched from a replica that lags behind", partition=number)

    def _read(self, partition: int) -> Read | None:
        subscription = self._subscriptions.subscription
        if subscription is None or subscription.assignment is None:
            return None
        place = TopicPartition(self._topic, partition)
        if place not in subscription.assignment.tps:
            return None
        return getattr(subscription.assignment.state_value(place), "read", None)
