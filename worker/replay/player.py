"""The replay itself: one pass over a source, and every setting's updates out of it."""

from __future__ import annotations

import fnmatch
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from worker.events import first_of
from worker.replay.span import Span, Trimmer, first_at
from worker.replay.tape import Tape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from config import EventSettings, Settings
    from worker.events import Batch, Stop
    from worker.messages import Message
    from worker.replay.records import Log, Run, Source
    from worker.replay.span import Bound


class Step(NamedTuple):
    """What follows from a batch of records.

    Attributes
    ----------
    log
        Where the records stand.
    batch
        The batch.
    updates
        By setting; empty while windows are warmed up.
    published
        Whether the batch is of the stretch that was asked for.
    """

    log: Log
    batch: Batch
    updates: list[list[Message]]
    published: bool = True


@dataclass(slots=True)
class Tally:
    """What a replay has come by.

    Attributes
    ----------
    counts
        Of the published stretch, as `Batch.counts`.
    warmed
        Records read before it.
    last
        The log and the offset to go on at; None before the first record.
    """

    counts: Counter[str] = field(default_factory=Counter)
    warmed: int = 0
    last: tuple[Log, int] | None = None


class Chooser:
    """Leaves out the keys that are not asked for.

    Parameters
    ----------
    patterns
        As in a shell; None asks for all keys.
    """

    def __init__(self, patterns: Sequence[str] | None) -> None:
        self._patterns = patterns
        self._known: dict[str, bool] = {}

    @property
    def all(self) -> bool:
        """Whether all keys are asked for."""
        return self._patterns is None

    def wants(self, key: str) -> bool:
        """Tell whether a key is asked for."""
        if self._patterns is None:
            return True
        wanted = self._known.get(key)
        if wanted is None:
            wanted = any(fnmatch.fnmatchcase(key, pattern) for pattern in self._patterns)
            self._known[key] = wanted
        return wanted

    def choose(self, batch: Batch) -> None:
        """Take the events of other keys out of a batch."""
        if self._patterns is None:
            return
        for key in list(batch.keys):
            if not self.wants(key):
                batch.counts["events"] -= len(batch.keys.pop(key))


class Player:
    """Replays a source under one or several settings, in one pass.

    Parameters
    ----------
    settings
        The settings, which read the events alike.
    source
        What to replay.
    span
        What of it, for files; a topic knows by itself.
    keys
        Patterns as in a shell; only keys like one of them are kept. None keeps all.
    tapes
        By setting, what makes the tape that its windows run on; plain ones when empty.
    extra
        Further readings of the same records, given to `others`.
    stops
        Places, and what is called there, when all before them is in the windows.
    others
        Called with each run and whether it is published, before its steps.
    """

    def __init__(
        self,
        settings: Sequence[Settings],
        source: Source,
        span: Span | None = None,
        *,
        keys: Sequence[str] | None = None,
        tapes: Sequence[Callable[[Settings, Log], Tape]] = (),
        extra: Sequence[EventSettings] = (),
        others: Callable[[Log, Run, bool], None] | None = None,
        stops: Sequence[tuple[Bound, Callable[[], None]]] = (),
    ) -> None:
        self.settings = list(settings)
        self.source = source
        self.tally = Tally()
        self.tapes: list[Tape] = []
        self.trimmer = None
        if span is not None and span != Span():
            self.trimmer = Trimmer(span, several=source.several)
        self.chooser = Chooser(keys)
        self._makers = list(tapes) or [Tape] * len(self.settings)
        # Whether a key leaves hangs on what the others do.
        self._bounded = any(one.bounded for each in self.settings for one in each.monitors)
        self._readings = [self.settings[0].event, *extra]
        self._others = others
        self._stops = list(stops)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Have ready what the work takes, while the block runs; nothing, here."""
        yield

    def nothing(self) -> str | None:
        """Say what there is, should there be nothing in the span; None without a span."""
        return None if self.trimmer is None else self.trimmer.nothing()

    def __iter__(self) -> Iterator[Step]:
        """Yield step by step; work is done as it is asked for."""
        current: Log | None = None
        for log, whole in self.source.runs(self._readings):
            if log is not current:
                self._turn(log)
                current = log
            run, since = whole, log.since
            if self.trimmer is not None:
                run, since = self.trimmer.trim(whole)
            yield from self._play(log, run, since)
            if self.trimmer is not None and self.trimmer.ended:
                return

    def _turn(self, log: Log) -> None:
        if log.goes_on and self.tapes:
            for tape in self.tapes:
                tape.turn(log)
        else:
            self.tapes = [
                make(settings, log)
                for make, settings in zip(self._makers, self.settings, strict=True)
            ]

    def _play(self, log: Log, run: Run, since: int) -> Iterator[Step]:
        if run.first < since < run.last:
            yield from self._play(log, run.cut(run.first, since), since)
            run = run.cut(since, run.last)
        for stop in list(self._stops):
            at = self._found(run, stop[0])
            if run.first < at < run.last:
                yield from self._play(log, run.cut(run.first, at), since)
                run = run.cut(at, run.last)
            if at <= run.first:
                self._stops.remove(stop)
                stop[1]()
        published = run.last > since
        if self._others is not None:
            self._others(log, run, published)
        yield from self._steps(log, run, published=published)

    def _steps(self, log: Log, run: Run, *, published: bool) -> Iterator[Step]:
        stop = self._next_stop if self._bounded else None
        for batch in run.batches(0, self.tapes[0].cursor.watermark, stop):
            if not self._bounded:
                self.chooser.choose(batch)
            for tape in self.tapes:
                tape.published = published
            updates = [self._chosen(tape.play(batch)) for tape in self.tapes]
            if self._bounded:
                self.chooser.choose(batch)
            if not published:
                updates = [[] for _ in updates]
            self._tell(log, batch, published=published)
            yield Step(log, batch, updates, published)

    def _next_stop(self) -> Stop | None:
        """Return where keys may expire next under any of the settings."""
        return first_of(stop for tape in self.tapes if (stop := tape.stop()) is not None)

    def _chosen(self, updates: list[Message]) -> list[Message]:
        """Leave out the updates of keys that are not asked for, where all are played."""
        if not self._bounded or self.chooser.all:
            return updates
        return [one for one in updates if self.chooser.wants((one.key or b"").decode())]

    def _tell(self, log: Log, batch: Batch, *, published: bool) -> None:
        if published:
            self.tally.counts.update(batch.counts)
            self.tally.last = (log, batch.offset)
        else:
            self.tally.warmed += batch.counts["records"]

    @staticmethod
    def _found(run: Run, bound: Bound) -> int:
        """Return the offset of a stop; the end of the run when it lies behind."""
        if bound.kind == "offset":
            return bound.value
        at = first_at(list(run.batches(0)), bound.value)
        return run.last if at is None else at
