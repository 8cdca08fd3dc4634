"""The pure piece: what it gives, and that neither cuts nor crashes change it."""

from __future__ import annotations

import copy
import itertools
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inmemory import MONITOR, Event, Log, records

from config import METRICS
from config.errors import DecisionError
from engine import reference
from worker import pipeline as pipeline_module
from worker import updates
from worker.pages import PAGE_EVENTS, StateError, parse_key
from worker.pipeline import BATCH_EVENTS, Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable

    import config

TWO_MONITORS = """
[[monitor]]
name = "small"
window = { kind = "count", size = 7, slide = 2 }
metrics = ["auc"]

[[monitor]]
name = "large"
window = { kind = "count", size = 200, slide = 50 }
metrics = ["h", "auc"]
h = { alpha = 2, beta = 4.5 }
"""


def mixed(count: int, seed: int = 1) -> list[Event]:
    """Records of several keys: plain ones, columnar ones, bad ones, skipped ones."""
    rng = random.Random(seed)  # noqa: S311 - a seeded stream
    made = []
    for offset in range(count):
        key = rng.choice([b"a", b"b", b"c", b"dd", None])
        value: bytes | None
        kind = rng.random()
        if kind < 0.70:
            label = rng.random() < 0.4
            value = orjson.dumps({"score": round(rng.gauss(label, 1), 1), "label": int(label)})
        elif kind < 0.90:
            size = rng.randrange(1, 40)
            value = orjson.dumps(
                {
                    "score": [rng.choice([0.1, 0.5, 0.9, "bad"]) for _ in range(size)],
                    "label": [rng.choice([0, 1, 1, None, 7]) for _ in range(size)],
                }
            )
        else:
            value = rng.choice([None, b"{", b'{"heartbeat": true, "time": 1}', b'{"score": true}'])
        made.append(Event(offset, 1_764_460_000_000 + 7 * offset, key, value))
    return made


def test_an_update_after_every_slide_of_the_key(
    settings_of: Callable[..., config.Settings],
) -> None:
    log = Log()
    log.run(settings_of(), records({"score": i / 10, "label": i % 2} for i in range(14)))
    assert [update["seq"] for update in log.read()] == [1, 2, 3, 4]
    assert [update["source"]["offset"] for update in log.read()] == [2, 5, 8, 11]
    assert [update["window"]["events"] for update in log.read()] == [3, 6, 9, 10]
    assert [update["window"]["full"] for update in log.read()] == [False, False, False, True]


def test_an_update_says_all_of_the_contract(settings_of: Callable[..., config.Settings]) -> None:
    log = Log()
    events = [{"score": s, "label": y} for s, y in ((0.1, 0), (0.4, 0), (0.35, 1), (0.8, 1))]
    log.run(
        settings_of(
            '[[monitor]]\nname = "m"\nwindow = { kind = "count", size = 8, slide = 4 }\n'
            'metrics = ["auc", "h"]\n'
        ),
        records(events),
    )
    assert log.updates[0].key == b"k"
    assert log.read() == [
        {
            "version": 1,
            "monitor": "m",
            "key": "k",
            "seq": 1,
            "time": 1_764_460_000_003,
            "window": {
                "kind": "count",
                "size": 8,
                "slide": 4,
                "events": 4,
                "full": False,
                "start": 1_764_460_000_000,
                "end": 1_764_460_000_003,
            },
            "positives": 2,
            "negatives": 2,
            "auc": 0.75,
            "h": pytest.approx(0.5, abs=1e-12),
            "h_alpha": 2,
            "h_beta": 2,
            "reason": None,
            "note": None,
            "source": {"topic": "events", "partition": 0, "offset": 3, "index": 0},
        }
    ]


EVERYTHING = f"""
[[monitor]]
name = "everything"
window = {{ kind = "count", size = 30, slide = 5 }}
metrics = {list(METRICS)}
thresholds = [0.5, 0.25]
"""


