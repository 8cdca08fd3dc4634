"""A steady load of hundreds of thousands of events a second, for little CPU.

`python tests/chaos/load.py SERVERS TOPIC RATE` makes record batches once, as a busy producer with a
linger of 20 ms would, and sends them round and round at the rate; only their time is new each time.
When its standard input ends, so does it, and says in JSON how many events each key was sent.
"""

from __future__ import annotations

import asyncio
import struct
import sys
import time
from collections import Counter, deque
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import orjson
import typer
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import for_code
from aiokafka.partitioner import murmur2
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c
from aiokafka.structs import TopicPartition

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))

from benchmarks.worker.workload import Workload  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

KEYS: Final = 100
POOL: Final = 1_200_000
"""Events that are made once, and sent again and again: so many that no window of a soak holds one
of them twice."""

LINGER_MS: Final = 20
IN_FLIGHT: Final = 5
"""Portions that may wait for the broker's answer, as of a producer that keeps the order."""

TIMEOUT_MS: Final = 30_000
BATCH_BYTES: Final = 1_000_000
"""Kafka's own limit is 1 MiB: at more than 2 million events a second, batches would be refused."""

# Where a batch has its checksum and what that is of, and the times of its first and last record.
CRC, SUMMED, TIMES = 17, 21, 27


class Portion(NamedTuple):
    """The events of one linger: a batch for each partition, and how many events each key has."""

    batches: dict[int, bytearray]
    counts: Counter[str]
    events: int


class LoadError(RuntimeError):
    """The broker did not take a batch."""


def portions(rate: float, partitions: int, pool: int) -> list[Portion]:
    """Return about so many events as are in a `pool`, in portions of `LINGER_MS` at a rate."""
    size = max(1, round(rate * LINGER_MS / 1000))
    count = max(1, pool // size)
    messages = Workload(size * count, KEYS).messages()
    place = {
        (key := Workload.key(number).encode()): (murmur2(key) & 0x7FFFFFFF) % partitions
        for number in range(KEYS)
    }
    return [
        _portion([next(messages) for _ in range(size)], place.__getitem__) for _ in range(count)
    ]


def _portion(messages: list[tuple[bytes, bytes]], place: Callable[[bytes], int]) -> Portion:
    builders: dict[int, DefaultRecordBatchBuilder] = {}
    counts: Counter[int] = Counter()
    for at, (key, value) in enumerate(messages):
        partition = place(key)
        builder = builders.get(partition)
        if builder is None:
            builder = builders[partition] = DefaultRecordBatchBuilder(
                2, 0, 0, -1, -1, -1, BATCH_BYTES
            )
        passed = at * LINGER_MS // len(messages)
        if builder.append(counts[partition], passed, key, value, []) is None:
            raise LoadError(
                f"more than {BATCH_BYTES:,} bytes for a partition within {LINGER_MS} ms"
            )
        counts[partition] += 1
    return Portion(
        {partition: bytearray(builder.build()) for partition, builder in builders.items()},
        Counter(key.decode() for key, _ in messages),
        len(messages),
    )


def stamped(batch: bytearray, first: int) -> bytes:
    """Return a batch whose first record is of a time (ms since 1970), the others as long after."""
    was, last = struct.unpack_from(">qq", batch, TIMES)
    struct.pack_into(">qq", batch, TIMES, first, last - was + first)
    struct.pack_into(">I", batch, CRC, calc_crc32c(memoryview(batch)[SUMMED:]))
    return bytes(batch)


async def load(
    servers: str, topic: str, rate: float, pool: int, ended: asyncio.Event
) -> Counter[str]:
    """Send until `ended`; return the number of events by key, all of them on the broker.

    Raises
    ------
    LoadError
        When the broker did not take one.
    """
    client = AIOKafkaClient(bootstrap_servers=servers, client_id="load")
    await client.bootstrap()
    try:
        await client.add_topic(topic)
        leaders = {
            number: client.cluster.leader_for_partition(TopicPartition(topic, number))
            for number in client.cluster.partitions_for_topic(topic) or ()
        }
        if not leaders:
            raise LoadError(f"there is no topic {topic}")
        made = portions(rate, len(leaders), pool)
        sent = 0
        waiting: deque[asyncio.Task[None]] = deque()
        begun = time.monotonic()
        while not ended.is_set():
            portion = made[sent % len(made)]
            first = int(time.time() * 1000) - LINGER_MS
            for leader in set(leaders.values()):
                batches = [
                    (partition, stamped(batch, first))
                    for partition, batch in portion.batches.items()
                    if leaders[partition] == leader
                ]
                waiting.append(asyncio.create_task(_send(client, leader, topic, batches)))
            sent += 1
            while len(waiting) > IN_FLIGHT:
                await waiting.popleft()
            await asyncio.sleep(begun + sent * portion.events / rate - time.monotonic())
        await asyncio.gather(*waiting)
    finally:
        await client.close()
    rounds, rest = divmod(sent, len(made))
    counts: Counter[str] = Counter()
    for number, portion in enumerate(made):
        for key, count in portion.counts.items():
            counts[key] += count * (rounds + (number < rest))
    return counts


async def _send(
    client: AIOKafkaClient, leader: int, topic: str, batches: list[tuple[int, bytes]]
) -> None:
    answer = await client.send(leader, ProduceRequest(None, -1, TIMEOUT_MS, [(topic, batches)]))
    for _, partitions in answer.topics:
        for partition, code, *_ in partitions:
            if code:
                raise LoadError(f"{topic}, partition {partition}: {for_code(code)!r}")


async def _until_input_ends(servers: str, topic: str, rate: float, pool: int) -> Counter[str]:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), ended.set)
    return await load(servers, topic, rate, pool, ended)


def main(
    servers: str,
    topic: str,
    rate: Annotated[float, typer.Argument(help="Events a second.")],
    pool: Annotated[int, typer.Option(help="How many are made.")] = POOL,
) -> None:
    """Send events at a steady rate until standard input ends; say how many each key was sent."""
    counts = asyncio.run(_until_input_ends(servers, topic, rate, pool))
    sys.stdout.buffer.write(orjson.dumps(counts))


if __name__ == "__main__":
    typer.run(main)
