"""The variables ROCSTREAM__SECTION__NAME, which stand above the settings file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic_settings import EnvSettingsSource

from config.sentences import shown
from config.settings import Settings, submodel
from config.values import FromVariable, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

PREFIX: Final = "ROCSTREAM__"
_TABLES: Final = {("kafka", "client"), ("event", "labels")}


class Found(NamedTuple):
    """What the variables hold.

    Parameters
    ----------
    values
        Nested as the settings are.
    names
        The path of each setting given, with the variable that gave it.
    problems
        Sentences about names that are unknown and values that cannot be read.
    meant
        The paths of the settings that unknown names are most like.
    """

    values: dict[str, Any]
    names: dict[tuple[str, ...], str]
    problems: list[str]
    meant: set[tuple[str, ...]]


def read(environ: Mapping[str, str]) -> Found:
    """Return the settings that `environ` holds."""
    names: dict[tuple[str, ...], str] = {}
    taken: dict[str, FromVariable] = {}
    problems: list[str] = []
    meant: set[tuple[str, ...]] = set()
    for name, value in sorted(environ.items()):
        if not _meant(name):
            continue
        path = _path(name)
        if path is None:
            near = _nearest(name)
            guess = _guess(name) if near is None else f"did you mean {_variable(near)}?"
            problems.append(
                f"the variable {name} = {shown(value, (name,))}: there is no such setting: {guess}"
            )
            if near is not None:
                meant.add(near)
        elif problem := _json_problem(name, value, path):
            problems.append(problem)
        else:
            names[path] = name
            taken[name.lower()] = FromVariable(value)
    return Found(_Source(taken)(), names, problems, meant)


class _Source(EnvSettingsSource):
    """Reads the given variables instead of the process's, and numbers and flags as text."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        super().__init__(Settings)
        self.env_vars = variables

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        """Return lists and tables from JSON; validation tells what else is wrong."""
        del field_name, field
        try:
            return json.loads(value) if _is_json(value) else value
        except ValueError:
            # Where it must be JSON, `read` has refused it.
            return value

    def __call__(self) -> dict[str, Any]:
        values = super().__call__()
        kafka = values.get("kafka")
        if isinstance(kafka, dict) and isinstance(client := kafka.get("client"), dict):
            # No shell takes a dot in a variable's name, and no name allowed here needs both.
            kafka["client"] = {_dotted(name): value for name, value in client.items()}
        return values


def _dotted(name: str) -> str:
    return name if name == "log_level" else name.replace("_", ".")


def _meant(name: str) -> bool:
    """Tell whether a variable is meant for us, also when it is written a little wrong."""
    upper = name.upper()
    return upper.startswith(PREFIX) or (upper.startswith("ROCSTREAM_") and "__" in upper)


def _is_json(value: str) -> bool:
    return value.lstrip()[:1] in {"{", "["}


def _json_problem(name: str, value: str, path: tuple[str, ...]) -> str | None:
    if not _is_json(value) or not _takes_json(path):
        return None
    try:
        json.loads(value)
    except (ValueError, RecursionError) as error:
        at = f" (character {error.pos + 1})" if isinstance(error, json.JSONDecodeError) else ""
        return f"the variable {name} = {shown(value, (name,))}: it is not valid JSON{at}: mend it"
    return None


def _takes_json(path: tuple[str, ...]) -> bool:
    """Tell whether text that begins like JSON must be JSON: an IPv6 address may be a broker's."""
    model: Any = Settings
    for part in path[:-1]:
        model = submodel(model, part) or dict
    if model is dict:
        return False
    return submodel(model, path[-1]) is not None or path in _TABLES


def _path(name: str) -> tuple[str, ...] | None:
    """Return the path of the setting that a variable names, or None when there is none."""
    if name != name.upper() or not name.startswith(PREFIX):
        return None
    if name.startswith(f"{PREFIX}KAFKA__CLIENT__"):
        client = name.removeprefix(f"{PREFIX}KAFKA__CLIENT__").lower()
        return ("kafka", "client", _dotted(client)) if client else None
    return _known().get(name)


def _nearest(name: str) -> tuple[str, ...] | None:
    """Return the setting that an unknown name is most like, if any: its section must be one too."""
    known = _known()
    near = None if _in_no_section(name) else nearest(name, known)
    return None if near is None else known[near]


def _guess(name: str) -> str:
    """Return the cure for a name that is like no setting's."""
    if _in_no_section(name):
        return f"the sections are {', '.join(field.upper() for field in Settings.model_fields)}"
    return f"a name is {PREFIX}SECTION__NAME"


def _in_no_section(name: str) -> bool:
    """Tell whether the section that a name begins with is none, nor nearly one."""
    upper = name.upper()
    section, inner, _ = upper.removeprefix(PREFIX).partition("__")
    known = [field.upper() for field in Settings.model_fields]
    return bool(inner) and upper.startswith(PREFIX) and nearest(section, known) is None


def _variable(path: tuple[str, ...]) -> str:
    return PREFIX + "__".join(path).upper()


def _known() -> dict[str, tuple[str, ...]]:
    return {_variable(path): path for path in _all_paths(Settings)}


def _all_paths(model: type[BaseModel], prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield what a variable can name: sections as JSON, settings, and all monitors at once."""
    for name in model.model_fields:
        yield (*prefix, name)
        if name != "monitor" and (below := submodel(model, name)) is not None:
            yield from _all_paths(below, (*prefix, name))
