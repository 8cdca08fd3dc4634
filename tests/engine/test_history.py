"""No reading remembers how the content came about."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import reference

POOLS = {
    "spread": lambda rng: rng.normal(),
    "tied": lambda rng: float(rng.integers(0, 12)),
    "two values": lambda rng: float(rng.integers(0, 2)),
    "denormal": lambda rng: float(rng.integers(-9, 9)) * 5e-324,
    "one value": lambda _: 0.5,
}


def bits(*values: float) -> bytes:
    return struct.pack(f"{len(values)}d", *values)


def readings(roc: Any) -> bytes:
    return bits(roc.auc(), roc.h_measure(), roc.h_measure(2, 1.5), roc.h_measure(priors=(0.7, 0.3)))


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
def test_a_changed_roc_has_the_bits_of_a_fresh_one(roc_of: Any, pool: Any) -> None:
    rng = np.random.default_rng(11)
    roc, inside = roc_of(), []
    for step in range(3000):
        if inside and rng.random() < (0.35 if step < 2000 else 0.7):
            roc.remove(*inside.pop(int(rng.integers(len(inside)))))
        else:
            event = (pool(rng), int(rng.integers(0, 2)))
            roc.add(*event)
            inside.append(event)
        if step % 500 == 499 or not inside:
            roc._check()
            fresh = roc_of(*zip(*inside, strict=True)) if inside else roc_of()
            assert readings(roc) == readings(fresh)
            rng.shuffle(inside)


EVENTS = st.lists(st.tuples(st.integers(-4, 4).map(float), st.integers(0, 1)), max_size=40)


@given(EVENTS, EVENTS, st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_order_of_adds_and_removes_does_not_matter(
    roc_of: Any, kept: Any, gone: Any, random: Any
) -> None:
    steps = [(event, "add") for event in kept + gone]
    random.shuffle(steps)
    roc = roc_of()
    for event, _ in steps:
        roc.add(*event)
    for event in gone:
        roc.remove(*event)
    random.shuffle(kept)
    assert readings(roc) == readings(roc_of(*zip(*kept, strict=True)) if kept else roc_of())


def test_both_implementations_give_the_same_auc_bits(roc_of: Any) -> None:
    rng = np.random.default_rng(5)
    for size in (2, 3, 10, 101, 1000):
        labels = rng.integers(0, 2, size)
        scores = (rng.normal(size=size) + labels).round(2)
        twin = reference.Roc()
        twin.extend(scores, labels)
        roc = roc_of(scores, labels)
        assert bits(roc.auc()) == bits(twin.auc())
        for severity in ((2, 2), (1, 1), (2, 1.25), (0.5, 3)):
            assert roc.h_measure(*severity) == pytest.approx(
                twin.h_measure(*severity), abs=1e-12, nan_ok=True
            )
