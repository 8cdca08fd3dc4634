"""Faust's consumer on aiokafka, made to deliver runs and to trust cursors instead of offsets.

Stock Faust builds tasks, futures and interval trees per record, long-polls for 1.5 s and treats
the group's committed offsets as the truth. Here a fetched run of records is one message, the
position comes from the tasks' cursors, and group offsets are written for lag tools alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any, Final, cast

import structlog
from aiokafka.errors import (
    ConsumerStoppedError,
    KafkaConnectionError,
    KafkaError,
    TopicAuthorizationFailedError,
)
from aiokafka.structs import OffsetAndMetadata
from faust.tables.recovery import RebalanceAgain
from faust.transport.drivers import aiokafka as stock
from faust.types import TP, ConsumerMessage

from worker.transport import by_id, epochs, fetch, grouping, membership, outage, pace, silent
from worker.transport.connection import make_no_topics
from worker.transport.divergence import Divergence
from worker.transport.offsets import OFFSET_MARK, GroupOffset

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    import aiokafka
    from mode.types import ServiceT

    from worker.transport.job import JobApp

log = structlog.get_logger(__name__)

POLL_SECONDS: Final = 0.2
RETRY_SECONDS: Final = 0.5


class ConsumerThread(stock.AIOKafkaConsumerThread):
    """The thread in which aiokafka's consumer lives."""

    mundane_level = "debug"

    _outage: outage.Outage
    _watch: asyncio.Task[None]

    def _create_worker_consumer(self, transport: stock.Transport) -> aiokafka.AIOKafkaConsumer:
        fetch.install()
        make_no_topics()
        consumer = super()._create_worker_consumer(transport)
        silent.go_around(consumer._client)  # noqa: SLF001
        # Faust has no settings for these two; aiokafka reads them when it starts.
        consumer._isolation_level = "read_committed"  # noqa: SLF001
        job = cast("JobApp", self.app).job
        topic, topic_id = job.settings.topics.events, job.layout.events_id
        if topic_id:
            client, subscriptions = consumer._client, consumer._subscription  # noqa: SLF001
            told = Divergence(client, subscriptions, topic, job.cursor, job.fail_soon)
            by_id.install(client, topic, topic_id, job.ground.doubt, told)
        kafka = job.settings.kafka
        pace.install(consumer, kafka.commit_interval.total_seconds())
        self._outage = outage.install(consumer._client, topic, kafka.group)  # noqa: SLF001
        if kafka.group_instance_id is not None:
            membership.install(consumer._client, kafka.group_instance_id, job.replaced)  # noqa: SLF001
        return consumer

    async def on_start(self) -> None:
        """Start the consumer; wait for a broker that went away after its topics were looked up."""
        consumer = self._consumer = self._create_consumer(loop=self.thread_loop)
        self.time_started = time.monotonic()
        # It ends with the thread, as all that aiokafka has running there.
        self._watch = asyncio.create_task(self._outage.watch(consumer))
        job = cast("JobApp", self.app).job
        servers = ", ".join(job.settings.kafka.bootstrap_servers)
        while not self.should_stop:
            try:
                with self._outage.starting(servers):
                    await consumer.start()
            except KafkaConnectionError as error:
                self._outage.fail_to_start(error)
                await asyncio.sleep(RETRY_SECONDS)
            else:
                self._outage.started()
                group = job.settings.kafka.group
                grouping.install(consumer._coordinator, group, job.fail_soon)  # noqa: SLF001
                return

    async def on_thread_stop(self) -> None:
        """Leave the group and let go of the brokers, also of those that are away."""
        # A fetch that waits for its next attempt is awaited there after it was called off.
        with contextlib.suppress(asyncio.CancelledError):
            await super().on_thread_stop()
        if self._consumer is not None:
            await self._consumer._client.close()  # noqa: SLF001 - where the stop did not get to

    async def seek_marked(self, offsets: Mapping[TP, int], number: int) -> None:
        """Go to offsets; the runs that are taken from there on bear the number."""
        await self.call_thread(self._seek_marked, offsets, number)

    async def _seek_marked(self, offsets: Mapping[TP, int], number: int) -> None:
        # There is no await in here, and runs are taken in this very thread.
        consumer = self._ensure_consumer()
        for tp, offset in offsets.items():
            place = stock.ensure_aiokafka_TP(tp)
            consumer.seek(place, offset)
            assignment = consumer._subscription.subscription.assignment  # noqa: SLF001 - no other way
            assignment.state_value(place).sought = number

    async def commit_marked(self, offsets: Mapping[TP, int]) -> None:
        """Commit offsets to the group, marked as ours."""
        consumer = self._ensure_consumer()
        await self.call_thread(
            consumer.commit,
            {
                stock.ensure_aiokafka_TP(tp): OffsetAndMetadata(offset, OFFSET_MARK)
                for tp, offset in offsets.items()
            },
        )

    async def group_offsets(self, tps: Iterable[TP]) -> dict[TP, GroupOffset]:
        """Return what is committed to the group; partitions with nothing are left out."""
        coordinator = self._ensure_consumer()._coordinator  # noqa: SLF001 - no other way to the mark
        found = await self.call_thread(
            coordinator.fetch_committed_offsets, [stock.ensure_aiokafka_TP(tp) for tp in tps]
        )
        return {
            TP(tp.topic, tp.partition): GroupOffset(place.offset, place.metadata == OFFSET_MARK)
            for tp, place in found.items()
            if place.offset >= 0
        }

    async def epoch_ends(self, topic: str, wanted: Mapping[int, int]) -> dict[int, epochs.End]:
        """Return where leader epochs of partitions end; those that nobody tells are left out."""
        client = self._ensure_consumer()._client  # noqa: SLF001 - as above
        told: dict[int, epochs.End] = await self.call_thread(epochs.ends, client, topic, wanted)
        return told


