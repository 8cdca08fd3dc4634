"""A worker that tells how many of Python's blocks of memory it holds: `counted.py FILE worker ...`.

Once a second a line is added to the file: the blocks that are in use once the garbage is collected.
"""

from __future__ import annotations

import gc
import sys
import time
from pathlib import Path
from threading import Thread

from worker.cli import main


def count(path: Path) -> None:
    """Go on for as long as the process lives."""
    with path.open("w") as stream:
        while True:
            time.sleep(1)
            gc.collect()
            print(sys.getallocatedblocks(), file=stream, flush=True)


if __name__ == "__main__":
    Thread(target=count, args=(Path(sys.argv.pop(1)),), daemon=True).start()
    main()
