"""``rocstream demo``: broker, events, worker and table on one machine, and nothing left behind."""

from __future__ import annotations

import contextlib
import signal
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.live import Live

import config
from config.errors import RocstreamError
from worker import admin
from worker import demo as played
from worker.brokers.embedded import EmbeddedBroker
from worker.cli import options
from worker.cli.board import Board
from worker.cli.follower import Follower
from worker.demo.stage import SLIDE, Folder, Publishing, Worker, write_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console
    from rich.table import Table

    from config import Settings

DRAIN_SECONDS: Final = 10.0
PRINT_SECONDS: Final = 5.0
"""Where no terminal shows a live table, one is printed this often."""


def demo(
    *,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds",
            metavar="N",
            min=1,
            help="Publish for N seconds, print the last table, and end.",
        ),
    ] = None,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-servers",
            metavar="HOST:PORT,...",
            help="Use this Kafka, not the embedded broker; the demo's topics go at the end.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Watch five models score a stream while one of them slowly goes bad.

    Starts a broker and a worker on this machine, publishes 2,000 events a second (real scores of
    five phishing detectors) and shows AUC and H-measure of the last 1,000 events of each. The
    scores of `phishing-forest` get mixed up more and more; watch its figures fall. Ctrl-C ends it
    and removes everything.

    Example: `rocstream demo --seconds 30`
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        play(options.stdout(), seconds, bootstrap_servers)


def play(console: Console, seconds: float | None, bootstrap_servers: str | None) -> None:
    """Run the demo and show it on `console`.

    Parameters
    ----------
    console
        A live table on a terminal; elsewhere one every few seconds, or the last with `seconds`.
    seconds
        Publish for so long; None: until interrupted.
    bootstrap_servers
        The Kafka to use; None: the embedded broker.
    """
    with ExitStack() as stack:
        servers = bootstrap_servers
        if servers is None:
            _tell("starting the embedded broker (in memory, for show: it proves nothing of faults)")
            servers = stack.enter_context(EmbeddedBroker()).bootstrap_servers
        else:
            _tell(f"using the Kafka at {servers}; the demo's topics there go with its end")
        folder = stack.enter_context(Folder())
        settings = config.load(write_settings(folder.path, servers), environ={})
        stack.enter_context(_topics(settings, keep=bootstrap_servers is None))
        follower = stack.enter_context(contextlib.closing(Follower(settings, from_beginning=True)))
        _open(follower)
        _tell("starting a worker")
        worker = stack.enter_context(Worker(folder))
        publishing = stack.enter_context(Publishing(settings))
        _show(console, settings, follower, worker, publishing, seconds)


@contextmanager
def _topics(settings: Settings, *, keep: bool) -> Iterator[None]:
    cluster = admin.Cluster(settings)
    cluster.wait(admin.WAIT_SECONDS)
    plans = admin.plans(settings)
    cluster.create(plans)
    try:
        yield
    finally:
        # The embedded broker takes them with it; a Kafka of somebody else must not keep them.
        if not keep:
            cluster.remove([plan.name for plan in plans], settings.kafka.group)
        # The embedded broker waits for its clients to leave.
        cluster.close()


def _open(follower: Follower) -> None:
    deadline = time.monotonic() + admin.CALL_SECONDS
    while not follower.open():
        if time.monotonic() > deadline:
            raise RocstreamError(follower.away())


def _show(
    console: Console,
    settings: Settings,
    follower: Follower,
    worker: Worker,
    publishing: Publishing,
    seconds: float | None,
) -> None:
    board = Board(settings.monitors)
    began = printed = time.monotonic()
    live: Any = Live(console=console, auto_refresh=False) if console.is_terminal else None
    with live or contextlib.nullcontext():
        while seconds is None or time.monotonic() - began < seconds:
            _take(board, follower, 0.25)
            worker.check()
            publishing.check()
            if live is not None:
                live.update(_picture(board, publishing, console), refresh=True)
            elif seconds is None and time.monotonic() > printed + PRINT_SECONDS:
                printed = time.monotonic()
                console.print(_picture(board, publishing, console))
        publishing.stop()
        publishing.check()
        deadline = time.monotonic() + DRAIN_SECONDS
        while not _complete(board, publishing) and time.monotonic() < deadline:
            _take(board, follower, 0.1)
            worker.check()
        if live is not None:
            live.update(_picture(board, publishing, console), refresh=True)
    if live is None:
        console.print(_picture(board, publishing, console))
    if not len(board):
        raise RocstreamError(
            f"the demo's worker published nothing in {seconds or 0:.0f} s: give it more with "
            "--seconds"
        )


def _take(board: Board, follower: Follower, seconds: float) -> None:
    for _, update in follower.read(seconds):
        board.take(update)


def _complete(board: Board, publishing: Publishing) -> bool:
    # The keys take turns, so each has its share of all that was sent.
    each = publishing.sent // len(played.sample())
    return board.updates >= len(played.sample()) * (each // SLIDE)


def _picture(board: Board, publishing: Publishing, console: Console) -> Table:
    failing = played.wrong_share(publishing.sent // len(played.sample())) > 0
    state = "is going bad" if failing else "will go bad"
    return board.table(
        f"{publishing.sent:,} events, {board.updates:,} updates; {played.FAILING} {state}", console
    )


def _tell(sentence: str) -> None:
    typer.echo(f"rocstream: {sentence}", err=True)
