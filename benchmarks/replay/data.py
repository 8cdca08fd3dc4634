"""The events of the benchmark: many keys, doubles for scores, one in ten positive."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(os.environ.get("ROCSTREAM_BENCH", "/tmp")) / "rocstream-replay"  # noqa: S108 - large
START = 1_764_460_000_000
CHUNK = 1_000_000


def columns(events: int, keys: int, seed: int = 1) -> dict[str, Any]:
    """Events as columns; the keys take turns at random."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(events) < 0.1).astype(np.int64)
    return {
        "key": rng.integers(0, keys, events),
        "score": rng.normal(size=events) + labels,
        "label": labels,
        "time": START + np.arange(events) * 10,
    }


def jsonl(events: int, keys: int) -> Path:
    """Write them as JSON lines, once."""
    line = '{{"key":"model-{}","score":{!r},"label":{},"time":{}}}\n'
    return _written(FOLDER / f"{events}-{keys}.jsonl", "", line, events, keys)


def csv(events: int, keys: int) -> Path:
    """Write them as CSV, once."""
    line = "model-{},{!r},{},{}\n"
    return _written(FOLDER / f"{events}-{keys}.csv", "key,score,label,time\n", line, events, keys)


def _written(path: Path, head: str, line: str, events: int, keys: int) -> Path:
    """Write a file of text, once: a line of key, score, label and time for each event."""
    if path.exists():
        return path
    FOLDER.mkdir(parents=True, exist_ok=True)
    made = columns(events, keys)
    rows = zip(*(made[name].tolist() for name in ("key", "score", "label", "time")), strict=True)
    partial = path.with_suffix(".partial")
    with partial.open("w") as file:
        file.write(head)
        file.writelines(line.format(*row) for row in rows)
    partial.rename(path)
    return path


def parquet(events: int, keys: int) -> Path:
    """Write them as Parquet, once, a million rows at a time."""
    import pyarrow as pa  # noqa: PLC0415 - only where it is asked for
    import pyarrow.parquet as pq  # noqa: PLC0415

    path = FOLDER / f"{events}-{keys}.parquet"
    if path.exists():
        return path
    FOLDER.mkdir(parents=True, exist_ok=True)
    names = np.array([f"model-{key}" for key in range(keys)], object)
    partial = path.with_suffix(".partial")
    writer = None
    for number, first in enumerate(range(0, events, CHUNK)):
        made = columns(min(CHUNK, events - first), keys, seed=number + 1)
        made["time"] = made["time"] + first * 10
        table = pa.table({**made, "key": names[made["key"]]})
        writer = writer or pq.ParquetWriter(str(partial), table.schema, compression="snappy")
        writer.write_table(table)
    if writer is not None:
        writer.close()
    partial.rename(path)
    return path
