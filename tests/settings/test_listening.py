"""The reasons why an address cannot be bound, tested with real processes that hold the address."""

import fcntl
import multiprocessing
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from sallyport.base.errors import StartError
from sallyport.settings.listening import (
    SocketOwner,
    bound,
    cannot_listen,
    holder,
    locking_process,
    lowest_unprivileged_port,
    process_name,
)
from sallyport.settings.values import Address
from tests.ports import free_port

UDP, TCP = socket.SOCK_DGRAM, socket.SOCK_STREAM
NOBODY = 65534
HOLD = """
import socket, sys
family, kind, host = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, int(sys.argv[2]), sys.argv[1]
sock = socket.socket(family, kind)
sock.bind((host, int(sys.argv[3])))
if kind == socket.SOCK_STREAM:
    sock.listen()
print(flush=True)
sys.stdin.read()
"""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@contextmanager
def held(host: str, kind: socket.SocketKind) -> Iterator[tuple[int, int]]:
    """Run a program that holds a port of an address, and yield (process, port)."""
    port = free_port()
    command = [sys.executable, "-c", HOLD, host, str(int(kind)), str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline()
        yield program.pid, port
        program.communicate()


def refused(setting: str, address: Address, kind: socket.SocketKind) -> StartError:
    """Return the error for a socket that cannot be bound."""
    with socket.socket(socket.AF_INET6 if ":" in address.host else socket.AF_INET, kind) as sock:
        if sock.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        with pytest.raises(OSError) as raised:
            sock.bind(tuple(address))
    return cannot_listen(setting, address, kind, raised.value)


@pytest.mark.parametrize(
    ("held_at", "wanted", "kind"),
    [
        ("127.0.0.1", "127.0.0.1", UDP),
        ("127.0.0.1", "0.0.0.0", UDP),
        ("0.0.0.0", "127.0.0.1", TCP),
        ("::1", "::", UDP),
        ("::1", "::1", TCP),
        ("::", "127.0.0.1", UDP),
    ],
)
def test_the_process_that_holds_a_port_is_named(held_at: str, wanted: str, kind: socket.SocketKind) -> None:
    """The message names the setting, its variable, the address, and the process with its ID. A socket that holds a
    wildcard address or both families is found as well.
    """
    with held(held_at, kind) as (process, port):
        address = Address(wanted, port)
        message = str(refused("radius_auth_bind", address, kind))
        name = Path(f"/proc/{process}/comm").read_text().strip()
    protocol = "UDP" if kind == UDP else "TCP"
    assert message == (
        f"setting radius_auth_bind: cannot listen on {address} ({protocol}): in use by {name} (process {process}); "
        "stop it, or change SALLYPORT_RADIUS_AUTH_BIND"
    )


@pytest.mark.parametrize(("held_at", "wanted"), [("127.0.0.1", "127.0.0.2"), ("127.0.0.1", "::1"), ("0.0.0.0", "::")])
def test_a_socket_of_another_address_is_not_blamed(held_at: str, wanted: str) -> None:
    """A socket with the same port but another address or family does not prevent a bind."""
    with held(held_at, UDP) as (_, port):
        assert holder(Address(wanted, port), UDP) is None
        assert holder(Address(held_at, port), TCP) is None


def test_a_closed_connection_is_not_blamed() -> None:
    """A connection that the server has closed stays in the state TIME_WAIT. It belongs to no process, and prevents no
    bind."""
    address = Address("127.0.0.1", free_port())
    with bound(address, TCP) as listener, socket.create_connection(tuple(address)) as client:
        listener.accept()[0].close()
        assert not client.recv(1)
    assert f":{address.port:04X} 0100007F" in Path("/proc/net/tcp").read_text(encoding="ascii")
    assert holder(address, TCP) is None


def test_an_address_of_two_settings_is_reported() -> None:
    """If the process itself holds the address, the message names the other setting."""
    with socket.socket(socket.AF_INET, UDP) as own:
        own.bind(("127.0.0.1", 0))
        message = str(refused("radius_acct_bind", Address(*own.getsockname()), UDP))
    assert message.endswith("another setting of this service has the same address; change SALLYPORT_RADIUS_ACCT_BIND")


@as_root
def test_the_process_of_another_user_cannot_be_named() -> None:
    """For an ordinary user, the message has the user of the process that holds the socket. Only root can see which
    process this is.
    """
    with held("127.0.0.1", TCP) as (_, port):
        message = as_ordinary_user("http_bind", Address("127.0.0.1", port), TCP)
    assert "by a process of user root (only root can see which one); stop it, or change SALLYPORT_HTTP_BIND" in message


@as_root
def test_a_privileged_port_is_reported() -> None:
    """For an ordinary user, the message has the lowest port that every user may use. It also has the capability that
    allows the service a lower one.
    """
    lowest = lowest_unprivileged_port()
    if lowest <= 1:
        pytest.skip("every user of this machine may use every port")
    message = as_ordinary_user("http_bind", Address("127.0.0.1", lowest - 1), TCP)
    assert f"only root may use a port below {lowest}; set SALLYPORT_HTTP_BIND to a higher port" in message
    assert "AmbientCapabilities=CAP_NET_BIND_SERVICE" in message


def test_an_address_of_no_interface_is_reported() -> None:
    """If no interface of the machine has the address, the message has this as the reason."""
    message = str(refused("radsec_bind", Address("192.0.2.77", 0), TCP))
    assert message.endswith("no interface of this machine has the address; change SALLYPORT_RADSEC_BIND")


def test_a_holder_without_a_name_is_shown_as_a_number() -> None:
    """If a user has no name or a process has ended, its number is shown."""
    assert str(SocketOwner(4_000_000)).startswith("a process of user 4000000")
    assert process_name(2**22 + 1) == f"process {2**22 + 1}"


def test_the_process_that_holds_a_lock_is_named(tmp_path: Path) -> None:
    """While a lock is held, its process is named. If the lock is free, no process is named."""
    path = tmp_path / "lock"
    with path.open("w") as file:
        assert locking_process(path) == "another process"
        fcntl.flock(file, fcntl.LOCK_EX)
        assert locking_process(path) == process_name(os.getpid())


def as_ordinary_user(setting: str, address: Address, kind: socket.SocketKind) -> str:
    """Return the error message that an ordinary user gets when it binds an address."""
    forks = multiprocessing.get_context("forkserver")
    answer, give = forks.Pipe(duplex=False)
    process = forks.Process(target=_ask_as_ordinary_user, args=(give, setting, address, kind))
    process.start()
    give.close()
    try:
        return str(answer.recv())
    finally:
        process.join()


def _ask_as_ordinary_user(give: Connection, setting: str, address: Address, kind: socket.SocketKind) -> None:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    give.send(str(refused(setting, address, kind)))
