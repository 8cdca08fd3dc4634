"""Parts of a batch: where its events stand, and events of a key from one on up to another."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from worker.events.batch import ListedEvents

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker.events import KeyedEvents

_INDEX_BITS: Final = 20
"""A value has at most a million bytes, so no event of a record has a larger index."""

PLACE_BYTES: Final = 11
"""Of a place as a number: offsets are below 2^63."""


class Moment(NamedTuple):
    """An event or a heartbeat: its time (ms), and its record and element there."""

    time: int
    offset: int
    element: int


class Turn(NamedTuple):
    """The end of a batch: its last event, or a heartbeat behind it, which has no key."""

    key: str | None
    moment: Moment


def place_of(events: KeyedEvents, at: int) -> int:
    """Return a number that orders events as the log does."""
    return int(events.offsets[at]) << _INDEX_BITS | int(events.indexes[at])


def moment_of(events: KeyedEvents, at: int) -> Moment:
    """Return when and where an event was."""
    return Moment(int(events.times[at]), int(events.offsets[at]), int(events.indexes[at]))


def before(events: KeyedEvents, place: int) -> int:
    """Return how many events of a key stand before a place; O(log n)."""
    return bisect_left(range(len(events)), place, key=lambda at: place_of(events, at))


def part(events: KeyedEvents, start: int, stop: int) -> KeyedEvents:
    """Return the events from one on up to another; O(stop - start)."""
    found = ListedEvents()
    found.scores = cast("list[float]", events.scores[start:stop])
    found.labels = cast("list[int]", events.labels[start:stop])
    found.times = cast("list[int]", events.times[start:stop])
    if events.weights is not None:
        found.weights = cast("list[float]", events.weights[start:stop])
    found.offsets = cast("list[int]", events.offsets[start:stop])
    found.indexes = cast("list[int]", events.indexes[start:stop])
    return found


def last_of(keys: Mapping[str, KeyedEvents]) -> Turn | None:
    """Return the last event of a batch; None without one. O(keys)."""
    if not keys:
        return None
    _, key = max((place_of(events, -1), key) for key, events in keys.items())
    return Turn(key, moment_of(keys[key], -1))


def apart(
    keys: Mapping[str, KeyedEvents], key: str | None
) -> tuple[dict[str, KeyedEvents], dict[str, KeyedEvents]]:
    """Return a batch's events without the last one of a key, and that one; O(keys)."""
    rest = dict(keys)
    if key is None:
        return rest, {}
    events = rest.pop(key)
    end = len(events)
    if end > 1:
        rest[key] = part(events, 0, end - 1)
    return rest, {key: part(events, end - 1, end)}
