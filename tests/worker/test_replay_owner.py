"""A process of a replay answers each request, whatever comes of it."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from config.errors import RocstreamError
from worker.replay.owner import Manner, serve

if TYPE_CHECKING:
    from collections.abc import Callable

    from config import Settings

WAIT_SECONDS = 30.0


class Broken:
    """A run that cannot be read."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def batches(self, _reading: int) -> Any:
        raise self.error


def answers(settings: Settings, *errors: Exception) -> list[Any]:
    """Have runs read that fail so, one after the other."""
    here, there = multiprocessing.Pipe()

    def ask() -> list[Any]:
        found = []
        try:
            for error in errors:
                here.send_bytes(pickle.dumps(("read", ("run", Broken(error)))))
                assert here.poll(WAIT_SECONDS)
                found.append(pickle.loads(here.recv_bytes()))  # noqa: S301 - our own
        finally:
            here.close()
        return found

    before = signal.getsignal(signal.SIGINT)
    try:
        with ThreadPoolExecutor(1) as pool, there:
            found = pool.submit(ask)
            serve(there, [settings], Manner(settings.event, None, -1), [], 0, 1, None)
            return found.result()
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (RocstreamError("so it is"), RocstreamError, "so it is"),
        (MemoryError(), RocstreamError, "out of memory: take fewer with --processes"),
        (ZeroDivisionError("by 0"), RuntimeError, "failed: ZeroDivisionError: by 0"),
        (KeyError("k"), RuntimeError, "failed: KeyError: 'k'"),
    ],
)
def test_an_error_comes_back_and_the_process_goes_on(
    settings_of: Callable[..., Settings], error: Exception, kind: type[Exception], says: str
) -> None:
    for answer in answers(settings_of(), error, error):
        assert type(answer) is kind
        assert says in str(answer)


def test_a_fault_comes_back_as_text_with_the_place_where_it_was(
    settings_of: Callable[..., Settings],
) -> None:
    (answer,) = answers(settings_of(), ValueError("x"))
    assert "in batches" in answer.__notes__[0]
