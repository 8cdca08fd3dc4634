"""The command line without a broker: help, schemas, wrong use, exit codes, closed pipes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import jsonschema
import pytest

from config.errors import DecisionError, RocstreamError, SettingsError
from worker.cli import commands

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = ("demo", "worker", "check", "topics create", "send", "tail", "schema")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.run([*command.split(), "--help"]) == 0
    told = capsys.readouterr().out
    assert f"Example: rocstream {command}" in re.sub(r"zcat old.jsonl.gz \| ", "", told)


def test_no_command_shows_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.run([]) == 2
    assert "Usage: rocstream" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["tial"], "Did you mean 'tail'"),
        (["tail", "--frm-beginning"], "--from-beginning"),
        (["send"], "SOURCE"),
        (["schema", "updates"], "update"),
        (["demo", "--seconds", "soon"], "--seconds soon: it must be a valid number (see"),
        (["replay", "-j", "0"], "--processes 0: it must be greater than or equal to 1 (see"),
        (["replay", "-j0"], "--processes 0: it must"),
        (["replay", "--format=xml"], "--format xml: 'xml' is not one of 'auto', 'json'"),
        (["check", "-c", "/no/such/file"], "/no/such/file"),
    ],
)
def test_wrong_use_is_one_line_and_exit_2(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert commands.run(arguments) == 2
    captured = capsys.readouterr()
    assert told in captured.err
    assert captured.err.startswith("rocstream: ")
    assert captured.err.count("\n") == 1
    assert not captured.out


@pytest.mark.parametrize("subject", ["event", "update", "config"])
def test_schemas_are_valid_json_schema(subject: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.run(["schema", subject]) == 0
    jsonschema.Draft202012Validator.check_schema(json.loads(capsys.readouterr().out))


def test_the_schema_of_events_follows_the_settings(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert commands.run(["schema", "event", "-c", str(file)]) == 0
    schema = json.loads(capsys.readouterr().out)
    event = {"model": {"score": 0.5}, "label": 1}
    jsonschema.validate(event, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"score": 0.5, "label": 1}, schema)


@pytest.mark.parametrize(
    ("error", "code"), [(RocstreamError, 1), (SettingsError, 2), (DecisionError, 3)]
)
def test_an_error_is_its_sentence_and_its_exit_code(
    error: type[RocstreamError],
    code: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise error("the setting x is 1: make it 2")

    monkeypatch.setattr("worker.cli.options.settings", refuse)
    assert commands.run(["check"]) == code
    assert capsys.readouterr().err == "rocstream: the setting x is 1: make it 2\n"
    assert commands.run(["check"], debug=True) == code
    told = capsys.readouterr().err
    assert told.startswith("Traceback")
    assert told.endswith("\nrocstream: the setting x is 1: make it 2\n")


def test_a_fault_of_ours_is_one_sentence_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("worker.cli.options.settings", fail)
    assert commands.run(["check"]) == 1
    assert capsys.readouterr().err.startswith("rocstream: ZeroDivisionError: division by zero (")


def test_debug_may_stand_anywhere_and_shows_the_traceback() -> None:
    for arguments in (["--debug", "check", "-c", "gone"], ["check", "-c", "gone", "--debug"]):
        done = subprocess.run(
            [sys.executable, "-m", "worker", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 2
        assert "Traceback" in done.stderr
        assert done.stderr.splitlines()[-1].startswith("rocstream: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["topics", "--help"],
        ["schema", "config"],
        ["replay", "-c", "{file}", "{events}"],
        ["replay", "-c", "{file}", "{events}", "-o", "-"],
        ["replay", "-c", "{file}", "{events}", "--sweep", "window.size=100,200"],
        ["check", "-c", "{file}"],
    ],
    ids=" ".join,
)
def test_a_closed_pipe_is_no_error(arguments: list[str], file: Path, tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    line = '{"key": "a", "model": {"score": 0.5}, "label": 1}\n'
    events.write_text(line * 100)
    given = [one.format(file=file, events=events) for one in arguments]
    # Of the pipe the read end is closed before the command begins: every write to it fails.
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "worker", *given],
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    finally:
        os.close(write)
    assert done.returncode == 0
    assert "rocstream: " not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_source_that_is_not_there_is_told_before_a_broker_is_asked(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert commands.run(["send", "-c", str(file), "no-such.jsonl"]) == 2
    assert "no-such.jsonl: there is no such file" in capsys.readouterr().err
