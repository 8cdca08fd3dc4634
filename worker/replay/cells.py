"""CSV as records: each row the JSON that `send` would make of it, or why it cannot be."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import IO, TYPE_CHECKING, Final

from worker.events import Batch, Rejection
from worker.replay.records import Record, RecordRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from config import EventSettings
    from worker.events import Parser
    from worker.replay.records import Run

RUN_RECORDS: Final = 8_192
BAD_ROW: Final = "bad_row"


@dataclass(frozen=True, slots=True)
class RowRun:
    """Rows of a CSV: those that are records, by reading, and the refused ones of the first."""

    good: tuple[RecordRun, ...]
    bad: Sequence[Rejection]
    first: int
    last: int

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.good[0]) + len(self.bad)

    def cut(self, start: int, stop: int) -> Run:
        """Return the rows with offsets in [start, stop)."""
        return RowRun(
            tuple(good.cut(start, stop) for good in self.good),
            [one for one in self.bad if start <= one.offset < stop],
            max(self.first, start),
            min(self.last, stop),
        )

    def batches(
        self, reading: int, watermark: int = -1, tick: Callable[[], int | None] | None = None
    ) -> Iterator[Batch]:
        """Take the rows apart; the refused ones come before the others."""
        if self.bad and not reading:
            batch = Batch(rejections=list(self.bad), offset=self.first)
            batch.counts["rejected"] = batch.counts["records"] = len(self.bad)
            batch.counts[f"rejected.{BAD_ROW}"] = len(self.bad)
            yield batch
        yield from self.good[reading].batches(reading, watermark, tick)


def runs(
    files: Sequence[IO[bytes]],
    name: str,
    events: Sequence[EventSettings],
    fixed: bytes | None,
    timestamp: int,
    parsers: Sequence[Parser],
) -> Iterator[Run]:
    """Yield the rows below the header in runs.

    Parameters
    ----------
    files, name
        The file, opened for reading once per way to read it; the name is for sentences.
    events, parsers
        The ways to read it.
    fixed, timestamp
        The key of all rows, if they have one, and the timestamp that each record gets.

    Raises
    ------
    SettingsError
        When a column that the settings name is missing.
    """
    # The commands import this package, and the rows are theirs.
    from worker.cli import rows  # noqa: PLC0415
    from worker.cli.rows import Bad, Keys  # noqa: PLC0415

    streams = [
        rows.from_csv(
            file,
            name,
            event,
            Keys(None, event.key) if isinstance(event.key, tuple) else Keys(fixed, ()),
        )
        for file, event in zip(files, events, strict=True)
    ]
    offset = 0
    while (taken := [list(islice(stream, RUN_RECORDS)) for stream in streams])[0]:
        last = offset + len(taken[0])
        bad = [
            Rejection(None, None, at, BAD_ROW, f"{name}:{row.line}: {row.why}")
            for at, row in enumerate(taken[0], offset)
            if isinstance(row, Bad)
        ]
        good = tuple(
            RecordRun(
                [
                    Record(at, timestamp, fixed, row.value)
                    for at, row in enumerate(found, offset)
                    if not isinstance(row, Bad)
                ],
                last,
                parsers,
            )
            for found in taken
        )
        yield RowRun(good, bad, offset, last)
        offset = last
