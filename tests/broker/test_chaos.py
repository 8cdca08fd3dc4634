"""The short forms of `scripts/chaos`: it finds nothing, and it finds what is broken on purpose."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.broker, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str) -> tuple[int, str]:
    """Run the script; return its exit code, and what it said."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "chaos"), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=ROOT,
        text=True,
        check=False,
        timeout=400,
    )
    return done.returncode, done.stdout


def count(said: str, kind: str) -> int:
    """Return a figure of the report."""
    found = re.search(rf"^\| {kind}: .* \| ([\d,]+) \|$", said, re.MULTILINE)
    assert found is not None, said
    return int(found[1].replace(",", ""))


def test_kills_and_a_broker_that_dies_leave_every_update_once() -> None:
    code, said = run("faults", "--kills", "5", "--minutes", "0.4", "--rate", "2000", "--no-zombies")
    assert code == 0, said


@pytest.mark.parametrize(
    ("sabotage", "kinds"), [("cursor", ["doubled", "missing"]), ("transactions", ["repeated"])]
)
def test_the_checker_catches_workers_that_are_broken_on_purpose(
    sabotage: str, kinds: list[str]
) -> None:
    code, said = run(
        *("faults", "--kills", "4", "--minutes", "0.25", "--rate", "2000", "--no-zombies"),
        *("--no-broker-faults", "--sabotage", sabotage),
    )
    assert code == 1, said
    assert all(count(said, kind) > 0 for kind in kinds), said


def test_a_broker_that_takes_no_writes_costs_no_memory_and_no_update() -> None:
    code, said = run("overload", "--seconds", "12", "--partitions", "1")
    assert code == 0, said


def test_a_broker_whose_disk_is_full_is_waited_for() -> None:
    code, said = run("disk", "--seconds", "5")
    assert code == 0, said


def test_answers_that_never_come_are_waited_for_and_told() -> None:
    code, said = run("silence", "--brief")
    assert code == 0, said
