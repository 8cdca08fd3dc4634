"""The volume under the hyper-surface equals the paper's estimators, whatever ties."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine


def direct(samples: list[list[float]]) -> Fraction:
    """Weigh every choice of one score per class, as the definition has it."""
    total = Fraction(0)
    for choice in product(*samples):
        if any(low > high for low, high in pairwise(choice)):
            continue
        weight, run = Fraction(1), 1
        for low, high in pairwise(choice):
            run = run + 1 if low == high else 1
            weight /= run
        total += weight
    return total / math.prod(map(len, samples))


def by_patterns(samples: list[list[float]]) -> Fraction:
    """Count the events of each of the 2^(r-1) patterns of equalities by a dynamic programme."""
    scores = sorted({score for sample in samples for score in sample})
    counts = [[sample.count(score) for score in scores] for sample in samples]
    total = Fraction(0)
    for equal in product((False, True), repeat=len(samples) - 1):
        runs = [[0]]
        for place, same in enumerate(equal, 1):
            if same:
                runs[-1].append(place)
            else:
                runs.append([place])
        below = [1] * len(scores)  # chains of the runs so far that end below each score
        for run in runs:
            here = [
                chains * math.prod(counts[place][at] for place in run)
                for at, chains in enumerate(below)
            ]
            below = [sum(here[:at]) for at in range(len(scores))]
            events = sum(here)
        total += Fraction(events, math.prod(math.factorial(len(run)) for run in runs))
    return total / math.prod(map(len, samples))


def roc_of(samples: list[list[float]]) -> Any:
    roc = engine.OrdinalRoc(classes=len(samples))
    for label, sample in enumerate(samples):
        roc.extend(sample, [label] * len(sample))
    roc._check()
    return roc


SAMPLES = st.integers(2, 4).flatmap(
    lambda classes: st.lists(
        st.lists(st.integers(0, 4).map(float), min_size=1, max_size=5),
        min_size=classes,
        max_size=classes,
    )
)


@given(SAMPLES)
@settings(max_examples=80, deadline=None)
def test_it_is_the_direct_estimator(samples: Any) -> None:
    expected = direct(samples)
    assert by_patterns(samples) == expected
    assert roc_of(samples).vuhs() == float(expected)


@pytest.mark.parametrize("classes", [5, 6, 7, 8])
def test_many_classes_agree_with_the_dynamic_programme(classes: int) -> None:
    rng = np.random.default_rng(classes)
    samples = [rng.poisson(2 + k / 2, 30).astype(float).tolist() for k in range(classes)]
    assert roc_of(samples).vuhs() == float(by_patterns(samples))


def test_two_classes_have_the_auc() -> None:
    rng = np.random.default_rng(4)
    scores, labels = rng.normal(size=300).round(1), rng.integers(0, 2, 300)
    roc, binary = engine.OrdinalRoc(classes=2), engine.Roc()
    roc.extend(scores, labels)
    binary.extend(scores, labels)
    assert roc.vuhs() == binary.auc()


@pytest.mark.parametrize("classes", range(2, 9))
def test_perfect_reversed_and_tied(classes: int) -> None:
    order = [[float(k)] * 3 for k in range(classes)]
    assert roc_of(order).vuhs() == 1.0
    assert roc_of(order[::-1]).vuhs() == 0.0
    assert roc_of([[0.5]] * classes).vuhs() == 1 / math.factorial(classes)


@pytest.mark.parametrize("classes", [4, 5])
def test_it_is_unbiased_on_poisson_samples(classes: int) -> None:
    rng = np.random.default_rng(classes)
    means = [2.0 + 1.5 * k for k in range(classes)]
    # The true value: the estimator on the distributions themselves.
    support = np.arange(40)
    truth = engine.OrdinalRoc(classes=classes)
    for label, mean in enumerate(means):
        log_mass = support * math.log(mean) - mean - [math.lgamma(k + 1) for k in support]
        truth.extend(support, [label] * len(support), np.exp(log_mass))
    values = np.array(
        [roc_of([rng.poisson(mean, 6).tolist() for mean in means]).vuhs() for _ in range(500)]
    )
    error = values.std(ddof=1) / math.sqrt(len(values))
    assert abs(values.mean() - truth.vuhs()) < 4 * error


@given(SAMPLES, st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_what_came_and_left_is_forgotten(samples: Any, random: Any) -> None:
    roc = roc_of(samples)
    extra = [(random.randint(0, 5), random.randrange(len(samples))) for _ in range(20)]
    for event in extra:
        roc.add(*event)
    random.shuffle(extra)
    for event in extra:
        roc.remove(*event)
    roc._check()
    assert roc.vuhs() == roc_of(samples).vuhs()
    assert len(roc) == sum(map(len, samples))


def test_weights_count_as_so_many_events() -> None:
    heavy, plain = engine.OrdinalRoc(classes=3), engine.OrdinalRoc(classes=3)
    events = [(0.1, 0, 2), (0.1, 1, 1), (0.4, 1, 3), (0.4, 2, 1), (0.3, 2, 2), (0.6, 0, 1)]
    for score, label, weight in events:
        heavy.add(score, label, weight)
        plain.extend([score] * weight, [label] * weight)
    assert heavy.vuhs() == plain.vuhs()


def test_refusals_change_nothing() -> None:
    roc = roc_of([[0.1], [0.2], [0.3]])
    for bad in ((math.nan, 0), (0.1, 3), (0.1, -1), (0.1, 1.5), (0.1, 0, 0), (0.1, "1")):
        with pytest.raises(ValueError, match=r".+"):
            roc.add(*bad)
    with pytest.raises(ValueError, match=r".+"):
        roc.extend([0.1, 0.2], [0, 3])
    with pytest.raises(KeyError):
        roc.remove(0.1, 1)
    assert (len(roc), roc.vuhs()) == (3, 1.0)
    roc.remove(0.1, 0)
    assert math.isnan(roc.vuhs())
    roc._check()


@pytest.mark.parametrize("classes", [0, 1, 9, 2.5, True, "3"], ids=repr)
def test_two_to_eight_classes_it_takes(classes: Any) -> None:
    with pytest.raises(ValueError, match="2 to 8"):
        engine.OrdinalRoc(classes=classes)


def test_no_digits_are_lost_among_many_events() -> None:
    size = 20_000
    scores = np.arange(4 * size) // 2
    labels = (np.arange(4 * size) * 4) // (4 * size)
    roc = engine.OrdinalRoc(classes=4)
    roc.extend(scores, labels)
    assert roc.vuhs() == 1.0
