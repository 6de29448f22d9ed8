"""What systemd is told."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from sallyport.agent.notify import Systemd


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[socket.socket]:
    """The other end of $NOTIFY_SOCKET."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.settimeout(10)
        sock.bind(str(tmp_path / "notify"))
        yield sock


def test_every_message(listener: socket.socket) -> None:
    """The words of sd_notify(3); a status is one line, whatever is in it."""
    systemd = Systemd({"NOTIFY_SOCKET": str(listener.getsockname())})
    systemd.ready("at work\nSTOPPING=1")
    systemd.alive()
    systemd.status("waits")
    systemd.stopping()
    told = [listener.recv(4096).decode() for _ in range(4)]
    assert told == ["READY=1\nSTATUS=at work?STOPPING=1", "WATCHDOG=1", "STATUS=waits", "STOPPING=1"]


def test_an_abstract_socket() -> None:
    """A name that begins with @ is in no directory."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.settimeout(10)
        name = f"sallyport-test-{os.getpid()}"
        sock.bind(f"\0{name}")
        Systemd({"NOTIFY_SOCKET": f"@{name}"}).alive()
        assert sock.recv(100) == b"WATCHDOG=1"


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": "relative"}, {"NOTIFY_SOCKET": "/there/is/none"}], ids=str)
def test_without_systemd_nothing_happens(environ: dict[str, str]) -> None:
    """An agent that is started by hand goes on."""
    systemd = Systemd(environ)
    systemd.ready()
    systemd.alive()
    assert systemd.watchdog_s is None


def test_the_watchdogs_pace() -> None:
    """Half of the time, if this very process is watched."""
    assert Systemd({"WATCHDOG_USEC": "60000000"}).watchdog_s == 30
    assert Systemd({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": str(os.getpid())}).watchdog_s == 30
    for environ in ({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "x"}, {"WATCHDOG_USEC": "0"}):
        assert Systemd(environ).watchdog_s is None
