"""The Faust driver under the entry point ``faust.transports``: exactly once, in runs.

`producer` writes a task's transactions, `changelog` reads its state, `task` commits on a beat,
`job` opens and closes tasks, `tables` and `consumer` put all of it in the place of Faust's parts.
"""

from __future__ import annotations

from faust.transport.drivers import aiokafka as stock

from worker.transport.consumer import Consumer
from worker.transport.job import Job, JobApp
from worker.transport.tables import TableManager, WindowTable

__all__ = ["Consumer", "Job", "JobApp", "TableManager", "Transport", "WindowTable"]


class Transport(stock.Transport):
    """Faust's aiokafka transport with our consumer; URLs begin with ``rocstream://``."""

    Consumer = Consumer
