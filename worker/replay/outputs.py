"""Files that a replay writes: partial until they are whole, and never one that it reads."""

from __future__ import annotations

import contextlib
import gzip
import os
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from config.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterable

PARTIAL: Final = ".partial"
"""Behind the name of a file until it is whole; it stays there when a replay ends early."""

_DEVICES: Final = Path("/dev")


class File:
    """A file under its partial name, and the step to its own.

    What is no file, such as a pipe or ``/dev/null``, is written where it is.

    Parameters
    ----------
    path, option
        The file, and the option that named it.

    Raises
    ------
    SettingsError
        When it cannot be written.
    """

    def __init__(self, path: Path, option: str) -> None:
        self._path = path
        # Behind a link it is the file that gets the new contents, not the link.
        whole = Path(os.path.realpath(path)) if path.is_symlink() else path
        self._whole, self.name = whole, whole.with_name(whole.name + PARTIAL)
        if in_place(path):
            self._whole = self.name = path
        try:
            raw = self.name.open("wb")
        except OSError as error:
            raise SettingsError(
                f"{option} {path}: it cannot be written: {error.strerror}"
            ) from error
        self._raw = raw
        self.stream: IO[bytes] = raw
        if path.name.endswith(".gz"):
            # Without a name and a time in it the same updates give the same bytes.
            packed: Any = gzip.GzipFile("", "wb", fileobj=raw, mtime=0, compresslevel=6)
            self.stream = packed

    def write(self, data: bytes) -> None:
        """Write.

        Raises
        ------
        OSError
            When there is no room; it names the file.
        """
        try:
            self.stream.write(data)
        except OSError as error:
            error.filename = str(self._path)
            raise

    def close(self, *, whole: bool) -> str:
        """Finish, give the file its name if it is whole, and return its name.

        Raises
        ------
        OSError
            As `write`.
        """
        try:
            self.stream.close()
            self._raw.close()
        except OSError as error:
            self.drop()
            error.filename = str(self._path)
            raise
        if not whole:
            return str(self.name)
        if self.name != self._whole:
            self.name.replace(self._whole)
        return str(self._path)

    def drop(self) -> None:
        """Leave it as it is, for there is no room."""
        for one in (self.stream, self._raw):
            with contextlib.suppress(OSError):
                one.close()


def in_place(path: Path) -> bool:
    """Tell whether something is there that a file must not take the place of."""
    if path.exists() and not path.is_file():
        return True
    # Whatever a shell has put behind /dev/stdout.
    return (Path.cwd() / path).is_relative_to(_DEVICES)


def check(outputs: Iterable[tuple[str, Path]], sources: Iterable[Path]) -> None:
    """Refuse outputs that would be lost, or take something with them, before anything is read.

    Parameters
    ----------
    outputs
        Each with the option that named it.
    sources
        The files that are read.

    Raises
    ------
    SettingsError
        For an output that is read as well, or written twice, or lies in no directory.
    """
    read = {os.path.realpath(source) for source in sources}
    taken: dict[str, str] = {}
    for option, path in outputs:
        if in_place(path):
            if path.is_dir():
                raise SettingsError(f"{option} {path}: it is a directory: name a file in it")
            continue
        place = os.path.realpath(path)
        if place in read or place + PARTIAL in read:
            raise SettingsError(
                f"{option} {path}: that file is read as well, and would be lost: name another"
            )
        if place in taken:
            raise SettingsError(f"{option} {path}: {taken[place]} writes the same file: name two")
        taken[place] = option
        above = Path(place).parent
        if not above.is_dir():
            raise SettingsError(f"{option} {path}: there is no directory {above}: make it")
        if not os.access(above, os.W_OK):
            raise SettingsError(f"{option} {path}: nothing may be written in {above}")
