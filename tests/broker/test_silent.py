"""A broker that answers beside one that takes connections and is silent."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.metadata import MetadataResponse_v1

from worker.transport import silent

if TYPE_CHECKING:
    from collections.abc import Callable

    from jobs import Job

pytestmark = pytest.mark.broker

SILENT = 99


def test_who_leads_what_is_learned_from_a_broker_that_answers(
    new_job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    """aiokafka would wait for the silent one as long as a request may take, 30 s here."""
    job = new_job(partitions=1)
    topic = job.settings.topics.events
    monkeypatch.setattr(silent, "METADATA_SECONDS", 0.2)
    monkeypatch.setattr(silent.random, "sample", lambda nodes, _: sorted(nodes, reverse=True))

    async def update() -> bool:
        taken: list[asyncio.StreamWriter] = []

        async def say_nothing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            taken.append(writer)

        server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
        client = AIOKafkaClient(bootstrap_servers=job.servers, request_timeout_ms=30_000)
        silent.go_around(client)
        try:
            await client.bootstrap()
            known = [tuple(broker)[:3] for broker in client.cluster.brokers()]
            brokers = [(*broker, None) for broker in known]
            brokers.append((SILENT, *server.sockets[0].getsockname()[:2], None))
            client.cluster.update_metadata(MetadataResponse_v1(brokers, brokers[0][0], []))
            done = await asyncio.wait_for(client._metadata_update(client.cluster, {topic}), 15)
            assert taken
            return bool(done) and client.cluster.partitions_for_topic(topic) == {0}
        finally:
            await client.close()
            server.close()
            for writer in taken:
                writer.transport.abort()

    assert asyncio.run(update())
