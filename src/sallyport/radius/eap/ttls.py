"""The protocol inside TTLS (RFC 5281 section 11): PAP, CHAP, MS-CHAPv2 or EAP, in Diameter AVPs (section 10). The
client sends the first message after the handshake."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from hmac import compare_digest
from typing import Final

from sallyport.base.errors import PacketError
from sallyport.radius.attributes import CHAP_CHALLENGE, CHAP_PASSWORD, EAP_MESSAGE, USER_NAME, USER_PASSWORD
from sallyport.radius.eap.conversation import MAX_NAME, Conversation, failed
from sallyport.radius.eap.model import (
    UNCHECKED,
    Chap,
    Check,
    Done,
    Failed,
    Failure,
    MsChap,
    Next,
    Offers,
    Outcome,
    Passed,
    Password,
    Question,
    Send,
    Step,
    Verdict,
)
from sallyport.radius.eap.resumption import SessionUser
from sallyport.radius.eap.tls import PROTECTED_SUCCESS
from sallyport.radius.eap.tunnel import Tunnel
from sallyport.radius.mschap import (
    MICROSOFT,
    MS_CHAP2_RESPONSE,
    MS_CHAP2_SUCCESS,
    MS_CHAP_CHALLENGE,
    MsChap2,
    authenticator_response,
)

_VENDOR: Final = 0x80
_MANDATORY: Final = 0x40
MAX_ATTRIBUTES: Final = 100


@dataclass(frozen=True, slots=True)
class Avp:
    """A Diameter attribute-value pair (AVP). vendor: 0 for the attributes of RADIUS. mandatory: whether a receiver must
    reject the message if it does not support this AVP."""

    vendor: int
    code: int
    mandatory: bool
    value: bytes


def pull_avps(octets: bytes) -> Iterator[Avp]:
    """Yield the AVPs of a message. Raises PacketError if an AVP has a wrong length, or if there are too many AVPs."""
    at, count = 0, 0
    while at < len(octets):
        head = octets[at : at + 8]
        length = int.from_bytes(head[5:8])
        flags = head[4] if len(head) == 8 else 0
        start = 12 if flags & _VENDOR else 8
        count += 1
        if len(head) < 8 or length < start or at + length > len(octets) or count > MAX_ATTRIBUTES:
            raise PacketError(
                f"an attribute inside TTLS has the invalid length {length}, or there are more than {MAX_ATTRIBUTES} "
                "attributes"
            )
        vendor = int.from_bytes(octets[at + 8 : at + 12]) if flags & _VENDOR else 0
        yield Avp(vendor, int.from_bytes(head[:4]), bool(flags & _MANDATORY), octets[at + start : at + length])
        at += length + -length % 4


def push_avp(code: int, value: bytes, vendor: int = 0) -> bytes:
    """Return one mandatory AVP in octets, with its padding."""
    length = (12 if vendor else 8) + len(value)
    flags = _MANDATORY | (_VENDOR if vendor else 0)
    head = code.to_bytes(4) + bytes((flags,)) + length.to_bytes(3) + (vendor.to_bytes(4) if vendor else b"")
    return head + value + bytes(-length % 4)


_CHALLENGE: Final = b"ttls challenge"  # RFC 5281 section 11.1
_VENDOR_MS_CHAP_CHALLENGE: Final = (MICROSOFT, MS_CHAP_CHALLENGE)
_VENDOR_MS_CHAP2_RESPONSE: Final = (MICROSOFT, MS_CHAP2_RESPONSE)
_KNOWN: Final = frozenset(
    {
        (0, USER_NAME), (0, USER_PASSWORD), (0, CHAP_PASSWORD), (0, CHAP_CHALLENGE), (0, EAP_MESSAGE),
        _VENDOR_MS_CHAP_CHALLENGE, _VENDOR_MS_CHAP2_RESPONSE,
    }
)  # fmt: skip
_Values = dict[tuple[int, int], bytes]


class TtlsPhase:
    """The inner phase of TTLS, after the TLS handshake.

    offers: the methods of an inner EAP conversation. checkable: the kinds of questions that the first factor can
    answer. now: the start of the conversation, in seconds of a monotonic clock.
    """

    issuers = ()

    def __init__(self, tunnel: Tunnel, offers: Offers, checkable: Collection[type[Question]], *, now: float) -> None:
        self._tunnel = tunnel
        self._offers = offers
        self._checkable = checkable
        self._now = now
        self._question: Question | None = None
        self._eap: Conversation | None = None
        self._end: Passed | None = None  # the result once the client has acknowledged it
        self._inner = ""

    @property
    def inner(self) -> str:
        """Return the name of the inner method."""
        return self._inner if self._eap is None else f"eap-{self._eap.method}".rstrip("-")

    def established(self, holder: SessionUser | None) -> Step:
        """Return success if the session was resumed. Otherwise wait for the client's message."""
        if holder is None:
            return Next(b"")
        self._inner = "resumed"
        passed = Passed(holder.user)
        if self._tunnel.is_tls13:
            self._end = passed
            return Next(PROTECTED_SUCCESS)
        return passed

    def respond(self, clear: bytes) -> Step:
        """Process a message of the client: a login, or an acknowledgement."""
        if self._end is not None:
            return Failed("data after the end inside TTLS") if clear else self._end
        if not clear:
            return Next(b"")
        values = _values(clear)
        if (0, EAP_MESSAGE) in values:
            return self._converse(values[0, EAP_MESSAGE])
        if self._eap is not None or self._question is not None:
            return Failed("a second login inside TTLS")
        return self._login(values)

    def answer(self, verdict: Verdict) -> Step:
        """Continue after the verdict on the login."""
        if self._eap is not None:
            return self._step(self._eap.answer(verdict))
        question = self._question
        assert question is not None  # noqa: S101  it was put
        if not verdict.right:
            return Failed(verdict.reason, Failure.REFUSED)
        passed = Passed(question.user)
        if isinstance(question, MsChap):
            self._end = passed
            proof = authenticator_response(question.attempt, verdict.hash_hash, verdict.hashed)
            return Next(push_avp(MS_CHAP2_SUCCESS, bytes((question.attempt.identifier,)) + proof, MICROSOFT))
        return passed

    def _login(self, values: _Values) -> Step:
        user = values.get((0, USER_NAME), b"")
        if not 0 < len(user) <= MAX_NAME:
            return Failed("no user name inside TTLS")
        if (0, USER_PASSWORD) in values:
            return self._ask("pap", Password(user, values[0, USER_PASSWORD].rstrip(b"\0")))
        if (0, CHAP_PASSWORD) in values:
            return self._chap(user, values)
        if _VENDOR_MS_CHAP2_RESPONSE in values:
            return self._mschap(user, values)
        return Failed("an unknown kind of login inside TTLS")

    def _chap(self, user: bytes, values: _Values) -> Step:
        challenge = self._challenge()
        value, sent = values[0, CHAP_PASSWORD], values.get((0, CHAP_CHALLENGE), b"")
        if len(value) != 17 or not compare_digest(value[:1] + sent, challenge[16:] + challenge[:16]):
            return Failed("a CHAP challenge other than the implicit one")
        return self._ask("chap", Chap(user, value, challenge[:16]))

    def _mschap(self, user: bytes, values: _Values) -> Step:
        challenge = self._challenge()
        value, sent = values[_VENDOR_MS_CHAP2_RESPONSE], values.get(_VENDOR_MS_CHAP_CHALLENGE, b"")
        if len(value) != 50 or not compare_digest(value[:1] + sent, challenge[16:] + challenge[:16]):
            return Failed("an MS-CHAP challenge other than the implicit one")
        attempt = MsChap2(value[0], challenge[:16], value[2:18], value[26:])
        return self._ask("mschapv2", MsChap(user, attempt, user))

    def _challenge(self) -> bytes:
        """Return the implicit challenge (16 octets) and identifier (one octet) for CHAP and MS-CHAPv2 (RFC 5281 section
        11.1)."""
        return self._tunnel.export(_CHALLENGE, 17)

    def _ask(self, inner: str, question: Question) -> Step:
        self._inner, self._question = inner, question
        if type(question) not in self._checkable:
            return Failed(f"the client wants a method that is not offered: {inner} ({UNCHECKED})", Failure.NOT_OFFERED)
        return Check(question)

    def _converse(self, octets: bytes) -> Step:
        if self._question is not None:
            return Failed("a second login inside TTLS")
        if self._eap is None:
            self._eap = Conversation(self._offers, now=self._now)
        return self._step(self._eap.receive(octets))

    def _step(self, outcome: Outcome) -> Step:
        if isinstance(outcome, Check):
            return outcome
        if isinstance(outcome, Send):
            return Next(push_avp(EAP_MESSAGE, outcome.octets))
        if isinstance(outcome, Done) and outcome.success:
            return Passed(outcome.user)
        return failed(outcome)


def _values(clear: bytes) -> _Values:
    """Return the values of the AVPs by (vendor, code). EAP-Message AVPs are joined. Raises PacketError."""
    values: _Values = {}
    for avp in pull_avps(clear):
        key = avp.vendor, avp.code
        if key not in _KNOWN:
            if avp.mandatory:
                raise PacketError(f"the mandatory attribute {avp.code} of vendor {avp.vendor} inside TTLS is not known")
            continue
        if key in values and key != (0, EAP_MESSAGE):
            raise PacketError(f"the attribute {avp.code} occurs twice inside TTLS")
        values[key] = values.get(key, b"") + avp.value
    return values
