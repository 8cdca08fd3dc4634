"""The one table of what windows read at their slides: a name, and how it is read off a ROC."""

from __future__ import annotations

import difflib
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Reader = Callable[[Any, float, float], float]

# Of a Confusion, by threshold: "f1@0.5".
AT_THRESHOLDS = ("accuracy", "precision", "recall", "f1", "kappa", "mcc")

# What the window knows, not its ROC.
OF_WINDOWS = ("events", "start", "end")


class _Readers(dict[str, "Reader"]):
    """Readers by name; those at thresholds are made when asked for."""

    def __missing__(self, name: str) -> Reader:
        metric, at, text = name.partition("@")
        if not at or metric not in AT_THRESHOLDS:
            raise KeyError(name)
        try:
            threshold = float(text)
        except ValueError:
            raise KeyError(name) from None
        if math.isnan(threshold):
            raise KeyError(name)
        return lambda roc, _alpha, _beta: float(getattr(roc.confusion(threshold), metric))


READERS = _Readers(
    auc=lambda roc, _alpha, _beta: roc.auc(),
    h=lambda roc, alpha, beta: roc.h_measure(alpha, beta),
    positives=lambda roc, _alpha, _beta: roc.positives,
    negatives=lambda roc, _alpha, _beta: roc.negatives,
    auc_low=lambda roc, _alpha, _beta: roc.auc_interval()[0],
    auc_high=lambda roc, _alpha, _beta: roc.auc_interval()[1],
    auc_strict=lambda roc, _alpha, _beta: roc.ties().strict,
    tie_mass=lambda roc, _alpha, _beta: roc.ties().tied,
    tie_bound=lambda roc, _alpha, _beta: roc.ties().bound,
    gini=lambda roc, _alpha, _beta: roc.gini(),
    auch=lambda roc, _alpha, _beta: roc.auch(),
    ks=lambda roc, _alpha, _beta: roc.ks(),
    mer=lambda roc, _alpha, _beta: roc.mer(),
    brier=lambda roc, _alpha, _beta: roc.cost_area("brier"),
    cost_optimal=lambda roc, _alpha, _beta: roc.cost_area("optimal"),
    cost_rate_driven=lambda roc, _alpha, _beta: roc.cost_area("rate-driven"),
)


def check_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names as a tuple.

    Raises
    ------
    ValueError
        When one is unknown; it names the nearest known one.

    Examples
    --------
    >>> check_names(["auc", "f1@0.5"])
    ('auc', 'f1@0.5')
    >>> check_names(["aucc"])
    Traceback (most recent call last):
    ValueError: there is no reading 'aucc', did you mean 'auc'?
    """
    checked = tuple(names)
    known = (*READERS, *OF_WINDOWS, *(f"{metric}@0.5" for metric in AT_THRESHOLDS))
    for name in checked:
        if name in OF_WINDOWS:
            continue
        try:
            READERS[name]
        except (KeyError, AttributeError):
            near = difflib.get_close_matches(str(name), known, n=1)
            hint = f", did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"there is no reading {name!r}{hint}") from None
    return checked
