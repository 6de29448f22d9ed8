"""From a datagram to its answer: find the client, open the packet, drop duplicates, decide, and answer once it is
on disk. One exchange for each socket, since identifiers are counted by socket (RFC 5080 section 2.2.2).

Everything here runs on the event loop by plain calls; only a login whose user is not in memory becomes a task, under
a limit that all exchanges share.
"""

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import structlog
import trio

from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.base.errors import PacketError
from sallyport.domains.service import Domains
from sallyport.inventory.clients.model import LIMITED, SIGNED, Client
from sallyport.inventory.clients.service import Clients
from sallyport.inventory.devices.sightings import Sightings, new_device
from sallyport.listen.senders import Senders
from sallyport.login.journal import Journal, KeptAnswer
from sallyport.login.model import AccountingRecord, Answered, Decision, Login, Method, Verdict
from sallyport.login.pipeline import Pipeline, default_domain
from sallyport.metrics import Cell, LoginMetrics, RadiusMetrics
from sallyport.radius.attributes import CALLING_STATION_ID, EAP_MESSAGE, PROXY_STATE, USER_NAME
from sallyport.radius.duplicates import Duplicates, Entry
from sallyport.radius.packet import (
    ACCESS_ACCEPT,
    ACCESS_REJECT,
    ACCESS_REQUEST,
    ACCOUNTING_RESPONSE,
    CODE_NAMES,
    STATUS_SERVER,
    Request,
    as_text,
    decode,
    encode_reply,
)

log = structlog.get_logger()

Source = tuple[str, int]
Send = Callable[[bytes, Source], None]


class Kind(Enum):
    """What a socket serves: the value is its label in metrics."""

    AUTHENTICATION = "auth"
    ACCOUNTING = "acct"


_REPLIES = {Verdict.ACCEPT: ACCESS_ACCEPT, Verdict.REJECT: ACCESS_REJECT}


