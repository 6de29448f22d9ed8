"""A small, blocking RADIUS client for tests, with the service's codec.

with RadiusClient(port, "secret") as client:
    assert client.login("ann", "hello") == ACCESS_ACCEPT
    assert client.login("ann", "hello", NAS_IDENTIFIER=b"switch-1", signed=False) == ACCESS_ACCEPT
"""

import socket
from itertools import count
from secrets import token_bytes
from types import TracebackType

from sallyport.radius import attributes as names
from sallyport.radius.attributes import CHAP_PASSWORD, USER_NAME, USER_PASSWORD, push_attribute
from sallyport.radius.packet import ACCESS_REQUEST, SharedSecret, decode_reply, encode_request
from sallyport.radius.password import chap_response, hide_password


class RadiusClient:
    """A client that sends to a port of 127.0.0.1.

    source: the address of this machine from which it sends, such as 127.0.0.7.
    """

    def __init__(self, port: int, secret: str | bytes, *, source: str = "127.0.0.1", timeout: float = 5.0) -> None:
        self.secret = SharedSecret(secret.encode() if isinstance(secret, str) else secret)
        self._identifiers = count()
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind((source, 0))
        self.sock.connect(("127.0.0.1", port))
        self.sock.settimeout(timeout)

    def close(self) -> None:
        """Close the socket."""
        self.sock.close()

    def __enter__(self) -> "RadiusClient":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def packet(
        self,
        user: str | bytes,
        password: str | bytes,
        *,
        chap: bool = False,
        signed: bool = True,
        extra: bytes = b"",
        **attributes: bytes,
    ) -> bytes:
        """Return an Access-Request in octets.

        attributes: the attributes, given by the names in sallyport.radius.attributes, such as
        NAS_IDENTIFIER=b"switch-1". extra: further attributes in octets. signed: whether the request has a
        Message-Authenticator.
        """
        authenticator = token_bytes(16)
        clear = password.encode() if isinstance(password, str) else password
        body = push_attribute(USER_NAME, user.encode() if isinstance(user, str) else user)
        if chap:
            body += push_attribute(CHAP_PASSWORD, chap_response(1, clear, authenticator))
        else:
            body += push_attribute(USER_PASSWORD, hide_password(clear, self.secret, authenticator))
        body += b"".join(push_attribute(getattr(names, name), value) for name, value in attributes.items()) + extra
        identifier = next(self._identifiers) & 0xFF
        if signed:
            return encode_request(ACCESS_REQUEST, identifier, self.secret, body, authenticator=authenticator)
        return bytes((ACCESS_REQUEST, identifier)) + (20 + len(body)).to_bytes(2) + authenticator + body

    def send(self, packet: bytes) -> None:
        """Send octets unchanged."""
        self.sock.send(packet)

    def receive(self, request: bytes) -> tuple[int, dict[int, bytes]]:
        """Return the code of the verified reply to a request, and the first value of each of its attributes.

        Raise TimeoutError or PacketError.
        """
        return decode_reply(self.sock.recv(4096), request, self.secret)

    def exchange(self, request: bytes) -> tuple[int, dict[int, bytes]]:
        """Send a request, and return its reply like receive()."""
        self.send(request)
        return self.receive(request)

    def login(
        self,
        user: str | bytes,
        password: str | bytes,
        *,
        chap: bool = False,
        signed: bool = True,
        extra: bytes = b"",
        **attributes: bytes,
    ) -> int:
        """Send a login, and return the code of its reply."""
        request = self.packet(user, password, chap=chap, signed=signed, extra=extra, **attributes)
        return self.exchange(request)[0]
