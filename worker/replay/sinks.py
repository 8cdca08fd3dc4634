"""Where a replay's updates go: JSON lines, standard output, Parquet, or a topic."""

from __future__ import annotations

import base64
import contextlib
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import orjson

from config import METRICS
from config.errors import SettingsError
from worker.admin import WAIT_SECONDS, Cluster
from worker.publisher import Publisher
from worker.replay.files import needed
from worker.replay.outputs import File

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from config import Settings
    from worker.events import Rejection
    from worker.messages import Message
    from worker.replay.records import Log, Source

STDOUT: Final = "-"
TOPIC: Final = "topic:"
_ROWS: Final = 16_384
_WINDOW: Final = ("kind", "size", "slide", "events", "full", "start", "end")


class Sink(Protocol):
    """Takes updates; `close` says whether all of them came."""

    def write(self, updates: Sequence[Message]) -> None:
        """Take updates in their order."""

    def close(self, *, whole: bool) -> str:
        """Finish; return where the updates are now."""


class NoSink:
    """Keeps nothing."""

    def write(self, updates: Sequence[Message]) -> None:
        """Take updates."""

    def close(self, *, whole: bool) -> str:  # noqa: ARG002 - nothing to finish
        """Return nothing: they are nowhere."""
        return ""


class OutputSink:
    """Writes each update as a line to standard output, byte for byte as it would be published."""

    def __init__(self) -> None:
        self._out = sys.stdout.buffer

    def write(self, updates: Sequence[Message]) -> None:
        """Take updates in their order."""
        rest = memoryview(lines_of(updates))
        while rest:
            # Standard output without a buffer (PYTHONUNBUFFERED) may take a part only.
            rest = rest[self._out.write(rest) :]
        # Who reads along, as from `tail -f`, sees each as soon as it is known.
        self._out.flush()

    def close(self, *, whole: bool) -> str:  # noqa: ARG002 - a pipe has no name to mark
        """Flush."""
        self._out.flush()
        return "standard output"


class LinesSink:
    """Writes each update as a line of a file; `.gz` packs it."""

    def __init__(self, path: Path) -> None:
        self._file = File(path, "-o")

    def write(self, updates: Sequence[Message]) -> None:
        """Take updates in their order."""
        self._file.write(lines_of(updates))

    def close(self, *, whole: bool) -> str:
        """Give the file its name."""
        return self._file.close(whole=whole)


class ParquetSink:
    """Writes updates as a table: a column for each field, those of `window` and `source` flat.

    Parameters
    ----------
    path
        Of the file.
    columns
        Names and types, given the module that has the types.
    """

    def __init__(self, path: Path, columns: Callable[[Any], list[tuple[str, Any]]]) -> None:
        pa = needed("pyarrow", f"to write {path}")
        self._pa, self._rows = pa, list[dict[str, Any]]()
        self._schema = pa.schema(columns(pa))
        self._file = File(path, "-o")
        self._writer = needed("pyarrow.parquet", "").ParquetWriter(
            self._file.stream, self._schema, compression="zstd"
        )

    def write(self, updates: Sequence[Message]) -> None:
        """Take updates in their order."""
        self._rows += [flat(orjson.loads(update.value or b"")) for update in updates]
        if len(self._rows) >= _ROWS:
            self._flush()

    def close(self, *, whole: bool) -> str:
        """Write the footer and give the file its name; a partial one can be read as well."""
        try:
            self._flush()
            self._writer.close()
        except OSError:
            self._file.drop()
            raise
        return self._file.close(whole=whole)

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(self._pa.Table.from_pylist(self._rows, schema=self._schema))
            self._rows = []


class TopicSink:
    """Publishes updates to a topic, keyed as the live ones are.

    Raises
    ------
    SettingsError
        When there is no such topic.
    RocstreamError
        When no broker answers.
    """

    def __init__(self, settings: Settings, topic: str) -> None:
        cluster = Cluster(settings)
        cluster.wait(WAIT_SECONDS)
        if topic not in cluster.partitions():
            raise SettingsError(
                f"-o {TOPIC}{topic}: there is no such topic at {cluster.servers}: make it with "
                "kafka-topics.sh, with as many partitions as you like, or name another"
            )
        topics = settings.topics.model_copy(update={"events": topic})
        self._topic = topic
        self._publisher = Publisher(settings.model_copy(update={"topics": topics}))

    def write(self, updates: Sequence[Message]) -> None:
        """Take updates in their order."""
        for update in updates:
            self._publisher.send(update.key or b"", update.value or b"")
        self._publisher.poll()

    def close(self, *, whole: bool) -> str:  # noqa: ARG002 - what is published is published
        """Wait until the broker has all of them."""
        self._publisher.flush()
        return f"the topic {self._topic}"


