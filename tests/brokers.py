"""Finds or starts one real Apache Kafka for tests and benchmarks, and always ends what it started.

Order: ``KAFKA_BOOTSTRAP_SERVERS``; a Docker engine with a Kafka 4 image; Java 17 with the jars that
Maven copies into ``.cache/`` once. As a script it starts one and runs it until Ctrl-C.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KAFKA = os.environ.get("ROCSTREAM_TEST_KAFKA_VERSION", "4.1.1")
IMAGE = os.environ.get("ROCSTREAM_TEST_KAFKA_IMAGE", f"apache/kafka:{KAFKA}")
CACHE = Path(__file__).resolve().parent.parent / ".cache"
JARS = (
    ("org.apache.kafka", "kafka_2.13", KAFKA),
    # Without it Kafka logs nothing at all.
    ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.24.3"),
)
COPY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
START_SECONDS, STOP_SECONDS, PULL_SECONDS, MAVEN_SECONDS = 60, 20, 60, 400
LABEL = "rocstream.tests.owner"

# One broker alone: nothing is replicated, nothing is created by accident, groups form at once.
SERVER = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
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

LOG4J = """\
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %c{1}: %m%n
logger.config.name = org.apache.kafka.common.config
logger.config.level = warn
"""

# Reads the process group to end from its standard input. When the owner is gone, however it died,
# the input ends: then the group is killed and the folder removed.
KEEPER = """
trap '' INT TERM HUP
group=
while read -r line; do group=$line; done
[ -z "$group" ] || kill -s KILL -- "-$group" 2>/dev/null
rm -rf -- "$1"
"""


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


class JavaBroker(Broker):
    """`kafka.Kafka` from Maven's jars: one KRaft node on two free ports of 127.0.0.1."""

    def __init__(self, java: str, jars: Path) -> None:
        self.name = f"Apache Kafka {KAFKA} on Java"
        port, controller = free_ports(2)
        self.bootstrap_servers = f"127.0.0.1:{port}"
        self.folder = Path(tempfile.mkdtemp(prefix="rocstream-kafka-"))
        self.log = self.folder / "broker.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._keeper = subprocess.Popen(
            ["sh", "-c", KEEPER, "keeper", str(self.folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        (self.folder / "log4j2.properties").write_text(LOG4J)
        self._properties = self.folder / "server.properties"
        settings = SERVER | {
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "log.dirs": str(self.folder / "data"),
        }
        self._properties.write_text("".join(f"{k}={v}\n" for k, v in settings.items()))
        self._java = [
            *(java, "-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-Djava.awt.headless=true"),
            f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}",
            *("-cp", f"{jars}/*"),
        ]

    def start(self) -> None:
        with self.log.open("ab") as log:
            if not (self.folder / "data").exists():
                command = ["format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", str(self._properties)]
                subprocess.run(
                    [*self._java, "kafka.tools.StorageTool", *command],
                    stdout=log,
                    stderr=log,
                    check=True,
                    timeout=START_SECONDS,
                )
            self._process = subprocess.Popen(
                [*self._java, "kafka.Kafka", str(self._properties)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._tell_keeper(str(self._process.pid))
        process = self._process
        self.await_ready(lambda: process.poll() is not None)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, number)

    def close(self) -> None:
        self.kill()
        if self._keeper.stdin is not None:
            self._keeper.stdin.close()
        self._keeper.wait(STOP_SECONDS)

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, how)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(STOP_SECONDS)
        self._process = None
        self._tell_keeper("")

    def _tell_keeper(self, group: str) -> None:
        if self._keeper.stdin is not None and not self._keeper.stdin.closed:
            self._keeper.stdin.write(f"{group}\n".encode())
            self._keeper.stdin.flush()


class DockerBroker(Broker):
    """A container that takes its settings as apache/kafka does: KAFKA_<PROPERTY> variables."""

    def __init__(self, client: Any) -> None:
        from testcontainers.core.config import testcontainers_config  # noqa: PLC0415
        from testcontainers.core.container import DockerContainer  # noqa: PLC0415

        self.name = f"{IMAGE} in Docker"
        # Its reaper is one more image to pull; `remove_orphans` does that work here.
        testcontainers_config.ryuk_disabled = True
        remove_orphans(client)
        (port,) = free_ports(1)
        self.bootstrap_servers = f"127.0.0.1:{port}"
        handle, path = tempfile.mkstemp(prefix="rocstream-kafka-", suffix=".log")
        os.close(handle)
        self.log = Path(path)
        self._container = DockerContainer(IMAGE).with_bind_ports("9092/tcp", ("127.0.0.1", port))
        self._container.with_kwargs(labels={LABEL: str(os.getpid())})
        settings = SERVER | {
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap_servers}",
            "controller.quorum.voters": "1@localhost:9093",
        }
        for key, value in settings.items():
            self._container.with_env("KAFKA_" + key.replace(".", "_").upper(), value)
        self._container.with_env("KAFKA_HEAP_OPTS", "-Xms256m -Xmx512m")

    def start(self) -> None:
        wrapped = self._container.get_wrapped_container()
        if wrapped is None:
            self._container.start()
            wrapped = self._container.get_wrapped_container()
        else:
            wrapped.start()

        def ended() -> bool:
            wrapped.reload()
            return bool(wrapped.status in {"exited", "dead"})

        self.await_ready(ended)

    def stop(self) -> None:
        self._container.get_wrapped_container().stop(timeout=STOP_SECONDS)

    def kill(self) -> None:
        self._container.get_wrapped_container().kill()

    def freeze(self) -> None:
        self._container.get_wrapped_container().pause()

    def thaw(self) -> None:
        self._container.get_wrapped_container().unpause()

    def close(self) -> None:
        if self._container.get_wrapped_container() is not None:
            self._container.stop(force=True, delete_volume=True)
        if self.log is not None:
            self.log.unlink(missing_ok=True)

    def log_tail(self, lines: int = 60) -> str:
        wrapped = self._container.get_wrapped_container()
        if self.log is not None and wrapped is not None:
            self.log.write_bytes(wrapped.logs())
        return super().log_tail(lines)


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
    return JavaBroker(java, kafka_jars())