def test_every_metric_is_published(settings_of: Callable[..., config.Settings]) -> None:
    log = Log()
    log.run(
        settings_of(EVERYTHING), records({"score": i % 7 / 7, "label": i % 2} for i in range(30))
    )
    update = log.read()[-1]
    assert update["reason"] is None
    for name, metric in METRICS.items():
        values = update[name].values() if metric.at_thresholds else [update[name]]
        assert all(metric.low <= value <= metric.high for value in values if value is not None)
    assert set(update["f1"]) == {"0.5", "0.25"}
    assert update["gini"] == pytest.approx(2 * update["auc"] - 1)
    assert update["auc_low"] < update["auc"] < update["auc_high"]


def test_a_metric_that_is_not_defined_is_null_with_a_reason(
    settings_of: Callable[..., config.Settings],
) -> None:
    log = Log()
    log.run(settings_of(EVERYTHING), records({"score": -1 - i, "label": i % 2} for i in range(5)))
    (update,) = log.read()
    assert (update["brier"], update["precision"]["0.5"], update["reason"]) == (
        None,
        None,
        "undefined",
    )


def test_every_update_fits_the_schema(settings_of: Callable[..., config.Settings]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = updates.schema()
    schema["additionalProperties"] = False
    log = Log()
    log.run(settings_of(TWO_MONITORS + EVERYTHING), mixed(300))
    assert len(log.updates) > 100
    for update in log.read():
        jsonschema.validate(update, schema)


def test_one_class_is_null_with_a_reason(settings_of: Callable[..., config.Settings]) -> None:
    log = Log()
    log.run(settings_of(), records([{"score": 0.5, "label": 1}] * 3))
    (update,) = log.read()
    assert (update["auc"], update["h"], update["reason"]) == (None, None, "one_class")


def test_readings_are_those_of_the_last_events(
    settings_of: Callable[..., config.Settings],
) -> None:
    events = mixed(600, seed=3)
    plain = [e for e in events if e.key is not None and e.value and b"[" not in e.value]
    log = Log()
    log.run(settings_of(TWO_MONITORS), plain)
    windows = {"small": (7, 2.0, 2.0), "large": (200, 2.0, 4.5)}
    seen: dict[bytes, list[tuple[float, int]]] = {}
    at: dict[tuple[bytes, int], int] = {}
    for event in plain:
        document = orjson.loads(event.value or b"") if event.value != b"{" else {}
        if type(document.get("score")) is float:
            seen.setdefault(event.key or b"", []).append((document["score"], document["label"]))
            at[event.key or b"", event.offset] = len(seen[event.key or b""])
    assert len(log.updates) > 50
    for message, update in zip(log.updates, log.read(), strict=True):
        size, alpha, beta = windows[update["monitor"]]
        stop = at[message.key or b"", update["source"]["offset"]]
        inside = seen[message.key or b""][max(0, stop - size) : stop]
        roc = reference.Roc()
        roc.extend([s for s, _ in inside], [y for _, y in inside])
        assert update["positives"] == sum(y for _, y in inside)
        for name, value in (("auc", roc.auc()), ("h", roc.h_measure(alpha, beta))):
            if name in update:
                expected = None if np.isnan(value) else pytest.approx(value, abs=1e-12)
                assert update[name] == expected


def test_updates_stand_in_the_order_of_offset_index_monitor(
    settings_of: Callable[..., config.Settings],
) -> None:
    log = Log()
    log.run(settings_of(TWO_MONITORS), mixed(400))
    order = [
        (u["source"]["offset"], u["source"]["index"], ["small", "large"].index(u["monitor"]))
        for u in log.read()
    ]
    assert order == sorted(order)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_cuts_and_crashes_change_nothing(
    settings_of: Callable[..., config.Settings], data: st.DataObject
) -> None:
    """Runs cut anywhere, a crash before or after any commit: same bytes, each once."""
    job = settings_of(TWO_MONITORS)
    events = mixed(150, seed=data.draw(st.integers(0, 20)))
    undisturbed = Log()
    expected = undisturbed.run(job, events)

    log = Log()
    pipeline = log.run_disturbed(job, events, data)
    assert log.updates == undisturbed.updates
    assert log.rejections == undisturbed.rejections
    restored = log.open(job)
    assert restored.cursor == expected.cursor
    assert _content(restored) == _content(expected) == _content(pipeline)


ACROSS_PAGES = """
[[monitor]]
name = "short"
window = { kind = "count", size = 3, slide = 1 }
metrics = ["auc"]

[[monitor]]
name = "long"
window = { kind = "count", size = 64, slide = 2 }
metrics = ["auc"]
"""


@pytest.mark.parametrize("length", [1, 2, 4])
def test_no_stop_of_a_small_log_changes_anything(
    settings_of: Callable[..., config.Settings], monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    """All of them: whatever is done at the first boundaries, in runs of each length.

    A page ends and one leaves its window meanwhile, and there are boundaries within a record.
    """
    monkeypatch.setattr(pipeline_module, "BATCH_EVENTS", 3)
    job = settings_of(ACROSS_PAGES)
    columnar = {"score": [0.1, 0.4, "bad", 0.9, 0.2], "label": [0, 1, 1, 1, 0]}
    filled = [{"score": i % 5 / 5, "label": i % 2} for i in range(PAGE_EVENTS - 2)]
    small = [columnar, b"{", {"score": 0.3, "label": 1}]
    events = [
        *records(filled),
        *records(small, start=len(filled)),
        *records([{"score": 0.3, "label": 0}], b"other", start=len(filled) + len(small)),
    ]
    begun = Log()
    begun.run(job, events[: len(filled)])
    undisturbed = copy.deepcopy(begun)
    expected = undisturbed.run(job, events)
    assert {key.page for raw in undisturbed.changelog if (key := parse_key(raw))} == {0, 1}
    done = set()
    for acts in itertools.product(("go on", "commit", "commit, crash", "crash"), repeat=4):
        log = copy.deepcopy(begun)
        log.run_with_stops(job, events, acts, length)
        assert log.updates == undisturbed.updates
        assert log.rejections == undisturbed.rejections
        restored = log.open(job)
        assert restored.cursor == expected.cursor
        assert _content(restored) == _content(expected)
        done.add(log.transactions)
    assert len(done) > 3


def _content(pipeline: Pipeline) -> dict[tuple[str, str], Any]:
    return {
        (watch.monitor.name, key): (
            kept.window.first,
            kept.window.seen,
            *(
                None if column is None else column.tolist()
                for column in kept.window.columns(kept.window.first, kept.window.seen)
            ),
        )
        for watch in pipeline._watches
        for key, kept in watch.windows.items()
    }


def test_a_large_columnar_record_is_taken_in_pieces(
    settings_of: Callable[..., config.Settings],
) -> None:
    count = 3 * BATCH_EVENTS + 10
    record = records([{"score": [0.5] * count, "label": [1, 0] * (count // 2)}])
    job = settings_of()
    log = Log()
    pipeline = log.open(job)
    cursors = []
    while pipeline.cursor.offset == 0:
        next(pipeline.process(record))
        cursors.append((pipeline.cursor.offset, pipeline.cursor.index))
        log.commit(pipeline.take())
        pipeline = log.open(job)
    assert cursors == [
        (0, BATCH_EVENTS),
        (0, 2 * BATCH_EVENTS),
        (0, 3 * BATCH_EVENTS),
        (1, 0),
    ]
    assert [update["seq"] for update in log.read()] == list(range(1, count // 3 + 1))


def test_pages_behind_the_window_get_tombstones(
    settings_of: Callable[..., config.Settings],
) -> None:
    log = Log()
    job = settings_of()
    for start in range(0, 1000, 10):
        log.run(job, records([{"score": 0.5, "label": 1}] * 10, start=start))
    pages = [key for raw in log.changelog if (key := parse_key(raw)) is not None]
    assert {page.page for page in pages} == {989 // PAGE_EVENTS, 999 // PAGE_EVENTS}


def test_a_lost_page_is_noticed(settings_of: Callable[..., config.Settings]) -> None:
    job = settings_of(TWO_MONITORS)
    log = Log()
    log.run(job, records([{"score": 0.5, "label": 1}] * 300))
    middle = sorted(raw for raw in log.changelog if b"large" in raw)[1]
    del log.changelog[middle]
    with pytest.raises(
        StateError, match=r"lacks events .* \(changelog watch-windows-changelog, partition 0\)$"
    ):
        log.open(job)


def test_pages_without_a_cursor_are_noticed(settings_of: Callable[..., config.Settings]) -> None:
    log = Log()
    log.run(settings_of(), records([{"score": 0.5, "label": 1}]))
    del log.changelog[b"\x00"]
    with pytest.raises(StateError, match="no cursor"):
        log.open(settings_of())


def test_a_changed_event_section_is_refused(settings_of: Callable[..., config.Settings]) -> None:
    log = Log()
    log.run(settings_of(), records([{"score": 0.5, "label": 1}]))
    with pytest.raises(
        DecisionError, match=r"\[event\] settings differ .* \(topic events, partition 0\)"
    ):
        log.open(settings_of('[event]\nscore = "p"\n' + MONITOR))


@pytest.mark.parametrize(
    ("changed", "seqs"),
    [
        pytest.param(MONITOR, [1, 2, 3], id="unchanged: goes on"),
        pytest.param(MONITOR.replace("slide = 3", "slide = 4"), [1, 1], id="slide: restarts"),
        pytest.param(MONITOR.replace("last-10", "new"), [1, 1, 2], id="renamed: restarts"),
        pytest.param(MONITOR.replace("size = 10", "size = 99"), [1, 2, 3], id="size: goes on"),
        pytest.param(MONITOR.replace(', "h"', ""), [1, 2, 3], id="metrics: goes on"),
    ],
)
def test_what_a_changed_monitor_does(
    settings_of: Callable[..., config.Settings], changed: str, seqs: list[int]
) -> None:
    events = records([{"score": 0.5, "label": 1}] * 10)
    log = Log()
    log.run(settings_of(), events[:4])
    log.run(settings_of(changed), events)
    assert [update["seq"] for update in log.read()] == seqs
    monitors = {key.monitor for raw in log.changelog if (key := parse_key(raw)) is not None}
    assert len(monitors) == 1


def test_behind_an_accepted_gap_windows_restart_and_say_so(
    settings_of: Callable[..., config.Settings],
) -> None:
    log = Log()
    events = records([{"score": 0.5, "label": 1}] * 30)
    log.run(settings_of(), events[:9])
    pipeline = log.open(settings_of())
    pipeline.start_at(20, gap=True)
    for _ in pipeline.process(events[20:]):
        pass
    log.commit(pipeline.take())
    assert [(u["seq"], u["note"]) for u in log.read()[3:]] == [(1, "gap"), (2, None), (3, None)]
    assert log.open(settings_of()).cursor.gap


def test_behind_an_accepted_gap_the_state_is_of_the_topic_as_it_is(
    settings_of: Callable[..., config.Settings],
) -> None:
    """Else the next start would find that the topic was made again, once more."""
    job, log = settings_of(), Log()

    def pipeline_on(topic_id: str) -> Pipeline:
        pipeline = Pipeline(job, "events", 0, topic_id=topic_id)
        pipeline.restore(log.changelog)
        return pipeline

    log.commit(pipeline_on("old").take())
    assert pipeline_on("new").cursor.topic_id == "old"
    pipeline = pipeline_on("new")
    pipeline.start_at(0, gap=True)
    log.commit(pipeline.take())
    assert pipeline_on("new").cursor.topic_id == "new"
    # A broker that tells no ids is not believed to have another topic.
    pipeline = pipeline_on("")
    pipeline.start_at(7, gap=True)
    assert pipeline.cursor.topic_id == "new"


def test_weights_of_a_window_long_past_do_not_show(
    settings_of: Callable[..., config.Settings],
) -> None:
    job = settings_of('[event]\nweight = "w"\n' + MONITOR)
    light = [{"score": i / 7, "label": i % 2, "w": 1} for i in range(30)]
    heavy = [{"score": 0.1, "label": 1, "w": 2.5}] * 3
    log, plain = Log(), Log()
    log.run(job, records(heavy + light))
    plain.run(job, records(light[:3] + light))
    assert log.updates[-1] == plain.updates[-1]
