"""What a worker says while brokers are away: a real client, and sockets that do not answer."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import ssl
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from aiokafka import errors
from aiokafka.client import AIOKafkaClient
from aiokafka.cluster import ClusterMetadata
from aiokafka.protocol.coordination import FindCoordinatorRequest
from aiokafka.protocol.fetch import FetchRequest, FetchResponse_v4
from aiokafka.protocol.metadata import MetadataResponse_v1
from aiokafka.protocol.offset import OffsetRequest, OffsetResponse_v2
from jobs import free_port

from worker.transport.outage import AGAIN_LOOKS, SLOW_LOOKS, TELL_LOOKS, Outage, install

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

WAITING, BACK = "waiting for the broker to read from", "the broker is back"
LOST = "a broker was not ready"
REFUSED = f"[Errno {errno.ECONNREFUSED}]"
OURS = (0, 1)


@pytest.fixture
def said() -> Iterator[list[Any]]:
    with structlog.testing.capture_logs() as lines:
        yield lines


@contextlib.contextmanager
def filtered(outage: Outage, level: int = logging.WARNING) -> Iterator[logging.Logger]:
    logger = logging.getLogger("aiokafka")
    before = logger.level
    logger.setLevel(level)
    logger.addFilter(outage)
    try:
        yield logger
    finally:
        logger.removeFilter(outage)
        logger.setLevel(before)


def learn(cluster: ClusterMetadata, port: int, leader: int = 1) -> None:
    """Have it know a port as that of broker 1, and who leads what there is."""
    partitions = [(0, number, leader, [1], [1]) for number in OURS]
    cluster.update_metadata(
        MetadataResponse_v1([(1, "127.0.0.1", port, None)], 1, [(0, "events", False, partitions)])
    )


def untold(leader: int = 1) -> Outage:
    cluster = ClusterMetadata()
    learn(cluster, 9092, leader)
    return Outage("events", "job", cluster)


@contextlib.asynccontextmanager
async def client_of(port: int) -> AsyncIterator[tuple[AIOKafkaClient, Outage]]:
    client = AIOKafkaClient(bootstrap_servers=f"127.0.0.1:{port}")
    learn(client.cluster, port)
    try:
        yield client, install(client, "events", "job")
    finally:
        await client.close()


def fetch(*numbers: int) -> FetchRequest:
    return FetchRequest(20, 1, 50, 0, [("events", [(number, 0, 40) for number in numbers])])


async def fail(client: AIOKafkaClient, *requests: Any) -> None:
    for request in requests:
        with pytest.raises(errors.KafkaError):
            await client.send(1, request)


def look(outage: Outage, times: int, assigned: tuple[int, ...] = OURS) -> None:
    for _ in range(times):
        outage.look(assigned)


def answered(outage: Outage, request: FetchRequest, code: int = 0) -> None:
    """Have a broker answer for all partitions of a fetch."""
    partitions = [(number, code, 0, 0, [], b"") for number, *_ in request.topics[0][1]]
    asked = outage.ask(1, request)
    outage.end(asked)
    outage.answer(asked, request, FetchResponse_v4(0, [("events", partitions)]))


async def lose(*requests: Any) -> tuple[Outage, int]:
    """Return what knows that nobody listens where the broker was, and the port."""
    port = free_port()
    async with client_of(port) as (client, told):
        with filtered(told):
            await fail(client, *requests)
    return told, port


def test_a_broker_that_is_away_is_told_once_with_what_waits_for_it(
    said: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    told, port = asyncio.run(lose(fetch(0), fetch(1), FindCoordinatorRequest("job", 0)))
    look(told, TELL_LOOKS - 1)
    assert not said
    look(told, AGAIN_LOOKS)
    (line,) = said
    assert (line["event"], line["log_level"]) == (WAITING, "warning")
    assert line["brokers"] == [f"127.0.0.1:{port}/1"]
    assert REFUSED in line["error"]
    assert (line["partitions"], line["coordinator_of"]) == ([0, 1], "job")
    assert line["lines_held_back"] >= 3
    assert not caplog.records


def test_an_outage_that_lasts_is_told_again(said: list[Any]) -> None:
    told, _ = asyncio.run(lose(fetch(0)))
    look(told, TELL_LOOKS + 2 * AGAIN_LOOKS)
    assert [line["event"] for line in said] == [WAITING] * 3
    assert all("waited_s" in line for line in said)


def test_the_end_is_told_once_all_is_read_again(said: list[Any]) -> None:
    told, _ = asyncio.run(lose(fetch(0), fetch(1)))
    look(told, TELL_LOOKS)
    answered(told, fetch(0))
    look(told, 1)
    assert [line["event"] for line in said] == [WAITING]
    answered(told, fetch(1))
    look(told, 3 * AGAIN_LOOKS)
    assert [line["event"] for line in said] == [WAITING, BACK]
    assert said[1]["log_level"] == "info"
    assert "waited_s" in said[1]


def test_a_leader_that_is_asked_for_offsets_is_no_coordinator(said: list[Any]) -> None:
    request = OffsetRequest(-1, 1, [("events", [(0, -2)])])
    told, _ = asyncio.run(lose(request))
    look(told, TELL_LOOKS)
    asked = told.ask(1, request)
    told.end(asked)
    told.answer(asked, request, OffsetResponse_v2(0, [("events", [(0, 0, -1, 40)])]))
    look(told, 1)
    waiting, back = said
    assert waiting["partitions"] == [0]
    assert "coordinator_of" not in waiting
    assert back["event"] == BACK


def test_a_partition_that_another_worker_has_is_not_waited_for(said: list[Any]) -> None:
    told, _ = asyncio.run(lose(fetch(0), fetch(1)))
    answered(told, fetch(0))
    look(told, AGAIN_LOOKS, assigned=(0,))
    assert WAITING not in [line["event"] for line in said]


def test_a_leader_that_moves_is_no_outage_though_its_lines_are_not_lost(said: list[Any]) -> None:
    told, _ = asyncio.run(lose(fetch(0)))
    look(told, TELL_LOOKS - 1)
    answered(told, fetch(0))
    look(told, 2 * AGAIN_LOOKS)
    (line,) = said
    assert line["event"] == LOST
    assert REFUSED in line["error"]
    assert line["lines_held_back"] >= 1


def refuse(logger: logging.Logger) -> None:
    error = ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
    logger.error("Unable connect to node with id %s: %s", 2, error)


@pytest.mark.parametrize("cause", [False, True])
def test_what_a_lost_coordinator_was_lost_for_is_told_in_words(
    said: list[Any], *, cause: bool
) -> None:
    told = untold()
    with filtered(told) as logger:
        if cause:
            refuse(logger)
        logger.warning("Marking the coordinator dead (node %s)for group %s.", 1, "job")
        look(told, AGAIN_LOOKS)
    (line,) = said
    assert line["event"] == LOST
    assert (REFUSED if cause else "the connection to the group's coordinator") in line["error"]


@pytest.mark.parametrize("pace", [1, 3, 5, 10])
def test_lines_that_keep_coming_are_told_every_half_minute(said: list[Any], pace: int) -> None:
    told = untold()
    with filtered(told) as logger:
        for number in range(10 * AGAIN_LOOKS):
            if number % pace == 0:
                refuse(logger)
            look(told, 1)
    assert [line["event"] for line in said] == [LOST] * 10
    assert said[-1]["lines_held_back"] == AGAIN_LOOKS / pace


def test_a_broker_that_comes_and_goes_is_not_passed_over(said: list[Any]) -> None:
    told = untold()
    with filtered(told) as logger:
        for _ in range(AGAIN_LOOKS):
            refuse(logger)
            told.lose([0], 1, errors.NodeNotReadyError())
            look(told, TELL_LOOKS - 1)
            answered(told, fetch(0))
            look(told, 1)
    assert [line["event"] for line in said] == [LOST] * TELL_LOOKS


def test_a_broker_that_knows_no_leader_is_waited_for(said: list[Any]) -> None:
    told = untold()
    answered(told, fetch(0), errors.NotLeaderForPartitionError.errno)
    look(told, TELL_LOOKS)
    (line,) = said
    assert line["partitions"] == [0]
    assert "NotLeader" in line["error"]


def test_a_partition_without_a_leader_is_told_though_nobody_can_be_asked(said: list[Any]) -> None:
    told = untold(leader=-1)
    look(told, TELL_LOOKS)
    (line,) = said
    assert line["partitions"] == [0, 1]
    assert "leads" in line["error"]


def test_a_broker_that_is_silent_is_told(said: list[Any]) -> None:
    async def ask_in_vain() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            async with client_of(silent.getsockname()[1]) as (client, told):
                asking = asyncio.create_task(client.send(1, fetch(1)))
                await asyncio.sleep(0)
                look(told, SLOW_LOOKS + TELL_LOOKS - 2)
                assert not said
                look(told, 1)
                asking.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await asking
                look(told, 1)

    asyncio.run(ask_in_vain())
    waiting, back = said
    assert waiting["error"] == "it does not answer"
    assert waiting["partitions"] == [1]
    assert back["event"] == BACK


def test_a_worker_that_finds_no_broker_at_its_start_says_where_it_looked(said: list[Any]) -> None:
    port = free_port()

    async def start() -> Outage:
        async with client_of(port) as (client, told):
            with filtered(told), pytest.raises(errors.KafkaConnectionError) as raised:
                await client.bootstrap()
            told.fail_to_start(raised.value)
            return told

    told = asyncio.run(start())
    look(told, TELL_LOOKS, assigned=())
    told.started()
    look(told, 1, assigned=())
    assert [line["event"] for line in said] == [WAITING, BACK]
    assert said[0]["brokers"] == [f"127.0.0.1:{port}"]
    assert REFUSED in said[0]["error"]


def test_at_debug_no_line_is_held_back(caplog: pytest.LogCaptureFixture) -> None:
    async def ask() -> None:
        async with client_of(free_port()) as (client, told):
            with filtered(told, logging.DEBUG):
                await fail(client, fetch(0))

    asyncio.run(ask())
    assert any("Unable connect to node with id 1" in one.getMessage() for one in caplog.records)


@pytest.mark.parametrize(
    "error",
    [
        errors.AuthenticationFailedError("bad password"),
        errors.SaslAuthenticationFailed("bad password"),
        errors.TopicAuthorizationFailedError("events"),
        ssl.SSLCertVerificationError("certificate has expired"),
    ],
)
def test_other_errors_stay_as_they_are(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    with filtered(untold()) as logger:
        for _ in range(3):
            logger.error("Unable connect to node with id %s: %s", 1, error)
        logger.warning("Not authorized to read from topic %s.", "events")
    assert len(caplog.records) == 4
