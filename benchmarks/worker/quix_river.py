"""River's RollingROCAUC per key on Quix Streams: AUC alone, at least once or exactly once.

Runs in an environment of its own (see README.md: Quix Streams asks for older versions of
libraries that rocstream shares with it), so it imports nothing of this project. With `--durable`
each event is also written to Quix's state as a row of a ring (slot), the least that lets the
window be rebuilt after a restart; without it nothing survives one.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from quixstreams import Application
from river.metrics import RollingROCAUC

if TYPE_CHECKING:
    from collections.abc import Callable


class Window:
    """The last `size` events of a key and how many it ever saw."""

    __slots__ = ("metric", "seen")

    def __init__(self, size: int) -> None:
        self.metric = RollingROCAUC(window_size=size)
        self.seen = 0

    @classmethod
    def rebuild(cls, size: int, state: Any) -> Window:
        """Read the rows of the key's ring back from Quix's state, oldest first."""
        window = cls(size)
        rows = []
        for slot in range(size):
            row = state.get(str(slot))
            if row is None:
                break
            rows.append(row)
        for ordinal, score, label in sorted(rows):
            window.metric.update(label, score)
            window.seen = ordinal + 1
        return window


def watcher(size: int, slide: int, *, durable: bool) -> Callable[..., dict[str, Any] | None]:
    """Return the callback for each event: the update when the window slid, else None."""
    windows: dict[str, Window] = {}

    def update(key: str, window: Window, value: dict[str, Any]) -> dict[str, Any] | None:
        window.metric.update(value["label"], value["score"])
        window.seen += 1
        if window.seen % slide:
            return None
        return {"key": key, "seq": window.seen // slide, "auc": window.metric.get()}

    def in_memory(value: Any, key: Any, _timestamp: Any, _headers: Any) -> dict[str, Any] | None:
        window = windows.get(key)
        if window is None:
            window = windows[key] = Window(size)
        return update(key, window, value)

    def saved(
        value: Any, key: Any, _timestamp: Any, _headers: Any, state: Any
    ) -> dict[str, Any] | None:
        window = windows.get(key)
        if window is None:
            window = windows[key] = Window.rebuild(size, state)
        state.set(str(window.seen % size), [window.seen, value["score"], value["label"]])
        return update(key, window, value)

    return saved if durable else in_memory


def main() -> None:
    """Run until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("bootstrap-servers", "group", "events", "updates", "state"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("partitions", "size", "slide"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--guarantee", choices=["at-least-once", "exactly-once"], required=True)
    parser.add_argument("--commit-interval", type=float, required=True, help="seconds")
    parser.add_argument("--durable", action="store_true")
    options = parser.parse_args()

    app = Application(
        broker_address=options.bootstrap_servers,
        consumer_group=options.group,
        auto_offset_reset="earliest",
        processing_guarantee=options.guarantee,
        commit_interval=options.commit_interval,
        state_dir=options.state,
        loglevel="WARNING",
    )
    events = app.topic(options.events, key_deserializer="str", value_deserializer="json")
    updates = app.topic(options.updates, key_serializer="str", value_serializer="json")
    watch = watcher(options.size, options.slide, durable=options.durable)
    stream = app.dataframe(events)
    stream = stream.apply(watch, metadata=True, stateful=options.durable)
    stream.filter(lambda value: value is not None).to_topic(updates)
    app.run()


if __name__ == "__main__":
    main()
