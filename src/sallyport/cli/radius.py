"""A blocking RADIUS client that sends one packet at a time, and reports why there is no answer.

A packet is retransmitted unchanged (RFC 5080 section 2.2.1). Malformed replies and replies that are not authentic are
ignored. They are reported if no authentic reply arrives in the same try.
"""

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from secrets import randbelow, token_bytes
from types import TracebackType
from typing import Self

from sallyport.base.errors import PacketError, SallyportError, StartError
from sallyport.base.text import counted
from sallyport.radius.attributes import (
    CHAP_PASSWORD,
    MESSAGE_AUTHENTICATOR,
    USER_NAME,
    USER_PASSWORD,
    push_attribute,
)
from sallyport.radius.packet import ACCESS_REQUEST, MAX_LENGTH, MIN_LENGTH, SharedSecret, decode_reply, encode_request
from sallyport.radius.password import chap_response, hide_password
from sallyport.settings.values import Address


class Why(Enum):
    """The reason why there is no authentic answer."""

    REFUSED = "the port is closed: the machine has sent an ICMP message"
    UNREACHABLE = "the address cannot be reached"
    SILENT = "no answer"
    UNPROVEN = "the answer was made with another secret"
    MALFORMED = "the answer is not a RADIUS packet"


class NoAnswerError(SallyportError):
    """The request got no authentic answer. why: the reason."""

    def __init__(self, why: Why, detail: str = "") -> None:
        super().__init__(f"{why.value}{detail and f' ({detail})'}")
        self.why = why


@dataclass(frozen=True, slots=True)
class RadiusAnswer:
    """An authentic answer. attributes: the first value of each attribute type. seconds: the time between the last
    transmission and the answer."""

    code: int
    attributes: dict[int, bytes]
    seconds: float
    tries: int

    @property
    def signed(self) -> bool:
        """Return whether the answer has a Message-Authenticator. If so, it was verified."""
        return MESSAGE_AUTHENTICATOR in self.attributes


class RadiusClient:
    """A client of one RADIUS server, with one socket.

    server: host and port; the first address of a host name is used. source: the local address; empty lets the system
    choose. timeout: the time to wait for each try, in seconds. retries: the number of tries after the first. Raises
    StartError if the host name cannot be resolved, or if the local address does not exist.
    """

    def __init__(
        self, server: tuple[str, int], secret: bytes, *, source: str = "", timeout: float = 5.0, retries: int = 2
    ) -> None:
        self._secret = SharedSecret(secret)
        self._timeout = timeout
        self._tries = retries + 1
        self._identifier = randbelow(256)
        try:
            family, kind, _, _, address = socket.getaddrinfo(*server, type=socket.SOCK_DGRAM)[0]
        except OSError as error:
            raise StartError(f"{server[0]}: {error.strerror}") from error
        self.server = Address(str(address[0]), int(address[1]))
        self._socket = socket.socket(family, kind)
        try:
            if source:
                self._socket.bind((source, 0))
            self._socket.connect(address)
        except OSError as error:
            self._socket.close()
            raise StartError(f"{source or self.server}: {error.strerror}") from error

    @property
    def source(self) -> str:
        """Return the source address of the packets."""
        return str(self._socket.getsockname()[0])

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def login(
        self, user: bytes, password: bytes, attributes: bytes = b"", *, chap: bool = False, signed: bool = True
    ) -> RadiusAnswer:
        """Send an Access-Request with PAP or CHAP (RFC 2865 sections 5.2, 5.3), and return the answer.

        Raises NoAnswerError if no authentic answer arrives. Raises ValueError if a value is too long.
        """

        def body(authenticator: bytes) -> bytes:
            if chap:
                proof = push_attribute(CHAP_PASSWORD, chap_response(authenticator[0], password, authenticator))
            else:
                proof = push_attribute(USER_PASSWORD, hide_password(password, self._secret, authenticator))
            return push_attribute(USER_NAME, user) + proof + attributes

        return self.ask(ACCESS_REQUEST, body, signed=signed)

    def ask(self, code: int, body: Callable[[bytes], bytes], *, signed: bool = True) -> RadiusAnswer:
        """Send a request, and return the answer. Raises NoAnswerError if no authentic answer arrives.

        body: a function that gets the Request Authenticator and returns the encoded attributes. signed: whether to add
        a Message-Authenticator.
        """
        authenticator = token_bytes(16)
        attributes = body(authenticator)
        self._identifier = (self._identifier + 1) & 0xFF
        if signed:
            packet = encode_request(code, self._identifier, self._secret, attributes, authenticator=authenticator)
        else:
            length = MIN_LENGTH + len(attributes)
            packet = bytes((code, self._identifier)) + length.to_bytes(2) + authenticator + attributes
        return self._exchange(packet)

    def _exchange(self, packet: bytes) -> RadiusAnswer:
        for tries in range(1, self._tries + 1):
            sent = time.perf_counter()
            try:
                self._socket.send(packet)
                found = self._await(packet, sent)
            except ConnectionRefusedError:
                raise NoAnswerError(Why.REFUSED) from None
            except OSError as error:
                raise NoAnswerError(Why.UNREACHABLE, error.strerror or "") from error
            if found is not None:
                return RadiusAnswer(*found, time.perf_counter() - sent, tries)
        raise NoAnswerError(
            Why.SILENT, f"{counted(self._tries, 'try', 'tries')}, each with a timeout of {self._timeout:g} s"
        )

    def _await(self, packet: bytes, sent: float) -> tuple[int, dict[int, bytes]] | None:
        """Wait for the authentic answer to one try. Return None if no packet arrives.

        Raises NoAnswerError if packets arrive, but none is authentic. sent: the time of the transmission.
        """
        doubt: NoAnswerError | None = None
        while (left := sent + self._timeout - time.perf_counter()) > 0:
            self._socket.settimeout(left)
            try:
                datagram = self._socket.recv(MAX_LENGTH + 1)
                return decode_reply(datagram, packet, self._secret)
            except TimeoutError:
                break
            except PacketError as error:
                unproven = error.reason.startswith("bad_")
                doubt = NoAnswerError(Why.UNPROVEN) if unproven else NoAnswerError(Why.MALFORMED, str(error))
        if doubt is not None:
            raise doubt
        return None
