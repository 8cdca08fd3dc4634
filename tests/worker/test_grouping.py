"""What a worker says when its group does not take it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka import errors

from worker.transport.grouping import install, refusal

if TYPE_CHECKING:
    from config.errors import RocstreamError


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (errors.InconsistentGroupProtocolError(), 2, "no workers of rocstream"),
        (errors.GroupAuthorizationFailedError("job"), 1, "grant READ on it (`rocstream check`"),
        (errors.TopicAuthorizationFailedError("job-events"), 1, "the topic job-events any more"),
        (errors.TopicAuthorizationFailedError({"job-b", "job-a"}), 1, "job-a, job-b any"),
        (errors.InvalidSessionTimeoutError(), 1, "group.min.session.timeout.ms"),
        (errors.InvalidGroupIdError(), 1, "does not take this worker: [Error 24] InvalidGroupId"),
    ],
)
def test_each_error_has_a_sentence_with_the_group(error: Exception, code: int, said: str) -> None:
    found = refusal(error, "job")
    assert (found.exit_code, said in str(found)) == (code, True), found
    assert "job" in str(found)


class Coordinator:
    """As much of aiokafka's as is touched: it hands errors to whoever fetches."""

    def __init__(self) -> None:
        self.pushed: list[Exception] = []

    def _push_error_to_user(self, error: Exception) -> Any:
        self.pushed.append(error)
        return asyncio.sleep(0)


def test_an_error_is_told_at_once_and_handed_on() -> None:
    coordinator: Any = Coordinator()
    told: list[RocstreamError] = []
    install(coordinator, "job", told.append)
    error = errors.InvalidGroupIdError()
    asyncio.run(wait(coordinator._push_error_to_user(error)))
    assert coordinator.pushed == [error]
    assert len(told) == 1


async def wait(handed: Any) -> None:
    await handed
