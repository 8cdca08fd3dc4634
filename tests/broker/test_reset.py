"""`rocstream reset` on a real Kafka: moves the job, says what it means, and survives a crash."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from computed import SIZE, assert_exactly, expected_updates, reference_h, tied_events
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from config.errors import RocstreamError
from worker.pages import CURSOR_KEY, PAGE_EVENTS, key_prefix, page_key
from worker.reset import Kind, Reset, Target
from worker.transport.layout import survey

if TYPE_CHECKING:
    from collections.abc import Callable

    from jobs import Job

pytestmark = pytest.mark.broker

ROOT = Path(__file__).parents[2]
GOOD = orjson.dumps({"score": 0.5, "label": 1})

# Kills itself in the middle of a reset: in the n-th transaction, before or behind its commit.
CRASH = """
import os, signal, sys
import worker.reset
from worker.cli import main
from worker.transport.producer import TaskProducer

left, when = int(sys.argv[1]), sys.argv[2]
worker.reset.transactions.__defaults__ = (20,)
produce, commit = TaskProducer._produce, TaskProducer.commit

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def produce_and_die(self, producer, transaction):
    global left
    left -= 1
    produce(self, producer, transaction)
    if left == 0 and when == "open":
        producer.flush(10)
        die()

def commit_and_die(self, transaction):
    commit(self, transaction)
    if left == 0:
        die()

TaskProducer._produce, TaskProducer.commit = produce_and_die, commit_and_die
main(["reset", "--yes", *sys.argv[3:]])
"""


def reset(job: Job, *arguments: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
    """Run `rocstream reset` on a job; without a terminal."""
    done = subprocess.run(
        [sys.executable, "-m", "worker", "reset", "-c", str(job.path), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=ROOT,
    )
    assert code is None or done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def crash(job: Job, transaction: int, when: str, target: str) -> None:
    """Run a reset that kills itself in its n-th transaction."""
    arguments = [str(transaction), when, "-c", str(job.path), target]
    done = subprocess.run(
        [sys.executable, "-c", CRASH, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=ROOT,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


def work(job: Job, updates: int, events: int) -> list[dict[str, Any]]:
    """Let a worker run until so many updates are out and events counted; return all updates."""
    with job.worker() as worker:
        worker.wait_until_ready()
        found = job.updates(updates)
        worker.wait_for(lambda: job.state()["events"] == events)
        worker.signal(signal.SIGTERM)
        assert worker.exit_code() == 0, worker.text()[-3000:]
    assert len(found) == updates
    return found


def produce_at(job: Job, when: datetime, count: int) -> None:
    """Publish good events of one key, all with the same timestamp."""
    producer = Producer({"bootstrap.servers": job.servers})
    for _ in range(count):
        stamp = round(when.timestamp() * 1000)
        producer.produce(job.settings.topics.events, GOOD, b"k", timestamp=stamp)
    assert producer.flush(30) == 0


def pages(job: Job) -> set[tuple[int, bytes]]:
    """Return the live pages in the changelog."""
    live: set[tuple[int, bytes]] = set()
    for record in job.read(job.settings.changelog, 0):
        assert record.key is not None
        place = (record.partition, record.key)
        if record.value is None:
            live.discard(place)
        elif record.key != CURSOR_KEY:
            live.add(place)
    return live


def committed(job: Job, partitions: int) -> list[tuple[int, str | None]]:
    """Return what the job's group has committed: offset and metadata."""
    consumer = Consumer({"bootstrap.servers": job.servers, "group.id": job.settings.kafka.group})
    topic = job.settings.topics.events
    found = consumer.committed([TopicPartition(topic, p) for p in range(partitions)], 10)
    consumer.close()
    return [(place.offset, place.metadata) for place in found]


def rows(told: str) -> list[list[str]]:
    """Return the table's rows as words."""
    return [
        line.split() for line in told.splitlines() if line.split()[:1] and line.split()[0].isdigit()
    ]


