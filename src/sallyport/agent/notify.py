"""What systemd is told (sd_notify(3)): datagrams of `NAME=value` lines to the socket in $NOTIFY_SOCKET."""

import os
import socket
from collections.abc import Mapping
from contextlib import suppress


class Systemd:
    """The way to systemd; where there is none, nothing is said. watchdog_s: how often `alive` is due, or None."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._address = environ.get("NOTIFY_SOCKET", "")
        self.watchdog_s = _watchdog_s(environ)

    def ready(self, status: str = "") -> None:
        """The agent is at work."""
        self._say("READY=1", status)

    def alive(self) -> None:
        """It still is: to be said well before `watchdog_s` is over, from the place where the work is done."""
        self._say("WATCHDOG=1")

    def status(self, text: str) -> None:
        """What it does, for `systemctl status`."""
        self._say("", text)

    def stopping(self) -> None:
        """It was told to end."""
        self._say("STOPPING=1")

    def _say(self, message: str, status: str = "") -> None:
        if not self._address.startswith(("/", "@")):
            return
        line = "".join(character if character.isprintable() else "?" for character in status)
        text = "\n".join(part for part in (message, f"STATUS={line}" if line else "") if part)
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sock:
            sock.sendto(text.encode(errors="replace"), address)


def _watchdog_s(environ: Mapping[str, str]) -> float | None:
    """Half of the time after which systemd takes the process for dead; None where it does not watch this one."""
    microseconds = environ.get("WATCHDOG_USEC", "")
    if not microseconds.isdecimal() or environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    return int(microseconds) / 2_000_000 or None
