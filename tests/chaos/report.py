"""The report of a fault run, in Markdown."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from checker import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from faults import Result


def report(result: Result) -> str:
    """Write what was done, what was found, and the verdict."""
    return "\n".join(_lines(result)) + "\n"


def _lines(result: Result) -> Iterator[str]:
    plan, verdict = result.plan, result.verdict
    yield "# Delivery under faults"
    yield ""
    broken = f", workers sabotaged: {plan.sabotage}" if plan.sabotage else ""
    yield (
        f"{'Nothing was found' if result.good else 'FAULTS WERE FOUND'}. Seed {plan.seed}, "
        f"{plan.rate:,.0f} events/s, {result.broker}, Python {platform.python_version()}{broken}."
    )
    yield ""
    yield from _table(
        "found by the checker", {f"{k}: {v}": verdict.counts[k] for k, v in KINDS.items()}
    )
    yield from _table("what was done", dict(sorted(result.done.items())))
    yield from _table(
        "kills by what the worker was about", dict(sorted(result.kills_while.items()))
    )
    yield from _table("what was compared", result.facts)
    yield from _table(
        "workers that ended by themselves",
        {
            "put out by the broker, another having their static name": result.fenced,
            "others": len(result.ended),
        },
    )
    for ended in result.ended:
        yield f"- {ended.name}, exit {ended.code}: `{ended.last_line}`"
    for kind, examples in verdict.examples.items():
        yield ""
        yield f"{kind}:"
        yield ""
        yield from (f"- `{example[:600]}`" for example in examples)


def _table(title: str, rows: dict[str, object]) -> Iterator[str]:
    yield f"| {title} | |"
    yield "|---|---:|"
    for name, value in rows.items():
        yield f"| {name} | {f'{value:,}' if isinstance(value, int) else value} |"
    yield ""
