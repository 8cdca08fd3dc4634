"""How aiokafka's clients that are not Faust's reach the brokers: as the worker's consumer does.

None of them makes topics. aiokafka asks brokers to make what they are asked about and do not have,
as Kafka's brokers do unless told otherwise: a topic that was deleted would be there again at once.
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final

from aiokafka import client as clients
from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.metadata import MetadataRequest
from faust.transport.drivers.aiokafka import credentials_to_aiokafka_auth

from worker.credentials import faust_credentials

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from config import Settings


_CALL_MS: Final = 5_000


class Metadata(MetadataRequest):  # type: ignore[misc]
    """Asks about topics and has none made.

    Parameters
    ----------
    topics
        Names; None for all there are.
    """

    def __init__(self, topics: list[str] | None = None) -> None:
        super().__init__(topics, allow_auto_topic_creation=False)


def make_no_topics() -> None:
    """Have aiokafka's clients, all of the process, make no topics."""
    # The class is looked up there when a client asks; its version is pinned.
    clients.MetadataRequest = Metadata


def aiokafka(settings: Settings) -> dict[str, Any]:
    """Return what a client of aiokafka connects with. It holds the password: do not log it.

    Parameters
    ----------
    settings
        Of the job.
    """
    make_no_topics()
    kafka = settings.kafka
    return {
        "bootstrap_servers": list(kafka.bootstrap_servers),
        "client_id": kafka.client_id,
        **credentials_to_aiokafka_auth(faust_credentials(kafka.security)),
    }


@asynccontextmanager
async def asking(settings: Settings) -> AsyncIterator[AIOKafkaClient]:
    """Have a client for a few questions, each of which a broker has some seconds to answer."""
    client = AIOKafkaClient(request_timeout_ms=_CALL_MS, **aiokafka(settings))
    try:
        await client.bootstrap()
        yield client
    finally:
        await client.close()


@contextmanager
def quiet() -> Iterator[None]:
    """Keep aiokafka's own lines back, where what goes wrong is told in a sentence."""
    logger = logging.getLogger("aiokafka")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
