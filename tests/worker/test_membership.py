"""A worker with an instance id names it in whatever may tell it that another one has taken it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiokafka.protocol.commit import OffsetCommitRequest
from aiokafka.protocol.group import HeartbeatRequest

from worker.transport import membership

GROUP, MEMBER, INSTANCE, GENERATION = "fraud", "fraud-1", "pod-0", 7
FENCED, UNKNOWN_MEMBER = 82, 25

BEAT = HeartbeatRequest(GROUP, GENERATION, MEMBER)
COMMIT = OffsetCommitRequest(
    GROUP, GENERATION, MEMBER, -1, [("events", [(0, 1_000, "rocstream"), (1, 2_000, "rocstream")])]
)
REQUESTS = pytest.mark.parametrize("request_", [BEAT, COMMIT], ids=["heartbeat", "commit"])


def text(value: str) -> bytes:
    return len(value).to_bytes(2, "big") + value.encode()


def number(value: int, size: int) -> bytes:
    return value.to_bytes(size, "big", signed=True)


NAMED = {
    BEAT: text(GROUP) + number(GENERATION, 4) + text(MEMBER) + text(INSTANCE),
    COMMIT: text(GROUP)
    + number(GENERATION, 4)
    + text(MEMBER)
    + text(INSTANCE)
    + (number(1, 4) + text("events") + number(2, 4))
    + (number(0, 4) + number(1_000, 8) + number(-1, 4) + text("rocstream"))
    + (number(1, 4) + number(2_000, 8) + number(-1, 4) + text("rocstream")),
}
"""Byte by byte as Kafka's HeartbeatRequest.json (3) and OffsetCommitRequest.json (7) say."""


class Client:
    """Answers with an error, in the words of a broker that takes versions up to a highest one."""

    def __init__(self, error: int, highest: int) -> None:
        self.error, self.highest = error, highest
        self.sent: Any = None

    async def send(self, node: int, request: Any, *, group: Any) -> Any:  # noqa: ARG002
        self.sent = request.prepare({request.API_KEY: (0, self.highest)})
        error = number(self.error, 2)
        if request.API_KEY == BEAT.API_KEY:
            answer = number(0, 4) + error
        else:
            # The first partition is fine.
            places = number(0, 4) + number(0, 2) + number(1, 4) + error
            answer = number(0, 4) + number(1, 4) + text("events") + number(2, 4) + places
        return self.sent.RESPONSE_TYPE.decode(answer)


def ask(client: Client, request: Any) -> tuple[Any, int]:
    """Send a request; return the answer, None where none comes, and how often it was fenced."""
    fenced: list[None] = []

    async def send() -> Any:
        membership.install(client, INSTANCE, lambda: fenced.append(None))
        asked = asyncio.ensure_future(client.send(0, request, group=0))
        for _ in range(3):
            await asyncio.sleep(0)
        asked.cancel()
        return (await asyncio.gather(asked, return_exceptions=True))[0]

    answer = asyncio.run(send())
    return None if isinstance(answer, asyncio.CancelledError) else answer, len(fenced)


@REQUESTS
def test_requests_name_the_instance(request_: Any) -> None:
    client = Client(0, highest=9)
    answer, fenced = ask(client, request_)
    assert client.sent.encode() == NAMED[request_]
    assert membership.errors(answer) == {0}
    assert fenced == 0


@REQUESTS
def test_who_was_replaced_is_told_and_hears_no_more(request_: Any) -> None:
    assert ask(Client(FENCED, highest=9), request_) == (None, 1)


@REQUESTS
def test_a_member_that_was_only_forgotten_is_aiokafkas_business(request_: Any) -> None:
    answer, fenced = ask(Client(UNKNOWN_MEMBER, highest=9), request_)
    assert UNKNOWN_MEMBER in membership.errors(answer)
    assert fenced == 0


@pytest.mark.parametrize(
    "request_",
    [HeartbeatRequest(GROUP, -1, ""), OffsetCommitRequest(GROUP, -1, "", -1, COMMIT._topics)],
    ids=["heartbeat", "commit"],
)
def test_a_member_that_joins_anew_names_no_instance_until_it_has_an_id(request_: Any) -> None:
    """A broker would compare the instance's member with none, and answer that it is replaced."""
    client = Client(UNKNOWN_MEMBER, highest=9)
    answer, fenced = ask(client, request_)
    assert INSTANCE.encode() not in client.sent.encode()
    assert UNKNOWN_MEMBER in membership.errors(answer)
    assert fenced == 0


@pytest.mark.parametrize(("request_", "highest"), [(BEAT, 1), (COMMIT, 3)])
def test_older_brokers_are_asked_as_ever(request_: Any, highest: int) -> None:
    client = Client(0, highest)
    ask(client, request_)
    version: int = client.sent.API_VERSION
    assert version == highest
    assert INSTANCE.encode() not in client.sent.encode()
