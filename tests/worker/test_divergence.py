"""Whether a log still holds what was read of it: what leaders tell, and what follows from it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka.errors import IncompatibleBrokerVersion, KafkaConnectionError
from hypothesis import given
from hypothesis import strategies as st

from config.errors import DecisionError
from worker.pages import Cursor
from worker.transport import epochs, footing
from worker.transport.changelog import Extent
from worker.transport.divergence import Divergence
from worker.transport.epochs import NOT_TOLD, End
from worker.transport.fetch import Read

if TYPE_CHECKING:
    from collections.abc import Mapping

EPOCHS = 23
NOT_LEADER, UNAUTHORIZED = 6, 29


class Leader:
    """A partition's log, with its leaders' epochs kept as Kafka keeps them.

    After ``LeaderEpochFileCache``: an epoch begins where the log ended when its leader came; one
    without records is forgotten when the next begins at the same place.
    """

    def __init__(self) -> None:
        self.records: list[tuple[int, int]] = []
        self.start = 0
        self.begins: dict[int, int] = {}
        self.epoch = -1
        self._made = 0

    def elect(self, *, lost: int = 0) -> None:
        """Have another leader, one that lacks the last records, if any; up to the log's start."""
        kept = max(len(self.records) - lost, self.start)
        del self.records[kept:]
        self.epoch += 1
        self.begins = {epoch: at for epoch, at in self.begins.items() if at < kept}
        self.begins[self.epoch] = kept

    def append(self, count: int) -> None:
        """Take records, or markers: they are the same here."""
        for _ in range(count):
            self._made += 1
            self.records.append((self.epoch, self._made))

    def delete(self, count: int) -> None:
        """Have retention take the oldest records."""
        self.start = min(self.start + count, len(self.records))
        before = [epoch for epoch, at in self.begins.items() if at <= self.start]
        for epoch in before[:-1]:
            del self.begins[epoch]
        if before:
            self.begins[before[-1]] = self.start

    def end_of(self, epoch: int) -> End:
        """What it tells: ``endOffsetFor``."""
        later = [at for one, at in self.begins.items() if one > epoch]
        earlier = [one for one in self.begins if one <= epoch]
        if epoch == max(self.begins):
            return End(epoch, len(self.records))
        if not later:
            return NOT_TOLD
        return End(max(earlier, default=epoch), min(later))


clean = st.one_of(
    st.tuples(st.just("elect"), st.just(0)),
    st.tuples(st.just("append"), st.integers(1, 6)),
    st.tuples(st.just("append"), st.integers(1, 6)),
    st.tuples(st.just("delete"), st.integers(1, 9)),
)
unclean = st.tuples(st.just("lose"), st.integers(1, 12))


def lived_through(leader: Leader, events: list[tuple[str, int]]) -> None:
    for what, count in events:
        if what == "elect":
            leader.elect()
        elif what == "lose":
            leader.elect(lost=count)
        elif what == "append":
            leader.append(count)
        else:
            leader.delete(count)


def leader_behind(before: list[tuple[str, int]]) -> Leader:
    leader = Leader()
    leader.elect()
    leader.append(1)
    lived_through(leader, before)
    return leader


@given(
    st.lists(clean | unclean, max_size=12),
    st.lists(clean | unclean, max_size=12),
    st.data(),
)
def test_a_leader_tells_exactly_when_what_was_read_last_is_there_no_more(
    before: list[tuple[str, int]], after: list[tuple[str, int]], data: st.DataObject
) -> None:
    leader = leader_behind(before)
    offset = data.draw(st.integers(leader.start, len(leader.records)))
    if offset == leader.start:
        return
    read = leader.records[offset - 1]
    lived_through(leader, after)
    end = leader.end_of(read[0])
    if offset > leader.start:
        there = leader.records[offset - 1 : offset] == [read]
        assert end.cuts(offset, read[0]) == (not there)
        assert end.holds(offset, read[0]) == there
    elif all(what != "lose" for what, _ in after):
        # Retention took what was read: that cannot be compared, and nothing was lost.
        assert not end.cuts(offset, read[0])


@given(st.lists(clean, max_size=15), st.lists(clean, max_size=15), st.data())
def test_clean_leaders_are_never_taken_for_others_at_any_place_of_a_run(
    before: list[tuple[str, int]], after: list[tuple[str, int]], data: st.DataObject
) -> None:
    """A cursor within a run has the epoch of the run's last batch, which may be a later one."""
    leader = leader_behind(before)
    if leader.start == len(leader.records):
        return
    run_end = data.draw(st.integers(leader.start + 1, len(leader.records)))
    offset = data.draw(st.integers(leader.start, run_end))
    epoch = leader.records[run_end - 1][0]
    lived_through(leader, after)
    assert not leader.end_of(epoch).cuts(offset, epoch)


def test_where_nobody_can_tell_nothing_was_lost_and_nothing_is_sure() -> None:
    assert not NOT_TOLD.cuts(10, 3)
    assert not NOT_TOLD.holds(10, 3)


class Client:
    """Knows leaders, and answers for them in the words of a broker."""

    def __init__(self, *answers: Mapping[int, tuple[int, int, int]] | Exception) -> None:
        self.answers = list(answers)
        self.updates = 0
        self.asked: list[Any] = []
        self.cluster = SimpleNamespace(leader_for_partition=lambda _: 1)

    async def send(self, node: int, request: Any) -> Any:
        assert node == 1
        sent = request.prepare({EPOCHS: (2, 4)})
        self.asked.append(epochs.EndsStruct.decode(sent.encode()).topics)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        told = [(code, number, epoch, end) for number, (code, epoch, end) in answer.items()]
        made = epochs.EndsResponse.SCHEMA.encode((0, [("events", told)]))
        return sent.RESPONSE_TYPE.decode(made)

    async def force_metadata_update(self) -> None:
        self.updates += 1


