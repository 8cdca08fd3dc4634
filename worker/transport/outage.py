"""What is said while brokers that a worker reads from are away: a sentence, and not a flood.

aiokafka tells of every attempt that fails, some two hundred lines a second, and of a partition
without a leader or a broker that is silent it tells nothing. Here requests are watched on their
way. What cannot be read, or asked for, is told once and then every half minute, and so is its end;
lines on lost connections are counted meanwhile. Other errors stay as aiokafka tells them.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import ssl
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog
from aiokafka import errors
from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.protocol.coordination import FindCoordinatorRequest
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.offset import OffsetRequest
from aiokafka.structs import TopicPartition

from worker.transport import joining

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from aiokafka import AIOKafkaConsumer
    from aiokafka.cluster import ClusterMetadata

log = structlog.get_logger(__name__)

LOOK_SECONDS: Final = 0.5

TELL_LOOKS: Final = 4
"""A loss is told when so many looks in a row have found it: a leader that moves is none. Looks are
counted, and not seconds, since a worker that was frozen itself has missed nothing of a broker."""

SLOW_LOOKS: Final = 6
"""A request that was under way at so many looks is not answered; it takes some milliseconds."""

AGAIN_LOOKS: Final = 60
"""Looks between two tellings of the same outage."""

HELD_LOOKS: Final = 2 * TELL_LOOKS
"""After so many looks a line that was held back is told of, unless an outage is, that began with
it. A broker that comes and goes is none, and neither is one that nothing of ours needs."""

GROUP: Final = "group"
_START: Final = "start"

_LOST: Final = (
    errors.KafkaConnectionError,
    errors.NodeNotReadyError,
    errors.RequestTimedOutError,
    errors.StaleMetadata,
    errors.LeaderNotAvailableError,
    errors.NotLeaderForPartitionError,
    errors.GroupCoordinatorNotAvailableError,
    errors.NotCoordinatorForGroupError,
    errors.CoordinatorLoadInProgressError,
)
"""What a client meets when a broker is away, and brokers when one of theirs is."""

# They ask the leaders of partitions; all others ask the group's coordinator, or who it is.
_OF_PARTITIONS: Final = (FetchRequest, OffsetRequest)

_LOGGERS: Final = ("aiokafka", "aiokafka.consumer.fetcher", "aiokafka.consumer.group_coordinator")
_REFUSED: Final = frozenset(
    {"Unable connect to node with id %s: %s", 'Unable connect to "%s:%s": %s'}
)
"""Lines with why a connection could not be made; whoever wanted it is told only that it was not."""

_CONSEQUENCES: Final = {
    "Unable to update metadata from": "no broker could be asked who leads what",
    "Marking the coordinator dead": "the connection to the group's coordinator was lost",
    "Heartbeat session expired - marking coordinator dead": (
        "the group's coordinator did not answer in time"
    ),
    "Heartbeat failed for group %s: coordinator (node %s) is either not started or not valid": (
        "the group has another coordinator"
    ),
}
"""Lines on lost connections that name no error, and what they mean."""


class _Loss(NamedTuple):
    """Which broker it is that does not answer, and the error."""

    broker: str
    error: str


class _Asked:
    """A request under way: to whom, what for, and how many looks it has seen."""

    __slots__ = ("looks", "node", "subjects")

    def __init__(self, node: int | str, subjects: list[int | str]) -> None:
        self.node = node
        self.subjects = subjects
        self.looks = 0


class Outage(logging.Filter):
    """What a consumer cannot read, or ask its group's coordinator for, because brokers are away.

    All methods belong to the consumer's thread. As a filter of aiokafka's loggers it holds lines
    on lost connections back, unless the level is ``debug``.

    Parameters
    ----------
    topic, group
        What is read, and as whom.
    cluster
        What the client knows of the brokers.
    """

    def __init__(self, topic: str, group: str, cluster: ClusterMetadata) -> None:
        super().__init__()
        self._topic = topic
        self.group = group
        self._cluster = cluster
        self._lost: dict[int | str, _Loss] = {}
        self._asked: set[_Asked] = set()
        self._refusals: dict[str, str] = {}
        self._since = 0.0
        self._looks = 0
        self._held = 0
        self._last_held = ""
        self._untold = 0
        self._pause = 0

    async def watch(self, consumer: AIOKafkaConsumer) -> None:
        """Look, hold lines back and tell, until it is cancelled."""
        loggers = [logging.getLogger(name) for name in _LOGGERS]
        for logger in loggers:
            logger.addFilter(self)
        try:
            while True:
                await asyncio.sleep(LOOK_SECONDS)
                self.look(tp.partition for tp in consumer.assignment() if tp.topic == self._topic)
        finally:
            for logger in loggers:
                logger.removeFilter(self)

    @contextlib.contextmanager
    def starting(self, servers: str) -> Iterator[None]:
        """Take note that a broker, one of these, is asked for what there is."""
        asked = _Asked(servers, [_START])
        self._asked.add(asked)
        try:
            yield
        finally:
            self._asked.discard(asked)

    def fail_to_start(self, error: Exception) -> None:
        """Take note that no broker lets us in."""
        why = "; ".join(sorted(set(self._refusals.values()))) or str(error)
        self._lost[_START] = _Loss(", ".join(self._refusals), why)

    def started(self) -> None:
        """Take note that a broker has let us in."""
        self._lost.pop(_START, None)

    def lose(self, subjects: Iterable[int | str], node: int | str, error: Exception) -> None:
        """Take note that some partitions, or `GROUP`, wait for a broker."""
        why = str(error) or type(error).__name__
        if isinstance(error, errors.NodeNotReadyError):
            why = self._refusals.get(str(node), why)
        self._lost.update(dict.fromkeys(subjects, _Loss(self._name(node), why)))

    def find(self, subject: int | str) -> None:
        """Take note that a partition, or `GROUP`, waits for no broker any more."""
        self._lost.pop(subject, None)

    def ask(self, node: int, request: object) -> _Asked:
        """Take note of a request that begins."""
        asked = _Asked(node, self._subjects(request))
        self._asked.add(asked)
        return asked

    def end(self, asked: _Asked) -> None:
        """Take note that a request is over, whatever came of it."""
        self._asked.discard(asked)

    def answer(self, asked: _Asked, request: object, response: Any) -> None:
        """Take note of what a broker answered."""
        if isinstance(request, _OF_PARTITIONS):
            for topic, partitions in response.topics:
                if topic == self._topic:
                    for number, code, *_ in partitions:
                        self._judge(number, asked.node, code)
            return
        code = getattr(response, "error_code", None)
        # Who the coordinator is may be known for long before it can be reached.
        if code or (code == 0 and not isinstance(request, FindCoordinatorRequest)):
            self._judge(GROUP, asked.node, code)

    def look(self, assigned: Iterable[int]) -> None:
        """Tell what there is to tell: of a loss that lasts, of its end, of lines held back.

        Parameters
        ----------
        assigned
            Partitions that are ours now.
        """
        away = self._away(set(assigned))
        if away:
            self._since = self._since or time.monotonic()
            self._looks += 1
            if self._looks % AGAIN_LOOKS == TELL_LOOKS:
                self._tell(away)
        else:
            if self._looks >= TELL_LOOKS:
                log.info("the broker is back", **self._waited())
                self._held, self._last_held = 0, ""
            self._since, self._looks = 0.0, 0
        self._tell_held()

    def filter(self, record: logging.LogRecord) -> bool:
        """Hold a line on a lost connection back, and count it."""
        args = record.args if isinstance(record.args, tuple) else ()
        if isinstance(record.msg, str) and record.msg in _REFUSED:
            *broker, error = args
            name = ":".join(map(str, broker))
            self._refusals[name] = str(error) or type(error).__name__
        meaning = _meaning(record.msg)
        if not (any(map(_is_loss, args)) or meaning):
            return True
        if logging.getLogger(record.name).isEnabledFor(logging.DEBUG):
            return True
        self._held += 1
        if not meaning or not self._last_held:
            self._last_held = meaning or record.getMessage()
        return False

    def _subjects(self, request: object) -> list[int | str]:
        if isinstance(request, _OF_PARTITIONS):
            return [
                number
                for topic, partitions in request._topics  # noqa: SLF001 - only fetches tell
                if topic == self._topic
                for number, *_ in partitions
            ]
        return [GROUP]

    def _judge(self, subject: int | str, node: int | str, code: int) -> None:
        error = errors.for_code(code)
        if issubclass(error, _LOST):
            self.lose([subject], node, error())
        else:
            self.find(subject)

    def _away(self, assigned: set[int]) -> dict[int | str, _Loss]:
        """Return what is lost now, and count for how long requests have been under way."""
        for gone in [one for one in self._lost if isinstance(one, int) and one not in assigned]:
            del self._lost[gone]
        away = dict(self._lost)
        for asked in self._asked:
            asked.looks += 1
            if asked.looks >= SLOW_LOOKS:
                silent = _Loss(self._name(asked.node), "it does not answer")
                away |= dict.fromkeys(asked.subjects, silent)
        for number in assigned - away.keys():
            if self._cluster.leader_for_partition(TopicPartition(self._topic, number)) == -1:
                away[number] = _Loss("", "no broker leads the partition")
        return away

    def _tell(self, away: dict[int | str, _Loss]) -> None:
        what: dict[str, Any] = {
            "brokers": sorted({loss.broker for loss in away.values()} - {""}),
            "error": "; ".join(sorted({loss.error for loss in away.values()})),
        }
        if partitions := sorted(one for one in away if isinstance(one, int)):
            what["partitions"] = partitions
        if GROUP in away:
            what["coordinator_of"] = self.group
        log.warning("waiting for the broker to read from", **what, **self._waited())

    def _waited(self) -> dict[str, Any]:
        waited = {"waited_s": round(time.monotonic() - self._since, 1)}
        return waited | ({"lines_held_back": self._held} if self._held else {})

    def _tell_held(self) -> None:
        """Tell of lost connections that are no outage, now and then."""
        self._pause = max(self._pause - 1, 0)
        told = self._looks >= TELL_LOOKS
        self._untold = self._untold + 1 if self._held and not told else 0
        if self._untold >= HELD_LOOKS and not self._pause:
            log.warning("a broker was not ready", error=self._last_held, lines_held_back=self._held)
            self._held = self._untold = 0
            self._last_held = ""
            self._pause = AGAIN_LOOKS

    def _name(self, node: int | str) -> str:
        if isinstance(node, str):
            return node
        known = self._cluster.broker_metadata(node)
        return f"{known.host}:{known.port}/{node}" if known is not None else str(node)


def install(client: AIOKafkaClient, topic: str, group: str) -> Outage:
    """Watch a client's requests to brokers.

    Parameters
    ----------
    client
        Of a member of the group.
    topic, group
        What is read, and as whom.
    """
    outage = Outage(topic, group, client.cluster)
    send = client.send

    async def send_watched(
        node: int, request: Any, *, group: ConnectionGroup = ConnectionGroup.DEFAULT
    ) -> Any:
        if isinstance(request, joining.REQUESTS):
            # They wait for all members of the group, and say nothing of the broker.
            async with joining.probing(
                functools.partial(send_watched, node), outage.group, lambda: outage.find(GROUP)
            ):
                await joining.know_topic(client, topic)
                if await client.ready(node, group=group):
                    outage.find(GROUP)
                return await send(node, request, group=group)
        asked = outage.ask(node, request)
        try:
            response = await send(node, request, group=group)
        except _LOST as error:
            outage.lose(asked.subjects, node, error)
            raise
        finally:
            outage.end(asked)
        outage.answer(asked, request, response)
        return response

    client.send = send_watched
    return outage


def _meaning(line: object) -> str:
    """Return what a line means that follows from a lost connection; "" where it is another one."""
    text = line if isinstance(line, str) else ""
    return next((means for begin, means in _CONSEQUENCES.items() if text.startswith(begin)), "")


def _is_loss(value: object) -> bool:
    return isinstance(value, _LOST) or (
        isinstance(value, OSError) and not isinstance(value, ssl.SSLError)
    )
