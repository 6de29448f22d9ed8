"""The data directory: its lock, and reserved space on its disk.

One process owns the directory. A reserve file takes disk space that the service frees when the disk is full. SQLite's
write-ahead log can then be merged into the database. So logins continue for a while, and the service logs an error.
When the disk has room again, the service fills the reserve file again.
"""

import errno
import fcntl
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Final

from sallyport.base.errors import Locked, StartError
from sallyport.host import disk
from sallyport.host.owner import denied
from sallyport.settings.listening import locking_process

LOCK: Final = "lock"
"""The file that the owning process keeps locked. `serve` creates it before all other files."""

TOKEN_FILE: Final = "admin.token"  # noqa: S105  a file's name
"""The file that contains the access token of the first start."""


def make_data_directory(path: Path) -> list[Path]:
    """Create the data directory (mode 0700) and its missing parents. Return the created directories, the innermost
    first. Raises StartError."""
    try:
        missing = [each for each in (path, *path.parents) if not each.exists()]
        path.mkdir(mode=0o700, parents=True)
    except FileExistsError as error:
        if not path.is_dir():
            raise StartError(f"data directory {path}: {error.strerror}") from error
        return []
    except OSError as error:
        raise StartError(f"data directory {path}: {error.strerror}") from error
    return missing


def remove_data_directory(made: Sequence[Path]) -> None:
    """Remove the directories that `make_data_directory` created, and all files in the innermost. Errors are ignored."""
    with suppress(OSError):
        shutil.rmtree(made[0])
        for parent in made[1:]:
            parent.rmdir()


def open_data_directory(path: Path) -> int:
    """Lock the data directory. Create the directory if it does not exist. Return the file descriptor that holds the
    lock.

    Raises Locked if another process holds the lock. Raises StartError if the directory cannot be created or written.
    """
    make_data_directory(path)
    return take_lock(path / LOCK)


def check_lock(path: Path) -> None:
    """Raise Locked if another process owns the directory. No file is created or changed. Raises StartError if the lock
    file cannot be read."""
    try:
        descriptor = os.open(path / LOCK, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return
    except PermissionError as error:
        raise StartError(denied(path / LOCK, path)) from error
    except OSError as error:
        raise StartError(f"{path / LOCK}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Locked(f"{path} is in use by {locking_process(path / LOCK)}") from None
    finally:
        os.close(descriptor)


def installation_id(path: Path) -> str:
    """Return the random id of a data directory. The first call creates the id. Raises OSError."""
    file = path / "installation"
    if not file.exists():
        disk.write(file, f"{token_hex(8)}\n".encode())
    return file.read_text(encoding="ascii").strip()


def take_lock(path: Path) -> int:
    """Lock a lock file for this process. Return the file descriptor that holds the lock. Raises Locked, StartError."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except PermissionError as error:
        raise StartError(denied(path, path.parent)) from error
    except OSError as error:
        raise StartError(f"{path}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise Locked(f"{path.parent} is in use by {locking_process(path)}") from None
    return descriptor


class Reserve:
    """A file that reserves disk space for SQLite's write-ahead log. The methods raise no errors.

    size: the size of the file in octets; 0 for no reserve. released: whether the space is free now.
    """

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._size = size
        self.released = True

    def refill(self) -> None:
        """Create the reserve file if the free space of the disk is at least twice the size of the file. The first call
        also adjusts the size of an existing file."""
        if not self.released:
            return
        try:
            missing = self._size - self._held()
            if missing > 0 and self._free() < missing + self._size:
                return
            if self._size:
                self._take()
            else:
                self._path.unlink(missing_ok=True)
            self.released = False
        except OSError:
            self.release()

    def release(self) -> bool:
        """Delete the reserve file. Return False if there was no reserve file."""
        self.released = True
        try:
            self._path.unlink()
        except OSError:
            return False
        return True

    def has_room(self, octets: int) -> bool:
        """Return whether the disk has room for this many octets. The method tries to write a file, because the free
        space of a file system does not show a quota."""
        if octets <= 0:
            return True
        scratch = self._path.with_name(self._path.name + ".room")
        try:
            descriptor = os.open(scratch, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                scratch.unlink()
                os.posix_fallocate(descriptor, 0, octets)
            finally:
                os.close(descriptor)
        except OSError as error:
            return error.errno not in {errno.ENOSPC, errno.EDQUOT}
        return True

    def _held(self) -> int:
        """Return how many octets of the disk the reserve file occupies. After a crash, this number may be less than the
        size of the file."""
        try:
            return self._path.stat().st_blocks * 512
        except FileNotFoundError:
            return 0

    def _free(self) -> int:
        disk = os.statvfs(self._path.parent)
        return disk.f_bavail * disk.f_frsize

    def _take(self) -> None:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(descriptor, self._size)
            os.posix_fallocate(descriptor, 0, self._size)
        finally:
            os.close(descriptor)
