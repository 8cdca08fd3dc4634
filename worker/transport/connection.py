"""How aiokafka's clients that are not Faust's reach the brokers: as the worker's consumer does."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from faust.transport.drivers.aiokafka import credentials_to_aiokafka_auth

from worker.credentials import faust_credentials

if TYPE_CHECKING:
    from collections.abc import Iterator

    from config import Settings


def aiokafka(settings: Settings) -> dict[str, Any]:
    """Return what a client of aiokafka connects with. It holds the password: do not log it.

    Parameters
    ----------
    settings
        Of the job.
    """
    kafka = settings.kafka
    return {
        "bootstrap_servers": list(kafka.bootstrap_servers),
        "client_id": kafka.client_id,
        **credentials_to_aiokafka_auth(faust_credentials(kafka.security)),
    }


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
