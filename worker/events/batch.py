"""What the parser gives out: events grouped by key, rejections, and how far it has come."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.events.reasons import Rejection


class KeyedEvents(Protocol):
    """The events of one key in offset order, as parallel columns.

    What a column gives out singly are Python's own numbers; numpy and the engine read a column
    that the compiled core made without a copy.
    """

    @property
    def scores(self) -> Sequence[float]:
        """Finite doubles."""

    @property
    def labels(self) -> Sequence[int]:
        """0 or 1."""

    @property
    def times(self) -> Sequence[int]:
        """Event times in ms since 1970."""

    @property
    def weights(self) -> Sequence[float] | None:
        """Positive and finite; None where every weight is 1."""

    @property
    def offsets(self) -> Sequence[int]:
        """The record of each event."""

    @property
    def indexes(self) -> Sequence[int]:
        """The element of the record, 0 for a plain one."""

    def __len__(self) -> int:
        """Return the number of events."""


class ListedEvents:
    """Columns that grow as lists."""

    __slots__ = ("indexes", "labels", "offsets", "scores", "times", "weights")

    def __init__(self) -> None:
        self.scores: list[float] = []
        self.labels: list[int] = []
        self.times: list[int] = []
        self.weights: list[float] | None = None
        self.offsets: list[int] = []
        self.indexes: list[int] = []

    def __len__(self) -> int:
        return len(self.scores)

    def weigh(self, weight: float) -> None:
        """Note the weight of the event whose score is appended next."""
        if self.weights is not None:
            self.weights.append(weight)
        elif weight != 1.0:
            self.weights = [1.0] * len(self.scores) + [weight]

    def extend(
        self,
        scores: Sequence[float],
        labels: Sequence[int],
        times: Sequence[int],
        weights: Sequence[float] | None,
        offset: int,
        indexes: Sequence[int],
    ) -> None:
        """Append events of one record; `weights` None stands for ones."""
        if weights is not None and weights.count(1.0) == len(weights):
            weights = None
        if weights is not None and self.weights is None:
            self.weights = [1.0] * len(self.scores)
        if self.weights is not None:
            self.weights.extend([1.0] * len(scores) if weights is None else weights)
        self.scores.extend(scores)
        self.labels.extend(labels)
        self.times.extend(times)
        self.offsets.extend([offset] * len(scores))
        self.indexes.extend(indexes)


class Gathering:
    """The events of a batch on their way into groups by key; the plain twin of the compiled one."""

    __slots__ = ("keys",)

    def __init__(self) -> None:
        self.keys: dict[str, ListedEvents] = {}

    def of(self, name: str) -> ListedEvents:
        """Return the columns of a key, to be appended to."""
        events = self.keys.get(name)
        if events is None:
            events = self.keys[name] = ListedEvents()
        return events

    def add(
        self,
        name: str,
        scores: Sequence[float],
        labels: Sequence[int],
        times: Sequence[int],
        weights: Sequence[float] | None,
        offset: int,
        indexes: Sequence[int],
    ) -> None:
        """Add checked events of one record; `weights` None stands for ones."""
        self.of(name).extend(scores, labels, times, weights, offset, indexes)

    def groups(self) -> dict[str, KeyedEvents]:
        """Return the events of each key, keys in the order of their first event."""
        return dict(self.keys)


@dataclass(slots=True)
class Batch:
    """A stretch of records, taken apart.

    Attributes
    ----------
    keys
        The events per key, keys in the order of their first event.
    rejections
        Refused records in offset order. One of a columnar record is here when the record's
        last element was taken, so a record that several batches share has it once.
    offset, index
        Where to go on: the first record not wholly taken, and how many of its elements are.
    watermark
        The largest event time of counted events and heartbeats, in ms; -1 without any.
    counts
        ``events``, ``records`` (wholly taken), ``unlabelled``, ``zero_weight``, ``tombstones``,
        ``heartbeats``, ``rejected`` and ``rejected.<code>``. All but ``records`` count elements;
        a record refused whole is one. Names with nothing to count may be absent.
    """

    keys: dict[str, KeyedEvents] = field(default_factory=dict)
    rejections: list[Rejection] = field(default_factory=list)
    offset: int = -1
    index: int = 0
    watermark: int = -1
    counts: Counter[str] = field(default_factory=Counter)
