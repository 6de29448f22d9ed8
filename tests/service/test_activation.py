"""The sockets of systemd: each belongs to a setting, and no datagram is lost while the service restarts."""

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from sallyport.base.errors import StartError
from sallyport.service.activation import PassedSockets, passed_sockets
from sallyport.service.sockets import bind, bind_for_workers
from sallyport.settings.listening import bound
from sallyport.settings.settings import Settings
from sallyport.settings.values import Address
from tests.peers.postgres import database_in, needs_postgres
from tests.radius_client import RadiusClient
from tests.running_service import RunningService

ACCEPT = 2
SECRET = "xyzzy5461"
WAIT_S = 60.0
REQUESTS = 100
PASS = """
import fcntl, os, sys
numbers = [int(each) for each in sys.argv[1].split(",")]
high = [fcntl.fcntl(each, fcntl.F_DUPFD, 100) for each in numbers]  # above the numbers that are replaced
for place, each in enumerate(high, 3):
    os.dup2(each, place)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(high)), "LISTEN_FDNAMES": "sallyport.socket"}
os.execv(sys.argv[2], sys.argv[2:])
"""
"""Becomes a program with inherited descriptors, as systemd does. Its arguments are the descriptors and the program."""


class Activated(RunningService):
    """A service that gets its sockets from this process. sockets: by the name of their setting. settings: further
    environment variables."""

    def __init__(self, directory: Path, sockets: dict[str, list[socket.socket]], **settings: str) -> None:
        binds = {
            f"SALLYPORT_{name.upper()}": ",".join({str(Address(*each.getsockname()[:2])): "" for each in several})
            for name, several in sockets.items()
        }
        super().__init__(directory, {**binds, "SALLYPORT_REJECT_DELAY_S": "0", **settings}, fresh=True)
        self._descriptors = [each.fileno() for several in sockets.values() for each in several]

    def _started(self) -> "subprocess.Popen[bytes]":
        numbers = ",".join(map(str, self._descriptors))
        command = [sys.executable, "-c", PASS, numbers, self._program, "serve"]
        with self.log_path.open("ab") as log:
            return subprocess.Popen(
                command, stdout=log, stderr=log, env=self.environ, cwd=self.directory, pass_fds=self._descriptors
            )


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Activated]:
    """Yield a service with a client and a user, whose sockets for IPv4, IPv6 and HTTP this process keeps open."""
    with ExitStack() as held:
        udp, tcp = socket.SOCK_DGRAM, socket.SOCK_STREAM
        opened = {
            "radius_auth_bind": [bound(Address(host, 0), udp) for host in ("127.0.0.1", "::1")],
            "http_bind": [bound(Address("127.0.0.1", 0), tcp)],
        }
        for each in (sock for several in opened.values() for sock in several):
            held.enter_context(closing(each))
        found = Activated(tmp_path, opened)
        held.callback(found.kill)
        found.start()
        found.add_client("vpn", "127.0.0.1", SECRET)
        found.add_client("vpn6", "::1", SECRET)
        found.add_user("ann", "correct horse")
        yield found


def test_datagrams_wait_while_the_service_is_stopped(service: Activated) -> None:
    """Requests that arrive while no service runs are answered after its next start, over IPv4, IPv6 and HTTP."""
    service.stop()
    with service.radius(SECRET) as nas, closing(socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)) as nas6:
        nas6.connect(("::1", int(service.environ["SALLYPORT_RADIUS_AUTH_BIND"].rpartition(":")[2])))
        nas6.send(nas.packet("ann", "correct horse"))
        for _ in range(REQUESTS):
            nas.send(nas.packet("ann", "correct horse"))
        http = socket.create_connection(("127.0.0.1", service.ports.http), timeout=WAIT_S)
        with closing(http):
            http.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            service.start()
            for sock, count in ((nas.sock, REQUESTS), (nas6, 1)):
                sock.settimeout(WAIT_S)
                assert {sock.recv(4096)[0] for _ in range(count)} == {ACCEPT}
            assert http.recv(4096).startswith(b"HTTP/1.1 200")


def test_each_login_of_a_restart_gets_an_answer(service: Activated) -> None:
    """While the service restarts, each login gets an answer, at the latest to a retransmission."""
    assert restarted(service, senders=4) == {ACCEPT}


