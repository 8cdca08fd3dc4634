"""What every broker of the tests can do, and the settings of one that stands alone."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

KAFKA = os.environ.get("ROCSTREAM_TEST_KAFKA_VERSION", "4.1.1")
START_SECONDS, STOP_SECONDS = 60, 20

# One broker alone: nothing is replicated, nothing is created by accident, groups form at once.
SERVER = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": (
        "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"
    ),
    # A killed broker comes back only when its old session is over: 9 s by default.
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}


class NoBrokerError(RuntimeError):
    """No Kafka was found and none could be started; the text says what to install."""


class Broker(ABC):
    """A running Kafka: where it is, what it logged, and (when it is ours) how to hurt it."""

    name: str
    bootstrap_servers: str
    log: Path | None = None
    ours = True

    @abstractmethod
    def start(self) -> None:
        """Start it, on the port and data it had before if any, and wait until it answers."""

    @abstractmethod
    def stop(self) -> None:
        """End it in an orderly way; port and data are kept for `start`."""

    @abstractmethod
    def kill(self) -> None:
        """End it as a power cut would; port and data are kept for `start`."""

    @abstractmethod
    def freeze(self) -> None:
        """Stop it in the middle of whatever it does, connections kept."""

    @abstractmethod
    def thaw(self) -> None:
        """Let a frozen broker go on."""

    @abstractmethod
    def close(self) -> None:
        """End it for good and remove its data."""

    def restart(self) -> None:
        """Stop in an orderly way and start again on the same port and data."""
        self.stop()
        self.start()

    def log_tail(self, lines: int = 60) -> str:
        """Return the last lines of the broker's log, for a failed test."""
        if self.log is None or not self.log.exists():
            return f"{self.name}: no log at hand"
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def await_ready(self, ended: Callable[[], bool]) -> None:
        """Wait until the broker serves its cluster's metadata."""
        from confluent_kafka import KafkaException  # noqa: PLC0415  (the script starts without)
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415

        host, port = self.bootstrap_servers.split(",")[0].rsplit(":", 1)
        admin = None
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and not ended():
            try:
                socket.create_connection((host, int(port)), timeout=1).close()
                admin = admin or AdminClient(
                    {"bootstrap.servers": self.bootstrap_servers, "log_level": 0}
                )
                if admin.list_topics(timeout=2).brokers:
                    return
            except (OSError, KafkaException):
                time.sleep(0.05)
        msg = f"{self.name} did not answer on {self.bootstrap_servers}; its log ends with:"
        raise NoBrokerError(f"{msg}\n{self.log_tail()}")


def free_ports(count: int) -> list[int]:
    """Return ports of 127.0.0.1 below those the system gives to outgoing connections.

    From that range, a client that keeps trying a dead broker's port ends up talking to itself.
    """
    first_outgoing = 32768
    with contextlib.suppress(OSError):
        range_ = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
        first_outgoing = int(range_[0])
    candidates = range(10_000, first_outgoing) if first_outgoing > 11_000 else range(61_000, 65_535)
    found: list[int] = []
    for port in random.sample(candidates, min(500, len(candidates))):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            return found
    raise NoBrokerError("No free port on 127.0.0.1 for a broker")
