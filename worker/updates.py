"""The message of the updates topic: one reading of one window, as strict JSON."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np
import orjson
from pydantic import ConfigDict, TypeAdapter, with_config
from typing_extensions import TypedDict

from config import METRICS
from worker import core
from worker.messages import Message, made

COMPILED: Final = core.COMPILED
if COMPILED:
    from worker import _updates

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from config import Monitor
    from engine import Readings

VERSION: Final = 1

CLOSED: Final = ConfigDict(extra="forbid")

_PLACE: Final = "\x00"
"""Stands in a text for what is filled in; no name holds it."""

_WHOLE: Final = 2.0**63
"""JSON's integers end here; a weight beyond stays a float."""


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


class Slides(NamedTuple):
    """Where a window slid: columns with an entry per slide, of the events that made it slide.

    Attributes
    ----------
    first
        Number of the first slide; the others follow. None when nobody has counted them.
    times
        In ms since the epoch.
    offsets, indexes
        The record of each event, and its element there.
    """

    first: int | None
    times: list[int]
    offsets: list[int]
    indexes: list[int]


class Writer:
    """Writes the updates of one monitor on one partition of the input.

    What the updates of a monitor have in common is one text with places to fill in; the numbers of
    all slides of a call become JSON together, and what is left for each update is to fill in.

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
        self._size = b"%d" % monitor.window.size
        # What stands between the places that are filled in.
        self._pieces = tuple(self._template().split(orjson.dumps(_PLACE)))

    def write(
        self,
        key: str,
        slides: Slides,
        readings: Readings,
        *,
        gap: bool = False,
        note: str | None = None,
    ) -> list[Message]:
        """Return one message per slide; O(metrics) each.

        Parameters
        ----------
        key
            The metric key.
        slides
            Where the window slid, once or more.
        readings
            The engine's arrays for `read`, an entry per slide.
        gap
            Whether the key's first window began behind a gap in the log; the first update says so.
        note
            What all of these updates say instead.
        """
        events, positives, negatives, start, end, *values = readings
        columns = (*slides[1:], events, start, end, _counts(positives), _counts(negatives), *values)
        # JSON has no NaN: the metrics that are not defined become null by themselves.
        text = orjson.dumps(columns, option=orjson.OPT_SERIALIZE_NUMPY)
        others = b"null" if note is None else orjson.dumps(note)
        begun = gap and slides.first == 1 and note is None
        filled = (_updates.fill if COMPILED else _fill)(
            self._pieces,
            text,
            len(slides.times),
            orjson.dumps(key),
            slides.first,
            self._size,
            (b'"gap"' if begun else others, others),
        )
        return list(map(made, zip(repeat(key.encode()), filled, repeat(()), strict=False)))

    def _template(self) -> bytes:
        """Return what the monitor's updates look like, with a place for each thing that differs."""
        window = self._monitor.window
        severity = {"h_alpha": self._monitor.h.alpha, "h_beta": self._monitor.h.beta}
        update = {
            "version": VERSION,
            "monitor": self._monitor.name,
            "key": _PLACE,
            "seq": _PLACE,
            "time": _PLACE,
            "window": {
                "kind": window.kind,
                "size": window.size,
                "slide": window.slide,
                "events": _PLACE,
                "full": _PLACE,
                "start": _PLACE,
                "end": _PLACE,
            },
            "positives": _PLACE,
            "negatives": _PLACE,
            **{
                name: _PLACE
                if isinstance(readings, str)
                else {str(at): _PLACE for at in self._monitor.thresholds}
                for name, readings in self._readings.items()
            },
            **(severity if "h" in self._monitor.metrics else {}),
            "reason": _PLACE,
            "note": _PLACE,
            "source": {
                "topic": self._topic,
                "partition": self._partition,
                "offset": _PLACE,
                "index": _PLACE,
            },
        }
        return orjson.dumps(update)


def _fill(
    pieces: Sequence[bytes],
    text: bytes,
    count: int,
    name: bytes,
    first: int | None,
    size: bytes,
    notes: tuple[bytes, bytes],
) -> Iterable[bytes]:
    """Fill the places of updates that follow each other, as `_updates.fill` does."""
    times, offsets, indexes, held, starts, ends, yes, no, *found = [
        column.split(b",") for column in text[2:-2].split(b"],[")
    ]
    rows = zip(
        repeat(name, count),
        _numbers(first, count),
        times,
        held,
        [b"true" if one == size else b"false" for one in held],
        starts,
        ends,
        yes,
        no,
        *found,
        _reasons(found, yes, no) if b"null" in text else repeat(b"null", count),
        [notes[0], *repeat(notes[1], count - 1)],
        offsets,
        indexes,
        strict=True,
    )
    form = b"%b".join(piece.replace(b"%", b"%%") for piece in pieces)
    return map(form.__mod__, rows)


def _numbers(first: int | None, count: int) -> Iterable[bytes]:
    if first is None:
        return repeat(b"null", count)
    return map(b"%d".__mod__, range(first, first + count))


def _counts(weights: NDArray[Any]) -> NDArray[Any] | list[float]:
    """Return whole weights as ints: whether a window once held others must not show."""
    if weights.dtype.kind == "i":
        return weights
    return [
        int(weight) if weight < _WHOLE and weight == int(weight) else weight
        for weight in weights.tolist()
    ]


def _reasons(
    found: Sequence[Sequence[bytes]], positives: Sequence[bytes], negatives: Sequence[bytes]
) -> list[bytes]:
    """Say of each slide why one of its metrics is null, if one is."""
    return [
        b"null" if b"null" not in row else b'"one_class"' if b"0" in classes else b'"undefined"'
        for row, classes in zip(
            zip(*found, strict=True), zip(positives, negatives, strict=True), strict=True
        )
    ]


def places(values: list[bytes]) -> NDArray[np.int64]:
    """Return offset and index of each update's source, a row each; O(updates).

    Raises
    ------
    ValueError
        For what is no update.
    """
    found = _updates.places(values) if COMPILED else _places(values)
    return np.frombuffer(found, np.int64).reshape(-1, 2)


def _places(values: Sequence[bytes]) -> bytes:
    numbers = []
    for value in values:
        _, offset, index = value.rsplit(b":", 2)
        numbers += [int(offset.removesuffix(b',"index"')), int(index.removesuffix(b"}}"))]
    return np.array(numbers, np.int64).tobytes()


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
