"""Keys that leave, by `key_ttl` and `key_limit`: updates and state are those of the book."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inmemory import Event, Log
from walk import Walk

from worker import pipeline as pipeline_module
from worker.bounded import BoundedWatch
from worker.pages import Cursor, pack_cursor, parse_key, unpack_cursor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import config
    from worker.pipeline import Pipeline

EPOCH = 1_764_460_000_000
TTL = 640  # ms, so that spans have 10 ms


def monitor(name: str, *bounds: str, size: int = 3, slide: int = 2) -> str:
    """A monitor that publishes the AUC, with bounds."""
    return "\n".join(
        [
            "[[monitor]]",
            f'name = "{name}"',
            f'window = {{ kind = "count", size = {size}, slide = {slide} }}',
            'metrics = ["auc"]',
            *bounds,
            "",
        ]
    )


TIMED = '[event]\ntime = "time"\n'
EXPIRING = monitor("expiring", f'key_ttl = "{TTL}ms"')
LIMITED = monitor("limited", "key_limit = 2")
BOTH = monitor("both", f'key_ttl = "{TTL}ms"', "key_limit = 3", slide=1)
FREE = monitor("free", size=100)


def event(key: str, time: int, score: float = 0.5, label: int = 1) -> tuple[str, dict[str, Any]]:
    return key, {"score": score, "label": label, "time": EPOCH + time}


def beat(time: int) -> tuple[None, dict[str, Any]]:
    return None, {"heartbeat": True, "time": EPOCH + time}


def logged(values: Sequence[tuple[str | None, Any]]) -> list[Event]:
    """Records in a row; their own timestamps lie behind every event's time."""
    return [
        Event(
            offset,
            EPOCH + 10**9,
            None if key is None else key.encode(),
            value if value is None or isinstance(value, bytes) else orjson.dumps(value),
        )
        for offset, (key, value) in enumerate(values)
    ]


def values(log: Log) -> list[bytes | None]:
    return [update.value for update in log.updates]


def content(pipeline: Pipeline) -> dict[Any, Any]:
    """All that a pipeline's further work depends on."""
    found: dict[Any, Any] = {}
    for watch in pipeline._watches:
        for key, kept in watch.windows.items():
            window = kept.window
            columns = window.columns(window.first, window.seen)
            found[watch.monitor.name, key] = (
                window.first,
                window.seen,
                *(None if column is None else column.tolist() for column in columns),
            )
        if isinstance(watch, BoundedWatch):
            if watch.recency is not None:
                found[watch.monitor.name, "by age"] = list(watch.recency._places.items())
            if watch.expiry is not None:
                found[watch.monitor.name, "due"] = watch.expiry._due
    return found


def notes(log: Log) -> list[tuple[str, str, str | None]]:
    return [(update["monitor"], update["key"], update["note"]) for update in log.read()]


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


def mixed(seed: int, count: int, keys: int, spread: int) -> list[Event]:
    """Records of all kinds; event times go up with jumps, and some come late."""
    rng = random.Random(seed)  # noqa: S311 - a seeded stream
    names = [f"k{number}" for number in range(keys)]
    now = 0
    made: list[tuple[str | None, Any]] = []
    for _ in range(count):
        now += rng.choice([0, 0, 1, 3, 9, 30, spread])
        time = now - rng.choice([0, 0, 0, 0, 5, 635, 700])
        kind = rng.random()
        key = rng.choice(names)
        if kind < 0.75:
            made.append(event(key, time, round(rng.random(), 1), rng.randrange(2)))
        elif kind < 0.87:
            size = rng.randrange(1, 9)
            column = {
                "score": [rng.choice([0.1, 0.5, 0.9, "bad"]) for _ in range(size)],
                "label": [rng.choice([0, 1, 1, None, 7]) for _ in range(size)],
                "time": [EPOCH + time + rng.choice([0, 1, 20, 300]) for _ in range(size)],
            }
            made.append((key, column))
            now = max(now, max(column["time"]) - EPOCH)
        elif kind < 0.95:
            made.append(beat(time))
        else:
            made.append((key, rng.choice([None, b"{", b"[1"])))
    return logged(made)


