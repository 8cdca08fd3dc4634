"""A record about to be produced: what the pipeline hands to whatever writes it."""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple


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


made: Final = partial(tuple.__new__, Message)
"""Makes a message of its fields, as `Message._make` does, without a step of Python's for each."""
