"""The pages for people: their settings load, their commands parse, their links lead somewhere."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import typer

import config
from worker import updates
from worker.cli import commands
from worker.events import REASONS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^    (.*)$", re.MULTILINE)
# In code, up to what a shell would end a command at.
COMMAND = re.compile(r"(?:^|[|&;`$(] ?)rocstream((?: +[^\s`|&;#)]+)*)", re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)

each_page = pytest.mark.parametrize("page", PAGES, ids=NAMES)


def blocks(page: Path, language: str) -> list[str]:
    return [text for found, text in FENCE.findall(page.read_text()) if found == language]


def lines_of_commands(page: Path) -> Iterator[list[str]]:
    """Yield the arguments of every `rocstream ...` in indented code or between backticks."""
    text = FENCE.sub("", page.read_text())
    for code in (*INDENTED.findall(text), *re.findall(r"`[^`\n]*`", text)):
        for found in COMMAND.findall(code):
            yield shlex.split(found)


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives to a page's headings."""
    return {
        re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        for heading in HEADING.findall(FENCE.sub("", page.read_text()))
    }


@each_page
def test_settings_shown_as_a_file_load(page: Path, tmp_path: Path) -> None:
    for number, text in enumerate(blocks(page, "toml")):
        if "[kafka]" not in text:
            continue
        path = tmp_path / f"{number}.toml"
        path.write_text(text)
        assert config.load(path, {}).monitors


@each_page
def test_updates_shown_are_updates(page: Path) -> None:
    for text in blocks(page, "json"):
        shown = json.loads(text)
        if "monitor" in shown:
            jsonschema.validate(shown, updates.schema())


@each_page
def test_programs_shown_compile(page: Path) -> None:
    for text in blocks(page, "python"):
        compile(text, page.name, "exec")


@each_page
def test_commands_shown_are_there_with_their_options(page: Path) -> None:
    for arguments in lines_of_commands(page):
        shown = f"rocstream {shlex.join(arguments)}"
        command: Any = typer.main.get_command(commands.app)
        rest = iter(arguments)
        for argument in rest:
            if argument in getattr(command, "commands", {}):
                command = command.commands[argument]
            elif argument.startswith("-") and argument != "-":
                options = {name: one for one in command.params for name in one.opts}
                if argument not in {"-h", "--help"}:
                    assert argument in options, shown
                    if not options[argument].is_flag:
                        assert next(rest, None) is not None, shown
            else:
                # Behind a command stand values; in its place a word must be a command.
                assert not hasattr(command, "commands"), shown


@each_page
def test_links_within_the_repository_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = page.parent / name if name else page
        assert path.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in anchors(path), f"{page.name} links to {target}"


def test_every_reason_to_refuse_a_record_is_described() -> None:
    text = (ROOT / "docs" / "messages.md").read_text()
    described = set(re.findall(r"rejected: `(\w+)`", text))
    assert described == set(REASONS)


def test_every_part_of_an_update_is_described() -> None:
    text = (ROOT / "docs" / "messages.md").read_text()
    own = set(updates.Update.__annotations__) - {"source", "window"}
    own |= {
        f"window.{name}" if name == "kind" else f".{name}" for name in ("kind", "size", "slide")
    }
    assert [name for name in sorted(own) if f"`{name}`" not in text] == []
