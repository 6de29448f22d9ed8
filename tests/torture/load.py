"""Logins and accounting in bulk, from a process that outlives the service.

Every request differs from all others, because its Calling-Station-Id is unique and no socket uses an identifier twice.
The sockets stay open when the service dies, so that the identical datagram can be sent again from the same port.
"""

import selectors
import socket
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from types import TracebackType

from sallyport.radius.attributes import (
    ACCT_SESSION_ID,
    ACCT_STATUS_TYPE,
    CALLING_STATION_ID,
    CHAP_PASSWORD,
    NAS_IDENTIFIER,
    NAS_IP_ADDRESS,
    USER_NAME,
    USER_PASSWORD,
    push_attribute,
)
from sallyport.radius.packet import (
    ACCESS_ACCEPT,
    ACCESS_REJECT,
    ACCESS_REQUEST,
    ACCOUNTING_REQUEST,
    SharedSecret,
    decode_reply,
    encode_request,
)
from sallyport.radius.password import chap_response, hide_password
from tests.running_service import RunningService

SECRET = b"a secret of the tests"
NETWORK = "127.0.0.0/8"
USERS = 20
VERDICTS = {ACCESS_ACCEPT: "accept", ACCESS_REJECT: "reject"}
WINDOW = 96
RETRANSMIT_S = 1.0
IDENTIFIERS = 256
SOCKETS = 40


def populate(service: RunningService) -> None:
    """Add one RADIUS client and some users. The client has a range, so that it never has to sign."""
    service.add_client("loopback", NETWORK, SECRET)
    for number in range(USERS):
        service.add_user(f"user{number}", _password(number))


def _password(number: int) -> bytes:
    return f"password of {number}".encode()


@dataclass(slots=True, eq=False)
class Sent:
    """A request, and its answer or None.

    port: its source port. proven: whether only this sender can have sent it.
    """

    sock: socket.socket
    port: int
    octets: bytes
    station: str
    user: str
    nas: str
    proven: bool
    reply: bytes | None = None

    @property
    def is_login(self) -> bool:
        """Return whether the request is an Access-Request."""
        return self.octets[0] == ACCESS_REQUEST

    @property
    def code(self) -> int:
        """Return the code of the answer, or 0 if there is no answer."""
        return self.reply[0] if self.reply else 0


