"""Tests with a hundred thousand random and mutated datagrams, which known and unknown addresses send to both ports."""

import re
import socket
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from random import Random
from types import TracebackType

import pytest

from sallyport.radius.packet import ACCESS_ACCEPT, STATUS_SERVER, encode_request
from tests.radius_client import RadiusClient
from tests.running_service import RunningService, running_service
from tests.torture.garbling import BEFORE_SIGNING, IN_TRANSIT, Requests

DATAGRAMS = 100_000
ODD_REQUESTS = 10_000
BURST = 64
SECRET = b"a secret of the tests"
KNOWN = SIGNING, UNSIGNED, ODD = "127.0.0.1", "127.0.0.2", "127.0.0.3"
STRANGERS = tuple(f"127.0.1.{number}" for number in range(1, 101))
MORE_MEMORY_KIB = 8 * 1024
METRIC = re.compile(
    r'^sallyport_radius_(requests|discards)_total\{listener="\w+",(?:type|reason)="(.+)"\} (\S+)$', re.M
)

pytestmark = pytest.mark.torture

Counts = Counter[tuple[str, str]]
"""The number of requests of each type, and the number of discards for each reason."""

Datagram = tuple[str, bool, bytes]
"""The source address, whether the datagram goes to the authentication port, and its octets."""


@pytest.fixture
def service(tmp_path: Path) -> Iterator[RunningService]:
    """A service that knows three senders. One of them does not have to sign."""
    # Octets behind the packet's end, and changes before the signature, leave a request authentic, and thousands of
    # them fail.
    settings = {"SALLYPORT_REJECT_DELAY_S": "0", "SALLYPORT_LOCKOUT_FAILURES": "0"}
    with running_service(tmp_path, settings) as service:
        for name, address, required in (("a", SIGNING, "yes"), ("b", UNSIGNED, "no"), ("c", ODD, "yes")):
            service.add_client(name, address, SECRET, requireMessageAuthenticator=required)
        service.add_user("ann", b"hello")
        yield service


