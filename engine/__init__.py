"""Exact ROC readings over changing multisets of scored events; no Kafka, no clock, no I/O.

Every name exists twice: in a compiled core and in a plain Python twin, `engine.reference`, under
one contract. The core is used where it was built. The variable ROCSTREAM_ENGINE forces one:
``reference`` or ``compiled``.
"""

from engine import reference
from engine._choice import IMPLEMENTATION, CountWindow, Roc
from engine.results import Columns, Curve, Readings

__all__ = [
    "IMPLEMENTATION",
    "Columns",
    "CountWindow",
    "Curve",
    "Readings",
    "Roc",
    "reference",
]
