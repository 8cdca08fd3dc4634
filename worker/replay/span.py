"""The stretch of a log to replay: what `--from` and `--to` say."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np

from config.errors import SettingsError
from config.values import parse_duration

if TYPE_CHECKING:
    from worker.events import Batch
    from worker.replay.records import Run

_OFFSET: Final = re.compile(r"[0-9]{1,18}")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}.*")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Bound(NamedTuple):
    """One end of the stretch: an offset, a time in ms, or an end of the log itself."""

    kind: Literal["earliest", "latest", "offset", "time"]
    value: int = 0


EARLIEST: Final = Bound("earliest")
LATEST: Final = Bound("latest")


class Span(NamedTuple):
    """Records from `start` on, up to but not with `stop`.

    With a time, `start` is the first record at or after it, and `stop` likewise.
    """

    start: Bound = EARLIEST
    stop: Bound = LATEST
    cold: bool = False
    """Whether windows begin empty at `start` instead of being warmed up before it."""


def bound(text: str, option: str, now_ms: int) -> Bound:
    """Return the bound that an option's text means.

    Parameters
    ----------
    text
        ``earliest``, ``latest``, an offset, an ISO time with its zone, or a span before now: -24h.
    option
        Its name, for the sentence.
    now_ms
        What spans are before.

    Raises
    ------
    SettingsError
        When it is none of these, or a time without a zone.

    Examples
    --------
    >>> bound("120", "--from", 0)
    Bound(kind='offset', value=120)
    >>> bound("2025-11-30T00:00Z", "--from", 0)
    Bound(kind='time', value=1764460800000)
    >>> bound("-1h", "--from", 1_764_464_400_000)
    Bound(kind='time', value=1764460800000)
    """
    word = text.strip()
    if word in {"earliest", "latest"}:
        return EARLIEST if word == "earliest" else LATEST
    if _OFFSET.fullmatch(word):
        return Bound("offset", int(word))
    if word.startswith("-"):
        try:
            back = parse_duration(word[1:])
        except ValueError as error:
            raise SettingsError(
                f"{option} {text}: {error}, with a minus before it: -24h"
            ) from error
        return Bound("time", max(now_ms - int(back.total_seconds() * 1000), 0))
    if _DATE.fullmatch(word):
        return Bound("time", iso_ms(word, option))
    raise SettingsError(
        f'{option} {text}: it must be "earliest", "latest", an offset, an ISO time such as '
        "2025-11-30T06:00:00Z, or a span before now such as -24h"
    )


def iso_ms(text: str, where: str) -> int:
    """Return an ISO time as ms since 1970.

    Raises
    ------
    SettingsError
        When it is none, or has no zone.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise SettingsError(
            f"{where} {text}: {error}: write an ISO time such as 2025-11-30T06:00:00Z"
        ) from error
    if time.tzinfo is None:
        raise SettingsError(
            f"{where} {text}: the time has no zone, and nobody can tell which was meant: add Z for "
            "UTC or an offset such as +01:00"
        )
    milliseconds = (time - _EPOCH).total_seconds() * 1000
    if milliseconds < 0:
        raise SettingsError(f"{where} {text}: it lies before 1970")
    return round(milliseconds)


def span(start: str | None, stop: str | None, now_ms: int, *, cold: bool) -> Span:
    """Return the stretch that the options mean.

    Raises
    ------
    SettingsError
        When a bound means nothing, or nothing can lie between them.
    """
    if cold and start is None:
        raise SettingsError("--cold says how windows begin at --from: name that too")
    first = EARLIEST if start is None else bound(start, "--from", now_ms)
    last = LATEST if stop is None else bound(stop, "--to", now_ms)
    if first.kind == last.kind and first.kind in {"offset", "time"} and last.value < first.value:
        raise SettingsError(
            f"--to {stop} lies before --from {start}: there is nothing between: swap them"
        )
    return Span(first, last, cold)


def first_at(batches: list[Batch], time: int) -> int | None:
    """Return the offset of the first event at or after `time` (ms); None without one. O(events)."""
    found: list[int] = []
    for batch in batches:
        if batch.watermark < time:
            continue
        for events in batch.keys.values():
            late = np.flatnonzero(np.asarray(events.times) >= time)[:1].tolist()
            found += [int(events.offsets[at]) for at in late]
    return min(found, default=None)


def _times(batches: list[Batch]) -> tuple[int, int] | None:
    """Return the least and the largest time of events; None without any."""
    times = [np.asarray(events.times) for batch in batches for events in batch.keys.values()]
    if not times:
        return None
    return int(min(one.min() for one in times)), int(max(one.max() for one in times))


class Trimmer:
    """Cuts the runs of files to a span; files are read from their beginning anyway.

    Parameters
    ----------
    span
        Offsets count within each file; times are those of the events.
    several
        Whether there is more than one file, so that an offset at which one ends is not the end.
    """

    def __init__(self, span: Span, *, several: bool) -> None:
        self._span, self._several = span, several
        self._begun = span.start.kind == "earliest"
        self.ended = False
        self._seen = 0
        self._range: tuple[int, int] | None = None

    def trim(self, run: Run) -> tuple[Run, int]:
        """Return what is left of a run, and the offset from which on updates are published."""
        start, stop = self._span.start, self._span.stop
        self._seen = max(self._seen, run.last)
        if stop.kind == "offset" and run.last >= stop.value:
            run = run.cut(run.first, stop.value)
            self.ended = not self._several
        elif stop.kind == "time" and (at := self._first(run, stop.value)) is not None:
            run = run.cut(run.first, at)
            self.ended = True
        elif stop.kind == "earliest":
            run = run.cut(run.first, run.first)
            self.ended = True
        since = self._since(run, start)
        if self._span.cold and since > run.first:
            run = run.cut(since, run.last)
        return run, since

    def _since(self, run: Run, start: Bound) -> int:
        if start.kind == "offset":
            return max(start.value, run.first)
        if start.kind == "latest":
            return run.last
        if not self._begun:
            at = self._first(run, start.value)
            self._begun = at is not None
            return run.last if at is None else at
        return run.first

    def _first(self, run: Run, time: int) -> int | None:
        batches = list(run.batches(0))
        # Of use only where nothing lies in the span, so only until something does.
        if not self._begun or self._span.start.kind == "earliest":
            known = [one for one in (self._range, _times(batches)) if one is not None]
            if known:
                self._range = min(one[0] for one in known), max(one[1] for one in known)
        return first_at(batches, time)

    def nothing(self) -> str:
        """Say what there is instead of records between the bounds."""
        told = "nothing lies between --from and --to: 0 events"
        if self._range is not None:
            low, high = (
                (_EPOCH + timedelta(milliseconds=time)).isoformat().replace("+00:00", "Z")
                for time in self._range
            )
            return f"{told}; what was read has times from {low} to {high}"
        if self._seen:
            return f"{told}; what was read has the offsets 0 to {self._seen - 1}"
        return told
