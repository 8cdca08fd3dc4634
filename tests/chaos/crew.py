"""The workers of a fault run: started, killed, frozen, and always ended, each by its own id."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from config.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
STOP_SECONDS = 40.0
REPLACED = "another worker has joined the group"
"""What one says that was frozen while another took its static name."""


def cpu(pid: int) -> float:
    """Return how many seconds of CPU a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Ended(NamedTuple):
    """A worker that ended although nobody asked it to."""

    name: str
    code: int
    last_line: str


class Worker:
    """One `rocstream worker` process, with its log in a file."""

    def __init__(self, command: list[str], log: Path, name: str, static: bool) -> None:  # noqa: FBT001
        self.name = name
        self.static = static
        self.frozen = False
        self.log = log
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT)}
        if static:
            environment["ROCSTREAM__KAFKA__GROUP_INSTANCE_ID"] = name
        with log.open("wb") as stream:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                env=environment,
            )

    @property
    def alive(self) -> bool:
        """Whether the process has not ended."""
        return self.process.poll() is None

    def text(self) -> str:
        """What it logged."""
        return self.log.read_text(errors="replace")

    def doing(self) -> str:
        """Tell from its log what it is about: "starting", "opening" tasks, "working"."""
        text = self.text()
        ready, parked = text.rfind('"ready"'), text.rfind('"tasks parked"')
        if ready > parked:
            return "working"
        return "opening" if parked >= 0 or "tasks opened" in text else "starting"

    def resident(self) -> int:
        """Bytes of memory it holds now."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        return 0

    def cpu(self) -> float:
        """Seconds of CPU it has used so far."""
        return cpu(self.process.pid)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def freeze(self) -> None:
        """Stop it in the middle of whatever it does."""
        self.frozen = True
        self.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self.frozen = False
        self.signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it as a power cut would."""
        if self.alive:
            self.process.kill()
        self.process.wait(20)


class Crew:
    """The workers of one job, up to three at a time.

    Parameters
    ----------
    settings
        The job's settings file.
    folder
        Where logs go.
    sabotage
        What is broken in the workers on purpose (`sabotage.py`), "" for the honest ones.
    program
        What Python runs in the place of the command line itself.
    """

    def __init__(
        self,
        settings: Path,
        folder: Path,
        sabotage: str = "",
        program: Sequence[str] = ("-m", "worker"),
    ) -> None:
        if sabotage:
            program = (str(HERE / "sabotage.py"), sabotage)
        self._command = [sys.executable, *program, "worker", "-c", str(settings)]
        self._folder = folder
        self._count = 0
        self.workers: list[Worker] = []
        self.ended: list[Ended] = []
        self.fenced = 0
        self.twins: set[str] = set()

    def start(self, name: str = "", *, static: bool = False) -> Worker:
        """Start a worker; a static one keeps its partitions if it is back soon."""
        self._count += 1
        name = name or f"worker-{self._count}"
        log = self._folder / f"{name}-{self._count}.log"
        worker = Worker(self._command, log, name, static)
        self.workers.append(worker)
        return worker

    def awake(self) -> list[Worker]:
        """Return those that run."""
        return [worker for worker in self.workers if worker.alive and not worker.frozen]

    def kill(self, worker: Worker) -> None:
        """Kill one, and forget it."""
        self.workers.remove(worker)
        worker.kill()

    def ask_to_stop(self, worker: Worker) -> None:
        """Have one finish, and see that it does so in time and without a complaint."""
        self.workers.remove(worker)
        worker.signal(signal.SIGTERM)
        try:
            code = worker.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            worker.kill()
            self.ended.append(Ended(worker.name, -9, "did not stop within 40 s"))
            return
        # Python ends by the signal before the command has begun to listen to it.
        if code != 0 and not (code == -signal.SIGTERM and not worker.text()):
            self._note(worker, code)

    def sweep(self) -> list[Worker]:
        """Take out those that ended by themselves, note how, and return them."""
        gone = [worker for worker in self.workers if not worker.alive]
        for worker in gone:
            self.workers.remove(worker)
            self._note(worker, worker.process.returncode)
        return gone

    def stop(self) -> None:
        """Have all finish."""
        for worker in self.workers:
            if worker.frozen:
                worker.thaw()
        for worker in list(self.workers):
            self.ask_to_stop(worker)

    def close(self) -> None:
        """Kill whatever still runs."""
        for worker in self.workers:
            worker.kill()

    def wait_until(self, condition: Callable[[], bool], what: str, seconds: float = 60) -> None:
        """Wait for something, with all workers alive."""
        deadline = time.monotonic() + seconds
        while not condition():
            if (gone := self.sweep()) or time.monotonic() > deadline:
                tail = "".join(worker.text()[-3000:] for worker in gone or self.workers)
                raise RuntimeError(f"{what}: not within {seconds:.0f} s, or a worker ended\n{tail}")
            time.sleep(0.05)

    def _note(self, worker: Worker, code: int) -> None:
        lines = worker.text().strip().splitlines() or [""]
        if worker.name in self.twins and code == SettingsError.exit_code and REPLACED in lines[-1]:
            self.fenced += 1
            return
        self.ended.append(Ended(worker.name, code, lines[-1][-600:]))
