"""What numbers [kafka.client] takes: those with which a worker does not wait or end without a word.

librdkafka lets a client wait an hour between two attempts to connect, or ask its brokers a thousand
times a second. It may be right for other programs; here each number has bounds, and a reason.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

TRANSACTION_SECONDS: Final = 15
"""An open transaction hides later ones in its partitions from read_committed readers; a crashed
task's is ended after this long, unless its next owner ends it before."""

_MOST: Final = 2**31 - 1


class Limit(NamedTuple):
    """From and to which number, why, and the number beside them that turns it off, if one does."""

    low: int
    high: int
    why: str
    off: int | None = None


_TIME: Final = f"since a transaction has {TRANSACTION_SECONDS} s to go through"
_FOUND: Final = "since brokers that are back must be found soon, and not be asked without a pause"
_NOTICED: Final = (
    "since a topic that has changed must be noticed, and brokers not be asked without a pause"
)
_READ: Final = "since with others what is read comes slowly, or not at all"
_IN: Final = "since what brokers answer must fit"

_LINGER: Final = Limit(0, 1_000, _TIME)
_PARTITION: Final = Limit(65_536, 100_000_000, _READ)

LIMITS: Final[Mapping[str, Limit]] = MappingProxyType(
    {
        # A message that is larger than the queue would never go into it. Batches of one message
        # take a way to the broker and back for each five.
        "batch.num.messages": Limit(1_000, 1_000_000, _TIME),
        "batch.size": Limit(16_384, _MOST, _TIME),
        "linger.ms": _LINGER,
        "queue.buffering.max.ms": _LINGER,
        "queue.buffering.max.kbytes": Limit(16_384, _MOST, _TIME),
        "queue.buffering.max.messages": Limit(10_000, _MOST, _TIME),
        # The leader would give up before replicas can have answered it.
        "request.timeout.ms": Limit(1_000, TRANSACTION_SECONDS * 1000, _TIME),
        "socket.timeout.ms": Limit(2_000, TRANSACTION_SECONDS * 1000, _TIME),
        "api.version.request.timeout.ms": Limit(1_000, 15_000, _FOUND),
        "broker.address.ttl": Limit(0, 60_000, _FOUND),
        "connections.max.idle.ms": Limit(10_000, _MOST, _FOUND, off=0),
        "metadata.recovery.rebootstrap.trigger.ms": Limit(1_000, _MOST, _FOUND),
        "reconnect.backoff.max.ms": Limit(100, 15_000, _FOUND),
        "reconnect.backoff.ms": Limit(10, 10_000, _FOUND),
        "retry.backoff.max.ms": Limit(100, 15_000, _FOUND),
        "retry.backoff.ms": Limit(10, 1_000, _FOUND),
        "socket.connection.setup.timeout.ms": Limit(1_000, 30_000, _FOUND),
        # With 0 a connection whose other end is gone is kept for good.
        "socket.max.fails": Limit(1, 3, _FOUND),
        "topic.metadata.refresh.fast.interval.ms": Limit(10, 10_000, _FOUND),
        "metadata.max.age.ms": Limit(1_000, 900_000, _NOTICED),
        "topic.metadata.propagation.max.ms": Limit(5_000, 60_000, _NOTICED),
        "topic.metadata.refresh.interval.ms": Limit(1_000, 3_600_000, _NOTICED, off=-1),
        "fetch.error.backoff.ms": Limit(10, 10_000, _READ),
        "fetch.max.bytes": Limit(1_000_000, 100_000_000, _READ),
        "fetch.message.max.bytes": _PARTITION,
        "fetch.min.bytes": Limit(1, 1_000_000, _READ),
        "fetch.queue.backoff.ms": Limit(1, 1_000, _READ),
        "fetch.wait.max.ms": Limit(10, 1_000, _READ),
        "max.partition.fetch.bytes": _PARTITION,
        "queued.max.messages.kbytes": Limit(1_024, 1_048_576, _READ),
        "queued.min.messages": Limit(1_000, 10_000_000, _READ),
        # The list of all topics and partitions must go in.
        "receive.message.max.bytes": Limit(16_777_216, _MOST, _IN),
        "statistics.interval.ms": Limit(1_000, 86_400_000, "since nobody reads them here", off=0),
    }
)

HARMLESS: Final = frozenset(
    [
        "compression.level",
        "log_level",
        "message.copy.max.bytes",
        "queue.buffering.backpressure.threshold",
        "socket.blocking.max.ms",
        "socket.receive.buffer.bytes",
        "socket.send.buffer.bytes",
        "sticky.partitioning.linger.ms",
    ]
)
"""Numbers that have no bounds but librdkafka's: whatever they are, all goes on."""

_FRACTIONS: Final = {"linger.ms", "queue.buffering.max.ms"}
_WHOLE: Final = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,17})")
_FRACTION: Final = re.compile(rf"{_WHOLE.pattern}(?:\.[0-9]{{1,18}})?")
_LIKE_A_NUMBER: Final = re.compile(r"\s*[+-]?\.?[0-9]")


def unfit(name: str, value: str) -> str | None:
    """Return why a setting cannot have a value, with the cure; None when librdkafka may judge it.

    It reads a number as far as it is one: "5s" would be 5 ms, "1e6" 1, and "010" 8.
    """
    number = (_FRACTION if name in _FRACTIONS else _WHOLE).fullmatch(value)
    if (limit := LIMITS.get(name)) is not None:
        found = None if number is None else float(value)
        if found is None or not (limit.low <= found <= limit.high or found == limit.off):
            or_off = "" if limit.off is None else f", or {limit.off} to turn it off"
            return f"it must be a number from {limit.low:,} to {limit.high:,}{or_off}, {limit.why}"
    elif number is None and _LIKE_A_NUMBER.match(value):
        return "it must be a whole number in plain digits, without a unit"
    return None
