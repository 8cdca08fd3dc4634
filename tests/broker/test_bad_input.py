"""Bad input on a real Kafka: rejected with its reason and bytes, or skipped and counted."""

from __future__ import annotations

import hashlib
import random
import signal
from typing import TYPE_CHECKING, NamedTuple

import orjson
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from jobs import Job

pytestmark = pytest.mark.broker

SETTINGS = """
[event]
weight = "weight"
time = "time"
labels = { fraud = 1, ok = 0 }

[[monitor]]
name = "last-50"
window = { kind = "count", size = 50, slide = 1 }
metrics = ["auc"]
"""

NOW = 1_764_460_000_000
GOOD = orjson.dumps({"score": 0.5, "label": 1, "time": NOW})


class Bad(NamedTuple):
    """A record, and the code it is rejected with; None where it is skipped and counted."""

    code: str | None
    value: bytes | None
    key: bytes | None = b"k"
    count: str = ""


def event(**changes: object) -> bytes:
    """A good event with some fields changed."""
    return orjson.dumps({"score": 0.5, "label": 1, "time": NOW, **changes})


ROWS = [
    Bad(None, event(label=None), count="unlabelled"),
    Bad(None, orjson.dumps({"score": 0.5, "time": NOW}), count="unlabelled"),
    Bad(None, event(weight=0), count="zero_weight"),
    Bad(None, None, count="tombstones"),
    Bad(None, orjson.dumps({"heartbeat": True, "time": NOW}), count="heartbeats"),
    Bad("score_not_number", event(score="0.5")),
    Bad("score_not_number", event(score=True)),
    Bad("score_not_number", event(score=None)),
    Bad("score_not_finite", b'{"score": NaN, "label": 1}'),
    Bad("score_not_finite", b'{"score": Infinity, "label": 1}'),
    Bad("score_not_finite", b'{"score": 1e999, "label": 1, "time": %d}' % NOW),
    Bad("label_unknown", event(label=2)),
    Bad("label_unknown", event(label="maybe")),
    Bad("weight_negative", event(weight=-1)),
    Bad("weight_out_of_range", event(weight=1e200)),
    Bad("weight_not_number", event(weight="1")),
    Bad("time_missing", orjson.dumps({"score": 0.5, "label": 1})),
    Bad("time_not_integer", event(time=1.5)),
    Bad("time_before_1970", event(time=-1)),
    Bad("time_ahead", event(time=32_503_680_000_000)),
    Bad("key_missing", GOOD, key=None),
    Bad("key_empty", GOOD, key=b""),
    Bad("key_too_long", GOOD, key=b"x" * 1025),
    Bad("key_too_long", GOOD, key=b"x" * 1_000_000),
    Bad("key_not_utf8", GOOD, key=b"\xff\xfe"),
    Bad("not_json", b"score=0.5"),
    Bad("not_json", b""),
    Bad("not_object", b"[0.5, 1]"),
    Bad("not_utf8", b'{"score": 0.5, "label": "\xff"}'),
    Bad("schema_registry", b"\x00\x00\x00\x00\x07" + GOOD),
    Bad("nested_too_deep", b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    Bad("value_too_large", b'{"a": "' + b"x" * 1_048_300 + b'"}'),
    Bad("unequal_arrays", event(score=[0.1, 0.2], label=[1])),
]


def test_every_kind_of_bad_record_between_good_ones(new_job: Callable[..., Job]) -> None:
    job = new_job(SETTINGS, partitions=1)
    records: list[tuple[bytes | None, bytes | None]] = [(b"k", GOOD)]
    for row in ROWS:
        records += [(row.key, row.value), (b"k", GOOD)]
    good = len(ROWS) + 1
    with job.worker() as worker:
        job.produce(records)
        updates = job.updates(good)
        expected = [row for row in ROWS if row.code is not None]
        rejected = job.read(job.settings.topics.rejected, len(expected))
        worker.signal(signal.SIGTERM)
        assert worker.exit_code() == 0, worker.text()[-3000:]

    assert [update["seq"] for update in updates] == list(range(1, good + 1))
    assert updates[-1]["positives"] == good

    assert len(rejected) == len(expected)
    offsets = [2 * ROWS.index(row) + 1 for row in expected]
    for row, offset, letter in zip(expected, offsets, rejected, strict=True):
        code, _, sentence = letter.headers["rocstream-reason"].decode().partition(": ")
        assert code == row.code
        assert 10 < len(sentence) < 1000
        assert letter.headers["rocstream-topic"].decode() == job.settings.topics.events
        assert letter.headers["rocstream-partition"] == b"0"
        assert letter.headers["rocstream-offset"] == b"%d" % offset
        whole = orjson.loads(letter.headers.get("rocstream-truncated", b"null"))
        if whole is None:
            assert (letter.key, letter.value) == (row.key, row.value)
            continue
        for part, sent, kept in (
            ("key", row.key, letter.key),
            ("value", row.value, letter.value),
        ):
            assert sent is not None
            assert kept is not None
            assert sent.startswith(kept)
            assert whole[part] == {
                "bytes": len(sent),
                "sha256": hashlib.sha256(sent).hexdigest(),
            }

    counts = job.state()
    assert counts["records"] == len(records)
    assert counts["events"] == good
    assert counts["rejected"] == len(expected)
    for row in ROWS:
        if row.count:
            assert counts[row.count] == sum(other.count == row.count for other in ROWS)


def test_a_rejection_fits_a_topic_of_small_messages(new_job: Callable[..., Job]) -> None:
    job = new_job(SETTINGS, partitions=1, rejected=5_000)
    letter = b"{" + b"x" * 100_000
    with job.worker():
        job.produce([(b"k", letter), (b"k", GOOD)])
        (rejection,) = job.read(job.settings.topics.rejected, 1)
        assert job.updates(1)
    assert rejection.value is not None
    assert 3_000 < len(rejection.value) < 5_000
    assert letter.startswith(rejection.value)


def test_many_messages_go_to_topics_of_small_ones(new_job: Callable[..., Job]) -> None:
    """What a client puts together for a topic is one message to its limit."""
    job = new_job(SETTINGS, partitions=1, updates=4_000, rejected=4_000)
    bad = [b"{" + random.Random(seed).randbytes(2_000) for seed in range(50)]  # noqa: S311 - seeded
    job.produce([(b"k", GOOD)] * 300 + [(b"k", one) for one in bad])
    with job.worker() as worker:
        assert len(job.updates(300)) == 300
        assert len(job.read(job.settings.topics.rejected, 50)) == 50
        worker.signal(signal.SIGTERM)
        assert worker.exit_code() == 0, worker.text()[-3000:]
        assert "sent again" not in worker.text()


def test_a_topic_that_takes_no_message_of_ours_ends_the_worker(
    new_job: Callable[..., Job],
) -> None:
    job = new_job(SETTINGS, partitions=1, updates=100)
    job.produce([(b"k", GOOD)])
    with job.worker() as worker:
        assert worker.exit_code() == 1, worker.text()[-3000:]
        last = worker.text().splitlines()[-1]
        assert "a message has more bytes than its topic takes; set max.message.bytes" in last
        assert job.settings.topics.updates in last


def test_a_clock_that_topics_do_not_take_ends_the_worker(new_job: Callable[..., Job]) -> None:
    """No clock here may be set, so the topic takes what is not older than its arrival."""
    job = new_job(partitions=1)
    job.configure(job.settings.changelog, message_timestamp_before_max_ms="0")
    job.produce([(b"k", GOOD)])
    with job.worker() as worker:
        assert worker.exit_code() == 1, worker.text()[-3000:]
        last = worker.text().splitlines()[-1]
        assert "this machine's clock and the broker's lie further apart than a topic takes" in last
        assert job.settings.changelog in last


def test_the_bad_elements_of_a_columnar_record_share_a_rejection(
    new_job: Callable[..., Job],
) -> None:
    job = new_job(SETTINGS, partitions=1)
    value = event(score=[0.1, "x", 0.3, 0.4, None], label=[1, 1, 0, 9, 1], time=[NOW] * 5)
    with job.worker():
        job.produce([(b"k", value)])
        (rejection,) = job.read(job.settings.topics.rejected, 1)
        assert [update["source"]["index"] for update in job.updates(2)] == [0, 2]
    assert rejection.headers["rocstream-indexes"] == b"1,3-4"
    assert rejection.headers["rocstream-reason"].startswith(b"score_not_number")
    assert rejection.value == value
