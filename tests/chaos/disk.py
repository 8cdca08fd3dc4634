"""A broker whose disk takes no more, under load: the worker waits, and goes on when there is room.

Where we may mount (as root, mostly), the broker has a small filesystem of its own, which is filled
up. Elsewhere the disk is full by a limit on the size of the files of the broker, which needs no
rights: an append beyond it fails as one to a full disk does. Kafka then takes the folder for lost,
and ends.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from crew import Crew
from ground import drain, expected_count, ground, judge, on_java, understand_source
from reading import Reader
from source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from checker import Verdict
    from crew import Ended
    from ground import Ground

ROOM_BYTES = 64 << 10
"""What the largest log may still grow by, or the whole disk."""

DISK_MB = 96
"""The size of the filesystem; it is memory."""

MOUNT_SECONDS = 10

PARTITIONS = 3
RATE = 4_000.0


class Result(NamedTuple):
    """What came of a run."""

    verdict: Verdict
    ended: list[Ended]
    events: int
    said: str

    @property
    def good(self) -> bool:
        """Whether nothing was found."""
        return self.verdict.good and not self.ended


class Limit:
    """No file of the broker grows beyond a size."""

    folder: Path | None = None

    def fill(self, made: Ground) -> None:
        """Leave `ROOM_BYTES` to the largest log."""
        logs = (made.broker.folder / "data").glob("*/*.log")
        limit = max(log.stat().st_size for log in logs) + ROOM_BYTES
        resource.prlimit(made.broker.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        _say(f"no file of the broker grows beyond {limit:,} bytes")

    def make_room(self) -> None:
        """Do nothing: the limit went with the process."""


class Volume:
    """A filesystem that the broker has for itself.

    Parameters
    ----------
    folder
        Where it is mounted.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self, made: Ground) -> None:  # noqa: ARG002 - as `Limit` does
        """Leave `ROOM_BYTES` to all files together."""
        found = os.statvfs(self.folder)
        free = found.f_bavail * found.f_frsize
        with self._ballast.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, free - ROOM_BYTES)
        _say(f"the broker's filesystem has {ROOM_BYTES:,} of {DISK_MB << 20:,} bytes left")

    def make_room(self) -> None:
        """Take away what fills it."""
        self._ballast.unlink()


@contextmanager
def disk() -> Iterator[Limit | Volume]:
    """Give a disk that can be filled: a filesystem where we may mount one, else a limit."""
    folder = Path(tempfile.mkdtemp(prefix="rocstream-disk-"))
    try:
        mount, unmount = shutil.which("mount"), shutil.which("umount")
        if (
            mount is None
            or unmount is None
            or not _done(mount, "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(folder))
        ):
            yield Limit()
            return
        try:
            yield Volume(folder)
        finally:
            # Whoever removes the broker's files may not be done yet.
            deadline = time.monotonic() + MOUNT_SECONDS
            while not _done(unmount, str(folder)) and time.monotonic() < deadline:
                time.sleep(0.1)
    finally:
        folder.rmdir()


def _done(*command: str) -> bool:
    return not subprocess.run(
        command, capture_output=True, check=False, timeout=MOUNT_SECONDS
    ).returncode


def run(seconds: float, seed: int) -> Result:
    """Let the disk fill up, leave it so for a time, make room, and check."""
    with disk() as full, ground(PARTITIONS, broker=on_java({}, within=full.folder)) as made:
        crew = Crew(made.job.path, made.folder)
        try:
            return _run(made, full, crew, seconds, seed)
        finally:
            crew.close()


def _run(made: Ground, full: Limit | Volume, crew: Crew, seconds: float, seed: int) -> Result:
    broker, topics = made.broker, made.job.settings.topics
    worker = crew.start()
    crew.wait_until(lambda: worker.doing() == "working", "a start")
    source = Source(made.servers, topics.events, RATE, seed)
    source.start()
    with Reader(made.servers, topics.updates) as reader:
        updates = drain(reader, 300, crew)
        full.fill(made)
        crew.wait_until(lambda: broker.ended, "the broker's end")
        _say("the broker has given up; the worker waits")
        deadline = time.monotonic() + seconds
        crew.wait_until(lambda: time.monotonic() > deadline, "the wait", seconds + 10)
        full.make_room()
        broker.start()
        _say("there is room again")
        source.stop()
        understood = understand_source(made)
        updates += drain(reader, expected_count(understood) - updates, crew)
    crew.sweep()
    crew.stop()
    _say("checking")
    lines = [line for line in worker.text().splitlines() if "the broker" in line]
    verdict = judge(made, understood, h_updates=200)
    return Result(verdict, crew.ended, understood.events, "\n".join(lines[:6]))


def report(result: Result) -> str:
    """Write what was found."""
    lines = [
        "# A full disk",
        "",
        "Nothing was found" if result.good else "FAULTS WERE FOUND",
        "",
        f"events: {result.events:,}, updates: {result.verdict.updates:,}",
        *(f"{kind}: {count}" for kind, count in result.verdict.counts.items()),
        *(f"{ended}" for ended in result.ended),
        *(f"{kind}: {examples}" for kind, examples in result.verdict.examples.items()),
        "",
        "The worker said:",
        "",
        result.said,
    ]
    return "\n".join(lines)


def _say(text: str) -> None:
    print(f"      {text}", file=sys.stderr, flush=True)
