"""Processes of an account: found by every id that the account can take, and ended for good.

A hostile user hides processes in namespaces, in ids of /etc/subuid and behind entries of /proc that belong to root
(PR_SET_DUMPABLE, prctl(2)), and forks faster than /proc can be read. Therefore ids come from /proc/PID/status,
namespaces are followed to their creators, and one system call stops all processes of a uid that forks. A signal is sent
through the examined directory in /proc, so that it cannot reach another process with the same id.
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
"""Time between SIGTERM and SIGKILL."""
_KILL_S: Final = 10.0
"""Time limit of the rounds with SIGKILL."""
_FORKING_S: Final = 1.0
"""Time after which remaining processes are assumed to fork faster than they are found. From then on they are stopped
before they are killed. They are not stopped earlier, since a su(1) that waits for a process would stop with it."""
_STEP_S: Final = 0.05
_NS_GET_PARENT: Final = 0xB702  # ioctl_ns(2)
_NS_GET_OWNER_UID: Final = 0xB704
_UNUSED_UID: Final = 2**32 - 3
"""The agent's real uid while it sends signals as a user. Users cannot signal this uid, and it cannot signal root's
processes."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process, as read from /proc at one moment.

    uids: real, effective, saved and file-system uid. creators: uids that created the user namespaces of the process;
    empty for a process in the host's user namespace. is_contained: whether the process is in a process-id namespace of
    its own.
    """

    id: int
    uids: frozenset[int]
    creators: frozenset[int]
    is_contained: bool


@dataclass(frozen=True, slots=True)
class Ids:
    """The user ids of an account. subordinate: its ranges in /etc/subuid that contain no id of another account."""

    uid: int
    subordinate: tuple[range, ...] = ()

    def own(self, process: Process) -> bool:
        """Return whether a process belongs to the account.

        A process in a container that root has started does not, since uids mean other people there. A process in a
        container that the account has started does (user_namespaces(7)).
        """
        return self.uid in process.creators or (not process.is_contained and bool(self.within(process)))

    def within(self, process: Process) -> set[int]:
        """Return those uids of a process that belong to the account."""
        return {uid for uid in process.uids if uid == self.uid or any(uid in each for each in self.subordinate)}


class Processes:
    """The processes of the host, as `proc` shows them. None: no processes, as beneath a prefix."""

    def __init__(self, proc: Path | None = Path("/proc")) -> None:
        self._proc = proc

    def all(self) -> list[Process]:
        """Return the live processes of the host."""
        return [process for process, _ in self._examined()]

    def of(self, ids: Ids) -> list[Process]:
        """Return the live processes of an account."""
        return [process for process in self.all() if ids.own(process)]

    def end(self, ids: Ids) -> None:
        """Send SIGTERM to the processes of an account, and after three seconds SIGKILL until none is left.

        HostError: processes are left at the time limit.
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
                    f"{counted(len(left), 'process', 'processes')} still running after SIGKILL: a file system may hang"
                )
            if passed_s >= _FORKING_S:
                self._kill_stopped({uid for process in left for uid in ids.within(process)}, ids)
            else:
                self._signal(ids, signal.SIGKILL)
            time.sleep(_STEP_S)

    def _kill_stopped(self, uids: set[int], ids: Ids) -> None:
        """Stop all processes of some uids, kill those of the account, and continue the others."""
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
        """Yield each live process with its open directory in /proc."""
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
    """Return the process of a directory in /proc; None if it has ended. user, pid: the host's namespaces."""
    try:
        with os.fdopen(os.open("status", os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory), errors="replace") as file:
            status = dict(line.split(":\t", 1) for line in file if ":\t" in line)
    except OSError:
        return None
    state = status["State"][:1]
    # The main thread of a process may end before the others: only a zombie without other threads is dead.
    if state == "X" or (state == "Z" and int(status["Threads"]) <= 1):
        return None
    creators, is_contained = frozenset[int](), False
    with suppress(OSError):  # the process, or its main thread, has ended: only its uids count
        is_contained = os.stat("ns/pid", dir_fd=directory).st_ino != pid
        if os.stat("ns/user", dir_fd=directory).st_ino != user:
            creators = frozenset(_creators(os.open("ns/user", os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)))
    return Process(number, frozenset(map(int, status["Uid"].split())), creators, is_contained)


def _creators(namespace: int) -> Iterator[int]:
    """Yield the uids that made a user namespace and those above it, up to the host's (ioctl_ns(2)). Closes the
    descriptor."""
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
    """Stop all processes of a uid at one instant, so that none escapes by a fork (kill(2) with -1).

    The kernel selects the processes by the sender's rights, so the agent has that uid during the call. In a container
    without the unused uid no process is stopped, and the processes are killed one by one.
    """
    try:
        os.setresuid(_UNUSED_UID, uid, 0)
    except OSError:
        return
    try:
        with suppress(PermissionError):
            os.kill(1, 0)
            raise HostError("the agent has root's rights as a user: processes cannot be stopped safely")
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
            os.kill(process.id, number)  # Linux before 5.1, or a Python that was built for it


NO_PROCESSES: Final = Processes(None)
