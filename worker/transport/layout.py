"""What a job finds at the broker before it starts: its topics, and how they fit together."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog
from confluent_kafka import KafkaException, TopicCollection

from config.errors import SettingsError
from worker.admin import Cluster, plans
from worker.pipeline import REJECTION_BYTES

if TYPE_CHECKING:
    from threading import Event

    from config import Settings

log = structlog.get_logger(__name__)

REFUSED_SECONDS: Final = 5.0
"""A broker that does not let us in may just be starting; after this long it is the settings."""

IDENTITY_CALL_SECONDS: Final = 5.0
"""Less than a worker has to leave: it may be asking a broker that is gone."""


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
    """

    partitions: int
    events_id: str
    changelog: str
    rejection_bytes: int
    brokers: int = 1


def survey(settings: Settings, stop: Event) -> Layout | None:
    """Look the job's topics up; wait for a broker that is away. Blocks.

    Returns
    -------
    Layout or None
        None when `stop` was set meanwhile.

    Raises
    ------
    SettingsError
        When a topic is missing, the changelog does not have the partitions of the events, or a
        broker does not let us in.
    CertificateError
        When the broker's certificate is not valid now.
    RocstreamError
        When we may not see a topic.
    """
    cluster = Cluster(settings)
    if not _wait(cluster, stop):
        return None
    counts = cluster.partitions()
    needed = plans(settings)
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
    return Layout(
        counts[events],
        topic_id(cluster, events),
        changelog,
        _rejection_bytes(cluster, settings.topics.rejected),
        cluster.brokers(),
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


def _rejection_bytes(cluster: Cluster, topic: str) -> int:
    told = cluster.topics([topic])[topic].settings.get("max.message.bytes")
    return min(REJECTION_BYTES, int(told)) if told else REJECTION_BYTES


def topic_id(cluster: Cluster, topic: str) -> str:
    """Return the topic's id, "" where the broker gives none. Blocks some seconds at the most."""
    described = cluster.client.describe_topics(
        TopicCollection([topic]), request_timeout=IDENTITY_CALL_SECONDS
    )
    try:
        found = described[topic].result().topic_id
    except KafkaException:
        # It is away, or has no such topic just now, or is not Apache's and does not know the call.
        return ""
    finally:
        # What the client tells meanwhile would pile up.
        cluster.client.poll(0)
    return "" if found is None else str(found)
