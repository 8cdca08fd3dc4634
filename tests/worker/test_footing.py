"""Whether the log goes on where the state ends, and what is said where it does not."""

from __future__ import annotations

import pytest

from config.errors import DecisionError
from worker.pages import Cursor
from worker.transport import footing
from worker.transport.changelog import Extent

CURSOR = Cursor("events", "first", 500, "fingerprint")


@pytest.mark.parametrize("extent", [Extent(0, 500), Extent(500, 500), Extent(500, 900)])
@pytest.mark.parametrize("topic_id", ["first", ""])
def test_a_log_that_reaches_from_before_the_cursor_to_behind_it_is_no_gap(
    extent: Extent, topic_id: str
) -> None:
    assert footing.gap(CURSOR, "events", topic_id, extent) is None


@pytest.mark.parametrize(
    ("topic_id", "extent", "parts"),
    [
        ("first", Extent(501, 900), ("next offset is 500", "is 501", "1 offsets were deleted")),
        ("", Extent(700, 900), ("next offset is 500", "is 700", "200 offsets were deleted")),
        ("first", Extent(0, 499), ("next offset is 500", "end 499", "records were lost")),
        ("", Extent(0, 0), ("next offset is 500", "end 0", "or the topic was made again")),
        ("second", Extent(0, 900), ("was first and is second", "deleted and made again")),
    ],
)
def test_a_gap_is_told_with_its_place_its_numbers_and_the_cure(
    topic_id: str, extent: Extent, parts: tuple[str, ...]
) -> None:
    problem = footing.gap(CURSOR, "events", topic_id, extent)
    assert problem is not None
    sentence = str(footing.refused(problem, "events", 3))
    for part in (*parts, "topic events, partition 3", "--accept-gap", "`rocstream reset`"):
        assert part in sentence
    assert "\n" not in sentence


def test_the_state_of_a_topic_of_another_name_is_no_gap_that_may_be_accepted() -> None:
    with pytest.raises(DecisionError, match=r"from the topic events, .* is now others: put"):
        footing.gap(CURSOR, "others", "first", Extent(0, 900))
