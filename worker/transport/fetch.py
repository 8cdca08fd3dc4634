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


class Run(list[Any]):
    """Records in a row, and the stretch of the log that they are all of.

    Attributes
    ----------
    start, end
        Every committed record with an offset in [start, end) is here. Where offsets are missing
        there is none: control records, aborted transactions, compaction.
    unread
        Offsets that the log held behind the run when it was fetched.
    """

    start = 0
    end = 0
    unread = 0


class RunResult(fetcher.FetchResult):  # type: ignore[misc]
    """A response that is taken apart in runs."""

    _partition_records: Any

    def getall(self, max_records: int | None = None) -> Run:
        """Return the next records, `max_records` at the most, and move the position.

        The position is moved by others too: by a seek, and by aiokafka's own reset to the earliest
        offset when the log no longer holds it. So where a run starts is told with it.
        """
        if not self.check_assignment(self._topic_partition) or not self.has_more():
            return Run()
        state = self._assignment.state_value(self._topic_partition)
        before = state.position
        run = Run(islice(self._partition_records._records_iterator, max_records))  # noqa: SLF001
        self._update_position()
        if max_records is None or len(run) < max_records:
            self._partition_records = None
        # Responses without a record to deliver move the position as well; the next run tells of it.
        passed_from, passed_to = getattr(state, "passed", (before, before))
        run.start, run.end = passed_from if passed_to == before else before, state.position
        run.unread = max((state.highwater or 0) - run.end, 0)
        state.passed = (run.end, run.end) if run else (run.start, run.end)
        return run


def install() -> None:
    """Have aiokafka's consumers of this process give records as they were decoded."""
    fetcher.PartitionRecords = RunRecords
    fetcher.FetchResult = RunResult