JOBS = {
    "expiring": EXPIRING,
    "limited": LIMITED,
    "all": FREE + EXPIRING + LIMITED + BOTH,
}


@pytest.mark.parametrize("job", JOBS)
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_cuts_and_crashes_change_nothing(
    settings_of: Callable[..., config.Settings], job: str, data: st.DataObject
) -> None:
    """Runs and batches cut anywhere, a crash before or after any commit: same bytes, each once."""
    found = settings_of(TIMED + JOBS[job])
    records = mixed(
        data.draw(st.integers(0, 1000)), 80, data.draw(st.sampled_from([3, 6, 20])), 200
    )
    walk = Walk(found.monitors)
    expected = walk.run(records)
    undisturbed = Log()
    carried = undisturbed.run(found, records)
    assert values(undisturbed) == expected

    log = Log()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline_module, "BATCH_EVENTS", data.draw(st.sampled_from([1, 7, 4096])))
        patch.setattr(pipeline_module, "DROPPED_KEYS", data.draw(st.sampled_from([1, 2, 1000])))
        pipeline = log.open(found)
        for _ in range(5000):
            if pipeline.cursor.offset >= len(records):
                break
            start = max(0, pipeline.cursor.offset - data.draw(st.integers(0, 3)))
            run = records[start : start + data.draw(st.integers(1, 60))]
            for _ in pipeline.process(run):
                step = data.draw(
                    st.sampled_from(["go on", "go on", "commit", "crash", "commit, crash", "leave"])
                )
                if step.startswith("commit"):
                    log.commit(pipeline.take())
                if step == "crash":
                    # Taken but never committed: a transaction that was aborted.
                    pipeline.take()
                if step.endswith("crash"):
                    pipeline = log.open(found)
                    break
                if step == "leave":
                    break
        log.commit(pipeline.take())
    assert values(log) == expected
    assert log.rejections == undisturbed.rejections
    rebuilt = log.open(found)
    assert rebuilt.cursor == carried.cursor == pipeline.cursor
    assert content(rebuilt) == content(carried) == content(pipeline)
    kept = {
        (name, key): (life.seen, [one.score for one in life.events])
        for name, keys in walk.keys.items()
        for key, life in keys.items()
    }
    assert kept == {
        place: (state[1], state[2])
        for place, state in content(rebuilt).items()
        if place[1] not in {"by age", "due"}
    }


