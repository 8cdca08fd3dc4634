"""What a worker says while its join is not answered: real sockets, and answers that count."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.coordination import FindCoordinatorRequest
from aiokafka.protocol.group import JoinGroupRequest, SyncGroupRequest
from aiokafka.protocol.metadata import MetadataResponse_v1

from worker.transport import joining
from worker.transport.joining import AGAIN_PROBES, TELL_PROBES, probing
from worker.transport.outage import SLOW_LOOKS, TELL_LOOKS, install

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMING = "waiting for the group to form"
JOIN = JoinGroupRequest("job", 10_000, 60_000, "", None, "consumer", [("range", b"")])
SYNC = SyncGroupRequest("job", 1, "member", None, [])


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    monkeypatch.setattr(joining, "PROBE_SECONDS", 0.0)
    monkeypatch.setattr(joining, "TOPIC_LOOKS", 0)
    with structlog.testing.capture_logs() as lines:
        yield lines


@pytest.mark.parametrize("told_after", [1, 3, 100])
def test_a_topic_is_asked_for_until_it_is_known_or_gone(
    monkeypatch: pytest.MonkeyPatch, told_after: int
) -> None:
    monkeypatch.setattr(joining, "TOPIC_PAUSE_SECONDS", 0.0)

    async def know() -> int:
        client = AIOKafkaClient(bootstrap_servers="127.0.0.1:9")
        asked = 0

        async def update() -> None:
            nonlocal asked
            asked += 1
            topics = [(0, "events", False, [(0, 0, 1, [1], [1])])] if asked >= told_after else []
            node = (1, "127.0.0.1", 9, None)
            client.cluster.update_metadata(MetadataResponse_v1([node], 1, topics))

        client.force_metadata_update = update
        await joining.know_topic(client, "events")
        return asked

    assert asyncio.run(know()) == min(told_after, joining.TOPIC_LOOKS)


@pytest.mark.parametrize("request_", [JOIN, SYNC])
def test_a_coordinator_that_is_silent_during_a_join_is_told(said: list[Any], request_: Any) -> None:
    async def join_in_vain() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            client = AIOKafkaClient(bootstrap_servers=f"127.0.0.1:{port}")
            client.cluster.update_metadata(
                MetadataResponse_v1([(1, "127.0.0.1", port, None)], 1, [])
            )
            told = install(client, "events", "job")
            joins = asyncio.create_task(client.send(1, request_))
            for _ in range(SLOW_LOOKS + TELL_LOOKS):
                await asyncio.sleep(0.01)
                told.look([])
            joins.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await joins
            told.look([])
            await client.close()

    asyncio.run(join_in_vain())
    waiting, back = said
    assert waiting["event"] == "waiting for the broker to read from"
    assert (waiting["error"], waiting["coordinator_of"]) == ("it does not answer", "job")
    assert back["event"] == "the broker is back"


async def join_until(enough: int, *, failing: int = 0) -> tuple[int, int]:
    """Be asked so often while a join is under way; return how often, and how many answers came."""
    asked = answered = 0
    done = asyncio.Event()

    async def ask(request: Any) -> None:
        nonlocal asked
        assert isinstance(request, FindCoordinatorRequest)
        asked += 1
        if asked == enough:
            done.set()
        if asked <= failing:
            raise KafkaConnectionError

    def on_answer() -> None:
        nonlocal answered
        answered += 1

    async with probing(ask, "job", on_answer):
        await done.wait()
    await asyncio.sleep(0.01)
    return asked, answered


def test_a_group_that_does_not_form_is_told_and_told_again(said: list[Any]) -> None:
    assert asyncio.run(join_until(TELL_PROBES + 2 * AGAIN_PROBES + 1))[1] > 2 * AGAIN_PROBES
    assert [line["event"] for line in said] == [FORMING] * 3
    assert said[0]["group"] == "job"


def test_a_group_that_forms_in_time_is_not_told(said: list[Any]) -> None:
    asked, _ = asyncio.run(join_until(TELL_PROBES - 1))
    assert asked == TELL_PROBES - 1
    assert not said


def test_a_coordinator_that_is_lost_says_nothing_of_the_group(said: list[Any]) -> None:
    assert asyncio.run(join_until(3 * TELL_PROBES, failing=3 * TELL_PROBES))[1] == 0
    assert not said


def test_a_join_counts_whatever_its_probe_runs_into(said: list[Any]) -> None:
    async def ask(_: Any) -> None:
        raise OSError("no way")

    async def join() -> str:
        async with probing(ask, "job", lambda: None):
            await asyncio.sleep(0.01)
            return "joined"

    assert asyncio.run(join()) == "joined"
    (line,) = said
    assert "no way" in line["error"]
