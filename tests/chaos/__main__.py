"""Faults, overload, a full disk, lost answers and a soak: `python tests/chaos --help`."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

HERE = Path(__file__).resolve().parent
# The modules here, the tests' helpers, and the project itself.
sys.path[:0] = [str(HERE), str(HERE.parent / "support"), str(HERE.parents[1])]

import disk as disk_run  # noqa: E402
import faults as fault_run  # noqa: E402
import overload as overload_run  # noqa: E402
import silence as silence_run  # noqa: E402
import soak as soak_run  # noqa: E402
import soak_report  # noqa: E402
from report import report  # noqa: E402

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
Report = Annotated[Path | None, typer.Option("--report", help="Write the report there.")]


@app.callback()
def main() -> None:
    """Prove delivery under faults, on an Apache Kafka of one's own."""
    # An end from outside is an end like any other: brokers and workers go with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


@app.command()
def faults(
    *,
    kills: Annotated[int, typer.Option(min=1, help="Workers killed with kill -9.")] = 50,
    minutes: Annotated[float, typer.Option(help="Over which faults are spread.")] = 6.0,
    seed: Annotated[int, typer.Option(help="Of stream and faults.")] = 1,
    rate: Annotated[float, typer.Option(help="Events a second.")] = 3_000,
    sabotage: Annotated[
        str, typer.Option(help="Break the workers on purpose: cursor, transactions.")
    ] = "",
    broker_faults: Annotated[bool, typer.Option(help="Hurt the broker too.")] = True,
    zombies: Annotated[bool, typer.Option(help="Freeze workers and wake them.")] = True,
    to: Report = None,
) -> None:
    """Kill, freeze, stop and start workers and broker at seeded moments, and check everything.

    Exit code 1 when anything was found.
    """
    result = fault_run.run(
        fault_run.Plan(kills, minutes, seed, rate, sabotage, broker_faults, zombies)
    )
    _end(report(result), to, good=result.good)


@app.command()
def overload(
    *,
    seconds: Annotated[float, typer.Option(help="Without a write.")] = 60,
    partitions: Annotated[int, typer.Option(help="Tasks of the one worker.")] = 8,
    seed: Annotated[int, typer.Option(help="Of the stream.")] = 1,
    to: Report = None,
) -> None:
    """Refuse all writes of a worker whose source is full; watch its memory, and check everything.

    Exit code 1 when anything was found.
    """
    result = overload_run.run(seconds, partitions, seed)
    _end(overload_run.report(result), to, good=result.good)


@app.command()
def disk(
    *,
    seconds: Annotated[float, typer.Option(help="Until there is room again.")] = 20,
    seed: Annotated[int, typer.Option(help="Of the stream.")] = 1,
    to: Report = None,
) -> None:
    """Let the broker's disk take no more under load, make room again, and check everything.

    Exit code 1 when anything was found.
    """
    result = disk_run.run(seconds, seed)
    _end(disk_run.report(result), to, good=result.good)


@app.command()
def silence(
    *,
    seconds: Annotated[float, typer.Option(help="Without an answer, each time.")] = 60,
    brief: Annotated[bool, typer.Option(help="Some of the faults, for seconds.")] = False,
    seed: Annotated[int, typer.Option(help="Of the stream.")] = 1,
    to: Report = None,
) -> None:
    """Lose answers to each kind of request, or cut connections in their place; check everything.

    Exit code 1 when anything was found, or a worker waited without a word.
    """
    done = (
        silence_run.run(silence_run.brief(), seed, patience=10)
        if brief
        else silence_run.run(silence_run.cases(seconds), seed)
    )
    _end(silence_run.report(done), to, good=done.good)


@app.command()
def soak(
    *,
    minutes: Annotated[float, typer.Option(help="How long.")] = 30,
    rate: Annotated[float, typer.Option(help="Events a second.")] = 585_000,
    table: Annotated[
        Path | None, typer.Option("--csv", help="Write a line every 10 s there.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--plot", help="Draw it there: .svg or .png.")
    ] = None,
    to: Report = None,
) -> None:
    """Work at a steady rate for long; sample memory, lag and CPU, and follow every update.

    Exit code 1 when an update was missing, repeated or out of order, events were left unread,
    memory rose, the worker ended, or the machine could not send at the rate.
    """
    result = soak_run.run(minutes, rate, table)
    if picture is not None:
        soak_report.plot(result.samples, picture)
    _end(soak_report.report(result), to, good=result.good)


def _end(text: str, to: Path | None, *, good: bool) -> None:
    if to is not None:
        to.write_text(text)
    print(text)
    if not good:
        raise typer.Exit(1)


if __name__ == "__main__":
    app()
