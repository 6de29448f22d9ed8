"""A login and its decision."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

from sallyport.domains.domain import FirstFactor
from sallyport.inventory.sessions.report import Report
from sallyport.policy.lockouts.failures import Failure
from sallyport.radius.attributes import SERVICE_TYPE
from sallyport.radius.method import Method

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sallyport.directory.principals import Membership
    from sallyport.domains.domain import Domain
    from sallyport.inventory.clients.client import Client
    from sallyport.inventory.devices.device import Device, Station
    from sallyport.mfa.model import Code
    from sallyport.radius.duplicates import Entry, Source
    from sallyport.radius.eap.certificate import NamedBy
    from sallyport.radius.packet import Request
    from sallyport.store.model import Tx


class Verdict(StrEnum):
    """How a login ends."""

    ACCEPT = "accept"
    REJECT = "reject"
    CHALLENGE = "challenge"


class Reason(StrEnum):
    """Why a login ended as it did; empty where there is nothing to say."""

    NONE = ""
    # the first door
    WRONG_PASSWORD = "wrong password"  # noqa: S105
    UNKNOWN_USER = "unknown user"
    UNKNOWN_REALM = "unknown realm"
    NO_USER_NAME = "no user name"
    NO_DOMAIN = "the RADIUS client has no domain"
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
    # the second door
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
    # the second door cannot be asked: fallbackAction decides
    NO_PROVIDER = "no provider"
    UNREACHABLE = "provider unreachable"
    RATE_LIMITED = "the provider's rate limit is reached"
    CIRCUIT_OPEN = "provider unreachable, circuit open"
    UNREADABLE = "provider configuration unreadable"
    STOPPED = "the service was stopped before the second factor was answered"


PASSED: Final = Reason.NONE
"""What a step of a login comes to that has nothing against it. For what every login looks at, members have a name of
their own: before Python 3.12 it takes half a microsecond to look one up in its enumeration."""


_FAILURES: Final = {
    Reason.WRONG_PASSWORD: Failure.PASSWORD,
    Reason.REFUSED_UPSTREAM: Failure.PASSWORD,
    Reason.UNKNOWN_USER: Failure.UNKNOWN_USER,
    Reason.WRONG_CODE: Failure.CODE,
}


class Decision:
    """What was decided on a login.

    decision: the verdict; applied: what is answered; would_have_been: the verdict in monitor mode, else empty.
    row: the four as plain text, as an event keeps them. outcome: its label among the metrics; empty: not final.
    failure: the credential that was wrong, for the lock-outs; None: none. admits: whether Access-Accept is answered.
    Decisions are few and made once, so each is its own key.
    """

    __slots__ = ("admits", "applied", "decision", "failure", "mode", "outcome", "reason", "row", "would_have_been")

    def __init__(
        self, decision: Verdict, applied: Verdict, would_have_been: str, reason: Reason, mode: str, outcome: str
    ) -> None:
        self.decision = decision
        self.applied = applied
        self.would_have_been = would_have_been
        self.reason = reason
        self.mode = mode
        self.outcome = outcome
        self.failure = _FAILURES.get(reason)
        self.admits = applied is Verdict.ACCEPT
        self.row = (decision.value, applied.value, would_have_been, reason.value)


class Found:
    """What the first factor found beside its verdict.

    accept, refuse: attributes of the answer in octets, for an Access-Accept and an Access-Reject. groups, ous: of
    the user, without case, for the login rules. session_s: how long a session may last, where that is known. challenge:
    attributes of an Access-Challenge with which the first factor goes on: a round of its conversation, no decision.
    """

    __slots__ = ("accept", "challenge", "groups", "ous", "refuse", "session_s")

    def __init__(
        self,
        *,
        accept: bytes = b"",
        refuse: bytes = b"",
        groups: frozenset[str] = frozenset(),
        ous: frozenset[str] = frozenset(),
        challenge: bytes | None = None,
        session_s: int | None = None,
    ) -> None:
        self.session_s = session_s
        self.accept = accept
        self.refuse = refuse
        self.groups = groups
        self.ous = ous
        self.challenge = challenge


NOTHING: Final = Found()
NAMELESS: Final = frozenset[str]()


class Exchange(Protocol):
    """Where a request came from and its answer goes to: one listener. number: names it in the store."""

    number: int

    def committed(self, entry: Answered, now: int) -> None:
        """The entry is on disk: its answer may leave. now: microseconds."""

    def abandoned(self, entry: Answered) -> None:
        """The entry could not be kept: it gets no answer."""


class Answered:
    """A request on its way to its answer: what the journal writes and then lets go.

    source: the sender's socket address. at: when it came, in microseconds. known: its entry among the duplicates.
    device: where it came from; behind: the station, where the sender is proven. reply: the answer's octets. asked_us:
    how long its user was asked for a second factor.
    """

    __slots__ = (
        "asked_us", "at", "behind", "client", "device", "exchange", "known", "reply", "request", "source", "user",
    )  # fmt: skip

    def __init__(
        self, request: Request, client: Client, source: Source, at: int, exchange: Exchange, known: Entry
    ) -> None:
        self.request = request
        self.client = client
        self.source = source
        self.at = at
        self.exchange = exchange
        self.known = known
        self.user = ""
        self.behind: Station | None = None
        self.device: Device
        self.reply = b""
        self.asked_us = 0


class Login(Answered):
    """One login on its way from a request to an event.

    domain: whose user logs in; None where none is to be found. home: the domain of the client's devices. user: the
    name without its realm. noted: the inventory knows of it. proven: a right password or code showed who sends it.
    approved: its second factor was asked, and approved.
    code: what was typed behind the password, or instead of it. attributes: of the answer, in octets. factor: who
    checked. found: what the first factor found. imported: what the domain's
    directories say of the user; None: not yet known. keep: what is written in one transaction with its event. go_on:
    what is left to do of it, where it was begun and has to wait for something. named_by: where the client certificate
    has the user's name; None: none was shown. outside: whether `user` is, as yet, what the client calls itself outside
    EAP, as many may and anybody can.
    """

    __slots__ = (
        "approved", "attributes", "code", "decision", "domain", "factor", "found", "go_on", "home", "imported", "keep",
        "latency_us", "method", "named_by", "noted", "outside", "proven", "station",
    )  # fmt: skip

    def __init__(
        self, request: Request, client: Client, source: Source, at: int, exchange: Exchange, known: Entry
    ) -> None:
        super().__init__(request, client, source, at, exchange, known)
        self.home: Domain | None = None
        self.domain: Domain | None = None
        self.method: str = Method.NONE
        self.station = ""
        self.noted = False
        self.proven = False
        self.approved = False
        self.code: Code | None = None
        self.attributes = b""
        self.factor = ""
        self.found = NOTHING
        self.imported: Membership | None = None
        self.keep: Callable[[Tx], None] | None = None
        self.go_on: Callable[[], Awaitable[Decision | None]] | None = None
        self.named_by: NamedBy | None = None
        self.outside = False
        self.decision: Decision
        self.latency_us = 0

    def as_round(self) -> Answered:
        """The same as a round of a conversation, which is answered and is no event."""
        round_ = Answered(self.request, self.client, self.source, self.at, self.exchange, self.known)
        round_.device, round_.behind, round_.reply = self.device, self.behind, self.reply
        return round_

    @property
    def principal(self) -> str:
        """The one name of whoever logs in, of all that they may be found by in a directory (`Membership.name`): what
        counts for one of these names counts for all. Users kept here are nobody but who they are called."""
        imported, domain = self.imported, self.domain
        if imported is None or not imported.name or domain is None or domain.first_factor is FirstFactor.LOCAL:
            return self.user
        return imported.name

    @property
    def names(self) -> frozenset[str]:
        """All names that a directory has of whoever logs in, without case; none of users kept here."""
        imported, domain = self.imported, self.domain
        if imported is None or domain is None or domain.first_factor is FirstFactor.LOCAL:
            return NAMELESS
        return imported.names

    @property
    def service_type(self) -> int | None:
        """Service-Type (RFC 2865 section 5.6); None where it is absent or malformed."""
        octets = self.request.first.get(SERVICE_TYPE)
        return int.from_bytes(octets) if octets and len(octets) == 4 else None


class AccountingRecord(Answered):
    """One Accounting-Request (RFC 2866) on its way to the store. user: as sent; domain_id 0: there is none.
    report: what it tells of a session."""

    __slots__ = ("domain_id", "report")

    def __init__(
        self, request: Request, client: Client, source: Source, at: int, exchange: Exchange, known: Entry
    ) -> None:
        super().__init__(request, client, source, at, exchange, known)
        self.domain_id = 0
        self.report = Report(request, at)
        self.user = self.report.user
