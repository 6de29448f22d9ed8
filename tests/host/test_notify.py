"""Messages to the service manager."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from sallyport.host.notify import Notifier


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[socket.socket]:
    """Yield the other end of the socket that $NOTIFY_SOCKET names."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.settimeout(10)
        sock.bind(str(tmp_path / "notify"))
        yield sock


def test_messages_have_the_format_of_sd_notify(listener: socket.socket) -> None:
    """A status is sent as one line."""
    manager = Notifier({"NOTIFY_SOCKET": str(listener.getsockname())})
    manager.ready("at work\nSTOPPING=1")
    manager.alive()
    manager.status("waits")
    manager.stopping()
    manager.stopping(1.5)
    sent = [listener.recv(4096).decode() for _ in range(5)]
    assert sent[:3] == ["READY=1\nSTATUS=at work?STOPPING=1", "WATCHDOG=1", "STATUS=waits"]
    assert sent[3:] == ["STOPPING=1", "STOPPING=1\nEXTEND_TIMEOUT_USEC=1500000"]


def test_an_abstract_socket_is_used() -> None:
    """A name that starts with @ is the name of an abstract socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.settimeout(10)
        name = f"sallyport-test-{os.getpid()}"
        sock.bind(f"\0{name}")
        Notifier({"NOTIFY_SOCKET": f"@{name}"}).alive()
        assert sock.recv(100) == b"WATCHDOG=1"


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": "/there/is/none"}], ids=str)
def test_without_a_service_manager_nothing_is_sent(environ: dict[str, str]) -> None:
    """If the socket does not exist, no error is raised."""
    manager = Notifier(environ)
    manager.ready("at work")
    manager.alive()
    assert manager.watchdog_s is None


def watched(**environ: str) -> Notifier:
    """Return the notifier of a process that runs under a service manager."""
    return Notifier({"NOTIFY_SOCKET": "/there/is/none", **environ})


@pytest.mark.parametrize("process", [{}, {"WATCHDOG_PID": str(os.getpid())}], ids=["any", "this"])
def test_the_watchdog_is_notified_twice_in_its_time(process: dict[str, str]) -> None:
    manager = watched(WATCHDOG_USEC="60000000", **process)
    assert (manager.watchdog_s, manager.alive_s) == (60, 30)


@pytest.mark.parametrize(
    "environ",
    [{"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "x"}, {"WATCHDOG_USEC": "0"}],
    ids=["another process", "no number", "never"],
)
def test_without_a_watchdog_there_is_no_interval(environ: dict[str, str]) -> None:
    """A watchdog that is meant for another process, or has an invalid time, is ignored."""
    assert watched(**environ).alive_s is None
