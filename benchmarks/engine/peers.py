"""What the engine is measured beside: ordered sets of two languages, river and scikit-learn."""

import shutil
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

from river.metrics import RollingROCAUC
from sklearn.metrics import roc_auc_score

from benchmarks.engine.inputs import Events

HERE = Path(__file__).parent


@cache
def _built(source: str, compiler: str) -> str | None:
    """Compile a peer; None where its compiler is missing."""
    path = shutil.which(compiler)
    if path is None:
        return None
    target = Path(tempfile.mkdtemp(prefix="rocstream-peers-")) / source.partition(".")[0]
    options = {"rustc": ["-C", "opt-level=3"], "g++": ["-O3"]}[compiler]
    subprocess.run([path, *options, "-o", str(target), str(HERE / source)], check=True)
    return str(target)


def _program(source: str, compiler: str, size: int, events: int) -> float | None:
    program = _built(source, compiler)
    if program is None:
        return None
    done = subprocess.run(
        [program, str(size), str(events)], check=True, capture_output=True, text=True
    )
    return float(done.stdout)


def btreeset(size: int, events: int) -> float | None:
    """Return ns per remove + insert of Rust's BTreeSet, which counts nothing."""
    return _program("btreeset.rs", "rustc", size, events)


def multiset(size: int, events: int) -> float | None:
    """Return ns per erase + insert of C++'s std::multiset, which counts nothing."""
    return _program("multiset.cpp", "g++", size, events)


def river(size: int, inputs: Events) -> float:
    """Return ns per update + get of river's RollingROCAUC, after the window has filled."""
    scores, labels = inputs
    # It takes probabilities; that order is all it needs.
    chances = (scores - scores.min()) / (scores.max() - scores.min())
    metric = RollingROCAUC(window_size=size)
    for chance, label in zip(chances[:size].tolist(), labels[:size].tolist(), strict=True):
        metric.update(bool(label), {True: chance})
    later = list(zip(chances[size:].tolist(), labels[size:].tolist(), strict=True))
    events = 0
    begin = time.perf_counter()
    for chance, label in later:
        metric.update(bool(label), {True: chance})
        metric.get()
        events += 1
        if time.perf_counter() - begin > 1:
            break
    return (time.perf_counter() - begin) / events * 1e9


def scikit_learn(size: int, inputs: Events, every: int) -> float:
    """Return ns per event when scikit-learn reads the AUC from scratch at each slide."""
    scores, labels = inputs
    slides = 0
    begin = time.perf_counter()
    for end in range(size + every, len(scores) + 1, every):
        roc_auc_score(labels[end - size : end], scores[end - size : end])
        slides += 1
        if time.perf_counter() - begin > 1:
            break
    return (time.perf_counter() - begin) / (slides * every) * 1e9