def told(client: Client, wanted: dict[int, int], seconds: float = 30) -> dict[int, End]:
    spoken: Any = client
    return asyncio.run(epochs.ends(spoken, "events", wanted, seconds=seconds))


def test_leaders_are_looked_for_until_each_has_told() -> None:
    client = Client(
        {0: (0, 4, 90), 1: (NOT_LEADER, -1, -1)},
        KafkaConnectionError("away"),
        {1: (0, 2, 70)},
    )
    assert told(client, {0: 4, 1: 3}) == {0: End(4, 90), 1: End(2, 70)}
    assert client.asked == [
        [("events", [(0, -1, 4), (1, -1, 3)])],
        [("events", [(1, -1, 3)])],
        [("events", [(1, -1, 3)])],
    ]
    assert client.updates == 2


def test_what_no_leader_tells_in_time_is_left_out() -> None:
    client = Client({0: (0, 4, 90), 1: (NOT_LEADER, -1, -1)})
    assert told(client, {0: 4, 1: 3}, seconds=0.05) == {0: End(4, 90)}


@pytest.mark.parametrize(
    "answer",
    [{0: (UNAUTHORIZED, -1, -1)}, {0: (0, -1, -1)}, IncompatibleBrokerVersion("no such request")],
)
def test_a_broker_that_cannot_tell_is_not_asked_again(answer: Any) -> None:
    assert told(Client(answer), {0: 4}) == {0: NOT_TOLD}


def test_brokers_that_are_too_old_are_sent_nothing() -> None:
    with pytest.raises(IncompatibleBrokerVersion):
        epochs.EndsRequest("events", {0: 4}).prepare({EPOCHS: (0, 2)})


def divergence(client: Client, read: Read | None, cursor: Cursor | None) -> tuple[Any, list[Any]]:
    """One that watches partition 0, and the errors that it ends the job with."""
    errors: list[Any] = []
    places: Any = SimpleNamespace(
        subscription=SimpleNamespace(
            assignment=SimpleNamespace(
                tps={("events", 0)}, state_value=lambda _: SimpleNamespace(read=read)
            )
        )
    )
    spoken: Any = client
    return Divergence(spoken, places, "events", lambda _: cursor, errors.append), errors


def test_an_offset_has_an_epoch_only_where_it_was_read_up_to_it() -> None:
    cursor = Cursor("events", "id", 700, "print", epoch=4)
    reading, _ = divergence(Client(), Read(900, 5), cursor)
    found = [reading.epoch(0, offset) for offset in (900, 700, 800)]
    assert found == [5, 4, -1]
    assert reading.epoch(1, 900) == -1
    # After a reset, or an accepted gap, nothing was read up to where the task stands.
    moved = Cursor("events", "id", 700, "print")
    assert divergence(Client(), None, moved)[0].epoch(0, 700) == -1
    assert divergence(Client(), None, None)[0].epoch(0, 700) == -1


READ = Read(900, 5)


@pytest.mark.parametrize(
    ("end", "says"),
    [
        ((0, 5, 850), "records of that epoch end at 850"),
        ((0, 4, 950), "no records of that epoch are there, and those of epoch 4 end at 950"),
    ],
)
def test_a_leader_that_has_other_records_ends_the_job(end: Any, says: str) -> None:
    reading, errors = divergence(Client({0: end}), READ, None)
    asyncio.run(reading.judge({0: READ}, []))
    (error,) = errors
    assert isinstance(error, DecisionError)
    for part in ("partition 0", "next offset is 900", "leader epoch 5", says, "topic events"):
        assert part in str(error)
    assert "--accept-gap" in str(error)
    assert "rocstream reset" in str(error)


@pytest.mark.parametrize(
    ("answer", "outside", "next_epoch"),
    [
        # All is there: it was a replica that lags behind, and whoever leads is asked the same.
        ({0: (0, 5, 900)}, [], 5),
        # All is there but the offset, which retention took: its own guard finds that.
        ({0: (0, 5, 950)}, [0], -1),
        # It cannot tell.
        ({0: (0, -1, -1)}, [], -1),
        ({0: (UNAUTHORIZED, -1, -1)}, [], -1),
    ],
)
def test_a_replica_that_lags_behind_ends_nothing(
    answer: Any, outside: list[int], next_epoch: int
) -> None:
    reading, errors = divergence(Client(answer), READ, None)
    assert reading.epoch(0, 900) == 5
    asyncio.run(reading.judge({0: READ}, outside))
    assert errors == []
    assert reading.epoch(0, 900) == next_epoch


def gap(cursor: Cursor, end: End | None) -> str | None:
    return footing.gap(cursor, "events", "id", Extent(100, 2_000), end)


def test_a_state_is_held_against_where_its_leader_epoch_ends() -> None:
    cursor = Cursor("events", "id", 900, "print", epoch=5)
    assert gap(cursor, None) is None
    assert gap(cursor, NOT_TOLD) is None
    assert gap(cursor, End(5, 900)) is None
    assert "does not hold what was read" in str(gap(cursor, End(5, 899)))
    # Of the record there, some of its elements are in the state, or some monitors have it.
    for half in ({"index": 3}, {"inside": ()}):
        begun = Cursor("events", "id", 900, "print", epoch=5, **half)  # type: ignore[arg-type]
        assert gap(begun, End(5, 901)) is None
        assert gap(begun, End(5, 900)) is not None
    # A cursor of a reset or an accepted gap.
    assert gap(Cursor("events", "id", 900, "print"), End(5, 100)) is None
