"""``rocstream tail``: the updates as they come, a live table on a terminal and lines elsewhere."""

from __future__ import annotations

import fnmatch
import math
import sys
import time
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.live import Live

from config.values import plural
from worker.cli import options
from worker.cli.board import Board, line
from worker.cli.follower import Follower

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from config import Settings

REFRESH_SECONDS: Final = 0.25
_FRAME: Final = 6
"""Lines of the terminal that the table's head, its frame and the status take."""


def tail(
    config: options.ConfigFile = None,
    *,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Show what is on the topic already, too.")
    ] = False,
    once: Annotated[
        bool,
        typer.Option("--once", help="Read to the present end, show the last readings, and end."),
    ] = False,
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", metavar="N", min=0, help="End after N seconds."),
    ] = None,
    key: Annotated[
        str,
        typer.Option("--key", metavar="GLOB", help="Only keys like this, such as 'fraud-*'."),
    ] = "*",
    json: Annotated[
        bool, typer.Option("--json", help="Print the updates as they are, one per line.")
    ] = False,
) -> None:
    """Follow the updates: a live table on a terminal, a line per update elsewhere.

    Only committed updates are shown. With no broker there it says so and waits. Ctrl-C ends it.

    Example: `rocstream tail -c rocstream.toml --json | jq .auc`
    """
    settings = options.settings(config)
    follower = Follower(settings, from_beginning=from_beginning or once)
    deadline = math.inf if seconds is None else time.monotonic() + seconds
    try:
        if not _open(follower, deadline):
            return
        console = options.stdout()
        if json or not (console.is_terminal or once):
            _print(follower, key, deadline, as_json=json, once=once)
        else:
            _show(settings, follower, key, deadline, console, once=once)
    except KeyboardInterrupt:
        # The usual way to end it.
        return
    finally:
        follower.close()


def _open(follower: Follower, deadline: float) -> bool:
    told = False
    while not follower.open():
        if not told:
            typer.echo(f"rocstream: {follower.away()}", err=True)
            told = True
        if time.monotonic() >= deadline:
            return False
    return True


def _reads(
    follower: Follower, key: str, deadline: float, *, once: bool
) -> Iterator[list[tuple[bytes, dict[str, object]]]]:
    """Yield what comes, an empty list where nothing did, until the end."""
    while time.monotonic() < deadline and not (once and follower.ended()):
        yield [
            (value, update)
            for value, update in follower.read(REFRESH_SECONDS)
            if key == "*" or fnmatch.fnmatchcase(str(update["key"]), key)
        ]


def _print(follower: Follower, key: str, deadline: float, *, as_json: bool, once: bool) -> None:
    told = None
    for run in _reads(follower, key, deadline, once=once):
        for value, update in run:
            sys.stdout.write((value.decode() if as_json else line(update)) + "\n")
        sys.stdout.flush()
        trouble = follower.trouble()
        if trouble not in {None, told}:
            typer.echo(f"rocstream: {trouble}", err=True)
        told = trouble


def _show(
    settings: Settings,
    follower: Follower,
    key: str,
    deadline: float,
    console: Console,
    *,
    once: bool,
) -> None:
    board = Board(settings.monitors)
    if once:
        for run in _reads(follower, key, deadline, once=True):
            for _, update in run:
                board.take(update)
        console.print(board.table(_status(follower, board), console))
        return
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        for run in _reads(follower, key, deadline, once=False):
            for _, update in run:
                board.take(update)
            table = board.table(
                _status(follower, board), console, rows=max(console.height - _FRAME, 1)
            )
            live.update(table, refresh=True)


def _status(follower: Follower, board: Board) -> str:
    if (trouble := follower.trouble()) is not None:
        return trouble
    told = f"{plural(board.updates, 'update')} of {plural(len(board), 'key')} from {follower.topic}"
    if follower.unreadable:
        told += f"; {follower.unreadable:,} records there are no updates"
    return told if board.updates else f"waiting for updates on {follower.topic}"
