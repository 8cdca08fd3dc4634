"""Which implementation the public names stand for, decided once, at import."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING

VARIABLE = "ROCSTREAM_ENGINE"
_wanted = os.environ.get(VARIABLE, "")
if _wanted not in {"", "reference", "compiled"}:
    raise ImportError(f"{VARIABLE} is {_wanted!r}; it may be 'reference' or 'compiled'")

IMPLEMENTATION = "reference"

if TYPE_CHECKING or _wanted == "reference":
    from engine.reference import CountWindow, Roc
else:
    try:
        from engine._core import CountWindow, Roc

        IMPLEMENTATION = "compiled"
    except ImportError as error:
        if _wanted == "compiled":
            raise
        warnings.warn(
            f"the compiled core of engine was not built ({error}): the slow Python twin runs; "
            f"set {VARIABLE}=reference to say that this is meant",
            RuntimeWarning,
            stacklevel=2,
        )
        from engine.reference import CountWindow, Roc

__all__ = ["IMPLEMENTATION", "CountWindow", "Roc"]
