"""Exact ROC readings over changing multisets of scored events; no Kafka, no clock, no I/O.

`Roc`, `OrdinalRoc` and the windows over them exist twice: in a compiled core and in a plain Python
twin, `engine.reference`, under one contract. The core is used where it was built. The variable
ROCSTREAM_ENGINE forces one: ``reference`` or ``compiled``.
"""

from engine import reference
from engine._choice import (
    IMPLEMENTATION,
    CountWindow,
    DecayWindow,
    OrdinalCountWindow,
    OrdinalRoc,
    Roc,
    TimeWindow,
)
from engine.readings import Confusion, CostCurve, Ties
from engine.reference import ApproximateRoc, BinnedRoc, LandmarkWindow
from engine.results import Columns, Curve, Readings

__all__ = [
    "IMPLEMENTATION",
    "ApproximateRoc",
    "BinnedRoc",
    "Columns",
    "Confusion",
    "CostCurve",
    "CountWindow",
    "Curve",
    "DecayWindow",
    "LandmarkWindow",
    "OrdinalCountWindow",
    "OrdinalRoc",
    "Readings",
    "Roc",
    "Ties",
    "TimeWindow",
    "reference",
]
