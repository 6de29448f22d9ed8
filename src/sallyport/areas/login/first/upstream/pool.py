"""The home servers of a domain. The pool selects a server for each login, matches answers to requests, and fails over
to another server.

Only `run` and its tasks wait, for sockets and for names. All other methods are plain functions that get the time as
`now`. When a socket is readable, up to DRAIN packets are read at once.
"""

from __future__ import annotations

import math
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import structlog
import trio

from sallyport.areas.login.first.upstream.health import CHECK_TIMEOUT_S, RANK, State
from sallyport.areas.login.first.upstream.home import Check, HomeServer, Pending, Question
from sallyport.base.bounded import ExpiringMap
from sallyport.base.errors import PacketError
from sallyport.base.trace import following
from sallyport.outgoing.errors import ProviderError
from sallyport.radius.attributes import EAP_MESSAGE, MESSAGE_AUTHENTICATOR, NAS_IDENTIFIER, push_attribute
from sallyport.radius.packet import (
    ACCESS_ACCEPT,
    ACCESS_CHALLENGE,
    ACCESS_REJECT,
    MAX_LENGTH,
    MIN_LENGTH,
    STATUS_SERVER,
    encode_request,
    open_reply,
)

if TYPE_CHECKING:
    from sallyport.areas.login.first.upstream.home import Channel
    from sallyport.areas.login.first.upstream.link import Link
    from sallyport.metrics import UpstreamMetrics
    from sallyport.outgoing.egress import Egress

MAX_CONVERSATIONS: Final = 65_536
CONVERSATION_S: Final = 120.0
"""Time in seconds for which the pool remembers the server of a State. The answer to a challenge must go to the server
that sent the challenge, because only this server knows the State (RFC 2865 section 5.24)."""
LIMIT_S: Final = 30.0
"""Failover time limit for one login in seconds, like FreeRADIUS's max_request_time."""
DRAIN: Final = 64
TICK_S: Final = 0.25  # seconds between two searches for requests whose response window has ended
QUIET_S: Final = 0.5  # the pause between two searches while no login waits, in seconds
LOCATE_S: Final = 30.0  # seconds between two look-ups of a dead server's name
LOCATE_ALL_S: Final = 300.0  # the same, for other servers
WARN_S: Final = 60.0

_ANSWERS: Final = frozenset({ACCESS_ACCEPT, ACCESS_REJECT, ACCESS_CHALLENGE})
_WHO: Final = push_attribute(NAS_IDENTIFIER, b"sallyport")

log = structlog.get_logger()


