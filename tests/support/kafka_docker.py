"""A broker of the tests in a container, where a Docker engine has a Kafka 4 image or can get it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
import uuid
from pathlib import Path
from typing import Any

from kafka_broker import KAFKA, SERVER, STOP_SECONDS, Broker, free_ports

IMAGE = os.environ.get("ROCSTREAM_TEST_KAFKA_IMAGE", f"apache/kafka:{KAFKA}")
PULL_SECONDS = 60

# Removes container and log when its owner is gone, however it died.
DOCKER_KEEPER = """
import pathlib, signal, sys
import docker
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
sys.stdin.read()
client = docker.from_env()
for container in client.containers.list(all=True, filters={"name": sys.argv[1]}):
    container.remove(force=True, v=True)
client.close()
pathlib.Path(sys.argv[2]).unlink(missing_ok=True)
"""


class DockerBroker(Broker):
    """A container that takes its settings as apache/kafka does: KAFKA_<PROPERTY> variables."""

    def __init__(self, client: Any) -> None:
        from testcontainers.core.config import testcontainers_config  # noqa: PLC0415
        from testcontainers.core.container import DockerContainer  # noqa: PLC0415

        self.name = f"{IMAGE} in Docker"
        # Its reaper is one more image to pull; the keeper does that work here.
        testcontainers_config.ryuk_disabled = True
        client.close()
        (port,) = free_ports(1)
        self.bootstrap_servers = f"127.0.0.1:{port}"
        handle, path = tempfile.mkstemp(prefix="rocstream-kafka-", suffix=".log")
        os.close(handle)
        self.log = Path(path)
        self._container = DockerContainer(IMAGE)
        # with_bind_ports() would open the port on all addresses of the machine.
        self._container.ports["9092/tcp"] = ("127.0.0.1", port)
        self._container.with_name(f"rocstream-kafka-{uuid.uuid4().hex}")
        self._started: Any = None
        self._keeper = subprocess.Popen(
            [sys.executable, "-c", DOCKER_KEEPER, self._container._name, path],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        settings = SERVER | {
            "listeners": "PLAINTEXT://:9092,INTERNAL://localhost:9094,CONTROLLER://localhost:9093",
            # The coordinator of transactions calls its own broker, and from within the container.
            "advertised.listeners": (
                f"PLAINTEXT://{self.bootstrap_servers},INTERNAL://localhost:9094"
            ),
            "inter.broker.listener.name": "INTERNAL",
            "controller.quorum.voters": "1@localhost:9093",
        }
        for key, value in settings.items():
            self._container.with_env("KAFKA_" + key.replace(".", "_").upper(), value)
        self._container.with_env("KAFKA_HEAP_OPTS", "-Xms256m -Xmx512m")

    def start(self) -> None:
        if self._started is None:
            self._container.start()
            self._started = self._container.get_wrapped_container()
        else:
            self._started.start()

        def ended() -> bool:
            self._started.reload()
            return bool(self._started.status in {"exited", "dead"})

        self.await_ready(ended)

    def stop(self) -> None:
        self._started.stop(timeout=STOP_SECONDS)

    def kill(self) -> None:
        self._started.kill()

    def freeze(self) -> None:
        self._started.pause()

    def thaw(self) -> None:
        self._started.unpause()

    def close(self) -> None:
        self._keeper.communicate(timeout=STOP_SECONDS)

    def log_tail(self, lines: int = 60) -> str:
        if self.log is not None and self._started is not None:
            self.log.write_bytes(self._started.logs())
        return super().log_tail(lines)


def docker_client() -> tuple[Any, str]:
    """Return a client of a Docker engine that has the image or gets it in time, or why not."""
    address = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if address.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(address.removeprefix("unix://")):
                return None, f"no engine answers on {address}"
    import docker  # noqa: PLC0415  (only where an engine may be)
    from docker.errors import DockerException, ImageNotFound  # noqa: PLC0415

    try:
        client = docker.from_env(timeout=PULL_SECONDS)
        client.ping()
    except DockerException as error:
        return None, f"no engine answers: {error}"
    try:
        client.images.get(IMAGE)
    except ImageNotFound:
        failure: list[str] = []
        pulling = threading.Thread(target=_pull, args=(client, failure), daemon=True)
        pulling.start()
        pulling.join(PULL_SECONDS)
        if pulling.is_alive() or failure:
            why = failure[0] if failure else f"not there after {PULL_SECONDS} s"
            return None, f"image {IMAGE}: {why}"
    return client, ""


def _pull(client: Any, failure: list[str]) -> None:
    from docker.errors import DockerException  # noqa: PLC0415

    try:
        client.images.pull(IMAGE)
    except (DockerException, OSError) as error:
        failure.append(str(error))
