"""Counts past 2^31, pairs past 2^53 and sums past 2^64 are exact: held against whole numbers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri

core = pytest.importorskip("engine._core")

MOST = 2**32 - 1  # events of a Roc
Blocks = list[tuple[int, int]]  # negatives and positives at each score, ascending

SIZES = st.one_of(
    st.integers(0, 3),
    st.sampled_from([2**16, 2**26, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 10]),
    st.integers(0, 2**32),
)


@st.composite
def blocks(draw: Any) -> Blocks:
    """Draw blocks of as many events as a Roc holds, one or two of them most of it or all alike."""
    drawn = draw(st.lists(st.tuples(SIZES, SIZES), min_size=1, max_size=12))
    total = sum(map(sum, drawn))
    if total > MOST:
        drawn = [(d0 * MOST // total, d1 * MOST // total) for d0, d1 in drawn]
    return [block for block in drawn if sum(block)]


def made(of: Blocks) -> Any:
    negative, positive = np.array(of, np.int64).reshape(-1, 2).T
    roc = core.Roc._of_counts(np.arange(len(of), dtype=float), negative, positive)
    roc._check()
    return roc


def classes(of: Blocks) -> tuple[int, int]:
    return sum(d0 for d0, _ in of), sum(d1 for _, d1 in of)


def twice_u(of: Blocks) -> int:
    below = found = 0
    for d0, d1 in of:
        found += d1 * (2 * below + d0)
        below += d0
    return found


def exact_auc(of: Blocks) -> float:
    n0, n1 = classes(of)
    return float(Fraction(twice_u(of), 2 * n0 * n1)) if n0 and n1 else math.nan


def exact(value: float) -> Any:
    """Compare with a value to the last bit, nan equal to nan."""
    return pytest.approx(value, rel=0, abs=0, nan_ok=True)


def exact_h(of: Blocks) -> float:
    """H for Beta(2, 2) in whole numbers: pool neighbours until the share of positives rises."""
    n0, n1 = classes(of)
    if not n0 or not n1:
        return math.nan
    edges: list[tuple[int, int]] = []
    for block in of:
        d0, d1 = block
        while edges and edges[-1][1] * d0 >= d1 * edges[-1][0]:
            d0, d1 = edges[-1][0] + d0, edges[-1][1] + d1
            edges.pop()
        edges.append((d0, d1))

    def loss(d0: int, d1: int) -> Fraction:
        c = Fraction(d1, d0 + d1)
        false = 2 * c**3 - Fraction(3, 2) * c**4
        missed = Fraction(1, 2) - 3 * c**2 + 4 * c**3 - Fraction(3, 2) * c**4
        return d0 * false + d1 * missed

    return float(1 - sum((loss(*edge) for edge in edges), Fraction(0)) / loss(n0, n1))


def exact_interval(of: Blocks) -> tuple[float, float]:
    """DeLong's interval from the sample variances as they are defined."""
    n0, n1 = classes(of)
    if min(n0, n1) < 2:
        return math.nan, math.nan
    auc = Fraction(twice_u(of), 2 * n0 * n1)
    below0 = below1 = 0
    spread1 = spread0 = Fraction(0)
    for d0, d1 in of:
        spread1 += d1 * (Fraction(2 * below0 + d0, 2 * n0) - auc) ** 2
        spread0 += d0 * (Fraction(2 * (n1 - below1 - d1) + d1, 2 * n1) - auc) ** 2
        below0, below1 = below0 + d0, below1 + d1
    variance = spread1 / (n1 - 1) / n1 + spread0 / (n0 - 1) / n0
    reach = float(ndtri(0.975)) * math.sqrt(variance)
    return max(float(auc) - reach, 0.0), min(float(auc) + reach, 1.0)


def assert_exact(roc: Any, of: Blocks) -> None:
    assert (roc.negatives, roc.positives) == classes(of)
    assert roc.auc() == exact(exact_auc(of))
    assert roc.h_measure() == pytest.approx(exact_h(of), abs=1e-12, nan_ok=True)
    assert roc.auc_interval() == pytest.approx(exact_interval(of), abs=1e-12, nan_ok=True)


