"""Replaying a topic on a real Kafka: what the live worker published, byte for byte."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import orjson
import pytest
import structlog
from aiokafka.consumer import fetcher
from computed import tied_events
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from jobs import Job

from config.errors import RocstreamError, SettingsError
from worker.cli.commands import run as rocstream
from worker.events import native
from worker.replay import topic as topic_source
from worker.replay.player import Player
from worker.replay.span import bound, span
from worker.replay.topic import TopicSource
from worker.transport import reader

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
START = 1_764_460_000_000
BOUNDED = """
[event]
time = "time"
max_ahead = "36500d"

[[monitor]]
name = "by-time"
window = { kind = "count", size = 50, slide = 5 }
metrics = ["auc", "h"]
key_ttl = "16s"

[[monitor]]
name = "by-number"
window = { kind = "count", size = 20, slide = 3 }
metrics = ["auc"]
key_limit = 4

[[monitor]]
name = "by-both"
window = { kind = "count", size = 30, slide = 4 }
metrics = ["auc"]
key_ttl = "32s"
key_limit = 6
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
        for number, codec in enumerate(("gzip", "snappy", "lz4", "zstd")):
            part = events[2_000 + 500 * number : 2_500 + 500 * number]
            job.produce(part, **{"compression.type": codec})
        job.produce_in_transaction(events[4_000:4_100], commit=True)
        job.produce_in_transaction(events[:300], commit=False)
        job.produce(events[4_100:])
        # The last offsets hold nothing that was committed.
        job.produce_in_transaction(events[:50], commit=False)
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
    monkeypatch.undo()
    several = tmp_path / "several.jsonl"
    monkeypatch.setattr(topic_source, "CHUNK", 300)
    command = ["replay", "-c", str(job.path), "-o", str(several), "-j"]
    for processes in ("2", "3"):
        bad_too = ["--rejected", str(tmp_path / "bad-too")]
        assert rocstream([*command, processes, *bad_too]) == 0
        assert several.read_bytes().splitlines() == whole
        assert (tmp_path / "bad-too").read_bytes() == (tmp_path / "bad").read_bytes()
    monkeypatch.undo()
    with monkeypatch.context() as patch:
        # As where no C compiler was: the client's own objects in the place of blocks.
        patch.setattr(native, "COMPILED", False)
        assert replayed(job) == whole
        several.unlink()
        assert rocstream([*command, "2"]) == 0
        assert several.read_bytes().splitlines() == whole
    groups = AdminClient({"bootstrap.servers": job.servers}).list_consumer_groups()
    known = {group.group_id for group in groups.result(timeout=10).valid}
    assert f"{job.settings.kafka.group}-replay" not in known
    # Other consumers in the process are as they were.
    assert fetcher.FetchResult.__module__ == fetcher.__name__


