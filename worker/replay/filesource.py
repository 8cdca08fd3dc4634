"""Files as the source of a replay: one history, its windows going on from file to file."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from config import Own
from worker.events import Parser
from worker.replay import cells, files, lines
from worker.replay.files import STDIN, Fields, event_of, opened, timestamp_of
from worker.replay.lines import Lines
from worker.replay.parquet import Table
from worker.replay.records import LineRun, Log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from config import EventSettings
    from worker.replay.files import Member
    from worker.replay.records import Run

STANDARD_INPUT: Final = "standard-input"


class FileSource:
    """JSON lines, CSV and Parquet files, read one after the other.

    Parameters
    ----------
    names
        Files, directories, or "-" for standard input.
    form
        How all of them are written; None goes by their names.
    fields
        Where lines have what a record has outside its value.

    Raises
    ------
    SettingsError
        For a file that is not there, or whose format cannot be told.
    """

    def __init__(
        self, names: Sequence[str], form: str | None = None, fields: Fields | None = None
    ) -> None:
        self.members = files.found(names, form)
        self.name = f"{len(names)} sources"
        if len(names) == 1:
            self.name = "standard input" if names[0] == STDIN else names[0]
        self.notes: list[str] = []
        self._fields = fields or Fields()
        self._lines: dict[str, Lines] = {}
        self._done = 0
        self._position: Callable[[], int] = int

    @property
    def several(self) -> bool:
        """Whether there is more than one file."""
        return len(self.members) > 1

    @property
    def total(self) -> int | None:
        """Bytes of all files; None with standard input among them."""
        if any(member.path == STDIN for member in self.members):
            return None
        return sum(member.size for member in self.members)

    def load(self) -> None:
        """Import what reading takes."""
        if any(member.form == "parquet" for member in self.members):
            for module in ("pyarrow.parquet", "pyarrow.compute"):
                files.needed(module, "for Parquet")

    def position(self) -> int:
        """Return how many bytes are read."""
        return self._done + self._position()

    def runs(self, readings: Sequence[EventSettings]) -> Iterator[tuple[Log, Run]]:
        """Yield the files one after the other; each a log whose windows go on from the last."""
        self._done, self._position = 0, int
        first, fixed = event_of(readings[0], self._fields)
        events = [first, *(self._adapted(event) for event in readings[1:])]
        if timestamp_of(events[0]) == 0:
            self.notes.append(
                'the events have no times: event.time is "$timestamp", which files do not have; '
                "--time-field names a field to take them from"
            )
        for number, member in enumerate(self.members):
            log = Log(_topic(member), goes_on=number > 0)
            empty = True
            for run in self._read(member, events, fixed):
                empty = False
                yield log, run
            if empty:
                self.notes.append(f"{member.shown} is empty: 0 events")
            self._done += member.size
            self._position = int

    def where(self, log: Log, offset: int) -> str:
        """Say where a record stands: `file:line` for lines, `file, row n` for tables."""
        known = self._lines.get(log.topic)
        if known is None:
            return f"{log.topic}, row {offset + 1}"
        return f"{log.topic}:{known.number(offset)}"

    def _adapted(self, event: EventSettings) -> EventSettings:
        """Return how a further reading is done: what it has a path for stays as it is."""
        fields = self._fields
        if not isinstance(event.key, Own):
            fields = fields._replace(key=None, key_field=None)
        return event_of(event, fields)[0]

    def _read(
        self, member: Member, events: Sequence[EventSettings], fixed: bytes | None
    ) -> Iterator[Run]:
        timestamp = timestamp_of(events[0])
        if member.form == "parquet":
            yield from self._table(member, events, fixed, timestamp)
            return
        with ExitStack() as stack:
            known = self._lines[_topic(member)] = Lines()
            # Also where it breaks off: what was read before is still to be played then.
            stack.callback(setattr, self, "_position", int)
            file, self._position = stack.enter_context(opened(member, known))
            if member.form == "csv":
                piped = member.path == STDIN or not Path(member.path).is_file()
                # What is piped has no size, and is no more empty for that.
                if not member.size and not piped:
                    return
                yield from cells.runs(file, member.shown, events, fixed, timestamp, known)
                return
            parsers = [Parser(event) for event in events]
            for offset, text, count in lines.runs(file, known):
                yield LineRun(text, count, offset, parsers, fixed, timestamp)

    def _table(
        self,
        member: Member,
        events: Sequence[EventSettings],
        fixed: bytes | None,
        timestamp: int,
    ) -> Iterator[Run]:
        table = Table(member.path, events, fixed, timestamp)
        for column in table.narrow():
            self.notes.append(
                f"{member.path} has its scores as {column}: scores that differed as doubles may be "
                "equal there, which moves AUC towards the ties; write them with 64 bits"
            )
        read = 0
        self._position = lambda: member.size * read // max(table.rows, 1)
        for run in table.runs():
            read = run.last
            yield run


def _topic(member: Member) -> str:
    return STANDARD_INPUT if member.path == STDIN else Path(member.path).name
