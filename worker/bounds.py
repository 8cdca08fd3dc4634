"""Which keys of a monitor leave: those long silent (`key_ttl`), and the oldest (`key_limit`)."""

from __future__ import annotations

from collections import OrderedDict
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

from worker.events import Stop

if TYPE_CHECKING:
    from collections.abc import Iterable

SPANS: Final = 64
"""Keys that are late stay until the watermark reaches the next of so many parts of a `key_ttl`."""


class Expiry:
    """When the keys of a monitor expire, by the times of their newest events.

    A key is due at the time of its newest event plus `ttl`, and expires where the watermark reaches
    that time. One whose newest event came when it was due already expires where the watermark
    reaches the next line, a multiple of `ttl` / `SPANS`. So whether a key expires between two
    watermarks follows from these and from when it is due, and from nothing before.

    Keys stand in sets by the line at or before which they are due, so that an event seldom moves
    its key; only those due before the next line are kept in order.

    Parameters
    ----------
    ttl
        In ms, at least 1.
    """

    __slots__ = ("_due", "_lines", "_next", "_number", "_step", "_ttl")

    def __init__(self, ttl: int) -> None:
        self._ttl = ttl
        self._step = max(ttl // SPANS, 1)
        self._due: dict[str, int] = {}
        self._lines: dict[int, set[str]] = {}
        # A heap of the keys due at or before the line of a number, and of what they were due at
        # before.
        self._number = -1
        self._next: list[tuple[int, str]] = []

    def touch(self, key: str, time: int) -> None:
        """Take note of the time of a key's newest event; O(1) before the last line, else O(log)."""
        due, known = time + self._ttl, self._due.get(key)
        if due == known:
            return
        self._due[key] = due
        number = self._line(due)
        if known is None or self._line(known) != number:
            if known is not None:
                self._leave(key, known)
            keys = self._lines.get(number)
            if keys is None:
                keys = self._lines[number] = set()
            keys.add(key)
        if number == self._number:
            heappush(self._next, (due, key))

    def forget(self, key: str) -> None:
        """Let go of a key; O(1)."""
        known = self._due.pop(key, None)
        if known is not None:
            self._leave(key, known)

    def clear(self) -> None:
        """Let go of all keys."""
        self._due.clear()
        self._lines.clear()
        self._number, self._next = -1, []

    def stop(self, watermark: int) -> Stop:
        """Return where keys may expire next behind a watermark (ms), which never goes back."""
        number = watermark // self._step + 1
        self._look_at(number)
        while self._next and not self._stands(self._next[0], watermark):
            heappop(self._next)
        time = self._next[0][0] if self._next else number * self._step
        # An event from between these makes its key due before `time`, and not already.
        return Stop(time, watermark - self._ttl, time - self._ttl)

    def due(self, before: int, after: int) -> list[str]:
        """Return the keys that expire where the watermark moves (ms), in UTF-8 byte order.

        They stay in here until they are forgotten.
        """
        number = after // self._step + 1
        keys: set[str] = set()
        if before // self._step + 1 < number:
            keys.update(*(found for line, found in self._lines.items() if line < number))
        self._look_at(number)
        passed = []
        while self._next and self._next[0][0] <= after:
            passed.append(heappop(self._next))
        for entry in passed:
            if self._stands(entry, before):
                heappush(self._next, entry)
                keys.add(entry[1])
        # Code points stand in the order of their UTF-8 bytes.
        return sorted(keys)

    def _look_at(self, number: int) -> None:
        """Put the keys in order that are due at or before a line, and behind the one before."""
        if number != self._number:
            self._number = number
            self._next = [(self._due[key], key) for key in self._lines.get(number, ())]
            heapify(self._next)

    def _stands(self, entry: tuple[int, str], watermark: int) -> bool:
        """Tell whether an entry is of today, and due behind a watermark."""
        due, key = entry
        return due > watermark and self._due.get(key) == due

    def _line(self, due: int) -> int:
        return -(-due // self._step)

    def _leave(self, key: str, due: int) -> None:
        number = self._line(due)
        keys = self._lines[number]
        keys.discard(key)
        if not keys:
            del self._lines[number]


class Recency:
    """The keys of a monitor in the order of their newest events, and where those stand."""

    __slots__ = ("_places",)

    def __init__(self) -> None:
        # Unlike a dict's, its beginning is found in O(1) however many have left from there.
        self._places: OrderedDict[str, int] = OrderedDict()

    def oldest(self) -> str | None:
        """Return the key whose newest event stands first; None without keys. O(1)."""
        return next(iter(self._places), None)

    def __getitem__(self, key: str) -> int:
        return self._places[key]

    def restore(self, places: Iterable[tuple[int, str]]) -> None:
        """Put keys in by the places of their newest events; equals by name."""
        self._places = OrderedDict((key, where) for where, key in sorted(places))

    def touch(self, key: str, where: int) -> None:
        """Make a key the newest; O(1)."""
        self._places[key] = where
        self._places.move_to_end(key)

    def forget(self, key: str) -> None:
        """Let go of a key, which may be unknown; O(1)."""
        self._places.pop(key, None)

    def clear(self) -> None:
        """Let go of all keys."""
        self._places.clear()
