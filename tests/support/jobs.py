"""A job on a real broker: its topics, its worker processes, and an independent reader."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
import uuid
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
from aiokafka.protocol.group import LeaveGroupRequest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

import config
from worker.admin import Cluster, plans

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterable, Iterator

    from worker.pages import Cursor


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


READY = '"ready"'
MONITOR = """
[[monitor]]
name = "last-500"
window = { kind = "count", size = 500, slide = 50 }
metrics = ["auc", "h"]
"""
"""The monitor of jobs that ask for none of their own."""

GOOD = orjson.dumps({"score": 0.5, "label": 1})
"""An event of which the worker takes in any number."""


class Read(NamedTuple):
    """A record as a read_committed reader sees it; `time` is its timestamp in ms."""

    partition: int
    offset: int
    time: int
    key: bytes | None
    value: bytes | None
    headers: dict[str, bytes]


class Job:
    """A settings file with names of its own, the topics it needs, and workers on it."""

    def __init__(
        self,
        bootstrap_servers: str,
        folder: Path,
        text: str,
        partitions: int,
        commit_interval: str = "20ms",
    ) -> None:
        name = f"job-{uuid.uuid4().hex[:8]}"
        self.servers = bootstrap_servers
        self.path = folder / f"{name}.toml"
        self.path.write_text(
            f"""
[kafka]
bootstrap_servers = "{bootstrap_servers}"
group = "{name}"
commit_interval = "{commit_interval}"

[topics]
events = "{name}-events"
updates = "{name}-updates"
rejected = "{name}-rejected"
partitions = {partitions}
replication = 1

