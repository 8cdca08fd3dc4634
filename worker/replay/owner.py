"""A process of a replay in several: reads runs for all, and plays the events of its own keys."""

from __future__ import annotations

import pickle
import queue
import signal
import threading
import traceback
import zlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np

from config.errors import RocstreamError
from worker.events import Batch, Parser
from worker.events.batch import ListedEvents
from worker.replay.cells import RowRun
from worker.replay.grouping import Stretch, grouped
from worker.replay.parquet import Table, TableRun
from worker.replay.player import Chooser
from worker.replay.records import LineRun, RecordRun
from worker.replay.tape import Tape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from multiprocessing.connection import Connection

    from numpy.typing import NDArray

    from config import EventSettings, Settings
    from worker.events import KeyedEvents
    from worker.messages import Message
    from worker.replay.records import Log, Run
    from worker.replay.series import Recorder

_BETWEEN: Final = b',"index"'
_END: Final = b"}}"
"""Behind the offset and the index of an update's source, the last things in it."""


class Share(NamedTuple):
    """Events of one owner on their way to it: key after key, in columns.

    Attributes
    ----------
    names, sizes
        The keys, and how many events of each follow each other.
    scores, labels, times, weights, offsets, indexes
        As in `KeyedEvents`; None for ones as weights and zeros as indexes.
    """

    names: list[str]
    sizes: list[int]
    scores: NDArray[np.float64]
    labels: NDArray[np.uint8]
    times: NDArray[np.int64]
    weights: NDArray[np.float64] | None
    offsets: NDArray[np.int64]
    indexes: NDArray[np.int64] | None

    @classmethod
    def of(cls, keys: dict[str, KeyedEvents]) -> Share:
        """Pack grouped events. O(events)."""
        found = list(keys.values())
        heavy = any(one.weights is not None for one in found)
        weights = [np.ones(len(one)) if one.weights is None else one.weights for one in found]
        indexes = _joined([one.indexes for one in found], np.int64)
        return cls(
            list(keys),
            list(map(len, found)),
            _joined([one.scores for one in found], np.float64),
            _joined([one.labels for one in found], np.uint8),
            _joined([one.times for one in found], np.int64),
            _joined(weights, np.float64) if heavy else None,
            _joined([one.offsets for one in found], np.int64),
            indexes if indexes.any() else None,
        )

    def keys(self) -> dict[str, KeyedEvents]:
        """Return the events grouped again. O(keys)."""
        found: dict[str, KeyedEvents] = {}
        start = 0
        for name, size in zip(self.names, self.sizes, strict=True):
            part = slice(start, start + size)
            events = ListedEvents()
            events.scores = cast("list[float]", self.scores[part])
            events.labels = cast("list[int]", self.labels[part])
            events.times = cast("list[int]", self.times[part])
            events.offsets = cast("list[int]", self.offsets[part])
            events.indexes = [0] * size if self.indexes is None else self.indexes[part].tolist()
            if self.weights is not None and not bool((self.weights[part] == 1.0).all()):
                events.weights = cast("list[float]", self.weights[part])
            found[name] = events
            start += size
        return found


def _joined(columns: Sequence[Any], kind: Any) -> NDArray[Any]:
    if not columns:
        return np.zeros(0, kind)
    return np.concatenate([np.asarray(column, kind) for column in columns])


class Manner(NamedTuple):
    """How records are read: the settings, and what each record has outside its value."""

    event: EventSettings
    fixed: bytes | None
    timestamp: int


class Played(NamedTuple):
    """Updates of one owner from one run under one setting, in the order of the log.

    Attributes
    ----------
    offsets, indexes
        Where the events stand that they follow from.
    keys, values
        Of the messages.
    head
        What the run has beside events, with the first setting of the owner who tells it.
    """

    offsets: list[int]
    indexes: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]
    head: Batch | None


