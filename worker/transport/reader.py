"""Reads stretches of a topic for a caller without an event loop, outside of any group.

It is the worker's own way in: aiokafka's fetches, taken apart into blocks (`fetch`). The client
runs in a thread, so that a response comes in while the one before it is worked on, a notebook's
own loop is not in the way, and a caller who takes his time keeps his connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import time
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, Self

import structlog
import uvloop
from aiokafka import errors
from aiokafka.client import AIOKafkaClient
from aiokafka.consumer import fetcher
from aiokafka.consumer.subscription_state import SubscriptionState
from aiokafka.structs import TopicPartition

from config.errors import RocstreamError
from worker.transport import fetch, silent
from worker.transport.connection import aiokafka, quiet
from worker.transport.fetch import Run

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator
    from types import ModuleType, TracebackType

    from config import Settings

log = structlog.get_logger(__name__)

STALL_SECONDS: Final = 120.0
"""A read that brings nothing for so long, although its end is not reached, has failed."""

TELL_SECONDS: Final = 2.0
"""After so long a person is told what is waited for."""

FETCH_BYTES: Final = 4 << 20
"""What a response may hold of a partition; a batch that is larger comes alone."""

_POLL_SECONDS: Final = 0.2
_RETRY_SECONDS: Final = 0.2
_WAIT_MS: Final = 50
_LEAVE_SECONDS: Final = 5.0


class Reader:
    """A client that reads one partition at a time; to be used in a `with`.

    Nothing is subscribed and nothing committed. Of what is fetched two responses are there at the
    most: that of the run handed out, and the next.

    Parameters
    ----------
    settings
        The job's settings; only ``[kafka]`` is used.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._servers = ", ".join(settings.kafka.bootstrap_servers)
        self._loop = uvloop.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="reader", daemon=True)
        self._quiet = quiet()
        self._client: Any = None
        self._fetcher: Any = None
        self._places: Any = None
        self._progress = 0.0
        self._told = False

    def __enter__(self) -> Self:
        """Start the thread; the broker is first asked when something is read."""
        self._quiet.__enter__()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go of the broker."""
        try:
            with contextlib.suppress(TimeoutError):
                self._wait(asyncio.wait_for(self._leave(), _LEAVE_SECONDS))
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._quiet.__exit__(kind, error, trace)

    def runs(self, topic: str, number: int, first: int, stop: int, most: int) -> Iterator[Run]:
        """Yield the committed records from `first` on in runs, until `stop` is reached.

        The last run may hold records behind `stop`. Where the last offsets hold no record, a run
        without any says how far it went. A broker that goes away is waited for.

        Parameters
        ----------
        topic, number
            The partition.
        first, stop
            Offsets.
        most
            Records of a run at the most; beside it, a run is of one response.

        Raises
        ------
        RocstreamError
            When nothing came for `STALL_SECONDS`, or what is asked for cannot be had.
        """
        place = TopicPartition(topic, number)
        at = first
        self._progress, self._told = time.monotonic(), False
        try:
            while self._client is None:
                self._connect(place, at)
            self._wait(self._assign(place, at))
            while at < stop:
                run = self._wait(self._next(place, most))
                if run.end == at:
                    self._check(place, at)
                    continue
                at = run.end
                yield run
                self._progress, self._told = time.monotonic(), False
        except errors.OffsetOutOfRangeError as error:
            raise RocstreamError(
                f"{topic}, partition {number}: retention has removed what was to be read next: "
                "start again with --from earliest"
            ) from error
        except fetch.BatchError as error:
            raise RocstreamError(
                f"{error.what}; repair the broker's replica, or replay what lies before the batch "
                f"with --to {at}, and what lies behind it with --from"
            ) from error
        except errors.TopicAuthorizationFailedError as error:
            raise RocstreamError(
                f"the user may not read the topic {topic}: grant READ on it"
            ) from error
        except errors.KafkaError as error:
            raise RocstreamError(
                f"{topic}, partition {number}, cannot be read from offset {at} on: {error}"
            ) from error

    def _connect(self, place: TopicPartition, at: int) -> None:
        try:
            self._wait(self._start())
        except errors.KafkaConnectionError:
            self._check(place, at)
            time.sleep(_RETRY_SECONDS)

    def _check(self, place: TopicPartition, at: int) -> None:
        """Tell, once, that nothing comes, and fail when that has lasted for long."""
        waited = time.monotonic() - self._progress
        if waited > STALL_SECONDS:
            raise RocstreamError(
                f"{place.topic}, partition {place.partition}: nothing came for "
                f"{STALL_SECONDS:.0f} s, although more is there from offset {at} on; is the broker "
                f"at {self._servers} up?"
            )
        if waited > TELL_SECONDS and not self._told:
            self._told = True
            log.warning(
                "nothing comes from the broker, waiting for it",
                servers=self._servers,
                topic=place.topic,
                partition=place.partition,
                offset=at,
                at_most_s=STALL_SECONDS,
            )

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _start(self) -> None:
        client = AIOKafkaClient(**aiokafka(self._settings))
        silent.go_around(client)
        try:
            await client.bootstrap()
        except errors.KafkaConnectionError:
            await client.close()
            raise
        self._client = client
        self._places = SubscriptionState()
        self._fetcher = _fetchers().Fetcher(
            client,
            self._places,
            fetch_max_wait_ms=_WAIT_MS,
            max_partition_fetch_bytes=FETCH_BYTES,
            auto_offset_reset="none",
            isolation_level="read_committed",
            client_rack=self._settings.kafka.client_rack,
        )

    async def _assign(self, place: TopicPartition, at: int) -> None:
        # A broker that is away by now is asked again by the fetcher.
        await self._client.set_topics([place.topic])
        self._places.assign_from_user([place])
        self._places.seek(place, at)

    async def _next(self, place: TopicPartition, most: int) -> Run:
        found = await self._fetcher.fetched_records([place], _POLL_SECONDS, most)
        if place in found:
            run: Run = found[place]
            return run
        end = self._places.subscription.assignment.state_value(place).position
        return Run((), end, end)

    async def _leave(self) -> None:
        if self._client is None:
            return
        # A fetch that had not begun yet is awaited there after it was called off.
        with contextlib.suppress(asyncio.CancelledError):
            await self._fetcher.close()
        await self._client.close()


def _fetchers() -> ModuleType:
    """Return a copy of aiokafka's module that gives runs; others in the process keep theirs."""
    spec = importlib.util.find_spec(fetcher.__name__)
    if spec is None or spec.loader is None:
        raise ImportError(fetcher.__name__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    fetch.install(module)
    return module
