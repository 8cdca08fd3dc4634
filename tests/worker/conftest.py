"""Fixtures of the worker's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from inmemory import HEAD, MONITOR

import config
from worker.events import native

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def settings_of(tmp_path: Path) -> Callable[..., config.Settings]:
    """Settings from the text of their [[monitor]] and other tables; topics are given."""

    def load(text: str = MONITOR) -> config.Settings:
        path = tmp_path / "rocstream.toml"
        path.write_text(HEAD + text)
        return config.load(path, {})

    return load


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A settings file of a job whose broker is not there."""
    path = tmp_path / "rocstream.toml"
    path.write_text(HEAD.replace(":9092", ":9") + '[event]\nscore = "model.score"\n' + MONITOR)
    return path


@pytest.fixture(params=["compiled", "plain"] if native.COMPILED else ["plain"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are read by the compiled core, then by the loop in Python."""
    if request.param == "plain":
        monkeypatch.setattr(native, "COMPILED", False)
