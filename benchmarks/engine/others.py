"""Print ns per event of ordered classes and of decay, the count window beside them in one run.

python -m benchmarks.engine.others [--sizes 1000,10000] [--rounds 3]

Decay windows have the half-life with which they hold as many events as the count window. All take
turns; a bulk call of a few ms is measured many times, and the best one counts, in CPU time of the
thread, so that a busy machine is least in the way.
"""

import argparse
import math
import time
from collections.abc import Callable

import numpy as np

from engine import IMPLEMENTATION, CountWindow, DecayWindow, OrdinalCountWindow

CHUNK = 4000
CHUNKS = 10
EVERY = (1, 10, 100, 1000)
LEAST = 1e-9

Slide = Callable[[slice], object]


def scored(
    size: int, classes: int, decimals: int | None
) -> tuple[np.ndarray, np.ndarray, list[slice]]:
    """Return events, labels, and the parts of them to slide over after the first `size`."""
    random = np.random.default_rng(1)
    count = size + CHUNK * CHUNKS
    labels = random.integers(0, classes, count).astype(np.uint8)
    scores = random.normal(size=count) + labels
    if decimals is not None:
        scores = scores.round(decimals)
    return scores, labels, [slice(at, at + CHUNK) for at in range(size, count, CHUNK)]


def best(slide: Slide, parts: list[slice]) -> float:
    """Return ns per event of the quickest part."""
    least = math.inf
    for part in parts:
        begin = time.thread_time()
        slide(part)
        least = min(least, time.thread_time() - begin)
    return least / CHUNK * 1e9


def ordinal(size: int, every: int, classes: int, decimals: int | None = None) -> float:
    """Measure the volume under the surface of ordered classes."""
    scores, labels, parts = scored(size, classes, decimals)
    window = OrdinalCountWindow(classes, size)
    window.slide(scores[:size], labels[:size], every=size)
    return best(lambda part: window.slide(scores[part], labels[part], every=every), parts)


def binary(
    window: CountWindow | DecayWindow, size: int, every: int, read: tuple[str, ...]
) -> float:
    """Measure a window of two classes."""
    scores, labels, parts = scored(size, 2, None)
    window.slide(scores[:size], labels[:size], every=size, read=read)
    return best(
        lambda part: window.slide(scores[part], labels[part], every=every, read=read), parts
    )


def contestants(size: int) -> dict[str, Callable[[int], float]]:
    """Return what to measure at one window size, by the name of its row."""
    half_life = size / math.log2(1 / LEAST)
    rows: dict[str, Callable[[int], float]] = {}
    for read in (("auc",), ("auc", "h")):
        name = "+".join(read)
        rows[f"{name}, count"] = lambda every, read=read: binary(
            CountWindow(size), size, every, read
        )
        rows[f"{name}, decay"] = lambda every, read=read: binary(
            DecayWindow(half_life, least=LEAST), size, every, read
        )
    for classes in (2, 3, 4, 6, 8):
        rows[f"vuhs, r = {classes}"] = lambda every, classes=classes: ordinal(size, every, classes)
    rows["vuhs, r = 4, two decimals"] = lambda every: ordinal(size, every, 4, 2)
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(f"engine: {IMPLEMENTATION}; ns per event, read after every 1, 10, 100 and 1,000 events")
    for size in [int(float(text)) for text in options.sizes.split(",")]:
        rows = contestants(size)
        least: dict[tuple[str, int], float] = {}
        for _ in range(options.rounds):
            for name, run in rows.items():
                for every in EVERY:
                    least[name, every] = min(least.get((name, every), math.inf), run(every))
        print(f"\n{f'n = {size:,}':26}" + "".join(f"{f'/{every:,}':>10}" for every in EVERY))
        for name in rows:
            print(f"{name:26}" + "".join(f"{least[name, every]:10,.0f}" for every in EVERY))
        for name in ("auc", "auc+h"):
            ratios = [least[f"{name}, decay", e] / least[f"{name}, count", e] for e in EVERY]
            print(f"{f'{name}, decay / count':26}" + "".join(f"{x:10.2f}" for x in ratios))


if __name__ == "__main__":
    main()
