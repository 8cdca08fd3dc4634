"""The names that [kafka.client] takes, and why the others are refused."""

from __future__ import annotations

import logging
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from confluent_kafka import Consumer, KafkaException, Producer

from config.limits import TRANSACTION_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping

TRANSACTIONAL: Final[Mapping[str, str]] = MappingProxyType(
    {
        "acks": "all",
        "enable.idempotence": "true",
        "transaction.timeout.ms": str(TRANSACTION_SECONDS * 1000),
    }
)
"""What makes a task's producer deliver exactly once; its transactional id comes to it."""

SHARED: Final = frozenset(
    [
        "api.version.request.timeout.ms",
        "broker.address.family",
        "broker.address.ttl",
        "client.dns.lookup",
        "connections.max.idle.ms",
        "debug",
        "enable.metrics.push",
        "enable.random.seed",
        "log.connection.close",
        "log.thread.name",
        "log_level",
        "message.copy.max.bytes",
        "metadata.max.age.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "receive.message.max.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "socket.blocking.max.ms",
        "socket.connection.setup.timeout.ms",
        "socket.keepalive.enable",
        "socket.max.fails",
        "socket.nagle.disable",
        "socket.receive.buffer.bytes",
        "socket.send.buffer.bytes",
        "socket.timeout.ms",
        "statistics.interval.ms",
        "topic.metadata.propagation.max.ms",
        "topic.metadata.refresh.fast.interval.ms",
        "topic.metadata.refresh.interval.ms",
        "topic.metadata.refresh.sparse",
    ]
)

PRODUCER: Final = frozenset(
    [
        "batch.num.messages",
        "batch.size",
        "compression.codec",
        "compression.level",
        "compression.type",
        "linger.ms",
        "queue.buffering.backpressure.threshold",
        "queue.buffering.max.kbytes",
        "queue.buffering.max.messages",
        "queue.buffering.max.ms",
        "request.timeout.ms",
        "sticky.partitioning.linger.ms",
    ]
)

CONSUMER: Final = frozenset(
    [
        "check.crcs",
        "fetch.error.backoff.ms",
        "fetch.max.bytes",
        "fetch.message.max.bytes",
        "fetch.min.bytes",
        "fetch.queue.backoff.ms",
        "fetch.wait.max.ms",
        "max.partition.fetch.bytes",
        "queued.max.messages.kbytes",
        "queued.min.messages",
    ]
)

ALLOWED: Final = SHARED | PRODUCER | CONSUMER

ELSEWHERE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "auto.offset.reset": "topics.start",
        "bootstrap.servers": "kafka.bootstrap_servers",
        "client.id": "kafka.client_id",
        "client.rack": "kafka.client_rack",
        "group.id": "kafka.group",
        "group.instance.id": "kafka.group_instance_id",
        "metadata.broker.list": "kafka.bootstrap_servers",
        "sasl.mechanism": "kafka.security.mechanism",
        "sasl.mechanisms": "kafka.security.mechanism",
        "sasl.password": "kafka.security.password",
        "sasl.username": "kafka.security.username",
        "security.protocol": "kafka.security.protocol",
        "ssl.ca.location": "kafka.security.ca_file",
        "ssl.certificate.location": "kafka.security.cert_file",
        "ssl.key.location": "kafka.security.key_file",
    }
)

OWNED: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(
            [
                "acks",
                "request.required.acks",
                "enable.idempotence",
                "enable.gapless.guarantee",
                "delivery.timeout.ms",
                "message.timeout.ms",
                "max.in.flight",
                "max.in.flight.requests.per.connection",
                "message.send.max.retries",
                "retries",
                "transactional.id",
                "transaction.timeout.ms",
                "isolation.level",
                "api.version.request",
            ],
            "exactly-once delivery rests on it",
        ),
        **dict.fromkeys(
            [
                "auto.commit.enable",
                "auto.commit.interval.ms",
                "enable.auto.commit",
                "enable.auto.offset.store",
                "offset.store.method",
                "enable.partition.eof",
            ],
            "the position in the input moves with the updates, in their transaction",
        ),
        **dict.fromkeys(
            [
                "group.protocol",
                "group.protocol.type",
                "group.remote.assignor",
                "partition.assignment.strategy",
                "heartbeat.interval.ms",
                "max.poll.interval.ms",
                "session.timeout.ms",
            ],
            "Faust keeps the group and assigns the partitions",
        ),
        **dict.fromkeys(
            ["partitioner", "queuing.strategy"],
            "keys go to the partition where every Kafka client expects them",
        ),
        "message.max.bytes": "what it writes is cut to what the topics take, which it looks up",
        "allow.auto.create.topics": "topics are created by `rocstream topics create` alone",
        "plugin.library.paths": "the worker loads no foreign code",
    }
)

# Faust's own client would not hear of these, so that half of the worker could not connect.
_SECURITY: Final = re.compile(
    r"sasl\..*|ssl[._].*|https\..*|enable\.ssl\..*|enable\.sasl\..*|.*oauthbearer.*"
)


def refusal(name: str) -> str | None:
    """Return why [kafka.client] cannot hold `name`, with the cure; None when it can be tried."""
    if name in ELSEWHERE:
        return f"it has a setting of its own: {ELSEWHERE[name]}"
    if name in OWNED:
        return f"the worker owns it, because {OWNED[name]}: remove it"
    if _SECURITY.fullmatch(name):
        return "how to connect securely belongs into [kafka.security]: remove it"
    return None


def complaint(client: Mapping[str, str]) -> tuple[str | None, str] | None:
    """Return what librdkafka says against these settings, with the name it is about if one.

    It is asked by making clients that know no broker (some 0.5 ms each): its rules about values
    and about what fits together are its own, and differ between versions.
    """
    shared = {name: value for name, value in client.items() if name in SHARED}
    produced = {name: value for name, value in client.items() if name in PRODUCER}
    consumed = {name: value for name, value in client.items() if name in CONSUMER}
    task = {**TRANSACTIONAL, "transactional.id": "probe"}
    together = _refused(Producer, {**shared, **produced, **task})
    together = together or _refused(Consumer, {**shared, **consumed, "group.id": "probe"})
    if together is None:
        return None
    for name, value in client.items():
        if alone := _refused(Producer, {name: value}):
            return name, alone
    return None, together


def _refused(kind: type[Producer | Consumer], client: Mapping[str, str]) -> str | None:
    silent = logging.getLogger("config.librdkafka.probe")
    silent.disabled = True
    try:
        made = kind(dict(client), logger=silent)
    except KafkaException as error:
        return str(error.args[0].str()).strip()
    if isinstance(made, Consumer):
        made.close()
    return None
