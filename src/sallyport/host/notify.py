"""Messages to the service manager (sd_notify(3)): datagrams to the socket that the variable NOTIFY_SOCKET names.

If the variable is not set, the process was not started by a service manager, and nothing is sent.
"""

import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress


class Notifier:
    """The connection to the service manager.

    watchdog_s: the longest time in seconds between two calls of `alive` that the service manager accepts; None if there
    is no watchdog. alive_s: the interval in seconds at which `alive` should be called, which is half of watchdog_s.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._path = environ.get("NOTIFY_SOCKET", "")
        wanted, process = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", "")
        watches = self._path and process in {"", str(os.getpid())} and wanted.isdecimal()
        self.watchdog_s = int(wanted) / 1e6 or None if watches else None
        self.alive_s = self.watchdog_s / 2 if self.watchdog_s is not None else None

    def ready(self, status: str) -> None:
        """Report that the process is ready. status: text for `systemctl status`."""
        self.send("READY=1", _status(status))

    def status(self, text: str) -> None:
        """Report what the process is doing, for `systemctl status`."""
        self.send(_status(text))

    def reloading(self) -> None:
        """Report that settings are being reloaded. `ready` must be called afterwards."""
        self.send("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self, within_s: float | None = None) -> None:
        """Report that the process is stopping. within_s: the maximum time in seconds until the process ends. The
        service manager then uses this time instead of the unit's timeout."""
        self.send("STOPPING=1", *(() if within_s is None else (f"EXTEND_TIMEOUT_USEC={int(within_s * 1e6)}",)))

    def alive(self) -> None:
        """Reset the watchdog's timer."""
        self.send("WATCHDOG=1")

    def send(self, *lines: str) -> None:
        """Send the lines of a message. Errors are ignored, because they must not stop the service."""
        if not self._path:
            return
        address = "\0" + self._path[1:] if self._path.startswith("@") else self._path
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
            sock.setblocking(False)
            sock.sendto("\n".join(lines).encode(errors="replace"), address)


class ToParent(Notifier):
    """A Notifier for a worker process. It sends its messages to the parent process instead of the service manager.

    socket: a SOCK_SEQPACKET socket that is connected to the parent process. watchdog_s: see `Notifier`.
    """

    def __init__(self, socket: socket.socket, watchdog_s: float | None) -> None:
        self.socket = socket
        self.watchdog_s = watchdog_s
        self.alive_s = None if watchdog_s is None else watchdog_s / 2

    def send(self, *lines: str) -> None:
        with suppress(OSError):
            self.socket.send("\n".join(lines).encode(errors="replace"))


def _status(text: str) -> str:
    return "STATUS=" + "".join(character if character.isprintable() else "?" for character in text)
