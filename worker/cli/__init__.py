"""The command line: one file per command; ``commands`` puts them together and ends them."""

from worker.cli.commands import main

__all__ = ["main"]
