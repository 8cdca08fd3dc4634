"""The JSON Schema of an event says what the parser does."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from config import EventSettings
from worker.events import Parser, schema

NOW = 1_764_460_000_000
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "paths": {"key": "key", "score": "m.score", "time": "time", "weight": "w"},
    "map": {"labels": {"fraud": 1, "ok": 0}},
    "numbers": {"labels": {"2": 1, "1": 0}, "numbers_as_text": True},
    "time": {"time": "meta.ts", "time_unit": "s"},
}


@dataclass(frozen=True)
class Record:
    value: bytes
    offset: int = 0
    key: bytes = b"k"
    timestamp: int = NOW


PATHS = {"key": "k", "m": {"score": 1}, "label": 0, "time": NOW, "w": 2}
GOOD: list[tuple[str, Any]] = [
    ("default", {"score": 0.83, "label": 1}),
    ("default", {"score": 1, "label": True, "more": [{}]}),
    ("default", {"score": 1, "label": 1.0}),
    ("default", {"score": 0.83, "label": None}),
    ("default", {"score": 0.83}),
    ("default", {"score": [0.83, 1], "label": [1, None]}),
    ("default", {"heartbeat": True, "time": NOW}),
    ("default", {"heartbeat": True}),
    ("paths", PATHS),
    ("paths", {**PATHS, "key": 2**64 - 1, "w": 0}),
    ("paths", {**PATHS, "m": {"score": [1, 2]}, "label": [0, 1], "w": [1, 2]}),
    ("paths", {**PATHS, "m": {"score": [1, 2]}, "label": [0, 1], "time": [NOW, 0]}),
    ("paths", {"heartbeat": True, "time": NOW}),
    ("map", {"score": 0.5, "label": "fraud"}),
    ("map", {"score": 0.5, "label": 0}),
    ("numbers", {"score": "0.5", "label": "2"}),
    ("numbers", {"score": 0.5, "label": 1}),
    ("time", {"score": 0.5, "label": 1, "meta": {"ts": NOW // 1000}}),
    ("time", {"heartbeat": True, "meta": {"ts": 5}}),
    ("time", {"heartbeat": True, "time": 5}),
]
BAD: list[tuple[str, Any]] = [
    ("default", []),
    ("default", "text"),
    ("default", {"label": 1}),
    ("default", {"score": "0.5", "label": 1}),
    ("default", {"score": True, "label": 1}),
    ("default", {"score": None, "label": 1}),
    ("default", {"score": 0.5, "label": 2}),
    ("default", {"score": 0.5, "label": "fraud"}),
    ("default", {"score": [0.5], "label": 1}),
    ("default", {"score": [0.5, "x"], "label": [1, 1]}),
    ("default", {"heartbeat": True, "time": "now"}),
    ("paths", {**PATHS, "key": True}),
    ("paths", {**PATHS, "key": ""}),
    ("paths", {**PATHS, "key": "x" * 1025}),
    ("paths", {**PATHS, "key": 2**64}),
    ("paths", {**PATHS, "key": 1.5}),
    ("paths", {**PATHS, "w": -1}),
    ("paths", {**PATHS, "w": "1"}),
    ("paths", {**PATHS, "time": 1.5}),
    ("paths", {**PATHS, "time": -1}),
    ("paths", {**PATHS, "m": {}}),
    ("paths", {**PATHS, "m": 1}),
    ("paths", {name: value for name, value in PATHS.items() if name != "time"}),
    ("paths", {"heartbeat": True}),
    ("map", {"score": 0.5, "label": "Fraud"}),
    ("numbers", {"score": "nan", "label": "2"}),
    ("numbers", {"score": 0.5, "label": 0}),
    ("time", {"score": 0.5, "label": 1, "meta": {"ts": 253_402_300_800}}),
]


def verdicts(name: str, value: Any) -> tuple[bool, bool]:
    event = EventSettings(**SETTINGS[name])
    (batch,) = Parser(event).batches([Record(json.dumps(value).encode())])
    return Draft202012Validator(schema(event)).is_valid(value), not batch.rejections


@pytest.mark.parametrize(("name", "value"), GOOD)
def test_what_the_schema_allows_the_parser_takes(name: str, value: Any) -> None:
    assert verdicts(name, value) == (True, True)


@pytest.mark.parametrize(("name", "value"), BAD)
def test_what_the_schema_forbids_the_parser_refuses(name: str, value: Any) -> None:
    assert verdicts(name, value) == (False, False)


@pytest.mark.parametrize("name", list(SETTINGS))
def test_schema_is_itself_valid_and_plain_json(name: str) -> None:
    made = schema(EventSettings(**SETTINGS[name]))
    Draft202012Validator.check_schema(made)
    assert json.loads(json.dumps(made)) == made


def test_schema_without_settings_is_that_of_the_defaults() -> None:
    assert schema() == schema(EventSettings())
