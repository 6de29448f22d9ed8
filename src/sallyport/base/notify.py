"""What a service tells its service manager (sd_notify(3)): a datagram of lines to the socket that NOTIFY_SOCKET names.

Without that variable nothing is told: the process was started by hand.
"""

import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress


class Notifier:
    """The way to the service manager. watchdog_s: how often it wants to hear that all is well; None: not at all."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._path = environ.get("NOTIFY_SOCKET", "")
        wanted, process = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", "")
        is_ours = process in {"", str(os.getpid())}
        self.watchdog_s = int(wanted) / 1e6 if self._path and is_ours and wanted.isdecimal() else None

    def ready(self, status: str) -> None:
        """It serves."""
        self._tell("READY=1", f"STATUS={status}")

    def reloading(self) -> None:
        """It reads its settings anew; `ready` must follow."""
        self._tell("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self, within_s: float) -> None:
        """It has begun to stop, and is to be given so much time whatever the unit says."""
        self._tell("STOPPING=1", f"EXTEND_TIMEOUT_USEC={int(within_s * 1e6)}")

    def alive(self) -> None:
        """All is well: the watchdog waits anew."""
        self._tell("WATCHDOG=1")

    def _tell(self, *lines: str) -> None:
        """A manager that is not there is not told: the service goes on."""
        if not self._path:
            return
        address = "\0" + self._path[1:] if self._path.startswith("@") else self._path
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
            sock.setblocking(False)
            sock.sendto("\n".join(lines).encode(), address)
