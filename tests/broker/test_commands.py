"""The commands against a real Kafka: topics, checks, sending, following, and the demo."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hmeasure
import numpy as np
import orjson
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions
from jobs import Job, free_port
from sklearn.metrics import roc_auc_score

from worker import demo as played

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.broker

HERE = Path(__file__).parents[2]
SAMPLE = HERE / "worker" / "demo" / "sample.jsonl.gz"


def rocstream(
    *arguments: object, stdin: bytes = b"", seconds: float = 60
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "worker", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        check=False,
        timeout=seconds,
        cwd=HERE,
    )
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )


def without_reader(*arguments: object) -> tuple[int, str]:
    """Run with a standard output that nobody reads; return the exit code and the errors."""
    read, write = os.pipe()
    os.close(read)
    try:
        command = [sys.executable, "-m", "worker", *map(str, arguments)]
        done = subprocess.run(
            command, stdout=write, stderr=subprocess.PIPE, check=False, timeout=60, cwd=HERE
        )
    finally:
        os.close(write)
    return done.returncode, done.stderr.decode()


@contextmanager
def running(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "worker", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=HERE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def bare_job(kafka: Any, tmp_path: Path) -> Job:
    """A job whose topics are still to be made."""
    monitor = '[[monitor]]\nname = "last-500"\nwindow = {kind = "count", size = 500, slide = 50}\n'
    return Job(kafka.bootstrap_servers, tmp_path, monitor, 3)


@pytest.fixture
def away(tmp_path: Path) -> Job:
    """A job whose broker is not there."""
    monitor = '[[monitor]]\nname = "last-500"\nwindow = {kind = "count", size = 500, slide = 50}\n'
    return Job(f"127.0.0.1:{free_port()}", tmp_path, monitor, 3)


def grow(job: Job, topic: str, partitions: int) -> None:
    client = AdminClient({"bootstrap.servers": job.servers})
    client.create_partitions([NewPartitions(topic, partitions)])[topic].result(20)
    deadline = time.monotonic() + 20
    while len(client.list_topics(topic, timeout=10).topics[topic].partitions) < partitions:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_topics_create_makes_what_check_then_finds(bare_job: Job) -> None:
    before = rocstream("check", "-c", bare_job.path)
    assert before.returncode == 1
    assert before.stdout.count("does not exist: make it with `rocstream topics create") == 4

    dry = rocstream("topics", "create", "-c", bare_job.path, "--dry-run")
    assert dry.returncode == 0
    assert dry.stdout.count("to make") == 4
    assert rocstream("check", "-c", bare_job.path).returncode == 1

    made = rocstream("topics", "create", "-c", bare_job.path)
    assert made.returncode == 0, made.stderr
    assert "cleanup.policy = compact" in made.stdout
    after = rocstream("check", "-c", bare_job.path)
    assert after.returncode == 0, after.stdout
    assert "3 partitions" in after.stdout

    for closed in (["check"], ["topics", "create", "--dry-run"], ["reset", "--to-earliest"]):
        more = ["--dry-run"] if closed[0] == "reset" else []
        assert without_reader(*closed, *more, "-c", bare_job.path) == (0, "")

    again = rocstream("topics", "create", "-c", bare_job.path)
    assert again.returncode == 0
    assert again.stdout.count("there") == 4
    assert "made" not in again.stdout


def test_the_changelog_is_made_with_as_many_partitions_as_the_events_have(
    bare_job: Job, new_topic: Callable[..., str]
) -> None:
    events = new_topic("events", partitions=5)
    bare_job.path.write_text(
        bare_job.path.read_text().replace(bare_job.settings.topics.events, events)
    )
    assert rocstream("topics", "create", "-c", bare_job.path).returncode == 0
    checked = rocstream("check", "-c", bare_job.path)
    assert checked.returncode == 0, checked.stdout
    assert checked.stdout.count("5 partitions") == 2


def test_check_names_partition_counts_that_differ(bare_job: Job) -> None:
    bare_job.create_topics()
    grow(bare_job, bare_job.settings.topics.events, 4)
    for command in (("check",), ("topics", "create")):
        found = rocstream(*command, "-c", bare_job.path)
        assert found.returncode == 1
        told = found.stdout + found.stderr
        assert "has 3 partitions and the events topic 4: they must be equal" in told


def test_check_names_policies_that_lose_data(bare_job: Job, new_topic: Callable[..., str]) -> None:
    events = new_topic("events", partitions=3, cleanup_policy="compact")
    bare_job.path.write_text(
        bare_job.path.read_text().replace(bare_job.settings.topics.events, events)
    )
    rocstream("topics", "create", "-c", bare_job.path)
    found = rocstream("check", "-c", bare_job.path)
    assert found.returncode == 1
    loss = f"{events} (topics.events) has cleanup.policy = compact and loses data"
    assert found.stdout.count(loss) == 1


def test_check_names_a_key_in_two_partitions_and_what_would_be_rejected(bare_job: Job) -> None:
    bare_job.create_topics()
    producer = Producer({"bootstrap.servers": bare_job.servers})
    for partition, value in ((0, b'{"score": 1, "label": 1}'), (2, b'{"score": 2, "label": 0}')):
        for key in (b"astray", b"home-%d" % partition):
            producer.produce(bare_job.settings.topics.events, value, key, partition=partition)
    producer.produce(bare_job.settings.topics.events, b'{"label": 1}', b"home-0", partition=0)
    assert producer.flush(20) == 0
    found = rocstream("check", "-c", bare_job.path)
    assert found.returncode == 1
    assert "1 of 3 sampled keys stands in several partitions" in found.stdout
    assert "'astray' in 0 and 2" in found.stdout
    assert "1 of 5 sampled records would go to" in found.stdout


def test_check_says_when_no_sampled_event_has_a_label(bare_job: Job) -> None:
    bare_job.create_topics()
    producer = Producer({"bootstrap.servers": bare_job.servers})
    for _ in range(3):
        producer.produce(bare_job.settings.topics.events, b'{"score": 1, "outcome": 1}', b"key")
    assert producer.flush(20) == 0
    found = rocstream("check", "-c", bare_job.path)
    assert found.returncode == 0, found.stdout
    assert (
        "no event in 3 sampled records counts: 3 events would be skipped, having no label where "
        'event.label = "label" says' in found.stdout
    )


def test_check_says_that_the_settings_are_wrong_with_exit_2(bare_job: Job) -> None:
    bare_job.path.write_text(bare_job.path.read_text().replace("slide = 50", "slide = 501"))
    found = rocstream("check", "-c", bare_job.path)
    assert found.returncode == 2
    assert "slide" in found.stderr


def test_send_publishes_files_and_standard_input_in_order(bare_job: Job, tmp_path: Path) -> None:
    bare_job.create_topics()
    topic = bare_job.settings.topics.events
    rows = tmp_path / "rows.csv"
    rows.write_text("key,score,label\n007,0.5,1\n007,0.25,0\n")
    sent = rocstream("send", "-c", bare_job.path, SAMPLE, rows)
    assert sent.returncode == 0, sent.stderr
    assert sent.stdout.startswith(f"sent 6,252 events to {topic} in ")
    lines = gzip.decompress(SAMPLE.read_bytes()).splitlines()
    piped = rocstream(
        "send", "-c", bare_job.path, "-", "--key", "all", stdin=b"\n".join(lines[:10]) + b"\n"
    )
    assert piped.stdout.startswith("sent 10 events")

    read = bare_job.read(topic, 6_262)
    by_key: dict[bytes | None, list[bytes | None]] = {}
    for record in read:
        by_key.setdefault(record.key, []).append(record.value)
    assert by_key[b"007"] == [b'{"score":0.5,"label":1}', b'{"score":0.25,"label":0}']
    assert by_key[b"all"] == lines[:10]
    for key in (b"phishing-knn", b"phishing-tree"):
        assert by_key[key] == [line for line in lines if b'"%s"' % key in line]
    assert rocstream("check", "-c", bare_job.path).returncode == 0


def test_send_stops_at_a_bad_line_or_leaves_it_out(bare_job: Job, tmp_path: Path) -> None:
    bare_job.create_topics()
    path = tmp_path / "events.jsonl"
    good = '{"key": "k", "score": 1, "label": 1}\n'
    path.write_text(good * 2 + "oops\n" + good * 2)
    stopped = rocstream("send", "-c", bare_job.path, path)
    assert stopped.returncode == 1
    assert f"{path}:3: not JSON" in stopped.stderr
    assert "nothing after it was sent" in stopped.stderr
    assert stopped.stdout.startswith("sent 2 events")
    skipped = rocstream("send", "-c", bare_job.path, path, "--skip-bad")
    assert skipped.returncode == 0
    assert skipped.stdout.startswith("sent 4 events")
    assert f"left out 1 line, the first: {path}:3: not JSON" in skipped.stderr
    assert len(bare_job.read(bare_job.settings.topics.events, 6)) == 6


def test_send_and_tail_name_a_topic_that_is_not_there(bare_job: Job) -> None:
    for arguments, topic in (
        (["send", "-c", bare_job.path, SAMPLE], "topics.events"),
        (["tail", "-c", bare_job.path], "topics.updates"),
    ):
        found = rocstream(*arguments)
        assert found.returncode == 2
        assert f"({topic}) does not exist" in found.stderr


def test_without_a_broker_each_command_says_so_in_one_sentence(away: Job) -> None:
    commands = {
        "send": ["send", SAMPLE],
        "create": ["topics", "create"],
        "check": ["check"],
        "tail": ["tail", "--seconds", 3],
    }
    with ThreadPoolExecutor() as threads:
        asked = {
            name: threads.submit(rocstream, *arguments, "-c", away.path)
            for name, arguments in commands.items()
        }
    sentence = f"no Kafka broker answers at {away.servers}"
    for name in ("send", "create"):
        found = asked[name].result()
        assert found.returncode == 1
        assert sentence in found.stderr
        assert found.stderr.count("\n") == 1
    checked = asked["check"].result()
    assert checked.returncode == 1
    assert f"✗ {sentence}" in checked.stdout
    waited = asked["tail"].result()
    assert waited.returncode == 0
    assert sentence in waited.stderr
    assert waited.stderr.count("\n") == 1


@pytest.mark.slow
def test_tail_waits_for_a_broker_says_when_it_goes_and_reads_on(
    own_kafka: Any, tmp_path: Path
) -> None:
    monitor = '[[monitor]]\nname = "m"\nwindow = {kind = "count", size = 5, slide = 1}\n'
    job = Job(own_kafka.bootstrap_servers, tmp_path, monitor, 1)
    job.create_topics()

    def publish(number: int) -> None:
        producer = Producer({"bootstrap.servers": job.servers})
        value = {"monitor": "m", "key": "k", "seq": number, "auc": 0.5, "h": None}
        producer.produce(job.settings.topics.updates, orjson.dumps(value), b"k")
        assert producer.flush(30) == 0

    own_kafka.stop()
    with running("tail", "-c", job.path, "--from-beginning") as tail:
        assert tail.stdout is not None
        assert tail.stderr is not None
        assert "waiting for it" in tail.stderr.readline()
        own_kafka.start()
        publish(1)
        assert tail.stdout.readline().startswith("m k seq=1 auc=0.5000 h=- ")
        own_kafka.stop()
        assert "waiting for it" in tail.stderr.readline()
        own_kafka.start()
        publish(2)
        assert "seq=2" in tail.stdout.readline()
        tail.send_signal(signal.SIGINT)
        assert tail.wait(20) == 0
        assert not tail.stderr.read()


def test_the_last_readings_of_the_demo_data_are_those_of_its_last_events(bare_job: Job) -> None:
    bare_job.create_topics()
    count = 5 * 3_010
    events = list(islice(played.stream(), count))
    bare_job.produce(
        (event.key.encode(), orjson.dumps({"score": event.score, "label": event.label}))
        for event in events
    )
    slides = 5 * (3_010 // 50)
    with bare_job.worker():
        bare_job.updates(slides)
    once = rocstream("tail", "-c", bare_job.path, "--once", "--json")
    updates = [json.loads(line) for line in once.stdout.splitlines()]
    assert len(updates) == slides
    last = {update["key"]: update for update in updates}
    for key, update in last.items():
        inside = [event for event in events if event.key == key][:3_000][-500:]
        scores = np.array([event.score for event in inside])
        labels = np.array([event.label for event in inside])
        assert update["seq"] == 60
        assert update["window"]["full"]
        assert update["positives"] == labels.sum()
        assert update["auc"] == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)
        # Its severities are Beta(2, 2) at this ratio, as ours are.
        h = hmeasure.h_score(labels, scores, severity_ratio=1)
        assert update["h"] == pytest.approx(h, abs=1e-9)

    table = rocstream("tail", "-c", bare_job.path, "--once")
    for key, update in last.items():
        assert key in table.stdout
        assert f"{update['auc']:.4f}" in table.stdout
    one = rocstream("tail", "-c", bare_job.path, "--once", "--json", "--key", "*-knn")
    assert {json.loads(line)["key"] for line in one.stdout.splitlines()} == {"phishing-knn"}


def processes(folder: Path) -> list[int]:
    """Processes that a demo with this temporary folder started and left behind."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            told = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
        except OSError:
            # It has ended meanwhile, or is not ours.
            continue
        if os.fsencode(folder) in told:
            found.append(int(entry.name))
    return found


