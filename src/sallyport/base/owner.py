"""Files as the owner of their directory, if root runs this program.

Root's commands work in directories of other users, above all the service's. The service could not read a file that
root makes there, and a symbolic link there could lead root to any file of the machine. So the thread that works with
such files takes the owner's identity for files (setfsuid(2)), as the kernel's NFS server does; threads that it starts
inherit it.
"""

import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ctypes import CDLL

_ASK: Final = -1
"""setfsuid(2) and setfsgid(2) change nothing for it, and return the present id."""
_VERSION_3: Final = 0x20080522
"""Of capget(2) and capset(2)."""
_DAC_READ_SEARCH: Final = 1 << 2


def user_name(user_id: int) -> str:
    """Return the name of a local user; the number if it has none."""
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return str(user_id)


def denied(path: Path, owner: Path | None = None) -> str:
    """Return the message for a path that this user may not read or write. owner: a path whose owner may."""
    try:
        name = user_name((owner or path).stat().st_uid)
    except OSError:
        return f"{path}: permission denied for user {user_name(os.geteuid())}"
    me = user_name(os.geteuid())
    return f"{path}: permission denied for user {me}; run this command as user {name} or as root"


@contextmanager
def as_owner(directory: Path, *, reads_all: bool = True) -> Iterator[None]:
    """Access files as the owner of a directory, in this thread and in those that it starts meanwhile.

    Changes nothing for another user than root, and in a thread that acts as another user already. reads_all: root's
    right to read every file stays, for this program's own modules and for a backup to restore. OSError: there is no
    such directory.
    """
    if os.geteuid() != 0 or not (owner := directory.stat()).st_uid or (before := _file_ids())[0] != 0:
        yield
        return
    _act_as(owner.st_uid, owner.st_gid)
    if reads_all:
        _keep_reading()
    try:
        yield
    finally:
        _act_as(*before)


def become_owner(directory: Path) -> str:
    """Give up root for good, for the owner of a directory. Return its name; empty: this is not root, or the owner is.

    OSError: there is no such directory.
    """
    if os.geteuid() != 0 or not (owner := directory.stat()).st_uid:
        return ""
    name = user_name(owner.st_uid)
    try:
        group = pwd.getpwuid(owner.st_uid).pw_gid
        os.initgroups(name, group)
    except KeyError:
        group = owner.st_gid
        os.setgroups([group])
    os.setresgid(group, group, group)
    os.setresuid(owner.st_uid, owner.st_uid, owner.st_uid)
    return name


def _libc() -> "CDLL":
    from ctypes import CDLL  # the endpoint agent imports this module, and does without

    return CDLL(None)


def _file_ids() -> tuple[int, int]:
    """Return the user and group that this thread accesses files as."""
    library = _libc()
    return int(library.setfsuid(_ASK)), int(library.setfsgid(_ASK))


def _act_as(user_id: int, group_id: int) -> None:
    """Access files as a user and a group, in this thread. PermissionError."""
    library = _libc()
    library.setfsgid(group_id)
    library.setfsuid(user_id)
    if _file_ids() != (user_id, group_id):  # neither call returns whether it failed
        raise PermissionError(f"files cannot be accessed as user {user_id}")


def _keep_reading() -> None:
    """Take back the capability to read every file, which setfsuid(2) takes from this thread, where root has it."""
    from ctypes import c_uint32

    library, header = _libc(), (c_uint32 * 2)(_VERSION_3, 0)
    sets = (c_uint32 * 6)()  # effective, permitted and inheritable, of capabilities 0 to 31 and then of the others
    if library.capget(header, sets) == 0 and sets[1] & _DAC_READ_SEARCH:
        sets[0] |= _DAC_READ_SEARCH
        library.capset(header, sets)
