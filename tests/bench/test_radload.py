"""The load generator. Its requests follow RFC 2865 and RFC 2866, and it counts only authentic answers."""

import hashlib
import hmac
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .child import SECRET
from .radload import compile_radload, run_radload
from .settings import BenchmarkError

pytestmark = [
    pytest.mark.bench,
    pytest.mark.skipif(shutil.which("cc") is None, reason="cc is not installed"),
]

KEY = SECRET.encode()
ZEROS = bytes(16)
Answer = Callable[[bytes], bytes]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """radload, compiled once."""
    return compile_radload(tmp_path_factory.mktemp("radload"))


def attributes(request: bytes) -> list[tuple[int, bytes]]:
    """Return the attributes of a request in their order."""
    found, at = [], 20
    while at < len(request):
        size = request[at + 1]
        found.append((request[at], request[at + 2 : at + size]))
        at += size
    return found


def reply(request: bytes, code: int = 2) -> bytes:
    """Return an answer with a Message-Authenticator and a Response Authenticator (RFC 2865 section 3, RFC 3579 section
    3.2).
    """
    head = bytes((code, request[1], 0, 38))
    signature = hmac.digest(KEY, head + request[4:20] + b"\x50\x12" + ZEROS, "md5")
    body = b"\x50\x12" + signature
    return head + hashlib.md5(head + request[4:20] + body + KEY).digest() + body


@contextmanager
def server(answer: Answer) -> Iterator[tuple[int, list[bytes]]]:
    """Run a server on loopback, and yield its port and the requests that it receives. An empty answer is not sent."""
    requests: list[bytes] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]

        def serve() -> None:
            while True:
                request, sender = listener.recvfrom(4096)
                if not request:
                    return
                requests.append(request)
                if answered := answer(request):
                    listener.sendto(answered, sender)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield port, requests
        finally:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stopper:
                stopper.sendto(b"", ("127.0.0.1", port))
            thread.join()


def response(request: bytes) -> bytes:
    """Return an Accounting-Response if the Accounting-Request is authentic (RFC 2866 section 3), else empty octets."""
    if hashlib.md5(request[:4] + ZEROS + request[20:] + KEY).digest() != request[4:20]:
        return b""
    head = bytes((5, request[1], 0, 20))
    return head + hashlib.md5(head + request[4:20] + KEY).digest()


def test_accounting_is_authentic_and_in_order(program: Path) -> None:
    """With -a each session has a Start, an interim record and a Stop, which have the right values."""
    with server(response) as (port, requests):
        told = run_radload(program, ["-p", str(port), "-a", "-n", "3072", "-u", "7", "-s", "x-"], seconds=30)
    assert (told.answered, told.accepts, told.bad_replies) == (3072, 3072, 0)
    sessions: dict[bytes, list[int]] = {}
    for request in requests:
        values = dict(attributes(request))
        sessions.setdefault(values[44], []).append(int.from_bytes(values[40]))
        assert int.from_bytes(values.get(42, b"")) == {1: 0, 3: 100_000, 2: 200_000}[int.from_bytes(values[40])]
        assert int.from_bytes(values.get(46, b"")) == 0
    assert len(sessions) == 1024
    assert {tuple(dict.fromkeys(each)) for each in sessions.values()} == {(1, 3, 2)}


def test_each_request_is_signed_first_and_hides_the_password(program: Path) -> None:
    """The Message-Authenticator is the first attribute and is valid.

    The password decrypts with the secret to that of the user.
    """
    with server(reply) as (port, requests):
        load = run_radload(program, ["-p", str(port), "-n", "40", "-u", "7"], seconds=5)
    assert (load.answered, load.accepts, load.bad_replies, load.unsigned_replies) == (40, 40, 0, 0)
    for request in requests:
        blank = request[:22] + ZEROS + request[38:]
        assert request[:1] + request[20:22] == b"\x01\x50\x12"
        assert hmac.digest(KEY, blank, "md5") == request[22:38]
        values = dict(attributes(request))
        mask = hashlib.md5(KEY + request[4:20]).digest()
        password = bytes(a ^ b for a, b in zip(values[2], mask, strict=True)).rstrip(b"\0")
        assert password == values[1].replace(b"user", b"pass")


def test_attributes_in_place_of_passwords(program: Path, tmp_path: Path) -> None:
    """With -c each user has the attributes of its line in the file. A file that is too short or not hexadecimal ends
    the run.
    """
    lines = [bytes((26, 8, 0, 0, 1, 55, 1, number)) for number in range(3)]
    file = tmp_path / "proofs"
    file.write_text("".join(f"{line.hex()}\n" for line in lines))
    with server(reply) as (port, requests):
        arguments = ["-p", str(port), "-n", "6", "-c", str(file), "-u"]
        assert run_radload(program, [*arguments, "3"], seconds=5).accepts == 6
        with pytest.raises(BenchmarkError, match="fewer lines"):
            run_radload(program, [*arguments, "4"], seconds=5)
        file.write_text("no hexadecimal\n" * 3)
        with pytest.raises(BenchmarkError, match="not hexadecimal"):
            run_radload(program, [*arguments, "3"], seconds=5)
    values = [dict(attributes(request)) for request in requests]
    assert {value[1]: value[26] for value in values} == {b"user%d" % n: line[2:] for n, line in enumerate(lines)}
    assert not any(2 in value for value in values)


