"""Events on their way from one process of a replay to the others: columns in memory they share."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np

from worker.events.batch import ListedEvents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from worker.events import KeyedEvents

EVENTS: Final = 1 << 17
"""Events that a share has at most."""

NAMES_BYTES: Final = 1 << 20
"""Bytes that the names of its keys take, and how many events each of them has."""

_COLUMNS: Final = (
    ("scores", np.float64),
    ("times", np.int64),
    ("offsets", np.int64),
    ("indexes", np.int64),
    ("weights", np.float64),
    ("labels", np.uint8),
)

SHARE_BYTES: Final = NAMES_BYTES + EVENTS * sum(np.dtype(kind).itemsize for _, kind in _COLUMNS)

_NAME_BYTES: Final = 32
"""What pickling a name and a number takes beside the name."""


class Part(NamedTuple):
    """Events of a key from one on up to another."""

    name: str
    events: KeyedEvents
    start: int
    stop: int


def parts(keys: Mapping[str, KeyedEvents]) -> Iterator[list[Part]]:
    """Yield grouped events in what is a share each."""
    found: list[Part] = []
    events, names = EVENTS, NAMES_BYTES - _NAME_BYTES
    for name, keyed in keys.items():
        size, start = len(keyed), 0
        while start < size:
            taken = _NAME_BYTES + len(name.encode())
            if not events or names < taken:
                yield found
                found, events, names = [], EVENTS, NAMES_BYTES - _NAME_BYTES
            stop = min(size, start + events)
            found.append(Part(name, keyed, start, stop))
            events, names, start = events - (stop - start), names - taken, stop
    if found:
        yield found


class Share:
    """A place for a share.

    Parameters
    ----------
    memory
        `SHARE_BYTES` of it.
    """

    def __init__(self, memory: memoryview) -> None:
        self._names = memory[:NAMES_BYTES]
        self._columns: dict[str, Any] = {}
        start = NAMES_BYTES
        for name, kind in _COLUMNS:
            self._columns[name] = np.frombuffer(memory, kind, EVENTS, start)
            start += self._columns[name].nbytes

    def fill(self, found: Sequence[Part]) -> None:
        """Put events in. O(events)."""
        heavy = any(part.events.weights is not None for part in found)
        packed = pickle.dumps(
            ([part.name for part in found], [part.stop - part.start for part in found], heavy),
            pickle.HIGHEST_PROTOCOL,
        )
        self._names[: len(packed)] = packed
        for column, target in self._columns.items():
            if column == "weights" and not heavy:
                continue
            at = 0
            for _, events, start, stop in found:
                given = getattr(events, column)
                size = stop - start
                target[at : at + size] = 1.0 if given is None else np.asarray(given)[start:stop]
                at += size

    def keys(self, wanted: Callable[[str], bool]) -> dict[str, KeyedEvents]:
        """Return the events of the keys that are wanted, where they lie. O(keys)."""
        names, sizes, heavy = pickle.loads(self._names)  # noqa: S301 - our own
        found: dict[str, KeyedEvents] = {}
        start = 0
        for name, size in zip(names, sizes, strict=True):
            part = slice(start, start + size)
            start += size
            if not wanted(name):
                continue
            events = ListedEvents()
            for column, values in self._columns.items():
                if column != "weights":
                    setattr(events, column, values[part])
            if heavy and not bool((self._columns["weights"][part] == 1.0).all()):
                events.weights = cast("list[float]", self._columns["weights"][part])
            found[name] = events
        return found
