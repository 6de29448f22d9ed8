"""A login: the request as it arrived, its progress, the decision and the answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from sallyport.areas.domains.domain import FirstFactor
from sallyport.areas.mfa.circuit import Attached, Unavailable
from sallyport.areas.mfa.provider import Code
from sallyport.areas.policy.attempt import Arrival, Attempt
from sallyport.areas.policy.lockouts.failures import Failure
from sallyport.areas.sessions.report import OF_DEVICE, Report
from sallyport.radius.password import Method

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from cryptography import x509

    from sallyport.areas.devices.device import Device, Station
    from sallyport.areas.directory.principals import Membership
    from sallyport.areas.domains.domain import Domain
    from sallyport.areas.login.eap.login import Ending
    from sallyport.areas.login.limit import SessionLimit
    from sallyport.areas.policy.lockouts.service import Write
    from sallyport.areas.policy.roles.role import GivenRole
    from sallyport.areas.policy.rules.rule import Rule
    from sallyport.base.trace import Trace
    from sallyport.radius.duplicates import Entry
    from sallyport.radius.eap.certificate_names import NamedBy
    from sallyport.radius.packet import Request
    from sallyport.store.model import Tx


class Verdict(StrEnum):
    """The possible answers to a login."""

    ACCEPT = "accept"
    REJECT = "reject"
    CHALLENGE = "challenge"


class Reason(StrEnum):
    """The reasons for the results of logins, and of steps such as the first factor. NONE means success."""

    NONE = ""
    # first factor
    WRONG_PASSWORD = "wrong password"  # noqa: S105
    WRONG_PASSWORD_OR_SECRET = "wrong password or wrong shared secret"  # noqa: S105
    UNKNOWN_USER = "unknown user"
    UNKNOWN_REALM = "unknown realm"
    NO_USER_NAME = "no user name"
    NO_DOMAIN = "the RADIUS client has no domain"
    DOMAIN_REMOVED = "the domain was removed meanwhile"
    UNKNOWN_STATION = "unknown station"
    NO_CREDENTIALS = "no credentials that can be checked"
    FIRST_FACTOR_UNAVAILABLE = "the domain's first factor is not configured"
    FIRST_FACTOR_UNREADABLE = "configuration of the first factor unreadable"
    FIRST_FACTOR_CHANGED = "the first factor was changed meanwhile"
    FIRST_FACTOR_UNREACHABLE = "first factor unreachable"
    DIRECTORY_ENTRY_TOO_LARGE = "the user's directory entry or memberships exceed the limit"
    ACCOUNT_UNCLEAR = "several accounts have the name in the certificate"
    DIRECTORY_STALE = "the data of the user's directory are too old"
    CHANGES_PASSWORD = "passwords are not changed here"  # noqa: S105
    METHOD_UNFIT = "the domain's first factor cannot check this kind of login"
    UNCHECKED_UNSIGNED = "a request without a checked password is not signed"
    MAY_NOT_VOUCH = "the RADIUS client may not vouch for passwords"
    VOUCHES_UNSIGNED = "a vouching request is not signed"
    ACCOUNT_LOCKED = "account locked"
    ACCOUNT_DISABLED = "account disabled"
    ACCOUNT_EXPIRED = "account expired"
    PASSWORD_EXPIRED = "password expired"  # noqa: S105
    PASSWORD_MUST_CHANGE = "password must be changed"  # noqa: S105
    LOGON_RESTRICTED = "logon hours or stations restricted"
    LOCKED_OUT = "locked out after failures"
    STATION_LOCKED_OUT = "station locked out after failures"
    REFUSED_UPSTREAM = "refused by the upstream server"
    NO_SERVER_CERTIFICATE = "the client wants EAP in TLS, and there is no server certificate"
    METHOD_NOT_OFFERED = "the client wants an EAP method that is not offered"
    SERVER_UNTRUSTED = "the client does not trust the server certificate"
    CERTIFICATE_REFUSED = "client certificate refused"
    MAY_NOT_SPEAK = "authority may not speak for this user"
    CERTIFICATE_REVOKED = "client certificate revoked"
    REVOCATION_UNKNOWN = "it is unknown whether the client certificate is revoked"
    NO_STRONG_NAME = "the client certificate has no strong name"
    TLS_FAILED = "TLS with the client failed"
    EAP_BROKEN = "the client does not keep to EAP"
    PROXY_LOOP = "the upstream server sends the login back: a proxy loop"
    # the rules
    BLOCKED = "blocked by rule"
    TOO_MANY_SESSIONS = "too many sessions"
    # second factor
    ASKED = "second factor asked for"
    ENROLMENT_UNKNOWN = "enrolment not known yet"
    DENIED = "second factor denied"
    NOT_ME = "not me"
    WRONG_CODE = "wrong code"
    ASKED_AGAIN = "wrong code, asked again"
    NOT_ENROLLED = "not enrolled"
    NOT_STRONG_ENOUGH = "not strong enough"
    UNBOUND_LOGIN = "unbound login"
    NOT_CONFIRMED = "no identity provider has confirmed the user"
    CODE_NOT_RETURNED = "code not returned"
    TAKES_NO_CODE = "this kind of login cannot ask for a code"
    NOT_ANSWERED = "second factor not answered in time"
    GIVES_UP = "device gives up sooner than the provider answers"
    TOO_MANY_PROMPTS = "too many prompts"
    TOO_MANY_CODES = "the provider takes no more codes for now"
    CHALLENGE_OVER = "the challenge is unknown, over or another's"
    # The second factor cannot be asked, so fallbackAction decides.
    NO_PROVIDER = "no provider"
    UNREACHABLE = "provider unreachable"
    RATE_LIMITED = "the provider's rate limit is reached"
    CIRCUIT_OPEN = "provider unreachable, circuit open"
    UNREADABLE = "provider configuration unreadable"
    STOPPED = "the service was stopped before the second factor was answered"


PASSED: Final = Reason.NONE
"""The result of a step that the login has passed. Enumeration members that every login needs are also module constants,
because before Python 3.12 their look-up takes half a microsecond."""


_FAILURES: Final = {
    Reason.WRONG_PASSWORD: Failure.PASSWORD,
    Reason.WRONG_PASSWORD_OR_SECRET: Failure.PASSWORD,
    Reason.REFUSED_UPSTREAM: Failure.PASSWORD,
    Reason.UNKNOWN_USER: Failure.UNKNOWN_USER,
    Reason.WRONG_CODE: Failure.CODE,
    Reason.ASKED_AGAIN: Failure.CODE,
    Reason.LOCKED_OUT: Failure.NO_CODE_LEFT,
}


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """The decision on a login.

    decision: the verdict that enforce mode gives. applied: the verdict that is sent; it differs from `decision` only in
    monitor mode. would_have_been: in monitor mode the verdict of enforce mode, otherwise empty. outcome: the label
    value for metrics, or empty if the decision is not final. failure: the credential that was wrong, for lock-outs, or
    None. admits: whether Access-Accept is sent. row: decision, applied, would_have_been and reason as plain text, for
    the event.

    Decisions are compared by identity, because `decide` caches the few decisions that exist.
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


