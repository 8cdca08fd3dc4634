"""Arrays of any dtype and layout, sequences and iterators mean the same events."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

SCORES = [0.5, 0.25, 0.75, 0.25, 1.0, 0.0]
LABELS = [0, 0, 1, 1, 1, 0]
WEIGHTS = [1.0, 2.0, 0.5, 4.0, 8.0, 0.25]


def reading(roc: Any) -> Any:
    roc._check()
    return len(roc), roc.positives, roc.negatives, roc.auc(), roc.h_measure()


def frozen(values: list[float]) -> Any:
    array = np.array(values)
    array.flags.writeable = False
    return array


SHAPES = {
    "list": list,
    "tuple": tuple,
    "generator": lambda values: (value for value in values),
    "array": np.array,
    "read-only": frozen,
    "every other": lambda values: np.repeat(np.array(values), 2)[::2],
    "backwards": lambda values: np.array(values[::-1])[::-1],
    "column of a matrix": lambda values: np.array([values, values]).T.copy()[:, 1],
    "big endian": lambda values: np.array(values, ">f8"),
    "objects": lambda values: np.array(values, object),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_shapes_of_input_mean_the_same(roc_of: Any, shape: Any) -> None:
    assert reading(roc_of(shape(SCORES), shape(LABELS))) == reading(roc_of(SCORES, LABELS))
    assert reading(roc_of(shape(SCORES), shape(LABELS), shape(WEIGHTS))) == reading(
        roc_of(SCORES, LABELS, WEIGHTS)
    )


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "g"])
def test_floats_of_any_width_mean_the_same(roc_of: Any, dtype: str) -> None:
    scores, labels = np.array(SCORES, dtype), np.array(LABELS, dtype)
    assert reading(roc_of(scores, labels)) == reading(roc_of(SCORES, LABELS))


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_integers_of_any_width_mean_the_same(roc_of: Any, dtype: str) -> None:
    scores = [int(score * 100) for score in SCORES]
    arrays = np.array(scores, dtype), np.array(LABELS, dtype), np.ones(len(LABELS), dtype)
    assert reading(roc_of(*arrays)) == reading(roc_of(scores, LABELS))


def test_booleans_are_labels(roc_of: Any) -> None:
    expected = reading(roc_of(SCORES, LABELS))
    assert reading(roc_of(SCORES, np.array(LABELS, bool))) == expected
    roc = roc_of()
    for score, label in zip(SCORES, LABELS, strict=True):
        roc.add(score, bool(label))
    assert reading(roc) == expected
    for score, label in zip(SCORES, LABELS, strict=True):
        roc.remove(np.float32(score), np.bool_(label))
    assert len(roc) == 0


def test_narrow_floats_are_widened_and_not_rounded_to(roc_of: Any) -> None:
    # 0.1 as float32 lies above 0.1 as float64, 0.1 as float16 below.
    roc = roc_of(np.array([0.1], "f4"), [1])
    roc.add(0.1, 0)
    assert roc.auc() == 1.0
    roc.extend(np.array([0.1], "f2"), [1])
    assert roc.auc() == 0.5


def test_many_events_in_narrow_scores_are_still_counted(roc_of: Any) -> None:
    # float16 counts to 2,048 only.
    size = 5000
    roc = roc_of(np.tile(np.array([0.0, 1.0], "f2"), size), np.tile(np.array([0, 1], "u1"), size))
    assert (roc.negatives, roc.positives, roc.auc()) == (size, size, 1.0)


def test_unit_weights_of_any_kind_are_no_weights(roc_of: Any) -> None:
    expected = reading(roc_of(SCORES, LABELS))
    for ones in ([1] * 6, [True] * 6, np.ones(6, "f2"), (1.0 for _ in range(6))):
        roc = roc_of(SCORES, LABELS, ones)
        assert isinstance(roc.positives, int)
        assert reading(roc) == expected


def test_nothing_added_is_nothing(roc_of: Any) -> None:
    for empty in ([], (), np.array([]), np.array([], int), iter(())):
        roc = roc_of(empty, [])
        assert len(roc) == 0


def test_arrays_given_are_left_alone_and_not_kept(roc_of: Any) -> None:
    scores, labels = np.array(SCORES), np.array(LABELS, "u1")
    roc = roc_of(scores, labels)
    assert scores.tolist() == SCORES
    scores[:] = 7.0
    labels[:] = 1
    assert reading(roc) == reading(roc_of(SCORES, LABELS))
