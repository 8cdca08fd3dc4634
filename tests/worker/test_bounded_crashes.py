"""Keys that leave while a worker crashes, stops half-way, or is given other settings."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inmemory import Log
from leaving import (
    BOTH,
    EPOCH,
    EXPIRING,
    FREE,
    LIMITED,
    TIMED,
    TTL,
    beat,
    content,
    event,
    logged,
    monitor,
    values,
)
from walk import Walk

from worker import pipeline as pipeline_module

if TYPE_CHECKING:
    from collections.abc import Callable

    from inmemory import Event

    import config


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
        pipeline = log.run_disturbed(found, records, data)
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
