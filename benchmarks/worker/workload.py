"""The events that every contestant reads: seeded binormal scores, spread evenly over keys."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import orjson
from scipy.special import ndtr
from scipy.stats import rankdata

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Workload:
    """Scored and labelled events, the same for the same parameters.

    Scores of positives are normal around 1, those of negatives around 0, both with deviation 1,
    mapped to (0, 1); ties are as rare as 10 decimals make them.

    Parameters
    ----------
    events : int
        How many.
    keys : int
        Events go to keys in turn of a seeded draw, each equally likely.
    size, slide : int
        The count window, in events of a key.
    prevalence : float
        Share of positives.
    seed : int
        Of the generator.
    per_record : int
        Events in one record: more than one makes columnar records, each of one key.
    """

    events: int
    keys: int = 100
    size: int = 10_000
    slide: int = 100
    prevalence: float = 0.2
    seed: int = 20_250_101
    per_record: int = 1

    def first(self, events: int) -> Workload:
        """Return the workload of the first `events` events only (drawn anew, same distribution)."""
        return replace(self, events=events)

    @cached_property
    def columns(
        self,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.uint8]]:
        """Key numbers, scores and labels, one entry per event."""
        random = np.random.default_rng(self.seed)
        keys = random.integers(self.keys, size=-(-self.events // self.per_record))
        keys = np.repeat(keys, self.per_record)[: self.events]
        labels = (random.random(self.events) < self.prevalence).astype(np.uint8)
        scores = np.round(ndtr(random.standard_normal(self.events) + labels), 10)
        return keys, scores, labels

    @staticmethod
    def key(number: int) -> str:
        """Return the key's text, `model-07` for 7."""
        return f"model-{number:02d}"

    def messages(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield key and JSON value of each record, about 75 bytes of value for a single event."""
        keys, scores, labels = self.columns
        names = [self.key(number).encode() for number in range(self.keys)]
        if self.per_record > 1:
            for start in range(0, self.events, self.per_record):
                part = slice(start, start + self.per_record)
                yield (
                    names[keys[start]],
                    orjson.dumps({"score": scores[part].tolist(), "label": labels[part].tolist()}),
                )
            return
        rows = zip(keys.tolist(), scores.tolist(), labels.tolist(), strict=True)
        for number, (key, score, label) in enumerate(rows):
            value = f'{{"id": "event-{number:09d}", "score": {score!r}, "label": {label}}}'
            yield names[key], value.encode()

    @cached_property
    def updates(self) -> dict[str, int]:
        """How many updates each key must get; keys that get none are left out."""
        counts = np.bincount(self.columns[0], minlength=self.keys) // self.slide
        return {self.key(number): int(n) for number, n in enumerate(counts) if n}

    @cached_property
    def last_auc(self) -> dict[str, float]:
        """AUC at the last slide of each key, from the ranks: ties count half."""
        keys, scores, labels = self.columns
        aucs = {}
        order = np.argsort(keys, kind="stable")
        bounds = np.searchsorted(keys[order], np.arange(self.keys + 1))
        for number, (begin, stop) in enumerate(pairwise(bounds)):
            mine = order[begin:stop]
            end = len(mine) // self.slide * self.slide
            inside = mine[max(0, end - self.size) : end]
            if end:
                aucs[self.key(number)] = _auc(scores[inside], labels[inside])
        return aucs


def _auc(scores: npt.NDArray[np.float64], labels: npt.NDArray[np.uint8]) -> float:
    positives = int(labels.sum())
    negatives = len(labels) - positives
    if not positives or not negatives:
        return float("nan")
    ranks = rankdata(scores)[labels == 1].sum()
    return float((ranks - positives * (positives + 1) / 2) / (positives * negatives))
