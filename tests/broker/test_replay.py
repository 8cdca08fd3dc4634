"""Replaying a topic on a real Kafka: what the live worker published, byte for byte."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest
from computed import tied_events
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from jobs import Job

from config.errors import SettingsError
from worker.cli.commands import run as rocstream
from worker.replay import topic as topic_source
from worker.replay.player import Player
from worker.replay.span import bound, span
from worker.replay.topic import TopicSource

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from worker.replay.span import Span

pytestmark = pytest.mark.broker

TWO_MONITORS = """
[[monitor]]
name = "last-500"
window = { kind = "count", size = 500, slide = 50 }
metrics = ["auc", "h"]

[[monitor]]
name = "last-20"
window = { kind = "count", size = 20, slide = 3 }
h = { alpha = 1.5, beta = 4 }
"""
BAD: list[tuple[bytes | None, bytes | None]] = [
    (b"k", b"not JSON"),
    (None, b'{"score": 1, "label": 1}'),
    (b"k", b'{"score": [1, 2, "x"], "label": [0, 1, 1]}'),
    (b"k", None),
]


def source_of(update: bytes) -> tuple[int, int, int]:
    source = json.loads(update)["source"]
    return source["partition"], source["offset"], source["index"]


def by_partition(updates: list[bytes]) -> dict[int, list[bytes]]:
    """Updates by the partition of their source, in the order of offsets; ties keep their order."""
    found: defaultdict[int, list[bytes]] = defaultdict(list)
    for update in updates:
        found[source_of(update)[0]].append(update)
    return {number: sorted(inside, key=source_of) for number, inside in found.items()}


def replayed(job: Job, stretch: Span | None = None, *, window: int = 0) -> list[bytes]:
    source = TopicSource(job.settings, stretch, window=window)
    player = Player([job.settings], source)
    return [update.value or b"" for step in player for update in step.updates[0]]


@pytest.fixture(scope="module")
def lived(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Job, list[bytes]]:
    """A job that read a topic of good and bad records, and what it published."""
    job = Job(kafka.bootstrap_servers, tmp_path_factory.mktemp("lived"), TWO_MONITORS, 3)
    job.create_topics()
    events = tied_events(6_000, keys=8)
    with job.worker() as worker:
        job.produce(events[:2_000])
        job.produce(BAD)
        job.produce(events[2_000:])
        count = len(replayed(job))
        published = job.read(job.settings.topics.updates, count, seconds=60)
        worker.kill()
    return job, [record.value or b"" for record in published]


def test_a_replay_gives_exactly_the_bytes_that_the_worker_published(
    lived: tuple[Job, list[bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, published = lived
    out = tmp_path / "u.jsonl"
    code = rocstream(
        ["replay", "-c", str(job.path), "-o", str(out), "--rejected", str(tmp_path / "bad")]
    )
    assert code == 0
    whole = out.read_bytes().splitlines()
    assert len(whole) > 2_000
    assert by_partition(whole) == by_partition(published)
    # Per partition also in the very order of the log, monitors as the settings have them.
    assert [source_of(update) for update in whole] == sorted(map(source_of, whole))
    bad = [json.loads(line) for line in (tmp_path / "bad").read_bytes().splitlines()]
    assert sorted(one["code"] for one in bad) == ["key_missing", "not_json", "score_not_number"]

    for size in (1, 7):
        monkeypatch.setattr(topic_source, "_RUN", size)
        assert replayed(job) == whole, f"cut into runs of {size}"
    several = tmp_path / "several.jsonl"
    assert rocstream(["replay", "-c", str(job.path), "-o", str(several), "-j", "2"]) == 0
    assert several.read_bytes().splitlines() == whole
    groups = AdminClient({"bootstrap.servers": job.servers}).list_consumer_groups()
    known = {group.group_id for group in groups.result(timeout=10).valid}
    assert f"{job.settings.kafka.group}-replay" not in known


def test_a_start_in_the_middle_warms_the_windows_up_and_has_the_same_readings(
    lived: tuple[Job, list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    job, _ = lived
    whole = [json.loads(update) for update in replayed(job)]
    stretch = span("1500", "1900", 0, cold=False)
    wanted = [one for one in whole if 1_500 <= one["source"]["offset"] < 1_900]
    assert wanted
    # A window too large for the log: everything is read, so that slides are counted.
    assert [json.loads(one) for one in replayed(job, stretch, window=10**6)] == wanted

    monkeypatch.setattr(topic_source, "WARM_RECORDS", 10)
    source = TopicSource(job.settings, stretch, window=60)
    player = Player([job.settings], source)
    warm = [json.loads(update.value or b"") for step in player for update in step.updates[0]]
    readings = {place(one): one for one in whole if one["monitor"] == "last-20"}
    shared = [one for one in warm if place(one) in readings]
    assert shared
    for one in warm:
        assert one["seq"] is None
        assert 1_500 <= one["source"]["offset"] < 1_900
    for one in shared:
        assert one == {**readings[place(one)], "seq": None}
    assert any("windows were warmed up from offset" in note for note in source.notes)

    cold = [json.loads(one) for one in replayed(job, stretch._replace(cold=True))]
    assert cold[0]["window"]["events"] == 3
    assert not cold[0]["window"]["full"]


def place(update: dict[str, Any]) -> tuple[Any, ...]:
    source = update["source"]
    return update["monitor"], update["key"], source["partition"], source["offset"], source["index"]


def test_ranges_partitions_and_topics_that_do_not_fit_are_told(
    new_job: Callable[..., Job], capfd: pytest.CaptureFixture[str]
) -> None:
    job = new_job()
    job.produce(tied_events(500, keys=4))
    admin = AdminClient({"bootstrap.servers": job.servers})
    events = job.settings.topics.events
    gone = admin.delete_records([TopicPartition(events, 0, 20)])
    for future in gone.values():
        future.result(timeout=20)

    command = ["replay", "-c", str(job.path)]
    assert rocstream([*command, "--from", "5", "--partition", "0"]) == 2
    assert "holds nothing before offset 20, the first that retention has left" in error(capfd)
    assert rocstream([*command, "--partition", "0"]) == 0
    assert "read from offset 20 with empty windows, the first that retention has left" in error(
        capfd
    )
    assert rocstream([*command, "--from", "2099-01-01T00:00Z"]) == 0
    assert f"{events} has nothing in that range: 0 events" in error(capfd)
    assert rocstream([*command, "--partition", "9"]) == 2
    assert "has the partitions 0 to 2" in error(capfd)
    assert rocstream([*command, "--topic", "nowhere"]) == 2
    assert "the topic nowhere does not exist" in error(capfd)
    since = bound("-1h", "--from", 1_000)
    assert (since.kind, since.value) == ("time", 0)
    assert rocstream([*command, "--from", "-1h", "--to", "latest"]) == 0
    with pytest.raises(SettingsError):
        TopicSource(job.settings, topic="nowhere").partitions()


def error(capfd: pytest.CaptureFixture[str]) -> str:
    return capfd.readouterr().err


def test_a_replay_into_a_topic_is_keyed_and_placed_as_the_live_updates_are(
    lived: tuple[Job, list[bytes]], new_topic: Callable[..., str]
) -> None:
    job, published = lived
    name = new_topic("replayed", partitions=job.settings.topics.partitions)
    assert rocstream(["replay", "-c", str(job.path), "-o", f"topic:{name}"]) == 0
    again = job.read(name, len(published))
    live = job.read(job.settings.topics.updates, len(published))
    assert {(one.partition, one.key, one.value) for one in again} == {
        (one.partition, one.key, one.value) for one in live
    }


@pytest.mark.slow
def test_a_broker_that_goes_away_is_waited_for(own_kafka: Any, tmp_path: Path) -> None:
    # Little is fetched ahead, so that most of the log is still to come when the broker dies.
    client = (
        '[kafka.client]\n"queued.max.messages.kbytes" = 32\n"max.partition.fetch.bytes" = 16384'
    )
    job = Job(own_kafka.bootstrap_servers, tmp_path, client + TWO_MONITORS, 1)
    job.create_topics()
    job.produce(tied_events(20_000, keys=3))
    whole = replayed(job)
    player = Player([job.settings], TopicSource(job.settings))
    steps = iter(player)
    updates = next(steps).updates[0]
    assert len(updates) < len(whole) / 2
    own_kafka.kill()
    own_kafka.start()
    for step in steps:
        updates += step.updates[0]
    assert [update.value for update in updates] == whole
