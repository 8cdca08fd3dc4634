"""Room for tasks: files that may be open, and how many tasks are too many."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from worker.transport.machine import TASKS, TOO_MANY, files_needed

HERE = Path(__file__).parents[2]


def made_room(limit: str, tasks: int, brokers: int) -> list[str]:
    """Make room in a process with this limit; return its soft limit then, and what it says."""
    program = (
        "import resource, structlog\n"
        "from worker.transport.machine import make_room\n"
        "structlog.configure(processors=[lambda logger, method, event: event['event']])\n"
        f"make_room({tasks}, {brokers})\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    done = subprocess.run(
        ["sh", "-c", f'{limit}; exec "$@"', "sh", sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=HERE,
    )
    return done.stdout.splitlines()


def test_the_limit_is_raised_as_far_as_tasks_need_it() -> None:
    assert made_room("ulimit -Sn 256", 10, 1) == ["256"]
    assert made_room("ulimit -Sn 256", 40, 3) == [str(files_needed(40, 3))]


def test_a_hard_limit_that_is_too_low_is_told_with_the_cure() -> None:
    warning, limit = made_room("ulimit -Sn 200; ulimit -Hn 300", 40, 3)
    assert limit == "300"
    for part in ("may open 300 files", "40 tasks", f"{files_needed(40, 3)}", "LimitNOFILE"):
        assert part in warning


@pytest.mark.parametrize(("tasks", "told"), [(TASKS, False), (TASKS + 1, True)])
def test_too_many_tasks_are_told(tasks: int, *, told: bool) -> None:
    *warnings, _ = made_room("ulimit -Sn 256", tasks, 1)
    assert ["start more workers" in warning for warning in warnings] == [True] * told


@pytest.mark.parametrize(("tasks", "told"), [(TOO_MANY - 1, False), (TOO_MANY, True)])
def test_tasks_that_may_never_get_on_are_told(tasks: int, *, told: bool) -> None:
    warning, *_ = made_room("ulimit -Sn 256", tasks, 1)
    assert "are slow" in warning
    assert "start more workers" in warning
    assert ("may never commit anything in time" in warning) is told
