"""A supplicant behind a NAS, and the service without a socket."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
import trio

from sallyport.certs.credentials import Credentials
from sallyport.radius.attributes import (
    STATE,
    USER_NAME,
    VENDOR_SPECIFIC,
    pull_attributes,
    pull_vendor_attributes,
    push_attribute,
)
from sallyport.radius.eap.packet import IDENTITY, RESPONSE, Packet, encode, push_eap_message
from sallyport.radius.mschap import MICROSOFT, MS_MPPE_RECV_KEY, MS_MPPE_SEND_KEY
from sallyport.radius.packet import ACCESS_CHALLENGE, SharedSecret, decode_reply
from sallyport.radius.salted import Hiding
from tests.areas import SECRET, Areas, SetClock, clock, running_areas
from tests.areas.login.listen.conftest import Wire
from tests.areas.login.listen.second import SESSION, events, script
from tests.packets import access_request
from tests.radius.eap.certificates import Authority
from tests.radius.eap.supplicant import Side, Supplicant

__all__ = ["clock", "script"]

TUNNEL_PRIVATE_GROUP_ID = 81
numbers = count(1)


@dataclass
class Ended:
    """The last answer to a NAS.

    eap: the last EAP packet. keys: the decrypted MS-MPPE-Recv-Key, then the MS-MPPE-Send-Key. names: the User-Name
    attributes of the last answer. rounds: the number of Access-Challenges before it. vlan: its Tunnel-Private-Group-ID
    without the tag.
    """

    code: int
    eap: bytes
    keys: bytes
    names: list[bytes]
    rounds: int
    vlan: bytes


class Nas:
    """A NAS that carries EAP between a supplicant and the service.

    wire: the service. authority: the issuer of the service's certificate.
    """

    def __init__(self, wire: Wire, authority: Authority) -> None:
        self.wire = wire
        self.authority = authority
        self._secret = SharedSecret(SECRET)

    def request(self, octets: bytes, name: bytes, state: bytes = b"", body: bytes = SESSION) -> bytes:
        """Return an Access-Request with an EAP packet."""
        body = push_attribute(USER_NAME, name) + body + push_eap_message(octets)
        body += push_attribute(STATE, state) if state else b""
        return access_request(body, identifier=next(numbers) & 0xFF)

    async def log_in(self, side: Side, name: bytes = b"anonymous", body: bytes = SESSION) -> Ended:
        """Run a conversation between a supplicant and the service until the service sends an Accept or a Reject."""
        supplicant, rounds, state = Supplicant(name, side), 0, b""
        response = encode(Packet(RESPONSE, 0, IDENTITY, name))
        while True:
            datagram = self.request(response, name, state, body)
            self.wire.put(datagram)
            ended, state = await self.answer(datagram, rounds)
            if ended.code != ACCESS_CHALLENGE:
                return ended
            rounds += 1
            response = supplicant.respond(ended.eap)

    async def answer(self, datagram: bytes, rounds: int = 0) -> tuple[Ended, bytes]:
        """Return the answer to a request, and the State in the answer."""
        reply, _ = await self.wire.take()
        code, first = decode_reply(reply, datagram, self._secret)
        pairs = list(pull_attributes(reply, 20))
        hiding = Hiding(self._secret, datagram[4:20])
        keys: dict[int, bytes] = {}
        for vendor, inner in (pull_vendor_attributes(value) for kind, value in pairs if kind == VENDOR_SPECIFIC):
            assert vendor == MICROSOFT
            keys |= {kind: hiding.reveal(value) for kind, value in inner}
        eap = b"".join(value for kind, value in pairs if kind == 79)
        names = [value for kind, value in pairs if kind == USER_NAME]
        msk = keys.get(MS_MPPE_RECV_KEY, b"") + keys.get(MS_MPPE_SEND_KEY, b"")
        vlan = first.get(TUNNEL_PRIVATE_GROUP_ID, b"").lstrip(b"\0")
        return Ended(code, eap, msk, names, rounds, vlan), first.get(STATE, b"")

    async def outcomes(self) -> list[tuple[str, str, str]]:
        """Return the reason, user and method of each event, oldest first."""
        return [(each.reason, each.user_name, each.method) for each in await events(self.wire.areas)]


@pytest.fixture
async def areas(tmp_path: Path, clock: SetClock) -> AsyncIterator[Areas]:
    """Yield the areas with a new store. Three failures lock a user."""
    async with running_areas(tmp_path, clock, lockout_failures=3) as areas:
        yield areas


@pytest.fixture
async def nas(wire: Wire, tmp_path: Path) -> Nas:
    """Yield a NAS. The service has a certificate, and accepts client certificates of the same authority."""
    (tmp_path / "certificates").mkdir()
    authority = Authority(tmp_path / "certificates")
    server = authority.certificate("radius.example.com")
    wire.areas.credentials = Credentials(server.file, server.file, authority.file)
    return Nas(wire, authority)


@pytest.fixture
async def wire(areas: Areas) -> AsyncIterator[Wire]:
    """Yield a service with the RADIUS client 192.0.2.1 and the user ann with the password hello."""
    await areas.add_user(areas.domain, "ann", b"hello")
    await areas.client(name="nas")
    async with trio.open_nursery() as nursery:
        yield Wire(areas, nursery)
        nursery.cancel_scope.cancel()
