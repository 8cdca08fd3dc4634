"""The offsets committed to the job's group: for lag tools, and a hand in them is noticed.

Nothing relies on them, since a task goes by its cursor. So who moves them with Kafka's own tools
would move nothing; what the worker commits carries a mark, and what does not is answered. And they
tell that there was a state, should the changelog hold none any more.

They are read with aiokafka: confluent-kafka 2.16 reads an offset's metadata past its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from config.errors import DecisionError

if TYPE_CHECKING:
    from worker.pages import Cursor

OFFSET_MARK: Final = "rocstream"


class GroupOffset(NamedTuple):
    """An offset committed to the group, and whether the worker (or `rocstream reset`) did it."""

    offset: int
    ours: bool


def refuse_moved_by_hand(group: str, partition: int, cursor: Cursor, found: GroupOffset) -> None:
    """Refuse to go on when somebody has moved the group to another place than the state's.

    Parameters
    ----------
    group, partition
        The job and the task, for the sentence.
    cursor
        Where the task's state ends.
    found
        What is committed to the group.

    Raises
    ------
    DecisionError
        With both offsets and the cure.
    """
    if found.ours or found.offset == cursor.offset:
        return
    raise DecisionError(
        f"the offset of the group {group} for {cursor.topic}, partition {partition}, was set to "
        f"{found.offset} by hand, while the state ends at {cursor.offset}: move the job with "
        f"`rocstream reset`, or set the offset back to {cursor.offset} to go on as before"
    )


def refuse_lost_state(
    group: str, changelog: str, topic: str, partition: int, found: GroupOffset
) -> None:
    """Refuse to begin anew where the worker has committed an offset, and so a state before it.

    Parameters
    ----------
    group, changelog, topic, partition
        The job, its topics and the task, for the sentence.
    found
        What is committed to the group.

    Raises
    ------
    DecisionError
        With the offset and the cure.
    """
    if not found.ours:
        return
    raise DecisionError(
        f"the changelog {changelog}, partition {partition}, holds no state, while the group "
        f"{group} has come to offset {found.offset} of {topic}: it was deleted or emptied, and "
        "who begins anew publishes updates again; restore it, or run `rocstream reset` to say "
        "where to begin"
    )
