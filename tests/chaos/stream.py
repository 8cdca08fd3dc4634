"""The seeded stream of the fault runs: tied scores, columnar records, and every sort of bad one."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterator

KEYS = 14

BAD = (
    b"not json",
    b'{"score": 0.5, "label":',
    b"[1, 2]",
    b'{"score": "0.5", "label": 1}',
    b'{"score": 0.5, "label": 9}',
    b'{"label": 0}',
    b'{"score": [0.1, 0.2], "label": [1]}',
)


class Record(NamedTuple):
    """What is produced; `events` is how many score/label pairs it was made from."""

    key: bytes | None
    value: bytes | None
    events: int


def records(seed: int) -> Iterator[Record]:
    """Yield records without end: the same ones for the same seed."""
    rng = random.Random(seed)
    keys = [b"key-%02d" % number for number in range(KEYS)]
    # One key has a third of everything, and the last one seldom has a positive.
    weights = [KEYS / 2, *([1.0] * (KEYS - 1))]
    while True:
        key = rng.choices(keys, weights)[0]
        kind = rng.random()
        if kind < 0.80:
            yield Record(key, orjson.dumps(_event(rng, key)), 1)
        elif kind < 0.90:
            yield _columnar(rng, key)
        elif kind < 0.94:
            yield Record(key, orjson.dumps({"score": _event(rng, key)["score"]}), 1)
        elif kind < 0.96:
            yield Record(key, None, 1)
        elif kind < 0.97:
            yield Record(rng.choice((None, b"")), b'{"score": 0.25, "label": 1}', 1)
        else:
            yield Record(key, rng.choice(BAD), 1)


def plain(key: bytes) -> Record:
    """Return a good event of a key, to fill it up with."""
    return Record(key, b'{"score": 0.1, "label": 0}', 1)


def _event(rng: random.Random, key: bytes) -> dict[str, float | int]:
    share = 0.004 if key == b"key-%02d" % (KEYS - 1) else 0.3
    label = int(rng.random() < share)
    # One decimal: within a window nearly every score is tied.
    return {"score": round(rng.gauss(label, 1), 1), "label": label}


def _columnar(rng: random.Random, key: bytes) -> Record:
    events = [_event(rng, key) for _ in range(rng.randint(2, 40))]
    scores: list[object] = [event["score"] for event in events]
    labels: list[object] = [event["label"] for event in events]
    if rng.random() < 0.3:
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(events))
            which = rng.randrange(4)
            if which == 0:
                scores[at] = "x"
            elif which == 1:
                labels[at] = 7
            elif which == 2:
                scores[at] = None
            else:
                labels[at] = None
    return Record(key, orjson.dumps({"score": scores, "label": labels}), len(events))