class Found(NamedTuple):  # as `Answer`
    """The data that the first factor has found about a login, in addition to its result.

    accept, refuse: the encoded attributes for an Access-Accept and for an Access-Reject. keys: further encoded
    attributes for an Access-Accept, which differ in each answer, and are neither recorded nor replaced by login rules:
    the last EAP message, the proof of MS-CHAPv2, and keys. keys_in_clear: whether `keys` has a key without encryption,
    so that the answer must not be stored. groups, ous: the user's groups and organizational units, case-folded, for
    login rules. challenge: the encoded attributes of an Access-Challenge if the first factor must
    exchange more messages with the client, otherwise None. session_s: the maximum duration of a session in seconds, or
    None to send no Session-Timeout. password_at: when the password was changed, as the directory writes it; empty if
    it is not visible.
    """

    accept: bytes = b""
    refuse: bytes = b""
    keys: bytes = b""
    keys_in_clear: bool = False
    groups: frozenset[str] = frozenset()
    ous: frozenset[str] = frozenset()
    challenge: bytes | None = None
    session_s: int | None = None
    password_at: str = ""

    def __repr__(self) -> str:  # without keys, for logs of errors
        return "Found(...)"


NOTHING: Final = Found()


@dataclass(frozen=True, slots=True)
class FirstFactorResult:
    """The result of the first factor.

    reason: NONE if the credentials are correct. code: the code that followed the password, or None. user: the user that
    another server names, without the realm; empty if it leaves the user of an EAP login unknown; None if the request
    names the user. detail: a hint about an unknown user, for admins.
    """

    reason: Reason
    found: Found = NOTHING
    code: Code | None = None
    user: str | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Waits:
    """The time for which a login waited for other systems and for the user, in microseconds.

    first_us: the time that another server took for the first factor, or 0 if no other server was asked. second_us: the
    time that the second factor took, or 0 if it was not asked for.
    """

    first_us: int = 0
    second_us: int = 0


