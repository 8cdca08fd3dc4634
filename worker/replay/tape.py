"""The pipeline as a replay runs it: the live one, whose pages nobody needs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from worker.pipeline import Pipeline
from worker.updates import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from config import Monitor, Settings
    from engine import CountWindow, Readings
    from worker.events import Batch
    from worker.messages import Message
    from worker.replay.records import Log
    from worker.updates import Slides


class UncountedWriter(Writer):
    """Writes updates of windows that began in the middle: nobody knows the number of a slide."""

    def write(
        self,
        key: str,
        slides: Slides,
        readings: Readings,
        *,
        gap: bool = False,
        note: str | None = None,
    ) -> list[Message]:
        """Return one message per slide, `seq` null."""
        return super().write(key, slides._replace(first=None), readings, gap=gap, note=note)


class Tape(Pipeline):
    """One task replayed: batches in, updates out.

    Parameters
    ----------
    settings
        The settings to replay under.
    log
        The first log; see `turn`.

    Attributes
    ----------
    published
        Whether what is played is asked for, or only warms the windows up.
    """

    def __init__(self, settings: Settings, log: Log) -> None:
        super().__init__(settings, log.topic, log.partition)
        self.settings = settings
        self.published = True
        self.start_at(log.first)
        self.turn(log)

    def turn(self, log: Log) -> None:
        """Go on with another log, the windows as they are."""
        self._cursor = replace(self._cursor, topic=log.topic, offset=log.first, index=0)
        for watch in self._watches:
            watch.writer = self._writer(watch.monitor, log)

    def play(self, batch: Batch) -> list[Message]:
        """Take a batch in and return the updates that follow from it."""
        for _ in self._advance(batch):
            pass
        updates = self._updates
        self._updates, self._rejections = [], []
        for watch in self._watches:
            # Pages are for the changelog, which a replay has not.
            watch.dirty.clear()
            watch.dropped.clear()
        return updates

    def windows(self) -> Iterator[tuple[Monitor, str, CountWindow]]:
        """Yield each window, by monitor and key."""
        for watch in self._watches:
            for key, kept in sorted(watch.windows.items()):
                yield watch.monitor, key, kept.window

    def _writer(self, monitor: Monitor, log: Log) -> Writer:
        kind = Writer if log.counted else UncountedWriter
        return kind(monitor, log.topic, log.partition)
