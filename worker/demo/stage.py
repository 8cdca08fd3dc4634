"""The demo's parts that must go away with it: its folder, its worker, its publishing thread."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import orjson
from confluent_kafka import KafkaException

from config.errors import RocstreamError
from worker import demo
from worker.brokers.embedded import KEEPER
from worker.publisher import Publisher

if TYPE_CHECKING:
    from config import Settings

EVENTS_PER_SECOND: Final = 2_000
SIZE: Final = 1_000
SLIDE: Final = 50

_TICK_SECONDS: Final = 0.05
_STOP_SECONDS: Final = 15.0


def write_settings(folder: Path, servers: str) -> Path:
    """Write the demo's settings into its folder, under names of its own; return the file."""
    name = f"rocstream-demo-{uuid.uuid4().hex[:8]}"
    path = folder / "rocstream.toml"
    path.write_text(
        f"""\
[kafka]
bootstrap_servers = "{servers}"
group = "{name}"

[topics]
events = "{name}-events"
updates = "{name}-updates"
rejected = "{name}-rejected"
partitions = 2
replication = 1

[[monitor]]
name = "last-1000"
window = {{ kind = "count", size = {SIZE}, slide = {SLIDE} }}
"""
    )
    return path


class Folder:
    """A temporary folder, and a keeper that ends the worker and removes it should we be killed."""

    def __init__(self) -> None:
        self.path = Path()
        self._keeper: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.path = Path(tempfile.mkdtemp(prefix="rocstream-demo-"))
        self._keeper = subprocess.Popen(  # noqa: S603 - our own script and folder
            ["/bin/sh", "-c", KEEPER, "keeper", str(self.path)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        if self._keeper is not None:
            self._keeper.communicate(b"\n", _STOP_SECONDS)

    def guard(self, process: subprocess.Popen[bytes] | None) -> None:
        """Have the keeper end the group of `process` when we are gone; None: nothing to end."""
        if self._keeper is not None and self._keeper.stdin is not None:
            group = b"" if process is None else str(process.pid).encode()
            self._keeper.stdin.write(group + b"\n")
            self._keeper.stdin.flush()


class Worker:
    """`rocstream worker` as a process of its own, as one would run it."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._log = folder.path / "worker.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - this very program
                [
                    # -P: in a checkout, the package that is installed and not the folder's sources,
                    # which may not be compiled.
                    *(sys.executable, "-P", "-m", "worker", "worker"),
                    *("-c", str(self._folder.path / "rocstream.toml")),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={
                    name: value
                    for name, value in os.environ.items()
                    if not name.startswith("ROCSTREAM__")
                },
                # Ctrl-C is ours to handle, in our own order.
                start_new_session=True,
            )
        self._folder.guard(self._process)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_STOP_SECONDS)
        self._folder.guard(None)

    def check(self) -> None:
        """Raise when the worker has ended."""
        if self._process is None or self._process.poll() is None:
            return
        lines = self._log.read_text(errors="replace").splitlines()[-10:]
        raise RocstreamError(
            f"the demo's worker ended with {self._process.returncode}; its last lines:\n"
            + "\n".join(lines)
        )


class Publishing:
    """A thread that publishes the sample at a steady rate."""

    def __init__(self, settings: Settings) -> None:
        self._publisher = Publisher(settings)
        self._stop = threading.Event()
        self._error: RocstreamError | None = None
        self._thread = threading.Thread(target=self._run, name="publish", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._publisher.close()

    @property
    def sent(self) -> int:
        """Events that the broker has."""
        return self._publisher.delivered

    def stop(self) -> None:
        """Publish no more and wait until the broker has all of it."""
        self._stop.set()
        self._thread.join(_STOP_SECONDS)

    def check(self) -> None:
        """Raise when publishing has failed."""
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        events = demo.stream()
        began, sent = time.monotonic(), 0
        try:
            while not self._stop.wait(_TICK_SECONDS):
                due = int((time.monotonic() - began) * EVENTS_PER_SECOND)
                for _ in range(due - sent):
                    event = next(events)
                    value = orjson.dumps({"score": event.score, "label": event.label})
                    self._publisher.send(event.key.encode(), value)
                sent = max(sent, due)
                self._publisher.poll()
            self._publisher.flush()
        except (RocstreamError, KafkaException) as error:
            self._error = RocstreamError(f"the demo's events were not taken: {error}")
