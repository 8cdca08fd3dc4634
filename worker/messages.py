"""A record about to be produced: what the pipeline hands to whatever writes it."""

from __future__ import annotations

from typing import NamedTuple


class Message(NamedTuple):
    """One record to produce; the topic is the business of whoever sends it.

    Attributes
    ----------
    key, value
        Bytes, or None for a Kafka null.
    headers
        Pairs of name and bytes, in the order they are written.
    """

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
