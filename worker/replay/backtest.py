"""A backtest as the command line asks for it: what to read, what to keep, and what to tell."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from config.errors import RocstreamError, SettingsError
from config.values import plural
from worker.replay import compare, outputs, plot, report, sweep
from worker.replay.alerts import Watchman, rule
from worker.replay.files import STDIN, Fields
from worker.replay.filesource import FileSource
from worker.replay.outputs import File
from worker.replay.player import Player
from worker.replay.series import BASE, INTERVAL, Recorder
from worker.replay.session import Session, all_rejected
from worker.replay.sinks import STDOUT, TOPIC, Rejected, sink
from worker.replay.span import Bound, bound, span
from worker.replay.story import Intake, Moment, Story
from worker.replay.sweep import Variant, variants
from worker.replay.thinning import HELD
from worker.replay.topic import TopicSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import IO

    from rich.console import Console

    from config import Settings
    from worker.replay.compare import Comparison
    from worker.replay.records import Source
    from worker.replay.session import Outcome
    from worker.replay.sinks import Sink
    from worker.replay.span import Span


_PAGES: Final = (".html", ".htm")


@dataclass(frozen=True, slots=True)
class Options:
    """What the command was given; see its help."""

    sources: tuple[str, ...] = ()
    out: str | None = None
    start: str | None = None
    stop: str | None = None
    cold: bool = False
    topic: str | None = None
    partitions: tuple[int, ...] = ()
    only: tuple[str, ...] = ()
    rejected: Path | None = None
    form: str | None = None
    fields: Fields = field(default_factory=Fields)
    sweeps: tuple[str, ...] = ()
    alerts: tuple[str, ...] = ()
    change: str | None = None
    compare: str | None = None
    compare_keys: tuple[str, str] | None = None
    pair_by: str | None = None
    report: Path | None = None
    plot: Path | None = None
    moments: tuple[str, ...] = ()
    processes: int = 1
    force: bool = False


class Backtest:
    """One replay from its options on.

    Parameters
    ----------
    settings, options
        What the command was given.
    now_ms
        What spans such as ``-24h`` are before.

    Raises
    ------
    SettingsError
        When options do not go together or mean nothing, or a source is not there.
    """

    def __init__(self, settings: Settings, options: Options, now_ms: int | None = None) -> None:
        now = int(time.time() * 1000) if now_ms is None else now_ms
        self.settings, self.options = settings, options
        self.variants = (
            variants(settings, options.sweeps) if options.sweeps else [Variant("", settings)]
        )
        self.change = None if options.change is None else _place(options.change, "--change", now)
        rules = [rule(text) for text in options.alerts]
        if options.change is not None and not rules and options.report is None:
            raise SettingsError(
                f"--change {options.change}: alerts count from it, and a report shows it: add one "
                'with --alert "auc < 0.8" or --report FILE.html'
            )
        self.recorders: list[Recorder] = []
        self.pictures = options.report is not None or options.plot is not None
        if options.plot is not None:
            plot.check(options.plot)
        if options.report is not None and options.report.suffix.lower() not in _PAGES:
            raise SettingsError(
                f"--report {options.report}: it is a page, so the suffix must be .html"
            )
        if options.moments and options.report is None:
            raise SettingsError("--moment asks for curves of a report: name it with --report FILE")
        self.moments = [
            Moment(f"At {text}", _place(text, "--moment", now)) for text in options.moments
        ]
        if options.sweeps or rules or self.pictures:
            self.recorders = [
                Recorder(
                    self._extra(number),
                    watchmen={
                        monitor.name: [Watchman(one) for one in rules]
                        for monitor in variant.settings.monitors
                    },
                    change=self.change,
                    held=max(HELD // len(self.variants), 1) if self.pictures else 0,
                )
                for number, variant in enumerate(self.variants)
            ]
        self.last = Moment("At the end", Bound("latest"))
        self.intake = Intake()
        self.comparison = self._comparison()
        stretch = span(options.start, options.stop, now, cold=options.cold)
        self.source = self._source(stretch)
        read = self.source.members if isinstance(self.source, FileSource) else []
        outputs.check(self._outputs(), [Path(one.path) for one in read if one.path != STDIN])
        self.player = self._sharded(stretch) or Player(
            [variant.settings for variant in self.variants],
            self.source,
            stretch if options.sources else None,
            keys=options.only or None,
            tapes=[recorder.tape for recorder in self.recorders],
            extra=() if self.comparison is None else self.comparison.extra,
            others=None if self.comparison is None else self.comparison.others,
            stops=[(moment.bound, partial(self._at, moment)) for moment in self.moments],
        )
        if self.comparison is not None:
            self.comparison.wants = self.player.chooser.wants
        for recorder in self.recorders:
            recorder.wants = self.player.chooser.wants
        self.rejected = Rejected(options.rejected)

    def run(self, results: Console, told: Console) -> Outcome:
        """Replay, and tell of it.

        Parameters
        ----------
        results
            Where tables and sums go.
        told
            Where notes and the bar go.

        Raises
        ------
        RocstreamError
            When the source failed, or held nothing but what was rejected.
        """
        intake = self.intake if self.pictures else None
        # Processes come before the threads of sinks and of the bar.
        with self.player.running():
            session = Session(
                self.player, self._sinks(), self.rejected, self.comparison, intake, console=told
            )
            outcome = session.run()
        unwritten = self._draw(session.sentence(timed=False), outcome)
        for table in self._tables(outcome):
            results.print(table)
        results.print(session.sentence() + outcome.where())
        for note in self._notes(outcome):
            told.print(f"note: {note}")
        if self.rejected.first:
            told.print(f"first rejected: {self.rejected.first}")
        if outcome.rejected:
            told.print(f"rejected records: {outcome.rejected}")
        if unwritten is not None:
            raise unwritten
        wrong = all_rejected(self.player.tally.counts, self.rejected.first)
        if wrong is not None and outcome.whole:
            raise wrong
        return outcome

    def story(self, sentence: str, outcome: Outcome) -> Story:
        """Return what a report tells."""
        moments = self.moments
        if self.options.report is not None:
            if self.player.tapes:
                self.last.take(self.player.tapes[0])
            moments = [*moments, self.last]
        return Story(
            title=f"Backtest of {self.source.name}",
            sentence=sentence,
            settings=self.settings,
            variants=self.variants,
            recorders=self.recorders,
            counts=self.player.tally.counts,
            intake=self.intake,
            moments=moments,
            comparison=self.comparison,
            change=self.change,
            notes=self._notes(outcome),
            partial=outcome.why,
        )

    def _draw(self, sentence: str, outcome: Outcome) -> RocstreamError | None:
        """Draw the pictures; return what went wrong, for tables are of use without them."""
        if not self.pictures or self._untold(outcome):
            return None
        story = self.story(sentence, outcome)
        drawings: list[tuple[str, Path | None, Callable[[Story, IO[bytes], str], None]]] = [
            ("--report", self.options.report, report.save),
            ("--plot", self.options.plot, plot.save),
        ]
        for option, path, save in drawings:
            if path is None:
                continue
            try:
                file = File(path, option)
            except SettingsError as error:
                return error
            try:
                save(story, file.stream, path.suffix.lower())
                outcome.pictures.append(file.close(whole=True))
            except OSError as error:
                file.drop()
                return RocstreamError(f"{path} cannot be written: {error.strerror}: make room")
        return None

    def _outputs(self) -> Iterator[tuple[str, Path]]:
        """Yield the files that are written, with their options."""
        options = self.options
        if options.out is not None and options.out != STDOUT and not options.out.startswith(TOPIC):
            for one in self.variants:
                out = sweep.path_of(options.out, one) if options.sweeps else options.out
                yield "-o", Path(out)
        for option, path in (
            ("--rejected", options.rejected),
            ("--report", options.report),
            ("--plot", options.plot),
        ):
            if path is not None:
                yield option, path

    def _at(self, moment: Moment) -> None:
        moment.take(self.player.tapes[0])

    def _extra(self, number: int) -> tuple[str, ...]:
        """Return what pictures need read; intervals are dear, and only the first has them."""
        if not self.pictures:
            return ()
        return BASE if number else (*BASE, *INTERVAL)

    def _notes(self, outcome: Outcome) -> list[str]:
        notes = [*self.source.notes]
        if self._untold(outcome):
            notes.append(
                "there are no tables and pictures of what was done: with --processes they are made "
                "at the end"
            )
        elif self.comparison is not None:
            notes += self.comparison.notes()
        warmed = self.player.tally.warmed
        if self.options.sources and warmed and self.player.tally.counts["records"]:
            notes.append(
                f"windows were warmed up with the {plural(warmed, 'record')} before --from"
            )
        nothing = self.player.nothing()
        if nothing and outcome.whole and not self.player.tally.counts["records"]:
            notes.append(nothing)
        counts, only = self.player.tally.counts, self.options.only
        if only and outcome.whole and counts["records"] and not counts["events"]:
            notes.append(f"no event that counts has a key like --only {' '.join(only)}")
        return notes

    def _tables(self, outcome: Outcome) -> list[Any]:
        if self.options.out == STDOUT and not self.options.sweeps:
            return []
        if self._untold(outcome):
            return []
        if self.comparison is not None:
            return [self.comparison.table()]
        if self.recorders:
            alerts = sweep.alerts(self.variants, self.recorders, change=self.change is not None)
            return [sweep.table(self.variants, self.recorders), *alerts]
        return [readings.table(self.settings) for readings in outcome.readings if readings]

    def _untold(self, outcome: Outcome) -> bool:
        """Tell whether what was recorded is with processes that have ended."""
        recorded = bool(self.recorders) or self.comparison is not None
        return recorded and not outcome.whole and self.options.processes > 1

    def _comparison(self) -> Comparison | None:
        options = self.options
        if options.compare is None and options.compare_keys is None:
            if options.pair_by is not None:
                raise SettingsError("--pair-by goes with --compare-keys: name two keys")
            return None
        if options.compare is not None and options.compare_keys is not None:
            raise SettingsError("--compare and --compare-keys exclude each other: give one")
        if options.sweeps:
            raise SettingsError("--compare and --sweep exclude each other: compare per setting")
        if options.compare is not None and options.pair_by is not None:
            raise SettingsError("--pair-by goes with --compare-keys: two scores need no pairing")
        return compare.Comparison(
            self.settings,
            score=options.compare,
            keys=options.compare_keys,
            pair_by=options.pair_by,
        )

    def _sharded(self, stretch: Span) -> Player | None:
        options = self.options
        if options.processes == 1:
            return None
        members = self.source.members if isinstance(self.source, FileSource) else []
        # What goes through a pipe can be read once.
        piped = [one for one in members if one.path == STDIN or not Path(one.path).is_file()]
        if piped:
            self.source.notes.append(
                f"{piped[0].shown} was read by one process: --processes is for files and topics"
            )
            return None
        # Processes take a while to import, which one alone need not.
        from worker.replay.owner import Plan  # noqa: PLC0415
        from worker.replay.shards import ShardedPlayer  # noqa: PLC0415

        plan = Plan(
            [variant.settings for variant in self.variants],
            self.source,
            stretch if options.sources else None,
            options.only or None,
            self.recorders,
            self.comparison,
            [*self.moments, self.last] if options.report is not None else [],
            self._by_partition(),
        )
        return ShardedPlayer(plan, options.processes)

    def _by_partition(self) -> bool:
        """Tell whether processes share out partitions, for keys hang together within each."""
        options = self.options
        bounded = [m for one in self.variants for m in one.settings.monitors if m.bounded]
        if not bounded:
            return False
        told = (
            f'--processes: which keys of the monitor "{bounded[0].name}" leave (key_ttl, '
            "key_limit) hangs on all keys of a partition together, and"
        )
        if options.sources:
            raise SettingsError(f"{told} files are one: leave --processes out, or replay a topic")
        if options.report is not None or self.comparison is not None:
            raise SettingsError(
                f"{told} --report, --compare and --compare-keys go on from partition to partition: "
                "leave --processes out"
            )
        return True

    def _source(self, stretch: Span) -> Source:
        options = self.options
        if options.sources:
            if options.topic is not None or options.partitions:
                raise SettingsError(
                    "--topic and --partition are for topics: name no files beside them"
                )
            return FileSource(options.sources, options.form, options.fields)
        if options.fields != Fields() or options.form is not None:
            raise SettingsError(
                "--key, --key-field, --time-field and --format are for files: name some, or leave "
                "them out"
            )
        window = max(
            monitor.window.size for one in self.variants for monitor in one.settings.monitors
        )
        return TopicSource(
            self.settings,
            stretch,
            topic=options.topic,
            partitions=options.partitions or None,
            window=window,
        )

    def _sinks(self) -> list[Sink]:
        options = self.options
        if not options.sweeps:
            columns = None if self.comparison is None else compare.columns
            return [sink(options.out, self.settings, force=options.force, columns=columns)]
        if options.out is not None and (options.out == STDOUT or options.out.startswith(TOPIC)):
            raise SettingsError(
                f"-o {options.out}: a sweep writes a file per setting: name a file, such as "
                "-o updates.jsonl"
            )
        return [
            sink(None if options.out is None else sweep.path_of(options.out, one), one.settings)
            for one in self.variants
        ]


def _place(text: str, option: str, now: int) -> Bound:
    found = bound(text, option, now)
    if found.kind not in {"offset", "time"}:
        raise SettingsError(f"{option} {text}: name an offset or a time")
    return found
