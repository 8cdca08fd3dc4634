"""The worker on a real Kafka: exactly the updates of an offline computation, each once."""

from __future__ import annotations

import random
import re
import signal
from typing import TYPE_CHECKING

import numpy as np
import pytest
from computed import assert_exactly, expected_updates, reference_h, tied_events
from hmeasure import h_score

if TYPE_CHECKING:
    from collections.abc import Callable

    from jobs import Job

pytestmark = pytest.mark.broker


def test_200_000_events_and_five_kills_give_every_update_once(
    new_job: Callable[..., Job],
) -> None:
    job = new_job()
    events = tied_events(200_000, keys=20)
    expected = expected_updates(events, reference_h)
    rng = random.Random(5)  # noqa: S311 - a seeded choice
    stops = sorted(rng.sample(range(10_000, 190_000), 5))
    sent = 0
    for stop in stops:
        with job.worker() as worker:
            worker.wait_until_ready()
            job.produce(events[sent:stop])
            sent = stop
            # Somewhere in the middle of the work, wherever that is.
            goal = rng.randrange(1, len(expected) * stop // len(events))
            worker.wait_for(lambda goal=goal: len(job.read(job.settings.topics.updates, 0)) >= goal)
            worker.kill()
        job.bury()
    with job.worker() as worker:
        job.produce(events[sent:])
        updates = job.updates(len(expected), seconds=120)
        worker.signal(signal.SIGTERM)
        assert worker.exit_code() == 0, worker.text()[-3000:]
    assert_exactly(updates, expected)
    assert job.state()["events"] == len(events)
    assert '"level":"error"' not in worker.text().replace(" ", "")


def test_readings_are_those_of_scikit_learn_and_hmeasure(new_job: Callable[..., Job]) -> None:
    job = new_job()
    events = tied_events(4_000, keys=3, seed=11)
    # hmeasure takes scores from 0 to 1, and asks for the severities Beta(2, 2) by their ratio.
    expected = expected_updates(
        events,
        lambda scores, labels: h_score(
            labels, (scores - scores.min()) / (np.ptp(scores) or 1), severity_ratio=1
        ),
    )
    job.produce(events)
    with job.worker():
        assert_exactly(job.updates(len(expected)), expected)


def test_workers_that_come_and_go_share_the_work(new_job: Callable[..., Job]) -> None:
    job = new_job(partitions=4)
    events = tied_events(30_000, keys=12, seed=3)
    expected = expected_updates(events, reference_h)
    with job.worker() as first:
        first.wait_until_ready()
        job.produce(events[:10_000])
        with job.worker() as second:
            second.wait_until_ready()
            # Tasks that stay where they are keep their state: nothing is read again.
            first.wait_for(lambda: re.search(r'"kept": \[\d', first.text()) is not None)
            job.produce(events[10_000:20_000])
            second.wait_for(lambda: len(job.read(job.settings.topics.updates, 0)) > 250)
            first.signal(signal.SIGTERM)
            assert first.exit_code() == 0, first.text()[-3000:]
            job.produce(events[20_000:])
            assert_exactly(job.updates(len(expected), seconds=90), expected)


def test_ctrl_c_finishes_and_leaves(new_job: Callable[..., Job]) -> None:
    job = new_job()
    events = tied_events(5_000, keys=4)
    job.produce(events)
    with job.worker() as worker:
        job.updates(len(expected_updates(events, reference_h)))
        worker.signal(signal.SIGINT)
        assert worker.exit_code() == 0, worker.text()[-3000:]
        assert "Traceback" not in worker.text()
    assert job.state()["events"] == len(events)
