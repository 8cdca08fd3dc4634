"""``rocstream check``: what would keep a job from working, each with its cure, before it starts."""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING, Final, NamedTuple

import typer
from rich.text import Text

from config.errors import RocstreamError
from config.paths import render
from config.values import plural
from worker import admin
from worker.cli import options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from config import Settings
    from worker.admin import Cluster, Plan, Topic

KEYS_SHOWN: Final = 3


class Finding(NamedTuple):
    """One line of the checklist, and the exit code it asks for; a warning asks for none."""

    mark: str
    sentence: str
    exit_code: int = 0


GOOD, BAD, NOTE = "✓", "✗", "!"
_STYLES: Final = {GOOD: "green", BAD: "bold red", NOTE: "yellow"}


def check(config: options.ConfigFile = None) -> None:
    """Look at settings, broker, topics, permissions and a sample of the events; change nothing.

    Everything that is wrong is named with its cure. Exit code 0: all is well (there may be notes);
    1: something at the broker is wrong; 2: the settings are; 3: a person must decide. Where
    several are, the highest.

    Example: `rocstream check -c rocstream.toml && rocstream worker -c rocstream.toml`
    """
    settings = options.settings(config)
    options.quieten(settings)
    console = options.stdout()
    code = 0
    for finding in findings(settings):
        code = max(code, finding.exit_code)
        console.print(Text.assemble((finding.mark, _STYLES[finding.mark]), " ", finding.sentence))
    if code:
        raise typer.Exit(code)


def findings(settings: Settings) -> Iterator[Finding]:
    """Yield the checklist line by line; later ones only where earlier ones let them be asked."""
    names = ", ".join(monitor.name for monitor in settings.monitors)
    yield Finding(GOOD, f"the settings are right (monitors: {names})")
    cluster = admin.Cluster(settings)
    try:
        cluster.wait(admin.WAIT_SECONDS)
        cluster.reach()
    except RocstreamError as error:
        yield _bad(error)
        return
    yield Finding(GOOD, f"the broker answers at {cluster.servers}")
    plans = admin.plans(settings, cluster.partitions().get(settings.topics.events))
    topics = cluster.topics(plan.name for plan in plans)
    for plan in plans:
        yield from _topic(plan, topics.get(plan.name), cluster)
        if plan.name in topics:
            yield from _permissions(plan, cluster)
    if settings.topics.events in topics:
        yield from _events(settings, topics)
    # Of a worker's refusals these are told already, and behind the first one it looks no further.
    if len(topics) == len(plans) and not any(admin.losses(plans, topics)):
        yield from _state(settings, topics[settings.topics.events].partitions)


def _bad(problem: RocstreamError | str) -> Finding:
    """Return the finding of something that is wrong: at the broker, unless an error says more."""
    code = problem.exit_code if isinstance(problem, RocstreamError) else RocstreamError.exit_code
    return Finding(BAD, str(problem), code)


def _topic(plan: Plan, topic: Topic | None, cluster: Cluster) -> Iterator[Finding]:
    if topic is None:
        yield _bad(str(cluster.absent(plan)))
        return
    wrong = [_bad(sentence) for sentence in admin.faults(plan, topic)]
    yield from wrong
    if not wrong:
        copies = "1 copy" if topic.replication == 1 else f"{topic.replication} copies"
        parts = plural(topic.partitions, "partition")
        yield Finding(
            GOOD, f"the topic {topic.name} ({plan.setting}) is there: {parts}, {copies} of each"
        )
        if differing := admin.differences(plan, topic):
            yield Finding(NOTE, f"the topic {topic.name} has {', '.join(differing)}")
        if told := admin.narrow(plan, topic):
            yield Finding(NOTE, told)


def _permissions(plan: Plan, cluster: Cluster) -> Iterator[Finding]:
    yield from map(_bad, cluster.lacking(plan))
    allowed = cluster.may(plan.name)
    if allowed is not None and not {"DESCRIBE_CONFIGS", "ALL"} & allowed:
        yield Finding(
            NOTE,
            f"the settings of the topic {plan.name} ({plan.setting}) may not be looked at, so they "
            "are taken for right: grant DESCRIBE_CONFIGS on it",
        )


def _state(settings: Settings, partitions: int) -> Iterator[Finding]:
    # These take a second to load, which is lost where nothing answers.
    from worker.cli.state import state  # noqa: PLC0415
    from worker.rights import rights  # noqa: PLC0415
    from worker.transport.layout import survey  # noqa: PLC0415

    try:
        told = rights(settings, range(partitions))
        yield from map(_bad, told.refused)
        if not told.refused:
            yield Finding(GOOD, f"the user may work in the group {settings.kafka.group}")
        layout = survey(settings, Event())
        found = None if layout is None else state(settings, layout, told.offsets)
    except RocstreamError as error:
        yield _bad(error)
        return
    if found is None:
        return
    yield from map(_bad, found.refusals.values())
    if found.unread:
        yield Finding(
            NOTE,
            f"the state of {plural(found.unread, 'partition')} was not read, for want of time",
        )
    if not found.refusals:
        yield Finding(
            GOOD,
            "the state fits the log (partitions that have one: "
            f"{found.kept}, that have none yet: {found.empty})",
        )


def _events(settings: Settings, topics: Mapping[str, Topic]) -> Iterator[Finding]:
    topic = topics[settings.topics.events]
    try:
        # Records are read for it alone, which the other commands need not load.
        from worker.cli.sample import sample  # noqa: PLC0415

        seen = sample(settings, topic.partitions)
    except RocstreamError as error:
        yield _bad(error)
        return
    if not seen.records:
        yield Finding(NOTE, f"the topic {topic.name} holds no events yet: nothing to sample")
        return
    if seen.scattered:
        shown = ", ".join(
            f"{key!r} in {' and '.join(map(str, sorted(partitions)))}"
            for key, partitions in sorted(seen.scattered.items())[:KEYS_SHOWN]
        )
        verb = "stands" if len(seen.scattered) == 1 else "stand"
        yield _bad(
            f"{len(seen.scattered):,} of {seen.keys:,} sampled keys {verb} in several partitions "
            f"of {topic.name} ({shown}), each with windows of its own: let the producers place "
            "records by the key (murmur2), all with the same number of partitions",
        )
    elif seen.keys:
        yield Finding(
            GOOD,
            f"each key has one partition ({plural(seen.keys, 'key')} in "
            f"{plural(seen.records, 'sampled record')})",
        )
    if seen.unlabelled and not seen.keys:
        yield Finding(
            NOTE,
            f"no event in {plural(seen.records, 'sampled record')} counts: "
            f"{plural(seen.unlabelled, 'event')} would be skipped, having no label where "
            f'event.label = "{render(settings.event.label)}" says',
        )
    if seen.rejected:
        first = seen.first_rejection
        yield Finding(
            NOTE,
            f"{seen.rejected:,} of {seen.records:,} sampled records would go to "
            f"{settings.topics.rejected}, the first because {first}",
        )
