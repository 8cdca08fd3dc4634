"""What the commands ask of a broker and make there: its topics, their settings, its answer.

One table (`plans`) says which topics a job needs and with which settings; `topics create` makes
them and `check` compares with them.
"""

from __future__ import annotations

import re
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from config.errors import RocstreamError, SettingsError
from config.kafka import librdkafka
from worker.access import refusal
from worker.messages import BATCH_BYTES, TOPIC_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from config import Settings

WAIT_SECONDS: Final = 5.0
"""A command that a person waits for gives a broker this long to answer at all."""

CALL_SECONDS: Final = 10.0
"""A call to a broker that answered before may take this long."""

SAFE_REPLICATION: Final = 3
"""Copies from which on a write may wait for two of them, and still one broker may be away."""

_ATTEMPT_SECONDS: Final = 1.0
# Which of librdkafka's threads said it, and after how long.
_NOISE: Final = re.compile(r"^\S+/(bootstrap|\d+): | \(after .*\)")
_UNREACHED: Final = frozenset({KafkaError._TIMED_OUT, KafkaError._TRANSPORT})  # noqa: SLF001 - public constants
_MONTH: Final = timedelta(days=30)


class BrokerAwayError(RocstreamError):
    """No broker answered in time."""


class Topic(NamedTuple):
    """A topic as it stands on the broker; `settings` is empty where the broker tells none."""

    name: str
    partitions: int
    replication: int
    settings: Mapping[str, str]


class Plan(NamedTuple):
    """A topic as the job needs it.

    Parameters
    ----------
    name
        The topic's name.
    setting
        Where the name comes from, for sentences.
    partitions, replication
        For its creation; a replication of -1 is the broker's default.
    settings
        The topic settings it is created with.
    vital
        Those of them without which the job loses data.
    mirrors_events
        Whether it must have as many partitions as the events topic.
    operations
        What the job's user must be allowed to do with it.
    narrow
        What becomes of messages that are larger than it takes, for a sentence; empty where that is
        said already.
    """

    name: str
    setting: str
    partitions: int
    replication: int
    settings: Mapping[str, str]
    vital: tuple[str, ...] = ("cleanup.policy",)
    mirrors_events: bool = False
    operations: tuple[str, ...] = ("WRITE",)
    narrow: str = ""


def plans(settings: Settings, events_partitions: int | None = None) -> tuple[Plan, ...]:
    """Return the topics that the job needs, the events topic first.

    Parameters
    ----------
    settings
        The job's settings.
    events_partitions
        Partitions that the events topic already has; the changelog must have as many. None: it
        is still to be made.
    """
    topics = settings.topics
    partitions, replication = topics.partitions, topics.replication
    # Without it an acknowledged write may stand on one broker alone, and go with that one.
    durable = {"min.insync.replicas": "2"} if replication >= SAFE_REPLICATION else {}
    kept = {"cleanup.policy": "delete", "retention.ms": _ms(_MONTH), **durable}
    return (
        Plan(
            topics.events,
            "topics.events",
            partitions,
            replication,
            # Compacted, it would lose the events of a key but the last.
            {"cleanup.policy": "delete", **durable},
            operations=("READ",),
        ),
        Plan(
            topics.updates,
            "topics.updates",
            partitions,
            replication,
            kept,
            narrow="an update that has more stops the worker",
        ),
        Plan(
            topics.rejected,
            "topics.rejected",
            partitions,
            replication,
            kept,
            narrow="rejected records are cut to that",
        ),
        Plan(
            settings.changelog,
            "the changelog",
            events_partitions or partitions,
            replication,
            {
                "cleanup.policy": "compact",
                # A restart reads all that is not compacted yet. Only closed segments are, so
                # they are small, and tombstones of pages that left a window go after an hour.
                "segment.bytes": str(64 << 20),
                "segment.ms": _ms(timedelta(minutes=10)),
                "min.cleanable.dirty.ratio": "0.1",
                "min.compaction.lag.ms": "0",
                "delete.retention.ms": _ms(timedelta(hours=1)),
                "max.message.bytes": str(TOPIC_BYTES),
                **durable,
            },
            mirrors_events=True,
            operations=("READ", "WRITE"),
        ),
    )


def faults(plan: Plan, topic: Topic | None) -> Iterator[str]:
    """Yield a sentence for everything about an existing topic that would lose data."""
    if topic is None:
        return
    if plan.mirrors_events and topic.partitions != plan.partitions:
        yield (
            f"the changelog {topic.name} has {topic.partitions} partitions and the events topic "
            f"{plan.partitions}: they must be equal, so start the job under a new kafka.group"
        )
    for name in plan.vital:
        found, needed = topic.settings.get(name), plan.settings[name]
        # Not told, or nothing at all: since Kafka 4.2 a topic may have no policy, and keeps all.
        if found and found != needed:
            yield (
                f"the topic {topic.name} ({plan.setting}) has {name} = {found} and loses data: "
                f"set {name} = {needed} on it"
            )