@contextlib.contextmanager
def running(*, own: bool = False) -> Iterator[Broker]:
    """Run a broker for the length of a `with`; whatever happens, it is ended after it."""
    broker = find(own=own)
    try:
        broker.start()
        yield broker
    finally:
        broker.close()


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


def java_17() -> tuple[str | None, str]:
    """Return a Java of at least 17, or None and why not."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin") if home else None
    java = java or shutil.which("java")
    if java is None:
        return None, "no java on the PATH"
    command = [java, "-XshowSettings:properties", "-version"]
    told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stderr
    version = told.partition("java.specification.version = ")[2].split("\n")[0].strip()
    if not version.isdigit() or int(version) < 17:
        return None, f"{java} is Java {version or 'of an unknown version'}"
    return java, ""


def kafka_jars() -> Path:
    """Return the folder of Kafka's jars; the first time, Maven fetches them (43 MB)."""
    jars = CACHE / f"kafka-{KAFKA}"
    if jars.is_dir():
        return jars
    maven = shutil.which("mvn")
    if maven is None:
        raise NoBrokerError("Kafka's jars come with Maven: apt-get install maven (no mvn on PATH)")
    print(f"Fetching Apache Kafka {KAFKA} with Maven into {CACHE} (once)", file=sys.stderr)  # noqa: T201
    CACHE.mkdir(exist_ok=True)
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version></dependency>"
        for group, artifact, version in JARS
    )
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="maven-") as temporary:
        work = Path(temporary)
        (work / "pom.xml").write_text(
            '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
            "<groupId>rocstream</groupId><artifactId>kafka</artifactId><version>1</version>"
            f"<packaging>pom</packaging><dependencies>{dependencies}</dependencies></project>"
        )
        settings = ["-DoutputDirectory=jars", "-DincludeScope=runtime", "-Dmaven.repo.local=m2"]
        done = subprocess.run(
            [maven, "-B", "-q", COPY_PLUGIN, *settings],
            cwd=work,
            capture_output=True,
            text=True,
            check=False,
            timeout=MAVEN_SECONDS,
        )
        if done.returncode:
            raise NoBrokerError(f"Maven could not fetch Kafka {KAFKA}:\n{done.stdout[-2000:]}")
        # Another run may have been faster; its folder is as good.
        with contextlib.suppress(OSError):
            (work / "jars").rename(jars)
    return jars


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


def remove_orphans(client: Any) -> None:
    """Remove containers of test runs that were killed before they could."""
    for container in client.containers.list(all=True, filters={"label": LABEL}):
        if not Path(f"/proc/{container.labels[LABEL]}").exists():
            container.remove(force=True, v=True)


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