def pages_of(events: list[tuple[bytes, bytes]]) -> set[tuple[int, bytes]]:
    """Return the pages that the windows of these events consist of, in one partition."""
    return {
        (0, page_key(key_prefix("last-500", key.decode()), page))
        for key, seen in Counter(key for key, _ in events).items()
        for page in range(max(0, seen - SIZE) // PAGE_EVENTS, -(-seen // PAGE_EVENTS))
    }


def packed(update: dict[str, Any]) -> bytes:
    return orjson.dumps(update, option=orjson.OPT_SORT_KEYS)


def test_a_job_sent_to_the_earliest_publishes_the_same_updates_again(
    new_job: Callable[..., Job],
) -> None:
    job = new_job()
    events = tied_events(9_000, keys=12, seed=21)
    job.produce(events)
    expected = expected_updates(events, reference_h)
    first = work(job, len(expected), 9_000)
    assert_exactly(first, expected)
    ends = [place[0] for place in committed(job, 3)]
    held = pages(job)
    assert held

    look = reset(job, "--to-earliest", "--dry-run")
    assert rows(look.stdout) == [
        [str(p), str(ends[p]), "0", f"{ends[p]:,}", "again", str(sum(q == p for q, _ in held))]
        for p in range(3)
    ]
    assert "Nothing was changed: --dry-run." in look.stdout
    assert not look.stderr
    assert pages(job) == held
    assert [place[0] for place in committed(job, 3)] == ends

    done = reset(job, "--to-earliest", "--yes")
    assert rows(done.stdout) == rows(look.stdout)
    assert f"is moved: 3 partitions, {len(held)} pages of state dropped" in done.stdout
    assert not done.stderr
    assert not pages(job)
    assert committed(job, 3) == [(0, "rocstream")] * 3
    assert not job.state()

    again = work(job, 2 * len(expected), 9_000)
    assert sorted(map(packed, again)) == sorted(map(packed, [*first, *first]))
    assert all(update["note"] is None for update in again)


@pytest.mark.slow
def test_each_place_to_move_to(new_job: Callable[..., Job]) -> None:
    job = new_job(partitions=1)
    began = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=2)
    for minute in range(4):
        produce_at(job, began + timedelta(minutes=minute), 250)
    work(job, 20, 1_000)

    def sent(*arguments: str) -> list[str]:
        (row,) = rows(reset(job, *arguments, "--yes").stdout)
        assert committed(job, 1) == [(int(row[2]), "rocstream")]
        return row[1:-1]

    assert sent("--to-offset", "700") == ["1000", "700", "300", "again"]
    updates = work(job, 26, 300)[20:]
    assert [update["seq"] for update in updates] == [1, 2, 3, 4, 5, 6]
    assert updates[0]["source"]["offset"] == 749
    assert not any(update["note"] for update in updates)

    second = began + timedelta(minutes=1)
    assert sent("--to-datetime", second.isoformat()) == ["1000", "250", "750", "again"]
    assert work(job, 41, 750)[26]["source"]["offset"] == 299
    elsewhere = second.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert sent("--to-datetime", elsewhere.isoformat()) == ["1000", "250", "750", "again"]
    # A moment later there is none before the next 250.
    moment = second + timedelta(microseconds=1)
    assert sent("--to-datetime", moment.isoformat()) == ["250", "500", "250", "skipped"]
    assert sent("--to-datetime", "1999-01-01T00:00Z") == ["500", "0", "500", "again"]
    late = reset(job, "--to-datetime", "2099-01-01T00:00Z", "--yes").stdout
    assert rows(late)[0][1:5] == ["0", "1000", "1,000", "skipped"]
    assert "Partition 0: no record is that late, so it goes to the end." in late

    assert sent("--to-offset", "1000") == ["1000", "1000", "0"]
    assert sent("--to-earliest") == ["1000", "0", "1,000", "again"]
    assert sent("--to-latest") == ["0", "1000", "1,000", "skipped"]
    job.produce([(b"k", GOOD)] * 50)
    update = work(job, 42, 50)[-1]
    assert (update["seq"], update["source"]["offset"]) == (1, 1_049)
    assert (update["window"]["events"], update["note"]) == (50, None)


