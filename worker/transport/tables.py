"""Faust's table, store, manager and recovery, so that state moves in the tasks' transactions.

Stock tables send to the changelog through Faust's own producer, outside any transaction, and
stock recovery waits for the last record of a log that ends in a marker. Here a write goes into
the transaction being made, and recovery opens the tasks: fence, read, seek.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

import structlog
from faust.stores import memory
from faust.tables import TableManager as StockTableManager
from faust.tables.recovery import RebalanceAgain, ServiceStopped
from faust.tables.recovery import Recovery as StockRecovery
from faust.tables.table import Table as StockTable
from mode import Service

from config.errors import RocstreamError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from faust.types import StoreT

    from worker.transport.job import JobApp

log = structlog.get_logger(__name__)


class WriteThroughStore(memory.Store[bytes, bytes]):
    """Keeps nothing: an event of a window is held once, by the engine."""

    mundane_level = "debug"

    def __setitem__(self, key: bytes, value: bytes) -> None:
        """Do nothing; the value is on its way to the changelog."""

    def __delitem__(self, key: bytes) -> None:
        """Do nothing; the tombstone is on its way to the changelog."""


class WindowTable(StockTable[bytes, bytes]):
    """The changelog-backed table of pages; written to inside `writing` only."""

    mundane_level = "debug"

    _open: list[tuple[bytes, bytes | None]] | None = None

    def _new_store(self) -> StoreT[bytes, bytes]:
        return WriteThroughStore(
            "memory://",
            self.app,
            self,
            table_name=self.name,
            key_type=bytes,
            value_type=bytes,
            key_serializer="raw",
            value_serializer="raw",
        )

    @contextmanager
    def writing(self) -> Iterator[list[tuple[bytes, bytes | None]]]:
        """Gather writes for one transaction: the list that this gives fills up inside."""
        gathered: list[tuple[bytes, bytes | None]] = []
        self._open = gathered
        try:
            yield gathered
        finally:
            self._open = None

    def write(self, pages: Mapping[bytes, bytes | None]) -> None:
        """Put many writes and tombstones (None) into the open transaction.

        As item by item, without half a dozen of Faust's calls for each.
        """
        self._opened().extend(pages.items())

    def on_key_set(self, key: bytes, value: bytes) -> None:
        """Put a write into the open transaction."""
        self._opened().append((key, value))

    def on_key_del(self, key: bytes) -> None:
        """Put a tombstone into the open transaction."""
        self._opened().append((key, None))

    def _opened(self) -> list[tuple[bytes, bytes | None]]:
        if self._open is None:
            raise RuntimeError("the table of windows is written to by a task's transaction only")
        return self._open


class TableManager(StockTableManager):
    """Leaves changelogs unsubscribed: a task reads its own, and no fetch waits on them."""

    mundane_level = "debug"

    app: JobApp

    @property
    def recovery(self) -> Recovery:
        """The service that opens tasks after each rebalance."""
        if self._recovery is None:
            self._recovery = Recovery(self.app, self, beacon=self.beacon, loop=self.loop)
        return self._recovery  # type: ignore[return-value]

    async def on_start(self) -> None:
        """Start without the stock manager's pause."""
        await self._update_channels()
        await self.recovery.start()

    async def _update_channels(self) -> None:
        self._tables_finalized.set()
        for table in self.values():
            await table.maybe_start()
        self._tables_registered.set()


class Recovery(StockRecovery):
    """Has the tasks of an assignment at work: first those that are still here, then the others."""

    mundane_level = "debug"

    app: JobApp

    def reopen(self) -> None:
        """Open all tasks again in the same assignment: their producers had died."""
        self._hold_flow()
        self.signal_recovery_start.set()

    @Service.task
    async def _restart_recovery(self) -> None:
        job = self.app.job
        while not self.should_stop:
            if await self.wait_for_stopped(self.signal_recovery_start):  # type: ignore[arg-type]
                return
            self.signal_recovery_start.clear()
            generation = self._generation_id
            still_wanted = self._still_wanted(generation)
            try:
                self._set_recovery_started()
                self._hold_flow()
                partitions = {
                    tp.partition
                    for tp in self.app.consumer.assignment()
                    if tp.topic == job.settings.topics.events
                }
                await self._open(partitions, generation, still_wanted)
                log.info("ready", partitions=sorted(partitions), generation=generation)
            except RebalanceAgain:
                if not job.leaving:
                    log.info(
                        "the assignment changed while tasks were opened", generation=generation
                    )
            except asyncio.CancelledError:
                return
            except ServiceStopped:
                # Also what a wait that ran out of time is told by.
                if not self.should_stop:
                    job.fail(RocstreamError("seeking to the tasks' cursors took too long"))
                return
            except Exception as error:  # noqa: BLE001 - handed to whoever runs the app
                if self._given_up(still_wanted):
                    continue
                job.fail(error)
                return

    async def _open(self, partitions: set[int], generation: int, check: Callable[[], None]) -> None:
        """Have a task at work for each partition; those that are here do not wait for others."""
        job = self.app.job
        await self._wait(job.keep(partitions, generation, check))
        missing = partitions - job.tasks.keys()
        if not (job.tasks and missing):
            await self._wait(job.open(partitions, generation, check))
            await self.on_recovery_completed(generation)
            return
        await self.on_recovery_completed(generation)
        log.info("tasks go on", kept=sorted(job.tasks), to_open=sorted(missing))
        await self._wait(job.open(partitions, generation, check))
        seek = self.app.consumer.perform_seek()
        await self._wait(seek, timeout=self.app.conf.broker_request_timeout)

    def _hold_flow(self) -> None:
        """Let nothing be fetched: a worker that had no partitions before has its flow on."""
        self.app.consumer.stop_flow()
        self.app.flow_control.suspend()
        self.app.flow_control.clear()

    def _given_up(self, still_wanted: Callable[[], None]) -> bool:
        """Tell whether opening failed because it was given up for another assignment."""
        try:
            still_wanted()
        except RebalanceAgain:
            return True
        return self.should_stop

    def _still_wanted(self, generation: int) -> Callable[[], None]:
        def check() -> None:
            if (
                self.signal_recovery_start.is_set()
                or self.app.consumer_generation_id != generation
                or self.app.job.revoking
                or self.app.job.leaving
            ):
                raise RebalanceAgain

        return check

    @Service.task
    async def _slurp_changelogs(self) -> None:
        """Nothing to do: tasks read their changelog themselves."""

    @Service.task
    async def _publish_stats(self) -> None:
        """Nothing to do: the reader reports its own progress."""
