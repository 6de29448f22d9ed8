"""The files of a host below a prefix. Some of them are in directories in which other users can create symbolic links.

The agent writes as root into directories that users own. Therefore the functions open the directories of a path one by
one, and do not follow symbolic links. Each directory must belong to root. The only exception is a home directory, which
may belong to its account. To write a file, a function creates a temporary file in the open directory, and then renames
the temporary file to the name of the file.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sallyport.base.errors import HostError

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ROOT = 0


@dataclass(frozen=True, slots=True)
class Mode:
    """The permissions and the owner of a file."""

    bits: int
    uid: int = _ROOT
    gid: int = _ROOT


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a regular file. octets: the content, up to the number of octets that the caller has requested.
    is_whole: whether `octets` is the whole file."""

    octets: bytes
    is_whole: bool


class Files:
    """The files of a host. prefix: the host's root directory. owner: the uid that owns the host's system
    directories."""

    def __init__(self, prefix: Path = Path("/"), *, owner: int = _ROOT) -> None:
        self.prefix = prefix
        self.owner = owner

    def read(self, path: str, *, most: int = 16_000_000) -> bytes | None:
        """Return the content of a system file, or None if the file does not exist. Symbolic links are followed.

        Raises HostError if the file is unreadable, or longer than `most` octets.
        """
        try:
            with (self.prefix / path.lstrip("/")).open("rb") as file:
                octets = file.read(most + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise HostError(f"{path}: {error.strerror}") from None
        if len(octets) > most:
            raise HostError(f"{path}: the file is longer than {most} octets")
        return octets

    def records(self, path: str, size: int, wanted: Iterable[int]) -> dict[int, bytes] | None:
        """Return records of `size` octets from a system file, by record number. Return None if the file does not exist.

        wanted: the numbers of the records. A negative number counts from the end of the file. Records that do not exist
        are left out. Only the wanted records are read, because such files may be large and sparse. Raises HostError.
        """
        try:
            with (self.prefix / path.lstrip("/")).open("rb") as file:
                count = os.fstat(file.fileno()).st_size // size
                at = (number if number >= 0 else count + number for number in wanted)
                found = {number: os.pread(file.fileno(), size, number * size) for number in at if 0 <= number < count}
        except FileNotFoundError:
            return None
        except OSError as error:
            raise HostError(f"{path}: {error.strerror}") from None
        return {number: octets for number, octets in found.items() if len(octets) == size}

    def names(self, path: str) -> list[str]:
        """Return the sorted names in a directory. Return an empty list if the directory is missing or cannot be
        read."""
        try:
            return sorted(each.name for each in (self.prefix / path.lstrip("/")).iterdir())
        except OSError:
            return []

    @contextmanager
    def directory(self, path: str, owners: frozenset[int] = frozenset()) -> Iterator[int]:
        """Open a directory, and yield its descriptor.

        owners: the uids that may own the last directory of the path, besides root. All other directories of the path
        must belong to root. Raises HostError if a directory of the path is missing, is a symbolic link, belongs to
        another user, or is writable by others.
        """
        parts = [part for part in path.split("/") if part]
        descriptor = os.open(self.prefix, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for index, part in enumerate(parts):
                last = index == len(parts) - 1
                deeper = _enter(descriptor, part, path)
                os.close(descriptor)
                descriptor = deeper
                _trust(descriptor, path, owners | {self.owner} if last else frozenset({self.owner}), final=last)
            yield descriptor
        finally:
            os.close(descriptor)

    def exists(self, path: str) -> bool:
        """Return whether a path exists, even if it is only a symbolic link. Also return True if root cannot find out,
        for example because a user has mounted a file system that root cannot read."""
        try:
            os.lstat(self.prefix / path.lstrip("/"))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True
        return True

    def look(self, directory: int, name: str, *, owners: frozenset[int], most: int) -> Content | None:
        """Return the content of a file in an open directory, or None if the file does not exist.

        owners: the uids that may own the file, besides root. most: the maximum number of octets to read. Raises
        HostError if the file is not a regular file, or belongs to another account.
        """
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise HostError(f"{name}: {_reason(error)}") from None
        found = os.fstat(descriptor)
        # A hard link to a file of the user is harmless. A hard link to a file of root could expose that file.
        is_own = found.st_uid in owners or (found.st_uid == self.owner and found.st_nlink == 1)
        if not stat.S_ISREG(found.st_mode) or not is_own:
            os.close(descriptor)
            raise HostError(f"{name}: the file is not a regular file, or belongs to another account")
        try:
            with os.fdopen(descriptor, "rb") as file:
                octets = file.read(most + 1)
        except OSError as error:
            raise HostError(f"{name}: {_reason(error)}") from None
        return Content(octets[:most], len(octets) <= most)

    def keep_as(self, directory: int, name: str, other: str) -> None:
        """Make a hard link to a file in an open directory. When the file is later replaced, its old content remains
        under the name of the hard link.

        name: the name of the file. other: the name of the hard link. If a file with the name `other` exists, it is
        removed. Raises HostError.
        """
        try:
            with suppress(FileNotFoundError):
                os.unlink(other, dir_fd=directory)
            os.link(name, other, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
        except OSError as error:
            raise HostError(f"{other}: {_reason(error)}") from None

    def drop_link(self, directory: int, name: str) -> None:
        """Remove a name from an open directory, but only if the name is a symbolic link. Raises HostError."""
        try:
            if stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=directory)
        except FileNotFoundError:
            return
        except OSError as error:
            raise HostError(f"{name}: {_reason(error)}") from None

    def put(self, directory: int, name: str, octets: bytes, mode: Mode) -> None:
        """Write a file in an open directory atomically. When this method returns, the file is on disk. Raises
        HostError."""
        # The name has a dot, because sudo ignores such files in sudoers.d.
        temporary = f".{name}.{secrets.token_hex(6)}.new"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(temporary, flags, 0o600, dir_fd=directory), "wb") as file:
                if os.geteuid() == _ROOT:
                    os.fchown(file.fileno(), mode.uid, mode.gid)
                file.write(octets)
                file.flush()
                os.fchmod(file.fileno(), mode.bits)
                os.fsync(file.fileno())
            os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
            os.fsync(directory)
        except OSError as error:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=directory)
            raise HostError(f"{name}: {_reason(error)}") from None

    def replace(self, path: str, octets: bytes, mode: Mode) -> None:
        """Write a file atomically. Its directory must belong to root. Raises HostError."""
        above, _, name = path.rpartition("/")
        with self.directory(above) as directory:
            self.put(directory, name, octets, mode)

    def remove(self, path: str) -> None:
        """Remove a file if it exists. Its directory must belong to root. Raises HostError."""
        above, _, name = path.rpartition("/")
        with self.directory(above) as directory:
            try:
                os.unlink(name, dir_fd=directory)
            except FileNotFoundError:
                return
            except OSError as error:
                raise HostError(f"{path}: {_reason(error)}") from None

    def make_directory(self, path: str, bits: int) -> None:
        """Create a directory if it is missing. The parent directory must belong to root. Raises HostError."""
        above, _, name = path.rpartition("/")
        with self.directory(above) as directory:
            _make(directory, name, Mode(bits))

    @contextmanager
    def within(self, directory: int, name: str, mode: Mode, *, make: bool) -> Iterator[int]:
        """Open a subdirectory of an open directory, and yield its descriptor.

        make: whether to create the subdirectory with `mode` if it is missing. Raises HostError if the subdirectory is
        missing, is a symbolic link, is writable by others, or belongs neither to root nor to the owner in `mode`.
        """
        if make:
            _make(directory, name, mode)
        descriptor = _enter(directory, name, name)
        try:
            _trust(descriptor, name, frozenset({self.owner, mode.uid}), final=True)
            yield descriptor
        finally:
            os.close(descriptor)

    def belongs_to(self, path: str, uid: int) -> bool:
        """Return whether a path is a directory that belongs to a uid. A symbolic link does not count as a directory."""
        try:
            found = os.lstat(self.prefix / path.lstrip("/"))
        except OSError:
            return False
        return stat.S_ISDIR(found.st_mode) and found.st_uid == uid

    def hand_over(self, path: str, *, of: int, to: Mode) -> None:
        """Change the owner and mode of a directory. The files in the directory keep their owners. of: the uid of the
        present owner. to: the new owner and mode.

        Raises HostError if the directory belongs to another account, or if the path contains symbolic links. The
        present mode is not checked, because the owner may have made the directory writable for all users.
        """
        above, _, name = path.rstrip("/").rpartition("/")
        with self.directory(above) as parent:
            descriptor = _enter(parent, name, path)
            try:
                if os.fstat(descriptor).st_uid != of:
                    raise HostError(f"{path}: belongs to another account")
                if os.geteuid() == _ROOT:
                    os.fchown(descriptor, to.uid, to.gid)
                os.fchmod(descriptor, to.bits)
            finally:
                os.close(descriptor)


