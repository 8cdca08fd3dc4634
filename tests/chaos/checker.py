"""The independent checker: what a job should have published, worked out from its source alone.

It shares no code with the worker: records are read by the rules of docs/messages.md, windows are
slices, AUC is counted pair by pair in integers, and H is that of `engine.reference`.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from engine import reference

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reading import Seen
    from understanding import Keyed, Source

TOLERANCE = 1e-12
EXAMPLES = 5

KINDS = {
    "lost": "events that a window did not take in",
    "doubled": "events that a window took in twice",
    "missing": "updates that were not published",
    "repeated": "updates published again under the same identity",
    "unexpected": "updates of which no event tells",
    "wrong": "updates with a wrong value in any field",
    "holes": "keys whose seq is not 1, 2, 3, ... without holes",
    "disorder": "keys whose updates stand out of order, or in two partitions",
    "rejections missing": "refused records without a dead letter",
    "rejections repeated": "dead letters published again",
    "rejections unexpected": "dead letters of records that are good",
    "rejections wrong": "dead letters with other bytes, reason or indexes",
}


class Window(NamedTuple):
    """A monitor: its name, and its count window."""

    name: str
    size: int
    slide: int


@dataclass
class Verdict:
    """How often each kind of fault was found, with some of each, and what was compared."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    examples: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    updates: int = 0
    rejections: int = 0
    with_h: int = 0

    @property
    def good(self) -> bool:
        """Whether nothing was found."""
        return not any(self.counts.values())

    def note(self, kind: str, example: str, times: int = 1) -> None:
        """Count a fault."""
        self.counts[kind] += times
        if len(self.examples[kind]) < EXAMPLES:
            self.examples[kind].append(example)


def check(
    source: Source,
    topic: str,
    windows: Iterable[Window],
    updates: Iterable[Seen],
    rejections: Iterable[Seen],
    *,
    h_share: float = 1.0,
) -> Verdict:
    """Compare what was published with what the source tells.

    Parameters
    ----------
    source, topic
        The source, and its name.
    windows
        The job's monitors; each has the metrics auc and h.
    updates, rejections
        All committed records of the two topics, by partition in offset order.
    h_share
        Of how many updates H is worked out, which takes a millisecond each; AUC is always.
    """
    verdict = Verdict()
    _check_updates(verdict, source, topic, {w.name: w for w in windows}, updates, h_share)
    _check_rejections(verdict, source, topic, rejections)
    return verdict


def _check_updates(
    verdict: Verdict,
    source: Source,
    topic: str,
    windows: dict[str, Window],
    updates: Iterable[Seen],
    h_share: float,
) -> None:
    ordinals = {
        key: {place: at for at, place in enumerate(kept.places, 1)}
        for key, kept in source.keys.items()
    }
    streams: dict[tuple[str, str], list[tuple[int, int, int]]] = defaultdict(list)
    found: set[tuple[str, str, int]] = set()
    for seen in updates:
        verdict.updates += 1
        update = json.loads(seen.value or b"null")
        name, key, seq = update["monitor"], update["key"], update["seq"]
        place = (update["source"]["offset"], update["source"]["index"])
        ordinal = ordinals.get(key, {}).get(place)
        if name not in windows or ordinal is None or seen.key != key.encode():
            verdict.note("unexpected", f"{seen}")
            continue
        window = windows[name]
        streams[name, key].append((seq, ordinal, seen.partition))
        if ordinal % window.slide:
            verdict.note("unexpected", f"{name} {key} slid at its event {ordinal}: {update}")
            continue
        if (name, key, ordinal) in found:
            verdict.note("repeated", f"{name} {key} seq {seq} at offset {seen.offset}")
        found.add((name, key, ordinal))
        kept = source.keys[key]
        faults = _differences(verdict, update, topic, kept, window, ordinal, h_share)
        if first := next(iter(faults), ""):
            verdict.note("wrong", f"{name} {key} seq {seq}: {first}")
    for name, window in windows.items():
        for key, kept in source.keys.items():
            for ordinal in range(window.slide, len(kept.scores) + 1, window.slide):
                if (name, key, ordinal) not in found:
                    verdict.note("missing", f"{name} {key} seq {ordinal // window.slide}")
    _check_streams(verdict, windows, streams)