class Consumer(stock.Consumer):
    """Delivers runs of records to the agent, one message for each fetched partition."""

    mundane_level = "debug"

    app: JobApp
    _thread: ConsumerThread
    _seeks = 0

    def _new_consumer_thread(self) -> ConsumerThread:
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Stop the flow, let each task commit what it has, and set it aside."""
        self.app.job.revoking = True
        await super().on_partitions_revoked(revoked)
        await self.app.job.park()

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        """Have the tasks opened (by the recovery service)."""
        self.app.job.revoking = False
        await super().on_partitions_assigned(assigned, generation_id)

    async def perform_seek(self) -> None:
        """Seek the partition of each task that has begun, or goes on, to its cursor.

        Others may be at work meanwhile. Where the log does not hold that offset, the next run
        begins elsewhere: its task tells.
        """
        tasks = {
            TP(tp.topic, tp.partition): task
            for tp in self.assignment()
            if (task := self.app.job.tasks.get(tp.partition)) is not None
            and tp.topic == self.app.job.settings.topics.events
            and task.sought is None
        }
        if not tasks:
            return
        self._seeks += 1
        for task in tasks.values():
            task.sought = self._seeks
        wanted = {tp: task.pipeline.cursor.offset for tp, task in tasks.items()}
        await self._thread.seek_marked(wanted, self._seeks)
        if self.app.job.revoking:
            # The flow must not go on for tasks that are being set aside.
            raise RebalanceAgain
        self.app.job.room.set()
        for tp, offset in wanted.items():
            self._read_offset[tp] = offset or None

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[TP, ConsumerMessage]]:  # noqa: ASYNC109 - Faust's signature
        """Yield one message per fetched partition, its value the run of records."""
        records, _ = await self._wait_next_records(timeout)
        if records is None or self.should_stop:
            return
        generation = self.app.consumer_generation_id
        for found, run in records.items():
            # The run before may have waited while the flow was held, and all of this changed.
            if not self.flow_active or self.app.consumer_generation_id != generation:
                # What was fetched for a former assignment is read again behind the next seek.
                return
            tp = TP(found.topic, found.partition)
            written = run.records[-1].timestamp if len(run) else None
            yield (
                tp,
                ConsumerMessage(
                    tp.topic,
                    tp.partition,
                    run.end - 1,
                    (written or 0) / 1000,
                    0,  # of what kind the timestamp is, nobody asks
                    [],
                    b"",
                    run,
                    None,
                    tp=tp,
                    generation_id=generation,
                ),
            )

    async def _wait_next_records(self, timeout: float) -> tuple[Any, Any]:  # noqa: ASYNC109 - Faust's signature
        if not self.flow_active:
            await self.wait(self.can_resume_flow)  # type: ignore[arg-type]
        job = self.app.job
        active = {
            tp
            for tp in self._get_active_partitions()
            if (task := job.tasks.get(tp.partition)) is not None
            and task.sought is not None
            and task.has_room
        }
        if not active:
            # Where there are no tasks the flow is held before some come, so that nothing waits for
            # this to end.
            job.room.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(job.room.wait(), POLL_SECONDS)
            return {}, active
        records = await self._getmany(active_partitions=active, timeout=min(timeout, POLL_SECONDS))
        return records, active

    async def _drain_messages(self, fetcher: ServiceT) -> None:
        callback = self.callback
        try:
            while not (self.should_stop or fetcher.should_stop):
                await asyncio.sleep(0)
                async for _, message in self.getmany(timeout=POLL_SECONDS):
                    await callback(message)
        except (ConsumerStoppedError, asyncio.CancelledError):
            if not self.app.should_stop:
                raise
        except fetch.BatchError as error:
            self.app.job.fail(error)
        except KafkaError as error:
            # What keeps us out of the group was told before it came here.
            job = self.app.job
            if not isinstance(error, TopicAuthorizationFailedError) and not job.failed.done():
                raise
            job.fail(grouping.refusal(error, job.settings.kafka.group))

    async def force_commit(
        self,
        topics: Any = None,  # noqa: ARG002 - Faust's signature
        start_new_transaction: bool = True,  # noqa: ARG002, FBT001, FBT002 - Faust's signature
    ) -> bool:
        """Commit to the group what transactions hold already: for lag tools, nothing relies on it.

        So a failure is told and passed over; the next call comes within a second.
        """
        if self.app.rebalancing:
            return False
        topic = self.app.job.settings.topics.events
        assigned = self.assignment()
        offsets = {
            tp: cursor.offset
            for partition, cursor in self.app.job.committed().items()
            if (tp := TP(topic, partition)) in assigned
            and self._committed_offset.get(tp) != cursor.offset
        }
        if not offsets:
            return False
        try:
            await self._thread.commit_marked(offsets)
        except Exception as error:  # noqa: BLE001 - see above
            log.warning("group offsets not committed, harmless", error=repr(error))
            return False
        self._committed_offset.update(offsets)
        return True

    async def group_offsets(self, partitions: Iterable[int]) -> dict[int, GroupOffset]:
        """Return what is committed to the group for partitions of the events topic."""
        topic = self.app.job.settings.topics.events
        found = await self._thread.group_offsets([TP(topic, p) for p in partitions])
        return {tp.partition: offset for tp, offset in found.items()}

    async def epoch_ends(self, wanted: Mapping[int, int]) -> dict[int, epochs.End]:
        """Return where leader epochs end, by partition of the events topic; as `epochs.ends`."""
        return await self._thread.epoch_ends(self.app.job.settings.topics.events, wanted)

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Do nothing: Faust's livelock detector looks at acks that are not kept here."""
