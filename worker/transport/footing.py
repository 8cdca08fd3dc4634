"""Whether the log still is the one that a task's state was made from, and goes on where it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from config.errors import DecisionError

if TYPE_CHECKING:
    from worker.pages import Cursor
    from worker.transport.changelog import Extent
    from worker.transport.epochs import End


def made_again(topic: str, was: str, found: str) -> str:
    """Say that a topic has another id."""
    return (
        f"the topic {topic} is not the one that the state was made from: its id was {was} and is "
        f"{found}, so it was deleted and made again"
    )


def lost_changelog(changelog: str, was: str, found: str) -> DecisionError:
    """Return the error that says that the changelog has another id than when the worker started."""
    return DecisionError(
        f"the changelog {changelog} was deleted and made again while we ran: its id was {was} and "
        f"is {found}, and the state that it held is gone; restore it, or run `rocstream reset`"
    )


def replaced(offset: int, epoch: int, end: End) -> str:
    """Say that the records before an offset, the last of a leader epoch, are not the log's."""
    kept = (
        f"records of that epoch end at {end.offset}"
        if end.epoch == epoch
        else f"no records of that epoch are there, and those of epoch {end.epoch} end at "
        f"{end.offset}"
    )
    return (
        f"the log does not hold what was read from it: next offset is {offset}, behind records of "
        f"leader epoch {epoch}, but {kept}, so records were lost and others may stand in their "
        "place (an unclean leader election, or a broker that lost what it had acknowledged)"
    )


def gap(
    cursor: Cursor,
    topic: str,
    topic_id: str,
    extent: Extent,
    end: End | None = None,
) -> str | None:
    """Return why the log does not go on where the state ends; None when it does.

    Parameters
    ----------
    cursor
        Where the state ends.
    topic, topic_id
        The events topic as it is; the id is "" where the broker gives none.
    extent
        What its partition holds.
    end
        Where the cursor's leader epoch ends there; None where nobody told.

    Raises
    ------
    DecisionError
        When the state was made from a topic of another name.
    """
    if cursor.topic != topic:
        raise DecisionError(
            f"the state was made from the topic {cursor.topic}, and topics.events is now "
            f"{topic}: put the name back, take a new kafka.group, or run `rocstream reset`"
        )
    if cursor.topic_id and topic_id and cursor.topic_id != topic_id:
        return made_again(topic, cursor.topic_id, topic_id)
    if cursor.offset < extent.start:
        return (
            f"the log no longer reaches back to where the state ends: next offset is "
            f"{cursor.offset}, the first there is {extent.start}, so "
            f"{extent.start - cursor.offset} offsets were deleted unread"
        )
    if cursor.offset > extent.end:
        return (
            f"the log ends before the state does: next offset is {cursor.offset}, the log's "
            f"end {extent.end}, so records were lost or the topic was made again"
        )
    if end is not None and cursor.epoch >= 0 and end.cuts(cursor.taken, cursor.epoch):
        return replaced(cursor.offset, cursor.epoch, end)
    return None


def refused(gap: str, topic: str, partition: int | None = None) -> DecisionError:
    """Return the error that asks a person to decide on a gap, of one partition or of all."""
    where = f"topic {topic}" if partition is None else f"topic {topic}, partition {partition}"
    return DecisionError(
        f"{gap} ({where}); start with --accept-gap to go on with empty windows from "
        "the first offset there is, or move the job with `rocstream reset`"
    )
