"""A changelog that lost records: the state is refused, or it is what it was."""

from __future__ import annotations

import copy
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inmemory import MONITOR, Log, records
from leaving import BOTH, EPOCH, EXPIRING, FREE, LIMITED, TIMED, content, logged, monitor

from worker import pages, reset
from worker import pipeline as pipeline_module
from worker.pages import (
    CURSOR_KEY,
    PAGE_EVENTS,
    Cursor,
    StateError,
    pack_cursor,
    parse_key,
    unpack_cursor,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from inmemory import Event

    import config

WIDE = monitor("wide", size=150, slide=40)
NARROW = monitor("narrow", size=3)
JOBS = {
    "free": WIDE + NARROW + FREE,
    "bounded": EXPIRING + LIMITED + BOTH + WIDE,
    "few large keys": WIDE.replace('"auc"]', '"auc"]\nkey_limit = 2')
    + FREE.replace('"auc"]', '"auc"]\nkey_ttl = "300ms"'),
}


def mixed(seed: int, count: int) -> list[Event]:
    """Records of few keys, columnar ones, some late, with jumps in time that let keys expire."""
    rng = random.Random(seed)  # noqa: S311 - a seeded stream
    now = 0
    made: list[tuple[str | None, Any]] = []
    for _ in range(count):
        now += rng.choice([0, 0, 1, 3, 9, 60])
        size = rng.choice([1, 1, 2, 30, 70])
        time = EPOCH + now - rng.choice([0, 0, 0, 500])
        columns = {
            "score": [round(rng.random(), 1) for _ in range(size)],
            "label": [rng.randrange(2) for _ in range(size)],
            "time": [time] * size,
        }
        made.append((rng.choice("aaabbc"), columns))
    return logged(made)


def lost(log: Log, gone: Iterable[bytes]) -> Log:
    """The log without some records of its changelog."""
    left = copy.copy(log)
    left.changelog = {key: value for key, value in log.changelog.items() if key not in set(gone)}
    return left


def refused(log: Log, job: config.Settings, gone: Iterable[bytes]) -> None:
    with pytest.raises(StateError, match=r"lacks events|its cursor counts"):
        lost(log, gone).open(job)


@pytest.mark.parametrize("job", JOBS)
@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_no_page_goes_unmissed_and_nothing_else_is_refused(
    settings_of: Callable[..., config.Settings], job: str, data: st.DataObject
) -> None:
    """After any cuts and crashes: any one page, the oldest of a key, all of a key, any at all."""
    found = settings_of(TIMED + JOBS[job])
    log = Log()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline_module, "BATCH_EVENTS", data.draw(st.sampled_from([1, 7, 4096])))
        patch.setattr(pipeline_module, "DROPPED_KEYS", data.draw(st.sampled_from([1, 1000])))
        # Every opening in there is of an untouched changelog.
        pipeline = log.run_disturbed(found, mixed(data.draw(st.integers(0, 1000)), 20), data)
    assert content(log.open(found)) == content(pipeline)
    kept = sorted(log.changelog.keys() - {CURSOR_KEY})
    of_keys: dict[bytes, list[bytes]] = {}
    for raw in kept:
        refused(log, found, [raw])
        of_keys.setdefault(raw[:-8], []).append(raw)
    for raws in of_keys.values():
        for count in range(1, len(raws) + 1):
            refused(log, found, raws[:count])
    refused(log, found, data.draw(st.lists(st.sampled_from(kept), min_size=1, unique=True)))
    refused(log, found, kept)


@pytest.mark.parametrize("job", JOBS)
def test_a_page_of_an_earlier_transaction_is_not_taken_for_the_last(
    settings_of: Callable[..., config.Settings], job: str
) -> None:
    """Where the last one is gone, what came before it is there again."""
    found = settings_of(TIMED + JOBS[job])
    events = mixed(7, 60)
    log = Log()
    looked_at = 0
    for stop in range(1, len(events) + 1):
        before = dict(log.changelog)
        log.run(found, events[:stop])
        for raw in before.keys() - {CURSOR_KEY}:
            if before[raw] != log.changelog.get(raw):
                stale = copy.copy(log)
                stale.changelog = {**log.changelog, raw: before[raw]}
                with pytest.raises(StateError, match=r"lacks events|its cursor counts"):
                    stale.open(found)
                looked_at += 1
    assert looked_at > 50


def test_the_sentence_has_the_place_the_numbers_and_the_cure(
    settings_of: Callable[..., config.Settings],
) -> None:
    job, log = settings_of(WIDE), Log()
    log.run(job, records([{"score": 0.5, "label": 1}] * 200))
    oldest = min(log.changelog.keys() - {CURSOR_KEY})
    assert parse_key(oldest) == ("wide", "k", 0)
    with pytest.raises(StateError) as caught:
        lost(log, [oldest]).open(job)
    assert str(caught.value) == (
        "the changelog holds 3 pages of monitor wide, whose keys took 200 events in, while its "
        "cursor counts 4 pages and 200 events: records were lost, or written by something else; "
        "restore it, or run `rocstream reset` (changelog watch-windows-changelog, partition 0)"
    )


