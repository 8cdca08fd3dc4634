"""``rocstream reset``: drops the state and moves the job, after showing what that means."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich import box
from rich.table import Table

from config.errors import RocstreamError, SettingsError
from config.values import plural
from worker import admin
from worker.cli import options

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from config import Settings
    from worker.reset import Move, Reset, Target

WAIT_SECONDS: Final = 10.0
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def reset(
    config: options.ConfigFile = None,
    *,
    to_earliest: Annotated[
        bool, typer.Option("--to-earliest", help="To the first record there is.")
    ] = False,
    to_latest: Annotated[
        bool, typer.Option("--to-latest", help="To the end: only what comes from now on.")
    ] = False,
    to_datetime: Annotated[
        str | None,
        typer.Option(
            "--to-datetime",
            metavar="T",
            help="To the first record whose own timestamp is T or later; ISO 8601 with a zone.",
            show_default=False,
        ),
    ] = None,
    to_offset: Annotated[
        int | None,
        typer.Option(
            "--to-offset",
            metavar="N",
            help="To this offset, in every partition.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Drop the state of a job and move it to another place in the events topic.

    All windows begin empty there, and `seq` begins at 1 again. Updates that are out stay; records
    that are read again are published again, with the same monitor, key and source. Refused while
    workers run. A reset that was interrupted is finished by running it again.

    Example: `rocstream reset -c rocstream.toml --to-datetime 2026-11-30T06:00Z --dry-run`
    """
    # Kafka's and Faust's parts take a second to load, which the other commands need not wait for.
    from worker.reset import Reset  # noqa: PLC0415
    from worker.rights import refuse_forbidden  # noqa: PLC0415
    from worker.transport.layout import survey  # noqa: PLC0415

    settings = options.settings(config)
    options.quieten(settings)
    target = _target(earliest=to_earliest, latest=to_latest, moment=to_datetime, offset=to_offset)
    if not (yes or dry_run or sys.stdin.isatty()):
        raise SettingsError(
            "reset asks before it drops the state, and standard input is no terminal: add --yes, "
            "or --dry-run to see what it would do"
        )
    admin.Cluster(settings).wait(WAIT_SECONDS)
    layout = survey(settings, Event())
    if layout is None:
        raise RuntimeError("the survey ended although nobody stopped it")
    # In the middle, some partitions would be moved and others not.
    refuse_forbidden(settings, layout.partitions)
    job = Reset(settings, layout)
    if not dry_run:
        job.refuse_while_running()
    with options.stderr().status("reading the state"):
        moves = job.moves(target)
    options.stdout().print(_table(moves))
    for remark in _remarks(moves):
        typer.echo(remark)
    if dry_run:
        _say_if_running(job)
        typer.echo("Nothing was changed: --dry-run.")
        return
    if not (yes or _confirmed(settings, moves)):
        typer.echo("Nothing was changed.", err=True)
        raise typer.Exit(1)
    with options.stderr().status("moving the job"):
        done = list(job.apply(moves))
    typer.echo(
        f"The job {settings.kafka.group} is moved: {plural(len(done), 'partition')}, "
        f"{plural(sum(move.pages for move in moves), 'page')} of state dropped. "
        "Workers may start again."
    )


def _target(*, earliest: bool, latest: bool, moment: str | None, offset: int | None) -> Target:
    from worker.reset import Kind, Target  # noqa: PLC0415 - see `reset`

    asked: list[Target] = [
        *([Target(Kind.EARLIEST)] if earliest else ()),
        *([Target(Kind.LATEST)] if latest else ()),
        *([Target(Kind.DATETIME, _milliseconds(moment))] if moment is not None else ()),
        *([Target(Kind.OFFSET, offset)] if offset is not None else ()),
    ]
    if len(asked) != 1:
        raise SettingsError(
            "reset needs exactly one of --to-earliest, --to-latest, --to-datetime T and "
            f"--to-offset N, not {len(asked)}"
        )
    return asked[0]


def _milliseconds(text: str) -> int:
    """Return a moment in ms since 1970; the next full one."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise SettingsError(
            f"--to-datetime {text!r} is no date and time: write it like 2026-11-30T06:00:00Z or "
            "2026-11-30T07:00+01:00"
        ) from error
    if moment.tzinfo is None:
        raise SettingsError(
            f"--to-datetime {text!r} has no time zone, so it could be any of a day: add one, such "
            f"as {moment.isoformat()}Z or {moment.isoformat()}+01:00"
        )
    if moment < _EPOCH:
        raise SettingsError(
            f"--to-datetime {text!r} lies before 1970, where no record is: use --to-earliest"
        )
    return -((_EPOCH - moment) // timedelta(milliseconds=1))


def _table(moves: Sequence[Move]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in ("partition", "from", "to", "records between", "pages dropped"):
        table.add_column(name, justify="right")
    for move in moves:
        table.add_row(
            str(move.partition),
            "-" if move.came_from is None else str(move.came_from),
            str(move.to),
            _between(move),
            f"{move.pages:,}",
        )
    return table


def _remarks(moves: Sequence[Move]) -> Iterator[str]:
    """Yield what is unusual, each with the partitions that it is true of."""
    found: dict[str, list[int]] = {}
    for move in moves:
        for remark in move.remarks:
            found.setdefault(remark, []).append(move.partition)
    for remark, partitions in found.items():
        noun = "Partition" if len(partitions) == 1 else "Partitions"
        yield f"{noun} {', '.join(map(str, partitions))}: {remark}."


def _between(move: Move) -> str:
    if move.came_from is None:
        return "-"
    distance = move.to - move.came_from
    if distance == 0:
        return "0"
    return f"{distance:,} skipped" if distance > 0 else f"{-distance:,} again"


def _confirmed(settings: Settings, moves: Sequence[Move]) -> bool:
    pages = plural(sum(move.pages for move in moves), "page")
    return typer.confirm(
        f"Drop {pages} of state and move the job {settings.kafka.group}?", err=True
    )


def _say_if_running(job: Reset) -> None:
    """Tell what would keep the reset from being done."""
    try:
        job.refuse_while_running()
    except RocstreamError as error:
        typer.echo(f"rocstream: {error}", err=True)
