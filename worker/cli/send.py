"""``rocstream send``: events from files onto the events topic, with a bar that tells how far."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from config.errors import RocstreamError
from config.values import plural
from worker import admin
from worker.cli import options, rows, sources
from worker.cli.rows import Bad
from worker.cli.sources import Format
from worker.publisher import Publisher

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rich.progress import Task

    from config import EventSettings
    from worker.replay.files import Member
    from worker.rows import Keys

_REPORT_EVERY: Final = 512


def send(
    source: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE",
            help="Files or directories of JSON lines, CSV (.gz, .zst) or Parquet; - is standard "
            "input.",
        ),
    ],
    config: options.ConfigFile = None,
    *,
    key: sources.KeyOption = None,
    key_field: Annotated[
        str | None,
        typer.Option(
            "--key-field",
            metavar="NAME",
            help='The field or column with the key, where event.key = "$key". Otherwise "key".',
            show_default=False,
        ),
    ] = None,
    form: sources.FormatOption = Format.AUTO,
    skip_bad: Annotated[
        bool,
        typer.Option("--skip-bad", help="Leave lines out that cannot be sent, instead of ending."),
    ] = False,
) -> None:
    """Publish scored events from files.

    A line of JSON is sent as it stands: an object with the fields that `[event]` names. Of a CSV,
    whose first line names the columns, those that `[event]` names are sent: keys as text (007
    stays 007), scores, times and weights as numbers, an empty label as one not known yet. Of
    Parquet likewise, with the types it has.

    The record's key is the one that `event.key` leads to; where that is `$key`, it is the line's
    `key`, another field with `--key-field`, or one for all with `--key`. Whether score and label
    make sense is the worker's to judge: what it refuses it keeps on the rejected topic.

    Example: `zcat old.jsonl.gz | rocstream send -c rocstream.toml - --key fraud-v3`
    """
    settings = options.settings(config)
    taken = rows.keys(settings.event, key, key_field)
    members = sources.members(source, form)
    cluster = admin.Cluster(settings)
    cluster.wait(admin.WAIT_SECONDS)
    if settings.topics.events not in cluster.partitions():
        raise cluster.absent(admin.plans(settings)[0], "WRITE")
    publisher = Publisher(settings)
    began = time.monotonic()
    try:
        for member in members:
            _send(publisher, member, settings.event, taken, skip_bad=skip_bad)
        publisher.flush()
    finally:
        publisher.close()
        _summary(publisher, settings.topics.events, time.monotonic() - began)


class Rate(ProgressColumn):
    """Events sent so far and per second."""

    def render(self, task: Task) -> Text:
        """Return the column's text."""
        sent = task.fields["sent"]
        rate = sent / task.elapsed if task.elapsed else 0.0
        return Text(f"{sent:,} events  {rate:,.0f}/s")


def _send(
    publisher: Publisher,
    member: Member,
    event: EventSettings,
    keys: Keys,
    *,
    skip_bad: bool,
) -> None:
    progress = _progress()
    shown: AbstractContextManager[Any] = nullcontext() if progress is None else progress
    size = member.size or None
    with shown, sources.opened(member, event, keys) as source:
        bar = None if progress is None else progress.add_task(source.name, total=size, sent=0)
        for sent, found in enumerate(source.events, start=1):
            if isinstance(found, Bad):
                sentence = f"{source.where(found.line)}: {found.why}"
                if not skip_bad:
                    publisher.flush()
                    raise RocstreamError(
                        f"{sentence}; nothing after it was sent (--skip-bad leaves such lines out)"
                    )
                publisher.skip(sentence)
            else:
                publisher.send(found.key, found.value)
            if sent % _REPORT_EVERY == 0:
                publisher.poll()
                if progress is not None and bar is not None:
                    progress.update(bar, completed=source.position(), sent=sent)
        publisher.flush()
        if progress is not None and bar is not None:
            progress.update(bar, completed=size, sent=publisher.delivered)


def _progress() -> Progress | None:
    console = options.stderr()
    if not console.is_terminal:
        return None
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        Rate(),
        TimeRemainingColumn(),
        console=console,
    )


def _summary(publisher: Publisher, topic: str, seconds: float) -> None:
    rate = publisher.delivered / seconds if seconds else 0.0
    events = plural(publisher.delivered, "event")
    typer.echo(f"sent {events} to {topic} in {seconds:.1f} s ({rate:,.0f}/s)")
    if publisher.skipped:
        lines = plural(publisher.skipped, "line")
        typer.echo(f"left out {lines}, the first: {publisher.first_skipped}", err=True)