NO_WAITS: Final = Waits()
"""The waits of a login that was decided without another system. Most logins have this value."""
NAMELESS: Final = frozenset[str]()
NO_PROVIDER: Final = Unavailable.NONE


class Exchange(Protocol):
    """The RADIUS traffic of one listener. It receives requests and sends the answers. number: a number that identifies
    the listener in the store."""

    number: int

    def committed(self, entry: Answered, now: int) -> None:
        """Send the answer of an entry that is on disk. now: the time in microseconds."""

    def abandoned(self, entry: Answered) -> None:
        """Forget an entry that could not be stored. No answer is sent."""

    def lost(self, entry: Answered) -> None:
        """Forget a login that another node answers. This node has neither stored nor answered it."""


@dataclass(slots=True, eq=False, repr=False)
class Answered:
    """A request and its answer. The journal stores it before the answer is sent.

    arrival: the request as it arrived. exchange: the listener that sends the answer. known: the entry of the request in
    the duplicate detection. user: the user's name without its realm. behind: the station that uses the device, or None
    if the sender has not proved its identity. reply: the encoded answer. asked_us: the time that the second factor
    took, in microseconds. is_long: whether the entry takes much longer to store than others. device: the network device
    that sent the request.
    """

    arrival: Arrival
    exchange: Exchange
    known: Entry
    user: str = ""
    behind: Station | None = None
    reply: bytes = b""
    asked_us: int = 0
    is_long: bool = False
    device: Device = field(init=False)


class Answer(NamedTuple):  # its objects are made in half the time of a frozen dataclass
    """The answer to a login, for the event. attributes: its encoded attributes, without `Found.keys`. latency_us: the
    time from the arrival to the answer, in microseconds."""

    decision: Decision
    attributes: bytes = b""
    latency_us: int = 0


class Network(NamedTuple):
    """Where the user's device is connected: the SSID, and the port of the NAS (NAS-Port-Id). Each may be empty."""

    ssid: str
    port: str


NO_NETWORK: Final = Network("", "")


