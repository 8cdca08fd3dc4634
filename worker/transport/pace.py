"""When fetches are sent, and how long a broker may hold them: a small load shall cost little.

aiokafka asks again as soon as an answer was taken. While events come one by one each of them then
costs a round: a request, an answer, a run for each partition on its way through Faust, and a batch
of the pipeline. Here a broker is asked once in a while; what came meanwhile comes in one answer.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.protocol.fetch import FetchRequest

if TYPE_CHECKING:
    from aiokafka import AIOKafkaConsumer

ROUNDS: Final = 20
"""Fetches that a broker gets in the time between two transactions, at the most: half of what lies
between two of them is what an update may come later for it."""

ROUND_SECONDS: Final = 0.02
"""What lies between two at the most, however seldom transactions are."""

SHORT_WAIT_MS: Final = 20
"""How long a broker may hold a fetch back for want of data, where another partition waits for its
end to be asked for: a fetch blocks the next one to the same broker."""

LONG_WAIT_MS: Final = 100
"""The same where none waits. Data that comes ends it at once, but what is asked for over the same
connection when tasks are opened waits for it."""


def install(consumer: AIOKafkaConsumer, interval: float) -> None:
    """Have a consumer's fetches paced.

    Parameters
    ----------
    consumer
        Not started yet.
    interval
        Seconds between the starts of two transactions of a task, at the least.
    """
    client: AIOKafkaClient = consumer._client  # noqa: SLF001 - aiokafka has no way in
    send = client.send
    pause = min(interval / ROUNDS, ROUND_SECONDS)
    next_round: dict[int, float] = {}

    async def send_paced(
        node: int, request: Any, *, group: ConnectionGroup = ConnectionGroup.DEFAULT
    ) -> Any:
        if type(request) is FetchRequest:
            loop = asyncio.get_running_loop()
            if (wait := next_round.get(node, 0.0) - loop.time()) > 0:
                await asyncio.sleep(wait)
            next_round[node] = loop.time() + pause
            # What was fetched and not taken yet keeps its partition out of the fetch.
            left_out = consumer._fetcher._records  # noqa: SLF001
            request._max_wait_ms = SHORT_WAIT_MS if left_out else LONG_WAIT_MS  # noqa: SLF001
        return await send(node, request, group=group)

    client.send = send_paced
