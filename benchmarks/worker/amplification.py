"""`python -m benchmarks.worker.amplification`: what the changelog takes per event, in memory.

Keys of one task take events in, so many of each key to a transaction; counted are the bytes of the
changelog's keys and values (cursor and tombstones among them) before compression, once the windows
are full, per event. The content of an event is what its column entries take in a page: score,
label and time, 9 to 10 bytes.
"""

from __future__ import annotations

import sys
from typing import Annotated, NamedTuple

import orjson
import typer

from benchmarks.worker import table
from benchmarks.worker.stages import TOPIC, settings_of
from benchmarks.worker.workload import Workload
from worker.pages import CURSOR_KEY, pack_cursor
from worker.pipeline import Pipeline


class Record(NamedTuple):
    """A record as the pipeline takes it."""

    offset: int
    timestamp: int  # ms
    key: bytes | None
    value: bytes | None


def main(
    *,
    keys: Annotated[int, typer.Option(min=1)] = 10,
    size: Annotated[int, typer.Option(help="Window, events of a key.", min=1)] = 1000,
    slide: Annotated[int, typer.Option(min=1)] = 100,
) -> None:
    """Print records and bytes of the changelog per event, by events per transaction and key."""
    rows = [["events per transaction and key", "records per event", "bytes per event"]]
    for each in (1, 10, 100, 1000):
        records, size_of = _written(keys, size, slide, each)
        rows.append([f"{each:,}", f"{records:.3f}", f"{size_of:,.1f}"])
    print(f"\n{keys} keys to a task, count window {size:,}\n")
    table.rows(sys.stdout, rows)


def _written(keys: int, size: int, slide: int, each: int) -> tuple[float, float]:
    """Return records and bytes of the changelog per event, windows being full."""
    filling = keys * (-(-size // each) * each)
    measured = keys * max(2000, 2 * each)
    workload = Workload(filling + measured, keys, size, slide)
    _, scores, labels = workload.columns
    pipeline = Pipeline(settings_of(size, slide), TOPIC, 0)
    pipeline.start_at(0)
    records = size_of = 0
    for start in range(0, filling + measured, keys * each):
        portion = [
            Record(
                offset,
                1_764_460_000_000 + offset // 20,
                workload.key(offset % keys).encode(),
                orjson.dumps({"score": scores[offset].item(), "label": labels[offset].item()}),
            )
            for offset in range(start, min(start + keys * each, filling + measured))
        ]
        for _ in pipeline.process(portion):
            pass
        outcome = pipeline.take()
        if start < filling:
            continue
        changed = (*outcome.pages.items(), (CURSOR_KEY, pack_cursor(outcome.cursor)))
        records += len(changed)
        size_of += sum(len(key) + len(value or b"") for key, value in changed)
    return records / measured, size_of / measured


if __name__ == "__main__":
    typer.run(main)
