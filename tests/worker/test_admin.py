"""What a job needs at its broker, and what is said of topics that are not so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from worker import admin
from worker.admin import Topic
from worker.cli import check
from worker.cli.check import Finding

if TYPE_CHECKING:
    from collections.abc import Callable

    from config import Settings


def test_a_job_needs_four_topics(settings_of: Callable[..., Settings]) -> None:
    settings = settings_of()
    events, updates, rejected, changelog = admin.plans(settings, events_partitions=7)
    assert (events.name, updates.name) == (settings.topics.events, settings.topics.updates)
    assert rejected.name == settings.topics.rejected
    assert changelog.name == f"{settings.kafka.group}-windows-changelog"
    assert changelog.partitions == 7
    assert updates.partitions == settings.topics.partitions


def test_updates_and_rejected_are_kept_for_a_month_and_state_is_compacted(
    settings_of: Callable[..., Settings],
) -> None:
    _, updates, rejected, changelog = admin.plans(settings_of())
    kept = {"cleanup.policy": "delete", "retention.ms": str(30 * 86_400_000)}
    assert updates.settings == rejected.settings == kept
    # What a start has to read is bounded by how soon segments are closed and compacted.
    assert changelog.settings == {
        "cleanup.policy": "compact",
        "segment.bytes": str(64 * 2**20),
        "segment.ms": str(10 * 60_000),
        "min.cleanable.dirty.ratio": "0.1",
        "min.compaction.lag.ms": "0",
        "delete.retention.ms": str(60 * 60_000),
        "max.message.bytes": str(2**20 + 12),
    }


def test_three_copies_are_made_to_count(settings_of: Callable[..., Settings]) -> None:
    settings = settings_of()
    for replication, wanted in ((1, None), (2, None), (-1, None), (3, "2"), (5, "2")):
        topics = settings.topics.model_copy(update={"replication": replication})
        for plan in admin.plans(settings.model_copy(update={"topics": topics})):
            assert plan.settings.get("min.insync.replicas") == wanted
            assert plan.replication == replication


def test_a_topic_as_planned_has_no_faults(settings_of: Callable[..., Settings]) -> None:
    for plan in admin.plans(settings_of()):
        topic = Topic(plan.name, plan.partitions, 1, plan.settings)
        assert not list(admin.faults(plan, topic))
        assert not admin.differences(plan, topic)


def test_a_changelog_of_other_partitions_is_a_fault(settings_of: Callable[..., Settings]) -> None:
    plan = admin.plans(settings_of(), events_partitions=4)[-1]
    (fault,) = admin.faults(plan, Topic(plan.name, 3, 1, plan.settings))
    assert "has 3 partitions and the events topic 4" in fault


def test_a_policy_that_loses_data_is_a_fault(settings_of: Callable[..., Settings]) -> None:
    for plan in admin.plans(settings_of()):
        wrong = {**plan.settings, "cleanup.policy": "compact,delete"}
        (fault,) = admin.faults(plan, Topic(plan.name, plan.partitions, 1, wrong))
        assert f"set cleanup.policy = {plan.settings['cleanup.policy']}" in fault


def test_a_topic_without_a_policy_loses_nothing(settings_of: Callable[..., Settings]) -> None:
    for plan in admin.plans(settings_of()):
        kept = {**plan.settings, "cleanup.policy": ""}
        assert not list(admin.faults(plan, Topic(plan.name, plan.partitions, 1, kept)))


def test_other_settings_differ_without_being_a_fault(
    settings_of: Callable[..., Settings],
) -> None:
    plan = admin.plans(settings_of())[1]
    topic = Topic(plan.name, 50, 3, {**plan.settings, "retention.ms": "1000"})
    assert not list(admin.faults(plan, topic))
    assert admin.differences(plan, topic) == ["retention.ms = 1000 (made here: 2592000000)"]


@pytest.mark.parametrize(
    ("number", "costs"),
    [
        (0, None),
        (1, "an update that has more stops the worker"),
        (2, "rejected records are cut to that"),
        (3, None),
    ],
)
def test_a_topic_that_takes_small_messages_only_is_told_of(
    settings_of: Callable[..., Settings], number: int, costs: str | None
) -> None:
    plan = admin.plans(settings_of())[number]

    cluster: Any = None  # which is asked about topics that are not there

    def told(limit: int) -> list[Finding]:
        settings = {**plan.settings, "max.message.bytes": str(limit)}
        topic = Topic(plan.name, plan.partitions, 3, settings)
        found = check._topic(plan, topic, cluster)
        # What the changelog has differs from what it was made with, which is told anyhow.
        return [one for one in found if one.mark == "!" and "made here" not in one.sentence]

    sentence = (
        f"the topic {plan.name} ({plan.setting}) has max.message.bytes = 999999: {costs}; "
        "set it to 1048588, Kafka's default"
    )
    assert told(999_999) == ([Finding("!", sentence)] if costs else [])
    assert told(1_000_000) == []
    assert admin.narrow(plan, Topic(plan.name, 50, 3, {})) is None


def test_a_broker_that_tells_no_settings_is_believed(settings_of: Callable[..., Settings]) -> None:
    for plan in admin.plans(settings_of()):
        assert not list(admin.faults(plan, Topic(plan.name, plan.partitions, 1, {})))
