"""The command line as a person types it, each command a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parents[2]


class Done(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


def rocstream(*arguments: object, environ: dict[str, str] | None = None) -> Done:
    """Run one command to its end."""
    done = subprocess.run(
        [sys.executable, "-m", "worker", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=90,
        cwd=HERE,
        env={**os.environ, **(environ or {})},
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())
