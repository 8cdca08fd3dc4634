"""What a replay tells at its end: how much it read, what it refused, the last readings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson
from rich import box
from rich.table import Table

from worker.events import REASONS

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Sequence

    from config import Settings
    from worker.messages import Message

ROWS: Final = 20
_MONITOR: Final = b'"monitor":"'


class Readings:
    """Counts updates and keeps the last of each monitor and key; O(1) an update."""

    def __init__(self) -> None:
        self.updates = 0
        self._last: dict[tuple[bytes, bytes], bytes] = {}
        self._counts: dict[tuple[bytes, bytes], int] = {}

    def take(self, updates: Sequence[Message]) -> None:
        """Take updates in their order."""
        self.updates += len(updates)
        for update in updates:
            value = update.value or b""
            start = value.find(_MONITOR) + len(_MONITOR)
            place = (value[start : value.find(b'"', start)], update.key or b"")
            self._last[place] = value
            self._counts[place] = self._counts.get(place, 0) + 1

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
        places = sorted(self._last)
        for place in places[:ROWS]:
            update = orjson.loads(self._last[place])
            table.add_row(
                *([update["monitor"]] if several else []),
                update["key"],
                f"{self._counts[place]:,}",
                *(figure(update.get(name)) for name in metrics),
                f"{update['window']['events']:,}",
                f"{update['positives']:,}",
                str(update["source"]["offset"]),
            )
        if len(places) > ROWS:
            table.caption = f"{len(places) - ROWS:,} more keys"
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


def plural(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
