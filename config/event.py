"""The [event] section: where a record holds score, label, time and key, and how to read them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import timedelta
from itertools import permutations
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, model_validator

from config.paths import FieldPath, KeyPath, OptionalPath, Own, TimePath, ValuePath, render
from config.values import DurationText, Flag, Section, Table, choice, duration, refuse

KEY_BYTES: Final = 1_024
"""Of a key, in UTF-8, at the most."""

_LABELS: Final = 10_000


def _labels(value: object) -> Mapping[str, int]:
    if not isinstance(value, Mapping):
        raise refuse("it must be a table of labels with their classes: { fraud = 1, ok = 0 }")
    for label, number in value.items():
        if isinstance(number, bool) or number not in (0, 1) or not isinstance(number, int):
            raise refuse("a class is 1 (positive) or 0 (negative)", str(label))
    if len(value) > _LABELS:
        raise refuse(f"it names {len(value):,} labels: at most {_LABELS:,} are taken")
    if value and set(value.values()) != {0, 1}:
        raise refuse("both classes need a label, such as { fraud = 1, ok = 0 }")
    return value


Labels = Annotated[
    Mapping[str, Literal[0, 1]],
    AfterValidator(Table),
    BeforeValidator(_labels, json_schema_input_type=dict[str, Literal[0, 1]]),
    PlainSerializer(dict, return_type=dict[str, int]),
]


class EventSettings(Section):
    """How a record becomes an event. Any change here is a change of what kept windows mean.

    Parameters
    ----------
    key, score, label, time, weight
        Paths in the record's JSON value as tuples of names, or what is the record's own.
    labels
        Labels, as text, with the class each means; empty: labels are 0 and 1 themselves.
    time_unit
        Unit of the field `time`; the record's own timestamp is always in ms.
    numbers_as_text
        Whether score, weight and time may be numbers written as JSON text.
    max_ahead
        How far past the record's own timestamp an event's time may lie.
    """

    key: KeyPath = Own.KEY
    score: ValuePath = ("score",)
    label: ValuePath = ("label",)
    time: TimePath = Own.TIMESTAMP
    weight: OptionalPath = None
    labels: Labels = Field(default_factory=Table)
    time_unit: Annotated[Literal["ms", "s", "us"], choice("ms", "s", "us")] = "ms"
    numbers_as_text: Flag = False
    max_ahead: Annotated[timedelta, duration("0s", "36500d"), DurationText] = timedelta(hours=1)

    @model_validator(mode="after")
    def _fields_stand_apart(self) -> Self:
        paths: dict[str, FieldPath | None] = {
            name: getattr(self, name) for name in ("key", "score", "label", "time", "weight")
        }
        fields = {name: path for name, path in paths.items() if isinstance(path, tuple)}
        for (name, path), (other, outer) in permutations(fields.items(), 2):
            if path[: len(outer)] != outer:
                continue
            # A default is not the mistake of the person who reads this.
            blamed, beside = (other, name) if other in self.model_fields_set else (name, other)
            its_path = f"event.{beside} is {json.dumps(render(fields[beside]))}"
            if path == outer:
                raise refuse(f"{its_path} as well: give each a field of its own", blamed)
            raise refuse(f"{its_path}, and a field cannot lie in another: mend one", blamed)
        return self

    def fingerprint(self) -> str:
        """Return a text that differs when a record would be read differently.

        It covers what differs from the defaults, so that a setting added later, whose default
        keeps the old meaning, leaves the fingerprints of running jobs alone.
        """
        defaults = EventSettings().model_dump(mode="json")
        own = self.model_dump(mode="json")
        changed = {name: value for name, value in own.items() if value != defaults[name]}
        canonical = json.dumps(changed, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()