@pytest.mark.parametrize("by", ["heartbeat", "event", "lower limit"])
def test_very_many_keys_leave_in_transactions_of_bounded_size(
    settings_of: Callable[..., config.Settings], monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """A crash behind each transaction; the order of updates stays that of the monitors."""
    monkeypatch.setattr(pipeline_module, "DROPPED_KEYS", 10)
    first = settings_of(TIMED + EXPIRING + FREE + BOTH.replace("limit = 3", "limit = 90"))
    then = first
    records = logged([event(f"k{number:03}", number) for number in range(100)] * 2)
    if by == "lower limit":
        then = settings_of(TIMED + EXPIRING + FREE + BOTH)
        more = [*records, *logged([event("k007", 300)])]
    else:
        more = [*records, *logged([beat(9 * TTL) if by == "heartbeat" else event("k007", 9 * TTL)])]
    more[-1] = more[-1]._replace(offset=len(records))
    walk = Walk(first.monitors)
    walk.run(records)
    walk.change(then.monitors)
    expected = walk.run(more[-1:])
    log = Log()
    log.run(first, records)
    known = len(log.updates)
    sizes = []
    places = set()
    for _ in range(100):
        pipeline = log.open(then)
        if pipeline.cursor.offset == len(more):
            break
        next(pipeline.process(more), None)
        outcome = pipeline.take()
        sizes.append((len(outcome.updates), len(outcome.pages)))
        places.add(outcome.cursor.place)
        log.commit(outcome)
    assert log.open(then).cursor.place == (len(more), 0, None)
    assert values(log) == expected
    assert len(expected) - known > 80
    assert max(map(max, sizes)) <= 2 * 10 + 2 * 3
    assert len(places) > 1
    assert len(sizes) > 8


WIDE = BOTH.replace("limit = 3", "limit = 90")

THEN = {
    "no change": EXPIRING + LIMITED + WIDE,
    "no bounds": monitor("expiring") + monitor("limited") + monitor("both", slide=1),
    "a longer ttl": EXPIRING.replace(f"{TTL}ms", "1h") + LIMITED + WIDE,
    "a shorter ttl": EXPIRING.replace(f"{TTL}ms", "65ms") + LIMITED + WIDE,
    "a lower limit": EXPIRING + LIMITED.replace("= 2", "= 1") + BOTH,
    "a monitor more": FREE + EXPIRING + LIMITED + WIDE,
    "a monitor less": EXPIRING + WIDE,
    "another slide": EXPIRING.replace("slide = 2", "slide = 1") + LIMITED + WIDE,
    "another order": WIDE + LIMITED + EXPIRING,
    "nothing as before": FREE,
}

LEAVING: dict[str, list[tuple[str | None, Any]]] = {
    "heartbeat": [("bad", b"{"), beat(2 * TTL)],
    "event": [("bad", b"{"), event("k3", 2 * TTL)],
    "element": [
        (
            "k3",
            {
                "score": [0.1, 0.2, "bad", 0.3, "bad"],
                "label": [0, 1, 1, 1, 0],
                "time": [EPOCH + at for at in (12, 13, 14, 2 * TTL, 15)],
            },
        )
    ],
    # The heartbeat moves the watermark and makes nothing leave.
    "lower limit": [beat(18), event("k3", 13), event("k5", 14)],
}


@pytest.mark.parametrize("then", THEN)
@pytest.mark.parametrize("by", LEAVING)
def test_settings_that_change_while_keys_leave_take_no_event_in_twice(
    settings_of: Callable[..., config.Settings],
    monkeypatch: pytest.MonkeyPatch,
    by: str,
    then: str,
) -> None:
    """A stop behind each key that leaves; what is taken in is that of the book, and once."""
    monkeypatch.setattr(pipeline_module, "DROPPED_KEYS", 1)
    first = settings_of(TIMED + EXPIRING + LIMITED + WIDE)
    lowered = settings_of(TIMED + THEN["a lower limit"]) if by == "lower limit" else first
    changed = settings_of(TIMED + THEN[then])
    # Each key twice, so that the monitors' windows have slid.
    quiet = [event(f"k{number}", number) for number in range(6)] * 2
    after = [event(key, 2 * TTL + at, 0.2, 0) for at, key in enumerate(["k3", "k7", "k4", "k3"])]
    records = logged([*quiet, *LEAVING[by], *after])
    undisturbed = Log()
    counts = undisturbed.run(first, records).cursor.counts
    stops = 0
    for stop in itertools.count(1):
        log, walk = Log(), Walk(first.monitors)
        log.run(first, records[: len(quiet)])
        walk.run(records[: len(quiet)])
        walk.change(lowered.monitors)
        pipeline = log.open(lowered)
        inside = 0
        for _ in pipeline.process(records):
            inside += pipeline.cursor.inside is not None
            if inside == stop:
                break
        if inside < stop:
            break
        stops += 1
        log.commit(pipeline.take())
        steps = itertools.chain.from_iterable(map(walk.steps, records[len(quiet) :]))
        for _ in steps:
            if len(walk.updates) == len(log.updates):
                break
        assert values(log) == walk.updates
        walk.change(changed.monitors)
        pipeline = log.run(changed, records)
        assert values(log) == walk.run(records)
        assert pipeline.cursor.place == (len(records), 0, None)
        assert pipeline.cursor.watermark == walk.watermark
        assert pipeline.cursor.counts == counts
        assert log.rejections == undisturbed.rejections
        states = pipeline.cursor.monitors
        assert {name: states[name].events for name in states} == walk.taken
        assert content(log.open(changed)) == content(pipeline)
    assert stops > 5


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
