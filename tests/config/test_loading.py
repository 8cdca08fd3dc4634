"""From a file and variables to settings."""

from __future__ import annotations

import contextlib
import copy
import json
import pickle
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pydantic
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import config

if TYPE_CHECKING:
    from collections.abc import Callable

VARIABLES = {
    "ROCSTREAM__KAFKA__BOOTSTRAP_SERVERS": "a:1, b:2",
    "ROCSTREAM__KAFKA__GROUP": "g",
    "ROCSTREAM__TOPICS__EVENTS": "e",
    "ROCSTREAM__TOPICS__UPDATES": "u",
    "ROCSTREAM__TOPICS__REJECTED": "r",
    "ROCSTREAM__MONITOR": '[{"name": "v", "window": {"kind": "count", "size": 5, "slide": 1}}]',
}


def test_defaults_are_those_of_the_documents(load: Callable[..., config.Settings]) -> None:
    found = load()
    assert found.kafka.bootstrap_servers == ("localhost:9092",)
    assert found.kafka.client_id == "rocstream"
    assert found.kafka.client_rack is None
    assert found.kafka.group_instance_id is None
    assert found.kafka.commit_interval == timedelta(milliseconds=100)
    assert found.kafka.security.protocol == "PLAINTEXT"
    assert dict(found.kafka.client) == {}
    assert found.topics.start == "earliest"
    assert found.event.key is config.Own.KEY
    assert found.event.score == ("score",)
    assert found.event.label == ("label",)
    assert found.event.time is config.Own.TIMESTAMP
    assert found.event.weight is None
    assert dict(found.event.labels) == {}
    assert found.event.time_unit == "ms"
    assert found.event.numbers_as_text is False
    assert found.event.max_ahead == timedelta(hours=1)
    assert (found.log.level, found.log.format) == ("info", "auto")
    assert found.monitors[0].metrics == ("auc", "h")
    assert (found.monitors[0].h.alpha, found.monitors[0].h.beta) == (2, 2)


def test_integers_of_the_h_measure_stay_integers(load: Callable[..., config.Settings]) -> None:
    window = 'name = "m"\nwindow = { kind = "count", size = 1, slide = 1 }\n'
    h = load(monitor=f"{window}h = {{ alpha = 3, beta = 1.5 }}").monitors[0].h
    assert (type(h.alpha), type(h.beta)) == (int, float)


def test_settings_are_frozen_and_can_be_copied(load: Callable[..., config.Settings]) -> None:
    found = load(event="labels = { fraud = 1, ok = 0 }")
    with pytest.raises(pydantic.ValidationError):
        found.kafka.group = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        found.event.labels["fraud"] = 0  # type: ignore[index]
    assert copy.deepcopy(found) == found
    assert pickle.loads(pickle.dumps(found)) == found  # noqa: S301 -- made on the spot


def test_variables_stand_above_the_file(load: Callable[..., config.Settings]) -> None:
    found = load(
        {
            "ROCSTREAM__KAFKA__GROUP": "other",
            "ROCSTREAM__KAFKA__COMMIT_INTERVAL": "10ms",
            "ROCSTREAM__TOPICS__PARTITIONS": "7",
            "ROCSTREAM__EVENT__NUMBERS_AS_TEXT": "true",
            "ROCSTREAM__EVENT__WEIGHT": "amount",
            "ROCSTREAM__EVENT__LABELS": '{"Fraud": 1, "ok": 0}',
            "UNRELATED": "x",
            "ROCSTREAM_ENGINE": "reference",
        },
        event='weight = "w"',
    )
    assert found.kafka.group == "other"
    assert found.kafka.bootstrap_servers == ("localhost:9092",)
    assert found.kafka.commit_interval == timedelta(milliseconds=10)
    assert found.topics.partitions == 7
    assert found.event.numbers_as_text is True
    assert found.event.weight == ("amount",)
    assert dict(found.event.labels) == {"Fraud": 1, "ok": 0}


def test_a_variable_replaces_the_list_of_monitors(load: Callable[..., config.Settings]) -> None:
    found = load({"ROCSTREAM__MONITOR": VARIABLES["ROCSTREAM__MONITOR"]})
    assert [monitor.name for monitor in found.monitors] == ["v"]


