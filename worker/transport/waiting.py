"""What is said while a blocking client waits: at once, every half minute again, and at its end."""

from __future__ import annotations

import time
from typing import Final

import structlog

log = structlog.get_logger(__name__)

AGAIN_SECONDS: Final = 30.0
"""Between two tellings that the broker is waited for."""


class Wait:
    """One wait of one client.

    Parameters
    ----------
    event
        What is waited for, as the log says it.
    what
        What the lines say beside it.
    """

    def __init__(self, event: str, **what: object) -> None:
        self._event = event
        self._what = what
        self._since: float | None = None
        self._told = 0.0

    def tell(self, error: str, began: float) -> None:
        """Tell that a call, begun at a time (monotonic), has failed and is made again."""
        now = time.monotonic()
        if self._since is None:
            self._since = began
        elif now - self._told < AGAIN_SECONDS:
            return
        self._told = now
        waited = round(now - self._since, 1)
        log.warning(self._event, **self._what, error=error, waited_s=waited)

    def over(self) -> None:
        """Tell that a call has succeeded, if there was a wait."""
        if self._since is not None:
            waited = round(time.monotonic() - self._since, 1)
            log.info("the broker is back", **self._what, waited_s=waited)
            self._since = None
