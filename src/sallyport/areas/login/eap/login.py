"""The state of logins by EAP: their conversations, the ends of conversations, and the method of each station.

A NAS that gets no answer sends the last response of a conversation again. Such a copy may have a new identifier, or
come from another port. Until the login is answered, its copies are dropped, or join the prompt of the second factor.
After that, a copy gets the same answer for the duplicate window. It causes no event, and does not extend the window. A
copy with another station, NAS or outer identity is refused, because the login was not decided for it (`Ending`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import structlog
from cryptography import x509

from sallyport.areas.authorities.revocation.state import RevocationState
from sallyport.areas.login.eap.holders import Holder
from sallyport.areas.login.eap.revocation import NOT_CHECKED
from sallyport.areas.login.eap.verifiers import Verifier
from sallyport.areas.login.login import NO_WAITS, NOTHING, Answered, Decision, Found, Login, Reason, Waits
from sallyport.areas.login.second.conversation import NO_PROOF, Proof
from sallyport.areas.login.second.session import Session, device_key
from sallyport.areas.mfa.provider import Code
from sallyport.areas.policy.rules.rule import Rule
from sallyport.base.bounded import BoundedMap, ExpiringMap
from sallyport.base.errors import PacketError
from sallyport.base.mac import station_form
from sallyport.base.trace import Trace
from sallyport.radius.attributes import CALLING_STATION_ID, USER_NAME
from sallyport.radius.eap.certificate_names import NamedBy
from sallyport.radius.eap.conversation import MAX_CONVERSATIONS, Conversation
from sallyport.radius.eap.methods import ORDER
from sallyport.radius.eap.model import Check, Done
from sallyport.radius.eap.packet import TLS, TTLS
from sallyport.radius.packet import ACCESS_ACCEPT, as_text

Sender = tuple[object, ...]


@dataclass(slots=True, eq=False, repr=False)
class Ending:
    """The end of one conversation.

    response: the client's last EAP packet. sender: see `sender_of`. done: the result of the EAP method. on_answer: a
    function that is called once, when the login is answered, with the answered request. request: the newest request
    with the response, or None if no request is being decided. asks: whether the login waits for its second factor.
    user: the user's name without its realm. sent: the encoded attributes of the Access-Accept, without `Found.keys`.
    """

    response: bytes
    sender: Sender
    done: Done
    on_answer: Callable[[Answered], None] | None
    request: Login | None = None
    asks: bool = False
    user: str = ""
    sent: bytes = b""

    def decide(self, login: Login) -> None:
        """Begin to decide a request with the last response. Raises PacketError if another request with this response is
        being decided, or has been decided and is being stored."""
        before = self.request
        if before is not None and (before.reply or not self.asks):
            raise PacketError("the server is still deciding the login of this EAP response", "duplicate")
        self.request, self.user, self.asks = login, login.user, False
        login.ending = self

    def end(self, answered: Answered) -> None:
        """End the conversation with its answer. This removes all reference cycles, because the garbage collector runs
        seldom."""
        end, self.on_answer, self.request = self.on_answer, None, None
        if end is not None:
            end(answered)

    def reopen(self) -> None:
        """Let the next copy of the response be decided, because the last one has got no answer."""
        self.request = None


def sender_of(login: Login) -> Sender:
    """Return the values of a request that its copies must have too: the RADIUS client, the NAS, the station, and the
    outer identity."""
    first = login.arrival.request.first
    station = first.get(CALLING_STATION_ID)
    name = first.get(USER_NAME)
    return login.arrival.client.id, *device_key(login), name, None if station is None else station_form(station)


class AcceptedEndings:
    """The conversations that have lately ended with Access-Accept, by State. window_s: for how many seconds copies of
    the last response get the same answer."""

    def __init__(self, window_s: float) -> None:
        self._endings = ExpiringMap[bytes, Ending](MAX_CONVERSATIONS, window_s)

    def add(self, state: bytes, ending: Ending, answered: Answered, *, now: float) -> None:
        """Store a conversation after its answer. An answer other than Access-Accept is not repeated."""
        if answered.reply[0] == ACCESS_ACCEPT and isinstance(answered, Login):
            ending.sent = answered.answer.attributes
            self._endings.put(state, ending, answered.arrival.client.tenant_id, answered.arrival.client.id, now=now)

    def find(self, login: Login, state: bytes, response: bytes, *, now: float) -> Ending | None:
        """Return the conversation whose last response a request repeats, or None. response: the EAP packet of the
        request. Raises PacketError if the conversation has ended with another response."""
        ending = self._endings.get(state, now=now)
        if ending is None:
            return None
        if ending.response != response:
            raise PacketError("the client has sent another EAP response after the end of the conversation")
        return ending if ending.sender == sender_of(login) else None


LOG_INTERVAL_S: Final = 1.0
"""The minimum time between two log entries, in seconds. Without it, thousands of abandoned conversations would flood
the log."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class InnerSecondFactor:
    """The result of asking for the second factor inside an EAP conversation.

    reason: the result, or None if the login needs no second factor. refusal: the decision if the login is refused.
    session: the challenge in which the user must enter a code, or None. prompt: the text that asks the user for the
    code. proof: the second factor that the user has proved.
    """

    reason: Reason | None = None
    refusal: Decision | None = None
    session: Session | None = None
    prompt: str = ""
    proof: Proof = NO_PROOF

    @property
    def is_asked(self) -> bool:
        """Whether the login needed a second factor, so that the provider or the user was asked."""
        return self.reason is not None or self.session is not None