def test_an_offset_outside_the_log_is_refused_with_its_numbers(
    new_job: Callable[..., Job],
) -> None:
    job = new_job(partitions=1)
    job.produce([(b"k", GOOD)] * 1_000)
    work(job, 20, 1_000)
    admin = AdminClient({"bootstrap.servers": job.servers})
    eaten = TopicPartition(job.settings.topics.events, 0, 300)
    admin.delete_records([eaten])[eaten].result(20)
    held = pages(job)
    for offset in ("-1", "299", "1001"):
        refused = reset(job, "--to-offset", offset, "--yes", code=2)
        assert f"--to-offset {offset} lies outside the log" in refused.stderr
        assert "partition 0 holds 300 to 1000" in refused.stderr
        assert not refused.stdout
    assert pages(job) == held
    assert committed(job, 1) == [(1_000, "rocstream")]


def test_it_is_refused_while_a_worker_runs(new_job: Callable[..., Job]) -> None:
    job = new_job(partitions=2)
    events = tied_events(4_000, keys=6, seed=5)
    expected = expected_updates(events, reference_h)
    job.produce(events[:2_000])
    with job.worker() as worker:
        worker.wait_until_ready()
        refused = reset(job, "--to-earliest", "--yes", code=1)
        assert f"a worker runs in the group {job.settings.kafka.group}" in refused.stderr
        assert f"({job.settings.kafka.client_id} at 127.0.0.1)" in refused.stderr
        assert "stop them first" in refused.stderr
        assert refused.stderr.count("\n") == 1
        look = reset(job, "--to-earliest", "--dry-run")
        assert "a worker runs" in look.stderr
        job.produce(events[2_000:])
        # The worker is not hurt by it.
        assert_exactly(job.updates(len(expected)), expected)
        assert worker.text().count('"tasks opened"') == 1


@pytest.mark.slow
def test_a_frozen_worker_that_wakes_goes_on_from_where_the_job_was_sent(
    new_job: Callable[..., Job],
) -> None:
    job = new_job(partitions=2)
    events = tied_events(4_000, keys=6, seed=41)
    expected = expected_updates(events, reference_h)
    job.produce(events)
    with job.worker() as zombie:
        zombie.wait_until_ready()
        first = job.updates(len(expected))
        zombie.wait_for(lambda: job.state()["events"] == len(events))
        zombie.signal(signal.SIGSTOP)
        # As long as its session lasts it counts as running.
        deadline = time.monotonic() + 60
        while reset(job, "--to-earliest", "--yes", code=None).returncode == 1:
            assert time.monotonic() < deadline
        assert not pages(job)
        zombie.signal(signal.SIGCONT)
        again = job.updates(2 * len(expected), seconds=90)
        assert sorted(map(packed, again)) == sorted(map(packed, [*first, *first]))
        assert zombie.process.poll() is None, zombie.text()[-3000:]


@pytest.mark.slow
def test_a_worker_that_starts_in_the_middle_doubles_nothing(new_job: Callable[..., Job]) -> None:
    job = new_job(partitions=2)
    events = tied_events(6_000, keys=8, seed=43)
    old = expected_updates(events[:4_000], reference_h)
    job.produce(events[:4_000])
    work(job, len(old), 4_000)
    layout = survey(job.settings, Event())
    assert layout is not None
    moving = Reset(job.settings, layout)
    steps = moving.apply(moving.moves(Target(Kind.EARLIEST)))
    assert next(steps).partition == 0
    with job.worker() as worker:
        worker.wait_until_ready()
        assert next(steps).partition == 1
        with pytest.raises(RocstreamError, match="the job is moved, but not the offsets"):
            next(steps)
        job.produce(events[4_000:])
        whole = expected_updates(events, reference_h)
        updates = job.updates(len(old) + len(whole), seconds=90)
        assert len(updates) == len(old) + len(whole)
        out = Counter((update["key"], update["seq"]) for update in updates)
        assert out == Counter([*whole, *old])
        assert worker.process.poll() is None, worker.text()[-3000:]


