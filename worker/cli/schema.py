"""``rocstream schema``: the JSON Schema of a message or of the settings, made from the code."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from worker.cli import options

if TYPE_CHECKING:
    from pathlib import Path


class Subject(StrEnum):
    """What there is a schema of."""

    EVENT = "event"
    UPDATE = "update"
    CONFIG = "config"


def schema(
    subject: Annotated[
        Subject, typer.Argument(help="A message on the topics, or the settings file.")
    ],
    config: options.ConfigFile = None,
) -> None:
    """Print the JSON Schema (draft 2020-12) of events, of updates, or of the settings.

    Example: `rocstream schema update > update.schema.json`

    With -c FILE, the schema of events has the fields where these settings look for them. An editor
    that knows TOML schemas completes settings with `rocstream schema config`.
    """
    typer.echo(json.dumps(_schema(subject, config), indent=2, ensure_ascii=False))


def _schema(subject: Subject, path: Path | None) -> dict[str, Any]:
    # Each room brings its own weight; only the one asked for is loaded.
    match subject:
        case Subject.EVENT:
            from worker import events  # noqa: PLC0415

            return events.schema(None if path is None else options.settings(path).event)
        case Subject.UPDATE:
            from worker import updates  # noqa: PLC0415

            return updates.schema()
        case Subject.CONFIG:
            import config  # noqa: PLC0415

            return config.schema()