def _make(directory: int, name: str, mode: Mode) -> None:
    try:
        os.mkdir(name, 0o700, dir_fd=directory)
    except FileExistsError:
        return
    except OSError as error:
        raise HostError(f"{name}: {_reason(error)}") from None
    descriptor = _enter(directory, name, name)
    try:
        if os.geteuid() == _ROOT:
            os.fchown(descriptor, mode.uid, mode.gid)
        os.fchmod(descriptor, mode.bits)
    finally:
        os.close(descriptor)


def _enter(directory: int, name: str, path: str) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=directory)
    except OSError as error:
        raise HostError(f"{path}: {_reason(error)}") from None


def _trust(descriptor: int, path: str, owners: frozenset[int], *, final: bool) -> None:
    """Check that only the owners in `owners` can create or delete files in a directory. Raises HostError.

    path: the path of the directory, for the error message. final: whether the directory is the last one of the path.
    """
    found = os.fstat(descriptor)
    if found.st_uid not in owners:
        raise HostError(f"{path}: {'belongs' if final else 'leads through a directory that belongs'} to another user")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX:
        raise HostError(f"{path}: {'is' if final else 'leads through a directory that is'} writable by others")


def _reason(error: OSError) -> str:
    if error.errno in {errno.ELOOP, errno.ENOTDIR}:
        return "the path is a symbolic link, or not a directory"
    return error.strerror or "failed"
