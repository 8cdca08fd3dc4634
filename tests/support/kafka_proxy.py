"""A way to a broker that can be hurt, answer by answer: it knows which request each one is to.

A broker tells its clients where to find it, so one that is reached through here advertises the
proxy's port on a listener of its own (`properties`); tests themselves take the other listener.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from enum import IntEnum
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

HOST: Final = "127.0.0.1"


class Api(IntEnum):
    """Kafka's numbers of requests."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    SYNC_GROUP = 14
    API_VERSIONS = 18
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS = 24
    END_TXN = 26


def properties(direct: int, controller: int, behind: int, proxy: int) -> dict[str, str]:
    """Return properties of a broker with a listener `direct`, and one `behind` the proxy."""
    ports = {"PLAINTEXT": direct, "INTERNAL": behind, "CONTROLLER": controller}
    return {
        "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items()),
        "advertised.listeners": f"PLAINTEXT://{HOST}:{direct},INTERNAL://{HOST}:{proxy}",
    }


class Proxy:
    """Passes on what clients ask and a broker answers, but for what it is told to hurt.

    Parameters
    ----------
    port, broker
        Where it listens, and where the broker does.
    """

    def __init__(self, port: int, broker: int) -> None:
        self.address = f"{HOST}:{port}"
        self.hurt: Counter[int] = Counter()
        self.passed: Counter[int] = Counter()
        self._port, self._broker = port, broker
        self._swallowed: frozenset[int] = frozenset()
        self._cut: frozenset[int] = frozenset()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._ways: dict[_Way, asyncio.Task[None]] = {}
        self._server: asyncio.Server | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._listen())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def swallow(self, *apis: int) -> None:
        """Let no answer to these come any more, nor what is behind it on its connection.

        Requests are delivered. The connection stays silent for good, as one does whose way was
        lost, also after `heal`.
        """
        self._swallowed |= frozenset(apis)

    def cut(self, *apis: int) -> None:
        """Close the connection in the place of an answer to these; requests are delivered."""
        self._cut |= frozenset(apis)

    def cut_all(self) -> None:
        """Close all connections there are."""
        self._loop.call_soon_threadsafe(lambda: [way.close() for way in list(self._ways)])

    def heal(self) -> None:
        """Hurt nothing any more."""
        self._swallowed = self._cut = frozenset()

    def judge(self, api: int) -> str:
        """Return what to do with an answer: "pass", "swallow" or "cut"."""
        verdict = "swallow" if api in self._swallowed else "cut" if api in self._cut else "pass"
        (self.passed if verdict == "pass" else self.hurt)[api] += 1
        return verdict

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._connect, HOST, self._port)

    async def _connect(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        try:
            broker, to_broker = await asyncio.open_connection(HOST, self._broker)
        except OSError:
            to_client.transport.abort()
            return
        way = _Way(self, to_client, to_broker)
        task = asyncio.current_task()
        assert task is not None
        self._ways[way] = task
        try:
            await asyncio.gather(
                _pump(client, to_broker, way.ask, way), _pump(broker, to_client, way.answer, way)
            )
        finally:
            way.close()
            del self._ways[way]

    async def _end(self) -> None:
        if self._server is not None:
            self._server.close()
        ways = dict(self._ways)
        for way in ways:
            way.close()
        await asyncio.gather(*ways.values())

    def _do(self, work: Awaitable[None]) -> None:
        async def done() -> None:
            await work

        asyncio.run_coroutine_threadsafe(done(), self._loop).result(10)


class _Way:
    """One client's connection through the proxy."""

    def __init__(
        self, proxy: Proxy, to_client: asyncio.StreamWriter, to_broker: asyncio.StreamWriter
    ) -> None:
        self._proxy = proxy
        self._ends = (to_client, to_broker)
        self._asked: dict[bytes, int] = {}
        self._silent = False

    def ask(self, request: bytes) -> bool:
        """Take note of what a request is; always passed on."""
        self._asked[request[4:8]] = int.from_bytes(request[:2], "big")
        return True

    def answer(self, response: bytes) -> bool:
        """Tell whether an answer is passed on."""
        verdict = self._proxy.judge(self._asked.pop(response[:4], -1))
        if verdict == "cut":
            self.close()
        self._silent = self._silent or verdict != "pass"
        return not self._silent

    def close(self) -> None:
        """Close both ends at once."""
        for end in self._ends:
            end.transport.abort()


async def _pump(
    source: asyncio.StreamReader,
    sink: asyncio.StreamWriter,
    pass_on: Callable[[bytes], bool],
    way: _Way,
) -> None:
    """Pass frames on until either end is closed."""
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            length = await source.readexactly(4)
            frame = await source.readexactly(int.from_bytes(length, "big"))
            if pass_on(frame):
                sink.write(length + frame)
                await sink.drain()
    way.close()
