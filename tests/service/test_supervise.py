"""Tests of notifications to systemd, of the watch over the disk, and of the log level."""

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import structlog
import trio
import trio.testing

from sallyport.host.notify import Notifier
from sallyport.service.supervise import LOOK_S, feed_watchdog, watch_room
from tests.areas import running_store
from tests.running_service import running_service

WAIT_S = 30.0


@contextmanager
def manager(path: Path) -> Iterator[socket.socket]:
    """Yield the socket of a service manager."""
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as sock:
        sock.bind(str(path))
        sock.settimeout(WAIT_S)
        yield sock


def next_message(sock: socket.socket, line: str) -> dict[str, str]:
    """Return the next message that contains this line, as a dictionary of names and values."""
    while line not in (lines := sock.recv(4096).decode().splitlines()):
        pass
    return dict(each.split("=", 1) for each in lines)


def test_systemd_is_notified_of_each_state(tmp_path: Path) -> None:
    """READY is sent when every listener answers, and WATCHDOG is sent repeatedly.

    At SIGHUP RELOADING and then READY are sent, and at the stop STOPPING is sent.
    """
    path = tmp_path / "notify"
    (tmp_path / "service").mkdir()
    with manager(path) as sock:
        watched = {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "300000"}
        with running_service(tmp_path / "service", watched, fresh=True) as service:
            next_message(sock, "READY=1")
            for _ in range(3):
                next_message(sock, "WATCHDOG=1")
            os.kill(service.process_id, signal.SIGHUP)
            assert int(next_message(sock, "RELOADING=1")["MONOTONIC_USEC"]) > 0
            next_message(sock, "READY=1")
        next_message(sock, "STOPPING=1")


async def test_the_watchdog_is_not_notified_while_a_write_hangs(tmp_path: Path) -> None:
    """While a write hangs no notification is sent. Notifications continue when the write has ended."""
    resume = threading.Event()
    with manager(tmp_path / "notify") as sock:
        sock.setblocking(False)
        notifier = Notifier({"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "30000"})
        async with running_store(tmp_path / "s.db") as store, trio.open_nursery() as nursery:
            nursery.start_soon(feed_watchdog, store, notifier)
            with trio.fail_after(WAIT_S):
                await trio.lowlevel.wait_readable(sock)
                nursery.start_soon(store.exclusive, lambda _connection: resume.wait(WAIT_S))
                with trio.move_on_after(0.5):
                    while True:  # sent before the write hung
                        await trio.lowlevel.wait_readable(sock)
                        sock.recv(4096)
                with pytest.raises(BlockingIOError):
                    sock.recv(4096)
                resume.set()
                await trio.lowlevel.wait_readable(sock)
            assert sock.recv(4096) == b"WATCHDOG=1"
            nursery.cancel_scope.cancel()


async def test_low_disk_space_is_logged_once(autojump_clock: trio.testing.MockClock) -> None:
    """One warning is logged when the free space falls below the limit.

    One line is logged when the free space is well above the limit again. If the free space is unknown, it is ignored.
    """
    seen = iter([200, 99, 50, None, 110, 99, 130, 120, 99])

    def free(_: Path) -> int | None:
        return None if (left := next(seen)) is None else left << 20

    with structlog.testing.capture_logs() as lines, trio.move_on_after(8.5 * LOOK_S):
        await watch_room(
            Path("/var/lib/x"), lambda: 100 << 20, lambda _: None if (left := next(seen)) is None else left << 20
        )
    levels = [(each["log_level"], each["left_mib"]) for each in lines]
    assert levels == [("warning", 99), ("info", 130), ("warning", 99)]
    assert lines[0]["directory"] == "/var/lib/x"


async def test_disk_space_is_not_watched_without_a_threshold(autojump_clock: trio.testing.MockClock) -> None:
    """Without a threshold nothing is logged, until a reload sets one."""
    least = iter([0, 0, 2])
    with structlog.testing.capture_logs() as lines, trio.move_on_after(2.5 * LOOK_S):
        await watch_room(Path("/"), lambda: next(least), lambda _: 1)
    assert [each["event"] for each in lines] == ["disk_space_low"]


def test_without_a_service_manager_nothing_is_sent() -> None:
    """A missing socket is no error. A watchdog that is set for another process is ignored."""
    Notifier({}).ready("x")
    Notifier({"NOTIFY_SOCKET": "/there/is/no/socket"}).alive()
    ours = {"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "2000000", "WATCHDOG_PID": str(os.getpid())}
    assert Notifier(ours).watchdog_s == 2.0
    assert Notifier({**ours, "WATCHDOG_PID": "1"}).watchdog_s is None
    assert Notifier({"WATCHDOG_USEC": "2000000"}).watchdog_s is None


def test_a_command_sets_the_log_level_until_a_restart(tmp_path: Path) -> None:
    with running_service(tmp_path, fresh=True) as service:
        assert service.ok("log", "level", "error") == "error"
        service.ok("client", "add", "quiet", "--address", "127.0.0.9", "--org", "1", "--tenant", "1")
        assert service.ok("log", "level", "info") == "info"
        service.ok("client", "add", "loud", "--address", "127.0.0.8", "--org", "1", "--tenant", "1")
        assert '"quiet"' not in service.log()
        service.stop()
        service.start()
        assert service.ok("log", "level") == "info"
        assert service.cli("log", "level", "shout").returncode == 2
