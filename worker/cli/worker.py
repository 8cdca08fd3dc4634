"""``rocstream worker``: the job itself, until Ctrl-C or SIGTERM."""

from __future__ import annotations

from typing import Annotated

import typer

from worker.cli import options


def worker(
    config: options.ConfigFile = None,
    *,
    accept_gap: Annotated[
        bool,
        typer.Option(
            "--accept-gap",
            help="Where the log does not go on from the saved position (records were deleted "
            "unread or lost, or the topic was made again), restart the windows empty with the "
            'first record there is; the updates say so (`note` "gap").',
        ),
    ] = False,
) -> None:
    """Read scored events, keep the windows, publish an update whenever one slides.

    Start as many workers with one settings file as you like: they share the partitions. Stop one
    with Ctrl-C or SIGTERM, or kill it: state, updates and position move together, so nothing is
    lost and nothing is published twice. With no broker there it waits for one. It makes no topics.

    Example: `rocstream worker -c rocstream.toml`
    """
    settings = options.settings(config)
    # Faust and the engine take a second to load, which the other commands need not wait for.
    from worker import app  # noqa: PLC0415

    app.run(settings, accept_gap=accept_gap)