def sink(
    out: str | None,
    settings: Settings,
    *,
    force: bool = False,
    columns: Callable[[Any], list[tuple[str, Any]]] | None = None,
) -> Sink:
    """Return the sink that `-o` names: a file, `-`, `topic:NAME`; None keeps nothing.

    Parameters
    ----------
    out, settings
        The option, and the settings whose updates come.
    force
        Whether a topic of the live job may be written to.
    columns
        Of Parquet, where other things than updates come.

    Raises
    ------
    SettingsError
        When it cannot be written, or is the topic of the live updates and not forced.
    """
    if out is None:
        return NoSink()
    if out == STDOUT:
        return OutputSink()
    if out.startswith(TOPIC):
        topic = out.removeprefix(TOPIC)
        live = {settings.topics.updates, settings.topics.events, settings.topics.rejected}
        if topic in live and not force:
            raise SettingsError(
                f"-o {out}: the live job has this topic, and its readers would take a replay for "
                "news: name another, or insist with --force"
            )
        return TopicSink(settings, topic)
    path = Path(out)
    if path.suffix.lower() in {".parquet", ".pq"}:
        return ParquetSink(path, columns or partial(_columns, settings))
    return LinesSink(path)


def lines_of(updates: Sequence[Message]) -> bytes:
    """Return updates as lines, byte for byte."""
    lines = [update.value or b"" for update in updates]
    return b"\n".join([*lines, b""])


def flat(update: dict[str, Any]) -> dict[str, Any]:
    """Return an update without its inner objects: `window_size`, `source_offset` and so on."""
    row = {name: value for name, value in update.items() if not isinstance(value, dict)}
    for name, value in update.items():
        if isinstance(value, dict):
            row.update({f"{name}_{inner}": one for inner, one in value.items()})
    return row


def _columns(settings: Settings, pa: Any) -> list[tuple[str, Any]]:
    metrics = dict.fromkeys(
        f"{name}_{at}" if at is not None else name
        for monitor in settings.monitors
        for name in monitor.metrics
        for at in (monitor.thresholds if METRICS[name].at_thresholds else (None,))
    )
    text, whole, real = pa.string(), pa.int64(), pa.float64()
    window = {"kind": text, "full": pa.bool_(), "events": whole}
    return [
        ("version", whole),
        ("monitor", text),
        ("key", text),
        ("seq", whole),
        ("time", whole),
        *((f"window_{name}", window.get(name, whole)) for name in _WINDOW),
        ("positives", real),
        ("negatives", real),
        *((name, real) for name in metrics),
        ("h_alpha", real),
        ("h_beta", real),
        ("reason", text),
        ("note", text),
        ("source_topic", text),
        ("source_partition", whole),
        ("source_offset", whole),
        ("source_index", whole),
    ]


class Rejected:
    """Writes refused records as JSON lines: where, why, and the record itself.

    Parameters
    ----------
    path
        Of the file; None keeps none.
    """

    def __init__(self, path: Path | None) -> None:
        self.first = ""
        self._file = None if path is None else File(path, "--rejected")

    def write(self, log: Log, source: Source, rejections: Iterable[Rejection]) -> None:
        """Take the refused records of a log."""
        for one in rejections:
            where = source.where(log, one.offset)
            if not self.first:
                self.first = f"{where}: {one.sentence}"
            if self._file is None:
                continue
            row = {
                "where": where,
                "topic": log.topic,
                "partition": log.partition,
                "offset": one.offset,
                "code": one.code,
                "reason": one.sentence,
                "indexes": one.indexes,
                "key": _text(one.key),
                "value": _text(one.value),
            }
            self._file.write(orjson.dumps(row) + b"\n")

    def close(self, *, whole: bool) -> str:
        """Finish; return where they are."""
        return "" if self._file is None else self._file.close(whole=whole)


def _text(value: bytes | None) -> str | dict[str, str] | None:
    """Return bytes as text where they are; else in base64, marked as such."""
    if value is None:
        return None
    with contextlib.suppress(UnicodeDecodeError):
        return value.decode()
    return {"base64": base64.b64encode(value).decode()}
