"""`python -m benchmarks.worker.stages`: what one event costs the worker, stage by stage.

No broker: responses as a broker sends them run through the worker's own pieces, each stage alone
on what the stage before it made, then through all of them. Figures are CPU time of this process,
the median of some repetitions, so that a busy machine disturbs them little. Waiting for the broker,
sending and committing are not in them: the benchmark beside this one has them,
`benchmarks/README.md` says how a profile of the live worker is taken.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from aiokafka.consumer import fetcher
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.structs import TopicPartition

import engine
from benchmarks.worker import table
from benchmarks.worker.workload import Workload
from config import load
from worker import pages
from worker.app import GC_OBJECTS, RUN_RECORDS
from worker.events import Parser
from worker.pipeline import BATCH_EVENTS, Pipeline
from worker.transport import fetch
from worker.updates import Slides, Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from config import Monitor, Settings
    from worker.events import Batch, KeyedEvents, Record

TOPIC = "scored-events"
BATCH_BYTES = 16_384  # of a producer's batches, as clients have it
RESPONSE_BYTES = 1 << 20  # of one partition in a fetch, as aiokafka has it


class Piece(NamedTuple):
    """A key's events of one batch, with the window that takes them."""

    key: str
    window: engine.CountWindow
    events: KeyedEvents


def main(
    *,
    events: Annotated[int, typer.Option(help="Events in all.", min=1)] = 500_000,
    keys: Annotated[int, typer.Option(min=1)] = 100,
    size: Annotated[int, typer.Option(help="Window, events of a key.", min=1)] = 10_000,
    slide: Annotated[int, typer.Option(help="An update after so many.", min=1)] = 100,
    transaction: Annotated[int, typer.Option(help="Events in one transaction.", min=1)] = 40_000,
    per_record: Annotated[int, typer.Option(help="Events of a columnar record.", min=1)] = 1,
    repeat: Annotated[int, typer.Option(help="Repetitions; medians are shown.", min=1)] = 3,
) -> None:
    """Print the CPU time of each stage per event."""
    workload = Workload(events, keys, size, slide, per_record=per_record)
    settings = settings_of(size, slide)
    fetch.install()
    responses = _responses(workload)
    stages = Stages(settings, responses, transaction, per_record)
    gc.set_threshold(GC_OBJECTS, 20, 50)  # as the worker has it
    gc.freeze()
    measured: dict[str, list[float]] = {}
    for _ in range(repeat):
        for name, stage in stages.each():
            measured.setdefault(name, []).append(_seconds(stage) / events * 1e9)
    medians = {name: statistics.median(found) for name, found in measured.items()}
    whole = medians[Stages.WHOLE]
    rest = 2 * whole - sum(medians.values())
    rows = [["stage", "ns an event", "share"]]
    parts = {**medians, "the rest of the pipeline": rest}
    del parts[Stages.WHOLE]
    rows += [[name, f"{ns:,.0f}", f"{ns / whole:.0%}"] for name, ns in parts.items()]
    rows.append([Stages.WHOLE, f"{whole:,.0f}", "100%"])
    print(
        f"\n{events:,} events, {keys} keys, count window {size:,}, slide {slide}, auc and h, "
        f"a transaction per {transaction:,} events; medians of {repeat}\n"
    )
    table.rows(sys.stdout, rows)


