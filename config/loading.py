"""Reads the settings: one TOML file, and above it the variables ROCSTREAM__SECTION__NAME."""

from __future__ import annotations

import os
import tomllib
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from config import sentences, variables
from config.errors import SettingsError
from config.settings import Settings
from config.values import reason

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LARGEST_FILE: Final = 1_000_000


def load(path: Path | None, environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings in a file, with those that variables give in their place.

    Parameters
    ----------
    path
        A TOML file of at most 1 MB; None: all settings come from variables.
    environ
        The variables, by default the process's own.

    Raises
    ------
    SettingsError
        With a sentence per mistake: the setting, its value, the cure. Secrets are never in it.
    """
    given = {} if path is None else read(path)
    found = variables.read(os.environ if environ is None else environ)
    merged = _merge(given, found.values)
    problems = [*found.problems]
    for name in [name for name in merged if name not in Settings.model_fields]:
        value = merged.pop(name)
        problems.append(
            f"{sentences.where((name,), {})} = {sentences.shown(value, (name,))}: "
            f"there is no such setting: {sentences.suggest((name,))}"
        )
        # What it holds is looked at all the same, under the name that was meant.
        for meant in sentences.nearby((name,)) or ():
            merged.setdefault(str(meant), value)
    for section in ("kafka", "topics"):
        # An empty section has its missing settings named one by one.
        merged.setdefault(section, {})
    settings = None
    try:
        settings = Settings(**merged)
    except ValidationError as error:
        problems += sentences.describe(error, merged, found.names, found.meant)
    if settings is None or problems:
        source = "" if path is None else f"{path}: "
        many = "" if len(problems) == 1 else f"{len(problems)} settings are wrong:\n  "
        # The chained error would hold the values, and with them the secrets.
        raise SettingsError(f"{source}{many}" + "\n  ".join(problems)) from None
    return settings


def read(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file, as they stand.

    Raises
    ------
    SettingsError
        When the file cannot be read, is larger than 1 MB, not UTF-8 or not TOML.
    """
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except FileNotFoundError as error:
        raise SettingsError(f"{path}: there is no such file: give one with -c FILE") from error
    except IsADirectoryError as error:
        raise SettingsError(f"{path} is a directory: give the file in it") from error
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path!s}: the file cannot be read: {reason(error)}") from error
    if len(content) > LARGEST_FILE:
        raise SettingsError(
            f"{path}: the file is larger than {LARGEST_FILE:,} bytes: is it a settings file?"
        )
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise SettingsError(f"{path}: line {line} is not UTF-8: save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path}: the file is not valid TOML: {error}") from error
    except (ValueError, RecursionError) as error:
        raise SettingsError(
            f"{path}: the file is not valid TOML: a number is too long or tables lie too deep"
        ) from error


def _merge(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return `under` with the values of `over` put in, table by table."""
    merged = dict(under)
    for name, value in over.items():
        below = merged.get(name)
        both = isinstance(below, dict) and isinstance(value, dict)
        merged[name] = _merge(below, value) if both else value  # type: ignore[arg-type]  # `both` says so
    return merged
