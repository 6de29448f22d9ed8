"""The data directory: its lock, and space kept in reserve on its disk.

One process owns the directory. A reserve file holds space that is given back when the disk is full: the store's log
can then be merged into the database and logins go on for a while, with an error in the log, instead of stopping at
once. It is taken again when there is room.
"""

import fcntl
import os
from pathlib import Path

from sallyport.base.errors import Locked, StartError


def open_data_directory(path: Path) -> int:
    """Make the directory (mode 0700) where it is new and take its lock; the descriptor that holds it.

    Raises Locked when another process has it, StartError when it cannot be made or written.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StartError(f"data directory {path}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise Locked(f"{path} is in use by another process") from None
    return descriptor


class Reserve:
    """A file of `size` octets that holds space for the store's log. size 0: none is kept."""

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._size = size
        self.released = False

    def refill(self) -> None:
        """Take the space again once twice as much is free; the first call takes it for the first time."""
        if self._size == 0 or (not self.released and self._path.exists()):
            return
        disk = os.statvfs(self._path.parent)
        if disk.f_bavail * disk.f_frsize < 2 * self._size:
            self.released = True
            return
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, self._size)
            finally:
                os.close(descriptor)
            self.released = False
        except OSError:
            self.release()

    def release(self) -> bool:
        """Give the space back; False when there was none to give."""
        self.released = self._size > 0
        try:
            self._path.unlink()
        except FileNotFoundError:
            return False
        return True
