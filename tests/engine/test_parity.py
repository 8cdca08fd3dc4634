"""The compiled core and its twin have the same names and refuse in the same words."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from engine import reference

core = pytest.importorskip("engine._core")

SHARED = ("Roc", "OrdinalRoc", "CountWindow", "TimeWindow", "DecayWindow", "OrdinalCountWindow")
MAKE: dict[str, tuple[str, tuple[Any, ...]]] = {
    "roc": ("Roc", ()),
    "ordinal roc": ("OrdinalRoc", (3,)),
    "count window": ("CountWindow", (4,)),
    "time window": ("TimeWindow", (1000,)),
    "decay window": ("DecayWindow", (7,)),
    "ordinal window": ("OrdinalCountWindow", (3, 4)),
}


def made(engine: Any, kind: str) -> Any:
    name, arguments = MAKE[kind]
    structure = getattr(engine, name)(*arguments)
    times = {"times": [5, 6, 7]} if "span" in dir(structure) else {}
    structure.extend([0.1, 0.9, 0.5], [0, 1, 1], [1, 0.5, 2], **times)
    return structure


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


@pytest.mark.parametrize("name", SHARED)
def test_a_class_has_the_same_public_names_in_both(name: str) -> None:
    assert public(getattr(core, name)) == public(getattr(reference, name))


@pytest.mark.parametrize("kind", ["count window", "time window", "decay window"])
def test_a_window_tells_its_span_and_is_read_as_it_is(engine: Any, kind: str) -> None:
    window = made(engine, kind)
    assert window.span == (5, 7)
    names = ("auc", "h", "positives", "events", "start", "end", "ks")
    now = window.readings(names, 2, 1.5)
    assert [len(column) for column in now] == [1] * len(names)
    assert (now.events[0], now.start[0], now.end[0]) == (3, 5, 7)
    assert now.auc[0] == window.roc.auc()
    assert now.h[0] == pytest.approx(window.roc.h_measure(2, 1.5), rel=1e-12)
    empty = type(window)(10)
    assert empty.span == (0, 0)
    assert empty.readings(("events", "start", "auc")).events[0] == 0


REFUSED: dict[str, Any] = {
    "absent": lambda roc: roc.remove(0.3, 1),
    "less weight": lambda roc: roc.remove(0.9, 1, 3),
    "less weight than one": lambda roc: roc.remove(0.9, 1),
    "no label": lambda roc: roc.add(0.5, 7),
    "a list for a label": lambda roc: roc.add(0.5, [1]),
    "an array for a label": lambda roc: roc.add(0.5, np.array(1)),
    "text for a label": lambda roc: roc.add(0.5, "1"),
    "labels": lambda roc: roc.extend([0.5, 0.6], [1, 7]),
    "no score": lambda roc: roc.add(None, 1),
    "no weight": lambda roc: roc.add(0.5, 1, None),
    "a weight of nothing": lambda roc: roc.add(0.5, 1, 0),
    "nan": lambda roc: roc.extend([0.5, float("nan")], [1, 1]),
    "lengths": lambda roc: roc.extend([0.5, 0.6], [1]),
    "masked": lambda roc: roc.extend(np.ma.array([0.5, 0.6], mask=[False, True]), [1, 1]),
    "masked labels": lambda roc: roc.extend(
        np.array([0.5, 0.6]), np.ma.array([1, 1], np.uint8, mask=[True, False])
    ),
}
OF_TWO: dict[str, Any] = {
    "alpha": lambda roc: roc.h_measure(0),
    "beta": lambda roc: roc.h_measure(2, float("inf")),
    "epsilon": lambda roc: roc.h_measure(epsilon=-1),
    "priors": lambda roc: roc.h_measure(priors=(0.5, 0.6)),
    "level": lambda roc: roc.auc_interval(2),
    "threshold": lambda roc: roc.confusion(float("nan")),
}


@pytest.mark.parametrize("way", [*REFUSED, *OF_TWO])
@pytest.mark.parametrize("kind", ["roc", "ordinal roc"])
def test_both_refuse_in_the_same_words(kind: str, way: str) -> None:
    if kind == "ordinal roc" and way in OF_TWO:
        pytest.skip("readings of two classes")
    refuse = {**REFUSED, **OF_TWO}[way]
    words = []
    for engine in (core, reference):
        roc = made(engine, kind)
        with pytest.raises((ValueError, TypeError, KeyError)) as refused:
            refuse(roc)
        roc._check()
        assert len(roc) == 3
        words.append((type(refused.value), str(refused.value)))
    assert words[0] == words[1]


def test_an_array_without_masked_elements_is_an_array(roc_of: Any) -> None:
    roc = roc_of(np.ma.array([0.1, 0.9]), np.ma.array([0, 1], np.uint8), np.ma.array([1.0, 1.0]))
    assert roc.auc() == 1.0


def test_times_beside_floats_are_not_rounded(engine: Any) -> None:
    odd = 2**60 + 1
    for times in ([odd, 5.0], (odd, 5.0), iter([odd, 5.0])):
        window = engine.TimeWindow(2**62)
        window.extend([0.1, 0.9], [0, 1], times=times)
        assert window.span == (5, odd)


def test_a_duration_may_be_longer_than_all_times(engine: Any) -> None:
    for duration, held in ((2**64, 2), (2**64 - 1, 1), (2**70, 2)):
        window = engine.TimeWindow(duration)
        window.extend([0.1, 0.9], [0, 1], times=[-(2**63), 2**63 - 1])
        window._check()
        assert len(window) == held


@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_protocol_of_pickle_works(engine: Any, kind: str, protocol: int) -> None:
    structure = made(engine, kind)
    other = pickle.loads(pickle.dumps(structure, protocol))  # noqa: S301 - its own
    other._check()
    assert len(other) == len(structure) == 3


def test_weights_that_add_up_past_the_doubles_are_refused(engine: Any) -> None:
    roc = engine.OrdinalRoc(2)
    # At different scores there is room for any number of them.
    roc.extend([0.5, 0.6, 0.1], [1, 1, 0], [1.7e308, 1.7e308, 5e-324])
    with pytest.raises(OverflowError, match="more than a double"):
        roc.add(0.5, 1, 1.7e308)
    with pytest.raises(OverflowError, match="more than a double"):
        roc.extend([0.7, 0.5], [0, 1], [3.0, 1.7e308])
    roc._check()
    assert (len(roc), roc.vuhs()) == (3, 1.0)
