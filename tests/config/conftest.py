"""A settings file of the test's own, and what loading it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import config

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

KAFKA = 'bootstrap_servers = "localhost:9092"\ngroup = "g"'
TOPICS = 'events = "e"\nupdates = "u"\nrejected = "r"'
MONITOR = 'name = "m"\nwindow = { kind = "count", size = 10, slide = 2 }'


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a settings file: each section's lines come behind those that it must have."""

    def to_file(
        *,
        kafka: str = "",
        security: str = "",
        client: str = "",
        topics: str = "",
        event: str = "",
        log: str = "",
        monitor: str | None = None,
        more: str = "",
    ) -> Path:
        path = tmp_path / "job.toml"
        path.write_text(
            f"[kafka]\n{KAFKA}\n{kafka}\n[kafka.security]\n{security}\n[kafka.client]\n{client}\n"
            f"[topics]\n{TOPICS}\n{topics}\n[event]\n{event}\n[log]\n{log}\n"
            f"[[monitor]]\n{MONITOR if monitor is None else monitor}\n{more}\n"
        )
        return path

    return to_file


@pytest.fixture
def load(write: Callable[..., Path]) -> Callable[..., config.Settings]:
    """Load such a file, with these variables above it."""

    def from_sections(environ: Mapping[str, str] | None = None, **sections: Any) -> config.Settings:
        return config.load(write(**sections), environ or {})

    return from_sections


@pytest.fixture
def refusal(write: Callable[..., Path]) -> Callable[..., str]:
    """Return what loading such a file says against it, without the file's name."""

    def sentence(environ: Mapping[str, str] | None = None, **sections: Any) -> str:
        path = write(**sections)
        with pytest.raises(config.SettingsError) as caught:
            config.load(path, environ or {})
        assert caught.value.exit_code == 2
        prefix = f"{path}: "
        assert str(caught.value).startswith(prefix)
        return str(caught.value).removeprefix(prefix)

    return sentence
