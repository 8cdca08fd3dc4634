"""The twin: the engine's contract in plain Python, straight from the definitions.

It is what the compiled core is tested against, and what runs where that core was not built.
"""

from engine.reference.count_window import CountWindow
from engine.reference.roc import Roc

__all__ = ["CountWindow", "Roc"]