def _check_streams(
    verdict: Verdict,
    windows: dict[str, Window],
    streams: dict[tuple[str, str], list[tuple[int, int, int]]],
) -> None:
    """Follow each key's updates as the log has them: `seq` tells how many events were counted."""
    lost: dict[str, int] = defaultdict(int)
    doubled: dict[str, int] = defaultdict(int)
    for (name, key), stream in streams.items():
        slide = windows[name].slide
        ahead = less = more = 0
        for seq, ordinal, _ in stream:
            drift = seq * slide - ordinal
            more += max(0, drift - ahead)
            less += max(0, ahead - drift)
            ahead = drift
        lost[key] = max(lost[key], less)
        doubled[key] = max(doubled[key], more)
        seqs = [seq for seq, _, _ in stream]
        if sorted(set(seqs)) != list(range(1, len(set(seqs)) + 1)):
            verdict.note("holes", f"{name} {key}")
        if seqs != sorted(seqs) or len({partition for _, _, partition in stream}) > 1:
            verdict.note("disorder", f"{name} {key}")
    for kind, by_key in (("lost", lost), ("doubled", doubled)):
        for key, count in by_key.items():
            if count:
                verdict.note(kind, f"{key}: {count}", count)


def _differences(
    verdict: Verdict,
    update: dict[str, Any],
    topic: str,
    kept: Keyed,
    window: Window,
    ordinal: int,
    h_share: float,
) -> Iterable[str]:
    """Yield what an update should say and does not."""
    first = max(0, ordinal - window.size)
    scores = np.array(kept.scores[first:ordinal])
    labels = np.array(kept.labels[first:ordinal])
    positives = int(labels.sum())
    negatives = len(labels) - positives
    offset, index = kept.places[ordinal - 1]
    defined = positives > 0 and negatives > 0
    expected = {
        "version": 1,
        "monitor": window.name,
        "seq": ordinal // window.slide,
        "time": kept.times[ordinal - 1],
        "window": {
            "kind": "count",
            "size": window.size,
            "slide": window.slide,
            "events": len(labels),
            "full": len(labels) == window.size,
            "start": kept.times[first],
            "end": kept.times[ordinal - 1],
        },
        "positives": positives,
        "negatives": negatives,
        "reason": None if defined else "one_class",
        "note": None,
        "source": {
            "topic": topic,
            "partition": kept.partition,
            "offset": offset,
            "index": index,
        },
    }
    for name, value in expected.items():
        if update[name] != value:
            yield f"{name} is {update[name]}, should be {value}"
    if not defined:
        if (update["auc"], update["h"]) != (None, None):
            yield f"auc {update['auc']} and h {update['h']} of one class"
        return
    auc = exact_auc(scores, labels)
    if update["auc"] is None or abs(update["auc"] - auc) > TOLERANCE:
        yield f"auc is {update['auc']}, should be {auc}"
    # By the place in the log: the same ones whoever asks.
    if random.Random(f"{window.name} {offset} {index}").random() >= h_share:
        return
    verdict.with_h += 1
    roc = reference.Roc()
    roc.extend(scores, labels)
    h = roc.h_measure()
    if update["h"] is None or abs(update["h"] - h) > TOLERANCE:
        yield f"h is {update['h']}, should be {h}"


def exact_auc(scores: np.ndarray, labels: np.ndarray) -> float:
    """Count the pairs, ties half, in integers; round once."""
    positive, negative = scores[labels == 1], np.sort(scores[labels == 0])
    below = int(np.searchsorted(negative, positive, "left").sum())
    not_above = int(np.searchsorted(negative, positive, "right").sum())
    return (below + not_above) / (2 * len(positive) * len(negative))


def _check_rejections(
    verdict: Verdict, source: Source, topic: str, rejections: Iterable[Seen]
) -> None:
    found: set[tuple[int, int]] = set()
    for letter in rejections:
        verdict.rejections += 1
        headers = letter.headers
        place = (int(headers["rocstream-partition"]), int(headers["rocstream-offset"]))
        if place not in source.refused:
            verdict.note("rejections unexpected", f"{place}: {headers}")
            continue
        if place in found:
            verdict.note("rejections repeated", f"{place}")
        found.add(place)
        record, refused = source.refused[place]
        told = (
            letter.key,
            letter.value,
            headers["rocstream-reason"].split(b":")[0].decode(),
            headers["rocstream-topic"].decode(),
            headers["rocstream-indexes"].decode(),
        )
        if told != (record.key, record.value, refused.code, topic, refused.indexes):
            verdict.note("rejections wrong", f"{place}: {told}, should be {record} {refused}")
    for place in source.refused.keys() - found:
        verdict.note("rejections missing", f"{place}: {source.refused[place]}")
