"""Checks of what enters the engine, before anything changes: scores, labels, weights, times."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.results import Columns

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

# With weights of two classes within these no product of two sums leaves the doubles.
LIGHTEST, HEAVIEST = 2.0**-400, 2.0**400
NUMBERS = "biuf"  # numpy's kinds of dtype that hold real numbers


def _number(what: str, value: Any) -> float:
    """Return a number as a double, inf beyond."""
    if not isinstance(value, str | bytes | bytearray):
        try:
            return float(value)
        except OverflowError:
            return math.inf
        except TypeError:
            pass
    raise TypeError(f"{what}, not {value!r}")


def score_of(value: Any) -> float:
    """Return a score as a double, -0.0 as 0.0.

    Raises
    ------
    ValueError
        When it is not finite.
    TypeError
        When it is no number.
    """
    score = _number("a score is a number", value)
    if not math.isfinite(score):
        raise ValueError(f"a score must be finite, got {value!r}")
    return score + 0.0


def label_of(value: Any) -> int:
    """Return a label as 0 or 1.

    Raises
    ------
    ValueError
        When it equals neither.
    """
    return class_of(value, 2)


def class_of(value: Any, classes: int) -> int:
    """Return a label as one of the classes 0 .. classes - 1.

    Raises
    ------
    ValueError
        When it equals none.
    """
    try:
        # What has no hash is no number: lists and arrays, an array of one number as well.
        hash(value)
        known = not isinstance(value, str | bytes) and value in range(classes)
    except TypeError:
        known = False
    if not known:
        between = "or" if classes == 2 else "to"  # noqa: PLR2004 - two classes
        raise ValueError(f"a label is 0 {between} {classes - 1}, got {value!r}")
    return int(value)


def weight_of(value: Any) -> float:
    """Return the weight of an event of two classes as a double.

    Raises
    ------
    ValueError
        When it is not positive and finite, or outside 2**-400 to 2**400.
    TypeError
        When it is no number.
    """
    weight = ordinal_weight_of(value)
    if not LIGHTEST <= weight <= HEAVIEST:
        raise ValueError(f"weight {weight!r} is outside 2**-400 to 2**400")
    return weight


def ordinal_weight_of(value: Any) -> float:
    """Return the weight of an event of ordered classes as a double.

    Raises
    ------
    ValueError
        When it is not positive and finite.
    TypeError
        When it is no number.
    """
    weight = _number("a weight is a number", value)
    if not 0.0 < weight < math.inf:
        raise ValueError(f"a weight must be positive and finite, got {value!r}")
    return weight


def time_of(value: Any) -> int:
    """Return an event time in ms; none is 0.

    Raises
    ------
    ValueError
        When it is not whole or outside 64 bits.
    TypeError
        When it is no number.
    """
    if value is None:
        return 0
    if isinstance(value, str | bytes | bytearray):
        raise TypeError(f"a time is a number of ms, not {value!r}")
    if value != value or value in (math.inf, -math.inf):  # noqa: PLR0124 - nan of any type
        raise ValueError(f"a time is a whole number of ms, got {value!r}")
    time = int(value)
    if time != value or not -(2**63) <= time < 2**63:
        raise ValueError(f"a time is a whole number of ms in 64 bits, got {value!r}")
    return time


def at_least(name: str, value: int, least: int) -> int:
    """Return a whole number.

    Raises
    ------
    ValueError
        When it is not whole or less than `least`.
    """
    if isinstance(value, bool) or value < least or not float(value).is_integer():
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def columns_of(
    scores: Iterable[Any],
    labels: Iterable[Any],
    weights: Iterable[Any] | None = None,
    times: Iterable[Any] | None = None,
) -> Columns:
    """Check events given as arrays, sequences or iterators and return them as columns.

    Columns share no memory with arrays given. Weights that are all 1, and times that are all 0,
    come back as None: they say nothing.

    Raises
    ------
    ValueError
        When a score is not finite, a label no class, a weight not positive and finite or outside
        2**-400 to 2**400, a time not whole, or the lengths are unequal.
    TypeError
        When something is no number.
    """
    columns = ordinal_columns_of(scores, labels, 2, weights, times)
    if columns.weights is not None:
        usable = (columns.weights >= LIGHTEST) & (columns.weights <= HEAVIEST)
        if not usable.all():
            weight_of(columns.weights[~usable][0])
    return columns


def ordinal_columns_of(
    scores: Iterable[Any],
    labels: Iterable[Any],
    classes: int,
    weights: Iterable[Any] | None = None,
    times: Iterable[Any] | None = None,
) -> Columns:
    """Check events as `columns_of` does, with labels 0 .. classes - 1 and any positive weights."""
    columns = Columns(
        _scores(scores),
        _labels(labels, classes),
        None if weights is None else _weights(weights),
        None if times is None else _times(times),
    )
    events = len(columns.scores)
    for name, column in zip(columns._fields, columns, strict=True):
        if column is not None and len(column) != events:
            raise ValueError(f"{len(column)} {name} for {events} scores")
    _, _, heavy, timed = columns
    return Columns(
        columns.scores,
        columns.labels,
        None if heavy is None or bool(np.all(heavy == 1.0)) else heavy,
        None if timed is None or not bool(np.any(timed)) else timed,
    )


def _array(values: Iterable[Any]) -> npt.NDArray[Any]:
    array = values if isinstance(values, np.ndarray) else np.asarray(_sequence(values))
    if isinstance(array, np.ma.MaskedArray):
        if np.ma.is_masked(array):
            raise ValueError("events come without masked elements")
        array = array.data
    if array.ndim != 1:
        raise ValueError(f"events come in one dimension, got {array.ndim}")
    return array


def _sequence(values: Iterable[Any]) -> Any:
    if hasattr(values, "__array__") or isinstance(values, list | tuple):
        return values
    return list(values)


def _scores(values: Iterable[Any]) -> npt.NDArray[np.float64]:
    array = _array(values)
    if array.dtype.kind not in NUMBERS:
        return np.array([score_of(value) for value in array.tolist()], np.float64)
    if array.dtype.itemsize > 8:  # noqa: PLR2004 - bytes of a double
        return np.array([score_of(value) for value in array], np.float64)
    scores = array.astype(np.float64)
    if not np.isfinite(scores).all():
        bad = scores[~np.isfinite(scores)][0]
        raise ValueError(f"a score must be finite, got {float(bad)!r}")
    return scores + 0.0


def _labels(values: Iterable[Any], classes: int) -> npt.NDArray[np.uint8]:
    array = _array(values)
    if array.dtype.kind not in NUMBERS:
        return np.array([class_of(value, classes) for value in array.tolist()], np.uint8)
    known = np.isin(array, np.arange(classes)) if classes > 2 else (array == 0) | (array == 1)  # noqa: PLR2004 - the common case is quicker
    if not known.all():
        class_of(array[~known][0].item(), classes)
    return array.astype(np.uint8)


def _weights(values: Iterable[Any]) -> npt.NDArray[np.float64]:
    array = _array(values)
    if array.dtype.kind not in NUMBERS or array.dtype.itemsize > 8:  # noqa: PLR2004 - as above
        return np.array([ordinal_weight_of(value) for value in array.tolist()], np.float64)
    weights = array.astype(np.float64)
    usable = (weights > 0.0) & (weights < math.inf)
    if not usable.all():
        bad = weights[~usable][0]
        raise ValueError(f"a weight must be positive and finite, got {float(bad)!r}")
    return weights


def _times(values: Iterable[Any]) -> npt.NDArray[np.int64]:
    values = _sequence(values)
    array = _array(values)
    if array.dtype.kind == "f" and not hasattr(values, "__array__"):
        # As floats whole numbers beside others would be rounded.
        return np.array([time_of(value) for value in values], np.int64)
    if array.dtype.kind in "bi":
        return array.astype(np.int64)
    return np.array([time_of(value) for value in array.tolist()], np.int64)
