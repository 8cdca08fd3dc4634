"""A fetch by the topic's id, as it goes over the wire, and to brokers that take none."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest
from aiokafka.protocol.fetch import FetchRequest, FetchRequest_v11

from worker.transport import by_id

ID = bytes(range(240, 256))
SPELLED = base64.b64encode(ID).decode().rstrip("=")
FETCH = 1


def asked(*topics: str) -> FetchRequest:
    return FetchRequest(20, 1, 50, 1, [(topic, [(3, 1_000, 40)]) for topic in topics], "rack")


class Client:
    """Answers each fetch with what it was made with, in the words of a broker."""

    def __init__(self, highest: int, answer: bytes) -> None:
        self.highest = highest
        self.answer = answer
        self.sent: Any = None

    async def send(self, node: int, request: Any, *, group: Any) -> Any:  # noqa: ARG002
        self.sent = request.prepare({FETCH: (4, self.highest)})
        return self.sent.RESPONSE_TYPE.decode(self.answer)


def answer(error: int, records: bytes = b"records") -> bytes:
    """An answer of version 13, byte by byte as Kafka's FetchResponse.json has it."""
    partition = (
        (3).to_bytes(4, "big")
        + error.to_bytes(2, "big")
        + (2_000).to_bytes(8, "big")  # high watermark
        + (1_900).to_bytes(8, "big")  # last stable offset
        + (7).to_bytes(8, "big")  # where the log starts
        # One aborted transaction.
        + (b"\x02" + (5).to_bytes(8, "big") + (6).to_bytes(8, "big") + b"\x00")
        + b"\xff\xff\xff\xff"  # no preferred replica
        + bytes([len(records) + 1])
        + records
        # The diverging epoch, a tagged field that only replicas care for.
        + b"\x01\x00\x03abc"
    )
    return bytes(10) + b"\x02" + ID + b"\x02" + partition + b"\x00" + b"\x00"


def fetched(client: Client, *topics: str) -> tuple[Any, int]:
    doubts = []
    spoken: Any = client
    by_id.install(spoken, {"events": SPELLED}, lambda: doubts.append(1))
    return asyncio.run(spoken.send(0, asked(*topics))), len(doubts)


def test_what_is_sent_names_no_topic() -> None:
    client = Client(17, answer(0))
    fetched(client, "events")
    sent = client.sent.encode()
    assert client.sent.API_VERSION == 13
    assert client.sent.FLEXIBLE_VERSION
    head = b"\xff\xff\xff\xff" + b"".join(n.to_bytes(4, "big") for n in (20, 1, 50)) + b"\x01"
    session = bytes(4) + b"\xff\xff\xff\xff"
    partition = (
        (3).to_bytes(4, "big")
        + b"\xff" * 4
        + (1_000).to_bytes(8, "big")
        + b"\xff" * 12
        + (40).to_bytes(4, "big")
        + b"\x00"
    )
    topic = b"\x02" + ID + b"\x02" + partition + b"\x00"
    assert sent == head + session + topic + b"\x01" + b"\x05rack" + b"\x00"


def test_an_answer_has_the_names_and_the_order_that_the_fetcher_knows() -> None:
    response, doubts = fetched(Client(13, answer(0)), "events")
    assert response.topics == [("events", [(3, 0, 2_000, 1_900, 7, [(5, 6)], -1, b"records")])]
    assert doubts == 0


@pytest.mark.parametrize("error", [3, 100, 103])
def test_a_topic_that_is_not_there_is_doubted_and_its_leader_looked_for(error: int) -> None:
    response, doubts = fetched(Client(13, answer(error, b"")), "events")
    assert [one[1] for _, partitions in response.topics for one in partitions] == [3]
    assert doubts == 1


@pytest.mark.parametrize(("highest", "topics"), [(12, ["events"]), (17, ["events", "other"])])
def test_without_an_id_that_the_broker_takes_it_is_asked_by_name(
    highest: int, topics: list[str]
) -> None:
    prepared = asked(*topics).prepare({FETCH: (4, highest)})
    assert isinstance(prepared, FetchRequest_v11)
    request = by_id.Fetch(asked(*topics), {"events": ID})
    assert request.prepare({FETCH: (4, highest)}).encode() == prepared.encode()


def test_ids_in_the_spelling_of_either_client_are_the_same() -> None:
    java = base64.urlsafe_b64encode(ID).decode().rstrip("=")
    assert java != SPELLED
    assert by_id.raw(java) == by_id.raw(SPELLED) == ID
