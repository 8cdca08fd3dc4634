"""A fetch by the topic's id, as it goes over the wire, and to brokers that take none."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest
from aiokafka.protocol.fetch import FetchRequest, FetchRequest_v11

from worker.transport import by_id
from worker.transport.fetch import Read

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


def answer(error: int, records: bytes = b"records", *, diverging: bool = False) -> bytes:
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
        # The diverging epoch, a field with the tag 0 that is there only if there is one: an epoch,
        # an offset, no tagged fields of its own. Where there is none, a later field that we ignore.
        + (b"\x01\x00\x0d" + bytes(4) + bytes(8) + b"\x00" if diverging else b"\x01\x05\x03abc")
    )
    return bytes(10) + b"\x02" + ID + b"\x02" + partition + b"\x00" + b"\x00"


class Reading:
    """Knows the leader epoch of what was read, and takes note of what is told it of logs."""

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch
        self.judged: list[tuple[dict[int, Read], list[int]]] = []

    def epoch(self, partition: int, offset: int) -> int:
        assert (partition, offset) == (3, 1_000)
        return self._epoch

    async def judge(self, doubts: dict[int, Read], out_of_range: list[int]) -> None:
        self.judged.append((doubts, out_of_range))


def fetched(client: Client, *topics: str, reading: Reading | None = None) -> tuple[Any, int]:
    doubts = []
    spoken: Any = client
    divergence: Any = reading or Reading(-1)
    by_id.install(spoken, "events", SPELLED, lambda: doubts.append(1), divergence)
    return asyncio.run(spoken.send(0, asked(*topics))), len(doubts)


@pytest.mark.parametrize("epoch", [-1, 5])
def test_what_is_sent_names_no_topic_but_the_epoch_of_what_was_read(epoch: int) -> None:
    client = Client(17, answer(0))
    fetched(client, "events", reading=Reading(epoch))
    sent = client.sent.encode()
    assert client.sent.API_VERSION == 13
    assert client.sent.FLEXIBLE_VERSION
    head = b"\xff\xff\xff\xff" + b"".join(n.to_bytes(4, "big") for n in (20, 1, 50)) + b"\x01"
    session = bytes(4) + b"\xff\xff\xff\xff"
    partition = (
        (3).to_bytes(4, "big")
        + b"\xff" * 4
        + (1_000).to_bytes(8, "big")
        + epoch.to_bytes(4, "big", signed=True)
        + b"\xff" * 8
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


@pytest.mark.parametrize(("error", "diverging"), [(0, True), (1, False)])
def test_a_log_without_what_was_read_gives_nothing_and_its_leader_is_asked(
    error: int, *, diverging: bool
) -> None:
    """For aiokafka it is one that does not lead, so that it looks who does, and fetches again."""
    reading = Reading(5)
    response, doubts = fetched(
        Client(13, answer(error, b"", diverging=diverging)), "events", reading=reading
    )
    assert response.topics == [("events", [(3, 6, 2_000, 1_900, 7, [(5, 6)], -1, b"")])]
    assert reading.judged == [({3: Read(1_000, 5)}, [] if diverging else [3])]
    assert doubts == 0


def test_an_offset_that_is_not_there_stays_so_where_no_epoch_was_told() -> None:
    reading = Reading(-1)
    response, _ = fetched(Client(13, answer(1, b"")), "events", reading=reading)
    assert [one[1] for _, partitions in response.topics for one in partitions] == [1]
    assert reading.judged == []


@pytest.mark.parametrize(("highest", "topics"), [(12, ["events"]), (17, ["events", "other"])])
def test_without_an_id_that_the_broker_takes_it_is_asked_by_name(
    highest: int, topics: list[str]
) -> None:
    prepared = asked(*topics).prepare({FETCH: (4, highest)})
    assert isinstance(prepared, FetchRequest_v11)
    request = by_id.Fetch(asked(*topics), {"events": ID}, {3: Read(1_000, 5)})
    assert request.prepare({FETCH: (4, highest)}).encode() == prepared.encode()


def test_ids_in_the_spelling_of_either_client_are_the_same() -> None:
    java = base64.urlsafe_b64encode(ID).decode().rstrip("=")
    assert java != SPELLED
    assert by_id.raw(java) == by_id.raw(SPELLED) == ID