class Load:
    """Requests of every kind to both ports. At most `window` of them are without an answer.

    prefix: the beginning of the name of all stations.
    """

    def __init__(
        self, service: RunningService, prefix: str, random: Random, *, sockets: int = SOCKETS, window: int = WINDOW
    ) -> None:
        self.prefix = prefix
        self._window = window
        self._random = random
        self._secret = SharedSecret(SECRET)
        self._selector = selectors.DefaultSelector()
        self._sockets = [_connected(service.ports.acct if n % 4 == 3 else service.ports.auth) for n in range(sockets)]
        self._is_login = {sock: n % 4 != 3 for n, sock in enumerate(self._sockets)}
        self._waiting: dict[tuple[socket.socket, int], Sent] = {}
        self.sent: list[Sent] = []
        for sock in self._sockets:
            self._selector.register(sock, selectors.EVENT_READ)

    def __enter__(self) -> "Load":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._selector.close()
        for sock in self._sockets:
            sock.close()

    @property
    def answered(self) -> list[Sent]:
        """Return the answered requests."""
        return [each for each in self.sent if each.reply is not None]

    def run(self, seconds: float) -> None:
        """Send for a time, or until every identifier of every socket is used."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            while len(self._waiting) < self._window and len(self.sent) < IDENTIFIERS * len(self._sockets):
                self._send(self._next())
            self._receive(0.01)

    def drain(self, seconds: float = 0.05) -> None:
        """Read the answers that the kernel has received, until none arrives for this time."""
        while self._receive(seconds):
            pass

    def again(self, requests: Iterable[Sent], *, seconds: float) -> list[tuple[Sent, bytes]]:
        """Retransmit requests once a second, as a NAS does, and return each with its answer.

        Raise TimeoutError if one has no answer. A request may get no answer at first, because its transaction failed,
        for example while the disk was full.
        """
        first = {id(each): each.reply for each in requests}
        left = [each for each in self.sent if id(each) in first]
        answers: list[tuple[Sent, bytes]] = []
        deadline = time.monotonic() + seconds
        repeated_at = time.monotonic()
        self._waiting.clear()
        while left or self._waiting:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(left) + len(self._waiting)} retransmits were not answered")
            if time.monotonic() > repeated_at + RETRANSMIT_S:
                repeated_at = time.monotonic()
                for each in list(self._waiting.values()):
                    self._send(each)
            while left and len(self._waiting) < self._window:
                self._send(left.pop())
            for each in self._receive(0.05):
                assert each.reply is not None
                answers.append((each, each.reply))
                each.reply = first[id(each)] or each.reply
        return answers

    def _next(self) -> Sent:
        number = len(self.sent)
        sock = self._sockets[number % len(self._sockets)]
        sent = self._request(sock, number // len(self._sockets), f"{self.prefix}-{number:06}", number)
        self.sent.append(sent)
        return sent

    def _request(self, sock: socket.socket, identifier: int, station: str, number: int) -> Sent:
        """Return a new request.

        Seven of eight passwords are right, and they are sent by PAP and by CHAP. Three of four logins are signed. Each
        tenth request is from a new NAS.
        """
        user, nas = f"user{number % USERS}", f"{self.prefix}-nas-{number // 10}"
        port = sock.getsockname()[1]
        body = push_attribute(USER_NAME, user.encode()) + push_attribute(CALLING_STATION_ID, station.encode())
        body += push_attribute(NAS_IDENTIFIER, nas.encode()) + push_attribute(NAS_IP_ADDRESS, bytes((10, 0, 0, 1)))
        if not self._is_login[sock]:
            body += push_attribute(ACCT_STATUS_TYPE, (1).to_bytes(4)) + push_attribute(ACCT_SESSION_ID, b"s")
            octets = encode_request(ACCOUNTING_REQUEST, identifier, self._secret, body)
            return Sent(sock, port, octets, station, user, nas, True)
        right, signed = self._random.random() < 0.875, self._random.random() < 0.75
        password = _password(number % USERS) if right else b"not the password"
        authenticator = self._random.randbytes(16)
        if self._random.random() < 0.25:
            body += push_attribute(CHAP_PASSWORD, chap_response(7, password, authenticator))
        else:
            body += push_attribute(USER_PASSWORD, hide_password(password, self._secret, authenticator))
        if signed:
            octets = encode_request(ACCESS_REQUEST, identifier, self._secret, body, authenticator=authenticator)
        else:
            octets = bytes((ACCESS_REQUEST, identifier)) + (20 + len(body)).to_bytes(2) + authenticator + body
        return Sent(sock, port, octets, station, user, nas, signed or right)

    def _send(self, each: Sent) -> None:
        self._waiting[each.sock, each.octets[1]] = each
        with suppress(ConnectionRefusedError):  # the service was killed; the error is of an earlier datagram
            each.sock.send(each.octets)

    def _receive(self, seconds: float) -> list[Sent]:
        """Return the requests whose answers arrive now. Raise PacketError if an answer is not authentic."""
        found = []
        for key, _ in self._selector.select(seconds):
            sock = key.fileobj
            assert isinstance(sock, socket.socket)
            with suppress(BlockingIOError, ConnectionRefusedError):
                while True:
                    reply = sock.recv(4096)
                    each = self._waiting.pop((sock, reply[1]), None)
                    if each is not None:
                        decode_reply(reply, each.octets, self._secret)
                        each.reply = reply
                        found.append(each)
        return found


def _connected(port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    sock.connect(("127.0.0.1", port))
    return sock


class Loads:
    """Short loads that are run one after the other. Their requests are remembered."""

    def __init__(self, service: RunningService) -> None:
        self._service = service
        self._loads: list[Load] = []

    def __enter__(self) -> "Loads":
        return self

    def __exit__(self, *_: object) -> None:
        for load in self._loads:
            load.__exit__(None, None, None)

    @property
    def sent(self) -> int:
        """Return the number of requests that were sent."""
        return sum(len(load.sent) for load in self._loads)

    @property
    def answered(self) -> int:
        """Return the number of requests that were answered. This includes answers after the end of their load."""
        for load in self._loads:
            load.drain(0)
        return sum(len(load.answered) for load in self._loads)

    def run(self, seconds: float = 0.2, *, window: int = WINDOW) -> int:
        """Run a new load, and return how many of its requests were answered during the load."""
        load = Load(self._service, f"l{len(self._loads):03}", Random(len(self._loads)), sockets=8, window=window)
        self._loads.append(load)
        load.run(seconds)
        load.drain()
        return len(load.answered)

    def check(self) -> None:
        """Check that answered requests are stored.

        Then retransmit the other requests until they are answered, and check that each is stored once.
        """
        assert self._service.rows("pragma integrity_check") == [("ok",)]
        check_stored(self._service, "l", [each for load in self._loads for each in load.answered])
        for load in self._loads:
            load.again([each for each in load.sent if each.reply is None], seconds=20)
        check_stored(self._service, "l", [each for load in self._loads for each in load.sent])


def check_stored(
    service: RunningService, prefix: str, answered: Sequence[Sent], *, repeated: Sequence[Sent] = ()
) -> None:
    """Check that each answered request has one record with its user, decision and device.

    repeated: requests that may have two records. The service could not find out whether it had stored them, so that it
    did not answer, and they were sent again.
    """
    logins = service.rows(
        "select station, user_name, applied_decision, coalesce(devices.nas_identifier, '') from events "
        "left join devices on devices.id = device_id where station like ? || '%'",
        prefix,
    )
    accounts = service.rows(
        "select station, user_name, '', devices.nas_identifier from accounting_records "
        "join devices on devices.id = device_id where station like ? || '%'",
        prefix,
    )
    stored = {row[0]: row[1:] for row in logins + accounts}
    twice = {station for station, times in Counter(row[0] for row in logins + accounts).items() if times > 1}
    assert twice <= {each.station for each in repeated}, "a request was recorded twice"
    for each in answered:
        nas = each.nas if each.proven else ""
        assert stored.get(each.station) == (each.user, VERDICTS.get(each.code, ""), nas), each.station
