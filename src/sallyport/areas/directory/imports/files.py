"""The files of imports: uploaded files, entries from directory agents, and entries that the service has read. A file
stays in a folder of the data directory until its job ends.

A file has a random name, which is stored in the row of the job. A crash can leave a file whose name is in no row. When
the service starts, it deletes such files.
"""

import os
import shutil
import time
from collections.abc import Collection
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO, Final

import trio

from sallyport.base.errors import StartError, StoreFull

FOLDER: Final = "directory"
ROOM: Final = 256 << 20
"""Disk space that imports leave free, in octets, because logins fail when the disk is full."""
MAX_SIZE: Final = 1 << 30
"""Maximum size of a file, in octets."""
PREPARED: Final = ".lines"
BEFORE: Final = ".before"
PIECE: Final = 1 << 18


class ImportFiles:
    """The folder that holds the files of imports. Its methods block: call them in a worker thread."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / FOLDER
        self._new: set[str] = set()

    def new(self, kind: str, octets: int) -> str:
        """Return the name for a new file. octets: maximum size of the file. Raises StoreFull, OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.check_room(octets)
        name = f"{token_hex(8)}.{kind}"
        self._new.add(name)
        return name

    def check_room(self, octets: int = 0) -> None:
        """Check that the disk has room for a file of this size and its prepared file. Raises StoreFull if there is no
        room."""
        disk = os.statvfs(self._folder)
        if disk.f_bavail * disk.f_frsize < 4 * octets + ROOM:
            raise StoreFull("the disk has no room for an import")

    def path(self, name: str) -> Path:
        """Return the path of a file."""
        return self._folder / name

    def prepared(self, name: str) -> Path:
        """Return the path of the prepared file that belongs to a file."""
        return self._folder / (name + PREPARED)

    def before(self, name: str) -> Path:
        """Return the path of the file that stores the members of groups before the import (`finish.Losses`)."""
        return self._folder / (name + BEFORE)

    def append(self, name: str, octets: bytes, at: int) -> None:
        """Append octets to a file at offset `at`. If a crash has left octets after this offset, they are cut off first.
        When the function returns, the octets are on disk. Raises OSError."""
        descriptor = os.open(self.path(name), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.truncate(at)
            file.seek(at)
            file.write(octets)
            file.flush()
            os.fsync(file.fileno())

    def copy(self, path: str) -> str:
        """Copy a file of this machine into the folder. Return the name of the copy. Raises StartError if the file
        cannot be read or is larger than MAX_SIZE. Raises StoreFull if the disk has no room."""
        try:
            with Path(path).open("rb") as source:
                size = os.fstat(source.fileno()).st_size
                if size > MAX_SIZE or not Path(path).is_file():
                    raise StartError(f"{path}: give a file of at most {MAX_SIZE >> 20} MiB")
                name = self.new("ldif", size)
                with self.path(name).open("xb") as target:
                    shutil.copyfileobj(source, target, 1 << 20)
                    target.flush()
                    os.fsync(target.fileno())
        except OSError as error:
            raise StartError(f"{path}: {error.strerror}") from error
        return name

    def delete(self, name: str) -> None:
        """Delete a file, and the files made from it."""
        if name:
            for path in (self.path(name), self.prepared(name), self.before(name)):
                path.unlink(missing_ok=True)
            self._new.discard(name)

    def keep_only(self, names: Collection[str], spare_s: float = 0) -> None:
        """Delete the files of this folder. The files in `names`, and the files that this object has created, are kept.

        spare_s: an age in seconds. Files that are younger than this are also kept, because another worker may be
        writing them.
        """
        kept = {each for name in (*names, *self._new) for each in (name, name + PREPARED, name + BEFORE)}
        if self._folder.is_dir():
            for path in self._folder.iterdir():
                if path.name not in kept and path.stat().st_mtime <= time.time() - spare_s:
                    path.unlink(missing_ok=True)


class Uploads:
    """The store of uploaded files (implements `web.upload.Keeper`)."""

    def __init__(self, files: ImportFiles) -> None:
        self._files = files
        self._open: dict[str, BinaryIO] = {}
        self._held: dict[str, bytearray] = {}

    async def open(self, octets: int, tenant_id: int) -> str:
        """Open a new file. Return its name. octets: maximum size of the file. Raises StoreFull."""
        name = await trio.to_thread.run_sync(self._files.new, "ldif", octets)
        path = self._files.path(name)
        self._open[name] = await trio.to_thread.run_sync(lambda: path.open("xb"))
        self._held[name] = bytearray()
        return name

    async def write(self, name: str, octets: bytes) -> None:
        """Append octets to a file. A buffer collects the octets, which are then written in large pieces. Raises
        OSError."""
        held = self._held[name]
        held += octets
        if len(held) >= PIECE:
            await self._flush(name)

    async def close(self, name: str) -> None:
        """Complete a file. The file is on disk when the function returns. Raises OSError."""
        await self._flush(name)
        file = self._open.pop(name)
        del self._held[name]
        with file:
            await trio.to_thread.run_sync(file.flush)
            await trio.to_thread.run_sync(os.fsync, file.fileno())

    async def discard(self, name: str) -> None:
        """Delete a file."""
        self._held.pop(name, None)
        file = self._open.pop(name, None)
        if file is not None:
            file.close()
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(self._files.delete, name)

    async def _flush(self, name: str) -> None:
        octets, self._held[name] = self._held[name], bytearray()
        await trio.to_thread.run_sync(self._open[name].write, octets)
