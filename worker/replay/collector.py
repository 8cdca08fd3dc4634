"""The collector of cycles, which finds little to do in a replay."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

OBJECTS: Final = 10_000
"""New objects after which it looks at them: updates, many and short-lived, are in no cycles."""


@contextmanager
def resting() -> Iterator[None]:
    """Have it look less often, and not at what is loaded by now, while the block runs."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(OBJECTS, 20, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
