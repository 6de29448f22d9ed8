"""`sallyport check radius` prints the reply with its round-trip time, or the reason why there is no reply."""

import json
import os
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sallyport.areas.login.login import Reason
from sallyport.cli.diagnosis import NOT_ENROLLED, REMEDIES, remedy_for
from sallyport.radius.attributes import STATE, push_attribute
from sallyport.radius.packet import (
    ACCESS_ACCEPT,
    ACCESS_CHALLENGE,
    SharedSecret,
    decode,
    encode_reply,
    response_authenticator,
)
from tests.cli import SECRET, Service, add_client, add_user
from tests.mail_server import mail_server
from tests.ports import free_port
from tests.running_service import RunningService, running_service

QUICK = ("--timeout", "1", "--retries", "0")
LOGIN = ("--user", "ann", "--password", "hello")


@pytest.fixture(scope="module")
def server(service: Service) -> Iterator[str]:
    """Yield the authentication port of a service that has the client 127.0.0.1 and the user ann."""
    add_client(service, "here", "127.0.0.1", "default")
    add_user(service, "default", "ann")
    yield f"127.0.0.1:{service.ports.auth}"


def test_an_accept_is_printed_in_one_line(service: Service, server: str) -> None:
    """The line has the reply, the server and the round-trip time. The exit status is 0."""
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
def test_chap_and_status_server_are_supported(
    service: Service, server: str, options: tuple[str, ...], answer: str, status: int
) -> None:
    """The exit status is 0 for an Access-Accept, and 1 for an Access-Reject."""
    done = service.cli("check", "radius", server, "--secret", SECRET, *options)
    assert (done.stdout.split()[0], done.returncode) == (answer, status)


def test_an_accounting_request_is_answered(service: Service, server: str) -> None:
    """The exit status is 0 for an Accounting-Response. The check leaves no live session."""
    port = f"localhost:{service.ports.acct}"
    done = service.cli("check", "radius", port, "--secret", SECRET, "--accounting", "--user", "ann")
    assert (done.stdout.split()[0], done.returncode) == ("Accounting-Response", 0)
    assert '"state": "stopped"' in service.ok("session", "list", "--user", "ann", "--json")
    assert json.loads(service.ok("session", "list", "--live", "--json")) == []


def test_secrets_are_read_from_standard_input(service: Service, server: str) -> None:
    """The first line of standard input is the secret, and the second is the password. Both are read as octets."""
    add_user(service, "default", "latin", b"gr\xfcn")
    arguments = ("--secret", "-", "--user", "latin", "--password", "-")
    done = service.program("check", "radius", server, *arguments, input=SECRET.encode() + b"\ngr\xfcn\n")
    assert done.stdout.startswith("Access-Accept")


def test_a_wrong_secret_is_reported(service: Service, server: str) -> None:
    """The server does not answer a request with a wrong secret, and the local service reports the reason. The secret is
    not printed.
    """
    done = service.cli("check", "radius", server, "--secret", "not-the-Secret", *LOGIN, *QUICK)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no answer" in done.stderr
    assert done.stderr.splitlines()[-2:] == [
        f"The service of {service.data_dir} dropped a packet of 127.0.0.1: wrong secret",
        "What to do: enter the secret of RADIUS client here at the device again",
    ]
    assert "not-the-Secret" not in done.stderr


def test_an_unknown_client_is_reported(stopped: RunningService) -> None:
    """If the service has no client with the address of this machine, the message has the command that adds it."""
    stopped.start()
    server = f"127.0.0.1:{stopped.ports.auth}"
    done = stopped.cli("check", "radius", server, "--secret", SECRET, *LOGIN, *QUICK)
    assert done.returncode == 1
    assert "no RADIUS client has this address" in done.stderr
    assert "sallyport client add NAME --from-unknown --address 127.0.0.1" in done.stderr