def losses(plans: Sequence[Plan], topics: Mapping[str, Topic]) -> Iterator[str]:
    """Yield the faults of the events topic and of the changelog: no worker begins with them."""
    for plan in (plans[0], plans[-1]):
        yield from faults(plan, topics.get(plan.name))


def differences(plan: Plan, topic: Topic) -> list[str]:
    """Return the settings of an existing topic that are not as it would have been made."""
    return [
        f"{name} = {topic.settings[name]} (made here: {value})"
        for name, value in plan.settings.items()
        if topic.settings.get(name, value) != value
    ]


def narrow(plan: Plan, topic: Topic) -> str | None:
    """Say what a topic's ``max.message.bytes`` costs; None where nothing, or it is not told."""
    limit = topic.settings.get("max.message.bytes")
    if not plan.narrow or limit is None or int(limit) >= BATCH_BYTES:
        return None
    return (
        f"the topic {topic.name} ({plan.setting}) has max.message.bytes = {limit}: {plan.narrow}; "
        f"set it to {TOPIC_BYTES}, Kafka's default"
    )


class Cluster:
    """A broker, or several, as the settings reach it.

    Parameters
    ----------
    settings
        The job's settings; only ``[kafka]`` is used.
    """

    def __init__(self, settings: Settings) -> None:
        self.servers = ", ".join(settings.kafka.bootstrap_servers)
        self._job = settings
        self._last_error = ""
        client: dict[str, Any] = {
            # The client's own lines about each failed connection would bury our one sentence.
            "log_level": 0,
            # A connection that brings nothing any more would be held for a minute.
            "socket.timeout.ms": int(CALL_SECONDS * 1000),
            **librdkafka(settings, "admin"),
            "error_cb": self._on_error,
        }
        self.client = AdminClient(client)

    def wait(self, seconds: float) -> None:
        """Wait until a broker answers.

        Raises
        ------
        BrokerAwayError
            When none did within `seconds`.
        RefusedError, CertificateError
            When one is there and does not let us in, the second time it is asked.
        """
        deadline = time.monotonic() + seconds
        refused = False
        while not self.answers():
            why = self.refusal()
            if why is not None and refused:
                raise why
            refused = why is not None
            if time.monotonic() >= deadline:
                raise why or BrokerAwayError(self.away())

    def close(self) -> None:
        """Let go of the broker; nothing can be asked any more."""
        # librdkafka's connections end with the last reference, and a callback is one.
        del self.client

    def answers(self) -> bool:
        """Tell whether a broker answers within about a second."""
        try:
            there = bool(self.client.list_topics(timeout=_ATTEMPT_SECONDS).brokers)
        except KafkaException as error:
            self._last_error = self._last_error or _text(error)
            self.client.poll(0)
            return False
        self._last_error = ""
        return there

    def away(self) -> str:
        """Return the sentence that says no broker answers, and what it depends on."""
        told = self.trouble()
        why = f" ({told})" if told else ""
        return (
            f"no Kafka broker answers at {self.servers}{why}: start it, or correct "
            "kafka.bootstrap_servers or [kafka.security]"
        )

    def reach(self) -> None:
        """See to it that a broker is also there where it says itself that it is.

        Raises
        ------
        BrokerAwayError
            When none is, with the address that was tried.
        """
        try:
            self.client.describe_cluster(request_timeout=WAIT_SECONDS).result()
        except KafkaException as error:
            if error.args[0].code() not in _UNREACHED:
                # It was reached, and says so itself.
                return
            self.client.poll(0)
            raise BrokerAwayError(
                f"the broker at {self.servers} answers, and none does at the addresses that the "
                f"brokers give themselves ({self.trouble() or _text(error)}): correct their "
                "advertised.listeners, the name service or the firewall"
            ) from error

    def trouble(self) -> str:
        """Return what was wrong with a connection last, since a broker answered; "" if nothing."""
        return _NOISE.sub("", self._last_error)

    def refusal(self) -> RocstreamError | None:
        """Return what keeps us out, when it is not that no broker is there."""
        return refusal(self._job, self._last_error)

    def brokers(self) -> int:
        """Return how many brokers there are."""
        return len(self._call(lambda: self.client.list_topics(timeout=CALL_SECONDS).brokers))

    def partitions(self) -> dict[str, int]:
        """Return the number of partitions of every topic that may be seen."""
        found = self._call(lambda: self.client.list_topics(timeout=CALL_SECONDS).topics)
        return {name: len(topic.partitions) for name, topic in found.items() if not topic.error}

    def topics(self, names: Iterable[str]) -> dict[str, Topic]:
        """Return those of the named topics that exist, with their settings."""
        known = self._call(lambda: self.client.list_topics(timeout=CALL_SECONDS).topics)
        # A broker may answer for a topic it does not have, with an error in the answer.
        found = [known[name] for name in names if name in known and not known[name].error]
        settings = self._settings([topic.topic for topic in found])
        return {
            topic.topic: Topic(
                topic.topic,
                len(topic.partitions),
                min((len(part.replicas) for part in topic.partitions.values()), default=0),
                settings.get(topic.topic, {}),
            )
            for topic in found
        }

    def create(self, wanted: Iterable[Plan], *, dry_run: bool = False) -> None:
        """Create topics, each as its plan says; with `dry_run` the broker only checks it could.

        Raises
        ------
        RocstreamError
            With the topic's name and the broker's reason, for the first that failed.
        """
        needed = {plan.name: plan for plan in wanted}
        new = [
            NewTopic(plan.name, plan.partitions, plan.replication, config=dict(plan.settings))
            for plan in needed.values()
        ]
        if not new:
            return
        made = self.client.create_topics(
            new,
            operation_timeout=CALL_SECONDS,
            request_timeout=CALL_SECONDS,
            validate_only=dry_run,
        )
        for name, future in made.items():
            try:
                future.result()
            except KafkaException as error:
                if error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    raise RocstreamError(
                        f"the user may not create the topic {name} ({needed[name].setting}): grant "
                        "CREATE on it"
                    ) from error
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise RocstreamError(f"topic {name} was not made: {_text(error)}") from error

    def remove(self, names: Iterable[str], group: str) -> None:
        """Remove topics and a group without members, as far as they are there.

        Raises
        ------
        RocstreamError
            With the topic's name and the broker's reason.
        """
        for name, future in self.client.delete_topics(
            list(names), operation_timeout=CALL_SECONDS, request_timeout=CALL_SECONDS
        ).items():
            try:
                future.result()
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise RocstreamError(f"topic {name} was not removed: {_text(error)}") from error
        for future in self.client.delete_consumer_groups(
            [group], request_timeout=CALL_SECONDS
        ).values():
            try:
                future.result()
            except KafkaException as error:
                if error.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
                    raise RocstreamError(
                        f"group {group} was not removed: {_text(error)}"
                    ) from error

    def may(self, name: str) -> frozenset[str] | None:
        """Return what we may do with a topic, in capitals (READ, WRITE, ...); None if not told."""
        asked = self.client.describe_topics(
            TopicCollection([name]),
            include_authorized_operations=True,
            request_timeout=CALL_SECONDS,
        )
        try:
            allowed = asked[name].result().authorized_operations
        except KafkaException:
            # Brokers other than Apache's may not know the call; not being told is no fault.
            return None
        return None if not allowed else frozenset(operation.name for operation in allowed)

    def lacking(self, plan: Plan) -> list[str]:
        """Return a sentence for each thing that the user must do with a topic and may not."""
        allowed = self.may(plan.name)
        return [
            f"the user may not {operation.lower()} the topic {plan.name} ({plan.setting}): "
            f"grant {operation} on it"
            for operation in plan.operations
            if allowed is not None and not {operation, "ALL"} & allowed
        ]

    def hidden(self, name: str) -> bool:
        """Tell whether a topic may not even be seen, so that nobody knows if it exists."""
        asked = self.client.describe_topics(TopicCollection([name]), request_timeout=CALL_SECONDS)
        try:
            asked[name].result()
        except KafkaException as error:
            return bool(error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED)
        return False

    def absent(self, plan: Plan, *operations: str) -> RocstreamError:
        """Return what is to be said of a topic that is not among those we see.

        Parameters
        ----------
        plan
            Of the topic.
        operations
            What would be done with it; by default what a worker does.
        """
        if self.hidden(plan.name):
            return RocstreamError(
                f"the user may not see the topic {plan.name} ({plan.setting}): grant "
                f"{' and '.join(operations or plan.operations)} on it"
            )
        return SettingsError(
            f"the topic {plan.name} ({plan.setting}) does not exist: make it with `rocstream "
            "topics create -c FILE`, or correct the name"
        )

    def _settings(self, names: list[str]) -> dict[str, dict[str, str]]:
        if not names:
            return {}
        asked = self.client.describe_configs(
            [ConfigResource(ResourceType.TOPIC, name) for name in names],
            request_timeout=CALL_SECONDS,
        )
        told = {}
        for resource, future in asked.items():
            try:
                entries = future.result().values()
            except KafkaException:
                # A user may be allowed to use a topic and not to read its settings.
                continue
            told[resource.name] = {entry.name: entry.value for entry in entries}
        return told

    def _call(self, ask: Any) -> Any:
        try:
            return ask()
        except KafkaException as error:
            raise RocstreamError(f"{self.servers} did not answer: {_text(error)}") from error

    def _on_error(self, error: KafkaError) -> None:
        # That all are down follows from what the first one said, which tells more.
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001
            self._last_error = error.str()


def _text(error: KafkaException) -> str:
    return str(error.args[0].str())


def _ms(span: timedelta) -> str:
    return str(span // timedelta(milliseconds=1))
