"""What a job finds at the broker before it starts: its topics, and how they fit together."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog
from confluent_kafka import KafkaError, KafkaException, TopicCollection

from config.errors import RocstreamError, SettingsError
from worker.admin import Cluster, losses, plans
from worker.messages import BATCH_BYTES
from worker.transport.waiting import Wait

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from threading import Event

    from config import Settings
    from worker.admin import Topic

log = structlog.get_logger(__name__)

REFUSED_SECONDS: Final = 5.0
"""A broker that does not let us in may just be starting; after this long it is the settings."""

IDENTITY_CALL_SECONDS: Final = 5.0
"""Less than a worker has to leave: it may be asking a broker that is gone."""

IDENTITY_SECONDS: Final = 30.0
"""A broker that just answered is asked for the topic's id for so long."""

_PAUSE_SECONDS: Final = 0.2

_NO_IDS: Final = frozenset(
    {KafkaError.UNSUPPORTED_VERSION, KafkaError._UNSUPPORTED_FEATURE}  # noqa: SLF001 - public constant
)
_NO_ID: Final = "A" * 22
"""An id of zeros, in Kafka's spelling: that of a topic from before there were any."""

_FRAME_BYTES: Final = 500
"""Of a topic's limit, what a batch may have beside what librdkafka counts of it."""


class Layout(NamedTuple):
    """The job's ground.

    Attributes
    ----------
    partitions
        Of the events topic and the changelog: the number of tasks.
    events_id
        Id of the events topic, "" where the broker gives none.
    changelog
        Name of the changelog topic.
    rejection_bytes
        What a dead letter may take: a record that the rejected topic refused would stop the job.
    brokers
        How many there are: each task keeps connections to each.
    batch_bytes
        What a batch of messages may take: each of the topics that tasks write to takes it. A
        message that is larger goes alone.
    changelog_id
        Id of the changelog, "" where the broker gives none.
    """

    partitions: int
    events_id: str
    changelog: str
    rejection_bytes: int
    brokers: int = 1
    batch_bytes: int = BATCH_BYTES
    changelog_id: str = ""


def survey(settings: Settings, stop: Event) -> Layout | None:
    """Look the job's topics up; wait for a broker that is away. Blocks.

    Returns
    -------
    Layout or None
        None when `stop` was set meanwhile.

    Raises
    ------
    SettingsError
        When a topic is missing or deletes what the job needs, the changelog does not have the
        partitions of the events, or a broker does not let us in.
    CertificateError
        When the broker's certificate is not valid now.
    RocstreamError
        When we may not see a topic, or its id is not told.
    """
    cluster = Cluster(settings)
    if not _wait(cluster, stop):
        return None
    counts = cluster.partitions()
    needed = plans(settings, counts.get(settings.topics.events))
    for plan in needed:
        if plan.name not in counts:
            raise cluster.absent(plan)
    events, changelog = needed[0].name, needed[-1].name
    if counts[events] != counts[changelog]:
        raise SettingsError(
            f"the topic {events} has {counts[events]} partitions and the changelog {changelog} "
            f"has {counts[changelog]}: they must be equal, and a job cannot change its number of "
            "tasks, so take a new kafka.group"
        )
    events_id = _told_id(cluster, events, "events topic", stop)
    # A broker that gives one topic no id has none for the other.
    changelog_id = events_id and _told_id(cluster, changelog, "changelog", stop)
    if events_id is None or changelog_id is None:
        return None
    found = cluster.topics(plan.name for plan in needed)
    refuse_lossy(settings, counts[events], found)
    updates, rejected = settings.topics.updates, settings.topics.rejected
    limits = _limits(found[name] for name in (updates, rejected, changelog) if name in found)
    return Layout(
        counts[events],
        events_id,
        changelog,
        min(BATCH_BYTES, limits.get(rejected, BATCH_BYTES)),
        cluster.brokers(),
        max(min((BATCH_BYTES, *(limit - _FRAME_BYTES for limit in limits.values()))), 1),
        changelog_id,
    )


def _wait(cluster: Cluster, stop: Event) -> bool:
    if cluster.answers():
        return True
    told = False
    refused_since = time.monotonic()
    while not stop.is_set():
        why = cluster.refusal()
        if why is None:
            refused_since = time.monotonic()
            if not told:
                log.warning(f"{cluster.away()}; waiting for it")  # noqa: G004 - structlog takes an event
            told = True
        elif time.monotonic() - refused_since > REFUSED_SECONDS:
            raise why
        if cluster.answers():
            log.info("the broker answers")
            return True
    return False


def refuse_lossy(settings: Settings, partitions: int, found: Mapping[str, Topic]) -> None:
    """Refuse an events topic or a changelog whose own settings delete what the job needs.

    Raises
    ------
    SettingsError
        With the topic, the setting and the cure.
    """
    for loss in losses(plans(settings, partitions), found):
        raise SettingsError(loss)


def _limits(topics: Iterable[Topic]) -> dict[str, int]:
    """Return the ``max.message.bytes`` of topics, as far as they are told."""
    told = {topic.name: topic.settings.get("max.message.bytes") for topic in topics}
    return {name: int(limit) for name, limit in told.items() if limit}


def _told_id(cluster: Cluster, topic: str, what: str, stop: Event) -> str | None:
    """Ask for the id until it is told; not knowing it would turn a guard off for good."""
    wait = Wait(f"waiting for the broker to tell the id of the {what}", topic=topic)
    deadline = time.monotonic() + IDENTITY_SECONDS
    while not stop.is_set():
        began = time.monotonic()
        try:
            found = topic_id(cluster, topic)
        except KafkaException as error:
            why = cluster.trouble() or error.args[0].str()
            if time.monotonic() > deadline:
                raise RocstreamError(
                    f"the broker does not tell the id of the topic {topic} ({why}): see whether "
                    "the addresses that the brokers give themselves (advertised.listeners) can be "
                    "reached from here, whether the user may DESCRIBE the topic, and the broker's "
                    "log"
                ) from error
            wait.tell(why, began)
            stop.wait(_PAUSE_SECONDS)
        else:
            wait.over()
            if not found:
                log.warning(
                    "the broker gives topics no ids, so one that is deleted and made again is "
                    "only known by its offsets",
                    topic=topic,
                )
            return found
    return None


def topic_id(cluster: Cluster, topic: str) -> str:
    """Return the topic's id, "" where the broker gives none. Blocks some seconds at the most.

    Raises
    ------
    KafkaException
        When there was no answer, or the topic is not there or not to be seen.
    """
    described = cluster.client.describe_topics(
        TopicCollection([topic]), request_timeout=IDENTITY_CALL_SECONDS
    )
    try:
        found = str(described[topic].result().topic_id or "")
    except KafkaException as error:
        if error.args[0].code() in _NO_IDS:
            return ""
        raise
    finally:
        # What the client tells meanwhile would pile up.
        cluster.client.poll(0)
    return "" if found == _NO_ID else found