def test_datagrams_that_are_not_authentic_are_only_counted(service: RunningService) -> None:
    """Datagrams that are not authentic are counted, and few of them are counted as requests.

    Memory and inventory do not grow, and the next login is answered.
    """
    random = Random(1)
    with Wire(service) as wire:
        wire.send(mutated(random, DATAGRAMS // 2))
        memory = anonymous_memory_kib(service)
        wire.send(mutated(random, DATAGRAMS // 2))
        assert anonymous_memory_kib(service) - memory < MORE_MEMORY_KIB
        counts = counted(service)
    assert sum(counts.values()) >= wire.sent >= DATAGRAMS, "some were not even counted"
    assert sum(count for (kind, _), count in counts.items() if kind == "discards") > DATAGRAMS * 0.85
    check_recorded(service, counts, wire.sent)
    check_unharmed(service, counts)
    devices = service.rows("select ip_address, client_ip, nas_identifier from devices")
    assert set(devices) <= {(at, "10.0.0.1", "switch-1") for at in KNOWN} | {(at, at, "") for at in KNOWN}


def test_odd_authentic_requests_do_no_harm(service: RunningService) -> None:
    """An authentic request with odd attributes is answered or dropped. The next login is answered."""
    random = Random(2)
    requests = Requests(SECRET, random)
    with Wire(service) as wire:
        odd = (requests.signed_again(random.choice(BEFORE_SIGNING)) for _ in range(ODD_REQUESTS))
        wire.send((ODD, octets[0] == 1, octets) for octets in odd)
        counts = counted(service)
    assert sum(count for (kind, _), count in counts.items() if kind == "requests") > ODD_REQUESTS * 0.3
    check_recorded(service, counts, wire.sent)
    check_unharmed(service, counts)
    assert service.rows("pragma integrity_check") == [("ok",)]


def mutated(random: Random, count: int) -> Iterator[Datagram]:
    """Yield mutated requests.

    Few of them are of kinds that need no signature, because a mutation of such a request is still valid.
    """
    requests = Requests(SECRET, random)
    valid = [requests.any_signed() for _ in range(1000)]
    unsigned = [requests.unsigned() for _ in range(1000)]
    for number in range(count):
        octets = random.choice(unsigned if number % 16 == 0 else valid)
        source = random.choice((SIGNING, SIGNING, SIGNING, UNSIGNED, random.choice(STRANGERS)))
        yield source, random.random() < 0.6, random.choice(IN_TRANSIT)(random, octets)


class Wire:
    """A sender of datagrams. After each burst it waits until the service has read all of them, so that none is lost."""

    def __init__(self, service: RunningService) -> None:
        self._targets = [("127.0.0.1", service.ports.acct), ("127.0.0.1", service.ports.auth)]
        self._open = ExitStack()
        self._sockets: dict[str, socket.socket] = {}
        self._last = [self._open.enter_context(RadiusClient(port, SECRET, source=SIGNING)) for _, port in self._targets]
        self.sent = 0

    def __enter__(self) -> "Wire":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def send(self, datagrams: Iterable[Datagram]) -> None:
        """Send all of them."""
        for number, (source, to_authentication, octets) in enumerate(datagrams):
            self._socket(source).sendto(octets, self._targets[to_authentication])
            self.sent += 1
            if number % BURST == BURST - 1:
                self._taken()
        self._taken()

    def _taken(self) -> None:
        """Wait until the service answers a Status-Server. It has then read all earlier datagrams."""
        for last in self._last:
            last.exchange(encode_request(STATUS_SERVER, 0, last.secret, b""))
            self.sent += 1
        for sock in self._sockets.values():
            with suppress(BlockingIOError):
                while sock.recv(1):
                    pass

    def _socket(self, source: str) -> socket.socket:
        sock = self._sockets.get(source)
        if sock is None:
            sock = self._sockets[source] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self._open.enter_context(closing(sock))
            sock.setblocking(False)
            sock.bind((source, 0))
        return sock


def check_recorded(service: RunningService, counts: Counts, sent: int) -> None:
    """Check that each request has its record.

    The exceptions are rounds of EAP, and requests that also count as discards because their password is malformed.
    """
    sql = "select (select count(*) from events) + (select count(*) from accounting_records)"
    requests = counts["requests", "Access-Request"] + counts["requests", "Accounting-Request"]
    twice = sum(counts.values()) - sent
    deadline = time.monotonic() + 10
    while (recorded := service.rows(sql)[0][0]) != requests - twice - rounds(service):
        assert time.monotonic() < deadline, f"{recorded} of {requests} are recorded"
        time.sleep(0.02)


def check_unharmed(service: RunningService, counts: Counts) -> None:
    """Check that no internal error was counted or logged, and that the next login of each client is answered."""
    assert counts["discards", "internal_error"] == 0
    assert not re.search(r'"level": "(error|critical)"|Traceback', service.log())
    for source in KNOWN:
        with service.radius(SECRET, source=source) as client:
            assert client.login("ann", "hello") == ACCESS_ACCEPT


def counted(service: RunningService) -> Counts:
    """Return the counters from the metrics."""
    text = service.request("GET", "/metrics", token="").text
    assert not re.search(r"^sallyport_udp_receive_drops_total\{.*\} [1-9]", text, re.M), "the kernel dropped some"
    counts: Counts = Counter()
    for kind, label, value in METRIC.findall(text):
        counts[kind, label] += int(float(value))
    return counts


def rounds(service: RunningService) -> int:
    """Return the number of requests that were answered without an event."""
    text = service.request("GET", "/metrics", token="").text
    return sum(int(float(count)) for count in re.findall(r"^sallyport_radius_rounds_total\{.*\} (\S+)$", text, re.M))


def anonymous_memory_kib(service: RunningService) -> int:
    """Return the private memory of the process in KiB, without mapped files."""
    status = Path(f"/proc/{service.process_id}/status").read_text()
    found = re.search(r"^RssAnon:\s+(\d+) kB$", status, re.M)
    assert found is not None
    return int(found[1])
