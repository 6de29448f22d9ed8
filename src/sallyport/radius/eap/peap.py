"""The protocol inside PEAP version 0 (MS-PEAP). The two sides exchange EAP packets without headers. At the end, each
side sends a Result TLV.

Inside the tunnel, Windows and wpa_supplicant omit the code, identifier and length of EAP packets. Only Extensions
packets have these headers. The TLVs are in Extensions packets. The Cryptobinding TLV is not used.
"""

from typing import Final

from sallyport.base.errors import PacketError
from sallyport.radius.eap.conversation import Conversation, failed
from sallyport.radius.eap.model import Check, Done, Failed, Next, Offers, Outcome, Passed, Send, Step, Verdict
from sallyport.radius.eap.packet import EXTENSIONS, REQUEST, RESPONSE, Packet, encode
from sallyport.radius.eap.resumption import SessionUser

_HEADERLESS: Final = 4  # the omitted octets: code, identifier, length
_MANDATORY_RESULT: Final = b"\x80\x03\x00\x02"  # MS-PEAP section 2.2.8.1.2: mandatory, type 3, 2 octets
_TYPE_MASK: Final = 0x3FFF
_RESULT: Final = 3
_SUCCESS: Final = 1
_FAILURE: Final = 2


class PeapPhase:
    """The inner phase of PEAP, after the TLS handshake.

    offers: the inner methods. now: the start of the conversation, in seconds of a monotonic clock.
    """

    issuers = ()

    def __init__(self, offers: Offers, *, now: float) -> None:
        self._eap = Conversation(offers, now=now)
        self._begun = False
        self._resumed = False
        self._end: Passed | Failed | None = None  # the result, if the client confirms it

    @property
    def inner(self) -> str:
        """Return the name of the inner method."""
        return "resumed" if self._resumed else self._eap.method

    def established(self, holder: SessionUser | None) -> Step:
        """Return success if the session was resumed. Otherwise wait until the client acknowledges the handshake."""
        if holder is None:
            return Next(b"")
        self._resumed = True
        return self._tell(Passed(holder.user))

    def respond(self, clear: bytes) -> Step:
        """Process an EAP response, with or without its header. At the end, process the client's Result TLV."""
        if self._end is not None:
            return self._conclude(clear)
        if not self._begun:
            self._begun = True
            if not clear:
                return self._step(self._eap.begin())
        if not clear:
            return Failed("nothing inside PEAP")
        if _has_header(clear):
            clear = clear[_HEADERLESS:]
        return self._step(self._eap.respond(Packet(RESPONSE, self._eap.identifier, clear[0], clear[1:])))

    def answer(self, verdict: Verdict) -> Step:
        """Continue after the verdict on the inner method's question."""
        return self._step(self._eap.answer(verdict))

    def _step(self, outcome: Outcome) -> Step:
        if isinstance(outcome, Check):
            return outcome
        if isinstance(outcome, Send):
            return Next(outcome.octets[_HEADERLESS:])
        if isinstance(outcome, Done) and outcome.success:
            return self._tell(Passed(outcome.user))
        return self._tell(failed(outcome))

    def _tell(self, end: Passed | Failed) -> Step:
        """Return the server's Result TLV. The client must answer with its own Result TLV."""
        self._end = end
        result = _SUCCESS if isinstance(end, Passed) else _FAILURE
        identifier = self._eap.identifier + 1 & 0xFF
        return Next(encode(Packet(REQUEST, identifier, EXTENSIONS, _MANDATORY_RESULT + result.to_bytes(2))))

    def _conclude(self, clear: bytes) -> Step:
        end = self._end
        if isinstance(end, Passed) and _result(clear) != _SUCCESS:
            return Failed("the client does not agree to the result inside PEAP")
        assert end is not None  # noqa: S101  `_tell` set it
        return end


def _has_header(clear: bytes) -> bool:
    return clear[0] == RESPONSE and len(clear) > _HEADERLESS and int.from_bytes(clear[2:4]) == len(clear)


def _result(clear: bytes) -> int:
    """Return the status in the client's Result TLV. Return 0 if there is no Result TLV. Raises PacketError if a TLV
    runs past the end."""
    if clear and _has_header(clear):
        clear = clear[_HEADERLESS:]
    if clear[:1] != bytes((EXTENSIONS,)):
        return 0
    at = 1
    while at < len(clear):
        kind, size = int.from_bytes(clear[at : at + 2]) & _TYPE_MASK, int.from_bytes(clear[at + 2 : at + 4])
        if at + 4 + size > len(clear):
            raise PacketError("a TLV inside PEAP runs past the end")
        if kind == _RESULT and size == 2:
            return int.from_bytes(clear[at + 4 : at + 6])
        at += 4 + size
    return 0