def test_a_state_that_other_settings_made_useless_is_dropped(
    new_job: Callable[..., Job],
) -> None:
    job = new_job(partitions=1)
    job.produce([(b"k", orjson.dumps({"score": 0.5, "label": 1, "other": 0.25}))] * 100)
    work(job, 2, 100)
    job.path.write_text(job.path.read_text() + '\n[event]\nscore = "other"\n')
    with job.worker() as worker:
        assert worker.exit_code() == 3
        assert "`rocstream reset`" in worker.text()
    reset(job, "--to-earliest", "--yes")
    assert {update["positives"] for update in work(job, 4, 100)} == {50, 100}


def test_a_group_that_was_moved_by_hand_is_moved_for_good(new_job: Callable[..., Job]) -> None:
    job = new_job(partitions=1)
    job.produce([(b"k", GOOD)] * 200)
    work(job, 4, 200)
    job.set_group_offset(0, 100)
    with job.worker() as worker:
        assert worker.exit_code() == 3
        assert "was set to 100 by hand" in worker.text()
    reset(job, "--to-offset", "100", "--yes")
    assert [update["source"]["offset"] for update in work(job, 6, 100)[4:]] == [149, 199]


@pytest.mark.parametrize(
    ("transaction", "when", "moved"),
    [(1, "open", False), (2, "open", True), (4, "committed", True)],
)
def test_a_crash_in_the_middle_leaves_the_old_windows_or_empty_ones(
    new_job: Callable[..., Job], transaction: int, when: str, *, moved: bool
) -> None:
    job = new_job(partitions=1)
    before, after = tied_events(4_000, keys=12, seed=31), tied_events(2_000, keys=15, seed=32)
    job.produce(before)
    out = len(expected_updates(before, reference_h))
    work(job, out, len(before))
    held = pages(job)
    crash(job, transaction, when, "--to-latest")
    job.produce(after)
    if not moved:
        whole = expected_updates([*before, *after], reference_h)
        assert_exactly(work(job, len(whole), 6_000), whole)
        return
    left = pages(job)
    assert left < held
    assert len(held) - len(left) == min(len(held), 20 * (transaction - (when == "open")))
    expected = expected_updates(after, reference_h)
    assert_exactly(work(job, out + len(expected), len(after))[out:], expected)
    assert pages(job) == pages_of(after)


def test_a_reset_that_crashed_is_finished_by_running_it_again(
    new_job: Callable[..., Job],
) -> None:
    job = new_job(partitions=2)
    events = tied_events(4_000, keys=12, seed=33)
    expected = expected_updates(events, reference_h)
    job.produce(events)
    first = work(job, len(expected), 4_000)
    crash(job, 2, "committed", "--to-earliest")
    assert pages(job)
    reset(job, "--to-earliest", "--yes")
    assert not pages(job)
    assert committed(job, 2) == [(0, "rocstream")] * 2
    again = work(job, 2 * len(expected), 4_000)
    assert sorted(map(packed, again)) == sorted(map(packed, [*first, *first]))


def test_on_a_terminal_it_asks_and_no_is_the_answer_unless_one_says_yes(
    new_job: Callable[..., Job],
) -> None:
    job = new_job(partitions=1)
    job.produce([(b"k", GOOD)] * 100)
    work(job, 2, 100)
    assert len(pages(job)) == 2
    for answer, code, left in ((b"\n", 1, 2), (b"n\n", 1, 2), (b"y\n", 0, 0)):
        ours, theirs = pty.openpty()
        os.write(ours, answer)
        done = subprocess.run(
            [sys.executable, "-m", "worker", "reset", "-c", str(job.path), "--to-latest"],
            stdin=theirs,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            cwd=ROOT,
        )
        os.close(ours)
        os.close(theirs)
        assert done.returncode == code, done.stderr
        assert f"Drop 2 pages of state and move the job {job.settings.kafka.group}?" in done.stderr
        assert ("Nothing was changed." in done.stderr) == bool(code)
        assert len(pages(job)) == left
