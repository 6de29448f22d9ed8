"""The values that methods, conversations and their callers exchange.

`user` is always a name in octets, as the client has sent it. Only the caller knows which user has this name.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol, TypeAlias

from cryptography import x509

from sallyport.radius.eap.certificate_names import NamedBy
from sallyport.radius.eap.packet import TYPE_NAMES, Packet
from sallyport.radius.mschap import MsChap2
from sallyport.radius.mschap_reply import ErrorCode

# --- questions to the caller ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Password:
    """The question whether a password is correct.

    step: the number of earlier prompts. If it is above 0, `password` is the user's answer to the last prompt. prompts:
    whether the verdict may contain a prompt.
    """

    user: bytes
    password: bytes
    step: int = 0
    prompts: bool = False

    def __repr__(self) -> str:
        return f"Password({self.user!r}, ***, step={self.step})"


@dataclass(frozen=True, slots=True)
class Chap:
    """The question whether a CHAP response is correct (see `radius.password.chap_holds`).

    challenge: the CHAP challenge. value: identifier and response, 17 octets.
    """

    user: bytes
    value: bytes
    challenge: bytes


@dataclass(frozen=True, slots=True)
class MsChap:
    """The question whether an MS-CHAPv2 response is correct (see `radius.mschap.NtKey.made`).

    hashed: the name that the client has sent with the response. The client has hashed this name, or one of its variants
    (`peer_names`).
    """

    user: bytes
    attempt: MsChap2
    hashed: bytes


@dataclass(frozen=True, slots=True)
class Certificate:
    """The question whether the user of a verified client certificate may log in.

    user: the user's name in the certificate. by: the field that contains the name. fingerprint: the SHA-256 hash of the
    certificate, in hexadecimal digits. certificate: the certificate itself, for the facts that rules compare.

    chain: the verified chain, from the certificate to the root or another trust anchor, if the domain has authorities
    of its own; otherwise it is empty. With a chain, `user` is empty, because the authority decides which field contains
    the name. anchor: the SHA-256 of the public key of the chain's trust anchor, in hex. is_revoked: whether the
    installation's own list has revoked a certificate of the chain.
    """

    user: bytes
    fingerprint: str
    by: NamedBy = NamedBy.COMMON_NAME
    certificate: x509.Certificate | None = field(default=None, compare=False, repr=False)
    chain: tuple[x509.Certificate, ...] = field(default=(), compare=False, repr=False)
    anchor: str = ""
    is_revoked: bool = False


@dataclass(frozen=True, slots=True)
class Resumed:
    """The question whether a user may resume the TLS session of an earlier login. If the answer is no, a full login
    follows.

    The client has sent only its ClientHello, and has not yet proved that it owns the session. stamp: the stamp from the
    verdict on the earlier login. by_certificate: whether the earlier login was by EAP-TLS; the question about the
    certificate follows.
    """

    user: bytes
    stamp: str = ""
    by_certificate: bool = False


Question: TypeAlias = Password | Chap | MsChap | Certificate | Resumed


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to a question.

    right: whether the answer is yes. prompt: another prompt for the user, if the question allows prompts; `right` is
    then ignored. hash_hash, hashed: after a correct MS-CHAPv2 response, the hash of the password's NT hash (16 octets),
    and the name that the client has hashed. error: after a wrong MS-CHAPv2 response, the error code. reason: why the
    answer is no, for the log. stamp: a text to store with the TLS session; `Resumed` contains it later. user: the name
    of the user, if the caller has found it by the certificate; otherwise empty.
    """

    right: bool
    prompt: str = ""
    hash_hash: bytes = b""
    hashed: bytes = b""
    error: ErrorCode = ErrorCode.AUTHENTICATION_FAILURE
    reason: str = ""
    stamp: str = ""
    user: bytes = b""


# --- results of a method --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Next:
    """The next request of a method to the client. data: the Type-Data of the request. Inside TLS, `data` is the octets
    before encryption, and may be empty."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Check:
    """A question to the caller. The conversation waits for the verdict."""

    question: Question


@dataclass(frozen=True, slots=True)
class Passed:
    """The method has succeeded. msk: the Master Session Key (RFC 3748 section 7.10), with one half for each direction;
    empty if the method derives no keys. resumed: the method of the full login, if a session was resumed."""

    user: bytes
    msk: bytes = b""
    resumed: str = ""

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
    """The method has failed. reason: why it has failed, for the log."""

    reason: str
    failure: Failure = Failure.BROKEN


Step: TypeAlias = Next | Check | Passed | Failed


class Method(Protocol):
    """An EAP method in one conversation. Each call raises PacketError if the client's message is malformed. The method
    has then failed."""

    @property
    def kind(self) -> int:
        """Return the EAP Type of the method."""

    @property
    def name(self) -> str:
        """Return the name of the method, such as `peap-mschapv2`. Return only `peap` while the inner method is
        unknown."""

    def begin(self) -> Step:
        """Return the first request of the method."""

    def respond(self, packet: Packet) -> Step:
        """Process a response with the EAP Type of this method."""

    def answer(self, verdict: Verdict) -> Step:
        """Continue after the caller's verdict on the method's question."""


# --- results of a conversation --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Send:
    """An EAP packet, for an Access-Challenge."""

    octets: bytes


@dataclass(frozen=True, slots=True)
class Waiting:
    """The outcome of a retransmitted response while the caller has not yet answered the question that the first copy of
    the response caused."""


@dataclass(frozen=True, slots=True)
class Done:
    """The end of the conversation.

    octets: EAP-Success or EAP-Failure, for the Access-Accept or Access-Reject. user: the user's name, from inside the
    tunnel if there is a tunnel. method: the outer and the inner method, such as `eap-ttls-pap`; after a failure it may
    be only the outer method. msk: the Master Session Key (see `Passed`). resumed: the method of the full login, if a
    session was resumed. reason, failure: why the login has failed, in
    words and as a code.
    """

    success: bool
    octets: bytes
    user: bytes
    method: str
    msk: bytes = b""
    reason: str = ""
    failure: Failure | None = None
    resumed: str = ""

    def __repr__(self) -> str:
        return f"Done({self.success}, {self.user!r}, {self.method!r}, reason={self.reason!r})"


Outcome: TypeAlias = Send | Check | Waiting | Done


NO_SERVER: Final = "there is no server certificate"
NO_AUTHORITY: Final = "there is no authority for client certificates"
UNCHECKED: Final = "the domain's first factor cannot check it"
OTHER: Final = "not supported here"


@dataclass(frozen=True, slots=True)
class Offer:
    """A method that the server can offer. make: creates the method from the client's identity and the current time."""

    kind: int
    make: Callable[[bytes, float], Method]


@dataclass(frozen=True, slots=True)
class Offers:
    """The methods that the server offers, in order. left_out: the methods that the server does not offer, each with the
    reason."""

    methods: Sequence[Offer]
    left_out: Mapping[int, str] = field(default_factory=dict)

    def why(self, kinds: Iterable[int]) -> str:
        """Return why these methods are not offered, for the log. kinds: the EAP Types of the methods."""
        return ", ".join(f"{TYPE_NAMES.get(kind, f'type {kind}')} ({self.left_out.get(kind, OTHER)})" for kind in kinds)
