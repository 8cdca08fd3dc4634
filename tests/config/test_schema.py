"""The examples, the JSON Schema and the table of metrics."""

from __future__ import annotations

import tomllib
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from certificates import Authority

import config
from config.settings import submodel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EXAMPLES = sorted(Path(str(files("config") / "examples")).glob("*.toml"))
WINDOW = {"kind": "count", "size": 10, "slide": 1}


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = config.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_there_are_the_examples_that_the_documents_name() -> None:
    assert [path.stem for path in EXAMPLES] == ["fraud", "minimal"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_load_and_fit_the_schema(
    path: Path, validator: jsonschema.Draft202012Validator
) -> None:
    assert config.load(path, {}).monitors
    validator.validate(tomllib.loads(path.read_text()))


def test_what_is_commented_out_in_the_example_loads_too(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    text = next(path for path in EXAMPLES if path.stem == "fraud").read_text()
    lines = []
    for line in text.splitlines():
        bare = line.removeprefix("# ")
        is_setting = bare.split(" = ")[0].isidentifier() and " = " in bare
        lines.append(bare if is_setting or bare == "[kafka.security]" else line)
    text = "\n".join(lines)
    authority = Authority(tmp_path / "ca")
    text = text.replace("/etc/ssl/kafka/ca.pem", str(authority.certificate))
    text = text.replace("/run/secrets/kafka", str(file))
    path = tmp_path / "job.toml"
    path.write_text(text)
    found = config.load(path, {})
    assert found.kafka.security.protocol == "SASL_SSL"
    assert found.kafka.client_rack == "eu-west-1a"
    assert found.event.weight == ("amount",)


def _job(**changed: Any) -> dict[str, Any]:
    return {
        "kafka": {"bootstrap_servers": "a:1", "group": "g"},
        "topics": {"events": "e", "updates": "u", "rejected": "r"},
        "monitor": [{"name": "m", "window": WINDOW}],
        **changed,
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"kafak": {}},
        {"kafka": {"group": "g"}},
        {"monitor": []},
        {"monitor": [{"name": "m", "window": {**WINDOW, "kind": "time"}}]},
        {"monitor": [{"name": "m", "window": {**WINDOW, "size": 0}}]},
        {"monitor": [{"name": "m", "window": {**WINDOW, "size": 1.5}}]},
        {"monitor": [{"name": "m", "window": WINDOW, "metrics": ["acu"]}]},
        {"monitor": [{"name": "m", "window": WINDOW, "metrics": ["h", "h"]}]},
        {"monitor": [{"name": "m", "window": WINDOW, "h": {"alpha": 0}}]},
        {"monitor": [{"name": "a b", "window": WINDOW}]},
        {"monitor": [{"name": "m", "window": WINDOW, "key_ttl": 3600}]},
        {"monitor": [{"name": "m", "window": WINDOW, "key_ttl": "1 week"}]},
        {"monitor": [{"name": "m", "window": WINDOW, "key_limit": 0}]},
        {"event": {"max_ahead": 3600}},
        {"event": {"max_ahead": "1 week"}},
        {"event": {"labels": {"a": 2}}},
        {"event": {"score": 1}},
        {"log": {"level": "loud"}},
    ],
    ids=str,
)
def test_the_schema_refuses_what_loading_refuses(
    validator: jsonschema.Draft202012Validator, wrong: dict[str, Any]
) -> None:
    validator.validate(_job())
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(_job(**wrong))


def test_the_schema_takes_both_bounds_of_keys(
    validator: jsonschema.Draft202012Validator, load: Callable[..., config.Settings]
) -> None:
    bounds = {"key_ttl": "1.5h", "key_limit": 1_000_000}
    validator.validate(_job(monitor=[{"name": "m", "window": WINDOW, **bounds}]))
    lines = (
        'name = "m"\nwindow = { kind = "count", size = 10, slide = 1 }\n'
        'key_ttl = "1.5h"\nkey_limit = 1_000_000'
    )
    (monitor,) = load(monitor=lines).monitors
    assert (monitor.key_ttl, monitor.key_limit) == (timedelta(minutes=90), 1_000_000)
    assert monitor.model_dump(mode="json")["key_ttl"] == "90m"


def test_the_schema_tells_defaults_as_a_person_writes_them() -> None:
    tables = config.schema()["$defs"]
    event = tables["EventSettings"]["properties"]
    assert event["key"]["default"] == "$key"
    assert event["score"]["default"] == "score"
    assert event["max_ahead"]["default"] == "1h"
    assert tables["KafkaSettings"]["properties"]["commit_interval"]["default"] == "100ms"
    assert tables["Monitor"]["properties"]["metrics"]["default"] == ["auc", "h"]


def test_every_default_of_the_schema_fits_it() -> None:
    schema = config.schema()
    for table in schema["$defs"].values():
        for rule in table["properties"].values():
            if "default" in rule:
                jsonschema.validate(rule["default"], {**rule, "$defs": schema["$defs"]})


def test_every_metric_of_the_table_can_be_asked_for(load: Callable[..., config.Settings]) -> None:
    for name, metric in config.METRICS.items():
        lines = (
            f'name = "m"\nwindow = {{ kind = "count", size = 1, slide = 1 }}\nmetrics = ["{name}"]'
        )
        assert load(monitor=lines).monitors[0].metrics == (name,)
        assert metric.low < metric.high
        assert metric.description
        assert all(_is_setting(path) for path in metric.needs)


def _is_setting(path: str) -> bool:
    model: Any = config.Monitor
    *above, name = path.split(".")
    for part in above:
        model = submodel(model, part)
    return name in model.model_fields


def _leaves(model: Any, prefix: str = "") -> Iterator[str]:
    for name in model.model_fields:
        below = submodel(model, name)
        yield from [f"{prefix}{name}"] if below is None else _leaves(below, f"{prefix}{name}.")


def test_the_example_shows_every_setting() -> None:
    text = next(path for path in EXAMPLES if path.stem == "fraud").read_text()
    shown_otherwise = {"kafka.security.cert_file", "kafka.security.key_file"}
    defaults = {"event.numbers_as_text"}
    for leaf in set(_leaves(config.Settings)) - shown_otherwise - defaults:
        assert leaf.rpartition(".")[2] in text, leaf