def test_sessions_stations_and_nas_are_spread(program: Path) -> None:
    """Each request has a session of its own with the prefix and, with the option, a station of its own. The NASes take
    turns.
    """
    with server(reply) as (port, requests):
        run_radload(program, ["-p", str(port), "-n", "30", "-s", "run1-", "-m", "-N", "10", "-M"], seconds=5)
    values = [dict(attributes(request)) for request in requests]
    assert {value[44] for value in values} == {b"run1-%08X" % index for index in range(30)}
    assert len({value[31] for value in values}) == 30
    assert {value[32] for value in values} == {b"nas-%d" % index for index in range(10)}
    assert {value[4] for value in values} == {bytes((10, 0, 0, 1 + index)) for index in range(10)}
    assert not any(80 in value for value in values)


def test_users_of_its_own(program: Path) -> None:
    """Two runs can have different users, because the first user number can be given. The station depends on the
    user.
    """
    with server(reply) as (port, requests):
        run_radload(program, ["-p", str(port), "-n", "20", "-u", "10", "-f", "100"], seconds=5)
    values = [dict(attributes(request)) for request in requests]
    assert {value[1] for value in values} == {b"user%d" % number for number in range(100, 110)}
    assert {value[31] for value in values} == {b"02-00-00-00-00-%02X" % number for number in range(100, 110)}


@pytest.mark.parametrize("octet", [0, 4, 37], ids=["code", "response authenticator", "message authenticator"])
def test_a_reply_with_one_wrong_octet_is_no_answer(program: Path, octet: int) -> None:
    """A reply with any wrong octet counts as bad, and its request counts as lost."""

    def tampered(request: bytes) -> bytes:
        octets = bytearray(reply(request))
        octets[octet] ^= 1
        return bytes(octets)

    with server(tampered) as (port, _):
        load = run_radload(program, ["-p", str(port), "-n", "3", "-t", "0.1", "-R", "1"], seconds=5)
    assert (load.answered, load.bad_replies, load.lost) == (0, 3, 3)


def test_a_wrong_message_authenticator_alone_is_no_answer(program: Path) -> None:
    """A reply with a wrong Message-Authenticator is bad even if its Response Authenticator is right."""

    def half(request: bytes) -> bytes:
        head, body = reply(request)[:4], b"\x50\x12" + ZEROS
        return head + hashlib.md5(head + request[4:20] + body + KEY).digest() + body

    with server(half) as (port, _):
        load = run_radload(program, ["-p", str(port), "-n", "3", "-t", "0.1", "-R", "1"], seconds=5)
    assert (load.answered, load.bad_replies) == (0, 3)


def test_a_retransmission_has_the_same_octets(program: Path) -> None:
    """A retransmission has the same octets, and its answer counts."""
    seen: set[bytes] = set()

    def second_time(request: bytes) -> bytes:
        if request in seen:
            return reply(request, code=3)
        seen.add(request)
        return b""

    with server(second_time) as (port, requests):
        load = run_radload(program, ["-p", str(port), "-n", "20", "-t", "0.1"], seconds=5)
    assert (load.answered, load.rejects, load.retransmitted, load.lost) == (20, 20, 20, 0)
    assert len(requests) == 40


def test_the_log_holds_each_answer(program: Path, tmp_path: Path) -> None:
    """The log has a line for each answer: the index, the code, the user, the session, the status and the station of the
    request, its begin and its latency, and the octets."""
    sent: list[bytes] = []

    def noted(request: bytes) -> bytes:
        sent.append(reply(request, code=11))
        return sent[-1]

    log, began = tmp_path / "answers", time.monotonic()
    with server(noted) as (port, _):
        arguments = ["-p", str(port), "-n", "300", "-u", "5", "-s", "x", "-r", "2000", "-l", str(log)]
        load = run_radload(program, arguments, seconds=5)
    lines = [line.split("\t") for line in log.read_text().splitlines()]
    assert load.challenges == len(lines) == 300
    assert {tuple(line[1:6]) for line in lines} == {
        ("11", f"user{index % 5}", f"x{index:08X}", "0", f"{index % 5}") for index in range(300)
    }
    assert all(began < float(line[6]) < float(line[6]) + float(line[7]) < time.monotonic() for line in lines)
    assert sorted(octets for *_, octets in lines) == sorted(octets.hex() for octets in sent)


@pytest.mark.parametrize("address", ["192.0.2.1", "0.0.0.0", "2001:db8::1", "::ffff:127.0.0.1", "localhost"])
def test_it_sends_to_loopback_only(program: Path, address: str) -> None:
    """An address other than loopback is refused before any packet is sent."""
    with pytest.raises(BenchmarkError, match="loopback"):
        run_radload(program, ["-h", address, "-n", "1"], seconds=1)


def test_a_dead_server_ends_the_run(program: Path) -> None:
    """If no server answers, the run ends after its retransmissions, and all requests count as lost."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    load = run_radload(program, ["-p", str(port), "-n", "5", "-t", "0.1"], seconds=5)
    assert (load.sent, load.answered, load.lost) == (5, 0, 5)


def test_a_number_out_of_range(program: Path) -> None:
    """If a number is out of range, the message names the limits, and the exit status is 2."""
    done = subprocess.run([program, "-w", "0"], capture_output=True, text=True, check=False, timeout=10)
    assert done.returncode == 2
    assert "not a number from 1" in done.stderr
