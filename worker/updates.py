"""The message of the updates topic: one reading of one window, as strict JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import orjson
from pydantic import ConfigDict, TypeAdapter, with_config
from typing_extensions import TypedDict

from config import METRICS
from worker.messages import Message

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from config import Monitor
    from engine import Readings

VERSION: Final = 1

CLOSED: Final = ConfigDict(extra="forbid")


@with_config(CLOSED)
class WindowInfo(TypedDict):
    """The window behind a reading; `start` and `end` in ms since the epoch."""

    kind: Literal["count"]
    size: int
    slide: int
    events: int
    full: bool
    start: int
    end: int


@with_config(CLOSED)
class SourceInfo(TypedDict):
    """The event that made the window slide; `index` counts within a columnar record."""

    topic: str
    partition: int
    offset: int
    index: int


@with_config(CLOSED)
class Update(TypedDict):
    """One reading; the monitor's metrics stand beside these fields under their names."""

    version: Literal[1]
    monitor: str
    key: str
    seq: int | None
    time: int
    window: WindowInfo
    positives: int | float
    negatives: int | float
    reason: Literal["one_class", "empty", "undefined"] | None
    note: Literal["gap", "expired", "key_limit"] | None
    source: SourceInfo


class Slide(NamedTuple):
    """Where a window slid: number of the slide, and time (ms), offset, index of its event."""

    seq: int
    time: int
    offset: int
    element: int


class Writer:
    """Writes the updates of one monitor on one partition of the input.

    Parameters
    ----------
    monitor
        The monitor's settings.
    topic, partition
        The input that the updates name as their source.
    """

    def __init__(self, monitor: Monitor, topic: str, partition: int) -> None:
        self._monitor = monitor
        self._topic = topic
        self._partition = partition
        # Names of the engine's readings behind each metric: one, or one by threshold.
        self._readings = {
            name: [f"{name}@{at}" for at in monitor.thresholds]
            if METRICS[name].at_thresholds
            else name
            for name in monitor.metrics
        }
        self.read = (
            *("events", "positives", "negatives", "start", "end"),
            *(
                reading
                for readings in self._readings.values()
                for reading in ([readings] if isinstance(readings, str) else readings)
            ),
        )
        self._severity: dict[str, float] = {}
        if "h" in monitor.metrics:
            self._severity = {"h_alpha": monitor.h.alpha, "h_beta": monitor.h.beta}

    def write(
        self, key: str, slides: Sequence[Slide], readings: Readings, *, gap: bool
    ) -> Iterator[Message]:
        """Yield one message per slide; O(metrics) each.

        Parameters
        ----------
        key
            The metric key.
        slides
            Where the window slid.
        readings
            The engine's arrays for `read`, an entry per slide.
        gap
            Whether the key's first window began behind a gap in the log.
        """
        window = self._monitor.window
        raw_key = key.encode()
        for slide, (events, positives, negatives, start, end, *values) in zip(
            slides, zip(*(column.tolist() for column in readings), strict=True), strict=True
        ):
            # NaN is the only float that differs from itself: JSON has none, null says undefined.
            found = [None if value != value else value for value in values]  # noqa: PLR0124
            reason = None
            if None in found:
                reason = "undefined" if positives and negatives else "one_class"
            update: dict[str, Any] = {
                "version": VERSION,
                "monitor": self._monitor.name,
                "key": key,
                "seq": slide.seq,
                "time": slide.time,
                "window": {
                    "kind": window.kind,
                    "size": window.size,
                    "slide": window.slide,
                    "events": events,
                    "full": events == window.size,
                    "start": start,
                    "end": end,
                },
                "positives": _count(positives),
                "negatives": _count(negatives),
                **self._metrics(found),
                **self._severity,
                "reason": reason,
                "note": "gap" if gap and slide.seq == 1 else None,
                "source": {
                    "topic": self._topic,
                    "partition": self._partition,
                    "offset": slide.offset,
                    "index": slide.element,
                },
            }
            yield Message(raw_key, orjson.dumps(update))

    def _metrics(self, values: list[float | None]) -> dict[str, Any]:
        """Name the readings; those of one metric at several thresholds become an object."""
        rest = iter(values)
        return {
            name: next(rest)
            if isinstance(readings, str)
            else {str(at): next(rest) for at in self._monitor.thresholds}
            for name, readings in self._readings.items()
        }


def _count(weight: float) -> float:
    """Return a whole weight as an int: whether a window once held others must not show."""
    return int(weight) if weight == int(weight) else weight


def schema() -> dict[str, Any]:
    """Return the JSON Schema of an update, with every metric that a monitor can ask for."""
    result = TypeAdapter(Update).json_schema()
    properties = result["properties"]
    for name, metric in METRICS.items():
        value: dict[str, Any] = {
            "anyOf": [
                {"type": "number", "minimum": metric.low, "maximum": metric.high},
                {"type": "null"},
            ]
        }
        if metric.at_thresholds:
            value = {"type": "object", "additionalProperties": value}
        properties[name] = {**value, "description": metric.description}
    for name in ("h_alpha", "h_beta"):
        properties[name] = {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": f"{name[2:]} of the Beta distribution of severities; beside h",
        }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **result}
