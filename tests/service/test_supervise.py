"""Tests of notifications to systemd, and of reloading the settings at SIGHUP."""

import json
import os
import signal
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
import structlog
import trio
import trio.testing

from sallyport.base import log as logs
from sallyport.base.errors import ConfigError, StoreError
from sallyport.host.notify import Notifier
from sallyport.service.supervise import LOOK_S, feed_watchdog, reload, watch_room
from sallyport.web.server import Tls
from tests.areas import Areas, running_store
from tests.areas.mfa.certificates import self_signed
from tests.running_service import RunningService, running_service

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


def logged(service: RunningService, event: str, count: int = 1) -> list[dict[str, object]]:
    """Wait until the log has `count` lines of an event, and return these lines."""
    deadline = time.monotonic() + WAIT_S
    while True:
        lines = [json.loads(line) for line in service.log().splitlines() if line.startswith("{")]
        if len(found := [line for line in lines if line["event"] == event]) >= count:
            return found
        assert time.monotonic() < deadline, f"{event} is not in the log"
        time.sleep(0.05)


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
    with structlog.testing.capture_logs() as lines, trio.move_on_after(8.5 * LOOK_S):
        await watch_room(Path("/var/lib/x"), 100 << 20, lambda _: None if (left := next(seen)) is None else left << 20)
    levels = [(each["log_level"], each["left_mib"]) for each in lines]
    assert levels == [("warning", 99), ("info", 130), ("warning", 99)]
    assert lines[0]["directory"] == "/var/lib/x"


async def test_disk_space_is_not_watched_without_a_threshold() -> None:
    """Without a threshold the task ends at once."""
    with structlog.testing.capture_logs() as lines:
        await watch_room(Path("/"), 0)
    assert lines == []


def test_without_a_service_manager_nothing_is_sent() -> None:
    """A missing socket is no error. A watchdog that is set for another process is ignored."""
    Notifier({}).ready("x")
    Notifier({"NOTIFY_SOCKET": "/there/is/no/socket"}).alive()
    ours = {"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "2000000", "WATCHDOG_PID": str(os.getpid())}
    assert Notifier(ours).watchdog_s == 2.0
    assert Notifier({**ours, "WATCHDOG_PID": "1"}).watchdog_s is None
    assert Notifier({"WATCHDOG_USEC": "2000000"}).watchdog_s is None


def test_sighup_reloads_the_settings(tmp_path: Path) -> None:
    """A new log level applies at once.

    Settings that need a restart are named. If the file is broken, nothing is changed.
    """
    file = tmp_path / "sallyport.toml"
    file.write_text('log_level = "info"\n')
    with running_service(tmp_path, fresh=True) as service:
        file.write_text('log_level = "debug"\nevent_days = 7\n')
        os.kill(service.process_id, signal.SIGHUP)
        (line,) = logged(service, "settings_reloaded")
        assert (line["log_level"], line["need_a_restart"]) == ("debug", ["event_days"])
        assert service.ok("log", "level") == "debug"
        file.write_text('log_level = "shout"\n')
        os.kill(service.process_id, signal.SIGHUP)
        (line,) = logged(service, "settings_not_reloaded")
        assert "shout" not in str(line)
        assert service.call("log.level") == "debug"


async def test_a_failed_reload_applies_no_setting(areas: Areas) -> None:
    """If a certificate cannot be used, the new log level does not apply either."""
    areas.app.tls = Tls(Path("/there/is/no.pem"), Path("/there/is/no.key"))
    before = logs.level()
    with pytest.raises(ConfigError, match="tls_certificate"):
        await reload(areas.app, lambda: areas.settings.model_copy(update={"log_level": "debug"}))
    assert logs.level() == before != "debug"


async def test_a_failed_reload_keeps_the_certificate(areas: Areas, tmp_path: Path) -> None:
    """If the store cannot be read, new connections still get the former certificate. The next reload uses the new
    one."""
    context, chain = self_signed(tmp_path, "first")
    areas.app.tls = Tls(chain, chain.with_suffix(".key"))
    areas.app.tls.load(context)
    first = presented(context)
    _, other = self_signed(tmp_path, "second")
    for suffix in (".pem", ".key"):
        other.with_suffix(suffix).replace(chain.with_suffix(suffix))
    await areas.store.write(lambda tx: tx.execute("alter table config_version rename to away"))
    with pytest.raises(StoreError):
        await reload(areas.app, lambda: areas.settings)
    assert presented(context) == first
    await areas.store.write(lambda tx: tx.execute("alter table away rename to config_version"))
    await reload(areas.app, lambda: areas.settings)
    assert presented(context) != first


def presented(server: ssl.SSLContext) -> bytes:
    """Return the certificate that a client gets from a server's context."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    here, there = client.wrap_bio(to_client, to_server), server.wrap_bio(to_server, to_client, server_side=True)
    for side in (here, there, here):
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
    return here.getpeercert(binary_form=True) or b""


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
