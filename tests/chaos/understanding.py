"""The source topic, taken apart by the rules of docs/messages.md and by nothing else."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reading import Seen


class Event(NamedTuple):
    """A score and its label; `index` is the place in a columnar record."""

    index: int
    score: float
    label: int


class Refused(NamedTuple):
    """Why a record, or elements of it, do not count."""

    code: str
    indexes: str = ""


@dataclass
class Keyed:
    """The events of one key, in order."""

    partition: int
    scores: list[float] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    places: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Source:
    """The source topic, taken apart."""

    keys: dict[str, Keyed] = field(default_factory=dict)
    refused: dict[tuple[int, int], tuple[Seen, Refused]] = field(default_factory=dict)
    records: int = 0
    events: int = 0

    def add(self, seen: Iterable[Seen]) -> None:
        """Take records in; those of a partition come in offset order."""
        for record in seen:
            self.records += 1
            events, refused = understand(record.key, record.value)
            if refused is not None:
                self.refused[record.partition, record.offset] = (record, refused)
            if not events:
                continue
            key = (record.key or b"").decode()
            kept = self.keys.setdefault(key, Keyed(record.partition))
            if kept.partition != record.partition:
                raise ValueError(f"the key {key} was produced into two partitions")
            self.events += len(events)
            for index, score, label in events:
                kept.scores.append(score)
                kept.labels.append(label)
                kept.times.append(record.time)
                kept.places.append((record.offset, index))


def understand(key: bytes | None, value: bytes | None) -> tuple[list[Event], Refused | None]:
    """Return a record's events, and what of it is refused."""
    try:
        # Neither a tombstone nor an unlabelled event is anything to count.
        document = json.loads(value) if value is not None else {}
    except ValueError:
        return [], Refused("not_json")
    if not isinstance(document, dict):
        return [], Refused("not_object")
    scores, labels = document.get("score"), document.get("label")
    if labels is None:
        return [], None
    whole = _fault_of_all(key, document, scores, labels)
    if whole:
        return [], Refused(whole)
    if isinstance(scores, list):
        return _columns(scores, labels)
    events, refused = _columns([scores], [labels])
    return events, None if refused is None else Refused(refused.code)


def _fault_of_all(key: bytes | None, document: dict[str, Any], scores: Any, labels: Any) -> str:
    columnar = isinstance(scores, list)
    if columnar != isinstance(labels, list) or (columnar and len(scores) != len(labels)):
        return "unequal_arrays"
    if not key:
        return "key_missing" if key is None else "key_empty"
    return "" if "score" in document else "score_missing"


def _columns(scores: list[Any], labels: list[Any]) -> tuple[list[Event], Refused | None]:
    events, faults = [], {}
    for index, (score, label) in enumerate(zip(scores, labels, strict=True)):
        if label is None:
            continue
        fault = _fault(score, label)
        if fault:
            faults[index] = fault
        else:
            events.append(Event(index, float(score), int(label)))
    if not faults:
        return events, None
    return events, Refused(next(iter(faults.values())), _ranges(list(faults)))


def _fault(score: Any, label: Any) -> str:
    if isinstance(score, bool) or not isinstance(score, int | float):
        return "score_not_number"
    if not math.isfinite(score):
        return "score_not_finite"
    return "" if label in (0, 1) else "label_unknown"


def _ranges(indexes: list[int]) -> str:
    spans: list[list[int]] = []
    for index in indexes:
        if spans and index == spans[-1][1] + 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    return ",".join(f"{low}" if low == high else f"{low}-{high}" for low, high in spans)
