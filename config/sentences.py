"""What validation found wrong, as sentences: the setting, its value, the cure."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from config.settings import Settings, submodel
from config.values import listed, nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

_SECRET: Final = re.compile(
    r"pass|pwd|secret|token|credential|jaas|private|oauth|\.pem|ssl_key", re.IGNORECASE
)
_USER: Final = re.compile(r"//[^/@\s]*@")
_WIDTH: Final = 80
_EXPECTED: Final = {
    "string_type": "it must be text in quotes",
    "string_sub_type": "it must be text in quotes",
    "string_unicode": "it must be UTF-8 text",
    "model_type": "it must be a table",
    "model_attributes_type": "it must be a table",
    "dict_type": "it must be a table",
    "path_type": "it must be the path of a file, in quotes",
}

Location = tuple[int | str, ...]


def describe(
    error: ValidationError,
    given: Mapping[str, Any],
    variables: Mapping[tuple[str, ...], str],
    asked: Collection[Location] = (),
) -> list[str]:
    """Return one sentence per mistake.

    Parameters
    ----------
    error
        What validation found.
    given
        The values that were validated.
    variables
        The path of each setting that a variable gave, with the variable's name.
    asked
        Settings that were asked for already: nothing is said of them where they are missing.
    """
    found = error.errors(include_url=False)
    # A misspelled name is both unknown and missing: the sentence that asks for it says all.
    meant = {
        path
        for one in found
        if one["type"] == "extra_forbidden" and (path := nearby(one["loc"])) is not None
    }.union(asked)
    return [
        _sentence(one, given, variables)
        for one in found
        if one["type"] != "missing" or one["loc"] not in meant
    ]


def _sentence(
    error: ErrorDetails, given: Mapping[str, Any], variables: Mapping[tuple[str, ...], str]
) -> str:
    context = error.get("ctx", {})
    location: Location = (*error["loc"], *context.get("at", ()))
    setting = where(location, given)
    for length in range(len(location), 0, -1):
        if variable := variables.get(tuple(str(part) for part in location[:length])):
            setting += f" (from {variable})"
            break
    if error["type"] == "missing":
        return f"{setting} is missing: {_how_to_set(location)}"
    value = shown(_at(given, location), location)
    if error["type"] == "extra_forbidden":
        if location[:2] == ("kafka", "security"):
            value = "(not shown)"
        return f"{setting} = {value}: there is no such setting: {suggest(location)}"
    why = context.get("why") or _EXPECTED.get(error["type"]) or error["msg"]
    return f"{setting} is missing: {why}" if value is None else f"{setting} = {value}: {why}"


def where(location: Location, given: Mapping[str, Any]) -> str:
    """Return the dotted name of a setting; a monitor goes by its name, else by its number."""
    if location[0] != "monitor" or len(location) == 1 or not isinstance(location[1], int):
        return _dotted(location)
    name = _at(given, (*location[:2], "name"))
    known = isinstance(name, str) and name.isprintable()
    monitor = f'monitor "{name[:64]}"' if known else f"monitor number {location[1] + 1}"
    return f"{monitor}: {_dotted(location[2:])}" if len(location) > 2 else monitor  # noqa: PLR2004 -- ("monitor", position)


def _dotted(location: Location) -> str:
    text = ""
    for part in location:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            plain = re.fullmatch(r"[A-Za-z0-9_-]+", part)
            text += ("." if text else "") + (part if plain else json.dumps(part[:_WIDTH]))
    return text


def _at(given: Any, location: Location) -> Any:
    """Return what was given at `location`, or None."""
    if not location:
        return given
    part, *rest = location
    if isinstance(given, dict):
        if part in given:
            return _at(given[part], tuple(rest))
        if isinstance(part, str) and "." in part:
            # librdkafka's dotted names may stand as nested tables.
            return _at(given, (*part.split(".", 1), *rest))
    if isinstance(given, list | tuple) and isinstance(part, int) and part < len(given):
        return _at(given[part], tuple(rest))
    return None


def shown(value: Any, location: Location) -> str | None:
    """Return `value` for a person, cut to one line; nothing that may be secret."""
    if value is None:
        return None
    path_of_secret = location[-1] == "password_file" and isinstance(value, str)
    if not path_of_secret and any(map(_secret, location)):
        return "(not shown)"
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        text = f"(a {type(value).__name__})"
    if _SECRET.search(text) and (not isinstance(value, str) or value.lstrip()[:1] in {"{", "["}):
        return "(not shown)"
    text = _USER.sub("//(not shown)@", text).encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}..."


def _secret(name: int | str) -> bool:
    """Tell whether `name` sounds like a secret, mistyped or not."""
    if isinstance(name, int):
        return False
    last = name.rpartition("__")[2]
    return bool(_SECRET.search(name)) or nearest(last, ["password"]) is not None


def suggest(location: Location) -> str:
    """Return which setting was meant by the unknown one at `location`."""
    section = tuple(part for part in location[:-1] if isinstance(part, str))
    unknown = str(location[-1])
    if (meant := nearby(location)) is not None:
        return f"did you mean {_dotted((*section, str(meant[-1])))}?"
    for path in _paths(Settings):
        if path[-1] == unknown:
            return f"did you mean {_dotted(path)}?"
    kind = "sections" if not section else "settings"
    return f"the {kind} here are {listed(_beside(location))}"


def nearby(location: Location) -> Location | None:
    """Return the setting beside the unknown one at `location` that is most like it, if any is."""
    near = nearest(str(location[-1]), _beside(location))
    return None if near is None else (*location[:-1], near)


def _beside(location: Location) -> Iterable[str]:
    """Return the settings that there are in the section of the one at `location`."""
    model: Any = Settings
    for part in location[:-1]:
        if isinstance(part, str):
            model = submodel(model, part)
    known: Iterable[str] = model.model_fields
    return known


def _paths(model: type[BaseModel], prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name in model.model_fields:
        yield (*prefix, name)
        if (below := submodel(model, name)) is not None:
            yield from _paths(below, (*prefix, name))


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_toml(part)}" for name, part in value.items()) + " }"
    return json.dumps(value)


def _how_to_set(location: Location) -> str:
    """Return how to give a setting that is missing."""
    *section, name = location
    model: Any = Settings
    for part in section:
        if isinstance(part, str):
            model = submodel(model, part)
    examples = model.model_fields[name].examples
    if location == ("monitor",):
        return "add a [[monitor]] with name, window and metrics"
    if examples is None:
        below = submodel(model, str(name))
        required = (
            [] if below is None else [n for n, f in below.model_fields.items() if f.is_required()]
        )
        return f"add it with {listed(required)}" if required else "give it"
    example = f"such as {_toml(examples[0])}"
    if "monitor" in location:
        return f"give it, {example}"
    variable = "__".join(("ROCSTREAM", *(str(part).upper() for part in location)))
    return f"give it, {example}, in the file or as {variable}"
