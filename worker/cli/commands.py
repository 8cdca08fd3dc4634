"""The commands put together: how they begin, and how errors end them."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from config.errors import RocstreamError
from worker.cli import options, topics
from worker.cli.check import check
from worker.cli.demo import demo
from worker.cli.replay import replay
from worker.cli.reset import reset
from worker.cli.schema import schema
from worker.cli.send import send
from worker.cli.tail import tail
from worker.cli.worker import worker

if TYPE_CHECKING:
    from collections.abc import Sequence


# What the parser raises for a wrong option, a missing argument or an unknown command.
UsageError: Final[Any] = typer.BadParameter.__bases__[0]

_WRONG_USE: Final = 2


app = typer.Typer(
    name="rocstream",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def rocstream(
    *,
    debug: Annotated[
        bool, typer.Option("--debug", help="With an error, show the traceback too.")
    ] = False,
) -> None:
    """Watch classifiers on a stream: exact windowed AUC and H-measure per key, exactly once.

    Start with `rocstream demo`. With settings of your own: `topics create`, then `check`, then
    `worker`, and `tail` to see the readings.

    Exit codes: 0 done, 1 failed while running, 2 wrong use or settings, 3 a person must decide.
    """
    # `main` has read the option already, wherever it stood.
    del debug


app.command("demo")(demo)
app.command("worker")(worker)
app.command("check")(check)
app.add_typer(topics.app, name="topics")
app.command("send")(send)
app.command("tail")(tail)
app.command("reset")(reset)
app.command("replay")(replay)
app.command("schema")(schema)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code.

    Parameters
    ----------
    arguments
        What follows the program's name; None takes it from `sys.argv`.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    code = run([argument for argument in given if argument != "--debug"], debug=debug)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes once more at its end and would complain there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    # All there is goes with the process: nothing of it need be searched for cycles.
    gc.freeze()
    sys.exit(code)


def run(arguments: list[str], *, debug: bool = False) -> int:
    """Run one command; return its exit code, an error told on stderr."""
    try:
        code = app(arguments, prog_name="rocstream", standalone_mode=False)
    except typer.Abort:
        return options.INTERRUPTED
    except SystemExit as end:
        if _closed_pipe(end):
            return 0
        raise
    except Exception as error:  # noqa: BLE001 - it is told, and has an exit code
        if debug:
            traceback.print_exception(error)
        return _told(error, arguments)
    return code if isinstance(code, int) else 0


def _closed_pipe(end: SystemExit) -> bool:
    """Tell whether who read our output wants no more of it, which is no error.

    The parser, and what prints tables and help, both leave the program at a closed pipe.
    """
    cause = end.__context__
    while cause is not None and not isinstance(cause, BrokenPipeError):
        cause = cause.__context__
    return cause is not None


def _told(error: Exception, arguments: Sequence[str]) -> int:
    """Say an error in one sentence; return its exit code."""
    if isinstance(error, UsageError):
        return _wrong_use(error, arguments)
    if isinstance(error, RocstreamError):
        _say(str(error))
        return error.exit_code
    _say(f"{type(error).__name__}: {error} (a fault of rocstream; --debug shows where)")
    return 1


def _wrong_use(error: Any, arguments: Sequence[str]) -> int:
    if error.ctx is not None and type(error).__name__ == "NoArgsIsHelpError":
        return _WRONG_USE
    command = "rocstream" if error.ctx is None else error.ctx.command_path
    message = _refusal(error, arguments) or error.format_message()
    message = " ".join(message.split()).rstrip(".")
    _say(f"{message} (see `{command} --help`)")
    return _WRONG_USE


def _refusal(error: Any, arguments: Sequence[str]) -> str | None:
    """Return the sentence about a value that an option does not take; None for another mistake."""
    names = getattr(getattr(error, "param", None), "opts", ())
    if not isinstance(error, typer.BadParameter) or not names or not names[0].startswith("-"):
        return None
    why = error.message.removeprefix("Value error, ")
    why = why.replace("Input should be", "it must be").partition(", unable to parse")[0]
    return f"{names[0]} {_given(names, arguments)}: {why}"


def _given(names: Sequence[str], arguments: Sequence[str]) -> str:
    """Return the value of an option as it was given: `-j 0`, `-j0` or `--processes=0`."""
    for at, argument in enumerate(arguments):
        name, _, value = argument.partition("=")
        if name in names:
            return value or "".join(arguments[at + 1 : at + 2])
        if argument[:2] in names:
            return argument[2:]
    return ""


def _say(sentence: str) -> None:
    typer.echo(f"rocstream: {sentence}", err=True)
