"""`sallyport check radius`: an answer with its time, or why there is none."""

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from sallyport.cli.diagnosis import REMEDIES
from sallyport.login.login import Reason
from sallyport.radius.packet import ACCESS_ACCEPT, SharedSecret, decode, encode_reply, response_authenticator
from tests.cli import SECRET, Service, add_client, add_user
from tests.service import RunningService

QUICK = ("--timeout", "1", "--retries", "0")
LOGIN = ("--user", "ann", "--password", "hello")


@pytest.fixture(scope="module")
def server(service: Service) -> Iterator[str]:
    """The service's authentication port, which knows 127.0.0.1 and its user ann."""
    add_client(service, "here", "127.0.0.1", "default")
    add_user(service, "default", "ann")
    yield f"127.0.0.1:{service.ports.auth}"


def test_an_accept_ends_with_0(service: Service, server: str) -> None:
    """One line: the answer, where it came from, and how long it took."""
    done = service.program("check", "radius", server, "--secret", SECRET, *LOGIN)
    assert done.returncode == 0
    assert re.fullmatch(rf"Access-Accept from {server} in \d+\.\d ms\n", done.stdout)
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("options", "answer", "status"),
    [
        (("--user", "ann", "--password", "wrong"), "Access-Reject", 1),
        ((*LOGIN, "--chap"), "Access-Accept", 0),
        (("--user", "ann", "--password", "wrong", "--chap"), "Access-Reject", 1),
        (("--status",), "Access-Accept", 0),
    ],
)
def test_other_requests(service: Service, server: str, options: tuple[str, ...], answer: str, status: int) -> None:
    """A reject ends with 1; CHAP and Status-Server work."""
    done = service.cli("check", "radius", server, "--secret", SECRET, *options)
    assert (done.stdout.split()[0], done.returncode) == (answer, status)


def test_accounting(service: Service, server: str) -> None:
    """An Accounting-Response of the accounting port ends with 0; nobody is connected by it."""
    port = f"localhost:{service.ports.acct}"
    done = service.cli("check", "radius", port, "--secret", SECRET, "--accounting", "--user", "ann")
    assert (done.stdout.split()[0], done.returncode) == ("Accounting-Response", 0)
    assert '"state": "stopped"' in service.ok("session", "list", "--user", "ann", "--json")
    assert json.loads(service.ok("session", "list", "--live", "--json")) == []


def test_secrets_from_standard_input(service: Service, server: str) -> None:
    """Secret, then password, a line each, as octets."""
    add_user(service, "default", "latin", b"gr\xfcn")
    arguments = ("--secret", "-", "--user", "latin", "--password", "-")
    done = service.program("check", "radius", server, *arguments, input=SECRET.encode() + b"\ngr\xfcn\n")
    assert done.stdout.startswith("Access-Accept")


def test_a_wrong_secret_is_named(service: Service, server: str) -> None:
    """The server is silent; the service that runs here knows why. The secret is not repeated."""
    done = service.cli("check", "radius", server, "--secret", "not-the-Secret", *LOGIN, *QUICK)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no answer" in done.stderr
    assert done.stderr.splitlines()[-2:] == [
        f"The service of {service.data_dir} dropped a packet of 127.0.0.1: wrong secret",
        "What to do: enter the secret of RADIUS client here at the device again",
    ]
    assert "not-the-Secret" not in done.stderr


def test_an_unknown_client_is_named(stopped: RunningService) -> None:
    """A service that does not know this address says so."""
    stopped.start()
    server = f"127.0.0.1:{stopped.ports.auth}"
    done = stopped.cli("check", "radius", server, "--secret", SECRET, *LOGIN, *QUICK)
    assert done.returncode == 1
    assert "no RADIUS client has this address" in done.stderr
    assert "sallyport client add NAME --from-unknown --address 127.0.0.1" in done.stderr


def test_a_service_that_is_not_here(stopped: RunningService) -> None:
    """Nothing answers and no service runs: the source address and where the service was looked for are named."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        server = f"127.0.0.1:{silent.getsockname()[1]}"
        done = stopped.cli("check", "radius", server, "--secret", SECRET, *LOGIN, *QUICK)
    assert "The packets came from 127.0.0.1." in done.stderr
    assert f"On this machine: no Sallyport installation in {stopped.data_dir}" in done.stderr


def test_another_server_has_the_port(service: Service, server: str) -> None:
    """The service of this machine runs and saw nothing of the check."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        other = f"127.0.0.1:{silent.getsockname()[1]}"
        done = service.cli("check", "radius", other, "--secret", SECRET, *LOGIN, *QUICK)
    assert "has dropped no packet of 127.0.0.1: another server has this port" in done.stderr


