"""A broker is asked for events once in a while, and may hold a fetch for as long as none waits."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.group import HeartbeatRequest

from worker.transport import pace

if TYPE_CHECKING:
    import pytest


def fetch() -> FetchRequest:
    return FetchRequest(500, 1, 1 << 20, 1, [("events", [(0, 7, 1 << 20)])])


class Consumer:
    """What the pace knows of aiokafka's consumer; writes down what is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, Any]] = []
        self._client = SimpleNamespace(send=self._send)
        self._fetcher = SimpleNamespace(_records={})

    async def _send(self, node: int, request: Any, **_: object) -> None:
        self.sent.append((node, request))


def paced(interval: float) -> Any:
    consumer: Any = Consumer()
    pace.install(consumer, interval)
    return consumer


def test_the_next_fetch_to_a_broker_waits_and_nothing_else_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pace, "ROUND_SECONDS", 3600.0)

    async def send() -> list[tuple[int, type]]:
        consumer = paced(1e6)
        client = consumer._client
        await client.send(1, fetch())
        second = asyncio.create_task(client.send(1, fetch()))
        await asyncio.sleep(0)
        await client.send(2, fetch())
        await client.send(1, HeartbeatRequest("group", 1, "member"))
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        return [(node, type(request)) for node, request in consumer.sent]

    assert asyncio.run(send()) == [(1, FetchRequest), (2, FetchRequest), (1, HeartbeatRequest)]


def test_a_fetch_that_waited_is_sent_at_last() -> None:
    async def send() -> int:
        consumer = paced(0.001)
        for _ in range(3):
            await consumer._client.send(1, fetch())
        return len(consumer.sent)

    assert asyncio.run(send()) == 3


def test_a_broker_may_hold_a_fetch_for_longer_where_no_partition_waits_for_its_end() -> None:
    async def send() -> list[int]:
        consumer = paced(0.001)
        await consumer._client.send(1, fetch())
        consumer._fetcher._records["events-1"] = "not taken yet"
        await consumer._client.send(2, fetch())
        return [request._max_wait_ms for _, request in consumer.sent]

    assert asyncio.run(send()) == [pace.LONG_WAIT_MS, pace.SHORT_WAIT_MS]
