"""Keys that leave, by `key_ttl` and `key_limit`: updates and state are those of the book."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from inmemory import Log
from leaving import (
    BOTH,
    EPOCH,
    EXPIRING,
    LIMITED,
    TIMED,
    TTL,
    beat,
    content,
    event,
    logged,
    monitor,
    notes,
    values,
)
from walk import Walk

from worker.pages import Cursor, pack_cursor, parse_key, unpack_cursor

if TYPE_CHECKING:
    from collections.abc import Callable

    import config


def test_a_silent_key_leaves_with_a_last_update_and_starts_anew(
    settings_of: Callable[..., config.Settings],
) -> None:
    records = logged(
        [
            event("a", 0, 0.1, 0),
            event("b", 5),
            event("a", 5, 0.9, 1),
            event("a", 7, 0.2, 0),
            beat(TTL + 4),
            beat(TTL + 5),
            beat(TTL + 6),
            event("b", TTL + 6),
            beat(TTL + 7),
            event("a", TTL + 12),
        ]
    )
    log = Log()
    log.run(settings_of(TIMED + EXPIRING), records)
    found = log.read()
    assert [(u["key"], u["seq"], u["note"]) for u in found] == [
        ("a", 1, None),
        ("b", 1, "expired"),
        ("a", 2, "expired"),
    ]
    last = found[2]
    assert last["window"]["events"] == 3
    assert (last["positives"], last["negatives"], last["auc"]) == (1, 2, 1.0)
    assert (last["time"], last["window"]["end"]) == (EPOCH + TTL + 7, EPOCH + 7)
    assert last["source"] == {"topic": "events", "partition": 0, "offset": 8, "index": 0}
    assert found[1]["source"]["offset"] == 5
    keys = [key for raw in log.changelog if (key := parse_key(raw)) is not None]
    assert sorted(key.key for key in keys) == ["a", "b"]


def test_the_key_that_was_silent_longest_leaves_for_a_new_one(
    settings_of: Callable[..., config.Settings],
) -> None:
    # Times run backwards: it is the order of the log that counts.
    keys = "abacdd"
    records = logged([event(key, 100 - at) for at, key in enumerate(keys)])
    log = Log()
    log.run(settings_of(TIMED + LIMITED), records)
    assert [(u["key"], u["seq"], u["note"], u["source"]["offset"]) for u in log.read()] == [
        ("a", 1, None, 2),
        ("b", 1, "key_limit", 3),
        ("a", 2, "key_limit", 4),
        ("d", 1, None, 5),
    ]
    assert log.read()[1]["time"] == EPOCH + 97


def test_keys_leave_in_the_byte_order_of_their_names(
    settings_of: Callable[..., config.Settings],
) -> None:
    names = ["b", "\U0001f600", "a", "\uffff", "\u00e4", "z", "10", "9"]
    log = Log()
    log.run(
        settings_of(TIMED + EXPIRING), logged([*(event(key, 0) for key in names), beat(2 * TTL)])
    )
    assert [update["key"] for update in log.read()] == sorted(names, key=str.encode)


def test_an_update_of_the_event_itself_comes_before_those_that_expire_by_it(
    settings_of: Callable[..., config.Settings],
) -> None:
    records = logged([event("a", 0), event("b", 0), event("c", 1), event("c", 2 * TTL)])
    log = Log()
    log.run(settings_of(TIMED + EXPIRING + BOTH), records)
    assert notes(log)[-6:] == [
        ("expiring", "c", None),
        ("expiring", "a", "expired"),
        ("expiring", "b", "expired"),
        ("both", "c", None),
        ("both", "a", "expired"),
        ("both", "b", "expired"),
    ]


SYMBOLS: list[Callable[[int], Any]] = [
    lambda now: event("a", now),
    lambda now: event("b", now, 0.3, 0),
    lambda now: event("c", now),
    lambda now: event("a", now + TTL, 0.9, 0),
    lambda now: event("b", now - TTL),
    lambda now: event("c", now - TTL + 2),
    lambda now: beat(now + TTL),
]


def test_every_short_log_gives_what_the_book_says(
    settings_of: Callable[..., config.Settings],
) -> None:
    """Whole, and record by record with a crash behind each."""
    job = settings_of(TIMED + EXPIRING + LIMITED + BOTH)
    for chosen in itertools.product(SYMBOLS, repeat=4):
        now = 0
        records = []
        for symbol in chosen:
            key, value = symbol(now)
            now = max(now, value["time"] - EPOCH)
            records.append((key, value))
        run = logged(records)
        expected = Walk(job.monitors).run(run)
        whole, torn = Log(), Log()
        carried = whole.run(job, run)
        assert values(whole) == expected
        for record in run:
            torn.run(job, [record])
        assert values(torn) == expected
        rebuilt = torn.open(job)
        assert content(rebuilt) == content(carried) == content(whole.open(job))
        assert rebuilt.cursor == carried.cursor


def test_a_limit_that_was_lowered_takes_effect_at_the_next_event(
    settings_of: Callable[..., config.Settings],
) -> None:
    records = logged([event(key, at) for at, key in enumerate("abcdeab")])
    log = Log()
    log.run(settings_of(TIMED + monitor("m", "key_limit = 5")), records[:5])
    lower = settings_of(TIMED + monitor("m", "key_limit = 2"))
    log.run(lower, records)
    assert [(u["key"], u["note"], u["source"]["offset"]) for u in log.read()] == [
        ("a", "key_limit", 5),
        ("b", "key_limit", 5),
        ("c", "key_limit", 5),
        ("d", "key_limit", 5),
        ("e", "key_limit", 6),
    ]
    walk = Walk(settings_of(TIMED + monitor("m", "key_limit = 5")).monitors)
    walk.run(records[:5])
    walk.change(lower.monitors)
    assert values(log) == walk.run(records[5:])


def test_bounds_that_are_set_later_keep_the_state(
    settings_of: Callable[..., config.Settings],
) -> None:
    """Without a bound nobody kept which key is the oldest: those from then go by name."""
    free = settings_of(TIMED + monitor("m", size=9, slide=9))
    bounded = settings_of(
        TIMED + monitor("m", f'key_ttl = "{TTL}ms"', "key_limit = 3", size=9, slide=9)
    )
    log = Log()
    log.run(free, logged([event(key, 0) for key in "cab"]))
    more = logged([event(key, 1) for key in "cabad"])
    log.run(bounded, more)
    assert [(u["key"], u["note"]) for u in log.read()] == [("b", "key_limit")]
    beats = [*more, *logged([beat(2 * TTL)])]
    beats[-1] = beats[-1]._replace(offset=5)
    log.run(bounded, beats)
    assert [(u["key"], u["window"]["events"]) for u in log.read()[1:]] == [
        ("a", 2),
        ("c", 1),
        ("d", 1),
    ]
    log.run(free, beats)
    assert log.open(free).cursor.offset == 6


@pytest.mark.parametrize("start", [2**44 - 3, 2**53, 2**63 - 9])
def test_the_oldest_key_is_known_at_any_offset(
    settings_of: Callable[..., config.Settings], start: int
) -> None:
    """A restart behind each record, which takes the places from the pages."""
    job = settings_of(TIMED + LIMITED)
    records = [
        record._replace(offset=start + record.offset)
        for record in logged([event(key, 0) for key in "abacab"])
    ]
    log = Log()
    for record in records:
        pipeline = log.run(job, [record])
        assert content(log.open(job)) == content(pipeline)
    assert values(log) == Walk(job.monitors).run(records)
    assert [key for _, key, note in notes(log) if note] == ["b", "c"]


def test_windows_given_up_behind_a_gap_take_their_bounds_with_them(
    settings_of: Callable[..., config.Settings],
) -> None:
    job = settings_of(TIMED + BOTH)
    records = logged([event(key, at) for at, key in enumerate("abcdab")])
    log = Log()
    log.run(job, records[:3])
    pipeline = log.open(job)
    pipeline.start_at(3, gap=True)
    for _ in pipeline.process(records[3:]):
        pass
    log.commit(pipeline.take())
    assert {note for _, _, note in notes(log)[3:]} == {"gap"}
    assert content(log.open(job)) == content(pipeline)


def test_the_cursor_tells_an_event_that_is_taken_in_half_way() -> None:
    whole = Cursor("events", "id", 5, "print")
    half = Cursor("events", "id", 5, "print", inside=("a", "b"))
    assert unpack_cursor(pack_cursor(half)) == half
    assert unpack_cursor(pack_cursor(whole)) == whole
    assert b"inside" not in pack_cursor(whole)
    assert half.place != whole.place
