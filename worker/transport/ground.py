"""The topics that tasks stand on: whether they are the same, and where each task begins."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from typing import TYPE_CHECKING, Final

import structlog
from confluent_kafka import KafkaError, KafkaException

from config.errors import DecisionError, RocstreamError, SettingsError
from worker.admin import Cluster, plans
from worker.transport import footing
from worker.transport.layout import refuse_lossy, topic_id
from worker.transport.waiting import Wait

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from config import Settings
    from worker.pages import Cursor
    from worker.transport.changelog import Extent
    from worker.transport.epochs import End
    from worker.transport.layout import Layout

log = structlog.get_logger(__name__)

LOOK_SECONDS: Final = 5.0
"""How often a running worker looks whether the events topic and the changelog still are those that
it started with, unless its fetches tell sooner that one is not."""

TOPICS_SECONDS: Final = 60.0
"""How often it looks whether its topics have come to delete what it needs, or are gone."""

REFUSALS: Final = 3
REFUSED_SECONDS: Final = 3.0
"""So many looks in a row, with this between them, have to find that: a broker that has just come
may not know topics whose partitions have no leader yet."""

PAUSE_SECONDS: Final = 0.2
"""Between two attempts to ask, while tasks wait for it to open."""


class Ground:
    """The events topic and the changelog, as tasks are opened on them and while they work.

    Parameters
    ----------
    settings
        The job's settings.
    layout
        What it finds at the broker.
    accept_gap
        Whether windows may restart empty where the log no longer reaches back to the cursor.
    pool
        Where the broker is asked.
    """

    def __init__(
        self, settings: Settings, layout: Layout, *, accept_gap: bool, pool: Executor
    ) -> None:
        self._settings = settings
        self._layout = layout
        self._topic = settings.topics.events
        self._accept_gap = accept_gap
        self._pool = pool
        self._loop = asyncio.get_running_loop()
        self._doubted = asyncio.Event()
        self._suspected = asyncio.Event()

    def doubt(self) -> None:
        """Have the topic looked at now. May be called from any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._doubted.set)

    async def watch(self) -> None:
        """Look at the topics every `LOOK_SECONDS`, and when there is doubt, until one is another.

        A look that fails is logged, and the next one comes as ever.

        Raises
        ------
        DecisionError
            Once a topic was made again.
        """
        failures = 0
        gone = False
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._doubted.wait(), LOOK_SECONDS)
            self._doubted.clear()
            try:
                await self._look()
                gone = False
            except DecisionError:
                raise
            except KafkaException as error:
                # It may be away; whoever opens tasks waits for the answer.
                log.debug("topic id not told", error=error.args[0].str())
                if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART and not gone:
                    log.warning("the events topic is gone, waiting for it", topic=self._topic)
                    gone = True
            except Exception as error:  # noqa: BLE001 - whatever it is, the watch goes on
                failures += 1
                log.warning(
                    "could not look whether the topics are the same",
                    error=f"{type(error).__name__}: {error}",
                    failures=failures,
                )

    def suspect(self) -> None:
        """Have all topics looked at now: a write has failed for good."""
        self._suspected.set()

    async def watch_topics(self) -> None:
        """Look at all of the job's topics every `TOPICS_SECONDS`, and when one is suspected.

        What keeps the job from working ends it once `REFUSALS` looks in a row have found it. A look
        that fails is logged, and the next one comes as ever.

        Raises
        ------
        SettingsError
            Once a topic deletes what the job needs, or one that is written to is gone.
        RocstreamError
            Once one is not to be seen any more.
        """
        refusals = 0
        while True:
            if refusals:
                await asyncio.sleep(REFUSED_SECONDS)
            else:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._suspected.wait(), TOPICS_SECONDS)
            self._suspected.clear()
            refused: RocstreamError | None = None
            try:
                refused = await self._loop.run_in_executor(self._pool, self._refusal)
            except KafkaException as error:
                log.debug("topics not told", error=error.args[0].str())
            except Exception as error:  # noqa: BLE001 - whatever it is, the watch goes on
                log.warning(
                    "could not look at the settings of the topics",
                    error=f"{type(error).__name__}: {error}",
                )
            refusals = 0 if refused is None else refusals + 1
            if refused is not None and refusals >= REFUSALS:
                raise refused

    async def confirm(self, check: Callable[[], None]) -> None:
        """Wait for the broker to say that the topics still are the same.

        Parameters
        ----------
        check
            Raises when the wait is for nothing.

        Raises
        ------
        DecisionError
            When one was made again.
        """
        wait = Wait("waiting for the broker to tell the id of the events topic", topic=self._topic)
        while True:
            began = time.monotonic()
            try:
                await self._look()
            except KafkaException as error:
                wait.tell(error.args[0].str(), began)
            else:
                wait.over()
                return
            check()
            await asyncio.sleep(PAUSE_SECONDS)

    def check_count(self, assigned: set[int]) -> None:
        """Refuse partitions that came into being after the start: they have no changelog.

        Raises
        ------
        DecisionError
            With the partition, the changelog and the cure.
        """
        count = self._layout.partitions
        if assigned and max(assigned) >= count:
            raise DecisionError(
                f"the topic {self._topic} has grown: partition {max(assigned)} was assigned, but "
                f"the changelog {self._layout.changelog} has {count} partitions; keys now go to "
                "other partitions than before, so take a new kafka.group"
            )

    def begin(self, extent: Extent, *, gap: bool) -> int:
        """Return where a task without state begins; behind a `gap` with the first there is."""
        if gap or self._settings.topics.start == "earliest":
            return extent.start
        return extent.end

    def reaches_back(self, partition: int, cursor: Cursor, extent: Extent, end: End | None) -> bool:
        """Tell whether the log goes on where the state ends; False only if gaps are accepted.

        The others are as for `footing.gap`.

        Raises
        ------
        DecisionError
            When it does not, and gaps are not accepted.
        """
        problem = footing.gap(cursor, self._topic, self._layout.events_id, extent, end)
        if problem is None:
            return True
        if self._accept_gap:
            log.warning("gap accepted, windows restart empty", partition=partition, problem=problem)
            return False
        raise footing.refused(problem, self._topic, partition)

    async def _look(self) -> None:
        layout = self._layout
        if not layout.events_id:
            return
        found = await self._ask(self._topic)
        if found and found != layout.events_id:
            problem = footing.made_again(self._topic, layout.events_id, found)
            raise footing.refused(f"{problem} while we ran", self._topic)
        if not layout.changelog_id:
            return
        try:
            found = await self._ask(layout.changelog)
        except KafkaException as error:
            # That it is gone is told by `watch_topics`.
            log.debug("topic id not told", topic=layout.changelog, error=error.args[0].str())
            return
        if found and found != layout.changelog_id:
            raise footing.lost_changelog(layout.changelog, layout.changelog_id, found)

    def _refusal(self) -> RocstreamError | None:
        """Return what keeps the job from working on these topics; None also if nobody answers."""
        events, *written = plans(self._settings, self._layout.partitions)
        try:
            found = self._cluster.topics(plan.name for plan in (events, *written))
            refuse_lossy(self._settings, self._layout.partitions, found)
            for plan in written:
                if plan.name not in found:
                    return self._cluster.absent(plan)
        except SettingsError as error:
            return error
        except RocstreamError as error:
            log.debug("topics not told", error=str(error))
        return None

    @functools.cached_property
    def _cluster(self) -> Cluster:
        return Cluster(self._settings)

    async def _ask(self, topic: str) -> str:
        return await self._loop.run_in_executor(self._pool, self.topic_id, topic)

    def topic_id(self, topic: str) -> str:
        """Ask a broker for a topic's id; blocks, and raises as `layout.topic_id`."""
        return topic_id(self._cluster, topic)
