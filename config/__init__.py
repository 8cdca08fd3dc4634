"""Settings, logging and the errors a person reads: imported by the worker, importing nothing."""

from config.connection import KafkaSettings, SecuritySettings
from config.errors import DecisionError, RocstreamError, SettingsError
from config.event import EventSettings
from config.loading import load
from config.metrics import METRICS, Metric
from config.monitor import Monitor, Severity, Window
from config.paths import FieldPath, Own
from config.settings import LogSettings, Settings, TopicSettings, schema

__all__ = [
    "METRICS",
    "DecisionError",
    "EventSettings",
    "FieldPath",
    "KafkaSettings",
    "LogSettings",
    "Metric",
    "Monitor",
    "Own",
    "RocstreamError",
    "SecuritySettings",
    "Settings",
    "SettingsError",
    "Severity",
    "TopicSettings",
    "Window",
    "load",
    "schema",
]
