"""Exact AUC and H-measure as metrics of river, for its evaluations and rolling windows.

river is no dependency: where it is missing, importing this says what to install.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from engine._choice import Roc
from engine.events import score_of, weight_of
from engine.readings import check_severity

try:
    from river import base
    from river.metrics.base import BinaryMetric
except ImportError as error:
    raise ImportError(
        "engine.river gives metrics to river, which is not installed: pip install river"
    ) from error

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["AUC", "HMeasure"]


class RocMetric(BinaryMetric):
    """What metrics of an exact ROC share: events come and go by river's contract.

    `update` and `revert` take O(log n). Where a class is absent `get` gives 0.0, as river's ROCAUC.
    """

    def __init__(self, pos_val: Any = True) -> None:  # noqa: FBT002 - river's
        # river's own constructor would add a confusion matrix that nothing reads.
        self.pos_val = pos_val
        self._roc = Roc()
        # (score, label, weight) of all events, once one has a weight other than 1: a Roc knows but
        # the sum at each score, which is enough to copy it only while all weights are 1.
        self._events: Counter[tuple[float, bool, float]] | None = None

    def update(self, y_true: Any, y_pred: float | Mapping[Any, float], w: float = 1.0) -> None:
        """Put an event in; O(log n).

        Parameters
        ----------
        y_true
            Positive when it equals `pos_val`.
        y_pred
            A finite score in any range, or the probability of each class by its value.
        w
            Weight. One of 0 is no event.

        Raises
        ------
        ValueError
            When the score is not finite or the weight negative or not finite; nothing has changed
            then.
        """
        if w == 1.0 and self._events is None:
            # The usual case: the ROC checks what enters.
            self._roc.add(self._score(y_pred), bool(y_true == self.pos_val))
            return
        if w == 0.0:
            return
        score, label = self._event(y_true, y_pred)
        weight = weight_of(w)
        if weight != 1.0 and self._events is None:
            self._events = Counter(self._unit_events())
        self._roc.add(score, label, weight)
        if self._events is not None:
            self._events[score, label, weight] += 1

    def revert(self, y_true: Any, y_pred: float | Mapping[Any, float], w: float = 1.0) -> None:
        """Take out an event that was put in; O(log n).

        Raises
        ------
        KeyError
            When none such is inside; nothing has changed then.
        ValueError
            As for `update`.
        """
        if w == 1.0 and self._events is None:
            self._roc.remove(self._score(y_pred), bool(y_true == self.pos_val))
            return
        if w == 0.0:
            return
        score, label = self._event(y_true, y_pred)
        weight = weight_of(w)
        event = score, label, weight
        if self._events is not None and not self._events[event]:
            raise KeyError(f"no event of score {score!r}, label {int(label)}, weight {weight!r}")
        self._roc.remove(score, label, weight)
        if self._events is not None:
            self._events[event] -= 1
            # Unary plus would copy all of them.
            if not self._events[event]:
                del self._events[event]

    def get(self) -> float:
        """Return the reading; 0.0 while a class is absent."""
        reading = self._read()
        return 0.0 if math.isnan(reading) else reading

    def works_with(self, model: base.Estimator) -> bool:
        """Tell whether a model gives scores, as classifiers and anomaly detectors do."""
        return isinstance(model, (base.Classifier, base.AnomalyDetector, base.AnomalyFilter))

    @property
    def requires_labels(self) -> bool:
        """Scores are asked for, not decisions."""
        return False

    @abstractmethod
    def _read(self) -> float:
        """Read the metric off the ROC; nan while a class is absent."""

    def _score(self, y_pred: Any) -> Any:
        if isinstance(y_pred, dict):
            # A model that has seen no positive yet does not name the class.
            return y_pred.get(self.pos_val, 0.0)
        return y_pred

    def _event(self, y_true: Any, y_pred: float | Mapping[Any, float]) -> tuple[float, bool]:
        return score_of(self._score(y_pred)), bool(y_true == self.pos_val)

    def _unit_events(self) -> dict[tuple[float, bool, float], int]:
        scores, *classes = self._roc._blocks()  # noqa: SLF001 - the ROC's blocks, within the engine
        return {
            (score, bool(label), 1.0): count
            for label, counts in enumerate(classes)
            for score, count in zip(scores.tolist(), counts.tolist(), strict=True)
            if count
        }

    def __getstate__(self) -> dict[str, Any]:
        events = self._unit_events() if self._events is None else self._events
        return {**self.__dict__, "_roc": None, "_events": dict(events)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        events = Counter(state["_events"])
        counts = list(events.values())
        scores, labels, weights = np.array(list(events), float).reshape(-1, 3).T
        self._roc = Roc()
        self._roc.extend(*(np.repeat(part, counts) for part in (scores, labels, weights)))
        self._events = events if (weights != 1.0).any() else None


class AUC(RocMetric):
    """Exact area under the ROC curve, ties counting one half.

    Unlike `river.metrics.ROCAUC` it rounds no score and takes scores of any range; unlike
    `river.metrics.RollingROCAUC` the order in which equal scores came does not matter. It keeps
    every event: give long streams a window, `river.utils.Rolling(AUC, window_size=1000)`.

    Parameters
    ----------
    pos_val
        Value to treat as positive.

    Notes
    -----
    `get` is O(1) while all weights are 1. All about it: `engine.Roc.auc`.

    Examples
    --------
    >>> from river import utils
    >>> metric = AUC()
    >>> for y_true, y_pred in zip([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]):
    ...     metric.update(y_true, y_pred)
    >>> metric
    AUC: 75.00%
    >>> rolling = utils.Rolling(AUC, window_size=2)
    >>> for y_true, y_pred in zip([1, 0, 1, 0], [-3.0, 7.0, 8.5, 8.5]):
    ...     rolling.update(y_true, y_pred)
    >>> rolling.get()
    0.5
    """

    def _read(self) -> float:
        return self._roc.auc()


class HMeasure(RocMetric):
    """H-measure: the share of the expected loss that the scores save (Hand 2009).

    Parameters
    ----------
    alpha, beta
        The relative cost of a false positive is drawn from Beta(alpha, beta).
    pos_val
        Value to treat as positive.

    Raises
    ------
    ValueError
        When alpha or beta is not positive and finite.

    Notes
    -----
    `get` costs what changed since the last one. All about it: `engine.Roc.h_measure`.

    Examples
    --------
    >>> metric = HMeasure()
    >>> for y_true, y_pred in zip([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]):
    ...     metric.update(y_true, y_pred)
    >>> metric
    HMeasure: 50.00%
    """

    def __init__(self, alpha: float = 2.0, beta: float = 2.0, pos_val: Any = True) -> None:  # noqa: FBT002 - river's
        super().__init__(pos_val)
        self.alpha, self.beta = check_severity(alpha, beta)

    def _read(self) -> float:
        return self._roc.h_measure(self.alpha, self.beta)
