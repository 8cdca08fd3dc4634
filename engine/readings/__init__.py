"""Readings off a ROC: an idea a file, for whoever holds the blocks of equal scores."""

from engine.readings.curve import curve_of
from engine.readings.hull import Edge, hull_edges
from engine.readings.names import OF_WINDOWS, READERS, Readable, check_names
from engine.readings.severity import check_priors, check_severity, edge_losses, h_of_edges
from engine.results import Columns, Curve, Readings

__all__ = [
    "OF_WINDOWS",
    "READERS",
    "Columns",
    "Curve",
    "Edge",
    "Readable",
    "Readings",
    "check_names",
    "check_priors",
    "check_severity",
    "curve_of",
    "edge_losses",
    "h_of_edges",
    "hull_edges",
]
