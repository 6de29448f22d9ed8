"""A home server on a UDP socket. The test sets its answers."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

import trio

from sallyport.radius.attributes import CLASS, REPLY_MESSAGE, USER_NAME, USER_PASSWORD, push_attribute
from sallyport.radius.packet import (
    ACCESS_ACCEPT,
    ACCESS_REJECT,
    ACCESS_REQUEST,
    STATUS_SERVER,
    Request,
    SharedSecret,
    decode,
    encode_reply,
    response_authenticator,
)
from sallyport.radius.password import reveal_password

SECRET = SharedSecret(b"of the home server")
PASSWORD = b"s3cret"
STAFF, SORRY = push_attribute(CLASS, b"staff"), push_attribute(REPLY_MESSAGE, b"no")

Reply = Callable[[Request], Iterable[bytes]]


def typed(request: Request) -> bytes:
    """Return the decrypted password of the request."""
    return reveal_password(request.first[USER_PASSWORD], SECRET, request.authenticator)


def check(request: Request) -> list[bytes]:
    """Accept the right password and send a Class. Reject any other password and send a text."""
    if USER_PASSWORD in request.first and typed(request) == PASSWORD:
        return [encode_reply(ACCESS_ACCEPT, request, SECRET, STAFF)]
    return [encode_reply(ACCESS_REJECT, request, SECRET, SORRY)]


def nothing(request: Request) -> list[bytes]:
    """Return no answer."""
    return []


def unsigned(code: int, request: Request, attributes: bytes = b"", secret: SharedSecret = SECRET) -> bytes:
    """Return an answer without Message-Authenticator."""
    head = bytes((code, request.identifier)) + (20 + len(attributes)).to_bytes(2)
    return head + response_authenticator(head, request.authenticator, attributes, secret) + attributes


class HomeServer:
    """A home server.

    reply: the function that makes its answer to an Access-Request. status: whether it answers Status-Server. received:
    the requests so far. sources: the source ports of these requests. checks: the number of Status-Server packets that
    it received.
    """

    def __init__(self, udp: trio.socket.SocketType) -> None:
        self._udp = udp
        self.port = int(udp.getsockname()[1])
        self.reply: Reply = check
        self.status = True
        self.received: list[Request] = []
        self.sources: list[tuple[str, int]] = []
        self.checks = 0

    @property
    def fields(self) -> dict[str, object]:
        """Return the fields of this server, as SetFirstFactor accepts them."""
        return {"host": "127.0.0.1", "port": self.port, "secret": SECRET.octets.decode()}

    @property
    def names(self) -> list[bytes]:
        """Return the User-Names of the requests so far, in order."""
        return [request.first[USER_NAME] for request in self.received]

    async def serve(self) -> None:
        """Answer until cancelled."""
        while True:
            try:
                datagram, source = await self._udp.recvfrom(4096)
            except ConnectionError:
                continue
            request = decode(datagram, SECRET)
            assert request.signed
            if request.code == STATUS_SERVER:
                self.checks += 1
                replies: Iterable[bytes] = [encode_reply(ACCESS_ACCEPT, request, SECRET)] if self.status else []
            else:
                assert request.code == ACCESS_REQUEST
                self.received.append(request)
                self.sources.append(source)
                replies = self.reply(request)
            for reply in replies:
                await self._udp.sendto(reply, source)

    async def send(self, index: int, reply: bytes) -> None:
        """Send the answer to an earlier request now."""
        await self._udp.sendto(reply, self.sources[index])


@asynccontextmanager
async def home_server() -> AsyncIterator[HomeServer]:
    """Yield a server on a free port of 127.0.0.1."""
    with trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM) as udp:
        udp.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_RCVBUF, 4 << 20)
        await udp.bind(("127.0.0.1", 0))
        server = HomeServer(udp)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.serve)
            yield server
            nursery.cancel_scope.cancel()
