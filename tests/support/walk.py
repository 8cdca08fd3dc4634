"""Bounded monitors by the book: the updates of a task, event by event, with nothing kept clever."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from inmemory import Event

    from config import Monitor

MS = timedelta(milliseconds=1)


class One(NamedTuple):
    """An event, or a heartbeat (no key)."""

    key: str | None
    score: float
    label: int
    time: int
    offset: int
    index: int


@dataclass
class Life:
    """A key from its first event on until it leaves."""

    events: list[One] = field(default_factory=list)
    seen: int = 0


class Walk:
    """The windows of a task as their definition has them; AUC is the one metric.

    A key expires where the watermark reaches the time of its newest event plus `key_ttl`, or, that
    being behind it already when the event came, the next multiple of a 64th of `key_ttl` (at least
    1 ms). A new key that would be one too many makes the one leave first whose newest event
    stands first in the log.
    """

    def __init__(self, monitors: Sequence[Monitor]) -> None:
        self.watermark = -1
        self.updates: list[bytes] = []
        self.keys: dict[str, dict[str, Life]] = {}
        self.taken: Counter[str] = Counter()  # events, by monitor
        self.place = (0, 0)
        self.inside: set[str] = set()  # the monitors that have the event at `place` already
        self.monitors: list[Monitor] = []
        self.change(monitors)

    def change(self, monitors: Sequence[Monitor]) -> None:
        """Go on with other monitors; those that had another slide, or are new, begin anew."""
        slides = {monitor.name: monitor.window.slide for monitor in self.monitors}
        self.monitors = list(monitors)
        kept = {m.name for m in monitors if slides.get(m.name) == m.window.slide}
        self.inside &= kept
        self.taken = Counter({name: self.taken[name] for name in kept})
        self.keys = {m.name: self.keys[m.name] if m.name in kept else {} for m in monitors}

    def run(self, records: Iterable[Event]) -> list[bytes]:
        """Take records in; return the values of all updates so far."""
        for record in records:
            for _ in self.steps(record):
                pass
        return self.updates

    def steps(self, record: Event) -> Iterator[None]:
        """Take a record in, what it has before `place` left out; yield behind each key that goes.

        One may stop there, `change`, and go on with the same record.
        """
        for one in read(record):
            if one[4:] < self.place:
                continue
            self.place = one[4:]
            yield from self._take(one)
            self.place, self.inside = (one.offset, one.index + 1), set()

    def _take(self, one: One) -> Iterator[None]:
        before, after = self.watermark, max(self.watermark, one.time)
        for monitor in self.monitors:
            keys = self.keys[monitor.name]
            if one.key is not None and monitor.name not in self.inside:
                yield from self._enter(monitor, keys, one, one.key)
            self.inside.add(monitor.name)
            if monitor.key_ttl is not None:
                ttl = monitor.key_ttl // MS
                step = max(ttl // 64, 1)
                line = after // step * step
                for key in sorted(keys, key=str.encode):
                    due = keys[key].events[-1].time + ttl
                    if before < due <= after or (before < line and due <= line):
                        self._publish(monitor, key, keys.pop(key), one, "expired")
                        yield
        self.watermark = after

    def _enter(self, monitor: Monitor, keys: dict[str, Life], one: One, key: str) -> Iterator[None]:
        limit = monitor.key_limit
        while limit is not None and len(keys) + (key not in keys) > limit:
            oldest = min(keys, key=lambda known: keys[known].events[-1][4:])
            self._publish(monitor, oldest, keys.pop(oldest), one, "key_limit")
            yield
        self.taken[monitor.name] += 1
        life = keys.setdefault(key, Life())
        life.seen += 1
        life.events = [*life.events, one][-monitor.window.size :]
        if life.seen % monitor.window.slide == 0:
            self._publish(monitor, key, life, one, None)

    def _publish(
        self, monitor: Monitor, key: str, life: Life, source: One, note: str | None
    ) -> None:
        window = monitor.window
        events = life.events
        auc = auc_of(events)
        positives = sum(event.label for event in events)
        number = life.seen // window.slide + (note is not None)
        update: dict[str, Any] = {
            "version": 1,
            "monitor": monitor.name,
            "key": key,
            "seq": number,
            "time": source.time,
            "window": {
                "kind": "count",
                "size": window.size,
                "slide": window.slide,
                "events": len(events),
                "full": len(events) == window.size,
                "start": events[0].time,
                "end": events[-1].time,
            },
            "positives": positives,
            "negatives": len(events) - positives,
            "auc": auc,
            "reason": "one_class" if auc is None else None,
            "note": note,
            "source": {
                "topic": "events",
                "partition": 0,
                "offset": source.offset,
                "index": source.index,
            },
        }
        self.updates.append(orjson.dumps(update))


def read(record: Event) -> Iterator[One]:
    """Give the events of a record; whatever is odd in it is none."""
    try:
        value = orjson.loads(record.value or b"")
    except orjson.JSONDecodeError:
        return
    if value.get("heartbeat") is True:
        yield One(None, 0, 0, value["time"], record.offset, 0)
        return
    columnar = isinstance(value["score"], list)
    scores = value["score"] if columnar else [value["score"]]
    labels = value["label"] if columnar else [value["label"]]
    times = value["time"] if isinstance(value["time"], list) else [value["time"]] * len(scores)
    for index, (score, label, time) in enumerate(zip(scores, labels, times, strict=True)):
        if type(score) is float and label in {0, 1}:
            yield One((record.key or b"").decode(), score, label, time, record.offset, index)


def auc_of(events: Sequence[One]) -> float | None:
    """Share of the pairs that are in order, ties half; None with one class only."""
    high = [event.score for event in events if event.label]
    low = [event.score for event in events if not event.label]
    if not high or not low:
        return None
    won = sum(2 * (one > other) + (one == other) for one in high for other in low)
    return float(Fraction(won, 2 * len(high) * len(low)))
