"""The data directory: its lock, and space kept in reserve on its disk.

One process owns the directory. A reserve file holds space that is given back when the disk is full: the store's log
can then be merged into the database and logins go on for a while, with an error in the log, instead of stopping at
once. It is taken again when there is room.
"""

import errno
import fcntl
import os
from pathlib import Path
from typing import Final

from sallyport.base.errors import Locked, StartError
from sallyport.base.listening import locking_process
from sallyport.base.owner import denied

LOCK: Final = "lock"
"""The file whose lock the owning process holds. `serve` makes it first of all."""

TOKEN_FILE: Final = "admin.token"  # noqa: S105  a file's name
"""The file with the access token of the first start."""


def make_data_directory(path: Path) -> None:
    """Make the directory (mode 0700) where it is new. StartError."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StartError(f"data directory {path}: {error.strerror}") from error


def open_data_directory(path: Path) -> int:
    """Take the lock of the directory, which is made if it is new. Return the descriptor that holds it.

    Raises Locked when another process has it, StartError when it cannot be made or written.
    """
    make_data_directory(path)
    return take_lock(path / LOCK)


def check_lock(path: Path) -> None:
    """Raise Locked while another process owns the directory. Makes and changes nothing. StartError."""
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


def take_lock(path: Path) -> int:
    """Take a lock file for this process; the descriptor that holds it. Raises Locked, StartError."""
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
    """A file of `size` octets that holds space for the store's log. size 0: none is kept. Nothing here raises.

    released: the space is not held: it was given back, or has not been taken yet.
    """

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._size = size
        self.released = True

    def refill(self) -> None:
        """Take the space, once twice as much is free; the first call also cuts a file of before to size."""
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
        """Give the space back; False when there was none to give."""
        self.released = True
        try:
            self._path.unlink()
        except OSError:
            return False
        return self._size > 0

    def has_room(self, octets: int) -> bool:
        """Whether the disk takes so much more. It is tried, since a quota shows in no figure of the disk's."""
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
        """What the file holds on the disk: less than its size where a crash came between."""
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
