"""Records as the fetch decoded them, without an object more for each.

aiokafka copies every decoded record into a dataclass with the sizes and headers that nobody here
reads, through three Python calls: a third of what an event costs. Both classes are looked up in
aiokafka's module when a response comes in, so that is where ours are put (its version is pinned).
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from aiokafka.consumer import fetcher


class RunRecords(fetcher.PartitionRecords):  # type: ignore[misc]
    """The records of a response: offset, timestamp, key and value are what they have in common."""

    def _consumer_record(self, tp: object, record: Any) -> Any:  # noqa: ARG002 - aiokafka's signature
        return record


class RunResult(fetcher.FetchResult):  # type: ignore[misc]
    """A response that is taken apart in runs."""

    _partition_records: Any

    def getall(self, max_records: int | None = None) -> list[Any]:
        """Return the next records, `max_records` at the most, and move the position."""
        if not self.check_assignment(self._topic_partition) or not self.has_more():
            return []
        run = list(islice(self._partition_records._records_iterator, max_records))  # noqa: SLF001
        self._update_position()
        if max_records is None or len(run) < max_records:
            self._partition_records = None
        return run


def install() -> None:
    """Have aiokafka's consumers of this process give records as they were decoded."""
    fetcher.PartitionRecords = RunRecords
    fetcher.FetchResult = RunResult
