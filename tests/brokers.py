"""Finds or starts one real Apache Kafka for tests and benchmarks, and always ends what it started.

Order: ``KAFKA_BOOTSTRAP_SERVERS``; a Docker engine with a Kafka 4 image; Java 17 with the jars that
Maven copies into ``.cache/`` once. As a script it starts one and runs it until Ctrl-C.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

SUPPORT = str(Path(__file__).resolve().parent / "support")
if SUPPORT not in sys.path:  # pytest has it there already; scripts and benchmarks do not
    sys.path.append(SUPPORT)

from kafka_broker import Broker, NoBrokerError, free_ports  # noqa: E402
from kafka_docker import DockerBroker, docker_client  # noqa: E402
from kafka_java import JavaBroker, java_17, kafka_jars  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Broker", "NoBrokerError", "find", "free_ports", "running", "with_properties"]


class GivenBroker(Broker):
    """The broker that KAFKA_BOOTSTRAP_SERVERS names; somebody else's, so it is left running."""

    name = "the Kafka of KAFKA_BOOTSTRAP_SERVERS"
    ours = False

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers

    def start(self) -> None:
        self.await_ready(lambda: False)

    def stop(self) -> None:
        raise NoBrokerError(f"{self.name} is not ours to stop: take the fixture `own_kafka`")

    kill = freeze = thaw = stop

    def close(self) -> None:
        pass


def find(*, own: bool = False) -> Broker:
    """Return a broker that is not started yet; with `own`, one that a test may stop and kill."""
    given = os.environ.get("KAFKA_BOOTSTRAP_SERVERS", "").strip()
    if given and not own:
        return GivenBroker(given)
    client, without_docker = docker_client()
    if client is not None:
        return DockerBroker(client)
    java, without_java = java_17()
    if java is None:
        raise NoBrokerError(
            "The tests need a real Apache Kafka 4: set KAFKA_BOOTSTRAP_SERVERS, or start Docker "
            f"({without_docker}), or install Java 17 and Maven ({without_java}; on Debian: "
            "apt-get install openjdk-17-jre-headless maven)."
        )
    return JavaBroker(java, kafka_jars(), brief=own)


def with_properties(
    extra: Mapping[str, str],
    ports: tuple[int, int],
    *,
    brief: bool = True,
    heap: int = 512,
    within: Path | None = None,
) -> JavaBroker:
    """Return a broker that is not started yet, with properties of its own: always one on Java.

    Parameters
    ----------
    extra
        Broker properties, before those that every broker of the tests has.
    ports
        Of its listeners PLAINTEXT and CONTROLLER.
    brief
        Whether it lives for a test: then Java compiles quickly rather than well.
    heap
        Java's, in MB.
    within
        Where its folder is made; by default with the system's temporary files.
    """
    java, without_java = java_17()
    if java is None:
        raise NoBrokerError(
            f"This test needs Java 17 and Maven ({without_java}; on Debian: apt-get install "
            "openjdk-17-jre-headless maven)."
        )
    return JavaBroker(
        java, kafka_jars(), brief=brief, ports=ports, extra=extra, heap=heap, within=within
    )


@contextlib.contextmanager
def running(*, own: bool = False) -> Iterator[Broker]:
    """Run a broker for the length of a `with`; whatever happens, it is ended after it."""
    broker = find(own=own)
    try:
        broker.start()
        yield broker
    finally:
        broker.close()


def main() -> None:
    """Start a broker, print its bootstrap servers, and run it until Ctrl-C or SIGTERM."""
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    try:
        with running() as broker:
            print(broker.bootstrap_servers, flush=True)  # noqa: T201
            print(f"{broker.name}, log {broker.log}; Ctrl-C ends it", file=sys.stderr)  # noqa: T201
            ended.wait()
    except NoBrokerError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
