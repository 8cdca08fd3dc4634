"""The numbers that [kafka.client] takes: each has bounds, unless it can do no harm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from config.kafka import librdkafka
from config.librdkafka import ALLOWED, TRANSACTIONAL, complaint
from config.limits import HARMLESS, LIMITS, unfit

if TYPE_CHECKING:
    from collections.abc import Callable

    import config

    Load = Callable[..., config.Settings]
    Refusal = Callable[..., str]

BESIDE = {"receive.message.max.bytes": '"fetch.max.bytes" = 1_000_000'}
"""What must stand beside a setting at the end of its range."""


FOUND = "since brokers that are back must be found soon, and not be asked without a pause"


@pytest.mark.parametrize("name", LIMITS)
def test_what_a_limit_lets_through_suits_a_task(load: Load, name: str) -> None:
    low, high, _, off = LIMITS[name]
    for value in {low, high, low if off is None else off}:
        found = load(client=f'"{name}" = {value}\n{BESIDE.get(name, "")}')
        client = librdkafka(found, "producer")
        assert Producer({**client, **TRANSACTIONAL, "transactional.id": "any"}) is not None
    for value in {low - 1, high + 1} - {off}:
        assert f"from {low:,} to {high:,}" in (unfit(name, str(value)) or "")


def test_no_number_is_without_bounds() -> None:
    numbers = {
        name
        for name in ALLOWED
        if "bool value" not in (complaint({name: "-7"}) or ("", ""))[1]
        and any(complaint({name: value}) is None for value in ("1", "7", "1000", "60000000"))
    }
    assert numbers >= {"retry.backoff.ms", "request.timeout.ms", "receive.message.max.bytes"}
    assert numbers == LIMITS.keys() | HARMLESS


@pytest.mark.parametrize(
    ("setting", "value", "may_be"),
    [
        (
            "request.timeout.ms",
            "1",
            "from 1,000 to 15,000, since a transaction has 15 s to go through",
        ),
        ("retry.backoff.max.ms", "300000", f"from 100 to 15,000, {FOUND}"),
        (
            "statistics.interval.ms",
            "1",
            "from 1,000 to 86,400,000, or 0 to turn it off, since nobody reads them here",
        ),
    ],
)
def test_a_number_out_of_bounds_is_refused_with_what_it_may_be(
    refusal: Refusal, setting: str, value: str, may_be: str
) -> None:
    assert (
        refusal(client=f'"{setting}" = {value}')
        == f'kafka.client."{setting}" = {value}: it must be a number {may_be}'
    )


@pytest.mark.parametrize("name", ["batch.size", "linger.ms", "compression.level"])
@pytest.mark.parametrize("value", ["5s", "1e6", "010", "0x10", "5_000", " 5", "5 "])
def test_what_librdkafka_would_read_as_another_number_is_refused(name: str, value: str) -> None:
    assert (unfit(name, value) or "").startswith("it must be a ")