def without_numbers(log: Log) -> Log:
    """The log as it was written before cursors had the numbers."""
    cursor = unpack_cursor(log.changelog[CURSOR_KEY])
    monitors = {
        name: replace(state, pages=None, seen=None) for name, state in cursor.monitors.items()
    }
    earlier = copy.copy(log)
    value = pack_cursor(replace(cursor, monitors=monitors))
    assert b'"pages":null' in value
    body = value[6:].replace(b',"pages":null,"seen":null', b"")
    sealed = pages._seal(CURSOR_KEY, value[1], body)
    earlier.changelog = {**log.changelog, CURSOR_KEY: sealed}
    return earlier


@pytest.mark.parametrize("job", JOBS)
def test_a_state_from_before_there_were_numbers_is_taken_as_it_is_and_counted_from_then_on(
    settings_of: Callable[..., config.Settings], job: str
) -> None:
    found = settings_of(TIMED + JOBS[job])
    events = mixed(3, 60)
    log = Log()
    log.run(found, events[:40])
    earlier = without_numbers(log)
    assert content(earlier.open(found)) == content(log.open(found))
    for one in (earlier, log):
        one.run(found, events)
    assert earlier.changelog == log.changelog
    for raw in earlier.changelog.keys() - {CURSOR_KEY}:
        refused(earlier, found, [raw])


CHANGES = {
    "no change": WIDE + NARROW,
    "smaller": WIDE.replace("150", "70") + NARROW,
    "larger": WIDE.replace("150", "400") + NARROW,
    "another slide": WIDE.replace("slide = 40", "slide = 4") + NARROW,
    "one less": WIDE,
    "one more": WIDE + NARROW + FREE,
    "others": FREE,
    "bounds": WIDE.replace('"auc"]', '"auc"]\nkey_limit = 1\nkey_ttl = "1s"') + NARROW,
}


@pytest.mark.parametrize("then", CHANGES)
@pytest.mark.parametrize("at", [1, 20, 41, 60])
def test_changed_monitors_go_on_and_are_missed_as_before(
    settings_of: Callable[..., config.Settings], then: str, at: int
) -> None:
    """There and back: pages are dropped, cut shorter, begun anew under the same names."""
    first, second = settings_of(TIMED + CHANGES["no change"]), settings_of(TIMED + CHANGES[then])
    events = mixed(5, 80)
    log = Log()
    for job, stop in ((first, at), (second, at), (second, at + 3), (first, at + 3), (first, 80)):
        log.run(job, events[:stop])
        for raw in log.changelog.keys() - {CURSOR_KEY}:
            refused(log, job, [raw])


def test_behind_an_accepted_gap_and_in_a_reset_that_stopped_nothing_is_missed(
    settings_of: Callable[..., config.Settings],
) -> None:
    job = settings_of(TIMED + JOBS["bounded"])
    events = mixed(11, 80)
    log = Log()
    log.run(job, events[:40])

    restarted = copy.copy(log)
    restarted.changelog = dict(log.changelog)
    pipeline = restarted.open(job)
    pipeline.start_at(60, gap=True)
    for _ in pipeline.process(events[60:]):
        pass
    restarted.commit(pipeline.take())
    assert content(restarted.open(job)) == content(pipeline)

    cursor = Cursor("events", "", 10, job.event_fingerprint())
    done = list(reset.transactions(log.changelog, cursor, limit=2))
    assert len(done) > 2
    expected = Log(changelog={CURSOR_KEY: pack_cursor(cursor)})
    expected.run(job, events)
    for count in range(1, len(done) + 1):
        moved = copy.copy(log)
        moved.changelog = {**log.changelog, CURSOR_KEY: pack_cursor(cursor)}
        for transaction in done[:count]:
            for key, _ in transaction.pages:
                del moved.changelog[key]
        assert not content(moved.open(settings_of(TIMED + WIDE)))
        moved.run(job, events)
        assert moved.changelog == expected.changelog


def test_a_cursor_counts_what_the_changelog_holds(
    settings_of: Callable[..., config.Settings],
) -> None:
    log = Log()
    log.run(settings_of(MONITOR), records([{"score": 0.5, "label": 1}] * (PAGE_EVENTS + 1)))
    log.run(
        settings_of(MONITOR),
        records([{"score": 0.5, "label": 1}] * 3, b"other", start=PAGE_EVENTS + 1),
    )
    state = unpack_cursor(log.changelog[CURSOR_KEY]).monitors["last-10"]
    assert (state.pages, state.seen) == (3, PAGE_EVENTS + 4)
    assert orjson.loads(log.changelog[CURSOR_KEY][6:])["monitors"]["last-10"]["pages"] == 3
