"""The volume under the hyper-surface equals the paper's estimators, whatever ties."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import reference


def ordinal(engine: Any, samples: list[list[float]]) -> Any:
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
def test_it_is_the_direct_estimator(engine: Any, samples: Any) -> None:
    expected = oracles.vuhs_direct(samples)
    assert oracles.vuhs_by_patterns(samples) == expected
    assert ordinal(engine, samples).vuhs() == float(expected)


@pytest.mark.parametrize("classes", [5, 6, 7, 8])
def test_many_classes_agree_with_the_dynamic_programme(engine: Any, classes: int) -> None:
    rng = np.random.default_rng(classes)
    samples = [rng.poisson(2 + k / 2, 30).astype(float).tolist() for k in range(classes)]
    assert ordinal(engine, samples).vuhs() == float(oracles.vuhs_by_patterns(samples))


def test_two_classes_have_the_auc(engine: Any) -> None:
    rng = np.random.default_rng(4)
    scores, labels = rng.normal(size=300).round(1), rng.integers(0, 2, 300)
    roc, binary = engine.OrdinalRoc(classes=2), engine.Roc()
    roc.extend(scores, labels)
    binary.extend(scores, labels)
    assert roc.vuhs() == binary.auc()


@pytest.mark.parametrize("classes", range(2, 9))
def test_perfect_reversed_and_tied(engine: Any, classes: int) -> None:
    order = [[float(k)] * 3 for k in range(classes)]
    assert ordinal(engine, order).vuhs() == 1.0
    assert ordinal(engine, order[::-1]).vuhs() == 0.0
    assert ordinal(engine, [[0.5]] * classes).vuhs() == 1 / math.factorial(classes)


def poisson(mean: float) -> tuple[Any, Any]:
    """Return the values of a Poisson variable that matter, and how likely each is."""
    support = np.arange(60)
    log_mass = support * math.log(mean) - mean - [math.lgamma(k + 1) for k in support]
    return support, np.exp(log_mass)


# Wu et al., section 3: samples of Poisson variables, r = 4 and 5, a thousand runs each. With one
# mean for all classes as there; and with means apart, where the volume is not near 0.
@pytest.mark.parametrize("size", [5, 20])
@pytest.mark.parametrize("apart", [0.0, 1.5])
@pytest.mark.parametrize("classes", [4, 5])
def test_it_is_unbiased_on_poisson_samples(
    engine: Any, classes: int, apart: float, size: int
) -> None:
    rng = np.random.default_rng(classes * size)
    means = [3.0 + apart * k for k in range(classes)]
    # The true value: the estimator on the distributions themselves.
    truth = reference.OrdinalRoc(classes=classes)
    for label, mean in enumerate(means):
        support, mass = poisson(mean)
        truth.extend(support, [label] * len(support), mass)
    if not apart:
        assert truth.vuhs() == pytest.approx(1 / math.factorial(classes), rel=1e-9)
    draws = rng.poisson(np.array(means)[:, None], (1000, classes, size)).astype(float)
    labels = np.repeat(np.arange(classes), size)
    values = []
    for draw in draws:
        roc = engine.OrdinalRoc(classes=classes)
        roc.extend(draw.ravel(), labels)
        values.append(roc.vuhs())
    # The mean of a thousand lies within four standard errors but for once in 16,000.
    error = np.std(values, ddof=1) / math.sqrt(len(values))
    assert abs(np.mean(values) - truth.vuhs()) < 4 * error
    # Their figure of merit, the mean relative error against the direct estimator, is nil.
    for draw, value in zip(draws[:50].tolist(), values, strict=False):
        assert value == float(oracles.vuhs_by_patterns(draw))
    if size == 5:
        for draw, value in zip(draws[:3].tolist(), values, strict=False):
            assert value == float(oracles.vuhs_direct(draw))


@given(SAMPLES, st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_what_came_and_left_is_forgotten(engine: Any, samples: Any, random: Any) -> None:
    roc = ordinal(engine, samples)
    extra = [(random.randint(0, 5), random.randrange(len(samples))) for _ in range(20)]
    for event in extra:
        roc.add(*event)
    random.shuffle(extra)
    for event in extra:
        roc.remove(*event)
    roc._check()
    assert roc.vuhs() == ordinal(engine, samples).vuhs()
    assert len(roc) == sum(map(len, samples))


def test_weights_count_as_so_many_events(engine: Any) -> None:
    heavy, plain = engine.OrdinalRoc(classes=3), engine.OrdinalRoc(classes=3)
    events = [(0.1, 0, 2), (0.1, 1, 1), (0.4, 1, 3), (0.4, 2, 1), (0.3, 2, 2), (0.6, 0, 1)]
    for score, label, weight in events:
        heavy.add(score, label, weight)
        plain.extend([score] * weight, [label] * weight)
    assert heavy.vuhs() == pytest.approx(plain.vuhs(), abs=1e-12)
    heavy._check()


def test_refusals_change_nothing(engine: Any) -> None:
    roc = ordinal(engine, [[0.1], [0.2], [0.3]])
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
def test_two_to_eight_classes_it_takes(engine: Any, classes: Any) -> None:
    with pytest.raises(ValueError, match="2 to 8"):
        engine.OrdinalRoc(classes=classes)


def test_no_digits_are_lost_among_many_events(engine: Any) -> None:
    size = 20_000
    scores = np.arange(4 * size) // 2
    labels = (np.arange(4 * size) * 4) // (4 * size)
    roc = engine.OrdinalRoc(classes=4)
    roc.extend(scores, labels)
    assert roc.vuhs() == 1.0


@pytest.mark.parametrize(("classes", "size"), [(4, 40_000), (6, 3000), (8, 1000)])
def test_products_past_64_bits_are_exact_as_well(engine: Any, classes: int, size: int) -> None:
    rng = np.random.default_rng(classes)
    labels = np.arange(classes * size) % classes
    scores = (rng.normal(size=classes * size) + labels / 2).round(2)
    roc, twin = engine.OrdinalRoc(classes=classes), reference.OrdinalRoc(classes=classes)
    roc.extend(scores, labels)
    twin.extend(scores, labels)
    assert math.factorial(classes) * size**classes > 2**64
    assert roc.vuhs() == twin.vuhs()


def test_what_no_whole_numbers_hold_is_read_within_the_tolerance(engine: Any) -> None:
    rng = np.random.default_rng(8)
    labels = np.arange(8 * 20_000) % 8
    scores = (rng.normal(size=len(labels)) + labels / 2).round(2)
    roc, twin = engine.OrdinalRoc(classes=8), reference.OrdinalRoc(classes=8)
    roc.extend(scores, labels)
    twin.extend(scores, labels)
    assert math.factorial(8) * 20_000**8 > 2**127
    assert roc.vuhs() == pytest.approx(twin.vuhs(), rel=1e-12)
    # Back under the limit nothing is left of it.
    for event in list(zip(scores.tolist(), labels.tolist(), strict=True))[8 * 5000 :]:
        roc.remove(*event)
    fresh = engine.OrdinalRoc(classes=8)
    fresh.extend(scores[: 8 * 5000], labels[: 8 * 5000])
    assert roc.vuhs() == fresh.vuhs()
