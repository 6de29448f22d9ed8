"""The processes of an account, so that somebody who has lost access does not stay logged in."""

import fcntl
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

_GRACE_S: Final = 3.0
_NS_GET_OWNER_UID: Final = 0xB704
_STEP_S: Final = 0.05


class Processes:
    """Processes of the host, seen through `proc`; None sees none, as beneath a prefix.

    Those of containers are left alone: their root directory is not the agent's, and their uids mean others. But not
    those of a container that the account has made for itself (user_namespaces(7)), where they would be hidden.
    """

    def __init__(self, proc: Path | None = Path("/proc")) -> None:
        self._proc = proc

    def of(self, uid: int) -> list[int]:
        """The ids of an account's processes."""
        if self._proc is None:
            return []
        return [int(each.name) for each in self._proc.iterdir() if each.name.isdecimal() and _is(each, uid)]

    def end(self, uid: int) -> None:
        """Ask them to end, and end those that do not within three seconds, and what these have started meanwhile."""
        self._send(uid, signal.SIGTERM)
        deadline = time.monotonic() + _GRACE_S
        while self.of(uid) and time.monotonic() < deadline + _GRACE_S:
            if time.monotonic() >= deadline:
                self._send(uid, signal.SIGKILL)
            time.sleep(_STEP_S)

    def _send(self, uid: int, number: signal.Signals) -> None:
        for process in self.of(uid):
            with suppress(ProcessLookupError):
                os.kill(process, number)


def _is(process: Path, uid: int) -> bool:
    """Whether a process is the account's, of this host, and not dead already."""
    try:
        if process.stat().st_uid != uid:
            return False
        root, host = (process / "root").stat(), (process.parent / "self" / "root").stat()
        state = (process / "stat").read_text(errors="replace").rpartition(")")[2].split()[:1]
    except OSError:
        return False
    return state != ["Z"] and (os.path.samestat(root, host) or _owner(process) == uid)


def _owner(process: Path) -> int | None:
    """Who has made the user namespace of a process (ioctl_ns(2)); None where nobody knows."""
    owner = bytearray(4)
    try:
        with (process / "ns" / "user").open("rb") as namespace:
            fcntl.ioctl(namespace, _NS_GET_OWNER_UID, owner)
    except OSError:
        return None
    return int.from_bytes(owner, sys.byteorder)


NO_PROCESSES: Final = Processes(None)