[log]
format = "json"
{text}
"""
        )
        self.settings = config.load(self.path, {})
        self.folder = folder
        self._workers = 0

    def create_topics(self, **message_bytes: int) -> None:
        """Create what the job needs; `rejected=5_000` has that topic take small messages only."""
        Cluster(self.settings).create(
            plan._replace(settings={**plan.settings, "max.message.bytes": str(limit)})
            if (limit := message_bytes.get(plan.setting.removeprefix("topics.")))
            else plan
            for plan in plans(self.settings)
        )

    def produce(self, events: Iterable[tuple[bytes | None, bytes | None]], **options: Any) -> None:
        """Publish keyed values in order, keys to the partitions where keyed producers put them."""
        producer = Producer(
            {
                "bootstrap.servers": self.servers,
                "partitioner": "murmur2_random",
                "linger.ms": 5,
                "message.max.bytes": 2_000_000,
                # Without it a retry may change the order.
                "enable.idempotence": True,
                **options,
            }
        )
        failed: list[KafkaError] = []
        for key, value in events:
            while True:
                try:
                    producer.produce(
                        self.settings.topics.events,
                        value,
                        key,
                        on_delivery=lambda error, _: failed.append(error) if error else None,
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
            producer.poll(0)
        assert producer.flush(60) == 0
        assert not failed

    def end_offset(self, partition: int) -> int:
        """Where a partition of the events topic ends."""
        place = TopicPartition(self.settings.topics.events, partition)
        admin = AdminClient({"bootstrap.servers": self.servers})
        return int(admin.list_offsets({place: OffsetSpec.latest()})[place].result(20).offset)

    def produce_in_transaction(
        self, events: Iterable[tuple[bytes | None, bytes | None]], *, commit: bool
    ) -> None:
        """Publish values in one transaction; aborted, its records lie in the log all the same."""
        producer = Producer(
            {
                "bootstrap.servers": self.servers,
                "transactional.id": f"{self.settings.kafka.group}-source",
                "partitioner": "murmur2_random",
            }
        )
        producer.init_transactions(20)
        producer.begin_transaction()
        for key, value in events:
            producer.produce(self.settings.topics.events, value, key)
        # What is still in the client would be dropped there.
        assert producer.flush(20) == 0
        if commit:
            producer.commit_transaction(20)
        else:
            producer.abort_transaction(20)

    def make_events_again(self) -> None:
        """Delete the events topic and make it anew."""
        self.make_again(self.settings.topics.events)

    def make_again(self, topic: str, seconds: float = 20) -> None:
        """Delete a topic and make it with the broker's settings, once its name is free again."""
        admin = AdminClient({"bootstrap.servers": self.servers})
        admin.delete_topics([topic])[topic].result(20)
        deadline = time.monotonic() + seconds
        while True:
            try:
                admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
            except KafkaException:
                assert time.monotonic() < deadline
                time.sleep(0.1)
            else:
                return

    def configure(self, topic: str, **settings: str) -> None:
        """Change settings of a topic; names take underscores: ``cleanup_policy="compact"``."""
        entries = [
            ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
            for name, value in settings.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        admin = AdminClient({"bootstrap.servers": self.servers})
        for future in admin.incremental_alter_configs([resource]).values():
            future.result(20)

    def set_group_offset(self, partition: int, offset: int) -> None:
        """Move the group as a person would, with Kafka's own tools."""
        place = TopicPartition(self.settings.topics.events, partition, offset)
        moved = ConsumerGroupTopicPartitions(self.settings.kafka.group, [place])
        admin = AdminClient({"bootstrap.servers": self.servers})
        for future in admin.alter_consumer_group_offsets([moved]).values():
            future.result(20)

    def bury(self) -> None:
        """Tell the group that all of its members are dead: it would wait 10 s for them."""
        asyncio.run(self._bury())

    async def _bury(self) -> None:
        group = self.settings.kafka.group
        admin = AdminClient({"bootstrap.servers": self.servers})
        members = admin.describe_consumer_groups([group])[group].result(20).members
        client = AIOKafkaClient(bootstrap_servers=self.servers)
        try:
            await client.bootstrap()
            node = await client.coordinator_lookup(CoordinationType.GROUP, group)
            for member in members:
                left = await client.send(
                    node,
                    LeaveGroupRequest(group, member.member_id),
                    group=ConnectionGroup.COORDINATION,
                )
                assert left.error_code == 0
        finally:
            await client.close()

    @contextmanager
    def worker(
        self, *arguments: str, program: tuple[str, ...] = ("-m", "worker")
    ) -> Iterator[Worker]:
        """Run a worker; it is killed at the end if it still runs.

        `program` is what Python runs in the place of the command line itself.
        """
        self._workers += 1
        log = self.folder / f"worker-{self._workers}.log"
        worker = Worker([*program, "worker", "-c", str(self.path), *arguments], log)
        try:
            yield worker
        finally:
            worker.kill()

    def read(self, topic: str, count: int, seconds: float = 60) -> list[Read]:
        """Read committed records from the beginning until there are `count`, and what follows."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "reader",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
            }
        )
        found: list[Read] = []
        deadline = time.monotonic() + seconds
        try:
            partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
            consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
            at_end: set[int] = set()
            while time.monotonic() < deadline:
                for message in consumer.consume(1000, 0.1):
                    error = message.error()
                    if error is None:
                        found.append(
                            Read(
                                message.partition(),
                                message.offset(),
                                message.timestamp()[1],
                                message.key(),
                                message.value(),
                                dict(message.headers() or []),
                            )
                        )
                        at_end.discard(message.partition())
                    elif error.code() == KafkaError._PARTITION_EOF:
                        at_end.add(message.partition())
                if len(found) >= count and len(at_end) == len(partitions):
                    return found
        finally:
            consumer.close()
        raise AssertionError(f"{topic} has {len(found)} records after {seconds} s, not {count}")

    def updates(self, count: int, seconds: float = 60) -> list[dict[str, Any]]:
        read = self.read(self.settings.topics.updates, count, seconds)
        return [orjson.loads(record.value or b"") for record in read]

    def cursors(self) -> dict[int, Cursor]:
        """The committed cursor of each task."""
        from worker.pages import CURSOR_KEY, unpack_cursor  # noqa: PLC0415

        changelog = plans(self.settings)[-1].name
        return {
            record.partition: unpack_cursor(record.value)
            for record in self.read(changelog, 0)
            if record.key == CURSOR_KEY and record.value is not None
        }

    def state(self) -> Counter[str]:
        """Counts from the committed cursors of all tasks."""
        total: Counter[str] = Counter()
        for cursor in self.cursors().values():
            total.update(cursor.counts)
        return total


class Worker:
    """A `rocstream worker` process and what it logged."""

    def __init__(self, command: list[str], log: Path) -> None:
        self.log = log
        with log.open("wb") as stream:
            self.process = subprocess.Popen(
                [sys.executable, *command],
                stdout=stream,
                stderr=subprocess.STDOUT,
                cwd=Path(__file__).parents[2],
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def wait_for(self, condition: Callable[[], bool], seconds: float = 60) -> None:
        """Wait until something holds; fail with the log when the worker ends before."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert self.process.poll() is None, self.text()[-5000:]
            assert time.monotonic() < deadline, self.text()[-5000:]
            time.sleep(0.02)

    def wait_until_ready(self) -> None:
        self.wait_for(lambda: READY in self.text())

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(30)

    def exit_code(self, seconds: float = 30) -> int:
        """Wait for the end of the process."""
        return self.process.wait(seconds)
