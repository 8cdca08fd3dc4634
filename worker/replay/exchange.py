"""What the processes of a replay share: who reads which part of the source, and what was read."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any, Final

from worker.replay.share import SHARE_BYTES, Share

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.context import BaseContext

    from worker.replay.share import Part

SHARES: Final = 4
"""Shares of each process that the others have not all played yet, at the most."""

_GONE: Final = 1 << 62
"""More shares than there ever are."""


class Exchange:
    """Memory of all processes: each writes shares into its own places, and all read them.

    Every process reads what no other reads yet, and gives the others the events of their keys.
    A place is written anew when all others have played what was in it, so that no process gets far
    ahead. Nobody waits for ever: whoever has no place plays what is there (`Owner`), and of
    all shares that are not played by all, the oldest can be.

    Parameters
    ----------
    context
        How processes are started.
    count
        How many there are.

    Raises
    ------
    OSError
        When there is no memory to share.
    """

    def __init__(self, context: BaseContext, count: int) -> None:
        self.count = count
        self._news = context.Condition()
        self._claimed = context.RawArray("q", 1)
        self._written = context.RawArray("q", count)
        # How many of each one's shares each other has played.
        self._played = [context.RawArray("q", count) for _ in range(count)]
        # The run that each share is of, and whether it is the last of it.
        self._runs = [context.RawArray("q", SHARES) for _ in range(count)]
        self._ends = [context.RawArray("b", SHARES) for _ in range(count)]
        self._memory = [_memory(context, SHARES * SHARE_BYTES) for _ in range(count)]

    def claim(self, piece: int) -> bool:
        """Tell whether a piece of the source is one's own to read: the first who asks reads it.

        Everyone asks for one piece after the other.
        """
        with self._news:
            if piece < self._claimed[0]:
                return False
            self._claimed[0] = piece + 1
            return True

    def place(self, number: int) -> bool:
        """Tell whether a process has place for another share."""
        with self._news:
            return self._has_place(number)

    def give(self, number: int, run: int, found: Sequence[Part], *, last: bool) -> None:
        """Share out events, for which there is a place.

        Parameters
        ----------
        number
            Of the process.
        run
            Number of the run that they are of.
        found
            At most so many as one of `share.parts`.
        last
            Whether it is the last share of the run.
        """
        at = self._written[number] % SHARES
        self._share(number, at).fill(found)
        self._runs[number][at], self._ends[number][at] = run, last
        with self._news:
            self._written[number] += 1
            self._news.notify_all()

    def next(self, number: int, run: int) -> tuple[int, Share, bool] | None:
        """Return the next share of a run: from whom, the share, whether it is the last.

        None when it is not there yet.
        """
        with self._news:
            giver = self._giver(number, run)
        if giver is None:
            return None
        at = self._played[giver][number] % SHARES
        return giver, self._share(giver, at), bool(self._ends[giver][at])

    def done(self, number: int, giver: int) -> None:
        """Say that a process has played the share that was next."""
        with self._news:
            self._played[giver][number] += 1
            self._news.notify_all()

    def leave(self, number: int) -> None:
        """Say that a process will play nothing more."""
        with self._news:
            for played in self._played:
                played[number] = _GONE
            self._news.notify_all()

    def wait(self, number: int, run: int, *, place: bool) -> None:
        """Wait for the next share of a run or, if asked to, for a place for another one's own."""

        def come() -> bool:
            return (place and self._has_place(number)) or self._giver(number, run) is not None

        with self._news:
            self._news.wait_for(come)

    def _has_place(self, number: int) -> bool:
        played = (one for at, one in enumerate(self._played[number]) if at != number)
        return bool(self._written[number] - min(played, default=_GONE) < SHARES)

    def _giver(self, number: int, run: int) -> int | None:
        for giver in range(self.count):
            played = self._played[giver][number]
            if (
                giver != number
                and played < self._written[giver]
                and self._runs[giver][played % SHARES] == run
            ):
                return giver
        return None

    def _share(self, number: int, at: int) -> Share:
        whole = memoryview(self._memory[number]).cast("B")
        return Share(whole[at * SHARE_BYTES : (at + 1) * SHARE_BYTES])


def _memory(context: BaseContext, size: int) -> Any:
    """Return memory that processes of a context share."""
    if context.get_start_method() == "fork":
        # Of no file, so that a small /dev/shm, as containers have it, is no bound.
        return mmap.mmap(-1, size)
    return context.RawArray("B", size)
