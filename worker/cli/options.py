"""What the commands have in common: the settings file, and how a command tells of itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console

import config
from config import log

if TYPE_CHECKING:
    from config import Settings

INTERRUPTED: Final = 130
"""The exit code of what Ctrl-C ended."""

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="The settings, a TOML file; ROCSTREAM__SECTION__NAME variables override it.",
        show_default=False,
    ),
]


def settings(path: Path | None) -> Settings:
    """Load the settings and set the log up as they say.

    Raises
    ------
    SettingsError
        With the setting, its value and the cure.
    """
    loaded = config.load(path)
    log.configure(loaded.log, secrets=[loaded.kafka.security.password])
    return loaded


def quieten(settings: Settings) -> None:
    """Leave out what only a worker's log needs, such as how fast each state was read."""
    if settings.log.level == "info":
        log.configure(
            settings.log.model_copy(update={"level": "warning"}),
            secrets=[settings.kafka.security.password],
        )


def name(path: Path | None) -> str:
    """Return the settings file as it is to stand in a command that a person may copy."""
    return "" if path is None else f" -c {path}"


def stdout() -> Console:
    """Return the console of results: colours and tables on a terminal, plain text elsewhere."""
    return Console(highlight=False, soft_wrap=True)


def stderr() -> Console:
    """Return the console of everything that is not a result."""
    return Console(stderr=True, highlight=False, soft_wrap=True)
