"""The demo's events: real scores of real models, over and over, with one model going bad.

``sample.jsonl.gz`` holds the scores (see SAMPLE.md for where they come from). `stream` plays them
back without end; what it yields is the same each time.
"""

from __future__ import annotations

import functools
import gzip
import json
import random
from importlib.resources import files
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

FAILING: Final = "phishing-forest"
"""The key that goes bad: the best model of the sample, so that its fall is plain to see."""

HEALTHY_EVENTS: Final = 1_500
"""Events of the failing key before it begins to fail."""

FAILING_EVENTS: Final = 5_000
"""Events over which the share of wrong scores grows from none to `WORST`."""

WORST: Final = 0.9


class ScoredEvent(NamedTuple):
    """One score of one model for one page, and what the page was."""

    key: str
    score: float
    label: int


@functools.cache
def sample() -> dict[str, list[ScoredEvent]]:
    """Return the sample's events by key, in the order in which they were scored."""
    packed = files(__name__).joinpath("sample.jsonl.gz").read_bytes()
    found: dict[str, list[ScoredEvent]] = {}
    for line in gzip.decompress(packed).splitlines():
        event = ScoredEvent(**json.loads(line))
        found.setdefault(event.key, []).append(event)
    return found


def stream(seed: int = 7) -> Iterator[ScoredEvent]:
    """Yield events without end, the keys in turn.

    Each key plays its scores back pass after pass, shuffled anew for each, so that its readings
    stay about where they are. Of the key `FAILING` a growing share of events carries the score of
    another page, as when a join upstream goes wrong: the scores look as ever and mean less and
    less.

    Parameters
    ----------
    seed
        Of the shuffles and of who gets a wrong score; one seed, one stream.
    """
    by_key = sample()
    passes = [_passes(events, f"{seed} {key}") for key, events in by_key.items()]
    wrong = random.Random(f"{seed} wrong scores")  # noqa: S311 - not for secrets
    others = [event.score for event in by_key[FAILING]]
    failing_seen = 0
    while True:
        for events in passes:
            event = next(events)
            if event.key == FAILING:
                failing_seen += 1
                if wrong.random() < wrong_share(failing_seen):
                    event = event._replace(score=wrong.choice(others))
            yield event


def wrong_share(events: int) -> float:
    """Return the share of wrong scores that the failing key has after so many of its events."""
    return WORST * min(max(events - HEALTHY_EVENTS, 0) / FAILING_EVENTS, 1.0)


def _passes(events: list[ScoredEvent], seed: str) -> Iterator[ScoredEvent]:
    shuffle = random.Random(seed)  # noqa: S311 - not for secrets
    events = list(events)
    while True:
        shuffle.shuffle(events)
        yield from events
