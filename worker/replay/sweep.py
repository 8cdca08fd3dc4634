"""Sweeps: one replay under many settings, and a table that holds them side by side."""

from __future__ import annotations

import copy
import itertools
import math
import tomllib
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic import ValidationError
from rich import box
from rich.table import Table

from config import Monitor
from config.errors import SettingsError
from worker.replay.alerts import earliest
from worker.replay.summary import figure

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from config import Settings
    from worker.replay.alerts import Firing, Watchman
    from worker.replay.series import Recorder

LARGEST: Final = 1_000


class Variant(NamedTuple):
    """One setting of a sweep, and how it differs: ``window.size=1000 h.beta=2``.

    Attributes
    ----------
    name
        Of it; empty for settings as they are.
    settings
        All of them.
    values
        What differs, by setting.
    """

    name: str
    settings: Settings
    values: dict[str, str] = {}  # noqa: RUF012 - never written to


def variants(settings: Settings, sweeps: Sequence[str]) -> list[Variant]:
    """Return every combination of what the sweeps name.

    Parameters
    ----------
    settings
        What the combinations start from.
    sweeps
        Each ``setting=value,value,...``, a setting of the monitors: ``window.size``, ``h.beta``;
        with a monitor's name and a colon before it, of that one alone.

    Raises
    ------
    SettingsError
        For a sweep that names no setting, or values that a monitor cannot have.
    """
    axes = [_axis(text) for text in sweeps]
    names = [name for name, _ in axes]
    for name in names:
        if names.count(name) > 1:
            raise SettingsError(f"--sweep {name} is given twice: give it once, with all values")
    count = math.prod(len(values) for _, values in axes)
    if count > LARGEST:
        raise SettingsError(f"--sweep asks for {count:,} settings: {LARGEST:,} at most")
    found = []
    for chosen in itertools.product(*(values for _, values in axes)):
        pairs = [(name, text, value) for (name, _), (text, value) in zip(axes, chosen, strict=True)]
        name = " ".join(f"{setting}={text}" for setting, text, _ in pairs)
        monitors = settings.monitors
        for setting, _, value in pairs:
            monitors = _changed(monitors, setting, value, name)
        values = {setting: text for setting, text, _ in pairs}
        found.append(Variant(name, settings.model_copy(update={"monitor": monitors}), values))
    return found


def path_of(out: str, variant: Variant) -> str:
    """Return the file of one setting: its name stands before the suffix.

    Examples
    --------
    >>> path_of("out/u.jsonl", Variant("window.size=10 h.beta=2", None))
    'out/u.window.size=10,h.beta=2.jsonl'
    """
    path = Path(out)
    suffix = "".join(path.suffixes[-2:]) if path.name.endswith(".gz") else path.suffix
    stem = path.name.removesuffix(suffix)
    safe = variant.name.replace(" ", ",").replace("/", "_").replace(":", "_")
    return str(path.with_name(f"{stem}.{safe}{suffix}"))


def _axis(text: str) -> tuple[str, list[tuple[str, Any]]]:
    name, equals, values = text.partition("=")
    if not equals or not name.strip() or not values.strip():
        raise SettingsError(
            f'--sweep "{text}": write a setting of the monitors and its values: '
            "window.size=1000,5000,20000"
        )
    texts = [one.strip() for one in values.split(",")]
    for one in texts:
        if texts.count(one) > 1:
            raise SettingsError(f'--sweep "{text}": {one or "an empty value"} stands there twice')
    return name.strip(), [(one, _value(one)) for one in texts]


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _changed(
    monitors: Iterable[Monitor], setting: str, value: Any, name: str
) -> tuple[Monitor, ...]:
    only, colon, path = setting.rpartition(":")
    monitors = tuple(monitors)
    if colon and only not in {monitor.name for monitor in monitors}:
        raise SettingsError(
            f'--sweep {setting}: there is no monitor "{only}": there are '
            f"{', '.join(monitor.name for monitor in monitors)}"
        )
    return tuple(
        monitor if colon and monitor.name != only else _monitor(monitor, path, value, name)
        for monitor in monitors
    )


