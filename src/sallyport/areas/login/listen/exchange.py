"""Process a datagram from its arrival to its answer: find the RADIUS client, verify the packet, detect duplicates,
decide, and answer when the decision is on disk.

Each socket has its own exchange, because identifiers are unique only within one socket (RFC 5080 section 2.2.2). The
code runs on the event loop, by plain function calls. Only a login that must wait gets a task. All exchanges share one
limit of pending requests.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

import structlog
import trio

from sallyport.areas.clients.client import LIMITED, SIGNED, Client, is_check
from sallyport.areas.devices.sightings import Sightings
from sallyport.areas.domains.service import Domains
from sallyport.areas.login.decision import NOT_CHECKED, ROUND, refusal
from sallyport.areas.login.eap.rounds import EapRounds
from sallyport.areas.login.identity import default_domain
from sallyport.areas.login.journal import Journal
from sallyport.areas.login.listen.causes import GARBLED, UNKNOWN, UNPROVEN
from sallyport.areas.login.listen.pending import Delayed, PendingLogins, PendingSlots, RoundBudget
from sallyport.areas.login.listen.senders import Senders
from sallyport.areas.login.listen.udp import Datagram
from sallyport.areas.login.login import AccountingRecord, Answer, Answered, Decision, Login, Verdict
from sallyport.areas.login.pipeline import Pipeline, show_unproven
from sallyport.areas.login.rows import KeptAnswer
from sallyport.areas.login.second.conversation import DUPLICATE, OTHER_NODE
from sallyport.areas.policy.attempt import Arrival
from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.base.errors import PacketError, StoreError
from sallyport.base.tags import value_for
from sallyport.metrics import Buckets, Cell, LoginMetrics, LoginPlace, RadiusMetrics
from sallyport.radius.attributes import EAP_MESSAGE, PROXY_STATE
from sallyport.radius.duplicates import Duplicates, Entry, Source
from sallyport.radius.packet import (
    ACCESS_ACCEPT,
    ACCESS_CHALLENGE,
    ACCESS_REJECT,
    ACCESS_REQUEST,
    ACCOUNTING_REQUEST,
    ACCOUNTING_RESPONSE,
    CODE_NAMES,
    STATUS_SERVER,
    Request,
    SharedSecret,
    decode,
    encode_reply,
)
from sallyport.radius.password import Method, hides_garbage

log = structlog.get_logger()

Send = Callable[[bytes, Source], None]


_REPLIES = {Verdict.ACCEPT: ACCESS_ACCEPT, Verdict.REJECT: ACCESS_REJECT, Verdict.CHALLENGE: ACCESS_CHALLENGE}
_SUCCESSES = (ACCESS_ACCEPT, ACCOUNTING_RESPONSE)


class RadiusService(Enum):
    """The kind of RADIUS service on a socket. The value is its label in metrics."""

    AUTHENTICATION = "auth"
    ACCOUNTING = "acct"


class Counts:
    """The counters of one exchange. requests, responses: the counters by packet code. label: the listener's label in
    metrics. If `label` is empty, the label of `kind` is used instead."""

    def __init__(self, kind: RadiusService, label: str, radius: RadiusMetrics, logins: LoginMetrics) -> None:
        self._label = label = label or kind.value
        is_auth = kind is RadiusService.AUTHENTICATION
        self._radius = radius
        self._logins = logins
        taken = (ACCESS_REQUEST if is_auth else ACCOUNTING_REQUEST), STATUS_SERVER
        sent = (ACCESS_ACCEPT, ACCESS_REJECT, ACCESS_CHALLENGE) if is_auth else (ACCOUNTING_RESPONSE,)
        self.requests = {code: radius.requests.cell(label, CODE_NAMES[code]) for code in taken}
        self.responses = {code: radius.responses.cell(label, CODE_NAMES[code]) for code in sent}
        self.rounds = radius.rounds.cell(label)
        radius.listen(label)
        self.duplicates = radius.discards.cell(label, "duplicate")
        self._answers: dict[int, tuple[str, Cell, Buckets]] = {}
        self._decisions: dict[tuple[int, Decision], Cell] = {}

    def discarded(self, reason: str, client: str) -> None:
        """Count a datagram that gets no answer. client: the name of the RADIUS client, or empty if unknown."""
        self._radius.discards.cell(self._label, reason).count += 1
        if client:
            self._radius.clients.cell(client, reason).count += 1

    def decided(self, domain_id: int, decision: Decision) -> None:
        """Count the final decision of a login."""
        cell = self._decisions.get((domain_id, decision))
        if cell is None:
            cell = self._logins.decisions.cell(str(domain_id), decision.mode, decision.outcome)
            self._decisions[domain_id, decision] = cell
        cell.count += 1
        if decision.reason in NOT_CHECKED:
            self._logins.first_failures.cell(str(domain_id), NOT_CHECKED[decision.reason]).count += 1

    def answered(self, client: str, code: int, seconds: float, login: LoginPlace | None) -> None:
        """Count the first answer to a request, and record its duration. login: the login, if it has an event."""
        of_answer = self._answers.get(code)
        if of_answer is None:
            name = CODE_NAMES[code]
            of_answer = self._answers[code] = name, self.responses[code], self._radius.seconds.of(name)
        name, of_type, durations = of_answer
        of_type.count += 1
        self._radius.clients.cell(client, name).count += 1  # not cached, because the names of clients can change
        durations.observe(seconds, login)


@dataclass(frozen=True, slots=True)
class Services:
    """The services that all exchanges share. ready: a function that returns whether the store accepts writes. copied: a
    function that takes a datagram of a shadow client, with its client, its source and its time of arrival."""

    find_client: Callable[[Source], Client | None]
    domains: Domains
    sightings: Sightings
    pipeline: Pipeline
    eap: EapRounds
    journal: Journal
    senders: Senders
    slots: PendingSlots
    radius_metrics: RadiusMetrics
    login_metrics: LoginMetrics
    learn: Callable[[Client, str], None]
    ready: Callable[[], bool]
    copied: Callable[[bytes, Client, Source, int], None]
    clock: Clock = now_us
    decode: Callable[[bytes, SharedSecret], Request] = decode


class Exchange:
    """The requests and answers of one socket.

    number: the number of the socket in stored answers. label: the label in metrics; if it is empty, the label of `kind`
    is used. delayed: the rejects that wait to be sent. pending: the logins that wait for their decision.
    """

    def __init__(
        self,
        services: Services,
        kind: RadiusService,
        number: int,
        send: Send,
        nursery: trio.Nursery,
        *,
        duplicate_window_s: float,
        reject_delay_s: Callable[[], float],
        label: str = "",
    ) -> None:
        self.number = number
        self._is_auth = kind is RadiusService.AUTHENTICATION
        self._services = services
        self._find_client, self._decode, self._domains = services.find_client, services.decode, services.domains
        self._sightings, self._pipeline, self._journal = services.sightings, services.pipeline, services.journal
        self._eap = services.eap
        self._signed_room = services.slots.proven
        self._unsigned_room = services.slots.unproven if self._is_auth else self._signed_room
        self._senders, self._clock = services.senders, services.clock
        self._send = send
        self._duplicates = Duplicates(duplicate_window_s)
        self.in_flight = 0
        self.delayed = Delayed(reject_delay_s, self._reply)
        self.pending = PendingLogins(
            nursery,
            services.pipeline,
            services.eap,
            self._duplicates,
            self._clock,
            self._conclude,
            self._fail,
        )
        self._round_budget = RoundBudget()
        self._just_decided: list[tuple[Login, Decision]] = []
        self._counts = Counts(kind, label, services.radius_metrics, services.login_metrics)
        self._metrics = services.login_metrics

    def restore(self, answers: list[KeptAnswer]) -> None:
        """Load the answers of an earlier process, so that retransmissions get them again."""
        now = time.monotonic()
        for kept in answers:
            if kept.listener == self.number:
                client = self._find_client(kept.source)
                owner = 0 if client is None else client.tenant_id
                entry, _ = self._duplicates.note(
                    kept.source, kept.identifier, kept.authenticator, signed=kept.signed, now=now, owner=owner
                )
                entry.answer = kept.reply

    # --- in ---------------------------------------------------------------------------------------------------

    def refuse(self, datagram: bytes, source: Source, at: int) -> None:
        """Count a datagram that is dropped without being read. It is dropped because its tenant has used up its share
        of the queue."""
        self._discard("overload", source, at, self._find_client(source), datagram)

    def receive(self, datagrams: Iterable[Datagram]) -> None:
        """Process the datagrams that were read when the socket became readable. Never raises.

        The method first parses all datagrams, then decides all, then answers all. The code and data of one of these
        three steps fit into the processor's caches, but the code and data of all three steps do not. This order saves a
        tenth of a login's time.
        """
        opened = [each for datagram in datagrams if (each := self._open(*datagram)) is not None]
        for arrival in opened:
            try:
                self._admit(arrival)
            except Exception as error:
                self._refuse(error, arrival.client, arrival.source, arrival.at, arrival.request.data)
        decided, self._just_decided = self._just_decided, []
        for login, decision in decided:
            try:
                self._answer(login, decision)
            except Exception as error:
                self._counts.requests[ACCESS_REQUEST].count -= 1  # it is counted as a discard instead
                self._fail(login, error)

    def _open(self, datagram: bytes, source: Source, at: int, now: float) -> Arrival | None:
        client = self._find_client(source)
        if client is None:
            self._discard(UNKNOWN, source, at, datagram=datagram)
            return None
        if client.shadow:  # a copy of the traffic of another server is no login
            self._services.copied(datagram, client, source, at)
            return None
        try:
            return Arrival(self._decode(datagram, client.secret), client, source, at, now)
        except Exception as error:
            self._refuse(error, client, source, at, datagram)
            return None

    def _refuse(self, error: Exception, client: Client, source: Source, at: int, datagram: bytes) -> None:
        reason = error.reason if isinstance(error, PacketError) else "internal_error"
        self._discard(reason, source, at, client, datagram)
        if isinstance(error, StoreError):  # the store has already logged the cause
            log.error("radius_request_failed", client=client.name, error=str(error))
        elif not isinstance(error, PacketError):
            log.error("radius_request_failed", client=client.name, exc_info=error)

    def _discard(
        self, reason: str, source: Source, at: int, client: Client | None = None, datagram: bytes = b""
    ) -> None:
        self._counts.discarded(reason, "" if client is None else client.name)
        if reason in (OTHER_NODE, DUPLICATE):  # no sender is listed, because its device gets the answer
            return
        self._senders.refused(source[0], reason, at, client, datagram)

    def _admit(self, arrival: Arrival) -> None:
        request, client, source, _, now = arrival
        code = request.code
        if code == STATUS_SERVER:
            return self._answer_status(request, client, source)
        if (code == ACCESS_REQUEST) is not self._is_auth:
            raise PacketError("the packet is for the other port", "unknown_type")
        if self._is_auth and not request.signed:
            if client.signature_required:
                raise PacketError("the request has no Message-Authenticator", "unsigned")
            if client.proxy_state_limited and PROXY_STATE in request.first:
                raise PacketError("the request has a Proxy-State but no Message-Authenticator", "proxy_state")
        signed = request.signed or not self._is_auth  # an Accounting-Request is signed by its authenticator
        known, is_new = self._duplicates.note(
            source, request.identifier, request.authenticator, signed=signed, now=now, owner=client.tenant_id
        )
        if is_new:
            return self._start(arrival, known)
        self._counts.duplicates.count += 1
        if known.answer is not None:
            self._transmit(known.answer, source)
        return None

    def _start(self, arrival: Arrival, known: Entry) -> None:
        request, client = arrival.request, arrival.client
        if not (self._signed_room if request.signed else self._unsigned_room).take(client.id, client.tenant_id):
            self._duplicates.forget(known)
            raise PacketError("too many requests are waiting", "overload")
        self._counts.requests[request.code].count += 1
        self.in_flight += 1
        try:
            if self._is_auth:
                self._authenticate(Login(arrival, self, known))
            else:
                self._account(AccountingRecord(arrival, self, known))
        except BaseException:
            self._counts.requests[request.code].count -= 1  # it is counted as a discard instead
            self._done(request, client)
            self._duplicates.forget(known)
            raise

    def _answer_status(self, request: Request, client: Client, source: Source) -> None:
        """Answer Status-Server (RFC 5997). No event is written, and duplicates are not detected.

        While the store fails, logins get no answer. Status-Server gets no answer either during this time, so that a
        proxy changes to another server.
        """
        if not self._services.ready():
            raise PacketError("the store does not take writes", "internal_error")
        self._counts.requests[STATUS_SERVER].count += 1
        code = ACCESS_ACCEPT if self._is_auth else ACCOUNTING_RESPONSE
        self._transmit(encode_reply(code, request, client.secret), source)
        self._senders.answered(source[0], STATUS_SERVER)

    # --- logins -----------------------------------------------------------------------------------------------

    def _authenticate(self, login: Login) -> None:
        decision, client = self._pipeline.begin(login), login.arrival.client
        if decision is None and login.method == Method.EAP and self._round_budget.has_time(login.known.first):
            decision = self._eap.converse(login)
        if decision is ROUND:
            return self._go_on(login)
        if decision is not None:
            if client.learns_signature or client.learns_limit:
                self._learn_from(login)
            return self._just_decided.append((login, decision))
        return self.pending.decide(login)

    def _conclude(self, login: Login, decision: Decision | None) -> None:
        """Answer a login that has waited. decision: None if a newer request gets the answer. Duplicates of this request
        are then dropped."""
        if decision is None:
            return self._done(login.arrival.request, login.arrival.client)
        decision = self._pipeline.after_wait(login, decision)
        if decision is ROUND:
            return self._go_on(login)
        self._learn_from(login)
        self._answer(login, decision)
        return self._journal.flush_soon()

    def _fail(self, login: Login, error: Exception) -> None:
        self._drop(login)
        self._refuse(error, login.arrival.client, login.arrival.source, login.arrival.at, login.arrival.request.data)

    def _go_on(self, login: Login) -> None:
        """Answer one round of the messages that the first factor and the client exchange.

        A round decides nothing, so the answer is usually sent without storing anything. The journal stores the round
        before the answer in two cases: if the device or station is new, or if this is the last round.
        """
        request, client = login.arrival.request, login.arrival.client
        code, attributes = _round(login)
        login.reply = encode_reply(code, request, client.secret, attributes)
        self._counts.rounds.count += 1
        if request.signed:
            if client.learns_signature or client.learns_limit:
                self._learn(request, client)
            self._pipeline.note(login)
            behind = login.behind
            is_new = login.device.id is None or (behind is not None and not behind.stored)
            if is_new or code != ACCESS_CHALLENGE:
                self._journal.add(login.as_round())
                return self._journal.flush_soon()
        return self.committed(login, self._clock())

    def _learn_from(self, login: Login) -> None:
        """If the request of a decided login is authentic, learn from it whether the client signs its requests. Later
        requests of the client are checked against what the service has learned."""
        request, client = login.arrival.request, login.arrival.client
        # A correct PAP password proves that the sender has the shared secret, because it was encrypted with it. CHAP
        # does not use the secret.
        if request.signed or (login.proven and login.method == Method.PAP):
            self._learn(request, client)

    def _answer(self, login: Login, decision: Decision) -> None:
        """Encode the answer, and add the login to the journal. Raises PacketError if the answer is too long."""
        code, attributes, found = _REPLIES[decision.applied], login.attributes, login.found
        if code == ACCESS_REJECT:
            attributes = refusal(login, decision.reason)
            # An EAP method may send the reason for a failure in one more request before it ends.
            if found.challenge is not None:
                code, attributes = ACCESS_CHALLENGE, found.challenge
        with_keys = attributes + found.keys if code == ACCESS_ACCEPT else attributes
        request, client, _, _, came = login.arrival
        login.reply = encode_reply(code, request, client.secret, with_keys)
        if not login.noted:
            self._note(login)
        # the clock of the day may have been set since the arrival
        login.answer = Answer(decision, attributes, round((time.monotonic() - came) * SECOND))
        if login.rule is not None and login.rule.definition.max_sessions and decision.admits:
            self._pipeline.limits.bind(login)  # the transaction may still change the decision
        if decision.outcome:
            if login.counted:
                self._sightings.use(login.device, login.behind, login.network, client, login.method)
            if login.limit is None:
                self._counts.decided(0 if login.domain is None else login.domain.id, decision)
                if self._metrics.tag_key:
                    self._count_tag(login, decision)
        self._journal.add(login)

    def _count_tag(self, login: Login, decision: Decision) -> None:
        """Count the final decision of a login by the tag of its device. An unproven sender names no device."""
        if login.counted:
            value = value_for(login.device.tags, self._metrics.tag_key) or "none"
            self._metrics.tagged.cell(value, decision.outcome).count += 1

    def _note(self, login: Login) -> None:
        """Count a login in the inventory. If the sender of the login is not proven, do not count the login, but add the
        sender to the table of senders."""
        request = login.arrival.request
        if request.signed or login.proven:
            self._pipeline.note(login)
        if not login.noted:
            show_unproven(login)
            if not request.signed:
                _, client, source, at, _ = login.arrival
                reason = GARBLED if hides_garbage(request, client.secret) else UNPROVEN
                self._senders.refused(source[0], reason, at, client, request.data)

    def _learn(self, request: Request, client: Client) -> None:
        """Learn from an authentic request whether its RADIUS client signs its requests. The service learns only about
        clients with a single address.

        A request of `sallyport check` is ignored, because it does not come from the device. The device itself may never
        have signed a request.
        """
        if is_check(request):
            return
        if client.learns_signature and request.signed and EAP_MESSAGE not in request.first:
            self._services.learn(client, SIGNED)
        if client.learns_limit and (request.signed or PROXY_STATE not in request.first):
            self._services.learn(client, LIMITED)

    def _account(self, record: AccountingRecord) -> None:
        request, client, source, at, _ = record.arrival
        home = default_domain(client, self._domains.table)
        if home is None:
            raise PacketError("the client has no domain", "no_domain")
        record.domain_id = home.id
        record.device = self._sightings.device(request, source[0], client, home.id, at)
        station = record.report.station
        if station and not self._pipeline.bypass.is_unknown(home, record.user, station, at):  # it may be invented
            record.behind = self._sightings.station(record.device, station, record.user, at)
        record.reply = encode_reply(ACCOUNTING_RESPONSE, request, client.secret)
        self._journal.add(record)

    # --- out --------------------------------------------------------------------------------------------------

    def committed(self, entry: Answered, now: int) -> None:
        """Answer an entry that is on disk. A reject is sent after its delay. now: the time in microseconds."""
        if isinstance(entry, Login):
            if entry.ending is not None:
                entry.ending.end(entry)
            if entry.limit is not None and entry.domain is not None:
                self._counts.decided(entry.domain.id, entry.answer.decision)
                if self._metrics.tag_key:
                    self._count_tag(entry, entry.answer.decision)
        if entry.reply[0] == ACCESS_REJECT:
            self.delayed.hold(entry, now)
        else:
            self._reply(entry, now)

    def abandoned(self, entry: Answered) -> None:
        """Drop a request because the store has failed. It gets no answer, and a retransmission is decided again."""
        if isinstance(entry, Login):
            self._pipeline.abandoned(entry)
        self._drop(entry)
        request, client, source, at, _ = entry.arrival
        self._discard("internal_error", source, at, client, request.data)

    def lost(self, entry: Answered) -> None:
        """Drop a request because another node answers its login. If the device retransmits the request while the prompt
        is pending, the retransmission joins the login again."""
        if isinstance(entry, Login):
            self._pipeline.left(entry)
        self._drop(entry)
        self._counts.discarded(OTHER_NODE, entry.arrival.client.name)

    def _drop(self, entry: Answered) -> None:
        self._done(entry.arrival.request, entry.arrival.client)
        self._duplicates.forget(entry.known)

    def _done(self, request: Request, client: Client) -> None:
        self.in_flight -= 1
        (self._signed_room if request.signed else self._unsigned_room).leave(client.id, client.tenant_id)

    def _reply(self, entry: Answered, now: int) -> None:
        """Send a reply. now: the time at which the reply was ready, in microseconds. The measured duration includes
        neither the time of the second factor nor the delay of a reject."""
        reply, known, client = entry.reply, entry.known, entry.arrival.client
        if self._senders.lists_senders and reply[0] in _SUCCESSES:
            self._senders.answered(entry.arrival.source[0], entry.arrival.request.code)
        self._done(entry.arrival.request, client)
        if known.replaced:
            return
        known.answer = reply
        self._send(reply, entry.arrival.source)
        login = None
        if isinstance(entry, Login) and entry.domain is not None:
            login = LoginPlace(entry.domain.id, entry.arrival.at)
        seconds = max(0, now - entry.arrival.at - entry.asked_us) / SECOND
        self._counts.answered(client.name, reply[0], seconds, login)

    def _transmit(self, reply: bytes, source: Source) -> None:
        self._counts.responses[reply[0]].count += 1
        self._send(reply, source)


def _round(login: Login) -> tuple[int, bytes]:
    """Return the code and the encoded attributes of an answer that decides nothing: a challenge, or the answer that the
    login has already got."""
    found = login.found
    if found.challenge is not None:
        return ACCESS_CHALLENGE, found.challenge
    return (ACCESS_ACCEPT, login.attributes + found.keys) if found.keys else (ACCESS_REJECT, found.refuse)