@dataclass(slots=True, eq=False, repr=False)
class Login(Answered):
    """The progress of one login, from its frozen `arrival` to its frozen `answer`.

    The user:
    home: the domain of the devices behind the RADIUS client. domain: the domain of the user, or None. imported: the
    user's data from the domain's directories, or None before they are looked up. outside: whether `user` is only the
    outer identity of EAP. A client can choose it freely. realm: the realm as it was sent: that of the name inside EAP,
    or else of the User-Name. named_by: the field of the client certificate with the user's name, or None without a
    certificate. certificate: the client certificate, or None. authority: the name of the domain's authority that has
    signed it, or empty. revocation: the lists and responders that were asked about it, and their answers. station: the
    Calling-Station-Id. network: the SSID and the port. noted: whether the device of the login is in the inventory.
    counted: whether the inventory also counts the login, because it does not come from `sallyport check`. The first
    factor: method: the authentication method. resumed: the method of the full login, if an EAP session was resumed.
    factor: the factors that were checked. found: what the first factor has found. code: the code that followed the
    password or that answers a challenge, or None. proven: whether the sender has proved its identity by a correct
    password or code. The login rules and the second factor: further: the facts that rules have compared and no other
    column of the event has, as JSON; None if there are none. rule: the login rule that decided, or None if no rule
    matched or no rule was read. role: the role that this rule gives, or None. attributes: the encoded attributes of the
    answer, if it is an Access-Accept or a challenge, without `Found.keys`. provider: the MFA provider that is asked, or
    the reason why there is none; `Pipeline.refresh` sets it again after a wait. approved: whether the user has approved
    the second factor. detail: a text for admins: what the provider says about the outcome, and the effect of a limit of
    parallel sessions. limit: the limit of the rule that admits the login, or None. Over time: waits: the time for which
    the login waited; in EAP, over all its rounds. trace: the trace of a login that needs a task; requests that join the
    second factor of an earlier request have its id. continuation: a function that continues the login after a wait.
    ending: the end of an EAP conversation that the answer ends. cloud: the stamp of the account of a cloud directory
    that a client certificate names, or empty. keep: a function that writes to the store in the transaction of the
    login's event. `keep` returns False and writes nothing if another node answers the login. locks: functions that
    store new locks in this transaction. answer: the answer, once it is encoded.
    """

    home: Domain | None = None
    domain: Domain | None = None
    imported: Membership | None = None
    outside: bool = False
    realm: str = ""
    named_by: NamedBy | None = None
    certificate: x509.Certificate | None = None
    authority: str = ""
    revocation: str = ""
    station: str = ""
    network: Network = NO_NETWORK
    noted: bool = False
    counted: bool = False
    method: str = Method.NONE
    resumed: str = ""
    factor: str = ""
    found: Found = NOTHING
    code: Code | None = None
    proven: bool = False
    further: str | None = None
    rule: Rule | None = None
    role: GivenRole | None = None
    attributes: bytes = b""
    provider: Attached | Unavailable = NO_PROVIDER
    approved: bool = False
    detail: str = ""
    limit: SessionLimit | None = None
    waits: Waits = NO_WAITS
    trace: Trace | None = None
    continuation: Callable[[], Awaitable[Decision | None]] | None = None
    ending: Ending | None = None
    cloud: str = ""
    keep: Callable[[Tx], bool | None] | None = None
    locks: Sequence[Write] = ()
    answer: Answer = field(init=False)

    def take_first(self, result: FirstFactorResult) -> None:
        """Set what the first factor has found."""
        self.found, self.code = result.found, result.code
        if result.user is not None:
            self.user, self.outside = result.user, not result.user
        if result.detail:
            self.detail = result.detail

    def as_round(self) -> Answered:
        """Return a copy of this round for the journal. The journal stores and sends the answer of the round, but writes
        no event, because the login needs more rounds."""
        round_ = Answered(self.arrival, self.exchange, self.known)
        round_.device, round_.behind, round_.reply = self.device, self.behind, self.reply
        return round_

    @property
    def principal(self) -> str:
        """The name by which counters and the provider know the user. If a directory finds one user by several names,
        all of these names have the same principal, `Membership.name`."""
        imported, domain = self.imported, self.domain
        if imported is None or not imported.name or domain is None or domain.first_factor is FirstFactor.LOCAL:
            return self.user
        return imported.name

    @property
    def names(self) -> frozenset[str]:
        """All names of the user in the directory, case-folded. The set is empty if the user is an endpoint user."""
        imported, domain = self.imported, self.domain
        if imported is None or domain is None or (domain.first_factor is FirstFactor.LOCAL and not self.cloud):
            return NAMELESS
        return imported.names

    def attempt(self, domain: Domain) -> Attempt:
        """Return this login as the lock-outs see it."""
        return Attempt(self.arrival, domain, self.principal, self.method, self.outside, self.proven, self.approved)


@dataclass(slots=True, eq=False, repr=False)
class AccountingRecord(Answered):
    """An Accounting-Request (RFC 2866) and its answer. domain_id: the id of the record's domain, or 0 if the record has
    no domain. report: the session data in the request."""

    domain_id: int = 0
    report: Report = field(init=False)

    def __post_init__(self) -> None:
        self.report = Report(self.arrival.request, self.arrival.at)
        self.user = self.report.user
        self.is_long = self.report.status in OF_DEVICE  # it ends all sessions of the device

    @property
    def request(self) -> Request:
        """The request."""
        return self.arrival.request

    @property
    def at(self) -> int:
        """The time of arrival, in microseconds."""
        return self.arrival.at
