"""Files of events for `send`, found and opened as `replay` has it: one record after the other.

A line or row becomes the key and the value of a record, or a reason why it cannot be one.
"""

from __future__ import annotations

from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from config import Own
from worker.cli import rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from config import EventSettings
    from worker.cli.rows import Bad
    from worker.replay.files import Member
    from worker.rows import Event, Keys


class Format(StrEnum):
    """How the sources are written; `auto` goes by their names."""

    AUTO = "auto"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"

    @property
    def given(self) -> str | None:
        """The format itself; None for `auto`."""
        return None if self is Format.AUTO else self.value


FormatOption = Annotated[
    Format, typer.Option("--format", help="How the sources are written; auto: by their names.")
]

KeyOption = Annotated[
    str | None,
    typer.Option("--key", metavar="TEXT", help="One key for all lines.", show_default=False),
]


class Source(NamedTuple):
    """An open file.

    Parameters
    ----------
    name
        For sentences.
    events
        Its lines or rows in order.
    position
        Returns the bytes of the file read so far; compressed ones where it is compressed.
    lines
        Whether it has lines; else rows.
    """

    name: str
    events: Iterator[Event | Bad]
    position: Callable[[], int]
    lines: bool = True

    def where(self, number: int) -> str:
        """Say where a line or a row stands."""
        return f"{self.name}:{number}" if self.lines else f"{self.name}, row {number}"


def members(names: Sequence[str], form: Format) -> list[Member]:
    """Return the files that sources name.

    Raises
    ------
    SettingsError
        For a source that is not there or whose format is not known: before anything is sent.
    """
    from worker.replay.files import found  # noqa: PLC0415 - the engine comes with it

    return found(names, form.given)


@contextmanager
def opened(member: Member, event: EventSettings, keys: Keys) -> Iterator[Source]:
    """Open a file; closed after the `with` block.

    Raises
    ------
    SettingsError
        For a CSV or Parquet without the columns that the settings name.
    RocstreamError
        When it is cut short, packed wrongly or cannot be read; what came before was read.
    """
    # The engine comes with them.
    from worker.replay import files, lines  # noqa: PLC0415

    if member.form == Format.PARQUET:
        yield _table(member, event, keys)
        return
    known = lines.Lines()
    with files.opened(member, known) as (file, position):
        if member.form == Format.CSV:
            events = rows.from_csv(file, member.shown, event, keys)
        else:
            events = rows.from_json(lines.runs(file, known), keys, known)
        yield Source(member.shown, events, position)


def _table(member: Member, event: EventSettings, keys: Keys) -> Source:
    from worker.replay.files import timestamp_of  # noqa: PLC0415 - see above
    from worker.replay.parquet import Table  # noqa: PLC0415

    asked = event
    if isinstance(event.key, Own) and not keys.fixed:
        asked = event.model_copy(update={"key": keys.field})
    table = Table(member.path, [asked], keys.fixed, timestamp_of(event))
    read = 0

    def counted() -> Iterator[Event | Bad]:
        nonlocal read
        for one in rows.from_rows(table, keys, event):
            read += 1
            yield one

    return Source(
        member.shown, counted(), lambda: member.size * read // max(table.rows, 1), lines=False
    )
