"""A task's transactional producer: the side of a task that blocks, and so lives in a thread.

The producer's epoch is what exactly-once rests on, not membership in the group: `open` fences
every former owner of the transactional id, and a fenced owner can commit nothing any more.
"""

from __future__ import annotations

import logging
import time
from threading import Event
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog
from confluent_kafka import KafkaError, KafkaException, Producer

from config.errors import RocstreamError
from config.kafka import librdkafka
from config.librdkafka import TRANSACTIONAL
from config.limits import TRANSACTION_SECONDS
from config.log import LIBRDKAFKA
from worker.messages import TOPIC_BYTES
from worker.pages import CURSOR_KEY, pack_cursor
from worker.transport.waiting import Wait

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from config import Settings
    from worker.messages import Message
    from worker.pages import Cursor
    from worker.transport.layout import Layout

log = structlog.get_logger(__name__)

CALL_SECONDS: Final = 5.0
"""How long one call into the client may take before the task looks whether it should stop."""

_ATTEMPTS: Final = 5

# What a broker that is away, or short of replicas, makes of a write: it is sent again for as long
# as it takes. Any other cause gets a few attempts.
_WAIT_FOR: Final = frozenset(
    {
        KafkaError._MSG_TIMED_OUT,  # noqa: SLF001 - the client's public constants
        KafkaError._TIMED_OUT,  # noqa: SLF001
        KafkaError._TRANSPORT,  # noqa: SLF001
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    }
)


_FORBIDDEN: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)


_TOO_LARGE: Final = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE})
_NEVER_AGAIN: Final = (
    _FORBIDDEN | _TOO_LARGE | {KafkaError.INVALID_PRODUCER_ID_MAPPING, KafkaError.INVALID_TIMESTAMP}
)


class WriteError(RocstreamError):
    """A transaction could not be committed; nothing after it may be."""


class ForbiddenError(WriteError):
    """The broker does not let the user write: opening the task anew would not help."""


class TooLargeError(WriteError):
    """A topic does not take a message of ours: opening the task anew would not help."""


class ClockError(WriteError):
    """A topic does not take the time of ours: opening the task anew would not help."""


class ForgottenError(WriteError):
    """The coordinator has forgotten the transactional id, idle for too long, and all its owners.

    It would give a new one to whoever asks first, so that nothing fences anybody any more: the
    state is to be read again behind a new fence.
    """


class Topics(NamedTuple):
    """Where a task writes to."""

    updates: str
    rejected: str
    changelog: str


class Transaction(NamedTuple):
    """What moves together: all of it becomes visible, or none."""

    updates: list[Message]
    rejections: list[Message]
    pages: list[tuple[bytes, bytes | None]]
    cursor: Cursor


