"""The compiled structures at sizes where leaves and nodes split, merge and change their kind."""
# ruff: noqa: S311 - tests repeat their chances

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

core = pytest.importorskip("engine._core")

Event = tuple[float, int]
SHAPES = ("uniform", "grid", "two values", "ascending", "descending", "saw", "bursts of ties")


def shaped(shape: str, count: int, chance: random.Random) -> Iterator[Event]:
    for i in range(count):
        score = {
            "uniform": chance.random(),
            "grid": round(chance.gauss(0, 1), 2),
            "two values": float(chance.random() < 0.3),
            "ascending": float(i),
            "descending": float(-i),
            "saw": float(i % 1511),
            "bursts of ties": float(chance.randrange(100)) if i % 500 < 100 else chance.random(),
        }[shape]
        yield score, int(chance.random() < 0.4)


def fresh(events: list[Event]) -> Any:
    roc = core.Roc()
    roc.extend([score for score, _ in events], [label for _, label in events])
    return roc


def assert_same_bits(roc: Any, events: list[Event]) -> None:
    roc._check()
    other = fresh(events)
    assert len(roc) == len(events)
    for read in (lambda r: r.auc(), lambda r: r.h_measure(), lambda r: r.h_measure(1.5, 3)):
        one, two = read(roc), read(other)
        assert one == two or (math.isnan(one) and math.isnan(two))
    for one, two in zip(roc.hull(), other.hull(), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("leaving", ["oldest first", "newest first", "at random"])
def test_growing_and_shrinking_leaves_no_trace(shape: str, leaving: str) -> None:
    chance = random.Random(f"{shape} {leaving}")
    events = list(shaped(shape, 20_000, chance))
    roc = core.Roc()
    for event in events:
        roc.add(*event)
    assert_same_bits(roc, events)
    if leaving == "newest first":
        events.reverse()
    if leaving == "at random":
        chance.shuffle(events)
    for i, event in enumerate(events):
        roc.remove(*event)
        if i in {1000, 12_000, 19_500, 19_998}:
            assert_same_bits(roc, events[i + 1 :])
    assert roc._bytes() < 10_000
    assert_same_bits(roc, [])


def test_three_levels_of_nodes_grow_and_vanish() -> None:
    chance = np.random.default_rng(6)
    scores, labels = chance.random(400_000), chance.random(400_000) < 0.5
    roc = core.Roc()
    roc.add(2.0, 1)
    roc.extend(scores, labels)
    roc._check()
    order = chance.permutation(400_000)
    for place in order[:390_000]:
        roc.remove(scores[place], labels[place])
    roc.remove(2.0, 1)
    left = order[390_000:]
    assert_same_bits(roc, list(zip(scores[left].tolist(), labels[left].tolist(), strict=True)))


def lattice(largest: int) -> list[Event]:
    """Make the hull with the most edges: one per reduced fraction."""
    edges = [
        (d0, total - d0)
        for total in range(1, largest + 1)
        for d0 in range(total + 1)
        if math.gcd(d0, total) == 1
    ]
    edges.sort(key=lambda edge: edge[1] / sum(edge))
    labels = [label for d0, d1 in edges for label in [1] * d1 + [0] * d0]
    return [(float(place), label) for place, label in enumerate(labels)]


def burst(kind: int, count: int, turn: int, chance: random.Random) -> list[Event]:
    if kind == 0:
        return random.Random(turn).sample(lattice(20), min(count, 2000))
    centre, width = chance.gauss(0, 1), chance.uniform(0.05, 1)
    share = chance.random() * chance.random()
    grid = 2 ** chance.randrange(12)
    events = []
    for _ in range(count):
        label = int(chance.random() < share)
        score = chance.gauss(0, 1) * width + centre * label
        if kind == 1:
            score = round(score * grid) / grid
        if kind == 2:
            score += 10 * turn
        events.append((score, label))
    return events


@pytest.mark.parametrize("seed", range(25))
def test_a_followed_hull_is_the_swept_one_after_bursts_of_any_length(seed: int) -> None:
    chance = random.Random(seed)
    roc = core.Roc()
    inside: list[Event] = []
    for turn in range(16):
        for event in burst(chance.randrange(4), int(math.exp(chance.uniform(0, 7))), turn, chance):
            roc.add(*event)
            inside.append(event)
            if chance.random() < 0.05:
                roc.h_measure()
        if chance.random() < 0.3:
            chance.shuffle(inside)
        for _ in range(min(int(math.exp(chance.uniform(0, 7))), len(inside))):
            roc.remove(*inside.pop())
            if chance.random() < 0.05:
                roc.h_measure()
        assert_same_bits(roc, inside)


def test_reading_at_every_event_follows_a_lattice_that_crumbles_and_heals() -> None:
    events = lattice(14)
    roc = fresh(events)
    roc.h_measure()
    for event in random.Random(1).sample(events, len(events)):
        roc.remove(*event)
        low = roc.h_measure()
        roc.add(*event)
        assert roc.h_measure() >= low - 0.1
        roc.remove(event[0], event[1])
        roc.add(event[0], 1 - event[1])
        roc.h_measure()
        roc.remove(event[0], 1 - event[1])
        roc.add(*event)
    assert_same_bits(roc, events)


def test_severities_may_alternate_without_mixing_their_terms() -> None:
    chance = random.Random(3)
    events = list(shaped("uniform", 3000, chance))
    roc = fresh(events)
    for event in shaped("uniform", 100, chance):
        roc.add(*event)
        events.append(event)
        one = roc.h_measure(), roc.h_measure(1, 4), roc.h_measure(), roc.h_measure(1, 4)
        assert one[:2] == one[2:]
    assert_same_bits(roc, events)


def test_one_weight_other_than_1_passes_through_without_a_trace() -> None:
    events = list(shaped("grid", 3000, random.Random(4)))
    roc = fresh(events)
    auc, h = roc.auc(), roc.h_measure()
    roc.add(0.125, 1, 0.3)
    roc.add(0.0, 0, 1e12)
    assert (type(roc.positives), len(roc)) == (float, 3002)
    roc._check()
    roc.remove(0.0, 0, 1e12)
    roc.remove(0.125, 1, 0.3)
    assert (roc.auc(), roc.h_measure(), type(roc.positives)) == (auc, h, int)
    assert_same_bits(roc, events)


def test_weights_do_not_drift_over_many_events_of_very_different_size() -> None:
    chance = random.Random(5)
    roc = core.Roc()
    inside: list[tuple[float, int, float]] = []
    for i in range(20_000):
        event = (round(chance.random(), 3), i % 2, 10 ** chance.uniform(-6, 6))
        roc.add(*event)
        inside.append(event)
        if len(inside) > 500:
            roc.remove(*inside.pop(chance.randrange(500)))
    roc._check()
    other = core.Roc()
    other.extend(*map(np.array, zip(*inside, strict=True)))
    assert roc.auc() == pytest.approx(other.auc(), abs=1e-14)
    assert roc.h_measure() == pytest.approx(other.h_measure(), abs=1e-14)


def test_a_weight_whose_products_leave_the_doubles_is_refused() -> None:
    roc = core.Roc()
    roc.add(0.5, 1)
    with pytest.raises(ValueError, match="2\\*\\*400"):
        roc.extend([0.1, 0.2], [0, 1], [1.0, 1e300])
    assert (len(roc), roc.positives, roc.negatives) == (1, 1, 0)
    roc._check()


def test_memory_stays_small() -> None:
    chance = np.random.default_rng(1)
    scores, labels = chance.random(50_000), chance.random(50_000) < 0.5
    bulk, single = core.Roc(), core.Roc()
    bulk.extend(scores, labels)
    single.add(0.5, 1)
    assert single._bytes() < 1000
    single.extend(scores, labels)
    single.remove(0.5, 1)
    assert bulk.auc() == single.auc()
    assert bulk._bytes() < 12 * 50_000
    assert single._bytes() < 18 * 50_000
    assert core.Roc()._bytes() == core.CountWindow(10**9)._bytes() == 0