def leftovers(folder: Path) -> list[Path]:
    return list(folder.glob("rocstream-*"))


@pytest.mark.parametrize("embedded", [True, False])
def test_the_demo_ends_by_itself_and_leaves_nothing(
    kafka: Any, tmp_path: Path, *, embedded: bool
) -> None:
    options = [] if embedded else ["--bootstrap-servers", kafka.bootstrap_servers]
    done = subprocess.run(
        [sys.executable, "-m", "worker", "demo", "--seconds", "9", *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
        cwd=HERE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    figures = {
        line.split()[0]: float(line.split()[1][:6])
        for line in done.stdout.splitlines()
        if line.strip().startswith("phishing-")
    }
    assert set(figures) == set(played.sample())
    assert min(figures, key=figures.__getitem__) == played.FAILING
    assert not leftovers(tmp_path)
    assert not processes(tmp_path)
    if not embedded:
        client = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        assert not [name for name in client.list_topics(timeout=10).topics if "-demo-" in name]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_demo_ends_on_a_signal_and_leaves_nothing(tmp_path: Path, number: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "worker", "demo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=HERE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    try:
        assert process.stdout is not None
        # The first table is there: all parts run.
        for line in process.stdout:
            if played.FAILING in line:
                break
        process.send_signal(number)
        code = process.wait(40)
    finally:
        process.kill()
        process.communicate()
    assert code == (0 if number != signal.SIGKILL else -signal.SIGKILL)
    deadline = time.monotonic() + 20
    while leftovers(tmp_path) or processes(tmp_path):
        assert time.monotonic() < deadline, (leftovers(tmp_path), processes(tmp_path))
        time.sleep(0.1)
