"""The tables of docs/operations.md that say what a refusal means, against the code, both ways."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from worker.rights import NEEDED

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text()

ROOTS = {"RocstreamError": 1, "SettingsError": 2, "DecisionError": 3}
VALUE = "\0"
"""In a sentence of the code, the place of a value."""

OF_COMMANDS = {"cli", "replay", "demo", "brokers", "events"}
"""Folders whose sentences come from commands at the prompt, or go into dead letters: a person who
typed one reads its answer, and needs no page."""

OF_COMMANDS_TOO = {"publisher.py", "reader.py", "rights.py"}

NEVER_SHOWN = {
    "reading the state was given up",
    f"the producer of task {VALUE} is not open",
    f"task {VALUE} was given up while it was writing",
    # The sentence of the demo, about what it made itself.
    f"topic {VALUE} was not removed: {VALUE}",
    f"group {VALUE} was not removed: {VALUE}",
}
"""What is raised where nobody listens any more: the work was called off."""


class Sentence(NamedTuple):
    """A sentence with values in it, of which only the places are known."""

    text: str
    exit_code: int
    place: str


def modules() -> dict[Path, ast.Module]:
    found = sorted((ROOT / "worker").rglob("*.py"))
    return {path: ast.parse(path.read_text()) for path in found}


def text_of(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else VALUE for part in node.values
        )
    return None


def exit_codes(trees: dict[Path, ast.Module]) -> dict[str, int]:
    """Return the exit code of each class of errors; that of two with one name is the lower."""
    known = dict(ROOTS)
    classes = [n for tree in trees.values() for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]
    for _ in classes:
        for one in classes:
            for base in one.bases:
                if isinstance(base, ast.Name) and base.id in known:
                    known.setdefault(one.name, known[base.id])
    return known


def sentences() -> Iterator[Sentence]:
    """Yield what workers and resets refuse with."""
    trees = modules()
    codes = exit_codes(trees)
    for path, tree in trees.items():
        place = path.relative_to(ROOT / "worker")
        if place.parts[0] in OF_COMMANDS or place.name in OF_COMMANDS_TOO:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
                text = text_of(node.args[0]) if node.func.id in codes else None
                # What begins with a value is put together of sentences that stand by themselves.
                if text and text not in NEVER_SHOWN and not text.startswith(VALUE):
                    yield Sentence(text, codes[node.func.id], f"{place}:{node.lineno}")
            elif place.name == "footing.py" and isinstance(node, ast.Return) and node.value:
                text = text_of(node.value)
                if text:
                    yield Sentence(text, 3, f"{place}:{node.lineno}")


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading."""
    section = re.split(rf"^#+ {re.escape(heading)}$", PAGE, flags=re.MULTILINE)[1]
    section = re.split(r"^#+ ", section, flags=re.MULTILINE)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in lines[2:]
        if line.count("|") == lines[0].count("|")
    ]


def told() -> Iterator[Sentence]:
    """Yield the sentences of the page, values as dots or as examples."""
    tables = {
        "Exit 3: decide": 3,
        "Exit 2: correct": 2,
        "Exit 1: look at the broker, start again": 1,
    }
    for heading, code in tables.items():
        for cells in rows(heading):
            for quoted in re.findall(r"`([^`]+)`", cells[0]):
                yield Sentence(quoted, code, heading)
    for cells in rows("Encryption and credentials"):
        for quoted in re.findall(r"`([^`]+)`", cells[0]):
            yield Sentence(quoted, int(cells[1][0]), "encryption")


def parts(quoted: str) -> list[str]:
    """Return what stands between the values of a sentence of the page."""
    found = (part.strip(' ":') for part in re.split(r"\.\.\.|\d[\d,]*", quoted))
    return [part for part in found if len(part) > 3]


def says(sentence: str, quoted: str) -> bool:
    """Tell whether a sentence of the code has all that the page quotes, in its order."""
    at = 0
    for part in parts(quoted):
        at = sentence.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return bool(parts(quoted))


TOLD = list(told())
IN_CODE = list(sentences())


@pytest.mark.parametrize("sentence", IN_CODE, ids=[one.place for one in IN_CODE])
def test_every_refusal_has_a_row_under_its_exit_code(sentence: Sentence) -> None:
    assert any(
        one.exit_code == sentence.exit_code and says(sentence.text, one.text) for one in TOLD
    ), sentence.text.replace(VALUE, "...")


def test_every_sentence_of_the_tables_is_one_that_is_said() -> None:
    """In one module, at least: some are put together there."""
    files = [path for folder in ("worker", "config") for path in (ROOT / folder).rglob("*.py")]
    said = [
        VALUE.join(
            text
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.expr) and (text := text_of(node)) is not None
        )
        for path in files
    ]
    unsaid = [
        one.text
        for one in TOLD
        if not any(all(part in texts for part in parts(one.text)) for texts in said)
    ]
    assert not unsaid


def test_the_permissions_of_the_page_are_those_that_commands_need() -> None:
    listed = {
        (resource, name, operation, command)
        for kind, names, operations, commands in rows("Permissions")
        for resource in kind.split(", ")
        for name in re.findall(r"`([^`]+)`", names)
        for operation in operations.split(", ")
        for command in commands.split(", ")
    }
    needed = {
        (right.resource, right.name, right.operation, command)
        for right in NEEDED
        for command in right.commands
    }
    assert listed == needed
