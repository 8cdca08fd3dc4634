"""One contract, two implementations: every test that asks for `engine` runs over both."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from types import ModuleType


def _implementations() -> list[str]:
    try:
        importlib.import_module("engine._core")
    except ImportError:
        # In CI the missing core is an error of each test, not a reason to run fewer.
        return ["reference", "compiled"] if os.environ.get("CI") == "true" else ["reference"]
    return ["reference", "compiled"]


@pytest.fixture(scope="session", params=_implementations())
def engine(request: pytest.FixtureRequest) -> ModuleType:
    """The module that holds the implementation under test."""
    modules = {"reference": "engine.reference", "compiled": "engine._core"}
    return importlib.import_module(modules[request.param])


@pytest.fixture(scope="session")
def roc_of(engine: ModuleType) -> Any:
    """Make a Roc of events: `roc_of(scores, labels, weights)`."""

    def make(*columns: Any) -> Any:
        roc = engine.Roc()
        if columns:
            roc.extend(*columns)
        return roc

    return make