def test_a_variable_can_give_a_whole_section(load: Callable[..., config.Settings]) -> None:
    found = load({"ROCSTREAM__LOG": '{"level": "debug"}'}, log='format = "json"')
    assert (found.log.level, found.log.format) == ("debug", "json")


def test_variables_alone_are_enough() -> None:
    found = config.load(None, VARIABLES)
    assert found.kafka.bootstrap_servers == ("a:1", "b:2")
    assert found.monitors[0].name == "v"


def test_the_processs_own_variables_are_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    assert config.load(None).kafka.group == "g"


def test_only_the_variables_given_are_read(
    load: Callable[..., config.Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCSTREAM__KAFKA__GROUP", "of-the-process")
    assert load({}).kafka.group == "g"


def test_text_that_looks_like_json_stays_text_where_text_is_meant(
    load: Callable[..., config.Settings],
) -> None:
    security = 'protocol = "SASL_PLAINTEXT"\nmechanism = "PLAIN"\nusername = "me"'
    found = load({"ROCSTREAM__KAFKA__SECURITY__PASSWORD": "{abc"}, security=security)
    assert found.kafka.security.password is not None
    assert found.kafka.security.password.get_secret_value() == "{abc"
    assert load({"ROCSTREAM__EVENT__SCORE": "[x"}).event.score == ("[x",)


def test_the_weight_none_is_no_weight(load: Callable[..., config.Settings]) -> None:
    assert load(event='weight = "none"').event.weight is None
    assert load(event="weight = '\"none\"'").event.weight == ("none",)


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    example = Path(config.__file__).parent / "examples" / "minimal.toml"
    path = tmp_path / "job.toml"
    path.write_bytes(b"\xef\xbb\xbf" + example.read_bytes())
    assert config.load(path, {}) == config.load(example, {})


def test_files_that_cannot_be_read_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"

    def refusal(content: bytes | None = None, at: Path = path) -> str:
        if content is not None:
            at.write_bytes(content)
        with pytest.raises(config.SettingsError) as caught:
            config.load(at, {})
        return str(caught.value)

    assert refusal() == f"{path}: there is no such file: give one with -c FILE"
    assert refusal(at=tmp_path) == f"{tmp_path} is a directory: give the file in it"
    assert refusal(b"[kafka]\ngroup = \n") == (
        f"{path}: the file is not valid TOML: Invalid value (at line 2, column 9)"
    )
    assert refusal(b"[kafka]\n# caf\xe9\n") == f"{path}: line 2 is not UTF-8: save it as UTF-8"
    assert refusal(b"#" * 1_000_001) == (
        f"{path}: the file is larger than 1,000,000 bytes: is it a settings file?"
    )
    assert "not valid TOML" in refusal(b"x = " + b"[" * 100_000)
    assert "not valid TOML" in refusal(b"x = " + b"9" * 5_000)
    assert refusal(at=path / "below").endswith("the file cannot be read: Not a directory")
    assert "the file cannot be read" in refusal(at=Path("\0"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(
            st.sampled_from(["kafka", "group", "name", "window", "size", "client", "_env_file"])
            | st.text(max_size=8),
            below,
            max_size=4,
        )
    ),
    max_leaves=12,
)
NAMES = ["KAFKA", "KAFKA__CLIENT", "KAFKA__SECURITY", "EVENT", "EVENT__LABELS", "MONITOR", "LOG"]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(NAMES), JSON)
def test_whatever_a_variable_holds_the_answer_is_settings_or_a_sentence(
    name: str, value: object
) -> None:

    with contextlib.suppress(config.SettingsError):
        config.load(None, {**VARIABLES, f"ROCSTREAM__{name}": json.dumps(value)})


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(codec="utf-8"), max_size=12), st.text(max_size=12))
def test_whatever_a_variable_is_called_the_answer_is_settings_or_a_sentence(
    name: str, value: str
) -> None:
    with contextlib.suppress(config.SettingsError):
        config.load(None, {**VARIABLES, f"ROCSTREAM__{name}": value})


def test_names_of_the_settings_library_itself_are_unknown_names(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text('_env_file = "x"\n_cli_parse_args = true\n')
    with pytest.raises(config.SettingsError, match=r"_env_file = .*there is no such setting"):
        config.load(path, VARIABLES)
