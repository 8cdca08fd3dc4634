"""What a job should publish, computed offline from the events alone."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pytest
from sklearn.metrics import roc_auc_score

from engine import reference

if TYPE_CHECKING:
    from collections.abc import Callable

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
    # Equal events together: one by one they take most of a test's time.
    (scores, labels), counts = np.unique((scores, labels), axis=1, return_counts=True)
    roc.extend(scores, labels, counts)
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
