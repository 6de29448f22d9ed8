"""Free space of a disk, and atomic replacement of files, safe against a crash of the machine: write a temporary file,
sync it, and rename it."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from sallyport.base.errors import ConfigError
from sallyport.host.owner import as_owner

PRIVATE = 0o600
LOW = 1 << 30
"""Free space below which an admin should act, in octets."""


@contextmanager
def replacing(path: Path, *, mode: int = PRIVATE, like: Path | None = None) -> Iterator[BinaryIO]:
    """Yield a temporary file to write. At the end of the block, sync the file, and rename it to `path`. If the block or
    an operation on the file fails, the old file at `path` is unchanged.

    If root writes in another user's directory, the new file belongs to the owner of the directory. like: an existing
    file; the new file gets the owner of this file.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with as_owner(path.parent):
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            if like is not None:
                owner = like.stat()
                if (owner.st_uid, owner.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(descriptor, owner.st_uid, owner.st_gid)
            yield file
            file.flush()
            os.fsync(descriptor)
        with as_owner(path.parent):
            temporary.replace(path)
    except BaseException:
        with suppress(OSError), as_owner(path.parent):
            temporary.unlink()
        raise
    sync(path.parent)


def write(path: Path, octets: bytes, *, mode: int = PRIVATE, like: Path | None = None) -> None:
    """Replace a file atomically (see `replacing`). Raises ConfigError if that fails; the old file is then unchanged."""
    try:
        with replacing(path, mode=mode, like=like) as file:
            file.write(octets)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error


def make_folder(path: Path) -> None:
    """Make a folder and its parents, if they are missing. They belong to the owner of the lowest folder that exists.
    Raises ConfigError."""
    try:
        with as_owner(_nearest(path)):
            path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error


def sync(path: Path) -> None:
    """Wait until the content of a file, or the entries of a directory, are on disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def free(path: Path) -> int:
    """Return the free space of the disk that contains a path, or would contain it, in octets. Raises OSError."""
    return shutil.disk_usage(_nearest(path)).free


def _nearest(path: Path) -> Path:
    """Return a path, or the lowest folder above it that exists."""
    nearest = path.absolute()
    while not nearest.exists():
        nearest = nearest.parent
    return nearest