class Waiting:
    """How many requests of all exchanges wait: for I/O, for the store, for the delay of a reject; and how many may.

    Unsigned ones, which anybody can send, have a quarter of the room, so that a flood of them leaves the rest.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.unproven_limit = max(1, limit // 4)
        self.now = 0


@dataclass(frozen=True, slots=True)
class Services:
    """What every exchange works with."""

    clients: Clients
    domains: Domains
    sightings: Sightings
    pipeline: Pipeline
    journal: Journal
    senders: Senders
    waiting: Waiting
    radius_metrics: RadiusMetrics
    login_metrics: LoginMetrics
    learn: Callable[[Client, str], None]
    clock: Clock = now_us


class Exchange:
    """One socket's requests and answers. number: names the socket in the store's kept answers."""

    def __init__(
        self,
        services: Services,
        kind: Kind,
        number: int,
        send: Send,
        nursery: trio.Nursery,
        *,
        duplicate_window_s: float,
        reject_delay_s: float,
    ) -> None:
        self.number = number
        self._label = kind.value
        self._is_auth = kind is Kind.AUTHENTICATION
        self._services = services
        self._clients, self._domains = services.clients, services.domains
        self._sightings, self._pipeline, self._journal = services.sightings, services.pipeline, services.journal
        self._clock = services.clock
        self._send = send
        self._nursery = nursery
        self._reject_delay_s = reject_delay_s
        self._duplicates = Duplicates(duplicate_window_s)
        self.in_flight = 0
        self._delayed: deque[tuple[float, Answered]] = deque()
        self._some_delayed = trio.Event()
        metrics = services.radius_metrics
        self._seconds = metrics.seconds
        self._request_cells = {code: metrics.requests.cell(self._label, name) for code, name in CODE_NAMES.items()}
        self._response_cells = {code: metrics.responses.cell(self._label, name) for code, name in CODE_NAMES.items()}
        self._duplicate_cell = metrics.discards.cell(self._label, "duplicate")
        self._client_cells: dict[tuple[str, int], Cell] = {}
        self._decision_cells: dict[tuple[int, Decision], Cell] = {}

    @property
    def delayed(self) -> int:
        """How many rejects are held back."""
        return len(self._delayed)

    def restore(self, answers: list[KeptAnswer]) -> None:
        """Know the answers that were on their way before a restart."""
        now = time.monotonic()
        for kept in answers:
            if kept.listener == self.number:
                entry, _ = self._duplicates.note(kept.source, kept.identifier, kept.authenticator, now=now)
                entry.answer = kept.reply

    # --- in ---------------------------------------------------------------------------------------------------

    def receive(self, datagram: bytes, source: Source, at: int, now: float) -> None:
        """Take one datagram. at: microseconds of the wall clock; now: seconds of the monotonic one. Never raises."""
        client = self._clients.table.find(source[0])
        if client is None:
            return self._discard("unknown_client", source, at)
        try:
            request = decode(datagram, client.secret)
            self._admit(request, client, source, at, now)
        except PacketError as error:
            self._discard(error.reason, source, at)
        except Exception:
            self._discard("internal_error", source, at)
            log.exception("a datagram was dropped by an error of ours", client=client.name)
        return None

    def _discard(self, reason: str, source: Source, at: int) -> None:
        self._services.radius_metrics.discards.cell(self._label, reason).count += 1
        self._services.senders.note(source[0], reason, at)

    def _admit(self, request: Request, client: Client, source: Source, at: int, now: float) -> None:
        code = request.code
        if code == STATUS_SERVER:
            return self._answer_status(request, client, source)
        if (code == ACCESS_REQUEST) is not self._is_auth:
            raise PacketError("a packet for the other port", "unknown_type")
        if self._is_auth and not request.signed:
            if client.signature_required:
                raise PacketError("without Message-Authenticator", "unsigned")
            if client.proxy_state_limited and PROXY_STATE in request.first:
                raise PacketError("Proxy-State without Message-Authenticator", "proxy_state")
        known, is_new = self._duplicates.note(source, request.identifier, request.authenticator, now=now)
        if is_new:
            return self._start(request, client, source, at, known)
        self._duplicate_cell.count += 1
        if known.answer is not None:
            self._transmit(known.answer, source)
        return None

    def _start(self, request: Request, client: Client, source: Source, at: int, known: Entry) -> None:
        waiting = self._services.waiting
        if waiting.now >= (waiting.limit if request.signed or not self._is_auth else waiting.unproven_limit):
            self._duplicates.forget(known)
            raise PacketError("too many requests wait", "overload")
        self._request_cells[request.code].count += 1
        self.in_flight += 1
        waiting.now += 1
        try:
            if self._is_auth:
                self._authenticate(Login(request, client, source, at, self, known))
            else:
                self._account(AccountingRecord(request, client, source, at, self, known))
        except BaseException:
            self._request_cells[request.code].count -= 1  # it counts as a discard
            self._drop(known)
            raise

    def _drop(self, known: Entry) -> None:
        self._done()
        self._duplicates.forget(known)

    def _answer_status(self, request: Request, client: Client, source: Source) -> None:
        """Status-Server (RFC 5997): alive. No record, no duplicate detection, nothing is learned from it."""
        self._request_cells[STATUS_SERVER].count += 1
        code = ACCESS_ACCEPT if self._is_auth else ACCOUNTING_RESPONSE
        self._transmit(encode_reply(code, request, client.secret), source)

    # --- logins -----------------------------------------------------------------------------------------------

    def _authenticate(self, login: Login) -> None:
        decision = self._pipeline.begin(login)
        if decision is not None:
            return self._decided(login, decision)
        self._duplicates.park(login.known)
        self._nursery.start_soon(self._decide_later, login)
        return None

    async def _decide_later(self, login: Login) -> None:
        try:
            self._decided(login, await self._pipeline.finish(login))
            self._journal.flush()
        except PacketError as error:
            self._drop(login.known)
            self._discard(error.reason, login.source, login.at)
        except Exception:
            self._drop(login.known)
            self._discard("internal_error", login.source, login.at)
            log.exception("a login gets no answer", client=login.client.name)
        finally:
            self._duplicates.unpark(login.known, now=time.monotonic())

    def _decided(self, login: Login, decision: Decision) -> None:
        request, client = login.request, login.client
        login.decision = decision
        login.reply = encode_reply(_REPLIES[decision.applied], request, client.secret)
        self._note(login, request.signed or decision.passed)
        login.latency_us = self._clock() - login.at
        self._count_decision(login, decision)
        # A right password shows that the sender has the secret where it was hidden under it; CHAP needs no secret.
        authentic = request.signed or (decision.passed and login.method == Method.PAP)
        if authentic and (client.learns_signature or client.learns_limit):
            self._learn(request, client)
        self._journal.add(login)

    def _note(self, login: Login, proven: bool) -> None:
        """The inventory sees those who signed, or whose password was right (decisions.md, Unsigned requests)."""
        request, client, source, at = login.request, login.client, login.source, login.at
        station = request.first.get(CALLING_STATION_ID)
        if station:
            login.station = as_text(station)
        if login.home is not None and proven:
            login.device = device = self._sightings.device(request, source[0], client, login.home.id, at)
            if station:
                login.behind = self._sightings.station(device, login.station, login.user, at)
            return
        login.device = new_device(request, source[0], 0, at)
        login.device.id = 0
        if not request.signed:
            self._services.senders.note(source[0], "unverified", at)

    def _learn(self, request: Request, client: Client) -> None:
        """What an authentic request of a single address shows about its client (decisions.md, Signatures)."""
        if client.learns_signature and request.signed and EAP_MESSAGE not in request.first:
            self._services.learn(client, SIGNED)
        if client.learns_limit and (request.signed or PROXY_STATE not in request.first):
            self._services.learn(client, LIMITED)

    def _count_decision(self, login: Login, decision: Decision) -> None:
        domain_id = 0 if login.domain is None else login.domain.id
        cell = self._decision_cells.get((domain_id, decision))
        if cell is None:
            outcome = "allow" if decision.applied is Verdict.ACCEPT else "deny"
            cell = self._services.login_metrics.decisions.cell(str(domain_id), decision.mode, outcome)
            self._decision_cells[domain_id, decision] = cell
        cell.count += 1

    # --- accounting -------------------------------------------------------------------------------------------

    def _account(self, record: AccountingRecord) -> None:
        request, client = record.request, record.client
        home = default_domain(client, self._domains.table)
        if home is None:
            raise PacketError("the client has no domain", "internal_error")
        record.domain_id = home.id
        record.user = as_text(request.first.get(USER_NAME, b""))
        record.device = self._sightings.device(request, record.source[0], client, home.id, record.at)
        station = request.first.get(CALLING_STATION_ID)
        if station:
            record.behind = self._sightings.station(record.device, as_text(station), record.user, record.at)
        record.reply = encode_reply(ACCOUNTING_RESPONSE, request, client.secret)
        self._journal.add(record)

    # --- out --------------------------------------------------------------------------------------------------

    def committed(self, entry: Answered, now: int) -> None:
        """The entry is on disk: answer it, a reject after its delay. now: microseconds."""
        if entry.reply[0] == ACCESS_REJECT and self._reject_delay_s > 0:
            self._delayed.append((trio.current_time() + self._reject_delay_s, entry))
            self._some_delayed.set()
        else:
            self._reply(entry, now)

    def abandoned(self, entry: Answered) -> None:
        """The store failed: no answer; a retransmit is tried anew."""
        self._drop(entry.known)
        self._discard("internal_error", entry.source, entry.at)

    def _done(self) -> None:
        self.in_flight -= 1
        self._services.waiting.now -= 1

    def _reply(self, entry: Answered, now: int) -> None:
        self._done()
        reply, known, client = entry.reply, entry.known, entry.client
        if known.replaced:
            return
        known.answer = reply
        self._transmit(reply, entry.source)
        code = reply[0]
        self._seconds.observe(CODE_NAMES[code], (now - entry.at) / SECOND)
        cell = self._client_cells.get((client.name, code))
        if cell is None:
            metrics = self._services.radius_metrics
            cell = metrics.clients.cell(metrics.client_label(client.name), CODE_NAMES[code])
            self._client_cells[client.name, code] = cell
        cell.count += 1

    def _transmit(self, reply: bytes, source: Source) -> None:
        self._response_cells[reply[0]].count += 1
        self._send(reply, source)

    async def send_delayed(self) -> None:
        """Send rejects when their delay is over, until cancelled; then those that are left, at once."""
        try:
            while True:
                self._some_delayed = trio.Event()
                if not self._delayed:
                    await self._some_delayed.wait()
                await trio.sleep_until(self._delayed[0][0])
                self._send_due(trio.current_time())
        finally:
            self._send_due(math.inf)

    def _send_due(self, now: float) -> None:
        at = self._clock()
        while self._delayed and self._delayed[0][0] <= now:
            self._reply(self._delayed.popleft()[1], at)
