"""What a replay tells at its end: how much it read, what it refused, the last readings."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import orjson
from rich import box
from rich.table import Table

from config.values import plural
from worker.events import REASONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from config import Settings
    from worker.messages import Message

ROWS: Final = 20
_SEQ: Final = b',"seq":'
"""Stands behind monitor and key in an update; within a text a quote has a backslash before it."""


class Readings:
    """Counts updates and keeps the last of each monitor and key; O(1) an update."""

    def __init__(self) -> None:
        self.updates = 0
        # By how an update begins, which says the monitor and the key.
        self._last: dict[bytes, bytes] = {}
        self._counts: Counter[bytes] = Counter()

    def take(self, updates: Sequence[Message]) -> None:
        """Take updates in their order."""
        self.updates += len(updates)
        values = [update.value or b"" for update in updates]
        begins = [value[: value.find(_SEQ)] for value in values]
        self._counts.update(begins)
        self._last.update(zip(begins, values, strict=True))

    def table(self, settings: Settings) -> Table:
        """Return a table of the last readings, keys in order."""
        metrics = list(
            dict.fromkeys(name for monitor in settings.monitors for name in monitor.metrics)
        )
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
        several = len(settings.monitors) > 1
        for name in ("monitor", "key") if several else ("key",):
            table.add_column(name, overflow="fold")
        for name in ("updates", *metrics, "events", "positives", "last offset"):
            table.add_column(name, justify="right", no_wrap=True)
        places = [(orjson.loads(begin + b"}"), begin) for begin in self._last]
        places.sort(key=lambda place: (place[0]["monitor"], place[0]["key"]))
        for _, begin in places[:ROWS]:
            update = orjson.loads(self._last[begin])
            table.add_row(
                *([update["monitor"]] if several else []),
                update["key"],
                f"{self._counts[begin]:,}",
                *(figure(update.get(name)) for name in metrics),
                f"{update['window']['events']:,}",
                f"{update['positives']:,}",
                str(update["source"]["offset"]),
            )
        if len(places) > ROWS:
            table.caption = plural(len(places) - ROWS, "more key")
            table.caption_justify = "left"
        return table

    def __bool__(self) -> bool:
        return bool(self._last)


def figure(value: Any) -> str:
    """Return a metric with four decimals; what is not defined as a dash."""
    return f"{value:.4f}" if isinstance(value, int | float) else "-"


def counted(counts: Counter[str]) -> Iterator[str]:
    """Yield what became of the records, a phrase each."""
    yield plural(counts["events"], "event")
    for name, phrase in (
        ("unlabelled", "without a label"),
        ("zero_weight", "of weight 0"),
        ("tombstones", "deleted"),
        ("heartbeats", "heartbeats"),
    ):
        if counts[name]:
            yield f"{counts[name]:,} {phrase}"
    if counts["rejected"]:
        reasons = ", ".join(
            f"{counts[f'rejected.{code}']:,} {code}"
            for code in (*REASONS, "bad_row")
            if counts[f"rejected.{code}"]
        )
        yield f"{counts['rejected']:,} rejected ({reasons})"
