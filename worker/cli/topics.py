"""``rocstream topics create``: every topic the job needs, with the settings it needs them with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table

from config.errors import RocstreamError
from worker import admin
from worker.cli import options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from worker.admin import Plan, Topic

app = typer.Typer(no_args_is_help=True, help="The topics of a job.")


@app.callback()
def topics() -> None:
    """Make the topics that a job needs."""


@app.command()
def create(
    config: options.ConfigFile = None,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be made; make nothing.")
    ] = False,
) -> None:
    """Make all topics of the job: events, updates, rejected, and the changelog of its state.

    Topics that exist are compared with what the job needs and never changed. The changelog gets
    as many partitions as the events topic has; the others get `topics.partitions`, and all
    `topics.replication`.

    Example: `rocstream topics create -c rocstream.toml --dry-run`
    """
    settings = options.settings(config)
    cluster = admin.Cluster(settings)
    cluster.wait(admin.WAIT_SECONDS)
    wanted = admin.plans(settings, cluster.partitions().get(settings.topics.events))
    there = cluster.topics(plan.name for plan in wanted)
    cluster.create([plan for plan in wanted if plan.name not in there], dry_run=dry_run)

    console = options.stdout()
    console.print(_table(wanted, there, "to make" if dry_run else "made"))
    console.print()
    for detail in _details(wanted, there):
        console.print(detail)
    wrong = [sentence for plan in wanted for sentence in admin.faults(plan, there.get(plan.name))]
    if wrong:
        raise RocstreamError("; ".join(wrong))
    if dry_run:
        console.print("Nothing was made: --dry-run.")


def _table(wanted: tuple[Plan, ...], there: Mapping[str, Topic], made: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True)
    for name in ("topic", "setting"):
        table.add_column(name, overflow="fold")
    for name in ("partitions", "copies"):
        table.add_column(name, justify="right")
    table.add_column("", no_wrap=True)
    for plan in wanted:
        topic = there.get(plan.name)
        if topic is None:
            copies = "default" if plan.replication < 0 else str(plan.replication)
            state = f"[green]{made}[/]"
            table.add_row(plan.name, plan.setting, str(plan.partitions), copies, state)
            continue
        state = "[red]there, wrong[/]" if any(admin.faults(plan, topic)) else "there"
        numbers = (str(topic.partitions), str(topic.replication))
        table.add_row(topic.name, plan.setting, *numbers, state)
    return table


def _details(wanted: tuple[Plan, ...], there: Mapping[str, Topic]) -> Iterator[str]:
    for plan in wanted:
        topic = there.get(plan.name)
        if topic is None:
            settings = ", ".join(f"{name} = {value}" for name, value in plan.settings.items())
            yield f"{plan.name}: {settings}"
            continue
        if differing := admin.differences(plan, topic):
            yield f"{plan.name}: left as it is, {', '.join(differing)}"
        if told := admin.narrow(plan, topic):
            yield told
