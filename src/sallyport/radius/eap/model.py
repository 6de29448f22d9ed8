"""The values that methods, conversations and their callers exchange.

`user` is a name in octets, as the client sent it. Only the caller can find the user of that name.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol, TypeAlias

from sallyport.radius.eap.certificate import NamedBy
from sallyport.radius.eap.packet import TYPE_NAMES, Packet
from sallyport.radius.mschap import MsChap2
from sallyport.radius.mschap_reply import ErrorCode

# --- questions to the caller ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Password:
    """The question whether a password is the user's password.

    step: the number of earlier prompts. If it is not 0, `password` is the answer to the prompt in the last verdict.
    prompts: whether the verdict may contain a prompt.
    """

    user: bytes
    password: bytes
    step: int = 0
    prompts: bool = False

    def __repr__(self) -> str:
        return f"Password({self.user!r}, ***, step={self.step})"


@dataclass(frozen=True, slots=True)
class Chap:
    """The question whether a CHAP response was computed from the user's password, as in `radius.password.chap_holds`.
    value: identifier and response, 17 octets."""

    user: bytes
    value: bytes
    challenge: bytes


@dataclass(frozen=True, slots=True)
class MsChap:
    """The question whether an MS-CHAPv2 response was computed from the user's password, as in
    `radius.mschap.NtKey.made`. hashed: the name that the client sent with the response. The client has hashed this
    name or one of its variants (`peer_names`)."""

    user: bytes
    attempt: MsChap2
    hashed: bytes


@dataclass(frozen=True, slots=True)
class Certificate:
    """The question whether the user of a verified client certificate may log in. user: the user's name in the
    certificate. by: the field that contains the name. fingerprint: SHA-256 in hex."""

    user: bytes
    subject: str
    fingerprint: str
    by: NamedBy = NamedBy.COMMON_NAME


@dataclass(frozen=True, slots=True)
class Resumed:
    """The question whether the user of an earlier login may resume its TLS session; if not, a full login follows. The
    client has sent only its ClientHello, and has not yet proved that the session is its own. stamp: the stamp in the
    verdict on the earlier login."""

    user: bytes
    stamp: str = ""


Question: TypeAlias = Password | Chap | MsChap | Certificate | Resumed


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to a question.

    right: whether the answer is yes. prompt: a further prompt for the user, if the question allows one; `right` is
    ignored then. hash_hash, hashed: for a correct MS-CHAPv2 response, the hash of the password's NT hash (16 octets)
    and the name that the client has hashed. error: for a wrong MS-CHAPv2 response, its error code. reason: if the
    answer is no, the cause in words. stamp: a text that is stored with the TLS session and returned in `Resumed`.
    """

    right: bool
    prompt: str = ""
    hash_hash: bytes = b""
    hashed: bytes = b""
    error: ErrorCode = ErrorCode.AUTHENTICATION_FAILURE
    reason: str = ""
    stamp: str = ""


# --- results of a method --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Next:
    """The method's next request. data: its Type-Data; inside TLS, the octets before encryption, which may be empty."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Check:
    """A question to the caller: the conversation waits for the verdict."""

    question: Question


@dataclass(frozen=True, slots=True)
class Passed:
    """The method has succeeded. msk: the Master Session Key (RFC 3748 section 7.10), one half for each direction; empty
    if the method derives no keys."""

    user: bytes
    msk: bytes = b""

    def __repr__(self) -> str:
        return f"Passed({self.user!r}, ***)"


class Failure(Enum):
    """The kinds of failures of a conversation."""

    REFUSED = "refused"  # by the verdict
    NOT_OFFERED = "not offered"  # the client wants a method that is not offered
    CERTIFICATE = "certificate"  # the client's certificate is not valid
    TLS = "tls"  # TLS has failed for another reason
    BROKEN = "broken"  # the client violates the protocol


@dataclass(frozen=True, slots=True)
class Failed:
    """The method has failed. reason: the cause in words."""

    reason: str
    failure: Failure = Failure.BROKEN


Step: TypeAlias = Next | Check | Passed | Failed


class Method(Protocol):
    """One method of one conversation. Each call may raise PacketError if the message is malformed; then the method
    has failed."""

    @property
    def kind(self) -> int:
        """Return the method's Type."""

    @property
    def name(self) -> str:
        """Return the method's name, such as `peap-mschapv2`; while the inner method is not known, only `peap`."""

    def begin(self) -> Step:
        """Return the method's first request."""

    def respond(self, packet: Packet) -> Step:
        """Process a response of the method's EAP Type."""

    def answer(self, verdict: Verdict) -> Step:
        """Continue with the verdict on the method's question."""


# --- results of a conversation --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Send:
    """An EAP packet, for an Access-Challenge."""

    octets: bytes


@dataclass(frozen=True, slots=True)
class Waiting:
    """The outcome of a retransmitted response while the caller has not yet answered the question about it."""


@dataclass(frozen=True, slots=True)
class Done:
    """The end of the conversation.

    octets: EAP-Success or EAP-Failure, for the Access-Accept or Access-Reject. user: the name of the user, from inside
    the tunnel if there is one. method: the outer and the inner method, such as `eap-ttls-pap`; after a failure it may
    be only the outer one. msk: see `Passed`. reason, failure: the cause of a failure, in words and as a code.
    """

    success: bool
    octets: bytes
    user: bytes
    method: str
    msk: bytes = b""
    reason: str = ""
    failure: Failure | None = None

    def __repr__(self) -> str:
        return f"Done({self.success}, {self.user!r}, {self.method!r}, reason={self.reason!r})"


Outcome: TypeAlias = Send | Check | Waiting | Done


NO_SERVER: Final = "there is no server certificate"
NO_AUTHORITY: Final = "there is no authority for client certificates"
UNCHECKED: Final = "the domain's first factor cannot check it"
OTHER: Final = "not among the methods here"


@dataclass(frozen=True, slots=True)
class Offer:
    """A method that can be offered. make: a function that returns the method, given an identity and the present
    time."""

    kind: int
    make: Callable[[bytes, float], Method]


@dataclass(frozen=True, slots=True)
class Offers:
    """The offered methods, in order. left_out: for each other method the reason why it is not offered."""

    methods: Sequence[Offer]
    left_out: Mapping[int, str] = field(default_factory=dict)

    def why(self, kinds: Iterable[int]) -> str:
        """Return in words why these methods are not offered."""
        return ", ".join(f"{TYPE_NAMES.get(kind, f'type {kind}')} ({self.left_out.get(kind, OTHER)})" for kind in kinds)
