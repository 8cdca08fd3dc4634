"""The same agent logic on Faust as it ships: its aiokafka transport, its table, at least once.

One exact window per key (engine.CountWindow). With `--durable` each event is also written to a
changelog-backed table as a row of a ring (key, slot), the least that lets the window be rebuilt
after a restart; without it nothing survives one.
"""

from __future__ import annotations

import argparse
import struct
from typing import TYPE_CHECKING, Any

import faust
import numpy as np
import orjson

import engine

if TYPE_CHECKING:
    from collections.abc import Iterator

ROW = struct.Struct("<QdB")  # ordinal of the event, score, label


class Windows:
    """The window of each key, rebuilt from the rows of the table when a key is first seen."""

    def __init__(self, size: int, slide: int, rows: Any) -> None:
        self._size = size
        self._slide = slide
        self._rows = rows
        self._windows: dict[str, engine.CountWindow] = {}

    def push(self, key: str, score: float, label: int) -> bytes | None:
        """Take one event; return the update if the window slid with it."""
        window = self._windows.get(key)
        if window is None:
            window = self._windows[key] = self._rebuild(key)
        if self._rows is not None:
            slot = window.seen % self._size
            self._rows[f"{key}/{slot}"] = ROW.pack(window.seen, score, label)
        window.push(score, label)
        if window.seen % self._slide:
            return None
        roc = window.roc
        return orjson.dumps(
            {
                "key": key,
                "seq": window.seen // self._slide,
                "events": len(window),
                "auc": roc.auc(),
                "h": roc.h_measure(),
            }
        )

    def _rebuild(self, key: str) -> engine.CountWindow:
        saved = sorted(self._saved(key))
        if not saved:
            return engine.CountWindow(self._size)
        ordinals, scores, labels = zip(*saved, strict=True)
        columns = engine.Columns(np.array(scores), np.array(labels, np.uint8), None, None)
        return engine.CountWindow.restore(self._size, ordinals[0], columns)

    def _saved(self, key: str) -> Iterator[tuple[int, float, int]]:
        if self._rows is None:
            return
        for slot in range(self._size):
            row = self._rows.get(f"{key}/{slot}")
            if row is None:
                return
            yield ROW.unpack(row)


def build(options: argparse.Namespace) -> faust.App:
    """Build the app, with Faust's defaults wherever the comparison allows them."""
    app = faust.App(
        options.group,
        broker=f"kafka://{options.bootstrap_servers}",
        store="memory://",
        topic_partitions=options.partitions,
        table_standby_replicas=0,
        value_serializer="raw",
        key_serializer="raw",
        web_enabled=False,
        datadir=options.state,
        consumer_auto_offset_reset="earliest",
    )
    events = app.topic(options.events, key_serializer="raw", value_serializer="raw")
    updates = app.topic(options.updates, key_serializer="raw", value_serializer="raw")
    rows = (
        app.Table("ring", partitions=options.partitions, key_type=str, value_type=bytes)
        if options.durable
        else None
    )
    windows = Windows(options.size, options.slide, rows)

    @app.agent(events)
    async def watch(stream: Any) -> None:
        async for event in stream.events():
            value = orjson.loads(event.value)
            update = windows.push(event.key.decode(), value["score"], value["label"])
            if update is not None:
                await updates.send(key=event.key, value=update)

    return app


def main() -> None:
    """Run until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("bootstrap-servers", "group", "events", "updates", "state"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("partitions", "size", "slide"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--durable", action="store_true")
    app = build(parser.parse_args())
    faust.Worker(app, loglevel="WARN").execute_from_commandline()


if __name__ == "__main__":
    main()