def _monitor(monitor: Monitor, path: str, value: Any, name: str) -> Monitor:
    given = copy.deepcopy(monitor.model_dump(mode="json"))
    inner: Any = given
    *above, last = path.split(".")
    for part in above:
        inner = inner.get(part) if isinstance(inner, dict) else None
    known = isinstance(inner, dict) and last in inner and not isinstance(inner[last], dict)
    # By its name a monitor is told from the others, in updates and here.
    if not known or path == "name":
        raise SettingsError(
            f"--sweep {path}: there is no such setting of a monitor: sweep window.size, "
            "window.slide, h.alpha, h.beta, key_ttl or key_limit"
        )
    inner[last] = value
    try:
        return Monitor.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise SettingsError(
            f"--sweep: the monitor {monitor.name} cannot have {name}: {where}: {first['msg']}"
        ) from None


def table(found: Sequence[Variant], recorders: Sequence[Recorder]) -> Table:
    """Return the settings side by side: means of the readings over full windows, and their noise.

    Noise is how much a reading moves from one full window to the next (root mean square).
    """
    shown = _headed(found)
    names = _metrics(found)
    for heading in ("updates", *(part for name in names for part in (name, "noise"))):
        shown.add_column(heading, justify="right", no_wrap=True)
    for variant, recorder in zip(found, recorders, strict=True):
        series = list(recorder.series.values())
        row = [f"{sum(one.count for one in series):,}"]
        for name in names:
            row.append(_mean([one.mean(name) for one in series]))
            row.append(_mean([one.noise(name) for one in series]))
        shown.add_row(*variant.values.values(), *row)
    return shown


def alerts(found: Sequence[Variant], recorders: Sequence[Recorder], *, change: bool) -> list[Table]:
    """Return a table per rule: under each setting, when it fired first and how often.

    Parameters
    ----------
    found, recorders
        The settings, and what was recorded of each.
    change
        Whether firings before a change, and the lag behind it, were counted.
    """
    rules = dict.fromkeys(one.rule.text for one in _watchmen(recorders[0]))
    return [_alerts(text, found, recorders, change=change) for text in rules]


def _alerts(
    text: str, found: Sequence[Variant], recorders: Sequence[Recorder], *, change: bool
) -> Table:
    shown = _headed(found)
    shown.title = f"alert {text}"
    shown.title_justify = "left"
    shown.add_column("first at", overflow="fold")
    for heading in ("fired", *(("before", "lag") if change else ())):
        shown.add_column(heading, justify="right")
    if change:
        shown.caption = (
            "before: firings before the change; lag: events of the key from there to the first "
            "firing, the median of the keys that fired"
        )
        shown.caption_justify = "left"
    for variant, recorder in zip(found, recorders, strict=True):
        men = [one for one in _watchmen(recorder) if one.rule.text == text]
        row = [_told(one.first() for one in men), f"{sum(one.count for one in men):,}"]
        if change:
            lags = [lag for one in men for lag in one.behind()]
            row.append(f"{sum(one.early() for one in men):,}")
            row.append(f"{median(lags):,.0f}" if lags else "-")
        shown.add_row(*variant.values.values(), *row)
    return shown


def _headed(found: Sequence[Variant]) -> Table:
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in found[0].values:
        shown.add_column(name, justify="right", no_wrap=True)
    return shown


def _metrics(found: Sequence[Variant]) -> list[str]:
    metrics = dict.fromkeys(
        name for one in found for monitor in one.settings.monitors for name in monitor.metrics
    )
    return [name for name in ("auc", "h") if name in metrics] or list(metrics)[:1]


def _watchmen(recorder: Recorder) -> list[Watchman]:
    return [one for watchmen in recorder.watchmen.values() for one in watchmen]


def _mean(values: Iterable[float]) -> str:
    known = [value for value in values if not math.isnan(value)]
    return figure(fmean(known) if known else None)


def _told(firings: Iterable[Firing | None]) -> str:
    first = earliest(firings)
    return "never" if first is None else f"{first.key}@{first.offset}"
