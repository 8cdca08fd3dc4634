"""The command line: one file per command; ``commands`` puts them together and ends them."""

import gc

# What is imported stays: the collector need not look at all of it after every 700 objects, which is
# a sixth of what starting takes.
gc.set_threshold(10_000, 20, 50)

from worker.cli.commands import main  # noqa: E402 - see above

__all__ = ["main"]
