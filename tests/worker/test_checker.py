"""The checker of the fault runs finds each kind of fault, and nothing in what is right.

What it is shown here is what a task publishes; so it also holds the two against each other.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
import pytest
from inmemory import Event, Log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import config

CHAOS = Path(__file__).parents[1] / "chaos"
MONITORS = """
[[monitor]]
name = "short"
window = { kind = "count", size = 30, slide = 10 }

[[monitor]]
name = "long"
window = { kind = "count", size = 64, slide = 20 }
"""


class Run(NamedTuple):
    """What the checker is given, all of it right: `check` takes updates and rejections."""

    check: Callable[[list[Any], list[Any]], Any]
    updates: list[Any]
    rejections: list[Any]


@pytest.fixture(scope="module")
def chaos() -> Iterator[dict[str, Any]]:
    """The modules of the fault runs, which are scripts and no package."""
    names = ("checker", "reading", "soak_report", "stream", "understanding")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(CHAOS))
        yield {name: __import__(name) for name in names}
    for name in names:
        del sys.modules[name]


@pytest.fixture
def run(chaos: dict[str, Any], settings_of: Callable[..., config.Settings]) -> Run:
    checker, seen = chaos["checker"], chaos["reading"].Seen
    stream = itertools.islice(chaos["stream"].records(3), 400)
    events = [Event(at, 1_764_460_000_000 + at, r.key, r.value) for at, r in enumerate(stream)]
    log = Log()
    log.run(settings_of(MONITORS), events)
    source = chaos["understanding"].Source()
    source.add(
        seen(0, event.offset, event.timestamp, event.key, event.value, {}) for event in events
    )
    windows = (checker.Window("short", 30, 10), checker.Window("long", 64, 20))

    def check(updates: list[Any], rejections: list[Any]) -> Any:
        return checker.check(source, "events", windows, updates, rejections)

    def as_seen(messages: list[Any]) -> list[Any]:
        return [seen(0, at, 0, m.key, m.value, dict(m.headers)) for at, m in enumerate(messages)]

    return Run(check, as_seen(log.updates), as_seen(log.rejections))


def found(run: Run, updates: list[Any], rejections: list[Any] | None = None) -> set[str]:
    verdict = run.check(updates, run.rejections if rejections is None else rejections)
    assert verdict.good != any(verdict.counts.values())
    return {kind for kind, count in verdict.counts.items() if count}


def changed(update: Any, **fields: Any) -> Any:
    return update._replace(value=orjson.dumps(orjson.loads(update.value) | fields))


def stream_of(run: Run, count: int) -> list[int]:
    """Return where the updates of a monitor and key stand that has so many at the least."""
    streams: dict[Any, list[int]] = {}
    for at, one in enumerate(run.updates):
        update = orjson.loads(one.value)
        streams.setdefault((update["monitor"], update["key"]), []).append(at)
    return next(places for places in streams.values() if len(places) >= count)


def test_what_a_task_publishes_is_right(run: Run) -> None:
    verdict = run.check(run.updates, run.rejections)
    assert verdict.good, dict(verdict.examples)
    assert verdict.updates == len(run.updates) > 50
    assert verdict.rejections == len(run.rejections) > 10


def test_updates_that_are_missing_repeated_or_out_of_order_are_found(run: Run) -> None:
    first, second, *_, last = stream_of(run, 4)
    updates = run.updates
    assert found(run, updates[:last] + updates[last + 1 :]) == {"missing"}
    assert found(run, updates[:second] + updates[second + 1 :]) == {"missing", "holes"}
    assert found(run, [*updates, updates[last]]) == {"repeated"}
    swapped = list(updates)
    swapped[first], swapped[second] = updates[second], updates[first]
    assert found(run, swapped) == {"disorder"}
    astray = [*updates[:last], updates[last]._replace(partition=1), *updates[last + 1 :]]
    assert found(run, astray) == {"disorder"}


def test_an_update_that_no_event_made_is_found(run: Run) -> None:
    one = run.updates[-1]
    place = orjson.loads(one.value)["source"]
    for wrong in (
        changed(one, monitor="other"),
        changed(one, key="other"),
        changed(one, source=place | {"offset": 10**6}),
        one._replace(key=b"other"),
    ):
        assert "unexpected" in found(run, [*run.updates, wrong])


def test_each_field_that_is_wrong_is_found(run: Run) -> None:
    last = stream_of(run, 4)[-1]
    update = orjson.loads(run.updates[last].value)
    for name, value in {
        "version": 2,
        "time": update["time"] + 1,
        "window": update["window"] | {"start": 0},
        "positives": update["positives"] + 1,
        "auc": update["auc"] - 1e-9,
        "h": None,
        "reason": "empty",
        "note": "gap",
        "source": update["source"] | {"partition": 1},
    }.items():
        updates = list(run.updates)
        updates[last] = changed(updates[last], **{name: value})
        assert found(run, updates) == {"wrong"}, name


@pytest.mark.parametrize(("drift", "kind"), [(1, "doubled"), (-1, "lost")])
def test_events_that_were_lost_or_counted_twice_are_found(run: Run, drift: int, kind: str) -> None:
    updates = list(run.updates)
    for at in stream_of(run, 4)[2:]:
        updates[at] = changed(updates[at], seq=orjson.loads(updates[at].value)["seq"] + drift)
    assert kind in found(run, updates)


def test_dead_letters_are_compared(run: Run) -> None:
    updates, letters = run.updates, run.rejections
    assert found(run, updates, letters[1:]) == {"rejections missing"}
    assert found(run, updates, [*letters, letters[0]]) == {"rejections repeated"}
    good = letters[0].headers | {"rocstream-offset": b"1000000"}
    assert found(run, updates, [*letters, letters[0]._replace(headers=good)]) == {
        "rejections unexpected"
    }
    for wrong in (
        letters[0]._replace(value=b"other"),
        letters[0]._replace(headers=letters[0].headers | {"rocstream-reason": b"key_empty: no"}),
    ):
        assert found(run, updates, [wrong, *letters[1:]]) == {"rejections wrong"}


@pytest.mark.parametrize(("megabytes_a_minute", "good"), [(0.0, True), (-1.0, True), (0.5, False)])
def test_a_soak_in_which_memory_rises_is_found(
    chaos: dict[str, Any], *, megabytes_a_minute: float, good: bool
) -> None:
    soak = chaos["soak_report"]
    # It goes up and down by a megabyte, and windows fill up in the first minutes.
    samples = [
        soak.Sample(
            10.0 * at,
            1000.0,
            10.0,
            0,
            0.1,
            0.2,
            160 + min(at, 20) + at % 2 + megabytes_a_minute * at / 6,
            *[1.0] * 4,
        )
        for at in range(180)
    ]
    result = soak.Result(1000.0, samples, 0, 1, 1, 0, [])
    assert result.good is good
    assert ("Memory rose" in soak.report(result)) is not good
