"""Uploaded files of other servers. They contain secrets, so none gets a name: such a file is gone when it is closed,
and when the process ends in any way."""

from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, Final

import trio

from sallyport.base.errors import TooMany
from sallyport.base.secret import new_error_id

MAX_OPEN: Final = 4
"""Maximum number of uploaded files at the same time."""


class NamelessFiles:
    """The store of uploaded files (implements `web.upload.Keeper`). folder: the folder of their file system."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, BinaryIO] = {}

    async def open(self, octets: int) -> str:
        """Open a new file, and return a key. Raises TooMany, OSError."""
        if len(self._open) >= MAX_OPEN:
            raise TooMany("other files are being imported: try again in a minute")
        key = new_error_id()
        self._open[key] = TemporaryFile(dir=self._folder)  # noqa: SIM115  `discard` closes it
        return key

    async def write(self, name: str, octets: bytes) -> None:
        """Append octets. Raises OSError."""
        await trio.to_thread.run_sync(self._open[name].write, octets)

    async def close(self, name: str) -> None:
        """Complete the file. Raises OSError."""
        await trio.to_thread.run_sync(self._open[name].flush)

    async def discard(self, name: str) -> None:
        """Delete the file."""
        if (file := self._open.pop(name, None)) is not None:
            file.close()

    def file(self, name: str) -> BinaryIO:
        """Return an open file."""
        return self._open[name]
