"""The twin: the engine's contract in plain Python, straight from the definitions.

It is what the compiled core is tested against, and what runs where that core was not built.
"""

from engine.reference.approximate import ApproximateRoc
from engine.reference.binned import BinnedRoc
from engine.reference.count_window import CountWindow
from engine.reference.decay_window import DecayWindow
from engine.reference.landmark_window import LandmarkWindow
from engine.reference.ordinal import OrdinalRoc
from engine.reference.ordinal_window import OrdinalCountWindow
from engine.reference.roc import Roc
from engine.reference.time_window import TimeWindow

__all__ = [
    "ApproximateRoc",
    "BinnedRoc",
    "CountWindow",
    "DecayWindow",
    "LandmarkWindow",
    "OrdinalCountWindow",
    "OrdinalRoc",
    "Roc",
    "TimeWindow",
]
