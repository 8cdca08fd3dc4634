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
    at_thresholds
        Whether it is read at each of the monitor's thresholds: an object by threshold.
    """

    description: str
    low: float
    high: float
    needs: tuple[str, ...] = ()
    at_thresholds: bool = False


def _decision(description: str, low: float = 0.0) -> Metric:
    return Metric(
        f"{description}, a score at or above the threshold counting as positive",
        low,
        1.0,
        needs=("thresholds",),
        at_thresholds=True,
    )


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
        "auc_low": Metric(
            "lower end of the 95 % confidence interval of AUC (DeLong); null with fewer than two "
            "events of a class, or with weights",
            0.0,
            1.0,
        ),
        "auc_high": Metric("upper end of the same interval", 0.0, 1.0),
        "auc_strict": Metric(
            "probability that a positive scores strictly above a negative", 0.0, 1.0
        ),
        "tie_mass": Metric("probability that a positive and a negative tie", 0.0, 1.0),
        "tie_bound": Metric(
            "what ties can make of AUC at the most, from the shares of events in mixed ties alone "
            "(Redolfi)",
            0.0,
            0.5,
        ),
        "gini": Metric("Gini coefficient: 2 AUC - 1", -1.0, 1.0),
        "auch": Metric("area under the convex hull of the ROC curve", 0.5, 1.0),
        "ks": Metric(
            "Kolmogorov-Smirnov distance: the largest gap of the true above the false positive "
            "rate",
            0.0,
            1.0,
        ),
        "mer": Metric("minimum error rate over all thresholds", 0.0, 0.5),
        "brier": Metric(
            "Brier score: mean squared error of scores taken as probabilities; null with a score "
            "outside 0 to 1",
            0.0,
            1.0,
        ),
        "cost_optimal": Metric(
            "area under the optimal cost curve: the expected loss at the best thresholds", 0.0, 0.5
        ),
        "cost_rate_driven": Metric(
            "area under the rate-driven (ROC) cost curve: the expected loss when the rate of "
            "positive decisions is set",
            0.0,
            1.0,
        ),
        "accuracy": _decision("share of right decisions"),
        "precision": _decision("share of positives among positive decisions"),
        "recall": _decision("share of positives that are found"),
        "f1": _decision("harmonic mean of precision and recall"),
        "kappa": _decision("Cohen's kappa: agreement beyond chance", -1.0),
        "mcc": _decision("Matthews correlation coefficient", -1.0),
    }
)