class Owner:
    """The windows of a share of the keys.

    Parameters
    ----------
    settings, manner
        All that is replayed under, and how records are read.
    recorders
        One for each of the settings, or none.
    number, count
        Which owner of how many this is.
    keys
        Patterns of the keys that are asked for; None asks for all.
    """

    def __init__(
        self,
        settings: Sequence[Settings],
        manner: Manner,
        recorders: Sequence[Recorder],
        number: int,
        count: int,
        keys: Sequence[str] | None,
    ) -> None:
        self._settings, self._manner = settings, manner
        self.recorders = recorders
        self._makers = [one.tape for one in recorders] or [Tape] * len(settings)
        self._number, self._count = number, count
        self._chooser = Chooser(keys)
        self._parsers = [Parser(manner.event)]
        self._owners: dict[str, int] = {}
        self._table: Table | None = None
        self._tapes: list[Tape] = []
        self._log: Log | None = None

    def read(self, packed: tuple[Any, ...]) -> tuple[list[bytes], Batch]:
        """Read a run; return its events by owner, and all that is not events."""
        shares: list[list[Share]] = [[] for _ in range(self._count)]
        head = Batch()
        for part in self._parts(packed, head):
            for number, share in enumerate(shares):
                share.append(Share.of(self._events(part, number)))
        return [pickle.dumps(share, pickle.HIGHEST_PROTOCOL) for share in shares], head

    def play(
        self,
        log: Log,
        published: bool,  # noqa: FBT001 - sent so
        given: bytes | tuple[Any, ...],
    ) -> list[Played]:
        """Play the events of the own keys: those that were read, or those of a run to read."""
        self._turn(log)
        head = Batch()
        updates: list[list[Message]] = [[] for _ in self._tapes]
        for batch in self._batches(given, head):
            for number, tape in enumerate(self._tapes):
                tape.published = published
                updates[number] += tape.play(batch)
        if not published:
            updates = [[] for _ in updates]
        tells = not self._number and not isinstance(given, bytes)
        first, *others = map(_played, updates)
        return [first._replace(head=head if tells else None), *others]

    def _turn(self, log: Log) -> None:
        if not self._tapes or (log != self._log and not log.goes_on):
            self._tapes = [
                make(settings, log)
                for make, settings in zip(self._makers, self._settings, strict=True)
            ]
        elif log != self._log:
            for tape in self._tapes:
                tape.turn(log)
        self._log = log

    def _batches(self, given: bytes | tuple[Any, ...], head: Batch) -> Iterator[Batch]:
        if isinstance(given, bytes):
            for share in pickle.loads(given):  # noqa: S301 - our own
                yield Batch(keys=share.keys())
        else:
            for part in self._parts(given, head):
                yield Batch(keys=self._events(part, self._number))

    def _parts(self, packed: tuple[Any, ...], head: Batch) -> Iterator[Stretch | Batch]:
        """Take a run apart, and note in `head` what it has beside events."""
        run = self._run(packed)
        parts = run.parts(0) if isinstance(run, TableRun | RowRun) else run.batches(0)
        for part in parts:
            if isinstance(part, Stretch):
                told = part.head()
                unwanted = self._numbers(part) < 0
                if unwanted.any():
                    told.counts["events"] -= int(unwanted[part.columns.keys].sum())
            else:
                told = part
                self._chooser.choose(part)
            head.counts.update(told.counts)
            head.rejections += told.rejections
            head.offset = told.offset
            yield part

    def _events(self, part: Stretch | Batch, number: int) -> dict[str, KeyedEvents]:
        """Return the events of one owner."""
        if isinstance(part, Stretch):
            return grouped(part.columns, self._numbers(part) == number)
        return {key: events for key, events in part.keys.items() if self._owner(key) == number}

    def _numbers(self, part: Stretch) -> Any:
        """Return the owner of each name."""
        return np.fromiter(map(self._owner, part.columns.names), np.int64)

    def _owner(self, key: str) -> int:
        """Return the number of a key's owner; -1 where the key is not asked for."""
        owner = self._owners.get(key)
        if owner is None:
            owner = zlib.crc32(key.encode()) % self._count if self._chooser.wants(key) else -1
            self._owners[key] = owner
        return owner

    def _run(self, packed: tuple[Any, ...]) -> Run:
        manner = self._manner
        match packed:
            case ("lines", text, count, first):
                return LineRun(text, count, first, self._parsers, manner.fixed, manner.timestamp)
            case ("rows", path, first, last):
                if self._table is None or self._table.path != path:
                    self._table = Table(path, [manner.event], manner.fixed, manner.timestamp)
                return TableRun(self._table, first, last)
            case ("records", records, last):
                return RecordRun(records, last, self._parsers)
        read: Run = packed[1]
        return read


def _played(updates: Sequence[Message]) -> Played:
    places = [_place(update.value or b"") for update in updates]
    return Played(
        [offset for offset, _ in places],
        [index for _, index in places],
        [update.key for update in updates],
        [update.value for update in updates],
        None,
    )


def _place(value: bytes) -> tuple[int, int]:
    """Return offset and index of an update's source, which stand at its end."""
    _, offset, index = value.rsplit(b":", 2)
    return int(offset[: -len(_BETWEEN)]), int(index[: -len(_END)])


def serve(link: Connection, *arguments: Any) -> None:
    """Answer requests until the parent closes the pipe.

    Parameters
    ----------
    link
        To the parent. A thread takes requests from it at any time, so that neither side waits for
        the other to read while it writes itself.
    arguments
        For `Owner`.
    """
    # Ctrl-C is the parent's to deal with.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    owner = Owner(*arguments)
    tasks: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    threading.Thread(target=_take, args=(link, tasks), daemon=True).start()
    while (packed := tasks.get()) is not None:
        what, *task = pickle.loads(packed)  # noqa: S301 - our parent's
        answer: Any
        try:
            match what:
                case "read":
                    answer = owner.read(*task)
                case "play":
                    answer = owner.play(*task)
                case _:
                    answer = owner.recorders
        except RocstreamError as error:
            answer = error
        except MemoryError:
            answer = RocstreamError(
                "a process of the replay ran out of memory: take fewer with --processes"
            )
        except Exception as error:  # noqa: BLE001 - the parent raises it
            # As text: not every exception comes through a pipe.
            answer = RuntimeError(
                f"a process of the replay failed: {type(error).__name__}: {error}"
            )
            answer.add_note(traceback.format_exc())
        try:
            link.send_bytes(pickle.dumps(answer, pickle.HIGHEST_PROTOCOL))
        except OSError:
            return


def _take(link: Connection, tasks: queue.SimpleQueue[bytes | None]) -> None:
    while True:
        try:
            tasks.put(link.recv_bytes())
        except (EOFError, OSError):
            tasks.put(None)
            return