def test_without_a_local_service_the_data_directory_is_named(stopped: RunningService) -> None:
    """If there is no reply and no local service, the message has the source address and the data directory in which the
    command looked.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        server = f"127.0.0.1:{silent.getsockname()[1]}"
        done = stopped.cli("check", "radius", server, "--secret", SECRET, *LOGIN, *QUICK)
    assert "The packets came from 127.0.0.1." in done.stderr
    assert f"On this machine: no Sallyport installation in {stopped.data_dir}" in done.stderr


def test_another_server_at_the_port_is_reported(service: Service, server: str) -> None:
    """If the local service has received no packet of the check, the message says that another server uses the port."""
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
    """The message has the reason from the log of the local service. For most reasons it has a remedy."""
    done = service.cli("check", "radius", server, "--secret", SECRET, *login)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0] == f"Refused in domain default: {reason}"
    assert lines[1:] == [] if not remedy else lines[1].startswith("What to do: ") and remedy in lines[1]


def test_a_check_may_be_of_a_station(service: Service, server: str) -> None:
    """The event has the station, so that rules and lock-outs of stations can be tried."""
    service.ok("check", "radius", server, "--secret", SECRET, *LOGIN, "--station", "02-00-00-00-00-09")
    events = json.loads(service.ok("event", "list", "--domain", "default", "--limit", "1", "--json"))
    assert events[0]["station"] == "02-00-00-00-00-09"


@pytest.mark.parametrize("option", ["--user", "--nas-identifier", "--station"])
def test_a_value_that_fits_into_no_attribute_is_refused(service: Service, server: str, option: str) -> None:
    """The message names the option and the limit. Octets that are no UTF-8 are sent as they are."""
    too_long = service.program("check", "radius", server, "--secret", SECRET, *LOGIN, option, "x" * 254)
    assert (too_long.returncode, "Traceback" in too_long.stderr) == (2, False)
    assert option in too_long.stderr and "has 254 octets, more than 253" in too_long.stderr
    odd = service.program("check", "radius", server, "--secret", SECRET, *LOGIN, option, os.fsdecode(b"\xff"))
    assert odd.returncode == (1 if option == "--user" else 0), odd.stderr
    assert "Traceback" not in odd.stderr


@pytest.mark.parametrize("name", [(), ("--nas-identifier", "gate")])
def test_a_check_does_not_latch_the_client(service: Service, server: str, name: tuple[str, ...]) -> None:
    """After a check the client may still send unsigned packets. The doctor does not report the packets of the check as
    unsigned.
    """
    service.ok("check", "radius", server, "--secret", SECRET, *LOGIN, *name)
    (here,) = [each for each in json.loads(service.ok("client", "list", "--json")) if each["name"] == "here"]
    assert (here["signatureRequired"], here["proxyStateLimited"]) == (False, False)
    findings = [each["finding"] for each in json.loads(service.cli("doctor", "--json").stdout)]
    assert not [each for each in findings if each.startswith("here ") and "Proxy-State" in each]


def test_a_closed_port_is_reported_at_once(service: Service) -> None:
    """If the port is closed, the ICMP error ends the check before its timeout."""
    port = free_port()
    done = service.cli("check", "radius", f"127.0.0.1:{port}", "--secret", SECRET, *LOGIN)
    assert done.returncode == 1
    assert "the port is closed" in done.stderr


@contextmanager
def answering(answer: Callable[[bytes], bytes], requests: int = 1) -> Iterator[str]:
    """Yield the address of a server that sends a reply to each of some requests. answer: makes the reply from the
    octets of the request.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        sock.settimeout(10)

        def serve() -> None:
            for _ in range(requests):
                datagram, source = sock.recvfrom(4096)
                sock.sendto(answer(datagram), source)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{sock.getsockname()[1]}"
        thread.join()


@pytest.mark.parametrize(
    ("code", "message"),
    [((), "The server asks for a code: add --code"), (("--code", "000001"), "has not accepted the code, and asks for")],
)
def test_a_challenge_says_what_to_do(service: Service, code: tuple[str, ...], message: str) -> None:
    """Who has given no code is told the option. Who has given a wrong one is told that."""

    def challenge(datagram: bytes) -> bytes:
        secret = SharedSecret(SECRET.encode())
        return encode_reply(ACCESS_CHALLENGE, decode(datagram, secret), secret, push_attribute(STATE, b"state"))

    with answering(challenge, 2 if code else 1) as server:
        done = service.cli("check", "radius", server, "--secret", SECRET, *LOGIN, *code)
    assert (done.returncode, message in done.stderr.splitlines()[-1]) == (1, True)


def accept(datagram: bytes, secret: bytes) -> bytes:
    """Return an Access-Accept that is made with `secret`, for a request that was made with SECRET."""
    request = decode(datagram, SharedSecret(SECRET.encode()))
    return encode_reply(ACCESS_ACCEPT, request, SharedSecret(secret))


