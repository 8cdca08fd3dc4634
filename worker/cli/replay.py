"""``rocstream replay``: a backtest from the events topic or from files, the live job untouched."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated, Final

import typer

from worker.cli import options, sources
from worker.cli.sources import Format

STDOUT: Final = "-"


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
    form: sources.FormatOption = Format.AUTO,
    key: sources.KeyOption = None,
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
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            "--sweep",
            metavar="SETTING=V,V",
            help="Replay under each of these values, all in one pass: window.size=1000,5000; "
            "repeatable for combinations; monitor:setting for one monitor alone.",
            show_default=False,
        ),
    ] = None,
    alert: Annotated[
        list[str] | None,
        typer.Option(
            "--alert",
            metavar="RULE",
            help='Tell when a rule would have fired: "auc < 0.8 for 3" (updates); repeatable.',
            show_default=False,
        ),
    ] = None,
    change: Annotated[
        str | None,
        typer.Option(
            "--change",
            metavar="WHEN",
            help="The offset or time at which something changed: alerts tell their lag behind it.",
            show_default=False,
        ),
    ] = None,
    compare: Annotated[
        str | None,
        typer.Option(
            "--compare",
            metavar="PATH",
            help="Compare event.score with this score of the same records; OUT gets differences.",
            show_default=False,
        ),
    ] = None,
    compare_keys: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--compare-keys",
            metavar="CHAMPION CHALLENGER",
            help="Compare two keys that scored the same things.",
            show_default=False,
        ),
    ] = None,
    pair_by: Annotated[
        str | None,
        typer.Option(
            "--pair-by",
            metavar="PATH",
            help="The field that says which of their records belong together; otherwise in turn.",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE.html",
            help="A page of charts that needs no network.",
            show_default=False,
        ),
    ] = None,
    moment: Annotated[
        list[str] | None,
        typer.Option(
            "--moment",
            metavar="WHEN",
            help="An offset or time whose ROC and cost curves the report shows, besides the end; "
            "repeatable.",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE",
            help="AUC and H over time as .svg, .png or .pdf.",
            show_default=False,
        ),
    ] = None,
    processes: Annotated[
        int,
        typer.Option(
            "--processes", "-j", metavar="N", min=1, max=64, help="So many processes do the work."
        ),
    ] = 1,
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
    # The engine takes a second to load, which the other commands need not wait for.
    from worker.replay.backtest import Backtest, Options  # noqa: PLC0415
    from worker.replay.files import Fields  # noqa: PLC0415

    given = Options(
        sources=tuple(source or ()),
        out=out,
        start=start,
        stop=stop,
        cold=cold,
        topic=topic,
        partitions=tuple(partition or ()),
        only=tuple(only or ()),
        rejected=rejected,
        form=form.given,
        fields=Fields(key, key_field, time_field),
        sweeps=tuple(sweep or ()),
        alerts=tuple(alert or ()),
        change=change,
        compare=compare,
        compare_keys=compare_keys,
        pair_by=pair_by,
        report=report,
        plot=plot,
        moments=tuple(moment or ()),
        processes=processes,
        force=force,
    )
    # What is told must not stand between updates on standard output.
    results = options.stderr() if out == STDOUT else options.stdout()
    outcome = Backtest(settings, given).run(results, options.stderr())
    if not outcome.whole:
        raise typer.Exit(options.INTERRUPTED)