@pytest.mark.peer
@needs_postgres
def test_each_login_of_a_restart_of_workers_gets_an_answer(tmp_path: Path, held: ExitStack) -> None:
    """The same holds for several workers, each with a socket of its own. The kernel keeps the requests of a socket
    until the next worker reads them."""
    sockets = {
        "radius_auth_bind": opened(held, socket.SOCK_DGRAM, shared=2),
        "http_bind": [held.enter_context(closing(bound(Address("127.0.0.1", 0), socket.SOCK_STREAM)))],
    }
    database = database_in(tmp_path, is_empty=True)
    service = Activated(tmp_path, sockets, SALLYPORT_DATABASE=database, SALLYPORT_WORKERS="2")
    held.callback(service.kill)
    service.start()
    service.add_client("vpn", "127.0.0.1", SECRET)
    service.add_user("ann", "correct horse")
    assert restarted(service, senders=8) == {ACCEPT}
    assert service.stop() == 0


def restarted(service: RunningService, *, senders: int) -> set[int]:
    """Restart a service while devices log in, and return the codes of the answers, 0 for a login without one."""
    ended, codes = threading.Event(), list[int]()

    def log_in() -> None:
        with service.radius(SECRET) as nas:
            nas.sock.settimeout(2)
            while not ended.is_set():
                codes.append(answered(nas))

    threads = [threading.Thread(target=log_in) for _ in range(senders)]
    for each in threads:
        each.start()
    service.stop()
    service.start()
    ended.set()
    for each in threads:
        each.join()
    return set(codes)


def answered(nas: RadiusClient) -> int:
    """Log in, with a retransmission every two seconds for a minute. Return the code of the answer, or 0."""
    request = nas.packet("ann", "correct horse")
    for _ in range(30):
        nas.send(request)
        try:
            return nas.receive(request)[0]
        except TimeoutError:
            continue
    return 0


def wanted(**more: object) -> Settings:
    """Return settings with the addresses of the tests below."""
    given = {"radius_auth_bind": "127.0.0.1:0", "radius_acct_bind": "", "http_bind": "127.0.0.1:0"}
    return Settings(**{**given, **more})  # type: ignore[arg-type]  # pydantic checks them


@pytest.fixture
def held() -> Iterator[ExitStack]:
    """Yield the stack that closes the sockets of a test."""
    with ExitStack() as stack:
        yield stack


def opened(held: ExitStack, kind: socket.SocketKind, *, shared: int = 1) -> list[socket.socket]:
    """Return sockets on one free port."""
    port, found = 0, list[socket.socket]()
    for _ in range(shared):
        sock = held.enter_context(closing(socket.socket(socket.AF_INET, kind)))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shared > 1)
        sock.bind(("127.0.0.1", port))
        port = sock.getsockname()[1]
        found.append(sock)
    return found


def test_a_socket_without_a_setting_is_refused(held: ExitStack) -> None:
    """Its datagrams would never be answered. The message names the address and the remedy."""
    (sock,) = opened(held, socket.SOCK_DGRAM)
    port = sock.getsockname()[1]
    with pytest.raises(StartError, match=rf"127\.0\.0\.1:{port} \(UDP\), but no setting has this address; run `sudo"):
        bind(wanted(), held, PassedSockets([sock]))


def test_a_socket_that_does_not_listen_is_refused(held: ExitStack) -> None:
    """An address of HTTP needs a listening socket."""
    (sock,) = opened(held, socket.SOCK_STREAM)
    address = f"127.0.0.1:{sock.getsockname()[1]}"
    with pytest.raises(StartError, match="does not listen: use ListenStream="):
        bind(wanted(http_bind=address), held, PassedSockets([sock]))


def test_an_ipv6_socket_for_ipv4_too_is_refused(held: ExitStack) -> None:
    """The addresses of IPv4 clients would look like IPv6 addresses."""
    sock = held.enter_context(closing(socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)))
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    sock.bind(("::", 0))
    with pytest.raises(StartError, match="BindIPv6Only=ipv6-only"):
        bind(wanted(radius_auth_bind=f"[::]:{sock.getsockname()[1]}"), held, PassedSockets([sock]))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_each_worker_needs_a_socket_of_its_own(tmp_path: Path, held: ExitStack, count: int) -> None:
    """With as many sockets of an address as workers, each gets one. Any other number is refused."""
    sockets = opened(held, socket.SOCK_DGRAM, shared=count)
    auth = f"127.0.0.1:{sockets[0].getsockname()[1]}"
    settings = wanted(radius_auth_bind=auth, workers=2, data_dir=tmp_path)
    passed = PassedSockets(sockets)
    if count == 2:
        workers = bind_for_workers(settings, held, passed)
        assert [[sock for _, sock in each.radius] for each in workers] == [[each] for each in sockets]
    else:
        with pytest.raises(StartError, match=rf"exists {count} times, not 2 times, once for each of the `workers`"):
            bind_for_workers(settings, held, passed)


def test_the_sockets_of_another_process_are_ignored() -> None:
    """A child of the service inherits the variables, but not the sockets."""
    assert passed_sockets({"LISTEN_PID": "1", "LISTEN_FDS": "2"}) == []
    assert passed_sockets({}) == []
