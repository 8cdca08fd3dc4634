"""Bad values are refused and leave everything as it was."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

NAN, INF = math.nan, math.inf
BAD_EVENTS = [
    (NAN, 0, 1),
    (INF, 0, 1),
    (-INF, 1, 1),
    (np.float32(INF), 1, 1),
    (10**400, 1, 1),
    (0.5, 2, 1),
    (0.5, -1, 1),
    (0.5, 0.5, 1),
    (0.5, NAN, 1),
    (0.5, None, 1),
    (0.5, "1", 1),
    (0.5, 1, 0),
    (0.5, 1, -1.0),
    (0.5, 1, NAN),
    (0.5, 1, INF),
]


def state(roc: Any) -> Any:
    return (
        len(roc),
        roc.positives,
        roc.negatives,
        roc.auc(),
        [column.tolist() for column in roc.curve()],
    )


@pytest.fixture
def roc(roc_of: Any) -> Any:
    return roc_of([0.25, 0.5, 0.5, 0.75], [0, 0, 1, 1])


@pytest.mark.parametrize("event", BAD_EVENTS, ids=repr)
def test_a_bad_event_is_refused_and_nothing_changes(roc: Any, event: Any) -> None:
    before = state(roc)
    with pytest.raises(ValueError, match=r".+"):
        roc.add(*event)
    with pytest.raises(ValueError, match=r".+"):
        roc.remove(*event)
    assert state(roc) == before
    roc._check()


@pytest.mark.parametrize("event", BAD_EVENTS, ids=repr)
def test_a_bad_event_in_the_middle_refuses_them_all(roc: Any, event: Any) -> None:
    before = state(roc)
    score, label, weight = event
    with pytest.raises(ValueError, match=r".+"):
        roc.extend([0.1, score, 0.9], [0, label, 1], [1, weight, 1])
    assert state(roc) == before
    roc._check()


@pytest.mark.parametrize(
    "columns",
    [
        ([0.1, 0.2], [0]),
        ([0.1], [0, 1]),
        ([0.1, 0.2], [0, 1], [1.0]),
        ([], [], [1.0]),
        (np.zeros((2, 2)), np.zeros((2, 2), int)),
    ],
    ids=repr,
)
def test_unequal_lengths_are_refused(roc: Any, columns: Any) -> None:
    before = state(roc)
    with pytest.raises(ValueError, match=r".+"):
        roc.extend(*columns)
    assert state(roc) == before


@pytest.mark.parametrize("score", ["0.5", b"0.5", None, [0.5], 1j], ids=repr)
def test_what_is_no_number_is_no_score(roc: Any, score: Any) -> None:
    before = state(roc)
    with pytest.raises((TypeError, ValueError)):
        roc.add(score, 1)
    with pytest.raises((TypeError, ValueError)):
        roc.extend([0.1, score], [0, 1])
    assert state(roc) == before


def test_an_iterator_that_fails_halfway_adds_nothing(roc: Any) -> None:
    def scores() -> Iterator[float]:
        yield 0.1
        raise RuntimeError("halfway")

    before = state(roc)
    with pytest.raises(RuntimeError, match="halfway"):
        roc.extend(scores(), [0, 1])
    assert state(roc) == before


@pytest.mark.parametrize(
    "absent", [(0.6, 1), (0.25, 1), (0.75, 0), (0.5, 1, 1.5), (0.5, 0, 2)], ids=repr
)
def test_removing_more_than_there_is_raises_key_error(roc: Any, absent: Any) -> None:
    before = state(roc)
    with pytest.raises(KeyError):
        roc.remove(*absent)
    assert state(roc) == before
    roc._check()


def test_removing_from_an_empty_roc_raises_key_error(roc_of: Any) -> None:
    with pytest.raises(KeyError):
        roc_of().remove(0.5, 1)


@pytest.mark.parametrize("severity", [(0, 2), (2, -1), (NAN, 2), (2, INF)], ids=repr)
def test_a_severity_that_is_no_distribution_is_refused(roc: Any, severity: Any) -> None:
    with pytest.raises(ValueError, match=r"alpha|beta"):
        roc.h_measure(*severity)


@pytest.mark.parametrize(
    "priors", [(0.5,), (0.2, 0.3, 0.5), (0, 1), (-0.5, 1.5), (0.5, 0.6), (NAN, 0.5)], ids=repr
)
def test_priors_that_are_no_distribution_are_refused(roc: Any, priors: Any) -> None:
    with pytest.raises(ValueError, match="prior"):
        roc.h_measure(priors=priors)
