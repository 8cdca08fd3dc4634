"""The worker on a real Kafka: exactly the updates of an offline computation, each once."""

from __future__ import annotations

import math
import random
import signal
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pytest
from hmeasure import h_score
from sklearn.metrics import roc_auc_score

from engine import reference

if TYPE_CHECKING:
    from collections.abc import Callable

    from jobs import Job

pytestmark = pytest.mark.broker

SIZE, SLIDE = 500, 50


def tied_events(count: int, keys: int, seed: int = 7) -> list[tuple[bytes, bytes]]:
    """Events of several keys with one-decimal scores, so that most are tied."""
    rng = random.Random(seed)  # noqa: S311 - a seeded stream
    made = []
    for _ in range(count):
        label = int(rng.random() < 0.3)
        score = round(rng.gauss(label, 1), 1)
        made.append(
            (b"key-%d" % rng.randrange(keys), orjson.dumps({"score": score, "label": label}))
        )
    return made


def expected_updates(
    events: list[tuple[bytes, bytes]], h_of: Callable[[np.ndarray, np.ndarray], float]
) -> dict[tuple[str, int], tuple[int, int, float, float]]:
    """What a computation from scratch gives, by (key, seq)."""
    by_key: dict[bytes, list[tuple[float, int]]] = defaultdict(list)
    for key, value in events:
        document = orjson.loads(value)
        by_key[key].append((document["score"], document["label"]))
    expected = {}
    for key, seen in by_key.items():
        for seq in range(1, len(seen) // SLIDE + 1):
            inside = seen[max(0, seq * SLIDE - SIZE) : seq * SLIDE]
            scores = np.array([score for score, _ in inside])
            labels = np.array([label for _, label in inside])
            positives = int(labels.sum())
            if 0 < positives < len(labels):
                auc = float(roc_auc_score(labels, scores))
                h = h_of(scores, labels)
            else:
                auc = h = math.nan
            expected[key.decode(), seq] = (len(inside), positives, auc, h)
    return expected


def reference_h(scores: np.ndarray, labels: np.ndarray) -> float:
    roc = reference.Roc()
    roc.extend(scores, labels)
    return roc.h_measure()


def assert_exactly(updates: list[dict[str, Any]], expected: dict[tuple[str, int], Any]) -> None:
    """Each expected update once, with its numbers; each key's in order."""
    found = [(update["key"], update["seq"]) for update in updates]
    assert len(found) == len(set(found)), "an update was published twice"
    assert set(found) == set(expected)
    for update in updates:
        events, positives, auc, h = expected[update["key"], update["seq"]]
        assert update["window"]["events"] == events
        assert (update["positives"], update["negatives"]) == (positives, events - positives)
        assert update["auc"] == pytest.approx(auc, abs=1e-12)
        assert update["h"] == pytest.approx(h, abs=1e-12)
    by_key: dict[str, list[int]] = defaultdict(list)
    for key, seq in found:
        by_key[key].append(seq)
    assert all(seqs == list(range(1, len(seqs) + 1)) for seqs in by_key.values())


def test_200_000_events_and_five_kills_give_every_update_once(
    new_job: Callable[..., Job],
) -> None:
    job = new_job()
    events = tied_events(200_000, keys=20)
    expected = expected_updates(events, reference_h)
    rng = random.Random(5)  # noqa: S311 - a seeded choice
    stops = sorted(rng.sample(range(10_000, 190_000), 5))
    sent = 0
    for stop in stops:
        with job.worker() as worker:
            worker.wait_until_ready()
            job.produce(events[sent:stop])
            sent = stop
            # Somewhere in the middle of the work, wherever that is.
            goal = rng.randrange(1, len(expected) * stop // len(events))
            worker.wait_for(lambda goal=goal: len(job.read(job.settings.topics.updates, 0)) >= goal)
            worker.kill()
    with job.worker() as worker:
        job.produce(events[sent:])
        updates = job.updates(len(expected), seconds=120)
        worker.signal(signal.SIGTERM)
        assert worker.exit_code() == 0, worker.text()[-3000:]
    assert_exactly(updates, expected)
    assert job.state()["events"] == len(events)
    assert '"level":"error"' not in worker.text().replace(" ", "")


def test_readings_are_those_of_scikit_learn_and_hmeasure(new_job: Callable[..., Job]) -> None:
    job = new_job()
    events = tied_events(4_000, keys=3, seed=11)
    # hmeasure takes scores from 0 to 1, and asks for the severities Beta(2, 2) by their ratio.
    expected = expected_updates(
        events,
        lambda scores, labels: h_score(
            labels, (scores - scores.min()) / (np.ptp(scores) or 1), severity_ratio=1
        ),
    )
    job.produce(events)
    with job.worker():
        assert_exactly(job.updates(len(expected)), expected)


def test_workers_that_come_and_go_share_the_work(new_job: Callable[..., Job]) -> None:
    job = new_job(partitions=4)
    events = tied_events(30_000, keys=12, seed=3)
    expected = expected_updates(events, reference_h)
    with job.worker() as first:
        first.wait_until_ready()
        job.produce(events[:10_000])
        with job.worker() as second:
            second.wait_until_ready()
            job.produce(events[10_000:20_000])
            second.wait_for(lambda: len(job.read(job.settings.topics.updates, 0)) > 250)
            first.signal(signal.SIGTERM)
            assert first.exit_code() == 0, first.text()[-3000:]
            job.produce(events[20_000:])
            assert_exactly(job.updates(len(expected), seconds=90), expected)


def test_ctrl_c_finishes_and_leaves(new_job: Callable[..., Job]) -> None:
    job = new_job()
    events = tied_events(5_000, keys=4)
    job.produce(events)
    with job.worker() as worker:
        job.updates(len(expected_updates(events, reference_h)))
        worker.signal(signal.SIGINT)
        assert worker.exit_code() == 0, worker.text()[-3000:]
        assert "Traceback" not in worker.text()
    assert job.state()["events"] == len(events)