@pytest.mark.parametrize(
    ("login", "reason", "remedy"),
    [
        (("--user", "ann", "--password", "wrong"), "wrong password", ""),
        (("--user", "zed zed", "--password", "x"), "unknown user", "sallyport user add 'zed zed' --domain default"),
        (("--user", "ann@nowhere", "--password", "hello"), "unknown realm", "sallyport domain list"),
    ],
)
def test_a_reject_has_its_reason(
    service: Service, server: str, login: tuple[str, ...], reason: str, remedy: str
) -> None:
    """The service that runs here has the reason in its log, and most reasons have a remedy."""
    done = service.cli("check", "radius", server, "--secret", SECRET, *login)
    assert done.returncode == 1
    told = done.stderr.splitlines()
    assert told[0] == f"Refused in domain default: {reason}"
    assert told[1:] == [] if not remedy else told[1].startswith("What to do: ") and remedy in told[1]


def test_a_check_latches_nothing(service: Service, server: str) -> None:
    """The client may go on without signatures after a check, and `doctor` does not call its packets unsigned."""
    service.ok("check", "radius", server, "--secret", SECRET, *LOGIN)
    (here,) = [each for each in json.loads(service.ok("client", "list", "--json")) if each["name"] == "here"]
    assert (here["signatureRequired"], here["proxyStateLimited"]) == (False, False)
    findings = [each["finding"] for each in json.loads(service.cli("doctor", "--json").stdout)]
    assert not [each for each in findings if each.startswith("here ") and "Proxy-State" in each]


def test_nobody_listens(service: Service) -> None:
    """A closed port is told at once, by what the machine says (ICMP)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    done = service.cli("check", "radius", f"127.0.0.1:{port}", "--secret", SECRET, *LOGIN)
    assert done.returncode == 1
    assert "nothing listens there" in done.stderr


@contextmanager
def answering(answer: Callable[[bytes], bytes]) -> Iterator[str]:
    """A server that gives one answer, made from the request's octets."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        sock.settimeout(10)

        def serve() -> None:
            datagram, source = sock.recvfrom(4096)
            sock.sendto(answer(datagram), source)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{sock.getsockname()[1]}"
        thread.join()


def accept(datagram: bytes, secret: bytes) -> bytes:
    """An Access-Accept under a secret, whatever the request was made with."""
    request = decode(datagram, SharedSecret(SECRET.encode()))
    return encode_reply(ACCESS_ACCEPT, request, SharedSecret(secret))


def unsigned(datagram: bytes) -> bytes:
    """An Access-Accept without Message-Authenticator, as servers of before 2024 send it."""
    secret = SharedSecret(SECRET.encode())
    head = bytes((ACCESS_ACCEPT, datagram[1], 0, 20))
    return head + response_authenticator(head, datagram[4:20], b"", secret)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda datagram: accept(datagram, b"another-secret"), "made with another secret"),
        (lambda datagram: b"hello", "no RADIUS packet"),
    ],
)
def test_an_answer_that_proves_nothing(service: Service, answer: Callable[[bytes], bytes], told: str) -> None:
    """It is not believed, and what it tells is told."""
    with answering(answer) as server:
        done = service.cli("check", "radius", server, "--secret", SECRET, *LOGIN, *QUICK)
    assert (done.returncode, done.stdout) == (1, "")
    assert told in done.stderr


def test_an_unsigned_answer_is_a_warning(service: Service) -> None:
    """It counts, with a word about BlastRADIUS on standard error."""
    with answering(unsigned) as server:
        done = service.cli("check", "radius", server, "--secret", SECRET, *LOGIN, *QUICK)
    assert done.returncode == 0
    assert "CVE-2024-3596" in done.stderr


def test_a_lost_packet_is_sent_again(service: Service) -> None:
    """The same octets go out once more, and the answer to them counts."""
    seen: list[bytes] = []

    def second(datagram: bytes) -> bytes:
        seen.append(datagram)
        return accept(datagram, SECRET.encode())

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        sock.settimeout(10)

        def serve() -> None:
            first, _ = sock.recvfrom(4096)
            seen.append(first)
            datagram, source = sock.recvfrom(4096)
            sock.sendto(second(datagram), source)

        thread = threading.Thread(target=serve)
        thread.start()
        server = f"127.0.0.1:{sock.getsockname()[1]}"
        done = service.cli("check", "radius", server, "--secret", SECRET, *LOGIN, "--timeout", "1", "--retries", "2")
        thread.join()
    assert seen[0] == seen[1]
    assert "at try 2" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("127.0.0.1:1812", "--secret", "x"),
        ("127.0.0.1:1812", "--secret", "x", "--user", "ann"),
        ("127.0.0.1:1812", *LOGIN),
        ("127.0.0.1:0", "--secret", "x", *LOGIN),
        ("127.0.0.1:port", "--secret", "x", *LOGIN),
        ("::1", "--secret", "x", *LOGIN),
        ("127.0.0.1", "--secret", "x", "--status", "--accounting"),
        ("127.0.0.1", "--secret", "x", "--user", "ann", "--password", "x" * 129),
    ],
)
def test_wrong_usage_ends_with_2(service: Service, arguments: tuple[str, ...]) -> None:
    """What cannot be asked is not sent."""
    assert service.cli("check", "radius", *arguments).returncode == 2


def test_each_remedy_is_of_a_reason() -> None:
    """Each reason with a remedy is one that the service gives."""
    assert set(REMEDIES) <= {reason.value for reason in Reason}