class Stages:
    """The worker's stages over the same records, each with its input made beforehand."""

    WHOLE = "from a fetched response to a transaction"

    def __init__(
        self, settings: Settings, responses: list[bytes], transaction: int, per_record: int
    ) -> None:
        self._settings = settings
        self._monitor: Monitor = settings.monitors[0]
        self._writer = Writer(self._monitor, TOPIC, 0)
        self._responses = responses
        self._transaction = transaction
        self._per_record = per_record

    def each(self) -> Iterator[tuple[str, Callable[[], float | None]]]:
        """Yield name and work of each stage; advance only after the work was done."""
        yield self.WHOLE, self._pipeline
        runs: list[Sequence[Record]] = []
        yield "responses to records", lambda: runs.extend(self._runs())
        batches: list[Batch] = []
        yield "parse, check, group", lambda: batches.extend(self._parsed(runs))
        pieces = self._pieces(batches)
        readings: list[engine.Readings] = []
        yield "engine: windows and readings", lambda: readings.extend(map(self._slide, pieces))
        slides = self._slides(pieces)
        yield "updates as JSON", lambda: self._write(pieces, slides, readings)
        yield "pages, packed", lambda: self._pack(pieces)

    def _runs(self) -> Iterator[Sequence[Record]]:
        offset = 0
        for response in self._responses:
            raw = fetcher.MemoryRecords(response)
            rest = ([], offset, None, None, True, fetcher.READ_COMMITTED)
            records = fetcher.PartitionRecords(TopicPartition(TOPIC, 0), raw, *rest)
            while run := records.take(RUN_RECORDS):
                yield run
            offset = records.next_fetch_offset

    def _parsed(self, runs: list[Sequence[Record]]) -> Iterator[Batch]:
        parser = Parser(self._settings.event)
        for run in runs:
            yield from parser.batches(run, 0, BATCH_EVENTS)

    def _pieces(self, batches: list[Batch]) -> list[Piece]:
        windows: dict[str, engine.CountWindow] = {}
        size = self._monitor.window.size
        found = []
        for batch in batches:
            for key, events in batch.keys.items():
                window = windows.get(key)
                if window is None:
                    window = windows[key] = engine.CountWindow(size)
                found.append(Piece(key, window, events))
        return found

    def _slide(self, piece: Piece) -> engine.Readings:
        events = piece.events
        return piece.window.slide(
            events.scores,
            events.labels,
            events.weights,
            events.times,
            every=self._monitor.window.slide,
            read=self._writer.read,
        )

    def _slides(self, pieces: list[Piece]) -> list[Slides]:
        every = self._monitor.window.slide
        seen: dict[str, int] = {}
        found = []
        for piece in pieces:
            before = seen.get(piece.key, 0)
            events = piece.events
            seen[piece.key] = before + len(events.scores)
            first = every - before % every - 1
            at = slice(first, None, every)
            found.append(
                Slides(
                    (before + first + 1) // every,
                    events.times[at],
                    events.offsets[at],
                    events.indexes[at],
                )
            )
        return found

    def _write(
        self, pieces: list[Piece], slides: list[Slides], readings: list[engine.Readings]
    ) -> None:
        for piece, found, read in zip(pieces, slides, readings, strict=True):
            if len(found.times):
                self._writer.write(piece.key, found, read)

    def _pack(self, pieces: list[Piece]) -> float:
        """Pack the pages of all transactions; return the CPU seconds of that alone."""
        size = self._monitor.window.size
        windows: dict[str, engine.CountWindow] = {}
        prefixes: dict[str, bytes] = {}
        written: dict[str, int] = {}
        changed: set[str] = set()
        gathered, seconds = 0, 0.0
        for number, piece in enumerate(pieces):
            key, events = piece.key, piece.events
            if key not in windows:
                windows[key] = engine.CountWindow(size)
                prefixes[key] = pages.key_prefix(self._monitor.name, key)
            windows[key].extend(events.scores, events.labels, events.weights, events.times)
            changed.add(key)
            gathered += len(events.scores)
            if gathered < self._transaction and number + 1 < len(pieces):
                continue
            begun = time.process_time()
            for one in changed:
                window = windows[one]
                pages.write({}, window, prefixes[one], since=written.get(one, 0))
                written[one] = window.seen
            seconds += time.process_time() - begun
            gathered = 0
            changed.clear()
        return seconds

    def _pipeline(self) -> None:
        pipeline = Pipeline(self._settings, TOPIC, 0)
        gathered = 0
        for run in self._runs():
            for _ in pipeline.process(run):
                pass
            gathered += len(run) * self._per_record
            if gathered >= self._transaction:
                pipeline.take()
                gathered = 0
        pipeline.take()


def _seconds(work: Callable[[], float | None]) -> float:
    """Return the CPU seconds that some work took, or says that it took."""
    gc.collect()
    begun = time.process_time()
    told = work()
    return time.process_time() - begun if told is None else told


def settings_of(size: int, slide: int, **bounds: str | int) -> Settings:
    """Return the settings of a job with one monitor; `bounds` are further settings of that."""
    window = {"kind": "count", "size": size, "slide": slide}
    monitor = {"name": "bench", "metrics": ["auc", "h"], "window": window, **bounds}
    environ = {
        "ROCSTREAM__KAFKA__BOOTSTRAP_SERVERS": "127.0.0.1:9092",
        "ROCSTREAM__KAFKA__GROUP": "bench",
        "ROCSTREAM__TOPICS__EVENTS": TOPIC,
        "ROCSTREAM__TOPICS__UPDATES": "updates",
        "ROCSTREAM__TOPICS__REJECTED": "rejected",
        "ROCSTREAM__MONITOR": json.dumps([monitor]),
    }
    return load(None, environ)


def _responses(workload: Workload) -> list[bytes]:
    """Return what a broker would send, in batches of records as a producer makes them."""
    begun = 1_764_460_000_000
    responses, response = [], b""
    builder, first = _builder(), 0
    for offset, (key, value) in enumerate(workload.messages()):
        row = (begun + offset // 400, key, value, [])
        if builder.append(offset - first, *row) is None:
            response += _batch(builder, first)
            builder, first = _builder(), offset
            builder.append(0, *row)
        if len(response) > RESPONSE_BYTES - BATCH_BYTES:
            responses.append(response)
            response = b""
    return [*responses, response + _batch(builder, first)]


def _builder() -> DefaultRecordBatchBuilder:
    return DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, BATCH_BYTES)


def _batch(builder: DefaultRecordBatchBuilder, offset: int) -> bytes:
    return offset.to_bytes(8, "big") + bytes(builder.build())[8:]


if __name__ == "__main__":
    typer.run(main)
