"""EAP-MD5 (RFC 3748 section 5.4): a CHAP challenge. It makes no keys and proves nothing of the server."""

from secrets import token_bytes
from typing import Final

from sallyport.base.errors import PacketError
from sallyport.radius.eap.model import Chap, Check, Failed, Failure, Next, Passed, Step, Verdict
from sallyport.radius.eap.packet import MD5, Packet

_SIZE: Final = 16


class Md5:
    """EAP-MD5 of one user. challenge: 16 octets."""

    kind = MD5
    name = "md5"

    def __init__(self, user: bytes, challenge: bytes | None = None) -> None:
        self._user = user
        self._challenge = challenge or token_bytes(_SIZE)

    def begin(self) -> Step:
        """The challenge."""
        return Next(bytes((_SIZE,)) + self._challenge)

    def respond(self, packet: Packet) -> Step:
        """The response: the EAP identifier takes the place of CHAP's."""
        if packet.data[:1] != bytes((_SIZE,)) or len(packet.data) <= _SIZE:
            raise PacketError(f"an EAP-MD5 response of {len(packet.data)} octets")
        value = bytes((packet.identifier,)) + packet.data[1 : _SIZE + 1]
        return Check(Chap(self._user, value, self._challenge))

    def answer(self, verdict: Verdict) -> Step:
        """The end."""
        return Passed(self._user) if verdict.right else Failed(verdict.reason, Failure.REFUSED)
