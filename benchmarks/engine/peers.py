"""Peers in other languages, compiled on first use: Rust's BTreeSet, C++'s std::multiset.

All figures are CPU time, so that a machine that is busy with other work is least in the way.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
COMPILERS = {".rs": ("rustc", "-C", "opt-level=3"), ".cpp": ("g++", "-O3", "-std=c++17")}


@dataclass(frozen=True)
class Program:
    """A compiled peer."""

    path: str

    def run(self, *arguments: object, stdin: bytes = b"") -> str:
        """Return what it prints."""
        command = [self.path, *map(str, arguments)]
        return subprocess.run(command, input=stdin, check=True, capture_output=True).stdout.decode()


@cache
def built(source: str) -> Program | None:
    """Compile a peer; None where its compiler is missing."""
    compiler, *options = COMPILERS[Path(source).suffix]
    if shutil.which(compiler) is None:
        return None
    target = Path(tempfile.mkdtemp(prefix="rocstream-peers-")) / Path(source).stem
    subprocess.run([compiler, *options, "-o", str(target), str(HERE / source)], check=True)
    return Program(str(target))


def remove_and_insert(source: str, size: int, events: int) -> float | None:
    """Return ns per remove + insert of an ordered set, which counts nothing and reads nothing."""
    program = built(source)
    return None if program is None else float(program.run(size, events))