@given(blocks())
@settings(max_examples=400, deadline=None)
def test_readings_of_any_counts_are_those_of_whole_numbers(of: Blocks) -> None:
    roc = made(of)
    assert len(roc) == sum(map(sum, of))
    assert_exact(roc, of)
    n0, n1 = classes(of)
    if n0 and n1:
        tied = Fraction(sum(d0 * d1 for d0, d1 in of), n0 * n1)
        assert roc.ties().tied == pytest.approx(float(tied), rel=1e-15)
        assert roc.ties().strict == pytest.approx(
            float(Fraction(twice_u(of), 2 * n0 * n1) - tied / 2), rel=1e-15
        )
        below = of[: len(of) // 2]
        confusion = roc.confusion(float(len(below)))
        assert (confusion.tn, confusion.fn) == classes(below)


CHANGES = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 1), st.booleans()), max_size=30)


@given(blocks(), CHANGES)
@settings(max_examples=150, deadline=None)
def test_events_come_and_go_among_billions(of: Blocks, changes: Any) -> None:
    roc = made(of)
    roc.h_measure()
    now = [list(block) for block in of] or [[0, 0]]
    for place, label, enters in changes:
        at = place % len(now)
        if enters:
            if sum(map(sum, now)) == MOST:
                with pytest.raises(OverflowError):
                    roc.add(float(at), label)
                continue
            roc.add(float(at), label)
            now[at][label] += 1
        elif now[at][label]:
            roc.remove(float(at), label)
            now[at][label] -= 1
        else:
            with pytest.raises(KeyError):
                roc.remove(float(at), label)
            continue
        left = [(d0, d1) for d0, d1 in now if d0 + d1]
        assert roc.auc() == exact(exact_auc(left))
        assert roc.h_measure() == pytest.approx(exact_h(left), abs=1e-12, nan_ok=True)
    roc._check()


def test_what_is_too_many_is_refused_and_changes_nothing() -> None:
    roc = made([(2**31, 2**31 - 1)])
    assert len(roc) == MOST
    before = roc.auc(), roc.h_measure()
    for call in (
        lambda: roc.add(0.5, 1),
        lambda: roc.add(0.0, 0),
        lambda: roc.extend([0.5], [1]),
    ):
        with pytest.raises(OverflowError, match="4294967295"):
            call()
    roc._check()
    assert (len(roc), roc.auc(), roc.h_measure()) == (MOST, *before)
    roc.remove(0.0, 0)
    roc.add(0.5, 1)
    assert_exact(roc, [(2**31 - 1, 2**31 - 1), (0, 1)])


def test_delong_sums_past_64_bits_are_exact() -> None:
    rng = np.random.default_rng(2)
    size = 4_000_000
    labels = rng.random(size) < 0.5
    scores = (rng.normal(size=size) + labels).round(1)
    values, at = np.unique(scores, return_inverse=True)
    negative = np.bincount(at[~labels], minlength=len(values)).tolist()
    positive = np.bincount(at[labels], minlength=len(values)).tolist()
    of = list(zip(negative, positive, strict=True))
    assert 4 * classes(of)[1] * classes(of)[0] ** 2 > 2**64
    roc = core.Roc()
    roc.extend(scores, labels)
    assert_exact(roc, of)


@pytest.mark.slow
def test_pairs_past_2_to_the_53_one_event_at_a_time() -> None:
    roc = core.Roc()
    size, calls = 10_000_000, 10
    low, high = np.full(size, 0.25), np.full(size, 0.5)
    negative, positive = np.zeros(size, np.uint8), np.ones(size, np.uint8)
    for _ in range(calls):
        roc.extend(low, negative)
        roc.extend(high, positive)
    roc.add(0.25, 1)
    roc.add(0.5, 0)
    roc.add(0.75, 0)
    of = [(size * calls, 1), (1, size * calls), (1, 0)]
    assert math.prod(classes(of)) > 2**53
    assert_exact(roc, of)
    for _ in range(3):
        roc.remove(0.5, 1)
    assert_exact(roc, [(size * calls, 1), (1, size * calls - 3), (1, 0)])
