"""A tree that is built in part runs on the plain loops, and says how to build the rest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import engine
from worker import core

HIDE = """
from importlib.machinery import PathFinder
find = PathFinder.find_spec
PathFinder.find_spec = lambda name, path=None, target=None: (
    None if name in {"_block", "_batches"} else find(name, path, target)
)
import worker.app, worker.pages, worker.updates
from worker.events import native
print(worker.core.COMPILED, native.COMPILED, worker.pages.COMPILED, worker.updates.COMPILED)
"""


def run(choice: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", HIDE],
        env={**os.environ, "ROCSTREAM_ENGINE": choice},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_what_is_not_built_is_named(tmp_path: Path) -> None:
    assert "worker.events._block" in core.lacking(tmp_path)
    if core.COMPILED:
        assert core.lacking(Path(core.__file__).parent) == []


@pytest.mark.skipif(engine.IMPLEMENTATION != "compiled", reason="the engine is not built here")
def test_a_tree_built_in_part_falls_back_and_names_the_cure() -> None:
    done = run("")
    assert done.stdout.split() == ["False"] * 4, done.stderr
    assert done.stderr.count("setup.py build_ext --inplace") == 1
    assert "worker.events._block, worker.transport._batches not built" in done.stderr
    forced = run("compiled")
    assert forced.returncode != 0
    assert "ImportError: worker.events._block" in forced.stderr
