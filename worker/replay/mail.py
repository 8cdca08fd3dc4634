"""What processes of a replay send each other."""

from __future__ import annotations

import os
import pickle
import struct
import threading
from multiprocessing import parent_process
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.synchronize import Lock

FROM_PARENT: Final = -1
"""In the place of a run's number: what the parent has looked up."""

_FAILED: Final = -2
"""In the place of a run's number: from which run on nothing comes from a process, and why."""

_NUMBER: Final = struct.Struct("<q")


class Mail:
    """Everyone has one inbox, into which all others write.

    Parameters
    ----------
    inboxes
        By process; the own one to read from, the others to write to.
    locks
        By process; who holds it may write into that inbox.
    number
        Of the own one.
    """

    def __init__(self, inboxes: Sequence[Connection], locks: Sequence[Lock], number: int) -> None:
        self._inboxes, self._locks, self._number = inboxes, locks, number
        self._came: dict[int, bytes] = {}
        self._failures: list[tuple[int, Exception]] = []
        self._news = threading.Condition()
        # At any time, so that nobody waits for a reader who writes himself.
        self._reader = threading.Thread(target=self._take, daemon=True)
        self._reader.start()

    @staticmethod
    def post(inbox: Connection, lock: Lock, number: int, packed: bytes) -> None:
        """Put something under a number into an inbox."""
        with lock:
            inbox.send_bytes(_NUMBER.pack(number) + packed)

    def send(self, to: int, run: int, packed: bytes) -> None:
        """Send another process its events of a run."""
        self.post(self._inboxes[to], self._locks[to], run, packed)

    def fail(self, run: int, error: Exception) -> None:
        """Tell all others that from this run on they need not wait for what we would have read."""
        packed = pickle.dumps((run, error), pickle.HIGHEST_PROTOCOL)
        for to in range(len(self._inboxes)):
            if to != self._number:
                self.send(to, _FAILED, packed)

    def get(self, run: int) -> Any:
        """Wait for what comes under this number.

        Raises
        ------
        Exception
            What another process failed with, where it may be the one that would have sent it.
        """
        with self._news:
            self._news.wait_for(lambda: run in self._came or self._failure(run) is not None)
            # What a process has sent before it failed came before that.
            if run not in self._came and (error := self._failure(run)) is not None:
                raise error
            packed = self._came.pop(run)
        return _unpacked(packed)

    def stay(self) -> None:
        """Take in what others go on sending, until the parent ends us."""
        self._reader.join()

    def _failure(self, run: int) -> Exception | None:
        return next((error for first, error in self._failures if run >= first), None)

    def _take(self) -> None:
        inbox = self._inboxes[self._number]
        above = parent_process()
        over = [] if above is None else [above.sentinel]
        while True:
            if over and over[0] in wait([inbox, *over]):
                # Nobody is left to tell.
                os._exit(1)
            packed = inbox.recv_bytes()
            number = _NUMBER.unpack_from(packed)[0]
            with self._news:
                if number == _FAILED:
                    self._failures.append(_unpacked(packed))
                else:
                    self._came[number] = packed
                self._news.notify()


def _unpacked(packed: bytes) -> Any:
    return pickle.loads(memoryview(packed)[_NUMBER.size :])  # noqa: S301 - our own
