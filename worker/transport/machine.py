"""What tasks ask of the machine: file descriptors above all, and that there are not too many."""

from __future__ import annotations

import resource
from typing import Final

import structlog

log = structlog.get_logger(__name__)

TASKS: Final = 64
"""For one worker at the most: beyond, the clients' threads alone keep a core busy."""

TOO_MANY: Final = 4 * TASKS
"""So many got on no more on two cores: their transactions ended before they could be committed."""

FILES: Final = 100
"""Open files of a worker without tasks, and of what comes and goes while tasks are opened."""

FILES_PER_TASK: Final = 5
FILES_PER_TASK_AND_BROKER: Final = 3
"""A producer has a thread for each broker, with a socket and a pipe."""


def files_needed(tasks: int, brokers: int) -> int:
    """Return how many files a worker has open with so many tasks, at the most."""
    return FILES + tasks * (FILES_PER_TASK + FILES_PER_TASK_AND_BROKER * brokers)


def make_room(tasks: int, brokers: int) -> None:
    """See to it that the tasks of this worker may open their files; warn where they may not.

    Parameters
    ----------
    tasks
        That this worker has.
    brokers
        Of the cluster.
    """
    if tasks > TASKS:
        never = f", with {TOO_MANY} and more it may never commit anything in time"
        log.warning(
            f"this worker has {tasks} tasks and more than {TASKS} are slow"  # noqa: G004 - structlog takes an event
            f"{never if tasks >= TOO_MANY else ''}: start more workers"
        )
    needed = files_needed(tasks, brokers)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    # Nobody is asked for what lies below the hard limit.
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < needed:
        log.warning(
            f"this worker may open {allowed:,} files and its {tasks} tasks need some "  # noqa: G004 - see above
            f"{needed:,}, or they cannot connect: raise the limit (`ulimit -n`, systemd's "
            "LimitNOFILE, a container's nofile), or start more workers"
        )