class Pool:
    """The home servers of a domain, in order of preference. `run` must be running while logins use the pool.

    `located` is set when a server has an address, or when the look-ups of all names have failed. domain_id: the id of
    the domain, for metrics and the log. The other parameters are those of `UpstreamSettings`.
    """

    def __init__(
        self,
        servers: Sequence[HomeServer],
        domain_id: int,
        metrics: UpstreamMetrics,
        egress: Egress,
        *,
        window_s: float,
        shares_load: bool,
        only_signed: bool,
    ) -> None:
        self.servers = tuple(servers)
        self.located = trio.Event()
        self._window_s = window_s
        self._shares = shares_load
        self._only_signed = only_signed
        self._domain_id = domain_id
        self._metrics = metrics
        self._egress = egress
        self._waiting = 0
        self._over = False
        self._missing = set(servers)
        self._partners = ExpiringMap[bytes, HomeServer](
            MAX_CONVERSATIONS, CONVERSATION_S
        )  # the server that sent a challenge, by the State of the challenge
        self._nursery: trio.Nursery
        self._changed = trio.Event()
        label = str(domain_id)
        self._again_cell = metrics.repeats.cell(label, "again")
        self._moved_cell = metrics.repeats.cell(label, "moved")

    # --- a login ----------------------------------------------------------------------------------------------

    def begin(self, question: Question, state: bytes | None, now: float) -> bool:
        """Forward a login to a server. Return False if no server can be asked.

        state: the State in the request, or None. The server that has sent this State is asked first.
        """
        question.limit_at = now + max(LIMIT_S, self._window_s)
        partner = None if state is None else self._partners.get(state, now=now)
        if partner is not None and partner.health.state is not State.DEAD:
            question.stays = True
            if self._send(question, partner, now):
                return True
        return self._ask_next(question, now)

    def again(self, question: Question, now: float) -> None:
        """Forward a retransmission by the NAS. If the current server is not alive, but a server that was not tried is
        alive, ask that server instead. A login that only the current server can continue stays with the current server.
        """
        server = question.server
        if server is None or question.over:
            return None
        if not server.is_alive and not question.stays and self._can_flee(question):
            return self._move(question, now)
        self._again_cell.count += 1
        if question.channel.far is not None and question.channel.retired:
            return self._reconnect(question, server, now)
        return server.send(question.channel, question.packet, now)

    def _reconnect(self, question: Question, server: HomeServer, now: float) -> None:
        """Send a request again, because the TLS connection on which it was sent has ended. If no other connection is
        possible now, do nothing."""
        before, identifier = question.channel, question.identifier
        channel = self._channel(server, now)
        if channel is None:
            return
        before.rest(identifier, now)
        question.channel = channel
        question.identifier = channel.take(question, now)
        question.packet = question.forward.packet(question.identifier, server.secret)
        server.send(channel, question.packet, now)

    def leave(self, question: Question, now: float) -> None:
        """Stop waiting for an answer to this login."""
        if not question.over:
            self._let_go(question, now)

    def stay(self, question: Question, state: bytes, now: float) -> None:
        """Remember the server that sent a challenge with this State, because only this server can continue the
        login."""
        if question.server is not None:
            self._partners.put(state, question.server, now=now)

    # --- selection of a server --------------------------------------------------------------------------------

    def _rank(self, server: HomeServer) -> tuple[int, int]:
        return RANK[server.health.state], server.waiting if self._shares else 0

    def _ask_next(self, question: Question, now: float) -> bool:
        """Ask the best server that this login has not tried. Return False if no server is left."""
        while (best := self._best(question)) is not None:
            if self._send(question, best, now):
                return True
        return False

    def _best(self, question: Question) -> HomeServer | None:
        best: HomeServer | None = None
        for server in self.servers:
            may = server.address and server not in question.tried
            if may and (best is None or self._rank(server) < self._rank(best)):
                best = server
        return best

    def _can_flee(self, question: Question) -> bool:
        """Return whether there is another server to ask. It must be alive, and not yet asked about this login."""
        return any(each.is_alive and each not in question.tried for each in self.servers)

    def _move(self, question: Question, now: float) -> None:
        """Ask another server. End the login if no server is left, or if the time limit of the login is over."""
        self._let_go(question, now)
        if now < question.limit_at and self._ask_next(question, now):
            self._moved_cell.count += 1
        else:
            question.end()

    def _send(self, question: Question, server: HomeServer, now: float) -> bool:
        question.tried.append(server)
        channel = self._channel(server, now)
        if channel is None:
            return False
        self._changed.set()
        question.server, question.channel = server, channel
        question.sent_at = now
        question.ends_at = min(now + self._window_s, question.limit_at)
        question.identifier = channel.take(question, now)
        server.waiting += 1
        self._waiting += 1
        question.packet = question.forward.packet(question.identifier, server.secret)
        server.send(channel, question.packet, now)
        return True

    def _channel(self, server: HomeServer, now: float) -> Channel[Pending] | None:
        found = None if self._over else server.free_channel(now)
        if found is None:
            return None
        channel, is_new = found
        if is_new:
            with following(None):  # the tasks outlive the login that starts them
                self._nursery.start_soon(self._read, server, channel)
                if server.link is not None and channel.far is not None:
                    self._nursery.start_soon(self._carry, server, server.link, channel.far)
        return channel

    async def _carry(self, server: HomeServer, link: Link, far: socket.socket) -> None:
        server.trouble = await link.carry(far, server.address, server.port)
        self._warn(server, "home_server_connection_ended", server.trouble, trio.current_time())

    def _let_go(self, question: Question, now: float) -> None:
        """Stop waiting for the current server. Block the identifier, because the server may still answer."""
        if question.server is not None:
            question.channel.rest(question.identifier, now + self._window_s)
            question.server.waiting -= 1
            self._waiting -= 1
            question.server = None

    # --- answers ----------------------------------------------------------------------------------------------

    async def _read(self, server: HomeServer, channel: Channel[Pending]) -> None:
        recv = channel.sock.recv
        while True:
            try:
                await trio.lowlevel.wait_readable(channel.sock)
            except trio.ClosedResourceError:
                return None
            await self._egress.turns.take()
            if channel.sock.fileno() < 0:  # the socket was closed just after a packet arrived
                return None
            now = trio.current_time()
            try:
                for _ in range(DRAIN):
                    datagram = recv(MAX_LENGTH + 1)
                    if not datagram and channel.far is not None:
                        return server.lost(channel, now)
                    self._take(server, channel, datagram, now)
            except BlockingIOError:
                pass
            except OSError:  # an ICMP error about an earlier packet
                if channel.sock.fileno() < 0:
                    return None
                server.refused(now)

    def _take(self, server: HomeServer, channel: Channel[Pending], datagram: bytes, now: float) -> None:
        """Deliver an answer to its request. A packet that fails verification is dropped without ending the request,
        because the authentic answer may still arrive."""
        ask = channel.waiting.get(datagram[1]) if len(datagram) >= MIN_LENGTH else None
        if ask is None:
            return self._discard(server, "no request with this identifier is waiting", "unexpected", now)
        try:
            reply = open_reply(datagram, ask.packet, server.secret)
            if reply.code not in _ANSWERS:
                raise PacketError(f"the answer has the code {reply.code}", "unknown_type")
            must_be_signed = EAP_MESSAGE in reply.first or (self._only_signed and isinstance(ask, Question))
            if must_be_signed and MESSAGE_AUTHENTICATOR not in reply.first:  # RFC 3579 section 3.2
                raise PacketError(
                    "the answer has no Message-Authenticator, but requireMessageAuthenticator or EAP demands one",
                    "unsigned",
                )
        except PacketError as error:
            return self._discard(server, str(error), error.reason, now)
        channel.give(ask.identifier)
        if not isinstance(ask, Question):
            return server.health.check_answered(now)
        server.health.answered(now)
        server.waiting -= 1
        self._waiting -= 1
        ask.answer = reply
        return ask.end()

    def _discard(self, server: HomeServer, why: str, reason: str, now: float) -> None:
        self._metrics.discards.cell(str(self._domain_id), reason).count += 1
        server.trouble = f"an answer failed verification: {why}"
        self._warn(server, "home_server_answer_dropped", why, now)

    def _warn(self, server: HomeServer, what: str, why: str, now: float) -> None:
        if now >= server.warned_at + WARN_S:
            server.warned_at = now
            log.warning(what, domain=self._domain_id, server=str(server), why=why)

    # --- periodic work ----------------------------------------------------------------------------------------

    def pass_by(self, now: float) -> float:
        """Update everything that depends on time: health, failover and idle channels. Return the time in seconds until
        the next call. Return infinity if no call is needed before the next login."""
        for server in self.servers:
            server.health.pass_by(now)
            flees = not server.is_alive and any(each.is_alive for each in self.servers)
            for channel in server.channels:
                due = [
                    ask
                    for ask in channel.waiting.values()
                    if ask.ends_at <= now or (flees and ask.sent_at <= server.refused_at)
                ]
                for ask in due:
                    self._end(server, ask, now)
                channel.pass_by(now)
            server.close_idle(now)
            if server.address and server.health.is_check_due(now):
                self._check(server, now)
        if self._waiting:
            return TICK_S
        calm = all(server.health.state is State.ALIVE and not server.channels for server in self.servers)
        return math.inf if calm else QUIET_S

    def _end(self, server: HomeServer, ask: Pending, now: float) -> None:
        """Handle an unanswered request after the end of its response window, or after the network has reported that
        the server is unreachable. For a login, ask another server if possible."""
        if isinstance(ask, Question):
            if ask.ends_at <= now:
                if now >= ask.sent_at + self._window_s:
                    server.health.unanswered(ask.sent_at, now)
                self._move(ask, now)
            elif self._can_flee(ask):
                self._move(ask, now)
        elif ask.ends_at <= now:
            ask.channel.rest(ask.identifier, now + self._window_s)
            server.health.check_unanswered()

    def _check(self, server: HomeServer, now: float) -> None:
        channel = self._channel(server, now)
        if channel is None:
            return server.health.check_unanswered()
        check = Check()
        check.channel, check.sent_at, check.ends_at = channel, now, now + CHECK_TIMEOUT_S
        check.identifier = channel.take(check, now)
        check.packet = encode_request(STATUS_SERVER, check.identifier, server.secret, _WHO)
        return server.send(channel, check.packet, now)

    async def run(self) -> None:
        """Resolve names, read answers and check servers until cancelled. After the end, `begin` returns False."""
        try:
            async with trio.open_nursery() as self._nursery:
                for server in self.servers:
                    self._nursery.start_soon(self._locate, server)
                while True:
                    pause = self.pass_by(trio.current_time())
                    if pause < math.inf:
                        await trio.sleep(pause)
                    else:
                        self._changed = trio.Event()
                        await self._changed.wait()
        except Exception:
            self._over = True
            self._give_up()
            raise
        finally:
            self._over = True
            self.located.set()
            for server in self.servers:
                server.close_idle()

    def _give_up(self) -> None:
        """End all pending logins, because no answers are read any more."""
        for server in self.servers:
            for channel in server.channels:
                for ask in tuple(channel.waiting.values()):
                    if isinstance(ask, Question):
                        self._let_go(ask, trio.current_time())
                        ask.end()

    async def _locate(self, server: HomeServer) -> None:
        """Resolve a server's name periodically, because its address may change."""
        looked_at = -math.inf
        while True:
            now = trio.current_time()
            if now >= looked_at + LOCATE_ALL_S or server.health.state is State.DEAD or not server.address:
                looked_at = now
                try:
                    server.locate(await self._egress.resolve(server.host, server.port, socket.SOCK_DGRAM))
                except ProviderError as error:
                    server.trouble = str(error)
                    log.warning("home_server_not_found", domain=self._domain_id, error=str(error))
                self._missing.discard(server)
                if server.address or not self._missing:
                    self.located.set()
                self._changed.set()
            await trio.sleep(LOCATE_S)
