"""A broker that takes connections and answers nothing, and another one: real sockets."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest
from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.metadata import MetadataResponse_v1
from jobs import free_port

from worker.transport import silent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SILENT, OTHER = 1, 2
PATIENCE = 20.0


@contextlib.asynccontextmanager
async def client_of_two() -> AsyncIterator[AIOKafkaClient]:
    """Give a client that knows a silent broker, and one that is away and refuses connections."""
    taken: list[asyncio.StreamWriter] = []

    async def say_nothing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        taken.append(writer)

    server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = AIOKafkaClient(bootstrap_servers=f"127.0.0.1:{port}")
    brokers = [(SILENT, "127.0.0.1", port, None), (OTHER, "127.0.0.1", free_port(), None)]
    client.cluster.update_metadata(MetadataResponse_v1(brokers, SILENT, []))
    silent.go_around(client)
    try:
        yield client
    finally:
        await client.close()
        server.close()
        for writer in taken:
            writer.transport.abort()


def test_a_silent_broker_keeps_no_connection_to_another_one_waiting() -> None:
    async def connect() -> tuple[bool, bool]:
        async with client_of_two() as client:
            waiting = asyncio.create_task(client.ready(SILENT))
            await asyncio.sleep(0)
            other = await asyncio.wait_for(client.ready(OTHER), PATIENCE)
            begun = not waiting.done()
            waiting.cancel()
            return other, begun

    assert asyncio.run(connect()) == (False, True)


def test_a_silent_broker_is_given_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """By itself aiokafka would wait for 40 s."""
    monkeypatch.setattr(silent, "CONNECT_SECONDS", 0.05)

    async def connect() -> bool:
        async with client_of_two() as client:
            return bool(await asyncio.wait_for(client.ready(SILENT), PATIENCE))

    assert not asyncio.run(connect())


@pytest.mark.parametrize("first", [SILENT, OTHER])
def test_who_leads_what_is_asked_of_one_broker_for_a_short_time_and_then_of_all(
    monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    monkeypatch.setattr(silent, "METADATA_SECONDS", 0.05)
    monkeypatch.setattr(silent, "CONNECT_SECONDS", 0.1)
    monkeypatch.setattr(silent.random, "sample", lambda *_: [first])
    asked: list[int | str] = []

    async def update() -> bool:
        async with client_of_two() as client:
            get_conn = client._get_conn

            async def noted(node: int | str) -> object:
                asked.append(node)
                return await get_conn(node)

            client._get_conn = noted
            return bool(
                await asyncio.wait_for(client._metadata_update(client.cluster, set()), PATIENCE)
            )

    assert not asyncio.run(update())
    assert asked[0] == first
    assert set(asked[1:]) == {SILENT, OTHER}
