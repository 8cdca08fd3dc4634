"""Every metric that a monitor can publish: the one table that declares their names."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Metric(NamedTuple):
    """What a metric tells and the range it never leaves.

    Parameters
    ----------
    description
        One sentence for people.
    low, high
        The range, both ends included.
    needs
        The settings of the monitor that it depends on; its update repeats them.
    """

    description: str
    low: float
    high: float
    needs: tuple[str, ...] = ()


METRICS: Final[Mapping[str, Metric]] = MappingProxyType(
    {
        "auc": Metric(
            "area under the ROC curve: the probability that a positive scores above a negative, "
            "ties counting one half",
            0.0,
            1.0,
        ),
        "h": Metric(
            "H-measure: the share of the expected loss that the scores save under severities "
            "of a Beta distribution",
            0.0,
            1.0,
            needs=("h.alpha", "h.beta"),
        ),
    }
)
