"""One contestant, in a process of its own: replays a file and tells what it took, as JSON."""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
from collections import defaultdict, deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.replay import data

if TYPE_CHECKING:
    from collections.abc import Callable

SETTINGS = """
[kafka]
bootstrap_servers = "{servers}"
group = "replay-benchmark"
[topics]
events = "{topic}"
updates = "{topic}-updates"
rejected = "{topic}-rejected"
[event]
key = "{key}"
time = "{time}"
[[monitor]]
name = "m"
window = {{ kind = "count", size = {size}, slide = {slide} }}
metrics = ["auc", "h"]
"""

Last = dict[str, float]


class Told(NamedTuple):
    """What a contestant did.

    Attributes
    ----------
    events, updates
        How many.
    last
        Looks up the last AUC of each key, which is not measured.
    spent
        Seconds, and seconds of CPU, where not all that was done counts.
    """

    events: int
    updates: int
    last: Callable[[], Last]
    spent: tuple[float, float] | None = None


def rocstream(source: str, size: int, slide: int, out: Path) -> Told:
    """Replay a file, or the topic of `kafka:servers/topic`, into JSON lines."""
    import config  # noqa: PLC0415 - a contestant loads what it needs
    from worker.replay.filesource import FileSource  # noqa: PLC0415
    from worker.replay.player import Player  # noqa: PLC0415
    from worker.replay.session import Session  # noqa: PLC0415
    from worker.replay.sinks import LinesSink, Rejected  # noqa: PLC0415
    from worker.replay.topic import TopicSource  # noqa: PLC0415

    # A topic loads it when it is read, which is while the time is taken.
    importlib.import_module("worker.transport.reader")
    servers, _, topic = source.removeprefix("kafka:").rpartition("/")
    live = source.startswith("kafka:")
    text = SETTINGS.format(
        servers=servers if live else "localhost:1",
        topic=topic if live else "t",
        key="$key" if live else "key",
        time="$timestamp" if live else "time",
        size=size,
        slide=slide,
    )
    path = out.with_suffix(".toml")
    path.write_text(text)
    settings = config.load(path, {})
    read: Any = TopicSource(settings) if live else FileSource([source])
    player = Player([settings], read)
    session = Session(player, [LinesSink(out)], Rejected(None))
    outcome = session.run()

    def lasts() -> Last:
        last = {}
        with out.open("rb") as file:
            for line in file:
                update = json.loads(line)
                last[update["key"]] = update["auc"]
        return last

    return Told(player.tally.counts["events"], outcome.readings[0].updates, lasts)


def engine(source: str, size: int, slide: int, _: Path) -> Told:
    """Drive the windows alone, the columns sorted by key beforehand: what bounds a replay."""
    import numpy as np  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    from engine import CountWindow  # noqa: PLC0415
    from worker.replay.parquet import RUN_ROWS  # noqa: PLC0415

    table = pq.read_table(source, columns=["key", "score", "label", "time"])
    coded = table.column("key").combine_chunks().dictionary_encode()
    codes = coded.indices.to_numpy().astype(np.int16)
    columns = [table.column(name).to_numpy() for name in ("score", "label", "time")]
    parts = []
    for first in range(0, len(codes), RUN_ROWS):
        run = slice(first, first + RUN_ROWS)
        order = np.argsort(codes[run], kind="stable")
        sizes = np.bincount(codes[run], minlength=len(coded.dictionary))
        scores, labels, times = (column[run][order] for column in columns)
        ends = np.cumsum(sizes).tolist()
        for key, end in enumerate(ends):
            part = slice(end - int(sizes[key]), end)
            parts.append((key, scores[part], labels[part], times[part]))
    windows = [CountWindow(size) for _ in coded.dictionary]
    read = ("events", "positives", "negatives", "start", "end", "auc", "h")
    begun, cpu = time.monotonic(), time.process_time()
    updates = 0
    for key, scores, labels, times in parts:
        found = windows[key].slide(scores, labels, None, times, every=slide, read=read)
        updates += len(found.auc)
    spent = (time.monotonic() - begun, time.process_time() - cpu)
    names = coded.dictionary.to_pylist()
    last = {name: window.roc.auc() for name, window in zip(names, windows, strict=True)}
    return Told(len(codes), updates, lambda: last, spent)


def pandas(source: str, size: int, slide: int, _: Path) -> Told:
    """Read with pandas; at each slide of a key ask scikit-learn for AUC alone."""
    import pandas as pd  # noqa: PLC0415
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415

    match Path(source).suffix:
        case ".parquet":
            frame = pd.read_parquet(source)
        case ".csv":
            frame = pd.read_csv(source)
        case _:
            frame = pd.read_json(source, lines=True)
    updates, last = 0, {}
    for key, group in frame.groupby("key", sort=False):
        scores, labels = group["score"].to_numpy(), group["label"].to_numpy()
        for end in range(slide, len(scores) + 1, slide):
            inside = slice(max(0, end - size), end)
            last[str(key)] = float(roc_auc_score(labels[inside], scores[inside]))
            updates += 1
    return Told(len(frame), updates, lambda: last)


def river(source: str, size: int, slide: int, _: Path) -> Told:
    """Loop over the lines; a `RollingROCAUC` of river's per key, read at each slide."""
    from river import metrics  # noqa: PLC0415

    windows: dict[str, Any] = defaultdict(lambda: metrics.RollingROCAUC(window_size=size))
    seen: dict[str, int] = defaultdict(int)
    events = updates = 0
    last = {}
    with Path(source).open() as file:
        for line in file:
            event = json.loads(line)
            key = event["key"]
            windows[key].update(event["label"], event["score"])
            seen[key] += 1
            events += 1
            if seen[key] % slide == 0:
                last[key] = windows[key].get()
                updates += 1
    return Told(events, updates, lambda: last)


def plain(source: str, size: int, slide: int, _: Path) -> Told:
    """Loop over the lines; a deque per key, at each slide scikit-learn's AUC of its content."""
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415

    windows: dict[str, Any] = defaultdict(lambda: deque(maxlen=size))
    seen: dict[str, int] = defaultdict(int)
    events = updates = 0
    last = {}
    with Path(source).open() as file:
        for line in file:
            event = json.loads(line)
            window = windows[event["key"]]
            window.append((event["score"], event["label"]))
            seen[event["key"]] += 1
            events += 1
            if seen[event["key"]] % slide == 0:
                scores, labels = zip(*window, strict=True)
                last[event["key"]] = float(roc_auc_score(labels, scores))
                updates += 1
    return Told(events, updates, lambda: last)


CONTESTANTS: dict[str, Callable[[str, int, int, Path], Told]] = {
    "rocstream": rocstream,
    "engine": engine,
    "pandas": pandas,
    "river": river,
    "plain": plain,
}


def main() -> None:
    """Run the contestant that the arguments name: name, source, size, slide, out, cores."""
    name, source, size, slide, out, cores = sys.argv[1:]
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(cores)])
    # Imports are not what is compared.
    writers = {".parquet": data.parquet, ".csv": data.csv}
    few = writers.get(Path(source).suffix, data.jsonl)(1_000, 1)
    CONTESTANTS[name](str(few), 100, 10, Path(out))
    begun, cpu = time.monotonic(), time.process_time()
    found = CONTESTANTS[name](source, int(size), int(slide), Path(out))
    seconds, cpu = found.spent or (time.monotonic() - begun, time.process_time() - cpu)
    told = {
        "events": found.events,
        "updates": found.updates,
        "seconds": seconds,
        "cpu": cpu,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "last": found.last(),
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
