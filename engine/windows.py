"""Windows by time and by decay, over whichever Roc the public name stands for."""

from __future__ import annotations

from engine import reference
from engine._choice import Roc


class TimeWindow(reference.TimeWindow):
    """Events with now - duration < time <= now; all about it: `engine.reference.TimeWindow`."""

    __slots__ = ()
    make_roc = Roc


class DecayWindow(reference.DecayWindow):
    """Events whose weight halves; all about it: `engine.reference.DecayWindow`."""

    __slots__ = ()
    make_roc = Roc
