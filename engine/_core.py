"""The compiled core under one name; ImportError where it was not built."""

from engine._decay import DecayWindow
from engine._ordinal import OrdinalRoc
from engine._ordinal_window import OrdinalCountWindow
from engine._roc import Roc
from engine._time import TimeWindow
from engine._window import CountWindow

__all__ = ["CountWindow", "DecayWindow", "OrdinalCountWindow", "OrdinalRoc", "Roc", "TimeWindow"]
