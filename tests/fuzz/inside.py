"""What a client sends inside the tunnel of TTLS or PEAP. No random record passes the handshake, so the octets are given
to the inner phase directly."""

import contextlib
from typing import Final, cast

from sallyport.base.errors import PacketError
from sallyport.radius.attributes import EAP_MESSAGE
from sallyport.radius.eap import packet as eap
from sallyport.radius.eap.methods import Terms, offers
from sallyport.radius.eap.model import Check, Failed, Next, Passed, Step
from sallyport.radius.eap.peap import PeapPhase
from sallyport.radius.eap.ttls import TtlsPhase, push_avp
from sallyport.radius.eap.tunnel import Tunnel
from tests.fuzz.inputs import pieces
from tests.radius.eap.conftest import USER
from tests.radius.eap.users import EVERYTHING, Users

CHALLENGE: Final = bytes(range(17))
"""The implicit challenge of TTLS, which a client must repeat (RFC 5281 section 11.1)."""
_PASSWORD: Final = b"no input of a fuzzer has this password: 7c1d9e0b"
_IDENTIFIER: Final = 9
"""Position of the identifier of an EAP packet in the first AVP, which has a head of eight octets."""


class _Tunnel:
    """The parts of a tunnel that the inner phase uses."""

    is_tls13 = False

    def export(self, _label: bytes, size: int) -> bytes:
        """Return a known challenge, so that CHAP and MS-CHAPv2 reach their check."""
        return CHALLENGE[:size]


def inner(octets: bytes) -> None:
    """Octets inside a tunnel are a login that fails, or PacketError. The first octet chooses PEAP, TTLS, or EAP in TTLS
    with the right identifiers."""
    kind, parts = (octets[0] % 3 if octets else 0), pieces(octets[1:])
    inside = offers(Terms(None, EVERYTHING))
    phase: PeapPhase | TtlsPhase
    tunnel = cast("Tunnel", _Tunnel())
    phase = PeapPhase(inside, now=0) if kind == 0 else TtlsPhase(tunnel, inside, EVERYTHING, now=0)
    users, identifier = Users({USER: _PASSWORD}), 0
    step: Step = phase.established(None)
    for piece in parts:
        sent = piece
        if kind == 2:  # otherwise a packet with another identifier than that of the request is dropped
            sent = push_avp(EAP_MESSAGE, eap.encode(eap.Packet(eap.RESPONSE, identifier, *_kind_and_data(piece))))
        with contextlib.suppress(PacketError):
            step = phase.respond(sent)
            while isinstance(step, Check):
                step = phase.answer(users.verdict(step.question))
        assert not isinstance(step, Passed)
        if isinstance(step, Failed):
            return
        if isinstance(step, Next) and len(step.data) > _IDENTIFIER:
            identifier = step.data[_IDENTIFIER]


def _kind_and_data(piece: bytes) -> tuple[int, bytes]:
    return (piece[0], piece[1:]) if piece else (eap.IDENTITY, b"")
