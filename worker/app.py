"""The worker: a Faust app built from the settings, its one agent, and how it starts and ends."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
from threading import Event, Timer
from typing import TYPE_CHECKING, Any, Final

import structlog
import uvloop
from yarl import URL

from config.errors import RocstreamError
from worker.credentials import faust_credentials
from worker.rights import refuse_forbidden
from worker.transport import Job, JobApp, TableManager, WindowTable
from worker.transport.layout import Layout, survey

if TYPE_CHECKING:
    from config import Settings

log = structlog.get_logger(__name__)

TABLE: Final = "windows"
"""The changelog is named after it: see `Settings.changelog`."""

RUN_RECORDS: Final = 20_000
"""Records in a run at the most; a fetch seldom brings more of a partition."""

FETCH_BYTES: Final = 4 << 20
BUFFERED_RUNS: Final = 8
GC_OBJECTS: Final = 2_000
"""New objects after which the collector looks at them. Runs are few objects and many bytes, and
some wait in a cycle for the collector: with 50,000 objects to a look they hold 300 MB."""

METADATA_MS: Final = 60_000
"""How soon a topic that has grown is noticed, unless [kafka.client] says otherwise."""

LEAVE_SECONDS: Final = 15.0
"""How long a worker takes to finish, commit and leave; less than what supervisors grant."""

NEVER_SECONDS: Final = 7 * 86_400.0
"""A worker that fetches nothing may be waiting for a broker to take its writes. Leaving the group
for it would be for good; that it is alive is told by its heartbeats."""

SESSION_SECONDS: Final = 10.0

REQUEST_SECONDS: Final = 30.0
"""After so long without an answer a connection is given up: its other end may be long gone. A join
that takes longer is made again, by the same member."""


def run(settings: Settings, *, accept_gap: bool = False) -> None:
    """Work until SIGINT or SIGTERM, then finish, commit and leave the group.

    Waits for a broker that is away.

    Parameters
    ----------
    settings
        The job's settings.
    accept_gap
        Whether windows may restart empty where the log no longer reaches back to the cursor.

    Raises
    ------
    SettingsError
        When the topics do not fit the settings.
    DecisionError
        When going on could lose or double data.
    RocstreamError
        When the worker had to stop.
    """
    # Faust starts loops of its own in threads, which only the policy reaches.
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    asyncio.run(_run(settings, accept_gap=accept_gap))


def build(job: Job) -> JobApp:
    """Return the Faust app of a job: one agent, one changelog-backed table, our transport."""
    settings = job.settings
    kafka = settings.kafka
    partitions = job.layout.partitions
    app = JobApp(
        kafka.group,
        broker=[URL(f"rocstream://{server}") for server in kafka.bootstrap_servers],
        broker_client_id=kafka.client_id,
        broker_credentials=faust_credentials(kafka.security),
        broker_commit_interval=1.0,
        broker_max_poll_interval=NEVER_SECONDS,
        broker_max_poll_records=RUN_RECORDS,
        broker_request_timeout=REQUEST_SECONDS,
        broker_session_timeout=SESSION_SECONDS,
        broker_heartbeat_interval=SESSION_SECONDS / 3,
        consumer_auto_offset_reset="earliest",
        consumer_group_instance_id=kafka.group_instance_id,
        consumer_max_fetch_size=FETCH_BYTES,
        consumer_metadata_max_age_ms=int(kafka.client.get("metadata.max.age.ms", METADATA_MS)),
        key_serializer="raw",
        value_serializer="raw",
        store="memory://",
        stream_buffer_maxsize=BUFFERED_RUNS,
        stream_wait_empty=False,
        table_standby_replicas=0,
        topic_allow_declare=False,
        topic_disable_leader=True,
        topic_partitions=partitions,
        web_enabled=False,
        Table=WindowTable,
        TableManager=TableManager,
    )
    app.job = job
    raw: dict[str, Any] = {
        "key_serializer": "raw",
        "value_serializer": "raw",
        "partitions": partitions,
    }
    table: Any = app.Table(
        TABLE,
        key_type=bytes,
        value_type=bytes,
        partitions=partitions,
        changelog_topic=app.topic(job.layout.changelog, **raw),
    )
    job.attach(app, table)

    # Faust would keep the offset of each message that the agent is done with until it is committed
    # to the group, and here that is no business of Faust's.
    events = app.topic(settings.topics.events, acks=False, **raw)

    @app.agent(events, name="watch")
    async def watch(stream: Any) -> None:
        async for event in stream.events():
            await job.feed(event.message)

    return app


async def _run(settings: Settings, *, accept_gap: bool) -> None:
    loop = asyncio.get_running_loop()
    stop, stop_waiting = asyncio.Event(), Event()

    def on_signal() -> None:
        stop.set()
        stop_waiting.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    layout = await loop.run_in_executor(None, survey, settings, stop_waiting)
    if layout is not None:
        await loop.run_in_executor(None, refuse_forbidden, settings, layout.partitions)
        await _work(settings, layout, stop, accept_gap=accept_gap)
    log.info("stopped")


async def _work(
    settings: Settings, layout: Layout, stop: asyncio.Event, *, accept_gap: bool
) -> None:
    # What is loaded by now stays: the collector need not look at it, nor after every 700 events.
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_OBJECTS, 20, 50)
    job = Job(settings, layout, accept_gap=accept_gap)
    app = build(job)
    asked = asyncio.create_task(stop.wait())
    starting = asyncio.create_task(app.start())
    crashed = asyncio.create_task(app.wait_for_crash())
    watching = asyncio.create_task(job.watch_topics())
    try:
        await asyncio.wait((starting, asked, crashed, job.failed), return_when="FIRST_COMPLETED")
        if starting.done() and (error := starting.exception()) is not None:
            job.fail(RocstreamError(f"the worker could not start: {error}"))
        await asyncio.wait((asked, crashed, job.failed), return_when="FIRST_COMPLETED")
        log.info("stopping")
        watching.cancel()
        _leave_within(LEAVE_SECONDS, job.failed.result() if job.failed.done() else None)
        await job.leave()
        await app.stop()
    finally:
        for task in (asked, starting, crashed, watching):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task
    if job.failed.done():
        raise job.failed.result()
    if app.crash_reason is not None:
        raise RocstreamError(f"the worker had to stop: {app.crash_reason}") from app.crash_reason


def _leave_within(seconds: float, error: BaseException | None) -> None:
    """See to it that the process ends: its clients wait for a broker that may be gone for good.

    Parameters
    ----------
    seconds
        After which it ends without the broker's leave.
    error
        What the worker stops for, None when it was asked to.
    """

    def give_up() -> None:
        log.warning(
            "left without the broker's answer; what was not committed is worked out again",
            waited_s=seconds,
        )
        code = 0
        if error is not None:
            log.error(str(error))
            code = error.exit_code if isinstance(error, RocstreamError) else 1
        os._exit(code)

    timer = Timer(seconds, give_up)
    timer.daemon = True
    timer.start()
