"""A replay from Python: updates one by one, or all of them as a table."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from config.errors import SettingsError
from worker.replay.files import Fields
from worker.replay.filesource import FileSource
from worker.replay.player import Player, Tally
from worker.replay.session import all_rejected
from worker.replay.sinks import Rejected, flat
from worker.replay.span import Span, span
from worker.replay.topic import TopicSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from config import Settings
    from worker.replay.records import Source


class Updates:
    """The updates of a replay; each iteration replays anew.

    Attributes
    ----------
    tally
        What the last iteration has come by: `tally.counts` and so on.
    notes
        What a person should know about the last iteration.
    """

    def __init__(
        self, settings: Settings, source: Source, stretch: Span | None, keys: Sequence[str] | None
    ) -> None:
        self.tally = Tally()
        self._settings, self._source = settings, source
        self._stretch, self._keys = stretch, keys

    @property
    def notes(self) -> list[str]:
        """What a person should know."""
        return self._source.notes

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the updates as dicts, in the order in which they would be published.

        Raises
        ------
        RocstreamError
            When the source fails, or at its end when no record could be read.
        """
        self._source.notes.clear()
        player = Player([self._settings], self._source, self._stretch, keys=self._keys)
        self.tally = player.tally
        rejected = Rejected(None)
        for step in player:
            if step.published:
                rejected.write(step.log, self._source, step.batch.rejections)
            for update in step.updates[0]:
                yield orjson.loads(update.value or b"")
        if (wrong := all_rejected(self.tally.counts, rejected.first)) is not None:
            raise wrong

    def frame(self, library: str | None = None) -> Any:
        """Replay and return all updates as a DataFrame.

        The columns are those of ``-o updates.parquet``: inner objects lie flat
        (``window_size``, ``source_offset``), times are ms since 1970.

        Parameters
        ----------
        library
            ``"pandas"`` or ``"polars"``; None takes the one that is there, pandas first.

        Raises
        ------
        SettingsError
            When the library, or without a choice both, are not installed.
        """
        rows = [flat(update) for update in self]
        for name in ("pandas", "polars") if library is None else (library,):
            try:
                module = __import__(name)
            except ImportError:
                continue
            # Else it goes by the first hundred rows, in which a note may still be null.
            more = {"infer_schema_length": None} if name == "polars" else {}
            return module.DataFrame(rows, **more)
        wanted = library or "pandas or polars"
        raise SettingsError(f"a table needs {wanted}: pip install {library or 'pandas'}")


def run(
    settings: Settings,
    source: str | Path | Sequence[str | Path] | None = None,
    *,
    start: str | None = None,
    stop: str | None = None,
    cold: bool = False,
    keys: Sequence[str] | None = None,
    key: str | None = None,
    key_field: str | None = None,
    time_field: str | None = None,
) -> Updates:
    """Replay events under some settings, in a notebook or a script.

    Parameters
    ----------
    settings
        As `config.load` returns them.
    source
        A file or directory, several of them, or None for the events topic of the settings.
    start, stop, cold
        As `--from`, `--to` and `--cold` of ``rocstream replay``.
    keys
        Patterns; only keys like one of them.
    key, key_field, time_field
        As the options for files.

    Returns
    -------
    Updates
        To iterate over, or to make a table of with `Updates.frame`.

    Raises
    ------
    SettingsError
        For a source that is not there or an option that means nothing.

    Examples
    --------
    >>> settings = config.load(Path("rocstream.toml"))  # doctest: +SKIP
    >>> for update in worker.replay.run(settings, "march.jsonl.gz"):  # doctest: +SKIP
    ...     print(update["key"], update["auc"])
    >>> worker.replay.run(settings, "march.parquet").frame()  # doctest: +SKIP
    """
    stretch = span(start, stop, int(time.time() * 1000), cold=cold)
    if source is None:
        window = max(monitor.window.size for monitor in settings.monitors)
        topic = TopicSource(settings, stretch, window=window)
        return Updates(settings, topic, None, keys)
    names = [source] if isinstance(source, str | Path) else list(source)
    files = FileSource(list(map(str, names)), None, Fields(key, key_field, time_field))
    return Updates(settings, files, stretch, keys)
