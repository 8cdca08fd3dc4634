"""Replay: the updates that a job would have published, from topics and files, under any settings.

``records`` says what sources hand out: ``filesource`` (with ``lines``, ``cells``, ``parquet``)
and ``topic``. ``player`` runs them through ``tape``, the live pipeline; ``span`` cuts out what is
asked for; ``sinks`` keep what comes; ``session`` is one run from end to end. ``notebook`` is the
same from Python.
"""

from worker.replay.notebook import Updates, run

__all__ = ["Updates", "run"]
