"""A broker of the tests on Java 17, from jars that Maven copies into ``.cache/`` once."""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from kafka_broker import (
    KAFKA,
    SERVER,
    START_SECONDS,
    STOP_SECONDS,
    Broker,
    NoBrokerError,
    free_ports,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

CACHE = Path(__file__).resolve().parents[2] / ".cache"
MAVEN_SECONDS = 400
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
JARS = (
    ("org.apache.kafka", "kafka_2.13", KAFKA),
    # Without it Kafka logs nothing at all.
    ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.24.3"),
)
COPY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"

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


class JavaBroker(Broker):
    """`kafka.Kafka` from Maven's jars: one KRaft node on two free ports of 127.0.0.1.

    With `brief`, Java compiles quickly rather than well: it starts in half the time, and one that
    a test starts for itself does not live long enough for the rest to matter.

    `ports` are those of its listeners PLAINTEXT and CONTROLLER, `extra` are broker properties that
    go before those it has otherwise, and `heap` is Java's, in MB. Its folder is made `within` one.
    """

    def __init__(
        self,
        java: str,
        jars: Path,
        *,
        brief: bool = False,
        ports: tuple[int, int] | None = None,
        extra: Mapping[str, str] | None = None,
        heap: int = 512,
        within: Path | None = None,
    ) -> None:
        port, controller = ports or free_ports(2)
        extra = extra or {}
        self._node = extra.get("node.id", SERVER["node.id"])
        self.name = f"Apache Kafka {KAFKA} on Java, node {self._node}"
        self.bootstrap_servers = f"127.0.0.1:{port}"
        self.folder = Path(tempfile.mkdtemp(prefix="rocstream-kafka-", dir=within))
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
            **extra,
        }
        self._properties.write_text("".join(f"{k}={v}\n" for k, v in settings.items()))
        self._formatted = jars.with_name(f"{jars.name}-formatted")
        self._java = [
            java,
            *(["-XX:TieredStopAtLevel=1"] if brief else []),
            *(f"-Xms{heap // 2}m", f"-Xmx{heap}m", "-XX:+UseSerialGC", "-Djava.awt.headless=true"),
            # Native libraries are unpacked there, and a killed Java leaves them.
            f"-Djava.io.tmpdir={self.folder}",
            f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}",
            *("-cp", f"{jars}/*"),
        ]

    def start(self) -> None:
        self.launch()
        process = self._process
        self.await_ready(lambda: process is None or process.poll() is not None)

    def launch(self) -> None:
        """Start it without waiting: the first of several answers only once there are more."""
        with self.log.open("ab") as log:
            if not (self.folder / "data").exists():
                self._format(log)
            self._process = subprocess.Popen(
                [*self._java, "kafka.Kafka", str(self._properties)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._tell_keeper(str(self._process.pid))

    @property
    def pid(self) -> int:
        """Id of its process."""
        assert self._process is not None
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether its process is over, by itself or not."""
        return self._process is None or self._process.poll() is not None

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _format(self, log: BinaryIO) -> None:
        # The same bytes each time, and seconds of Java: once is enough.
        if not self._formatted.exists():
            command = ["format", "-t", CLUSTER, "-c", str(self._properties)]
            subprocess.run(
                [*self._java, "kafka.tools.StorageTool", *command],
                stdout=log,
                stderr=log,
                check=True,
                timeout=START_SECONDS,
            )
            copy = self._formatted.with_name(f"{self._formatted.name}-{os.getpid()}")
            shutil.copytree(self.folder / "data", copy)
            keep(copy, self._formatted)
        else:
            shutil.copytree(self._formatted, self.folder / "data")
        # Of one node alone; formatting leaves nothing else that is.
        meta = self.folder / "data" / "meta.properties"
        directory = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        own = {"node.id": self._node, "directory.id": directory}
        lines = [line.partition("=") for line in meta.read_text().splitlines()]
        meta.write_text("".join(f"{k}={own.get(k, v)}\n" for k, _, v in lines if v))

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
        keep(work / "jars", jars)
    return jars


def keep(made: Path, as_: Path) -> None:
    """Give a finished folder its name; where another run was faster, its folder is as good."""
    try:
        made.rename(as_)
    except OSError:
        if not as_.is_dir():
            raise
        shutil.rmtree(made)
