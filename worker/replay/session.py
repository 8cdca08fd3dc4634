"""One replay from its options to its end: the pass over the source, the sinks, what is told."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from config.errors import RocstreamError
from config.values import plural
from worker.replay.collector import resting
from worker.replay.summary import Readings, counted

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Sequence
    from types import FrameType

    from rich.console import Console
    from rich.progress import Task

    from worker.replay.compare import Comparison
    from worker.replay.player import Player, Step
    from worker.replay.sinks import Rejected, Sink
    from worker.replay.story import Intake

REPORT_SECONDS = 0.1

PLACES: Final = 4
"""Files that are named one by one."""


class Interrupts:
    """Ctrl-C between two writes instead of within one, so that files end in a whole line."""

    def __init__(self) -> None:
        self._writing = False
        self._pending = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listen to Ctrl-C, where this is the main thread."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGINT, self._on_signal)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold Ctrl-C back until the block has ended."""
        self._writing = True
        try:
            yield
        finally:
            self._writing = False
        if self._pending:
            raise KeyboardInterrupt

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if not self._writing:
            raise KeyboardInterrupt
        self._pending = True


class Outcome:
    """How a replay ended."""

    def __init__(self) -> None:
        self.readings: list[Readings] = []
        self.places: list[str] = []
        self.pictures: list[str] = []
        self.rejected = ""
        self.differences = 0
        self.whole = False
        self.seconds = 0.0
        self.why = ""

    def where(self) -> str:
        """Say where updates and pictures are."""
        places = list(dict.fromkeys(place for place in self.places if place))
        told = f" in {', '.join(places)}" if places else ""
        if len(places) > PLACES:
            told = f" in {len(places)} files, from {places[0]} to {places[-1]}"
        return told + (f"; see {' and '.join(self.pictures)}" if self.pictures else "")


class Session:
    """Runs a player to its end, whatever end it is.

    Parameters
    ----------
    player
        What to run.
    sinks
        One for each of the player's settings.
    rejected
        Takes the refused records.
    comparison
        What it says goes to the first sink in place of the updates.
    intake
        Counts the records of published steps, for a report.
    console
        Where a bar is drawn if it is a terminal; None draws none.
    """

    def __init__(
        self,
        player: Player,
        sinks: Sequence[Sink],
        rejected: Rejected,
        comparison: Comparison | None = None,
        intake: Intake | None = None,
        console: Console | None = None,
    ) -> None:
        self._player, self._sinks, self._rejected = player, sinks, rejected
        self._comparison, self._intake = comparison, intake
        self._console = console
        self.outcome = Outcome()
        self.outcome.readings = [Readings() for _ in sinks]

    def run(self) -> Outcome:
        """Run; Ctrl-C is an end like any other, told by `whole`.

        Raises
        ------
        RocstreamError
            When the source failed; what was done before it is kept, marked as partial.
        """
        with resting():
            return self._run()

    def _run(self) -> Outcome:
        outcome = self.outcome
        began = time.monotonic()
        interrupts = Interrupts()
        try:
            with interrupts.listening():
                self._steps(interrupts)
            outcome.whole = True
        except KeyboardInterrupt:
            outcome.why = "ended by Ctrl-C"
        except RocstreamError as error:
            self._close()
            kept = [place for place in outcome.places if place]
            if not kept or not self._player.tally.counts["records"]:
                raise
            raise type(error)(f"{error}; what came before it is in {', '.join(kept)}") from error
        outcome.seconds = time.monotonic() - began
        self._close()
        return outcome

    def _write(self, step: Step) -> None:
        try:
            self._take(step)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise _unwritten(error) from error

    def _steps(self, interrupts: Interrupts) -> None:
        bar = _Bar(self._player, self._console)
        with bar.shown():
            for step in self._player:
                with interrupts.held():
                    self._write(step)
                bar.move()
            self._compare()
            bar.move(last=True)

    def _compare(self) -> None:
        if self._comparison is not None:
            rows = self._comparison.taken()
            self.outcome.differences += len(rows)
            self._sinks[0].write(rows)

    def _take(self, step: Step) -> None:
        for sink, readings, updates in zip(
            self._sinks, self.outcome.readings, step.updates, strict=True
        ):
            if updates:
                readings.take(updates)
                if self._comparison is None:
                    sink.write(updates)
        self._compare()
        if self._intake is not None and step.published:
            self._intake.take(step)
        if step.published and step.batch.rejections:
            self._rejected.write(step.log, self._player.source, step.batch.rejections)

    def _close(self) -> None:
        whole = self.outcome.whole
        failure: OSError | None = None
        for close in [*(sink.close for sink in self._sinks), self._rejected.close]:
            try:
                self.outcome.places.append(close(whole=whole))
            except BrokenPipeError:
                raise
            except OSError as error:
                failure = error
                self.outcome.places.append("")
        self.outcome.rejected = self.outcome.places.pop()
        if failure is not None and whole:
            raise _unwritten(failure) from failure

    def sentence(self, *, timed: bool = True) -> str:
        """Say what was read, how fast if it is not to be the same for any run, what came of it."""
        tally, outcome = self._player.tally, self.outcome
        made = plural(sum(readings.updates for readings in outcome.readings), "update")
        if self._comparison is not None:
            made = plural(outcome.differences, "difference")
        rate = tally.counts["events"] / outcome.seconds if outcome.seconds else 0.0
        took = f" in {outcome.seconds:.1f} s ({rate:,.0f}/s)" if timed else ""
        told = f"{', '.join(counted(tally.counts))} from {self._player.source.name}{took}: {made}"
        if outcome.whole:
            return told
        where = ""
        if tally.last is not None:
            log, offset = tally.last
            where = f" before {self._player.source.where(log, offset)}"
        return f"PARTIAL, {outcome.why}{where}: {told}"


def all_rejected(counts: Counter[str], first: str) -> RocstreamError | None:
    """Return what is wrong where no record could be read, the first of them told by `first`."""
    if not counts["records"] or counts["records"] > counts["rejected"]:
        return None
    return RocstreamError(
        f"every record was rejected, the first: {first}: do the paths in [event] fit?"
    )


def _unwritten(error: OSError) -> RocstreamError:
    what = error.filename or "the updates"
    return RocstreamError(
        f"{what} cannot be written: {error.strerror or error}: make room, or name another file"
    )


class _Bar:
    """The bar that tells how far a replay is, drawn a few times a second."""

    def __init__(self, player: Player, console: Console | None) -> None:
        self._player = player
        self._progress: Progress | None = None
        self._drawn = 0.0
        if console is not None and console.is_terminal:
            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                _Rate(),
                TimeRemainingColumn(),
                console=console,
            )

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Draw it while the block runs."""
        shown: Any = nullcontext() if self._progress is None else self._progress
        with shown:
            if self._progress is not None:
                self._task = self._progress.add_task(
                    self._player.source.name, total=self._player.source.total, events=0
                )
            yield

    def move(self, *, last: bool = False) -> None:
        """Move it to where the player is."""
        if self._progress is None:
            return
        now = time.monotonic()
        if now - self._drawn < REPORT_SECONDS and not last:
            return
        self._drawn = now
        source = self._player.source
        self._progress.update(
            self._task,
            completed=source.position(),
            total=source.total,
            events=self._player.tally.counts["events"] + self._player.tally.warmed,
        )


class _Rate(ProgressColumn):
    """Events read so far and per second."""

    def render(self, task: Task) -> Text:
        """Return the column's text."""
        events = task.fields["events"]
        rate = events / task.elapsed if task.elapsed else 0.0
        return Text(f"{events:,} events  {rate:,.0f}/s")