class TaskProducer:
    """Writes the transactions of one task.

    Every method but `listen` blocks; call them from a thread, one at a time. `abandon` may be
    called from anywhere and makes a blocked call end within `CALL_SECONDS`.

    Parameters
    ----------
    client
        librdkafka settings of the connection.
    topics
        Where to write.
    partition
        The task: its changelog partition, and the end of its transactional id.
    group
        The beginning of its transactional id.
    """

    def __init__(
        self, client: Mapping[str, str], topics: Topics, partition: int, group: str
    ) -> None:
        self._topics = topics
        self._partition = partition
        self._abandoned = Event()
        self._wait = Wait("waiting for the broker", task=partition)
        self._producer: Producer | None = None
        self._transactional_id = f"{group}-{partition}"
        self._settings: dict[str, Any] = {
            "linger.ms": 5,
            "compression.type": "lz4",
            "batch.num.messages": 20_000,
            "queue.buffering.max.messages": 1_000_000,
            "message.max.bytes": TOPIC_BYTES,
            **client,
            **TRANSACTIONAL,
            "partitioner": "murmur2_random",
            "transactional.id": self._transactional_id,
            "logger": logging.getLogger(LIBRDKAFKA),
        }

    @classmethod
    def of(cls, settings: Settings, layout: Layout, partition: int) -> TaskProducer:
        """Make the producer of a job's task, not opened yet."""
        topics = settings.topics
        client = librdkafka(settings, "producer")
        # A batch that is larger than a topic takes would be refused, however small its messages.
        size = min(int(client.get("batch.size", layout.batch_bytes)), layout.batch_bytes)
        return cls(
            {**client, "batch.size": str(size)},
            Topics(topics.updates, topics.rejected, layout.changelog),
            partition,
            settings.kafka.group,
        )

    def open(self) -> None:
        """Take the transactional id over: former owners are fenced, their transaction ended.

        Raises
        ------
        WriteError
            When the broker refuses, or the task was abandoned meanwhile.
        """
        self._producer = Producer(self._settings)
        failure = "could not take over its transactions"
        try:
            self._persist(self._producer.init_transactions, failure)
        except KafkaException as raised:
            raise self._failure(failure, raised.args[0]) from raised

    def commit(self, transaction: Transaction) -> None:
        """Write a transaction and commit it; wait for a broker that is away.

        Raises
        ------
        WriteError
            When the task was fenced, the broker refuses, or the task was abandoned.
        """
        producer = self._opened()
        attempts = 0
        while True:
            try:
                producer.begin_transaction()
                self._produce(producer, transaction)
                self._persist(producer.commit_transaction, "could not commit")
            except KafkaException as raised:
                error = raised.args[0]
                attempts += error.code() not in _WAIT_FOR
                if error.code() in _NEVER_AGAIN:
                    raise self._failure("could not commit", error) from raised
                # While it is written to, a transaction that has failed is only in a wrong state.
                failed = error.txn_requires_abort() or error.code() == KafkaError._STATE  # noqa: SLF001
                if not failed or attempts >= _ATTEMPTS:
                    raise self._failure("could not commit", error) from raised
                log.warning(
                    "transaction aborted, sent again", task=self._partition, error=error.str()
                )
                self._abort(producer)
            else:
                return

    def listen(self) -> None:
        """Have the client log what it has to say; does not block."""
        if self._producer is not None:
            self._producer.poll(0)

    def abandon(self) -> None:
        """Make calls that wait for the broker give up."""
        self._abandoned.set()

    def close(self) -> None:
        """Drop the client; this waits for its threads to end."""
        self._abandoned.set()
        self._producer = None

    def _opened(self) -> Producer:
        if self._producer is None:
            raise WriteError(f"the producer of task {self._partition} is not open")
        return self._producer

    def _abort(self, producer: Producer) -> None:
        try:
            self._persist(producer.abort_transaction, "could not abort")
        except KafkaException as raised:
            raise self._failure("could not abort", raised.args[0]) from raised

    def _persist(self, call: Callable[[float], object], failure: str) -> None:
        """Make a call again for as long as its failure is one that passes."""
        began = time.monotonic()
        while True:
            try:
                call(CALL_SECONDS)
            except KafkaException as raised:
                error = raised.args[0]
                if not error.retriable():
                    raise
                if self._abandoned.is_set():
                    raise self._failure(failure, error) from raised
                self._wait.tell(error.str(), began)
                self.listen()
            else:
                self._wait.over()
                return

    def _produce(self, producer: Producer, transaction: Transaction) -> None:
        updates, rejected, changelog = self._topics
        self._put(producer, updates, transaction.updates)
        self._put(producer, rejected, transaction.rejections)
        partition = self._partition
        pages: Iterable[tuple[bytes, bytes | None]] = (
            *transaction.pages,
            (CURSOR_KEY, pack_cursor(transaction.cursor)),
        )
        for key, value in pages:
            while True:
                try:
                    producer.produce(changelog, value, key, partition)
                    break
                except BufferError:
                    self._make_room(producer)

    def _put(self, producer: Producer, topic: str, messages: list[Message]) -> None:
        for key, value, headers in messages:
            while True:
                try:
                    if headers:
                        producer.produce(topic, value, key, headers=list(headers))
                    else:
                        producer.produce(topic, value, key)
                    break
                except BufferError:
                    self._make_room(producer)

    def _make_room(self, producer: Producer) -> None:
        if self._abandoned.is_set():
            raise WriteError(f"task {self._partition} was given up while it was writing")
        producer.poll(0.05)

    def _failure(self, what: str, error: KafkaError) -> WriteError:
        sentence = (
            f"task {self._partition} (transactional id {self._transactional_id}) {what}: "
            f"{error.str()}"
        )
        if error.code() in _FORBIDDEN:
            return ForbiddenError(f"{sentence} (`rocstream check` tells what to grant)")
        if error.code() in _TOO_LARGE:
            return TooLargeError(
                f"{sentence}: a message has more bytes than its topic takes; set max.message.bytes "
                f"of {', '.join(dict.fromkeys(self._topics))} to {TOPIC_BYTES}, Kafka's default, "
                "and start the worker again"
            )
        if error.code() == KafkaError.INVALID_TRANSACTION_TIMEOUT:
            return WriteError(
                f"{sentence}: its transactions may take {TRANSACTION_SECONDS} s, so set the "
                f"brokers' transaction.max.timeout.ms to {TRANSACTION_SECONDS * 1000} at least"
            )
        if error.code() == KafkaError.INVALID_TIMESTAMP:
            return ClockError(
                f"{sentence}: this machine's clock and the broker's lie further apart than a topic "
                "takes (message.timestamp.after.max.ms and message.timestamp.before.max.ms of "
                f"{', '.join(dict.fromkeys(self._topics))}): set the clock that is wrong, and "
                "start the worker again"
            )
        if error.code() == KafkaError.INVALID_PRODUCER_ID_MAPPING:
            return ForgottenError(sentence)
        return WriteError(sentence)
