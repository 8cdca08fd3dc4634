"""docs/mathematics.md says what the engine does: its examples are true, its tables complete."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import engine
from engine.readings import AT_THRESHOLDS, OF_WINDOWS, READERS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "mathematics.md").read_text()
TABLE = PAGE.split("## Where each is computed")[1].split("\n## ")[0]


def rows() -> Iterator[list[str]]:
    """Yield the cells of the table that says where a reading is computed."""
    for line in TABLE.splitlines():
        if line.startswith("|"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def test_examples_are_true() -> None:
    examples = "\n".join(re.findall(r"^```pycon\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
    test = doctest.DocTestParser().get_doctest(examples, {}, "mathematics.md", None, 0)
    runner = doctest.DocTestRunner()
    runner.run(test)
    assert runner.summarize(verbose=False).failed == 0
    assert len(test.examples) > 15


def test_every_reading_is_in_the_table_once() -> None:
    named = [name for first, *_ in rows() for name in re.findall(r"`(\w+)`", first)]
    assert sorted(named) == sorted([*READERS, *AT_THRESHOLDS, *OF_WINDOWS])


@pytest.mark.parametrize("name", ["Roc", "OrdinalRoc"])
def test_every_method_in_the_table_is_there(name: str) -> None:
    methods = re.findall(rf"`{name}\.(\w+)\(", TABLE)
    assert methods
    assert [method for method in methods if not hasattr(getattr(engine, name), method)] == []


def test_every_reading_of_a_roc_is_in_the_table() -> None:
    own = {name for name in dir(engine.reference.Roc) if not name.startswith("_")}
    own -= {"add", "remove", "extend", "positives", "negatives"}
    assert own == set(re.findall(r"`Roc\.(\w+)\(", TABLE))


def test_every_file_that_is_named_is_there() -> None:
    named = set(re.findall(r"`((?:engine|scripts)/[\w/]+\.\w+)`", PAGE))
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []
