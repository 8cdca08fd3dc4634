"""The broker that all broker tests stand on: real, set up as promised, and always ended."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import brokers
import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.broker
ROOT = Path(__file__).resolve().parents[2]


def write(servers: str, topic: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": servers, "transactional.id": f"{topic}-writer"})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(topic, value, key=b"key")
    producer.commit_transaction(20)


def read(servers: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"{topic}-reader",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([topic])
    values: list[bytes] = []
    deadline = time.monotonic() + 30
    while len(values) < count and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            values.append(message.value())
    consumer.close()
    return values


def await_true(condition: Callable[[], bool], what: str, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)


def test_transactions_groups_and_topics_work(
    kafka: brokers.Broker, new_topic: Callable[..., str]
) -> None:
    topic = new_topic("events", partitions=3, cleanup_policy="compact")
    write(kafka.bootstrap_servers, topic, b"one")
    assert read(kafka.bootstrap_servers, topic, 1) == [b"one"]
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    assert len(admin.list_topics(topic, timeout=10).topics[topic].partitions) == 3


def test_topics_of_one_label_have_names_of_their_own(new_topic: Callable[..., str]) -> None:
    assert new_topic("events") != new_topic("events")


def test_a_topic_nobody_created_stays_missing(kafka: brokers.Broker) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    error = admin.list_topics("never-created", timeout=10).topics["never-created"].error
    assert error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert "never-created" not in admin.list_topics(timeout=10).topics


@pytest.mark.slow
def test_data_and_address_survive_a_power_cut(own_kafka: brokers.Broker) -> None:
    servers = own_kafka.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    admin.create_topics([NewTopic("kept", 1, 1)])["kept"].result(timeout=20)
    write(servers, "kept", b"before")
    own_kafka.kill()
    host, port = servers.split(":")
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((host, int(port)), timeout=5)
    own_kafka.start()
    assert own_kafka.bootstrap_servers == servers
    own_kafka.restart()
    write(servers, "kept", b"after")
    assert read(servers, "kept", 2) == [b"before", b"after"]


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
        signal.SIGKILL,
    ],
)
def test_nothing_is_left_however_the_owner_dies(how: signal.Signals) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "KAFKA_BOOTSTRAP_SERVERS"}
    owner = subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "brokers.py")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    with owner:
        assert owner.stdout is not None
        host, port = owner.stdout.readline().strip().split(":")
        socket.create_connection((host, int(port)), timeout=5).close()
        owner.send_signal(how)
        owner.wait(30)

    def gone() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((host, int(port))) != 0

    # 10 s: a broker that merely lost its data folder takes longer to notice.
    await_true(gone, f"the broker ended after {how.name}", seconds=10)


def test_a_given_broker_comes_first_and_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    given = brokers.find()
    assert (given.bootstrap_servers, given.ours) == ("127.0.0.1:1", False)
    with pytest.raises(brokers.NoBrokerError, match="not ours"):
        given.kill()


def test_without_any_broker_the_failure_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("KAFKA_BOOTSTRAP_SERVERS", raising=False)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(brokers.NoBrokerError, match="install Java 17 and Maven"):
        brokers.find()
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho '    java.specification.version = 11' >&2\n")
    java.chmod(0o755)
    with pytest.raises(brokers.NoBrokerError, match="is Java 11"):
        brokers.find()


def test_ports_lie_outside_those_of_outgoing_connections() -> None:
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = brokers.free_ports(2)
    assert len(set(ports)) == 2
    assert max(ports) < first or first <= 11_000
