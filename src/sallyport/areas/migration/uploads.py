"""Uploaded files of other servers. They contain secrets, so none gets a name: such a file is gone when it is closed,
and when the process ends in any way. Only the files of an archive have names, in a folder that exists while its reader
runs. If the service is killed meanwhile, its next start deletes the folder."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import BinaryIO, Final

import trio

from sallyport.base.errors import TooMany
from sallyport.base.secret import new_error_id

MAX_OPEN: Final = 32
"""Maximum number of uploaded files at the same time. A tenant has one, so that it delays no other tenant."""
_UNPACKED: Final = ".unpacked-"
_LEFT: Final = re.compile(rf"{re.escape(_UNPACKED)}(\d+)-.+")
"""The name of an unpacked archive, with the id of its process."""


class NamelessFiles:
    """The store of uploaded files (implements `web.upload.Keeper`). folder: the folder of their file system."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, BinaryIO] = {}
        self._tenants: dict[str, int] = {}

    async def open(self, octets: int, tenant_id: int) -> str:
        """Open a new file, and return a key. Raises TooMany, OSError."""
        if tenant_id in self._tenants.values():
            raise TooMany("another file of the tenant is being imported: try again in a minute")
        if len(self._open) >= MAX_OPEN:
            raise TooMany("other files are being imported: try again in a minute")
        key = new_error_id()
        self._open[key] = TemporaryFile(dir=self._folder)  # noqa: SIM115  `discard` closes it
        self._tenants[key] = tenant_id
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
            del self._tenants[name]
            file.close()

    @contextmanager
    def unpacked(self) -> Iterator[str]:
        """Make an empty folder for the files of an archive, and delete it at the end. Raises OSError."""
        with TemporaryDirectory(prefix=f"{_UNPACKED}{os.getpid()}-", dir=self._folder) as folder:
            yield folder

    def delete_unpacked(self) -> None:
        """Delete the folders that processes have left which do not exist any more."""
        for each in self._folder.glob(f"{_UNPACKED}*"):
            left = _LEFT.fullmatch(each.name)
            if left and (left[1] == str(os.getpid()) or not Path("/proc", left[1]).exists()):
                shutil.rmtree(each, ignore_errors=True)

    def file(self, name: str) -> BinaryIO:
        """Return an open file."""
        return self._open[name]
