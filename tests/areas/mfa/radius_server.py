"""A RADIUS server that checks codes, on a UDP socket."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from sallyport.areas.mfa.contract import Behaviour
from sallyport.radius.attributes import (
    CHAP_CHALLENGE,
    CHAP_PASSWORD,
    NAS_IDENTIFIER,
    REPLY_MESSAGE,
    STATE,
    USER_NAME,
    USER_PASSWORD,
    push_attribute,
)
from sallyport.radius.packet import (
    ACCESS_ACCEPT,
    ACCESS_CHALLENGE,
    ACCESS_REJECT,
    Request,
    SharedSecret,
    decode,
    encode_reply,
    response_authenticator,
)
from sallyport.radius.password import chap_holds, reveal_password
from tests.areas.mfa.host import USER

SECRET = "the upstream's secret"
CODE, NEXT_CODE = "123456", "654321"
STATE_OCTETS = bytes(range(240, 256))


class RadiusServer:
    """A RADIUS server.

    challenges: whether it asks for NEXT_CODE after CODE. drops: the number of requests to ignore. signed: whether
    replies have a Message-Authenticator. secret: the secret of its replies.
    """

    def __init__(self) -> None:
        self.port = 0
        self.behaviour = Behaviour.APPROVE
        self.requests = 0
        self.challenges = False
        self.drops = 0
        self.signed = True
        self.secret = SharedSecret(SECRET.encode())

    def behave(self, behaviour: Behaviour) -> None:
        """Behave this way from the next request on."""
        self.behaviour = behaviour

    async def serve(self, udp: trio.socket.SocketType) -> None:
        """Answer until cancelled."""
        while True:
            datagram, source = await udp.recvfrom(4096)
            self.requests += 1
            request = decode(datagram, SharedSecret(SECRET.encode()))
            assert request.signed
            assert request.first[NAS_IDENTIFIER] == b"sallyport"
            if self.drops:
                self.drops -= 1
            elif self.behaviour is Behaviour.NO_PROTOCOL:
                await udp.sendto(b"no RADIUS at all", source)
            elif self.behaviour is not Behaviour.SILENT:
                await udp.sendto(self._answer(request), source)

    def _answer(self, request: Request) -> bytes:
        known = request.first[USER_NAME] == USER.encode() and self.behaviour is Behaviour.APPROVE
        second = request.first.get(STATE) == STATE_OCTETS
        if known and _typed(request, NEXT_CODE if second else CODE):
            if self.challenges and not second:
                text = push_attribute(REPLY_MESSAGE, b"And the next one") + push_attribute(STATE, STATE_OCTETS)
                return self._sign(ACCESS_CHALLENGE, request, text)
            return self._sign(ACCESS_ACCEPT, request)
        return self._sign(ACCESS_REJECT, request)

    def _sign(self, code: int, request: Request, attributes: bytes = b"") -> bytes:
        if self.signed:
            return encode_reply(code, request, self.secret, attributes)
        head = bytes((code, request.identifier)) + (20 + len(attributes)).to_bytes(2)
        return head + response_authenticator(head, request.authenticator, attributes, self.secret) + attributes


def _typed(request: Request, code: str) -> bool:
    if CHAP_PASSWORD in request.first:
        return chap_holds(request.first[CHAP_PASSWORD], code.encode(), request.first[CHAP_CHALLENGE])
    hidden = request.first[USER_PASSWORD]
    return reveal_password(hidden, SharedSecret(SECRET.encode()), request.authenticator) == code.encode()


@asynccontextmanager
async def radius_serving() -> AsyncIterator[RadiusServer]:
    """Run a server on a free port of 127.0.0.1 until the block ends."""
    server = RadiusServer()
    with trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM) as udp:
        await udp.bind(("127.0.0.1", 0))
        server.port = udp.getsockname()[1]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.serve, udp)
            yield server
            nursery.cancel_scope.cancel()
