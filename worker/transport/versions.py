"""Requests of versions that aiokafka does not know: whether a broker takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiokafka.protocol.api import RequestStruct


def taken(request: type[RequestStruct], versions: Mapping[int, tuple[int, int]]) -> bool:
    """Tell whether a broker that takes these versions of each request takes this one."""
    low, high = versions.get(request.API_KEY, (0, 0))
    return bool(low <= request.API_VERSION <= high)
