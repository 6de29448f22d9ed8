"""The values that methods, their conversation and its caller exchange.

`user` is a name in octets, as the client sent it. Only the caller knows the users.
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
    """The question whether a password is the user's.

    step: the number of earlier prompts. After a prompt, the text answers the prompt of the verdict before. prompts:
    whether a verdict can ask for more.
    """

    user: bytes
    password: bytes
    step: int = 0
    prompts: bool = False

    def __repr__(self) -> str:
        return f"Password({self.user!r}, ***, step={self.step})"


@dataclass(frozen=True, slots=True)
class Chap:
    """The question whether the user's password made a CHAP response: `radius.password.chap_holds`. value: 17 octets."""

    user: bytes
    value: bytes
    challenge: bytes


@dataclass(frozen=True, slots=True)
class MsChap:
    """The question whether the user's password made an MS-CHAPv2 response: `radius.mschap.NtKey.made`. hashed: the name
    that the client sent; the name in the hash is one of its `peer_names`."""

    user: bytes
    attempt: MsChap2
    hashed: bytes


@dataclass(frozen=True, slots=True)
class Certificate:
    """The question whether the user of a verified client certificate may log in. user: the name in the certificate;
    by: its place there. fingerprint: SHA-256 in hex."""

    user: bytes
    subject: str
    fingerprint: str
    by: NamedBy = NamedBy.COMMON_NAME


@dataclass(frozen=True, slots=True)
class Resumed:
    """The question whether a user that logged in within the last hours may resume the session; if not, a full login
    follows. The client has sent its ClientHello, and has not yet proved that the session is its own. stamp: of the
    verdict of that login."""

    user: bytes
    stamp: str = ""


Question: TypeAlias = Password | Chap | MsChap | Certificate | Resumed


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to a question.

    right: whether the answer is yes. prompt: asks the user for more, if the question allows it; right is ignored then.
    hash_hash, hashed: for a right MS-CHAPv2 response: the hash of the password's NT hash, 16 octets, and the name in
    the response. error: for a wrong MS-CHAPv2 response: the cause. reason: the cause for people, if the answer is no.
    stamp: kept with the session, for the question that resumes it.
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
    """Another request. data: its Type-Data; inside TLS the octets in clear, which may be empty."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Check:
    """A question: the conversation waits for its verdict."""

    question: Question


@dataclass(frozen=True, slots=True)
class Passed:
    """The user has logged in. msk: the keys (RFC 3748 section 7.10), half of them for each direction; empty if the
    method makes none."""

    user: bytes
    msk: bytes = b""

    def __repr__(self) -> str:
        return f"Passed({self.user!r}, ***)"


class Failure(Enum):
    """The kinds of failure of a conversation."""

    REFUSED = "refused"  # by the verdict
    NOT_OFFERED = "not offered"  # the client wants a method that is not offered
    CERTIFICATE = "certificate"  # the client's certificate is not valid
    TLS = "tls"  # TLS has failed for another reason
    BROKEN = "broken"  # the client violates the protocol


@dataclass(frozen=True, slots=True)
class Failed:
    """The method has failed. reason: for people."""

    reason: str
    failure: Failure = Failure.BROKEN


Step: TypeAlias = Next | Check | Passed | Failed


class Method(Protocol):
    """One method of one conversation. Each call may raise PacketError: the message is malformed, and the method has
    failed."""

    @property
    def kind(self) -> int:
        """Return the method's Type."""

    @property
    def name(self) -> str:
        """Return the method's name, such as `peap-mschapv2`, as far as it is known."""

    def begin(self) -> Step:
        """Return the method's first request."""

    def respond(self, packet: Packet) -> Step:
        """Process a response of the method's Type."""

    def answer(self, verdict: Verdict) -> Step:
        """Continue with the answer to the question."""


# --- results of a conversation --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Send:
    """An EAP packet, for an Access-Challenge."""

    octets: bytes


@dataclass(frozen=True, slots=True)
class Waiting:
    """The earlier question is not answered yet: the client has sent its response again."""


@dataclass(frozen=True, slots=True)
class Done:
    """The end of the conversation.

    octets: EAP-Success or EAP-Failure, for the Access-Accept or Access-Reject. user: the name that has logged in, from
    inside the tunnel if there is one. method: such as `eap-ttls-pap`; of a failed one, as far as it is known. msk: see
    `Passed`. reason, failure: the cause of a failure, for people and for programs.
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
    """A method that can be offered. make: starts it for an identity, at a time."""

    kind: int
    make: Callable[[bytes, float], Method]


@dataclass(frozen=True, slots=True)
class Offers:
    """The offered methods, in order. left_out: the reason for each other method."""

    methods: Sequence[Offer]
    left_out: Mapping[int, str] = field(default_factory=dict)

    def why(self, kinds: Iterable[int]) -> str:
        """The reason why these methods are not offered; for people."""
        return ", ".join(f"{TYPE_NAMES.get(kind, f'type {kind}')} ({self.left_out.get(kind, OTHER)})" for kind in kinds)
