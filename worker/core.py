"""Whether the worker's own compiled modules run: as `engine` decides it, once, at import."""

from __future__ import annotations

import logging
import os
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

import engine

_MODULES: Final = (
    *("_pages", "_updates", "events._block", "events._columns", "events._decimal"),
    *("events._json", "events._reading", "events._scan", "transport._batches"),
)


def lacking(folder: Path) -> list[str]:
    """Return which compiled modules of the worker are not in its folder; imports none of them."""
    places = [(name, *name.rpartition(".")[::2]) for name in _MODULES]
    return [
        f"worker.{name}"
        for name, package, module in places
        if PathFinder.find_spec(module, [str(folder / package)]) is None
    ]


def _decide() -> bool:
    if engine.IMPLEMENTATION != "compiled":
        return False
    absent = lacking(Path(__file__).parent)
    if not absent:
        return True
    told = (
        f"{', '.join(absent)} not built, though the engine is: build the rest with "
        '"python setup.py build_ext --inplace", or install anew'
    )
    if os.environ.get("ROCSTREAM_ENGINE") == "compiled":
        raise ImportError(told)
    logging.getLogger("worker").warning("%s; until then the slow plain loops run", told)
    return False


COMPILED: Final = _decide()
