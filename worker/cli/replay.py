"""``rocstream replay``: a backtest from the events topic or from files, the live job untouched."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from config.errors import RocstreamError, SettingsError
from worker.cli import options
from worker.replay.files import Fields
from worker.replay.filesource import FileSource
from worker.replay.player import Player
from worker.replay.session import Session
from worker.replay.sinks import STDOUT, Rejected, sink
from worker.replay.span import span
from worker.replay.topic import TopicSource

if TYPE_CHECKING:
    from config import Settings
    from worker.replay.records import Source
    from worker.replay.span import Span

INTERRUPTED = 130


class Format(StrEnum):
    """How the sources are written; `auto` goes by their names."""

    AUTO = "auto"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


def replay(  # noqa: PLR0913 - the options of a command
    source: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SOURCE]...",
            help="Files or directories of JSON lines (.gz, .zst), CSV or Parquet; - is standard "
            "input; none is the events topic.",
            show_default=False,
        ),
    ] = None,
    config: options.ConfigFile = None,
    *,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="OUT",
            help="Where the updates go: FILE.jsonl (.gz), FILE.parquet, - or topic:NAME.",
            show_default=False,
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="WHEN",
            help="earliest, latest, an offset, an ISO time with zone, or -24h. Windows are "
            "warmed up before it.",
            show_default=False,
        ),
    ] = None,
    stop: Annotated[
        str | None,
        typer.Option("--to", metavar="WHEN", help="Likewise, not included.", show_default=False),
    ] = None,
    cold: Annotated[
        bool, typer.Option("--cold", help="Begin with empty windows at --from.")
    ] = False,
    topic: Annotated[
        str | None,
        typer.Option(
            "--topic", metavar="NAME", help="A topic other than topics.events.", show_default=False
        ),
    ] = None,
    partition: Annotated[
        list[int] | None,
        typer.Option("--partition", metavar="N", help="Only these partitions.", show_default=False),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", metavar="GLOB", help="Only keys like this; repeatable.", show_default=False
        ),
    ] = None,
    rejected: Annotated[
        Path | None,
        typer.Option(
            "--rejected",
            metavar="FILE",
            help="Refused records and why, as JSON lines.",
            show_default=False,
        ),
    ] = None,
    form: Annotated[
        Format, typer.Option("--format", help="How the sources are written; auto: by their names.")
    ] = Format.AUTO,
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="TEXT", help="One key for all lines.", show_default=False),
    ] = None,
    key_field: Annotated[
        str | None,
        typer.Option(
            "--key-field",
            metavar="NAME",
            help='The field of files with the key, where event.key = "$key". Otherwise "key".',
            show_default=False,
        ),
    ] = None,
    time_field: Annotated[
        str | None,
        typer.Option(
            "--time-field",
            metavar="NAME",
            help='The field of files with the time, where event.time = "$timestamp".',
            show_default=False,
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Publish even to a topic of the live job.")
    ] = False,
) -> None:
    """Replay old events under these settings: the updates the worker would have published.

    Nothing of a live job is touched: no group is joined, nothing is committed. From a log's first
    record on, the updates are the live ones to the byte. From `--from` on they have the same
    readings, for the windows are warmed up before it (`--cold` begins with empty ones).

    Example: `rocstream replay -c rocstream.toml march/ -o updates.parquet`
    """
    settings = options.settings(config)
    stretch = span(start, stop, int(time.time() * 1000), cold=cold)
    fields = Fields(key, key_field, time_field)
    if source:
        if topic is not None or partition:
            raise SettingsError("--topic and --partition are for topics: name no files beside them")
        form_ = None if form is Format.AUTO else form.value
        read: Source = FileSource(source, form_, fields)
    else:
        if fields != Fields() or form is not Format.AUTO:
            raise SettingsError(
                "--key, --key-field, --time-field and --format are for files: name some, or leave "
                "them out"
            )
        read = _topic(settings, stretch, topic, partition)
    player = Player([settings], read, stretch if source else None, keys=only)
    _run(settings, player, out, rejected, force=force)


def _topic(
    settings: Settings, stretch: Span, topic: str | None, partitions: list[int] | None
) -> TopicSource:
    window = max(monitor.window.size for monitor in settings.monitors)
    return TopicSource(settings, stretch, topic=topic, partitions=partitions or None, window=window)


def _run(
    settings: Settings, player: Player, out: str | None, rejected: Path | None, *, force: bool
) -> None:
    # What is told must not stand between updates on standard output.
    console = options.stderr() if out == STDOUT else options.stdout()
    refused = Rejected(rejected)
    session = Session(player, [sink(out, settings, force=force)], refused, console=options.stderr())
    outcome = session.run()
    [readings], [place] = outcome.readings, outcome.places
    if readings and out != STDOUT:
        console.print(readings.table(settings))
    console.print(session.sentence() + (f" in {place}" if place else ""))
    for note in player.source.notes:
        options.stderr().print(f"note: {note}")
    if refused.first:
        options.stderr().print(f"first rejected: {refused.first}")
    if outcome.rejected:
        options.stderr().print(f"rejected records: {outcome.rejected}")
    if not outcome.whole:
        raise typer.Exit(INTERRUPTED)
    counts = player.tally.counts
    if counts["records"] and counts["records"] == counts["rejected"]:
        raise RocstreamError(
            f"every record was rejected, the first: {refused.first}: do the paths in [event] fit?"
        )
