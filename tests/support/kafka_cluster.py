"""Three Kafka brokers on this machine: they replicate to each other, and each may be killed."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import brokers
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

if TYPE_CHECKING:
    from collections.abc import Iterator

NODES: Final = (1, 2, 3)
GROUPS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
_SETTLE_SECONDS: Final = 60.0

# One partition each, so that one broker coordinates all groups, and one all transactions.
_REPLICATED: Final = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
}


class Cluster:
    """Brokers by their node id; each also votes on who controls them."""

    def __init__(self) -> None:
        free = iter(brokers.free_ports(2 * len(NODES)))
        ports = {node: (next(free), next(free)) for node in NODES}
        voters = ",".join(f"{node}@127.0.0.1:{own}" for node, (_, own) in ports.items())
        self.nodes: dict[int, Any] = {
            node: brokers.with_properties(
                {"node.id": str(node), "controller.quorum.voters": voters, **_REPLICATED},
                own,
                heap=320,
            )
            for node, own in ports.items()
        }
        self.bootstrap_servers = ",".join(one.bootstrap_servers for one in self.nodes.values())

    def start(self, *nodes: int) -> None:
        """Start these brokers, by default all, and wait until nothing lags behind."""
        for node in nodes or NODES:
            self.nodes[node].launch()
        self.settle()

    def settle(self) -> None:
        """Wait until every replica there is follows its leader."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        deadline = time.monotonic() + _SETTLE_SECONDS
        while not self._settled(admin):
            assert time.monotonic() < deadline, self.log_tail()
            time.sleep(0.1)

    def leader(self, topic: str, partition: int = 0) -> int:
        """Return the node that leads a partition."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        found = admin.list_topics(timeout=10).topics[topic].partitions[partition].leader
        return int(found)

    def kill(self, *nodes: int) -> None:
        """End brokers as a power cut would."""
        for node in nodes:
            self.nodes[node].kill()

    def close(self) -> None:
        """End all, and remove their data."""
        for one in self.nodes.values():
            one.close()

    def log_tail(self) -> str:
        """Return the ends of all logs."""
        return "\n".join(f"{one.name}:\n{one.log_tail(30)}" for one in self.nodes.values())

    def _settled(self, admin: AdminClient) -> bool:
        try:
            found = admin.list_topics(timeout=2)
        except KafkaException:
            return False
        return len(found.brokers) == len(NODES) and all(
            part.leader in NODES and len(part.isrs) == len(part.replicas)
            for topic in found.topics.values()
            for part in topic.partitions.values()
        )


@contextmanager
def running() -> Iterator[Cluster]:
    """Run three brokers; whatever happens, they are ended after it."""
    cluster = Cluster()
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()
