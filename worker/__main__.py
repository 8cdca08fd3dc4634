"""Runs the command line as ``python -m worker``, as the demo does with its own interpreter."""

from worker.cli import main

if __name__ == "__main__":
    main()
