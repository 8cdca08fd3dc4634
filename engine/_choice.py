"""Which implementation the public names stand for, decided once, at import."""

from __future__ import annotations

import logging
import os
from importlib import import_module
from typing import TYPE_CHECKING

VARIABLE = "ROCSTREAM_ENGINE"
_wanted = os.environ.get(VARIABLE, "")
if _wanted not in {"", "reference", "compiled"}:
    raise ImportError(f"{VARIABLE} is {_wanted!r}; it may be 'reference' or 'compiled'")

IMPLEMENTATION = "reference"

if _wanted != "reference":
    try:
        import_module("engine._core")
    except ImportError as error:
        if _wanted == "compiled":
            raise
        logging.getLogger("engine").warning(
            "the compiled core was not built (%s): the slow Python twin runs; "
            "set %s=reference to say that this is meant",
            error,
            VARIABLE,
        )
    else:
        IMPLEMENTATION = "compiled"

if TYPE_CHECKING or IMPLEMENTATION == "reference":
    from engine.reference import (
        CountWindow,
        DecayWindow,
        OrdinalCountWindow,
        OrdinalRoc,
        Roc,
        TimeWindow,
    )
else:
    from engine._core import (
        CountWindow,
        DecayWindow,
        OrdinalCountWindow,
        OrdinalRoc,
        Roc,
        TimeWindow,
    )

__all__ = [
    "IMPLEMENTATION",
    "CountWindow",
    "DecayWindow",
    "OrdinalCountWindow",
    "OrdinalRoc",
    "Roc",
    "TimeWindow",
]
