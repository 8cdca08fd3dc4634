"""Which implementation the public names stand for, and how that is said."""

from __future__ import annotations

import importlib.util
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import engine

SAY = "import engine; print(engine.IMPLEMENTATION, engine.Roc.__module__)"


def run(choice: str | None, code: str = SAY) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if name != "ROCSTREAM_ENGINE"}
    if choice is not None:
        environ["ROCSTREAM_ENGINE"] = choice
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_variable_forces_the_twin_silently() -> None:
    done = run("reference")
    assert done.stdout.split() == ["reference", "engine.reference.roc"]
    assert done.stderr == ""


def test_an_unknown_choice_is_refused_by_name() -> None:
    done = run("fast")
    assert done.returncode != 0
    assert "ROCSTREAM_ENGINE is 'fast'" in done.stderr


def test_without_a_core_the_twin_runs_and_says_so_once() -> None:
    hide = "import sys; sys.modules['engine._core'] = None; "
    done = run(None, hide + SAY + "; import engine.reference; engine.Roc()")
    assert done.stdout.split() == ["reference", "engine.reference.roc"]
    assert done.stderr.count("compiled core was not built") == 1
    forced = run("compiled", hide + SAY)
    assert forced.returncode != 0
    assert "ImportError" in forced.stderr or "ModuleNotFoundError" in forced.stderr


@pytest.mark.skipif(
    importlib.util.find_spec("engine._core") is None and os.environ.get("CI") != "true",
    reason="the compiled core is not built here",
)
def test_the_core_is_the_default_where_it_was_built() -> None:
    for choice in (None, "compiled"):
        done = run(choice)
        assert done.stdout.split()[:1] == ["compiled"]
        assert done.stderr == ""


def test_both_offer_the_same_names() -> None:
    for name in ("Roc", "CountWindow", "TimeWindow", "DecayWindow", "OrdinalRoc"):
        assert callable(getattr(engine, name))
        assert callable(getattr(engine.reference, name))


def test_readings_survive_pickling_and_refuse_unknown_names() -> None:
    readings = engine.Readings(["auc"], [np.array([0.5])])
    again = pickle.loads(pickle.dumps(readings))  # noqa: S301 - our own bytes
    assert again.names == ("auc",)
    assert again.auc.tolist() == readings[0].tolist() == [0.5]
    with pytest.raises(KeyError):
        readings["h"]
    with pytest.raises(AttributeError):
        _ = readings.h
    with pytest.raises(ValueError, match="names"):
        engine.Readings(["auc", "h"], [np.array([0.5])])
