"""Records and monitors of tests about keys that leave, and all that is to be compared of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
from inmemory import Event, Log

from worker.bounded import BoundedWatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.pipeline import Pipeline

EPOCH = 1_764_460_000_000
TTL = 640  # ms, so that spans have 10 ms


def monitor(name: str, *bounds: str, size: int = 3, slide: int = 2) -> str:
    """A monitor that publishes the AUC, with bounds."""
    return "\n".join(
        [
            "[[monitor]]",
            f'name = "{name}"',
            f'window = {{ kind = "count", size = {size}, slide = {slide} }}',
            'metrics = ["auc"]',
            *bounds,
            "",
        ]
    )


TIMED = '[event]\ntime = "time"\n'
EXPIRING = monitor("expiring", f'key_ttl = "{TTL}ms"')
LIMITED = monitor("limited", "key_limit = 2")
BOTH = monitor("both", f'key_ttl = "{TTL}ms"', "key_limit = 3", slide=1)
FREE = monitor("free", size=100)


def event(key: str, time: int, score: float = 0.5, label: int = 1) -> tuple[str, dict[str, Any]]:
    return key, {"score": score, "label": label, "time": EPOCH + time}


def beat(time: int) -> tuple[None, dict[str, Any]]:
    return None, {"heartbeat": True, "time": EPOCH + time}


def logged(values: Sequence[tuple[str | None, Any]]) -> list[Event]:
    """Records in a row; their own timestamps lie behind every event's time."""
    return [
        Event(
            offset,
            EPOCH + 10**9,
            None if key is None else key.encode(),
            value if value is None or isinstance(value, bytes) else orjson.dumps(value),
        )
        for offset, (key, value) in enumerate(values)
    ]


def values(log: Log) -> list[bytes | None]:
    return [update.value for update in log.updates]


def content(pipeline: Pipeline) -> dict[Any, Any]:
    """All that a pipeline's further work depends on."""
    found: dict[Any, Any] = {}
    for watch in pipeline._watches:
        for key, kept in watch.windows.items():
            window = kept.window
            columns = window.columns(window.first, window.seen)
            found[watch.monitor.name, key] = (
                window.first,
                window.seen,
                *(None if column is None else column.tolist() for column in columns),
            )
        if isinstance(watch, BoundedWatch):
            if watch.recency is not None:
                found[watch.monitor.name, "by age"] = list(watch.recency._places.items())
            if watch.expiry is not None:
                found[watch.monitor.name, "due"] = watch.expiry._due
    return found


def notes(log: Log) -> list[tuple[str, str, str | None]]:
    return [(update["monitor"], update["key"], update["note"]) for update in log.read()]
