"""Where memory is out a call is refused, and leaves everything as it was."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest import TempPathFactory  # noqa: PT013 - a type alone

pytest.importorskip("engine._core")

SUPPORT = Path(__file__).resolve().parent.parent / "support"
COMPILER = shutil.which("cc")

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="preloads a library, as Linux does it"),
    # The sanitizers have an allocator of their own.
    pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="runs under a sanitizer"),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: TempPathFactory) -> Path:
    """The allocator that fails when it is told to."""
    assert COMPILER is not None, "the core was compiled, so there was a compiler: cc is not in PATH"
    made = tmp_path_factory.mktemp("starve") / "starve.so"
    command = [COMPILER, "-shared", "-fPIC", "-O1", "-o", str(made), str(SUPPORT / "starve.c")]
    subprocess.run(command, check=True)
    return made


@pytest.mark.parametrize(
    ("structure", "least"),
    [
        ("roc", 100),
        ("filled roc", 10),
        ("count window", 100),
        ("smallest window", 20),
        ("ordinal roc", 50),
        ("ordinal window", 50),
        ("moved roc", 20),
        ("moved window", 50),
        ("rising ordinals", 10),
        ("time window", 100),
        ("decay window", 100),
        ("timed decay window", 100),
        ("landmark window", 50),
        ("binned roc", 10),
        ("approximate roc", 10),
    ],
)
@pytest.mark.parametrize("how", ["once", "lasting"])
def test_no_allocation_that_fails_leaves_a_trace(
    library: Path, structure: str, least: int, how: str
) -> None:
    if (structure, how) == ("approximate roc", "lasting"):
        pytest.skip("it wants memory to put its lists in order again")
    done = subprocess.run(
        [sys.executable, str(SUPPORT / "starved.py"), structure, how],
        env={**os.environ, "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # So many allocations there were, and each has failed once.
    assert int(done.stdout) > least
