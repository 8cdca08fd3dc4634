"""A task without a broker: records, and the log that committed transactions leave."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from hypothesis import strategies as st

from worker.pages import CURSOR_KEY, pack_cursor
from worker.pipeline import Outcome, Pipeline

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import config
    from worker.messages import Message

HEAD = """
[kafka]
bootstrap_servers = "127.0.0.1:9092"
group = "watch"

[topics]
events = "events"
updates = "updates"
rejected = "rejected"
"""

MONITOR = """
[[monitor]]
name = "last-10"
window = { kind = "count", size = 10, slide = 3 }
metrics = ["auc", "h"]
"""

MONITORS = """
[event]
key = "key"
time = "time"

[[monitor]]
name = "short"
window = { kind = "count", size = 40, slide = 7 }

[[monitor]]
name = "long"
window = { kind = "count", size = 300, slide = 10 }
metrics = ["auc"]
"""
"""Of files, whose records have key and time inside."""


class Event(NamedTuple):
    """A record as the transport delivers it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


@dataclass
class Log:
    """The topics of one task: what committed transactions left there."""

    updates: list[Message] = field(default_factory=list)
    rejections: list[Message] = field(default_factory=list)
    changelog: dict[bytes, bytes] = field(default_factory=dict)
    transactions: int = 0

    def commit(self, outcome: Outcome) -> None:
        self.updates += outcome.updates
        self.rejections += outcome.rejections
        for key, value in (*outcome.pages.items(), (CURSOR_KEY, pack_cursor(outcome.cursor))):
            if value is None:
                self.changelog.pop(key, None)
            else:
                self.changelog[key] = value
        self.transactions += 1

    def open(self, settings: config.Settings) -> Pipeline:
        pipeline = Pipeline(settings, "events", 0)
        if not pipeline.restore(self.changelog):
            pipeline.start_at(0)
        return pipeline

    def run(self, settings: config.Settings, records: Sequence[Event]) -> Pipeline:
        """Take all records in undisturbed, in one transaction."""
        pipeline = self.open(settings)
        for _ in pipeline.process(records):
            pass
        self.commit(pipeline.take())
        return pipeline

    def run_disturbed(
        self, settings: config.Settings, records: Sequence[Event], data: st.DataObject
    ) -> Pipeline:
        """Process all in runs cut anywhere, with crashes before and after commits."""
        pipeline = self.open(settings)
        for _ in range(5000):
            if pipeline.cursor.offset >= len(records):
                break
            # The transport may deliver a run that begins before the cursor.
            start = max(0, pipeline.cursor.offset - data.draw(st.integers(0, 3)))
            run = records[start : start + data.draw(st.integers(1, 60))]
            for _ in pipeline.process(run):
                step = data.draw(
                    st.sampled_from(["go on", "go on", "commit", "crash", "commit, crash", "leave"])
                )
                if step.startswith("commit"):
                    self.commit(pipeline.take())
                if step == "crash":
                    # Taken but never committed: a transaction that was aborted.
                    pipeline.take()
                if step.endswith("crash"):
                    pipeline = self.open(settings)
                    break
                if step == "leave":
                    break
        self.commit(pipeline.take())
        return pipeline

    def run_with_stops(
        self, settings: config.Settings, records: Sequence[Event], acts: Iterable[str], length: int
    ) -> None:
        """Process all in runs of a length; do one act at each boundary until there is none left."""
        pipeline, left = self.open(settings), iter(acts)
        while (start := pipeline.cursor.offset) < len(records):
            # A run may begin before the cursor.
            for _ in pipeline.process(records[max(start - 1, 0) : start + length]):
                act = next(left, "go on")
                if act.startswith("commit"):
                    self.commit(pipeline.take())
                if act.endswith("crash"):
                    pipeline = self.open(settings)
                    break
            else:
                # Nobody delivers it again.
                assert pipeline.cursor.offset == min(start + length, len(records))
        self.commit(pipeline.take())

    def read(self) -> list[dict[str, Any]]:
        return [orjson.loads(update.value or b"") for update in self.updates]


def records(values: Iterable[Any], key: bytes = b"k", start: int = 0) -> list[Event]:
    """Records in a row, one ms apart; a dict is written as JSON, bytes as they are."""
    return [
        Event(
            offset,
            1_764_460_000_000 + offset,
            key,
            orjson.dumps(value) if isinstance(value, dict) else value,
        )
        for offset, value in enumerate(values, start)
    ]
