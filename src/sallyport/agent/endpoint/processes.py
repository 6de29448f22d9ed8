"""Finds all processes of an account, under every uid that the account can use, and ends them.

A hostile user may hide processes in namespaces, under subordinate uids (/etc/subuid), or behind a /proc entry that
belongs to root (PR_SET_DUMPABLE, prctl(2)). The user may also fork faster than /proc can be read. Therefore this module
reads uids from /proc/PID/status. It regards a namespace as a namespace of the users that created it. If the processes
of a uid fork too fast, one system call stops all processes of this uid. A signal is sent through the open /proc
directory of the examined process. So the signal cannot reach another process that has got the same process id in the
meantime.
"""

import errno
import fcntl
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sallyport.base.errors import HostError
from sallyport.base.text import counted

_GRACE_S: Final = 3.0
"""Time between SIGTERM and SIGKILL, in seconds."""
_KILL_S: Final = 10.0
"""Time limit in seconds for SIGKILL. Processes that are still running after this time are an error."""
_FORKING_S: Final = 1.0
"""Time in seconds after the first SIGKILL. Processes that are left after this time probably fork faster than they are
found, so they are stopped (SIGSTOP) before they are killed. They are not stopped earlier, because su(1) stops together
with a process for which it waits."""
_STEP_S: Final = 0.05
_NS_GET_PARENT: Final = 0xB702  # ioctl_ns(2)
_NS_GET_OWNER_UID: Final = 0xB704
_UNUSED_UID: Final = 2**32 - 3
"""The real uid of the agent while it sends signals with the rights of a user. No user can send signals to a process of
this uid, and this uid cannot send signals to processes of root."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process, as read from /proc at one moment.

    uids: the real, effective, saved and file-system uid. creators: the uids that created the process's user namespace
    and the namespaces that contain it. If the process is in the host's user namespace, `creators` is empty.
    is_contained: whether the process has another process-id namespace than the host.
    """

    id: int
    uids: frozenset[int]
    creators: frozenset[int]
    is_contained: bool


@dataclass(frozen=True, slots=True)
class Ids:
    """The user ids of an account. subordinate: the ranges of the account in /etc/subuid that contain no id of another
    account."""

    uid: int
    subordinate: tuple[range, ...] = ()

    def own(self, process: Process) -> bool:
        """Return whether a process belongs to the account.

        A process in a container that root has started does not belong to the account, because uids in the container are
        not uids of the host's accounts. A process in a container that the account has started belongs to the account
        (user_namespaces(7)).
        """
        return self.uid in process.creators or (not process.is_contained and bool(self.within(process)))

    def within(self, process: Process) -> set[int]:
        """Return the uids of a process that belong to the account."""
        return {uid for uid in process.uids if uid == self.uid or any(uid in each for each in self.subordinate)}


