"""Makes docs/demo.svg, the picture in the README: the table of a real run of `rocstream demo`."""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich.console import Console

from worker.cli.demo import play

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "demo.svg"
COLUMNS = 112
SECONDS = 24


def main() -> None:
    """Run the demo, print its last table as text, and write it as a picture."""
    console = Console(record=True, file=io.StringIO(), width=COLUMNS, highlight=False)
    play(console, seconds=SECONDS, bootstrap_servers=None)
    print(console.export_text(clear=False))
    svg = console.export_svg(title="rocstream demo")
    # The picture stands alone: no font is fetched, every monospaced one will do. Lines were cut to
    # the height of that font, and others reach lower.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    PICTURE.write_text(re.sub(r' clip-path="url\(#[^"]*\)"', "", svg))
    print(f"{PICTURE}: {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
