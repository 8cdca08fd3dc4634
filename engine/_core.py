"""The compiled core under one name; ImportError where it was not built."""

from engine._roc import Roc
from engine._window import CountWindow

__all__ = ["CountWindow", "Roc"]
