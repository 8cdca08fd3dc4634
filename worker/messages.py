"""A record about to be produced: what the pipeline hands to whatever writes it."""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

BATCH_BYTES: Final = 1_000_000
"""Of a batch on its way to a broker, and so of a dead letter, which is one by itself where it is
large: under what topics take unless told otherwise. A topic that takes less makes it less."""

TOPIC_BYTES: Final = (1 << 20) + 12
"""``max.message.bytes`` of a topic by default: a batch of 1 MiB."""


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
