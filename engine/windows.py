"""Windows by time, over whichever Roc the public name stands for."""

from __future__ import annotations

from engine import reference
from engine._choice import Roc


class TimeWindow(reference.TimeWindow):
    """Events with now - duration < time <= now; all about it: `engine.reference.TimeWindow`."""

    __slots__ = ()
    make_roc = Roc
