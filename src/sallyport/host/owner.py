"""File access as the owner of a directory, if root runs this program.

Commands that root runs access directories of other users, mostly of the service's user. If root created a file there,
the service could not read the file. There is also a danger: the owner of the directory could create a symbolic link
there, and root would follow the link to any file. So the thread that accesses such files takes the owner's identity for
files (setfsuid(2)), as the kernel's NFS server does. Threads that this thread starts inherit the identity.
"""

import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sallyport.base.errors import StartError

if TYPE_CHECKING:
    from ctypes import CDLL

_ASK: Final = -1
"""An argument with which setfsuid(2) and setfsgid(2) change nothing and return the current id."""
_VERSION_3: Final = 0x20080522
"""The version of the data structures that capget(2) and capset(2) get."""
_DAC_READ_SEARCH: Final = 1 << 2


def user_name(user_id: int) -> str:
    """Return the name of a local user. Return the user id as text if the user has no name."""
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return str(user_id)


def denied(path: Path, owner: Path | None = None) -> str:
    """Return the error message for a path that the user may not access. The message names a user who may access it: the
    owner of the path. owner: another path, whose owner is named instead."""
    try:
        name = user_name((owner or path).stat().st_uid)
    except OSError:
        return f"{path}: permission denied for user {user_name(os.geteuid())}"
    me, others = user_name(os.geteuid()), "" if name == "root" else f"user {name} or as "
    return f"{path}: permission denied for user {me}; run this command as {others}root"


@contextmanager
def as_owner(directory: Path, *, reads_all: bool = True) -> Iterator[None]:
    """Access files as the owner of a directory during the block. This applies to this thread, and to the threads that
    this thread starts in the block.

    Nothing changes if the user is not root, if root owns the directory, or if the thread already acts as another user.
    reads_all: whether the thread keeps root's right to read every file; it is needed for this program's own modules,
    and for a backup that is restored. Raises OSError if the directory does not exist. Raises StartError if root lacks a
    capability, as in some containers.
    """
    if os.geteuid() != 0 or not (owner := directory.stat()).st_uid or (before := _file_ids())[0] != 0:
        yield
        return
    try:
        _act_as(owner.st_uid, owner.st_gid)
    except PermissionError as error:
        raise _confined(directory, owner.st_uid) from error
    if reads_all:
        _keep_reading()
    try:
        yield
    finally:
        _act_as(*before)


def become_owner(directory: Path) -> str:
    """Change the process's user from root to the owner of a directory, permanently. Return the owner's name.

    Return "" if the user is not root, or if root owns the directory. Raises OSError if the directory does not exist.
    Raises StartError if root lacks a capability, as in some containers.
    """
    if os.geteuid() != 0 or not (owner := directory.stat()).st_uid:
        return ""
    name = user_name(owner.st_uid)
    try:
        try:
            group = pwd.getpwuid(owner.st_uid).pw_gid
            os.initgroups(name, group)
        except KeyError:
            group = owner.st_gid
            os.setgroups([group])
        os.setresgid(group, group, group)
        os.setresuid(owner.st_uid, owner.st_uid, owner.st_uid)
    except PermissionError as error:
        raise _confined(directory, owner.st_uid) from error
    return name


def _confined(directory: Path, user_id: int) -> StartError:
    """Return the error for a root user without the capability to act as another user, as in some containers."""
    name = user_name(user_id)
    return StartError(
        f"{directory} belongs to user {name}, and root here lacks the capabilities CAP_SETUID and CAP_SETGID to act as "
        f"that user: run this command as user {name}"
    )


def _libc() -> "CDLL":
    from ctypes import CDLL  # imported here: the endpoint agent imports this module, but does not need ctypes

    return CDLL(None)


def _file_ids() -> tuple[int, int]:
    """Return the user id and the group id that the kernel uses for this thread's file access."""
    library = _libc()
    return int(library.setfsuid(_ASK)), int(library.setfsgid(_ASK))


def _act_as(user_id: int, group_id: int) -> None:
    """Access files as a user and a group in this thread from now on. Raises PermissionError."""
    library = _libc()
    library.setfsgid(group_id)
    library.setfsuid(user_id)
    if _file_ids() != (user_id, group_id):  # setfsuid and setfsgid do not report failures
        raise PermissionError(f"files cannot be accessed as user {user_id}")


def _keep_reading() -> None:
    """Give this thread root's right to read every file again. setfsuid(2) has removed the capability for it."""
    from ctypes import c_uint32

    library, header = _libc(), (c_uint32 * 2)(_VERSION_3, 0)
    sets = (c_uint32 * 6)()  # effective, permitted and inheritable set of capabilities 0 to 31, then of the others
    if library.capget(header, sets) == 0 and sets[1] & _DAC_READ_SEARCH:
        sets[0] |= _DAC_READ_SEARCH
        library.capset(header, sets)