class Processes:
    """The processes of the host. proc: the directory from which the processes are read, or None for a host without
    processes, such as a root directory other than /."""

    def __init__(self, proc: Path | None = Path("/proc")) -> None:
        self._proc = proc

    def all(self) -> list[Process]:
        """Return the live processes of the host."""
        return [process for process, _ in self._examined()]

    def of(self, ids: Ids) -> list[Process]:
        """Return the live processes of an account."""
        return [process for process in self.all() if ids.own(process)]

    def end(self, ids: Ids) -> None:
        """Send SIGTERM to the processes of an account. After three seconds, send SIGKILL until no process is left.

        Raises HostError if processes are still running after ten seconds of SIGKILL.
        """
        self._signal(ids, signal.SIGTERM)
        deadline = time.monotonic() + _GRACE_S
        while self.of(ids) and time.monotonic() < deadline:
            time.sleep(_STEP_S)
        begin = time.monotonic()
        while left := self.of(ids):
            passed_s = time.monotonic() - begin
            if passed_s >= _KILL_S:
                raise HostError(
                    f"{counted(len(left), 'process is', 'processes are')} still running after SIGKILL: a file "
                    "system may hang"
                )
            if passed_s >= _FORKING_S:
                self._kill_stopped({uid for process in left for uid in ids.within(process)}, ids)
            else:
                self._signal(ids, signal.SIGKILL)
            time.sleep(_STEP_S)

    def _kill_stopped(self, uids: set[int], ids: Ids) -> None:
        """Stop all processes with these uids, kill those that belong to the account, and let the remaining ones
        continue. uids: the uids of the account."""
        for uid in uids:
            _stop_all(uid)
        self._signal(ids, signal.SIGKILL)
        for process, directory in self._examined():
            if process.uids & uids and not ids.own(process):
                _send(process, directory, signal.SIGCONT)

    def _signal(self, ids: Ids, number: signal.Signals) -> None:
        for process, directory in self._examined():
            if ids.own(process):
                _send(process, directory, number)

    def _examined(self) -> Iterator[tuple[Process, int]]:
        """Yield each live process with a descriptor of its directory in /proc."""
        if self._proc is None:
            return
        host = self._proc / "self" / "ns"
        user, pid = (host / "user").stat().st_ino, (host / "pid").stat().st_ino
        for name in (each.name for each in self._proc.iterdir() if each.name.isdecimal()):
            try:
                directory = os.open(self._proc / name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except OSError:
                continue  # the process has ended
            try:
                process = _examine(int(name), directory, user, pid)
                if process is not None:
                    yield process, directory
            finally:
                os.close(directory)


def _examine(number: int, directory: int, user: int, pid: int) -> Process | None:
    """Return the process that a directory in /proc describes, or None if the process has ended. user, pid: the inode
    numbers of the host's user namespace and process-id namespace."""
    try:
        with os.fdopen(os.open("status", os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory), errors="replace") as file:
            status = dict(line.split(":\t", 1) for line in file if ":\t" in line)
    except OSError:
        return None
    state = status["State"][:1]
    # The main thread of a process may end before its other threads: only a zombie without other threads is dead.
    if state == "X" or (state == "Z" and int(status["Threads"]) <= 1):
        return None
    creators, is_contained = frozenset[int](), False
    with suppress(OSError):  # the process or its main thread has ended: decide by its uids alone
        is_contained = os.stat("ns/pid", dir_fd=directory).st_ino != pid
        if os.stat("ns/user", dir_fd=directory).st_ino != user:
            creators = frozenset(_creators(os.open("ns/user", os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)))
    return Process(number, frozenset(map(int, status["Uid"].split())), creators, is_contained)


def _creators(namespace: int) -> Iterator[int]:
    """Yield the uids that created a user namespace and the namespaces that contain it, except for the host's namespace
    (ioctl_ns(2)).

    namespace: a descriptor of the user namespace. This function closes the descriptor.
    """
    while True:
        try:
            above = fcntl.ioctl(namespace, _NS_GET_PARENT)
            owner = bytearray(4)
            fcntl.ioctl(namespace, _NS_GET_OWNER_UID, owner)
        except OSError:  # the host's namespace has no parent
            return
        finally:
            os.close(namespace)
        yield int.from_bytes(owner, sys.byteorder)
        namespace = above


def _stop_all(uid: int) -> None:
    """Stop all processes of a uid at once with kill(2) of process id -1, so that no process escapes by a fork.

    The kernel sends the signal to all processes to which the sender is allowed to send a signal. Therefore the agent
    takes this uid as its effective uid during the call. In a container without _UNUSED_UID, the agent cannot do so, and
    no process is stopped. If the agent still had the rights of root, the signal would reach all processes. In this
    case, this function raises HostError instead.
    """
    try:
        os.setresuid(_UNUSED_UID, uid, 0)
    except OSError:
        return
    try:
        with suppress(PermissionError):
            os.kill(1, 0)
            raise HostError("the agent keeps the rights of root, so processes cannot be stopped safely")
        with suppress(OSError):
            os.kill(-1, signal.SIGSTOP)
    finally:
        os.setresuid(0, 0, 0)


def _send(process: Process, directory: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        try:
            signal.pidfd_send_signal(directory, number)
        except (AttributeError, OSError) as error:
            if getattr(error, "errno", errno.ENOSYS) != errno.ENOSYS:
                raise
            os.kill(process.id, number)  # Linux before 5.1, or a Python that was built on it


NO_PROCESSES: Final = Processes(None)
