"""Reading the events topic: records in, checked events per key and rejections out.

``parser`` drives; ``plain`` is the fast loop for what nearly all records look like; ``reading``
takes any record apart, one event (``fields``) or many in arrays (``columns``); ``document`` turns
bytes into a JSON object; ``reasons`` has every refusal with its sentence; ``batch`` is what comes
out; ``description`` tells the same as a JSON Schema.
"""

from worker.events.batch import Batch, KeyedEvents
from worker.events.description import schema
from worker.events.parser import Parser, Record
from worker.events.reasons import REASONS, Rejection

__all__ = ["REASONS", "Batch", "KeyedEvents", "Parser", "Record", "Rejection", "schema"]
