"""Which keys of a monitor leave: those long silent (`key_ttl`), and the oldest (`key_limit`)."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

SPANS: Final = 64
"""Times of expiry are rounded up to a grid of so many spans to a `key_ttl`."""


class Expiry:
    """When the keys of a monitor expire, by the times of their newest events.

    The time of expiry is that of the newest event plus `ttl`, rounded up to a multiple of
    `step`. Keys with one time of expiry stand together, so that finding those due takes as long
    as there are such times, at most some `SPANS`, however many keys there are.

    Parameters
    ----------
    ttl
        In ms, at least 1.
    """

    __slots__ = ("_due", "_lines", "_step", "_ttl")

    def __init__(self, ttl: int) -> None:
        self._ttl = ttl
        self._step = max(ttl // SPANS, 1)
        self._lines: dict[str, int] = {}
        self._due: dict[int, set[str]] = {}

    def touch(self, key: str, time: int) -> None:
        """Take note of the time of a key's newest event; O(1)."""
        line = -(-(time + self._ttl) // self._step)
        known = self._lines.get(key)
        if line == known:
            return
        if known is not None:
            self._leave(key, known)
        self._lines[key] = line
        keys = self._due.get(line)
        if keys is None:
            keys = self._due[line] = set()
        keys.add(key)

    def forget(self, key: str) -> None:
        """Let go of a key; O(1)."""
        known = self._lines.pop(key, None)
        if known is not None:
            self._leave(key, known)

    def clear(self) -> None:
        """Let go of all keys."""
        self._lines.clear()
        self._due.clear()

    def tick(self, watermark: int) -> int:
        """Return the next time at which keys may expire, after a watermark; both in ms."""
        return (watermark // self._step + 1) * self._step

    def due(self, watermark: int) -> list[str]:
        """Return the keys whose time of expiry a watermark has reached, in UTF-8 byte order."""
        line = watermark // self._step
        keys = [key for number, keys in self._due.items() if number <= line for key in keys]
        # Code points stand in the order of their UTF-8 bytes.
        keys.sort()
        return keys

    def _leave(self, key: str, line: int) -> None:
        keys = self._due[line]
        keys.discard(key)
        if not keys:
            del self._due[line]


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
