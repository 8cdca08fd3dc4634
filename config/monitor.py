"""The [[monitor]] sections: which windows are kept, and which metrics each publishes."""

from __future__ import annotations

import math
import re
from datetime import timedelta  # noqa: TC003 - pydantic reads the annotation
from typing import Annotated, Final, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from config.metrics import METRICS
from config.values import (
    DurationText,
    Section,
    choice,
    duration,
    listed,
    nearest,
    number,
    refuse,
    whole,
)

# A window of so many events takes some 4 GB: beyond it a mistyped size is likelier than a wish.
LARGEST_WINDOW: Final = 100_000_000
MOST_THRESHOLDS: Final = 20
MOST_KEYS: Final = 100_000_000
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_KINDS: Final = ("count",)


def _name(value: object) -> str:
    if not isinstance(value, str) or _NAME.fullmatch(value) is None:
        raise refuse(
            'a name has 1 to 64 letters, digits, ".", "_" or "-" and begins with a letter or digit'
        )
    return str(value)


def _metrics(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise refuse(f"it must be a list of metrics; there are {listed(METRICS)}")
    for position, name in enumerate(value):
        if not isinstance(name, str) or name not in METRICS:
            near = nearest(name, METRICS) if isinstance(name, str) else None
            guess = f'did you mean "{near}"? ' if near else ""
            raise refuse(f"there is no such metric: {guess}there are {listed(METRICS)}", position)
        if name in value[:position]:
            raise refuse("the metric is named twice: name it once", position)
    return tuple(value)


def _thresholds(value: object) -> tuple[int | float, ...]:
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= MOST_THRESHOLDS:
        raise refuse(f"it must be a list of 1 to {MOST_THRESHOLDS} scores, such as [0.5]")
    for position, threshold in enumerate(value):
        if type(threshold) not in {int, float} or not math.isfinite(threshold):
            raise refuse("it must be a number: give a score, such as 0.5", position)
        if threshold in value[:position]:
            raise refuse("the threshold is named twice: name it once", position)
    return tuple(value)


class Window(Section):
    """The last `size` events of a key; it publishes after every `slide`-th event of the key."""

    kind: Annotated[Literal["count"], choice(*_KINDS)]
    size: Annotated[int, whole(1, LARGEST_WINDOW)] = Field(examples=[10_000])
    slide: Annotated[int, whole(1, LARGEST_WINDOW)] = Field(examples=[100])

    @model_validator(mode="after")
    def _slides_within(self) -> Self:
        if self.slide > self.size:
            raise refuse(
                f"it is larger than the window's size {self.size}, so that events would be "
                "missed: slide by at most the size",
                "slide",
            )
        return self


class Severity(Section):
    """The Beta distribution of severities that the H-measure assumes; integers stay integers."""

    alpha: Annotated[int | float, number(0.001, 1_000)] = 2
    beta: Annotated[int | float, number(0.001, 1_000)] = 2


class Monitor(Section):
    """One window per key and the metrics published of it.

    Parameters
    ----------
    name
        Stands in every update; a new name is a new monitor.
    window
        What is kept.
    metrics
        Names from `config.METRICS`, in the order of the update.
    h
        Settings of the H-measure.
    thresholds
        Scores at which the metrics of decisions (accuracy, f1, ...) are read.
    key_ttl
        How far, in event time, the watermark may run ahead of a key's newest event before the key
        is dropped; None keeps silent keys for good.
    key_limit
        How many keys a task may hold; a new one beyond it drops the one that was silent longest.
    """

    name: Annotated[
        str,
        BeforeValidator(
            _name, json_schema_input_type=Annotated[str, Field(pattern=f"^{_NAME.pattern}$")]
        ),
    ] = Field(examples=["last-10k"])
    window: Window = Field(examples=[{"kind": "count", "size": 10_000, "slide": 100}])
    metrics: Annotated[
        tuple[str, ...],
        BeforeValidator(
            _metrics,
            json_schema_input_type=Annotated[
                list[Literal[tuple(METRICS)]],
                Field(min_length=1, json_schema_extra={"uniqueItems": True}),
            ],
        ),
    ] = ("auc", "h")
    h: Severity = Severity()
    thresholds: Annotated[
        tuple[int | float, ...],
        BeforeValidator(
            _thresholds,
            json_schema_input_type=Annotated[
                list[int | float],
                Field(min_length=1, max_length=MOST_THRESHOLDS),
            ],
        ),
    ] = (0.5,)
    key_ttl: Annotated[timedelta, duration("1ms", "36500d"), DurationText] | None = None
    key_limit: Annotated[int, whole(1, MOST_KEYS)] | None = None

    @property
    def bounded(self) -> bool:
        """Whether keys may leave, so that what a key reads hangs on what others do."""
        return self.key_ttl is not None or self.key_limit is not None
