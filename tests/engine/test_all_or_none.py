"""A refused call leaves every structure as it was: what it tells, and what becomes of it next."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import reference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NAN, INF = math.nan, math.inf

# Of each kind: its class, its arguments, and which columns its events have.
KINDS: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], str]] = {
    "roc": ("Roc", (), {}, "w"),
    "ordinal roc": ("OrdinalRoc", (3,), {}, "w"),
    "binned roc": ("BinnedRoc", (20,), {}, "w"),
    "approximate roc": ("ApproximateRoc", (0.2,), {}, ""),
    "count window": ("CountWindow", (5,), {}, "wt"),
    "ordinal window": ("OrdinalCountWindow", (3, 5), {}, "w"),
    "time window": ("TimeWindow", (40,), {}, "wt"),
    "decay window": ("DecayWindow", (2,), {"least": 0.1}, "wt"),
    "timed decay window": ("DecayWindow", (10,), {"timed": True, "least": 0.1}, "wt"),
    "landmark window": ("LandmarkWindow", (20,), {}, "wt"),
}
EVENTS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.25, 0.5, 0.5, 1.0]),
        st.integers(0, 1),
        st.sampled_from([1.0, 1.0, 0.1, 2.5]),
        st.integers(0, 100),
    ),
    min_size=1,
    max_size=12,
)
BAD: dict[str, list[Any]] = {
    "s": [NAN, INF, -INF, None, "0.5"],
    "l": [-1, 9, 0.5, NAN, None, "1"],
    "w": [0, -1.0, NAN, INF, None],
    "t": [0.5, NAN, 2**63, "now"],
}


def made(engine: Any, kind: str) -> Any:
    name, arguments, words, _ = KINDS[kind]
    return getattr(engine, name, getattr(reference, name))(*arguments, **words)


def columns(kind: str, events: list[tuple[Any, ...]]) -> list[list[Any]]:
    count = 2 + len(KINDS[kind][3])
    return [list(column) for column in zip(*(event[:count] for event in events), strict=True)]


def state(structure: Any) -> list[Any]:
    structure._check()
    roc = getattr(structure, "roc", structure)
    told: list[Any] = [len(structure), len(roc)]
    told += [getattr(structure, name, None) for name in ("seen", "first", "late", "now", "span")]
    if hasattr(roc, "vuhs"):
        return [*told, roc.vuhs()]
    told += [roc.positives, roc.negatives, roc.auc()]
    return told + ([column.tolist() for column in roc.curve()] if hasattr(roc, "curve") else [])


def close(one: list[Any], two: list[Any]) -> bool:
    """Tell whether states are equal; sums under decay may differ in their last digit."""
    return len(one) == len(two) and all(
        left == right if left is None else np.allclose(left, right, rtol=1e-13, equal_nan=True)
        for left, right in zip(one, two, strict=True)
    )


def put(structure: Any, kind: str, events: list[tuple[Any, ...]]) -> None:
    structure.extend(*columns(kind, events))


def spoil(kind: str, events: list[tuple[Any, ...]], data: st.DataObject) -> list[list[Any]]:
    """Columns of which one has a bad element somewhere, or one too many."""
    wrong = columns(kind, events)
    which = data.draw(st.integers(0, len(wrong) - 1))
    if data.draw(st.booleans()):
        wrong[which].append(wrong[which][0])
    else:
        at = data.draw(st.integers(0, len(events) - 1))
        wrong[which][at] = data.draw(st.sampled_from(BAD["slwt"[which]]))
    return wrong


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=50)
@given(before=EVENTS, bad=EVENTS, after=EVENTS, data=st.data())
def test_a_bad_value_anywhere_refuses_the_whole_call(
    engine: Any, kind: str, before: Any, bad: Any, after: Any, data: Any
) -> None:
    structure = made(engine, kind)
    put(structure, kind, before)
    twin = copy.deepcopy(structure)
    wrong = spoil(kind, bad, data)
    with pytest.raises((ValueError, TypeError)):
        structure.extend(*wrong)
    if hasattr(structure, "slide"):
        with pytest.raises((ValueError, TypeError)):
            structure.slide(*wrong, every=1)
    assert close(state(structure), state(twin))
    put(structure, kind, after)
    put(twin, kind, after)
    assert close(state(structure), state(twin))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.endswith("window")])
@settings(max_examples=20)
@given(before=EVENTS, more=EVENTS)
def test_a_bad_setting_of_a_slide_pushes_nothing(
    engine: Any, kind: str, before: Any, more: Any
) -> None:
    window = made(engine, kind)
    put(window, kind, before)
    told = state(window)
    wrong: list[dict[str, Any]] = [{"every": 0}, {"every": 1.5}]
    if "ordinal" not in kind:
        wrong += [{"every": 1, "read": ("auk",)}, {"every": 1, "alpha": 0}]
    for setting in wrong:
        with pytest.raises(ValueError, match=r".+"):
            window.slide(*columns(kind, more), **setting)
    assert close(state(window), told)


@pytest.mark.parametrize("kind", ["time window", "timed decay window"])
def test_a_window_of_times_refuses_events_without(engine: Any, kind: str) -> None:
    window = made(engine, kind)
    window.extend([0.1, 0.9], [0, 1], times=[1, 2])
    told = state(window)
    for refused in (
        lambda: window.push(0.5, 1),
        lambda: window.extend([0.5], [1]),
        lambda: window.slide([0.5], [1], every=1),
    ):
        with pytest.raises(ValueError, match="time"):
            refused()
    assert close(state(window), told)


TOO_FAR = [1e200, 2.0**400 * 1.01, 2.0**-400 / 1.01, 5e-324]


@pytest.mark.parametrize("weight", TOO_FAR)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if "w" in KINDS[kind][3]])
def test_a_weight_out_of_range_is_refused_in_the_same_words(
    engine: Any, kind: str, weight: float
) -> None:
    structure = made(engine, kind)
    enter = structure.push if hasattr(structure, "push") else structure.add
    times = [[0, 60]] if "t" in KINDS[kind][3] else []
    if "ordinal" in kind:
        enter(0.5, 1, weight)
        assert len(structure) == 1
        return
    words = f"weight {weight!r} is outside 2**-400 to 2**400"
    structure.extend([0.1, 0.9], [0, 1], [1, 1], *times)
    told = state(structure)
    for heavy in ([1, weight], np.array([1, weight])):
        with pytest.raises(ValueError) as refused:  # noqa: PT011 - the words are compared
            structure.extend([0.5, 0.6], [0, 1], heavy, *times)
        assert str(refused.value) == words
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the words are compared
        enter(0.5, 1, weight, *(column[0] for column in times))
    assert str(refused.value) == words
    assert close(state(structure), told)


@pytest.mark.parametrize("weight", [2.0**400, 2.0**-400])
def test_weights_at_the_ends_of_the_range_are_read(engine: Any, weight: float) -> None:
    roc = made(engine, "roc")
    roc.extend([0.1, 0.9, 0.5], [0, 1, 1], [weight, weight, weight])
    assert (roc.auc(), roc.positives) == (1.0, 2 * weight)


def test_what_is_absent_is_told_in_the_same_words(engine: Any) -> None:
    for weight in (1.0, 2.5):
        roc = made(engine, "roc")
        roc.add(0.5, 1, 0.5)
        with pytest.raises(KeyError, match=rf"class 1 has less weight than {weight} at 0\.5"):
            roc.remove(0.5, 1, weight)


# Memory that runs out in the twin: see test_starved.py for the compiled core.

CALLS: list[Callable[[Any, str, Any], object]] = [
    put,
    lambda window, kind, events: window.slide(*columns(kind, events), every=2),
    lambda window, kind, events: window.push(*(column[0] for column in columns(kind, events))),
]


@pytest.fixture(scope="module")
def short() -> Iterator[Callable[[int], None]]:
    """Let the changes of any ROC of the twin fail after so many; a negative number: none."""
    left = -1

    def starve(count: int) -> None:
        nonlocal left
        left = count

    def failing(change: Any) -> Any:
        def changed(self: Any, *event: Any) -> None:
            nonlocal left
            left -= 1
            if left == -1:
                raise MemoryError("as asked for")
            change(self, *event)

        return changed

    with pytest.MonkeyPatch.context() as patch:
        for kind in (reference.Roc, reference.OrdinalRoc, reference.BinnedRoc):
            for name in ("add", "remove"):
                patch.setattr(kind, name, failing(getattr(kind, name)))
        yield starve


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.endswith("window")])
@settings(max_examples=50)
@given(before=EVENTS, bad=EVENTS, after=EVENTS, call=st.sampled_from(CALLS), left=st.integers(0, 9))
def test_a_window_of_the_twin_that_runs_out_of_memory_is_as_it_was(
    short: Any, kind: str, before: Any, bad: Any, after: Any, call: Any, left: int
) -> None:
    window = made(reference, kind)
    put(window, kind, before)
    twin = copy.deepcopy(window)
    short(left)
    try:
        call(window, kind, bad)
        refused = False
    except MemoryError:
        refused = True
    short(-1)
    if not refused:
        call(twin, kind, bad)
    assert close(state(window), state(twin))
    put(window, kind, after)
    put(twin, kind, after)
    assert close(state(window), state(twin))