def unsigned(datagram: bytes) -> bytes:
    """Return an Access-Accept without Message-Authenticator, as older servers send it."""
    secret = SharedSecret(SECRET.encode())
    head = bytes((ACCESS_ACCEPT, datagram[1], 0, 20))
    return head + response_authenticator(head, datagram[4:20], b"", secret)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda datagram: accept(datagram, b"another-secret"), "made with another secret"),
        (lambda datagram: b"hello", "not a RADIUS packet"),
    ],
)
def test_an_invalid_reply_is_refused(service: Service, answer: Callable[[bytes], bytes], message: str) -> None:
    """A reply is reported with its cause if its authenticator is wrong or it is not RADIUS. The exit status is 1."""
    with answering(answer) as server:
        done = service.cli("check", "radius", server, "--secret", SECRET, *LOGIN, *QUICK)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr


def test_an_unsigned_reply_is_accepted_with_a_warning(service: Service) -> None:
    """An unsigned reply is accepted with a warning on standard error that names the BlastRADIUS vulnerability."""
    with answering(unsigned) as server:
        done = service.cli("check", "radius", server, "--secret", SECRET, *LOGIN, *QUICK)
    assert done.returncode == 0
    assert "CVE-2024-3596" in done.stderr


def test_a_lost_packet_is_sent_again(service: Service) -> None:
    """A lost packet is retransmitted with the same octets, and the reply to it is accepted."""
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
def test_wrong_usage_has_exit_status_2(service: Service, arguments: tuple[str, ...]) -> None:
    assert service.cli("check", "radius", *arguments).returncode == 2


def test_each_remedy_belongs_to_a_reject_reason() -> None:
    assert set(REMEDIES) <= {reason.value for reason in Reason}


@pytest.mark.parametrize(
    ("factor", "command"),
    [
        ("local+totp", "sallyport user totp {user}"),
        ("ldap+wallet", "sallyport credential list"),
        ("local+duo", "enrol the user at the provider"),
    ],
)
def test_a_user_without_a_second_factor_is_enrolled_at_its_provider(factor: str, command: str) -> None:
    """For totp and wallet, the remedy is to enrol the user in the service. For other providers it is to enrol the user
    at the provider.
    """
    assert command in remedy_for(NOT_ENROLLED, factor)


@pytest.mark.parametrize("reason", [Reason.UNREACHABLE, Reason.CIRCUIT_OPEN, Reason.RATE_LIMITED])
def test_the_remedy_for_a_provider_that_fails_is_its_check(reason: Reason) -> None:
    assert remedy_for(reason, "ldap+duo").startswith("sallyport provider check {domain}")


def test_the_check_of_the_first_factor_is_a_remedy_for_the_first_factor_only() -> None:
    """The remedy `domain check` is named only for the first factor, because that command does not check the second
    factor.
    """
    assert "sallyport domain check" in remedy_for(Reason.FIRST_FACTOR_UNREACHABLE, "ldap")
    assert remedy_for(Reason.WRONG_CODE, "ldap+duo") == ""


def test_without_a_server_no_mail_is_sent(service: Service) -> None:
    """The error names the settings."""
    done = service.cli("check", "mail", "ann@example.com")
    assert done.returncode == 1
    assert "the service sends no mail: set smtp_host and smtp_from" in done.stderr


def test_the_service_sends_a_test_mail(tmp_path: Path) -> None:
    """The command says that the SMTP server has accepted the mail, or why it has not, as docs/operate/mail.md shows."""
    with mail_server() as server:
        settings = {
            "SMTP_HOST": "127.0.0.1",
            "SMTP_PORT": str(server.port),
            "SMTP_TLS": "none",
            "SMTP_FROM": "a@b.example",
        }
        with running_service(tmp_path, {f"SALLYPORT_{name}": value for name, value in settings.items()}) as service:
            assert "accepted a test mail to ann@example.com" in service.ok("check", "mail", "ann@example.com")
            assert server.received().recipients == ["ann@example.com"]
            refused = service.cli("check", "mail", server.refused)
            assert (refused.returncode, "550 5.1.1 no such mailbox" in refused.stderr) == (1, True)
            refused = service.cli("check", "mail", "ann")
            assert (refused.returncode, "the mail address is not usable" in refused.stderr) == (1, True)
        reached = json.loads(service.cli("doctor", "--json").stdout)
    assert ("reach", "1 of 1 server can be connected to") in [(each["check"], each["finding"]) for each in reached]
