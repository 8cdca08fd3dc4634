"""A contestant's process: started with its output in a file, watched, always stopped."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

PATIENCE = 20.0  # seconds between SIGTERM and SIGKILL
TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class Child:
    """A running command, stopped on leaving the context: SIGTERM, then SIGKILL."""

    def __init__(self, command: list[str], log: Path) -> None:
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def check(self) -> None:
        """Raise RuntimeError with the end of its output when it is no longer running."""
        code = self._process.poll()
        if code is not None:
            msg = f"{self._process.args!r} ended with {code}:\n{self.tail()}"
            raise RuntimeError(msg)

    def tail(self) -> str:
        """Return the last 2,000 characters it printed."""
        return self._log.read_text(errors="replace")[-2000:]

    def cpu(self) -> float:
        """CPU seconds of all its threads so far, user and system."""
        return cpu(self.pid)

    def peak(self) -> int:
        """Largest resident memory so far, in bytes."""
        return self._memory("VmHWM:")

    def resident(self) -> int:
        """Resident memory now, in bytes."""
        return self._memory("VmRSS:")

    def _memory(self, name: str) -> int:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * 1024
        return 0


def cpu(pid: int) -> float:
    """CPU seconds of process `pid` so far (Linux: /proc)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK
