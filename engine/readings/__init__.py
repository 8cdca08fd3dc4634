"""Readings off a ROC: an idea a file, for whoever holds the blocks of equal scores.

auc and ties: `pairs`; DeLong's interval: `interval`; curve: `curve`; hull: `hull`; H: `severity`;
KS, MER, MWL: `thresholds`; decisions at a threshold: `confusion`; cost curves: `cost`. The table of
names for windows: `names`. All of them as methods: `roc_readings`.
"""

from engine.readings.confusion import Confusion, confusion_of
from engine.readings.cost import CostCurve, cost_area_of, cost_curve_of
from engine.readings.counts import whole_or_weights
from engine.readings.curve import curve_of
from engine.readings.hull import Edge, hull_edges
from engine.readings.interval import interval_of
from engine.readings.names import AT_THRESHOLDS, OF_WINDOWS, READERS, check_names
from engine.readings.pairs import Ties, auc_of, ties_of
from engine.readings.roc_readings import RocReadings
from engine.readings.severity import (
    check_epsilon,
    check_priors,
    check_severity,
    edge_losses,
    h_of_edges,
    thin,
)
from engine.readings.thresholds import ks_of, mer_of, mwl_of
from engine.results import Columns, Curve, Readings

__all__ = [
    "AT_THRESHOLDS",
    "OF_WINDOWS",
    "READERS",
    "Columns",
    "Confusion",
    "CostCurve",
    "Curve",
    "Edge",
    "Readings",
    "RocReadings",
    "Ties",
    "auc_of",
    "check_epsilon",
    "check_names",
    "check_priors",
    "check_severity",
    "confusion_of",
    "cost_area_of",
    "cost_curve_of",
    "curve_of",
    "edge_losses",
    "h_of_edges",
    "hull_edges",
    "interval_of",
    "ks_of",
    "mer_of",
    "mwl_of",
    "thin",
    "ties_of",
    "whole_or_weights",
]
