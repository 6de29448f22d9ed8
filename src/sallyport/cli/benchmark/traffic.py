"""RADIUS clients in one process. They keep a fixed number of requests outstanding at one port of a server.

A `Dialogue` is a client that sends one request at a time, such as a station that logs in again and again. `drive` sends
the requests of all dialogues over one socket. Each answer is verified (RFC 2865 section 3). A request without an answer
is retransmitted unchanged.
"""

import socket
import struct
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from secrets import token_bytes
from typing import Final, Protocol

from sallyport.base.errors import PacketError, SallyportError
from sallyport.radius.attributes import (
    ACCT_SESSION_ID,
    ACCT_STATUS_TYPE,
    CALLING_STATION_ID,
    NAS_IDENTIFIER,
    NAS_IP_ADDRESS,
    NAS_PORT_TYPE,
    REPLY_MESSAGE,
    USER_NAME,
    USER_PASSWORD,
    push_attribute,
)
from sallyport.radius.packet import (
    ACCESS_ACCEPT,
    ACCESS_REQUEST,
    ACCOUNTING_REQUEST,
    ACCOUNTING_RESPONSE,
    CODE_NAMES,
    MAX_LENGTH,
    Reply,
    SharedSecret,
    as_text,
    encode_request,
    open_reply,
)
from sallyport.radius.password import hide_password

HOST: Final = "127.0.0.1"
NAS_COUNT: Final = 1000
TRIES: Final = 10
RETRANSMIT_S: Final = 2.0
CHECK_S: Final = 0.1
"""Time between two checks for requests that need a retransmission."""
_WIRELESS: Final = 19  # NAS-Port-Type: Wireless - IEEE 802.11 (RFC 2865 section 5.41)
_STATUSES: Final = (1, 3, 2)  # Acct-Status-Type: Start, Interim-Update, Stop (RFC 2866 section 5.1)
_BUFFER: Final = 4 << 20


class LoadError(SallyportError):
    """A request of the load got a wrong answer, or none. The measurement is void."""


@dataclass(slots=True)
class Traffic:
    """The results of one process. done: the number of finished units, such as logins. latencies: the time of each in
    seconds. cpu_s: the processor time of the process. repeated: the number of retransmitted requests."""

    done: int = 0
    seconds: float = 0.0
    cpu_s: float = 0.0
    repeated: int = 0
    latencies: "array[float]" = field(default_factory=lambda: array("d"))


class Dialogue(Protocol):
    """A client with at most one outstanding request."""

    def request(self, identifier: int) -> bytes:
        """Return the next request in octets."""

    def receive(self, reply: Reply) -> bool:
        """Process the authentic answer. Return whether it completes a unit. Raises LoadError if it is a refusal."""


@dataclass(slots=True)
class _Outstanding:
    dialogue: Dialogue
    request: bytes
    sent_at: float
    tries: int = 1


class _Window:
    """The outstanding requests of one socket, by their identifiers: at most 256."""

    def __init__(self, sock: socket.socket, secret: SharedSecret, dialogues: Sequence[Dialogue]) -> None:
        self._socket = sock
        self._secret = secret
        self._dialogues = dialogues
        self._outstanding: dict[int, _Outstanding] = {}
        self._next = 0
        self._check_at = 0.0
        self.traffic = Traffic()

    def run(self, seconds: float) -> Traffic:
        """Send requests for some seconds, and then wait for the last answers."""
        began, cpu_began = time.perf_counter(), time.process_time()
        end = began + seconds
        beginnings = dict.fromkeys(map(id, self._dialogues), began)
        for each in self._dialogues:
            self._send(each)
        while self._outstanding:
            found = self._receive()
            now = time.perf_counter()
            if now >= self._check_at:
                self._check_at = now + CHECK_S
                self._retransmit(now)
            if found is None:
                continue
            dialogue, is_complete = found
            if is_complete:
                self.traffic.done += 1
                self.traffic.latencies.append(now - beginnings[id(dialogue)])
                beginnings[id(dialogue)] = now
            if now < end or not is_complete:
                self._send(dialogue)
        self.traffic.seconds = time.perf_counter() - began
        self.traffic.cpu_s = time.process_time() - cpu_began
        return self.traffic

    def _send(self, dialogue: Dialogue) -> None:
        while self._next in self._outstanding:
            self._next = (self._next + 1) & 0xFF
        request = dialogue.request(self._next)
        self._outstanding[self._next] = _Outstanding(dialogue, request, time.perf_counter())
        self._next = (self._next + 1) & 0xFF
        self._socket.send(request)

    def _receive(self) -> tuple[Dialogue, bool] | None:
        """Return the dialogue that got an answer, and whether the answer completes a unit. Return None if no answer
        has arrived."""
        try:
            datagram = self._socket.recv(MAX_LENGTH)
        except BlockingIOError:
            return None
        except ConnectionRefusedError as error:
            raise LoadError("the service has closed its port") from error
        waiting = self._outstanding.get(datagram[1])
        if waiting is None:  # the second answer to a retransmitted request
            return None
        try:
            reply = open_reply(datagram, waiting.request, self._secret)
        except PacketError:
            if self.traffic.repeated:  # the second answer, after its identifier was used again
                return None
            raise
        del self._outstanding[datagram[1]]
        return waiting.dialogue, waiting.dialogue.receive(reply)

    def _retransmit(self, now: float) -> None:
        for each in self._outstanding.values():
            if now - each.sent_at < RETRANSMIT_S:
                continue
            if each.tries == TRIES:
                raise LoadError(f"{TRIES} tries, each with a timeout of {RETRANSMIT_S:g} s, got no answer")
            each.tries += 1
            each.sent_at = now
            self.traffic.repeated += 1
            self._socket.send(each.request)


