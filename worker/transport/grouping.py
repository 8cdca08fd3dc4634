"""Errors of its group, or of reading, that a worker cannot work under: they end it with a sentence.

aiokafka hands them to whoever fetches next, and asks no more. A worker that has no partitions yet
fetches nothing, so it would wait for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiokafka import errors

from config.errors import RocstreamError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiokafka.consumer.group_coordinator import GroupCoordinator


def refusal(error: Exception, group: str) -> RocstreamError:
    """Return what ends a worker whose group does not take it.

    Parameters
    ----------
    error
        As aiokafka tells it.
    group
        The job's.
    """
    if isinstance(error, errors.InconsistentGroupProtocolError):
        return SettingsError(
            f'kafka.group = "{group}": the group has members that are no workers of rocstream, '
            "and share no way to assign partitions with this one: stop them, or take a group of "
            "the job's own"
        )
    if isinstance(error, errors.GroupAuthorizationFailedError):
        return RocstreamError(
            f"the user may not read the group {group} any more: grant READ on it (`rocstream "
            "check` tells what else to grant)"
        )
    if isinstance(error, errors.TopicAuthorizationFailedError):
        topics = {error.args[0]} if isinstance(error.args[0], str) else set(error.args[0])
        return RocstreamError(
            f"the user may not read the topic {', '.join(sorted(topics))} any more: grant READ on "
            "it (`rocstream check` tells what else to grant)"
        )
    if isinstance(error, errors.InvalidSessionTimeoutError):
        return RocstreamError(
            f"the broker does not take the worker's session of 10 s in the group {group}: have it "
            "lie between its group.min.session.timeout.ms and group.max.session.timeout.ms"
        )
    return RocstreamError(f"the group {group} does not take this worker: {error}")


def install(
    coordinator: GroupCoordinator, group: str, on_refused: Callable[[RocstreamError], None]
) -> None:
    """Have a member of a group tell at once when it cannot be one.

    Parameters
    ----------
    coordinator
        aiokafka's side of the membership.
    group
        The job's.
    on_refused
        Called, in the client's thread, with the sentence.
    """
    push: Callable[[Exception], Awaitable[Any]] = coordinator._push_error_to_user  # noqa: SLF001 - the one way

    def push_and_tell(error: Exception) -> Awaitable[Any]:
        on_refused(refusal(error, group))
        return push(error)

    coordinator._push_error_to_user = push_and_tell  # noqa: SLF001