@dataclass(frozen=True, slots=True)
class EapResult:
    """The result of a login by EAP.

    first: the result of the first factor. second, proof: the result of the second factor if the user was asked inside
    EAP, and what the user has proved; else `second` is None. refusal: the decision if the second factor has refused the
    login. rule: the login rule that has led to the refusal, or None. by_address: whether the station was admitted by
    its MAC address. stamp: the value of `verifiers.Finding.stamp`. ending: the same as `EapLogin.ending`. authority:
    the stamp of the domain's authority that has signed the client's certificate; empty if there is none. detail: a text
    for the event.
    """

    first: Reason
    second: Reason | None = None
    proof: Proof = NO_PROOF
    refusal: Decision | None = None
    rule: Rule | None = None
    by_address: bool = False
    stamp: str = ""
    ending: Ending | None = None
    authority: str = ""
    detail: str = ""


@dataclass(slots=True, eq=False, repr=False)
class EapLogin:
    """An EAP conversation and the state of its login.

    scope: an identifier of the domain and its first factor. client: the name of the RADIUS client. user: the inner name
    without its realm, or empty if it is unknown so far. inner_realm: the realm of this name. named_by: the field of the
    certificate that contains the name. certificate: the client's certificate, or None. holder: the holder of a
    certificate of one of the domain's own authorities, or None. revocation: the state of its certificate. chain: the
    verified chain of its certificate. found, code, stamp: the fields of the same names in the `verifiers.Finding` of
    the first factor. session: the challenge that the user must answer next. second, proof: the result of the second
    factor, and what the user has proved. rule: the login rule that asked for the second factor, or None. waits: the
    time for which the login has waited. trace: the trace in which the second factor was asked, or None. refused: the
    result if the login is refused. decided: whether `refused` was given to the caller. The rounds after the refusal,
    until EAP-Failure, are not recorded. ending: the end of the conversation, or None before it. It is also None if the
    second factor was asked for inside EAP.
    """

    conversation: Conversation
    scope: str
    verifier: Verifier
    client: str
    user: str = ""
    inner_realm: str = ""
    named_by: NamedBy | None = None
    certificate: x509.Certificate | None = None
    holder: Holder | None = None
    revocation: RevocationState = NOT_CHECKED
    chain: Sequence[x509.Certificate] = ()
    found: Found = NOTHING
    code: Code | None = None
    stamp: str = ""
    session: Session | None = None
    second: Reason | None = None
    proof: Proof = NO_PROOF
    rule: Rule | None = None
    waits: Waits = NO_WAITS
    trace: Trace | None = None
    refused: EapResult | None = None
    decided: bool = False
    ending: Ending | None = None


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question about credentials whose answer must be looked up in the store or a directory. state: the value of the
    State attribute that identifies the conversation."""

    eap: EapLogin
    state: bytes
    check: Check


class Unfinished:
    """The log of the conversations that clients abandon, limited to one entry per interval. now: a function that
    returns the seconds of a monotonic clock."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._logged_at = -math.inf
        self._suppressed = 0

    def note(self, eap: EapLogin) -> None:
        """Log a conversation whose client has stopped answering. Refused logins are left out."""
        conversation = eap.conversation
        if not conversation.waits_for_client or eap.refused is not None:
            return
        if self._now() < self._logged_at + LOG_INTERVAL_S:
            self._suppressed += 1
            return
        log.info(
            "eap_client_stopped_answering",
            client=eap.client,
            user=eap.user or as_text(conversation.identity),
            method=f"eap-{conversation.method}".rstrip("-"),
            others=self._suppressed,
        )
        self._logged_at, self._suppressed = self._now(), 0


MAX_STATIONS: Final = 20_000
_ORDERS: Final[Mapping[int, tuple[int, ...]]] = {
    kind: (kind, *[each for each in ORDER if each != kind]) for kind in (TTLS, TLS)
}


class PreferredMethods:
    """The EAP method of each station's last login, for stations that do not use the first method in `ORDER`.

    The service offers a station the method of its last login first. A station that is offered another method must ask
    for its own method (RFC 3748 section 5.3.1), and this takes one more round. A login with a resumed TLS session takes
    four rounds without the right offer, and three with it.

    Only methods that use TLS are remembered. If weaker methods were remembered too, an attacker with an account could
    log in by a weaker method, and pretend to have the victim's station address. The service would then offer the weaker
    method to the victim's station first, and the station would send the victim's password by the weaker method.

    most: the maximum number of stations. At the maximum, a new station replaces another station: of the tenant with the
    most stations, the station whose last login is the oldest.
    """

    def __init__(self, most: int = MAX_STATIONS) -> None:
        self._kinds = BoundedMap[tuple[str, bytes], int](most)

    def __len__(self) -> int:
        return len(self._kinds)

    def order(self, scope: str, station: bytes) -> tuple[int, ...]:
        """Return the EAP Types to offer to a station, best first. scope: the scope of the user names. station: the
        Calling-Station-Id, or empty if the request has none."""
        kind = self._kinds.get((scope, station))
        return ORDER if kind is None else _ORDERS[kind]

    def note(self, scope: str, station: bytes, kind: int, tenant_id: int) -> None:
        """Store the method of a station's successful login. kind: the EAP Type of the method."""
        key = scope, station
        if station and kind in _ORDERS:
            self._kinds.put(key, kind, tenant_id)
        else:
            self._kinds.pop(key)
