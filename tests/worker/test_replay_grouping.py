"""Columns of events grouped by key: in one pass below Python as by sorting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.events import native
from worker.replay.grouping import Columns, grouped

if TYPE_CHECKING:
    from worker.events import KeyedEvents

NAMES = ["b", "a", "nobody's", "c"]

codes = st.lists(st.sampled_from([0, 1, 3]), max_size=40)


def columns(keys: list[int], *, weighted: bool) -> Columns:
    events = np.arange(len(keys))
    return Columns(
        np.array(keys, np.int64),
        NAMES,
        events / 7,
        (events % 3 == 0).astype(np.uint8),
        events * 10,
        events % 2 + 1.0 if weighted else None,
        events + 100,
    )


def plain(events: KeyedEvents) -> list[Any]:
    weights = None if events.weights is None else list(events.weights)
    numbers = (events.scores, events.labels, events.times, events.offsets, events.indexes)
    # One list of zeros may serve several keys.
    return [*(list(column)[: len(events)] for column in numbers), weights]


@given(codes, st.booleans())
def test_each_key_gets_its_events_in_order_and_keys_come_as_their_first_events_do(
    keys: list[int],
    weighted: bool,  # noqa: FBT001 - drawn
) -> None:
    given_columns = columns(keys, weighted=weighted)
    found = grouped(given_columns)
    wanted = list(dict.fromkeys(keys))
    assert list(found) == [NAMES[key] for key in wanted]
    for key in wanted:
        mine = [at for at, other in enumerate(keys) if other == key]
        part = given_columns.chosen(mine)
        weights = None if part.weights is None else part.weights.tolist()
        got = plain(found[NAMES[key]])
        assert got[:4] == [
            part.scores.tolist(),
            part.labels.tolist(),
            part.times.tolist(),
            part.offsets.tolist(),
        ]
        assert got[4] == [0] * len(mine)
        # Weights that all are 1 may be left out.
        assert got[5] == weights or (got[5] is None and set(weights or ()) == {1.0})


def test_a_number_that_no_key_has_is_refused() -> None:
    with pytest.raises(IndexError):
        grouped(columns([0, 4], weighted=False))


@pytest.mark.skipif(not native.COMPILED, reason="reads no memory by itself")
def test_columns_that_do_not_belong_together_are_refused() -> None:
    whole = columns([0, 1, 3], weighted=True)
    for name in ("scores", "labels", "times", "weights", "offsets"):
        with pytest.raises(ValueError, match="3 keys and a column of 2"):
            grouped(whole._replace(**{name: getattr(whole, name)[:2]}))
    with pytest.raises(ValueError, match="twice"):
        grouped(whole._replace(names=["a", "a", "b", "c"]))
