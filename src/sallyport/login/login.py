"""A login and its decision."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

from sallyport.domains.domain import FirstFactor
from sallyport.inventory.sessions.report import Report
from sallyport.policy.lockouts.failures import Failure
from sallyport.radius.attributes import SERVICE_TYPE
from sallyport.radius.password import Method

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sallyport.directory.principals import Membership
    from sallyport.domains.domain import Domain
    from sallyport.inventory.clients.client import Client
    from sallyport.inventory.devices.device import Device, Station
    from sallyport.mfa.provider import Code
    from sallyport.radius.duplicates import Entry, Source
    from sallyport.radius.eap.certificate import NamedBy
    from sallyport.radius.packet import Request
    from sallyport.store.model import Tx


class Verdict(StrEnum):
    """The end of a login."""

    ACCEPT = "accept"
    REJECT = "reject"
    CHALLENGE = "challenge"


class Reason(StrEnum):
    """Why a login ended as it did; empty for a login that passed."""

    NONE = ""
    # first factor
    WRONG_PASSWORD = "wrong password"  # noqa: S105
    WRONG_PASSWORD_OR_SECRET = "wrong password or wrong shared secret"  # noqa: S105
    UNKNOWN_USER = "unknown user"
    UNKNOWN_REALM = "unknown realm"
    NO_USER_NAME = "no user name"
    NO_DOMAIN = "the RADIUS client has no domain"
    DOMAIN_REMOVED = "the domain was removed meanwhile"
    NO_CREDENTIALS = "no credentials that can be checked"
    FIRST_FACTOR_UNAVAILABLE = "the domain's first factor is not configured"
    FIRST_FACTOR_UNREADABLE = "configuration of the first factor unreadable"
    FIRST_FACTOR_CHANGED = "the first factor was changed meanwhile"
    FIRST_FACTOR_UNREACHABLE = "first factor unreachable"
    DIRECTORY_ENTRY_TOO_LARGE = "the user's directory entry or memberships exceed the limit"
    CHANGES_PASSWORD = "passwords are not changed here"  # noqa: S105
    METHOD_UNFIT = "the domain's first factor cannot check this kind of login"
    MAY_NOT_VOUCH = "the RADIUS client may not vouch for passwords"
    VOUCHES_UNSIGNED = "a vouching request is not signed"
    ACCOUNT_LOCKED = "account locked"
    ACCOUNT_DISABLED = "account disabled"
    ACCOUNT_EXPIRED = "account expired"
    PASSWORD_EXPIRED = "password expired"  # noqa: S105
    PASSWORD_MUST_CHANGE = "password must be changed"  # noqa: S105
    LOGON_RESTRICTED = "logon hours or stations restricted"
    LOCKED_OUT = "locked out after failures"
    REFUSED_UPSTREAM = "refused by the upstream server"
    NO_SERVER_CERTIFICATE = "the client wants EAP in TLS, and there is no server certificate"
    METHOD_NOT_OFFERED = "the client wants an EAP method that is not offered"
    SERVER_UNTRUSTED = "the client does not trust the server certificate"
    CERTIFICATE_REFUSED = "client certificate refused"
    TLS_FAILED = "TLS with the client failed"
    EAP_BROKEN = "the client does not keep to EAP"
    PROXY_LOOP = "the upstream server sends the login back: a proxy loop"
    # the rules
    BLOCKED = "blocked by rule"
    # second factor
    ASKED = "second factor asked for"
    ENROLMENT_UNKNOWN = "enrolment not known yet"
    DENIED = "second factor denied"
    WRONG_CODE = "wrong code"
    NOT_ENROLLED = "not enrolled"
    TAKES_NO_CODE = "this kind of login cannot ask for a code"
    NOT_ANSWERED = "second factor not answered in time"
    GIVES_UP = "device gives up sooner than the provider answers"
    TOO_MANY_PROMPTS = "too many prompts"
    TOO_MANY_CODES = "the provider takes no more codes for now"
    CHALLENGE_OVER = "the challenge is unknown, over or another's"
    # the second factor cannot be asked: fallbackAction decides
    NO_PROVIDER = "no provider"
    UNREACHABLE = "provider unreachable"
    RATE_LIMITED = "the provider's rate limit is reached"
    CIRCUIT_OPEN = "provider unreachable, circuit open"
    UNREADABLE = "provider configuration unreadable"
    STOPPED = "the service was stopped before the second factor was answered"


PASSED: Final = Reason.NONE
"""The result of a step that the login passes. Members that every login looks up have a name of their own: before
Python 3.12 it takes half a microsecond to look one up in its enumeration."""


_FAILURES: Final = {
    Reason.WRONG_PASSWORD: Failure.PASSWORD,
    Reason.WRONG_PASSWORD_OR_SECRET: Failure.PASSWORD,
    Reason.REFUSED_UPSTREAM: Failure.PASSWORD,
    Reason.UNKNOWN_USER: Failure.UNKNOWN_USER,
    Reason.WRONG_CODE: Failure.CODE,
}


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """The decision on a login.

    decision: the verdict; applied: the verdict that is answered; would_have_been: the verdict in monitor mode, else
    empty. outcome: its label among the metrics; empty: not final. failure: the credential that was wrong, for the
    lock-outs; None: none. admits: whether Access-Accept is answered. row: decision, applied, would_have_been and reason
    as plain text, as an event keeps them. Decisions are few and made once, so each is its own key.
    """

    decision: Verdict
    applied: Verdict
    would_have_been: str
    reason: Reason
    mode: str
    outcome: str
    failure: Failure | None = field(init=False)
    admits: bool = field(init=False)
    row: tuple[str, str, str, str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "failure", _FAILURES.get(self.reason))
        object.__setattr__(self, "admits", self.applied is Verdict.ACCEPT)
        row = (self.decision.value, self.applied.value, self.would_have_been, self.reason.value)
        object.__setattr__(self, "row", row)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Found:
    """The findings of the first factor beside its result.

    accept, refuse: attributes of the answer in octets, for an Access-Accept and an Access-Reject. groups, ous: of the
    user, in lower case, for the login rules. challenge: attributes of an Access-Challenge with which the first factor
    continues: a round of its conversation, no decision. session_s: how long a session may last; None if not known.
    """

    accept: bytes = b""
    refuse: bytes = b""
    groups: frozenset[str] = frozenset()
    ous: frozenset[str] = frozenset()
    challenge: bytes | None = None
    session_s: int | None = None


NOTHING: Final = Found()
NAMELESS: Final = frozenset[str]()


class Exchange(Protocol):
    """Where a request came from and its answer goes to: one listener. number: names it in the store."""

    number: int

    def committed(self, entry: Answered, now: int) -> None:
        """The entry is on disk: its answer may leave. now: microseconds."""

    def abandoned(self, entry: Answered) -> None:
        """The entry could not be kept: it gets no answer."""

    def lost(self, entry: Answered) -> None:
        """Another node answers the login: the entry was not kept and gets no answer."""


@dataclass(slots=True, eq=False, repr=False)
class Answered:
    """A request on its way to its answer, which the journal writes before it leaves.

    source: the sender's socket address. at: when it came, in microseconds. known: its entry among the duplicates.
    user: the name without its realm. behind: the station, if the sender is proven. reply: the answer's octets.
    asked_us: how long its user was asked for a second factor. device: where it came from.
    """

    request: Request
    client: Client
    source: Source
    at: int
    exchange: Exchange
    known: Entry
    user: str = ""
    behind: Station | None = None
    reply: bytes = b""
    asked_us: int = 0
    device: Device = field(init=False)


@dataclass(slots=True, eq=False, repr=False)
class Login(Answered):
    """One login on its way from a request to an event. The steps of the pipeline fill it in.

    home: the domain of the client's devices. domain: the domain of the user; None if there is none. method: how the
    password came. factor: the first factor, and the second one, that checked. imported: what the domain's directories
    say of the user; None: not known yet. outside: `user` is, so far, the name that the client gives outside EAP, which
    it chooses freely. named_by: where the client certificate has the user's name; None: there was no certificate.
    found: what the first factor found. code: the text typed behind the password, or instead of it. proven: a right
    password or code showed who sends it. noted: the inventory knows of it. station: its Calling-Station-Id.
    attributes: of the answer, in octets. approved: its second factor was asked, and approved. continuation: the rest of
    a login that waits for something. keep: is written in one transaction with its event; it
    returns False, and writes nothing, if another node answers the login.
    """

    home: Domain | None = None
    domain: Domain | None = None
    method: str = Method.NONE
    factor: str = ""
    imported: Membership | None = None
    outside: bool = False
    named_by: NamedBy | None = None
    found: Found = NOTHING
    code: Code | None = None
    proven: bool = False
    noted: bool = False
    station: str = ""
    attributes: bytes = b""
    approved: bool = False
    continuation: Callable[[], Awaitable[Decision | None]] | None = None
    keep: Callable[[Tx], bool | None] | None = None
    latency_us: int = 0
    decision: Decision = field(init=False)

    def as_round(self) -> Answered:
        """Return this login as a round of a conversation, which is answered but not recorded as an event."""
        round_ = Answered(self.request, self.client, self.source, self.at, self.exchange, self.known)
        round_.device, round_.behind, round_.reply = self.device, self.behind, self.reply
        return round_

    @property
    def principal(self) -> str:
        """The one name of the user, of all that a directory finds the user by (`Membership.name`). Counters of one of
        these names count for all. An endpoint user has one name."""
        imported, domain = self.imported, self.domain
        if imported is None or not imported.name or domain is None or domain.first_factor is FirstFactor.LOCAL:
            return self.user
        return imported.name

    @property
    def names(self) -> frozenset[str]:
        """All names that a directory has of the user, without case; none for an endpoint user."""
        imported, domain = self.imported, self.domain
        if imported is None or domain is None or domain.first_factor is FirstFactor.LOCAL:
            return NAMELESS
        return imported.names

    @property
    def service_type(self) -> int | None:
        """Service-Type (RFC 2865 section 5.6); None where it is absent or malformed."""
        octets = self.request.first.get(SERVICE_TYPE)
        return int.from_bytes(octets) if octets and len(octets) == 4 else None


@dataclass(slots=True, eq=False, repr=False)
class AccountingRecord(Answered):
    """One Accounting-Request (RFC 2866) on its way to the store. domain_id: 0 for none. report: what it reports of a
    session."""

    domain_id: int = 0
    report: Report = field(init=False)

    def __post_init__(self) -> None:
        self.report = Report(self.request, self.at)
        self.user = self.report.user
