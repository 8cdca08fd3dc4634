"""What a process of a replay gives the others comes out as it went in, in pieces that fit."""

from __future__ import annotations

import multiprocessing
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from config import EventSettings
from worker.events import Parser, native
from worker.events.batch import ListedEvents
from worker.events.record import Taken
from worker.replay import share
from worker.replay.exchange import SHARES, Exchange
from worker.replay.share import SHARE_BYTES, Share, parts

if TYPE_CHECKING:
    from worker.events import KeyedEvents

NAMES = ("a", "ключ", "c" * 1024)


def events(first: int, count: int, *, weighted: bool) -> ListedEvents:
    found = ListedEvents()
    numbers = list(range(first, first + count))
    found.extend(
        [number / 7 for number in numbers],
        [number % 2 for number in numbers],
        [number * 10 for number in numbers],
        [number + 0.5 for number in numbers] if weighted else None,
        first,
        numbers,
    )
    return found


def listed(keyed: KeyedEvents) -> list[Any]:
    columns = (keyed.scores, keyed.labels, keyed.times, keyed.offsets, keyed.indexes, keyed.weights)
    return [None if column is None else np.asarray(column).tolist() for column in columns]


@pytest.mark.parametrize("room", [1, 3, 7, 100])
def test_events_come_out_of_shares_in_their_order(
    monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    monkeypatch.setattr(share, "EVENTS", room)
    given = {name: events(10 * at, 3 * at + 1, weighted=at == 1) for at, name in enumerate(NAMES)}
    place = Share(memoryview(bytearray(SHARE_BYTES)))
    found: dict[str, list[Any]] = {name: [] for name in NAMES}
    for some in parts(given):
        assert sum(part.stop - part.start for part in some) <= room
        place.fill(some)
        for name, keyed in place.keys(lambda name: name != "a").items():
            found[name].append(listed(keyed))
    assert found.pop("a") == []
    for name, pieces in found.items():
        *columns, weights = zip(*pieces, strict=True)
        assert [list(chain(*column)) for column in columns] == listed(given[name])[:-1]
        assert (None in weights) == (given[name].weights is None)
        if None not in weights:
            assert list(chain(*weights)) == given[name].weights


def test_names_that_take_all_the_place_come_in_several_shares() -> None:
    given = {f"{number:01024}": events(number, 1, weighted=False) for number in range(3_000)}
    place = Share(memoryview(bytearray(SHARE_BYTES)))
    found: list[str] = []
    for some in parts(given):
        place.fill(some)
        found += place.keys(bool)
    assert found == list(given)


@pytest.mark.skipif(not native.COMPILED, reason="has the same columns as lists")
def test_what_the_parser_gives_out_is_shared() -> None:
    values = [b'{"score":[1,2],"label":[0,1],"w":[1,2]}', b'{"score":7,"label":1,"w":1}'] * 2
    records = [Taken(at, 5, b"kl"[at % 2 :], value) for at, value in enumerate(values)]
    place = Share(memoryview(bytearray(SHARE_BYTES)))
    for event in (EventSettings(), EventSettings(weight=("w",))):
        (batch,) = Parser(event).batches(records)
        (some,) = parts(batch.keys)
        place.fill(some)
        found = place.keys(bool)
        assert list(found) == list(batch.keys)
        for key, keyed in batch.keys.items():
            assert listed(found[key])[:-1] == listed(keyed)[:-1]


def test_a_place_is_taken_until_all_others_have_played_what_is_in_it() -> None:
    exchange = Exchange(multiprocessing.get_context(), 3)
    assert [exchange.claim(piece) for piece in (0, 0, 1)] == [True, False, True]
    for run in range(SHARES):
        assert exchange.place(0)
        exchange.give(0, run, [], last=True)
    assert not exchange.place(0)
    assert exchange.place(1)
    assert exchange.next(1, 1) is None, "shares are played in their order"
    for number in (1, 2):
        assert not exchange.place(0)
        found = exchange.next(number, 0)
        assert found is not None
        assert (found[0], found[2]) == (0, True)
        exchange.done(number, 0)
    assert exchange.place(0)
    exchange.give(0, SHARES, [], last=True)
    exchange.leave(1)
    assert not exchange.place(0)
    exchange.leave(2)
    assert exchange.place(0)
