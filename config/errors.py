"""The errors a person reads: one sentence with what, where, value and cure; each knows its exit."""

from __future__ import annotations

from typing import ClassVar


class RocstreamError(Exception):
    """Something went wrong that one sentence explains; no traceback is needed."""

    exit_code: ClassVar[int] = 1


class SettingsError(RocstreamError):
    """A setting, an argument or a variable is wrong: nothing was started."""

    exit_code: ClassVar[int] = 2


class DecisionError(RocstreamError):
    """Going on could lose or double data; a person must decide how."""

    exit_code: ClassVar[int] = 3
