"""Reading the events topic: records in, checked events per key and rejections out.

``parser`` drives. What nearly all records look like is read below Python: ``_scan`` has
``_reading`` take the JSON (``_json``, ``_decimal``) of a ``_block`` of records apart, into the
columns of ``_columns``; ``native`` says whether that core is there, and ``plain`` is the fast loop
without it. ``reading`` takes any record apart, one event (``fields``) or many in arrays
(``columns``); ``document`` turns bytes into a JSON object; ``reasons`` has every refusal with its
sentence; ``filling`` and ``batch`` are what comes out; ``description`` tells the same as a JSON
Schema.
"""

from worker.events.batch import Batch, KeyedEvents
from worker.events.description import schema
from worker.events.filling import Stop, first_of
from worker.events.parser import Parser
from worker.events.reasons import REASONS, Rejection
from worker.events.record import Record

__all__ = [
    "REASONS",
    "Batch",
    "KeyedEvents",
    "Parser",
    "Record",
    "Rejection",
    "Stop",
    "first_of",
    "schema",
]
