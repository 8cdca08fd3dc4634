"""What a blocking client says while it waits."""

from __future__ import annotations

import time

import pytest
import structlog

from worker.transport import waiting
from worker.transport.waiting import Wait


@pytest.mark.parametrize(("again", "tellings"), [(30.0, 1), (0.0, 3)])
def test_a_wait_is_told_and_told_again_and_its_end_once(
    monkeypatch: pytest.MonkeyPatch, again: float, tellings: int
) -> None:
    monkeypatch.setattr(waiting, "AGAIN_SECONDS", again)
    wait = Wait("waiting for it", task=3)
    with structlog.testing.capture_logs() as said:
        wait.over()
        assert not said
        for _ in range(3):
            wait.tell("it is away", time.monotonic() - 5)
        wait.over()
        wait.over()
    assert [line["event"] for line in said] == ["waiting for it"] * tellings + [
        "the broker is back"
    ]
    assert all(line["task"] == 3 for line in said)
    assert said[0]["error"] == "it is away"
    assert said[-1]["waited_s"] >= 5
