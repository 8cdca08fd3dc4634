"""`python -m benchmarks.worker.keys`: what a key that has fallen silent costs the worker in memory.

No broker: synthetic events of very many keys run through the pipeline, a handful for each, in
transactions as the worker has them. Figures are growth of this process's resident memory, so all
that a key makes is in them: its name, its window, its entries in tables, and the allocator's waste.
Linux only.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
import statistics
import sys
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchmarks.worker import table
from benchmarks.worker.stages import TOPIC, settings_of
from engine import CountWindow, Roc
from worker.app import GC_OBJECTS
from worker.events.record import Taken
from worker.pipeline import Pipeline
from worker.watch import Kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

START = 1_764_460_000_000  # ms
SIZE = 10_000
TRANSACTION = 40_000
FEW = 100
KEEP: list[object] = []


def main(
    *,
    keys: Annotated[int, typer.Option(min=1)] = 1_000_000,
    events: Annotated[int, typer.Option(help="Events of each key.", min=1)] = 5,
    key_ttl: Annotated[str, typer.Option(help="Of the monitor, such as 30d.")] = "",
    key_limit: Annotated[int, typer.Option(help="Of the monitor; 0: none.", min=0)] = 0,
) -> None:
    """Print bytes per key, in all and by part."""
    bounds: dict[str, str | int] = {}
    if key_ttl:
        bounds["key_ttl"] = key_ttl
    if key_limit:
        bounds["key_limit"] = key_limit
    # Each in a process of its own: memory that was given back would hide what is taken next.
    context = multiprocessing.get_context("spawn")
    rows = [["", f"bytes a key ({events} events each)"]]
    parts: list[tuple[str, Callable[[int, int], None]]] = [
        ("name and entry in a table", _names),
        ("what the changelog holds of it", _kept),
        ("window with events", _windows),
        ("a Roc, made at the first slide", _rocs),
    ]
    with context.Pool(1, maxtasksperchild=1) as pool:
        total, seconds, few = pool.apply(_pipeline, (keys, events, bounds))
        for name, part in parts:
            grown = pool.apply(_grown, (part, keys, events))
            rows.append([name, f"{grown / keys:,.0f}"])
    rows.append(["**worker, all in**", f"{total / keys:,.0f}"])
    print(
        f"\n{keys:,} keys, count window {SIZE:,}, slide 100, auc and h; {bounds or 'no bounds'}\n"
    )
    table.rows(sys.stdout, rows)
    print(f"\n{keys * events / seconds:,.0f} events/s through the pipeline; {total >> 20:,} MB")
    print(f"then a transaction with an event of each of {FEW} keys: {few * 1e3:.2f} ms of CPU")


def resident() -> int:
    """Return this process's resident memory in bytes."""
    pages_held = Path("/proc/self/statm").read_text("ascii").split()[1]
    return int(pages_held) * os.sysconf("SC_PAGE_SIZE")


def _pipeline(keys: int, events: int, bounds: dict[str, str | int]) -> tuple[int, float, float]:
    gc.set_threshold(GC_OBJECTS, 20, 50)  # as the worker has it
    pipeline = Pipeline(settings_of(SIZE, 100, **bounds), TOPIC, 0)
    pipeline.start_at(0)
    # Once through with few keys, so that what is there for good is there before.
    records = _records(keys, events)
    _play(pipeline, [next(records) for _ in range(1000)])
    before, began = resident(), time.perf_counter()
    run: list[Taken] = []
    for record in records:
        run.append(record)
        if len(run) == TRANSACTION:
            _play(pipeline, run)
            run = []
    _play(pipeline, run)
    seconds = time.perf_counter() - began
    gc.collect()
    total = resident() - before
    return total, seconds, statistics.median(_few(pipeline) for _ in range(5))


def _few(pipeline: Pipeline) -> float:
    """Return the CPU seconds of a transaction in which few of all the keys have an event."""
    offset = pipeline.cursor.offset
    records = [
        record._replace(offset=offset + number)
        for number, record in enumerate(islice(_records(FEW, 1), FEW))
    ]
    began = time.process_time()
    _play(pipeline, records)
    return time.process_time() - began


def _play(pipeline: Pipeline, records: list[Taken]) -> None:
    for _ in pipeline.process(records):
        pass
    pipeline.take()


def _records(keys: int, events: int) -> Iterator[Taken]:
    rng = random.Random(1)  # noqa: S311 - a seeded stream
    for number in range(keys * events):
        score, label = b"%.6f" % rng.random(), rng.random() < 0.2
        value = b'{"score": %b, "label": %d}' % (score, label)
        yield Taken(number, START + number // 100, b"model-%07d" % (number % keys), value)


def _grown(part: Callable[[int, int], None], keys: int, events: int) -> int:
    before = resident()
    part(keys, events)
    return resident() - before


def _names(keys: int, _events: int) -> None:
    KEEP.append({f"model-{number:07d}": None for number in range(keys)})


def _kept(keys: int, _events: int) -> None:
    window = CountWindow(SIZE)
    KEEP.append([Kept(window, 0, 0) for _ in range(keys)])


def _windows(keys: int, events: int) -> None:
    made = []
    scores, labels = [number / 7 for number in range(events)], [0] * events
    times = [START] * events
    for _ in range(keys):
        window = CountWindow(SIZE)
        window.extend(scores, labels, None, times)
        made.append(window)
    KEEP.append(made)


def _rocs(keys: int, _events: int) -> None:
    KEEP.append([Roc() for _ in range(keys)])


if __name__ == "__main__":
    typer.run(main)
