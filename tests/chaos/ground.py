"""What every run here stands on: a broker of its own, a job on it, and a folder that goes again."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from checker import Verdict, Window, check
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from jobs import Job
from reading import Reader
from source import publish
from stream import plain
from understanding import Source as Understood

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from crew import Crew
    from kafka_broker import Broker

ROOT = Path(__file__).resolve().parents[2]
WINDOWS = (Window("last-500", 500, 50), Window("last-64", 64, 20))
LEVEL = 100
"""A multiple of each slide: a key with so many events has its last one in an update."""

PATIENCE_SECONDS = 240.0

# So small and so eager that the cleaner is at work all the time.
COMPACTION = {
    "segment.ms": "1000",
    "segment.bytes": str(1 << 20),
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "1000",
    "delete.retention.ms": "1000",
}
CLEANER = {"log.cleaner.backoff.ms": "500"}


class Ground(NamedTuple):
    """A broker (of tests/brokers.py), a job with its topics, and a folder for logs."""

    broker: Any
    job: Job
    folder: Path

    @property
    def servers(self) -> str:
        """The broker's address."""
        return str(self.broker.bootstrap_servers)

    @property
    def changelog(self) -> str:
        """The topic of the job's state."""
        return self.job.settings.changelog

    def configure(self, topic: str, settings: dict[str, str]) -> None:
        """Change settings of a topic, or with "" of the broker (whose id is 1)."""
        kind, name = (ResourceType.TOPIC, topic) if topic else (ResourceType.BROKER, "1")
        entries = [
            ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
            for setting, value in settings.items()
        ]
        resource = ConfigResource(kind, name, incremental_configs=entries)
        admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        for future in admin.incremental_alter_configs([resource]).values():
            future.result(20)


@contextmanager
def ground(
    partitions: int,
    windows: tuple[Window, ...] = WINDOWS,
    *,
    compacting: bool = False,
    commit_interval: str = "20ms",
    broker: Broker | None = None,
) -> Iterator[Ground]:
    """Start a broker, by default one that may be hurt, and make a job on it; both go at the end."""
    monitors = "".join(
        f'[[monitor]]\nname = "{w.name}"\nmetrics = ["auc", "h"]\n'
        f'window = {{ kind = "count", size = {w.size}, slide = {w.slide} }}\n'
        for w in windows
    )
    with (
        tempfile.TemporaryDirectory(prefix="rocstream-chaos-") as folder,
        _running(broker or brokers().find(own=True)) as running,
    ):
        job = Job(running.bootstrap_servers, Path(folder), monitors, partitions, commit_interval)
        job.create_topics()
        made = Ground(running, job, Path(folder))
        if compacting:
            made.configure("", CLEANER)
            made.configure(made.changelog, COMPACTION)
        yield made


def brokers() -> ModuleType:
    """Return tests/brokers.py, which starts them."""
    # By its path: with tests/ on sys.path, its folders would hide the packages of the same names.
    spec = importlib.util.spec_from_file_location("brokers", ROOT / "tests" / "brokers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["brokers"] = module
    spec.loader.exec_module(module)
    return module


def on_java(properties: dict[str, str], **how: Any) -> Broker:
    """Return a broker on Java, not started yet, with properties of its own."""
    module = brokers()
    found: Broker = module.with_properties(properties, tuple(module.free_ports(2)), **how)
    return found


@contextmanager
def _running(broker: Broker) -> Iterator[Broker]:
    try:
        broker.start()
        yield broker
    finally:
        broker.close()


def drain(reader: Reader, count: int, crew: Crew) -> int:
    """Read until there are so many records, or for as long as patience lasts."""
    found, deadline = 0, time.monotonic() + PATIENCE_SECONDS
    while found < count and time.monotonic() < deadline and not crew.sweep():
        found += len(reader.poll())
    return found


def understand_source(made: Ground) -> Understood:
    """Fill each key up so that its last event has an update; return what the source holds."""
    topic = made.job.settings.topics.events
    understood = Understood()
    with Reader(made.servers, topic) as reader:
        understood.add(reader.to_end())
        missing = {key: -len(kept.scores) % LEVEL for key, kept in understood.keys.items()}
        publish(
            made.servers,
            topic,
            (plain(key.encode()) for key, count in missing.items() for _ in range(count)),
        )
        understood.add(reader.to_end())
    return understood


def expected_count(understood: Understood, windows: tuple[Window, ...] = WINDOWS) -> int:
    """Return how many updates the source makes."""
    return sum(len(k.scores) // w.slide for k in understood.keys.values() for w in windows)


def judge(
    made: Ground, understood: Understood, windows: tuple[Window, ...] = WINDOWS, *, h_updates: int
) -> Verdict:
    """Read what was published, from the beginning, and compare."""
    topics = made.job.settings.topics
    with Reader(made.servers, topics.updates) as reader:
        updates = reader.to_end()
    with Reader(made.servers, topics.rejected) as reader:
        rejections = reader.to_end()
    share = min(1.0, h_updates / max(1, len(updates)))
    return check(understood, topics.events, windows, updates, rejections, h_share=share)


def compaction(made: Ground) -> tuple[int, int]:
    """Return how many offsets the changelog has given out, and how many records are left."""
    with Reader(made.servers, made.changelog) as reader:
        left = len(reader.to_end())
        return sum(reader.places.values()), left
