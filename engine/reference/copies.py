"""Copies that share nothing with the original."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self


class Copies:
    """What holds events copies them too, also where but a shallow copy is asked for."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return copy.deepcopy(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Below protocol 2 Python does not know of slots.
        return super().__reduce_ex__(max(protocol, 2))
