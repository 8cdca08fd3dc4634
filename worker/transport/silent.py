"""A broker that is silent keeps nobody from the others: what aiokafka's clients do not see to.

Frozen, or behind a firewall that drops all, it takes a connection and answers nothing. aiokafka
makes one connection at a time, and asks one broker after the other who leads what, each for as long
as a request may take: a single silent broker holds up all that has to do with the others.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

import structlog
from aiokafka import client as clients
from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.errors import KafkaError

if TYPE_CHECKING:
    from aiokafka.cluster import ClusterMetadata

log = structlog.get_logger(__name__)

CONNECT_SECONDS: Final = 10.0
"""For a connection with TLS, versions and credentials: a broker that takes longer is silent."""

METADATA_SECONDS: Final = 3.0
"""How long a broker may take to tell who leads what, while there is another one to ask."""

_create_conn: Final = clients.create_conn


async def _connect(*where: Any, **how: Any) -> Any:
    async with asyncio.timeout(CONNECT_SECONDS):
        return await _create_conn(*where, **how)


def go_around(client: AIOKafkaClient) -> None:
    """Have a client reach each broker whether or not the others answer.

    Parameters
    ----------
    client
        Not started yet.
    """
    # All of the process: the class that looks it up there is aiokafka's.
    clients.create_conn = _connect
    get_conn, update = client._get_conn, client._metadata_update  # noqa: SLF001 - no other way in
    locks: defaultdict[tuple[int | str, ConnectionGroup], asyncio.Lock] = defaultdict(asyncio.Lock)
    # The one lock over all brokers; those here are of one each.
    client._get_conn_lock_value = nullcontext()  # noqa: SLF001

    async def get_conn_apart(
        node: int | str, *, group: ConnectionGroup = ConnectionGroup.DEFAULT, no_hint: bool = False
    ) -> Any:
        known = client._conns.get((node, group))  # noqa: SLF001
        if known is not None and known.connected():
            return known
        async with locks[node, group]:
            return await get_conn(node, group=group, no_hint=no_hint)

    async def update_from_any(cluster: ClusterMetadata, topics: set[str] | None) -> Any:
        if client.cluster.brokers() and await _ask_any(client, cluster, topics):
            return True
        # Nobody answered soon: once more, and with all patience.
        return await update(cluster, topics)

    client._get_conn = get_conn_apart  # noqa: SLF001
    client._metadata_update = update_from_any  # noqa: SLF001


async def _ask_any(
    client: AIOKafkaClient, cluster: ClusterMetadata, topics: set[str] | None
) -> bool:
    """Ask one broker after the other, each for a short time; tell whether one has answered."""
    request = clients.MetadataRequest(list(topics) if topics else None)
    nodes = [broker.nodeId for broker in client.cluster.brokers()]
    # The last one is asked with patience.
    for node in random.sample(nodes, len(nodes) - 1):
        try:
            async with asyncio.timeout(METADATA_SECONDS):
                connection = await client._get_conn(node)  # noqa: SLF001
                if connection is None:
                    continue
                found = await connection.send(request)
        except (KafkaError, TimeoutError) as error:
            log.debug("a broker did not tell who leads what", node=node, error=repr(error))
            continue
        if found.brokers:
            cluster.update_metadata(found)
            return True
    return False