def test_keys_that_leave_by_time_and_for_others_leave_in_a_replay_as_they_did(
    new_job: Callable[..., Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = new_job(BOUNDED)
    rng = random.Random(3)  # noqa: S311 - a seeded stream
    records: list[tuple[bytes | None, bytes | None]] = []
    at = START
    for number in range(4_000):
        at += rng.randrange(400)
        # Most events are of few keys, so that some keys are silent for long.
        key = b"key-%d" % min(rng.randrange(30), rng.randrange(30))
        event = {"score": round(rng.random(), 2), "label": rng.randrange(2), "time": at}
        records.append((key, orjson.dumps(event)))
        if number % 400 == 399:
            at += 20_000
            records += [(None, orjson.dumps({"heartbeat": True, "time": at}))] * 5
    with job.worker() as worker:
        job.produce(records)
        again = replayed(job)
        published = job.read(job.settings.topics.updates, len(again))
        worker.kill()
    assert by_partition(again) == by_partition([record.value or b"" for record in published])
    notes = {json.loads(update)["note"] for update in again}
    assert notes == {None, "expired", "key_limit"}
    out = tmp_path / "u.jsonl"
    command = ["replay", "-c", str(job.path), "-o", str(out)]
    assert rocstream(command) == 0
    assert out.read_bytes().splitlines() == again
    for processes in ("2", "3"):
        assert rocstream([*command, "-j", processes]) == 0
        assert out.read_bytes().splitlines() == again
    assert rocstream([*command, "-j", "2", "--report", str(tmp_path / "r.html")]) == 2
    for size in (1, 7):
        monkeypatch.setattr(topic_source, "_RUN", size)
        assert replayed(job) == again, f"cut into runs of {size}"


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
    told = error(capfd)
    assert f"{events} has nothing in that range: 0 events; there are the offsets 20 to " in told
    gone = admin.delete_records([TopicPartition(events, 0, -1)])
    for future in gone.values():
        future.result(timeout=20)
    assert rocstream([*command, "--partition", "0"]) == 0
    assert "none in partition 0, of which retention has removed all before" in error(capfd)
    assert rocstream([*command, "--partition", "9"]) == 2
    assert "has the partitions 0 to 2" in error(capfd)
    assert rocstream([*command, "--topic", "nowhere"]) == 2
    assert "the topic nowhere does not exist" in error(capfd)
    since = bound("-1h", "--from", 1_000)
    assert (since.kind, since.value) == ("time", 0)
    assert rocstream([*command, "--from", "-1h", "--to", "latest"]) == 0
    with pytest.raises(SettingsError):
        TopicSource(job.settings, topic="nowhere").partitions()


def test_what_retention_removes_while_it_is_read_is_told(
    new_job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "FETCH_BYTES", 16_384)
    job = new_job(partitions=1)
    job.produce(tied_events(20_000, keys=3), **{"batch.size": 4096})
    steps = iter(Player([job.settings], TopicSource(job.settings)))
    next(steps)
    admin = AdminClient({"bootstrap.servers": job.servers})
    gone = admin.delete_records([TopicPartition(job.settings.topics.events, 0, 19_990)])
    for future in gone.values():
        future.result(timeout=20)
    with pytest.raises(RocstreamError, match="retention has removed what was to be read next"):
        list(steps)


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


def test_a_topic_that_is_not_there_is_refused_before_anything_is_read(
    lived: tuple[Job, list[bytes]], capfd: pytest.CaptureFixture[str]
) -> None:
    job, _ = lived
    assert rocstream(["replay", "-c", str(job.path), "-o", "topic:no-such"]) == 2
    assert "-o topic:no-such: there is no such topic at" in error(capfd)


@pytest.mark.slow
def test_a_broker_that_goes_away_is_waited_for(
    own_kafka: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    # Little is fetched ahead, so that most of the log is still to come when the broker dies.
    monkeypatch.setattr(reader, "FETCH_BYTES", 16_384)
    job = Job(own_kafka.bootstrap_servers, tmp_path, TWO_MONITORS, 1)
    job.create_topics()
    job.produce(tied_events(20_000, keys=3), **{"batch.size": 4096})
    whole = replayed(job)
    steps = iter(Player([job.settings], TopicSource(job.settings)))
    updates = next(steps).updates[0]
    assert len(updates) < len(whole) / 2
    own_kafka.kill()
    own_kafka.start()
    for step in steps:
        updates += step.updates[0]
    assert [update.value for update in updates] == whole

    monkeypatch.setattr(reader, "TELL_SECONDS", 0.5)
    monkeypatch.setattr(reader, "STALL_SECONDS", 1.5)
    steps = iter(Player([job.settings], TopicSource(job.settings)))
    next(steps)
    own_kafka.kill()
    caplog.clear()
    with (
        structlog.testing.capture_logs() as said,
        pytest.raises(RocstreamError, match="nothing came for 2 s, although more is there"),
    ):
        list(steps)
    assert [one["event"] for one in said] == ["nothing comes from the broker, waiting for it"]
    assert not caplog.records
