"""Keys that leave on a real broker: by a heartbeat, behind a restart, and out of the changelog."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import orjson
import pytest

from worker.admin import plans
from worker.pages import parse_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from jobs import Job

pytestmark = pytest.mark.broker

START = 1_764_460_000_000

TEXT = """
[event]
time = "time"
max_ahead = "36500d"

[[monitor]]
name = "m"
window = { kind = "count", size = 100, slide = 2 }
metrics = ["auc"]
key_ttl = "64s"
key_limit = 3
"""


def event(key: str, seconds: int, label: int = 1) -> tuple[bytes, bytes]:
    value = {"score": 0.5, "label": label, "time": START + 1000 * seconds}
    return key.encode(), orjson.dumps(value)


def test_keys_leave_across_a_restart_and_start_anew(new_job: Callable[..., Job]) -> None:
    job = new_job(TEXT, partitions=1)
    job.produce([event("a", 0), event("b", 1), event("a", 2, 0), event("c", 30), event("d", 31)])
    with job.worker() as worker:
        assert [(u["key"], u["note"]) for u in job.updates(2)] == [("a", None), ("b", "key_limit")]
        worker.signal(signal.SIGTERM)
        assert worker.exit_code() == 0
    beat = orjson.dumps({"heartbeat": True, "time": START + 80_000})
    job.produce([(None, beat), event("a", 81), event("e", 82)])
    with job.worker() as worker:
        updates = job.updates(4)
        worker.signal(signal.SIGTERM)
        assert worker.exit_code() == 0
    # a, c and d were there; at 80 s a is 78 s behind. It comes back, and c makes room for e.
    assert [(u["key"], u["seq"], u["note"], u["source"]["offset"]) for u in updates] == [
        ("a", 1, None, 2),
        ("b", 1, "key_limit", 4),
        ("a", 2, "expired", 5),
        ("c", 1, "key_limit", 7),
    ]
    assert updates[2]["window"]["events"] == 2
    assert (updates[2]["auc"], updates[2]["time"]) == (0.5, START + 80_000)
    last = {
        record.key: record.value
        for record in job.read(plans(job.settings)[-1].name, 0)
        if record.key is not None
    }
    kept = {raw for raw, value in last.items() if value is not None}
    assert {key.key for raw in kept if (key := parse_key(raw)) is not None} == {"a", "d", "e"}
