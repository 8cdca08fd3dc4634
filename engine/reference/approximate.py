"""An AUC that is close enough, read in time that grows with log n only.

Tatti (2018), "Efficient estimation of AUC in a sliding window", groups events so that the head
counts of positives grow by at most a factor within a group. There the groups are kept up as events
come and go; here they are found by binary search when read.
"""
# ruff: noqa: S101 - `_check` asserts the invariants

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sortedcontainers import SortedList

from engine.events import columns_of, label_of, score_of
from engine.readings import check_epsilon
from engine.reference.copies import Copies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class ApproximateRoc(Copies):
    """AUC within a share of epsilon / 2 of a changing multiset of (score, label).

    Parameters
    ----------
    epsilon
        Positive: |estimate - AUC| <= epsilon / 2 * AUC.

    Raises
    ------
    ValueError
        When epsilon is not positive and finite.

    Examples
    --------
    >>> from engine.reference import ApproximateRoc
    >>> roc = ApproximateRoc(0.1)
    >>> roc.extend([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    >>> roc.auc()
    0.75
    """

    __slots__ = ("_classes", "epsilon")

    def __init__(self, epsilon: float) -> None:
        self.epsilon = check_epsilon(epsilon)
        # Scores of the negatives and of the positives, in order, with ranks.
        self._classes: tuple[Any, Any] = (SortedList(), SortedList())

    def __len__(self) -> int:
        """Return how many events are inside; O(1)."""
        return sum(map(len, self._classes))

    @property
    def positives(self) -> int:
        """How many positives are inside; O(1)."""
        return len(self._classes[1])

    @property
    def negatives(self) -> int:
        """How many negatives are inside; O(1)."""
        return len(self._classes[0])

    def add(self, score: float, label: int) -> None:
        """Put an event in; O(log n).

        Raises
        ------
        ValueError
            When the score is not finite or the label no class; nothing has changed then.
        """
        number, place = score_of(score), label_of(label)
        self._change(place, number, self._classes[place].add)

    def remove(self, score: float, label: int) -> None:
        """Take an event out; O(log n).

        Raises
        ------
        KeyError
            When there is none such; nothing has changed then.
        ValueError
            As for `add`.
        """
        number, place = score_of(score), label_of(label)
        try:
            self._change(place, number, self._classes[place].remove)
        except ValueError:
            raise KeyError(f"class {place} has no event at {number!r}") from None

    def _change(self, place: int, score: float, change: Callable[[float], object]) -> None:
        """Add or remove a score of a class; where memory is out for it, it is as it was."""
        scores = self._classes[place]
        before = len(scores)
        try:
            change(score)
        except MemoryError:
            # The list may have been stopped half-way; what it is made of says where.
            held = [each for part in scores._lists for each in part]  # noqa: SLF001 - see above
            if len(held) < before:
                held.append(score)
            elif len(held) > before:
                held.remove(score)
            scores.clear()
            scores.update(held)
            raise

    def extend(self, scores: Iterable[Any], labels: Iterable[Any]) -> None:
        """Put many events in, all or none; O(k log n).

        Raises
        ------
        ValueError
            When an element is bad as for `add`, or the lengths are unequal.
        """
        columns = columns_of(scores, labels)
        fresh = [columns.scores[columns.labels == place].tolist() for place in range(2)]
        if len(columns.scores) * 4 < len(self):
            self._add_each(fresh)
            return
        negatives, positives = (
            SortedList([*held, *more]) for held, more in zip(self._classes, fresh, strict=True)
        )
        self._classes = negatives, positives

    def _add_each(self, fresh: list[list[float]]) -> None:
        """Add scores of each class one by one, all or none."""
        added: list[tuple[int, float]] = []
        try:
            for place, scores in enumerate(fresh):
                for score in scores:
                    self.add(score, place)
                    added.append((place, score))
        except BaseException:
            for place, score in added:
                self.remove(score, place)
            raise

    def auc(self) -> float:
        """AUC within a share of epsilon / 2, by the walk of `_groups`.

        Returns
        -------
        auc
            In [0, 1]; nan while a class is absent.

        Notes
        -----
        O(log(n)^2 / epsilon): a group's negatives see between `high` and `low` positives above
        them, and high <= (1 + epsilon) low; each is taken to see the middle.
        """
        if not self.positives or not self.negatives:
            return math.nan
        twice_u = sum((low + high) * count for low, high, count in self._groups())
        return int(twice_u) / (2 * self.positives * self.negatives)

    def _groups(self) -> list[tuple[int, int, int]]:
        """Group the negatives, from the top: (fewest, most positives above, how many they are).

        A score that several positives share is a group of its own: its negatives see the positives
        above and half of those beside them, exactly; so its range is that sum in both halves.
        """
        negatives, positives = self._classes
        groups: list[tuple[int, int, int]] = []
        above = 0
        unseen = len(negatives)
        while above < len(positives):
            reach = max(above + 1, math.floor((1.0 + self.epsilon) * above))
            score = positives[-min(reach, len(positives))]
            start = positives.bisect_left(score)
            end = positives.bisect_right(score)
            between = negatives.bisect_right(score)
            groups.append((above, len(positives) - end, unseen - between))
            unseen = negatives.bisect_left(score)
            groups.append((len(positives) - end, len(positives) - start, between - unseen))
            above = len(positives) - start
        groups.append((above, above, unseen))
        return groups

    def _check(self) -> None:
        """Assert the invariants."""
        for scores in self._classes:
            scores._check()  # noqa: SLF001 - invariants of a part
        if not self.positives:
            return
        groups = self._groups()
        assert sum(count for _, _, count in groups) == self.negatives
        for low, high, _ in groups[::2]:
            assert low <= high <= max(low, (1.0 + self.epsilon) * low)
