"""The demo's events: real, the same each time, and one model goes bad while the others stay."""

from __future__ import annotations

from itertools import islice

import numpy as np
from sklearn.metrics import roc_auc_score

from worker import demo
from worker.demo import FAILING, FAILING_EVENTS, HEALTHY_EVENTS, WORST, ScoredEvent

WINDOW = 1_000


def auc(events: list[ScoredEvent]) -> float:
    return float(
        roc_auc_score([event.label for event in events], [event.score for event in events])
    )


def by_key(count: int) -> dict[str, list[ScoredEvent]]:
    found: dict[str, list[ScoredEvent]] = {}
    for event in islice(demo.stream(), count):
        found.setdefault(event.key, []).append(event)
    return found


def test_the_sample_is_1250_pages_scored_by_five_models() -> None:
    sample = demo.sample()
    assert len(sample) == 5
    assert {len(events) for events in sample.values()} == {1_250}
    assert {sum(event.label for event in events) for events in sample.values()} == {548}
    assert all(0.9 < auc(events) < 0.97 for events in sample.values())


def test_the_sample_has_ties() -> None:
    scores = [event.score for event in demo.sample()["phishing-knn"]]
    assert len(set(scores)) < 0.6 * len(scores)


def test_the_stream_is_the_same_each_time() -> None:
    assert list(islice(demo.stream(), 5_000)) == list(islice(demo.stream(), 5_000))
    assert list(islice(demo.stream(1), 50)) != list(islice(demo.stream(2), 50))


def test_the_keys_take_turns() -> None:
    assert {len(events) for events in by_key(5_000).values()} == {1_000}


def test_a_pass_holds_each_event_of_the_sample_once_in_another_order() -> None:
    played, sample = by_key(12_500)["phishing-knn"], demo.sample()["phishing-knn"]
    first, second = played[:1_250], played[1_250:]
    assert sorted(first) == sorted(second) == sorted(sample)
    assert first not in (second, sample)


def test_the_failing_key_falls_slowly_and_the_others_stay() -> None:
    count = HEALTHY_EVENTS + FAILING_EVENTS + WINDOW
    for key, events in by_key(5 * count).items():
        readings = np.array(
            [auc(events[end - WINDOW : end]) for end in range(WINDOW, count + 1, WINDOW // 2)]
        )
        if key == FAILING:
            assert readings[0] > 0.95
            assert readings[-1] < 0.6
            assert np.diff(readings).min() > -0.1
        else:
            assert np.ptp(readings) < 0.03


def test_the_failing_scores_look_as_ever() -> None:
    events = by_key(5 * 20_000)[FAILING]
    before, after = events[:HEALTHY_EVENTS], events[-10_000:]
    for quantile in (0.1, 0.5, 0.9):
        healthy, failing = (
            float(np.quantile([event.score for event in part], quantile))
            for part in (before, after)
        )
        assert abs(healthy - failing) < 0.06


def test_the_share_of_wrong_scores_grows_to_its_worst() -> None:
    assert demo.wrong_share(HEALTHY_EVENTS) == 0
    assert demo.wrong_share(HEALTHY_EVENTS + FAILING_EVENTS // 2) == WORST / 2
    assert demo.wrong_share(10**9) == WORST