def drive(port: int, secret: bytes, dialogues: Sequence[Dialogue], seconds: float) -> Traffic:
    """Keep the requests of all dialogues outstanding for some seconds. Return what was answered.

    dialogues: at most 256. Raises LoadError if a request gets a wrong answer or none. Raises PacketError if an answer
    is not authentic.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        # The kernel limits the wait. Python's own timeout would need a second system call for each datagram.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", 0, int(CHECK_S * 1e6)))
        sock.connect((HOST, port))
        return _Window(sock, SharedSecret(secret), dialogues).run(seconds)


def nas_of(number: int) -> bytes:
    """Return the attributes of one of NAS_COUNT simulated devices, in octets."""
    number %= NAS_COUNT
    address = bytes((10, 0, number >> 8, number & 0xFF))
    name = push_attribute(NAS_IDENTIFIER, b"bench-%d" % number)
    return push_attribute(NAS_IP_ADDRESS, address) + name + push_attribute(NAS_PORT_TYPE, _WIRELESS.to_bytes(4))


def refusal(reply: Reply) -> LoadError:
    """Return the error for an answer that is not the expected one."""
    said = as_text(reply.first.get(REPLY_MESSAGE, b""))
    return LoadError(f"the service has answered {CODE_NAMES.get(reply.code, reply.code)}{said and f': {said}'}")


class PapLogins:
    """A client that logs in with PAP (RFC 2865 section 5.2), each time at the next device.

    number: of the client, which starts at its own device. users: names with their passwords.
    """

    def __init__(self, number: int, secret: bytes, users: Sequence[tuple[bytes, bytes]]) -> None:
        self._secret = SharedSecret(secret)
        self._turns = count(number * 37)
        self._names = [push_attribute(USER_NAME, name) for name, _ in users]
        self._passwords = [password for _, password in users]
        self._devices = [nas_of(each) for each in range(NAS_COUNT)]
        self._station = push_attribute(CALLING_STATION_ID, b"02-00-00-00-%02X-%02X" % (number >> 8, number & 0xFF))

    def request(self, identifier: int) -> bytes:
        turn = next(self._turns)
        authenticator = token_bytes(16)
        user = turn % len(self._names)
        hidden = push_attribute(USER_PASSWORD, hide_password(self._passwords[user], self._secret, authenticator))
        attributes = self._names[user] + hidden + self._devices[turn % NAS_COUNT] + self._station
        return encode_request(ACCESS_REQUEST, identifier, self._secret, attributes, authenticator=authenticator)

    def receive(self, reply: Reply) -> bool:
        if reply.code != ACCESS_ACCEPT:
            raise refusal(reply)
        return True


class AccountingRecords:
    """A client that sends Start, Interim-Update and Stop of one session after the other (RFC 2866).

    number: of the client, for its device and its sessions. user: the name in the records.
    """

    def __init__(self, number: int, secret: bytes, user: bytes) -> None:
        self._secret = SharedSecret(secret)
        self._turns = count()
        self._session = b"%08x" % number
        self._fixed = push_attribute(USER_NAME, user) + nas_of(number)

    def request(self, identifier: int) -> bytes:
        session, status = divmod(next(self._turns), len(_STATUSES))
        record = push_attribute(ACCT_STATUS_TYPE, _STATUSES[status].to_bytes(4)) + self._fixed
        record += push_attribute(ACCT_SESSION_ID, b"%s%08x" % (self._session, session))
        return encode_request(ACCOUNTING_REQUEST, identifier, self._secret, record)

    def receive(self, reply: Reply) -> bool:
        if reply.code != ACCOUNTING_RESPONSE:
            raise refusal(reply)
        return True
