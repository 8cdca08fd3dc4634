"""`python -m benchmarks.worker.load SERVERS TOPIC --rate N`: a steady load for little CPU.

Record batches are made once, as a producer with a linger makes them that sends a broker one request
for all its partitions (Kafka's own does), and are sent round and round at the rate; only their time
is new each time. When its standard input ends, so does it, and says in JSON how many events each
key was sent. `Load` is the process from outside.
"""

from __future__ import annotations

import asyncio
import struct
import subprocess
import sys
import time
from collections import Counter, deque
from pathlib import Path
from typing import Annotated, Final, NamedTuple, Self

import orjson
import typer
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import for_code
from aiokafka.partitioner import murmur2
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c
from aiokafka.structs import TopicPartition

from benchmarks.worker.workload import Workload

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0  # seconds

IN_FLIGHT: Final = 5
"""Portions that may wait for the broker's answer, as of a producer that keeps the order."""

TIMEOUT_MS: Final = 30_000
BATCH_BYTES: Final = 1_000_000
"""Below Kafka's own limit of 1 MiB; 20 ms of 2 million events a second come near it."""

# Where a batch has its checksum and what that is of, and the times of its first and last record.
CRC, SUMMED, TIMES = 17, 21, 27


class Plan(NamedTuple):
    """What is sent; the defaults are of a busy producer.

    Attributes
    ----------
    rate
        Events a second.
    keys
        How many.
    pool
        Events that are made: by default so many that no window of 10,000 of 100 keys holds one of
        them twice.
    linger_ms
        How long a producer would gather events for a batch.
    """

    rate: float
    keys: int = 100
    pool: int = 1_200_000
    linger_ms: int = 20


class Portion(NamedTuple):
    """The events of one linger: a batch for each partition, and how many events each key has."""

    batches: dict[int, bytearray]
    counts: Counter[str]
    events: int


class LoadError(RuntimeError):
    """The broker did not take a batch."""


def portions(plan: Plan, partitions: int) -> list[Portion]:
    """Return the pool, as nearly as whole portions make it up."""
    size = max(1, round(plan.rate * plan.linger_ms / 1000))
    count = max(1, plan.pool // size)
    messages = Workload(size * count, plan.keys).messages()
    place = {
        (key := Workload.key(number).encode()): (murmur2(key) & 0x7FFFFFFF) % partitions
        for number in range(plan.keys)
    }
    return [_portion([next(messages) for _ in range(size)], place, plan) for _ in range(count)]


def _portion(messages: list[tuple[bytes, bytes]], place: dict[bytes, int], plan: Plan) -> Portion:
    builders: dict[int, DefaultRecordBatchBuilder] = {}
    counts: Counter[int] = Counter()
    for at, (key, value) in enumerate(messages):
        partition = place[key]
        builder = builders.get(partition)
        if builder is None:
            builder = builders[partition] = DefaultRecordBatchBuilder(
                2, 0, 0, -1, -1, -1, BATCH_BYTES
            )
        passed = at * plan.linger_ms // len(messages)
        if builder.append(counts[partition], passed, key, value, []) is None:
            raise LoadError(f"a batch for {plan.linger_ms} ms has more than {BATCH_BYTES:,} bytes")
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


async def send(servers: str, topic: str, plan: Plan, ended: asyncio.Event) -> Counter[str]:
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
        made = portions(plan, len(leaders))
        sent = 0
        waiting: deque[asyncio.Task[None]] = deque()
        begun = time.monotonic()
        while not ended.is_set():
            portion = made[sent % len(made)]
            first = int(time.time() * 1000) - plan.linger_ms
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
            await asyncio.sleep(begun + sent * portion.events / plan.rate - time.monotonic())
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


async def _until_input_ends(servers: str, topic: str, plan: Plan) -> Counter[str]:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), ended.set)
    return await send(servers, topic, plan, ended)


class Load:
    """The process, killed on leaving the context if it still runs."""

    def __init__(self, servers: str, topic: str, plan: Plan) -> None:
        options = (f"--{name.replace('_', '-')}={value}" for name, value in plan._asdict().items())
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker.load", servers, topic, *options],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:
            self._process.kill()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def check(self) -> None:
        """Raise RuntimeError when it no longer sends."""
        if self._process.poll() is not None:
            raise RuntimeError(f"the load ended with exit code {self._process.returncode}")

    def stop(self) -> Counter[str]:
        """Have it end; return how many events each key was sent, all of them on the broker."""
        self.check()
        said, _ = self._process.communicate(timeout=PATIENCE)
        if self._process.returncode:
            self.check()
        return Counter(orjson.loads(said))


def main(
    servers: str,
    topic: str,
    *,
    rate: Annotated[float, typer.Option(help="Events a second.")],
    keys: int = Plan._field_defaults["keys"],
    pool: Annotated[int, typer.Option(help="Events that are made.")] = Plan._field_defaults["pool"],
    linger_ms: int = Plan._field_defaults["linger_ms"],
) -> None:
    """Send events at a steady rate until standard input ends; say how many each key was sent."""
    counts = asyncio.run(_until_input_ends(servers, topic, Plan(rate, keys, pool, linger_ms)))
    sys.stdout.buffer.write(orjson.dumps(counts))


if __name__ == "__main__":
    typer.run(main)
