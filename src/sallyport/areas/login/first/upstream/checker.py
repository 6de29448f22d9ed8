"""Forward logins to the home servers of a domain, and convert their answers to results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from secrets import token_bytes
from typing import TYPE_CHECKING, ClassVar, Final

import structlog
import trio

from sallyport.areas.login.first.checker import Host, Tell, silent
from sallyport.areas.login.first.password import split_digits
from sallyport.areas.login.first.upstream.health import State
from sallyport.areas.login.first.upstream.home import HomeServer, Question
from sallyport.areas.login.first.upstream.link import Link, TlsSettings
from sallyport.areas.login.first.upstream.pool import Pool
from sallyport.areas.login.first.upstream.rewrite import Back, Forward, accepted_user, split_name
from sallyport.areas.login.login import NOTHING, PASSED, FirstFactorResult, Found, Login, Reason
from sallyport.areas.mfa.provider import Code
from sallyport.base.errors import PacketError
from sallyport.radius.attributes import PROXY_STATE, STATE, USER_NAME, USER_PASSWORD
from sallyport.radius.eap.packet import HEADER, NAMED_OUTSIDE, pull_eap_message
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT, CODE_NAMES, SharedSecret, as_text
from sallyport.radius.password import Method, sent_password

if TYPE_CHECKING:
    from sallyport.metrics import Cell
    from sallyport.outgoing.egress import Egress

MARK_OCTETS: Final = 8
LOCATE_S: Final = 10.0  # time for which the first logins wait until the servers' names are resolved

SILENCE: Final = (
    "a RADIUS server stays silent if it does not know this machine as a client, if the secret is wrong, or if a "
    "firewall drops packets: check address, port and secret on both sides"
)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class HomeServerSettings:
    """The configuration of one home server. tls: the settings for RADIUS over TLS, or None for UDP."""

    host: str
    port: int
    secret: SharedSecret
    tls: TlsSettings | None


@dataclass(frozen=True, slots=True)
class UpstreamSettings:
    """The configuration of a domain's home servers.

    servers: the home servers in order of preference. window_s: the response window, in seconds. shares_load: whether
    logins are shared among all servers that are alive. checks_status: whether Status-Server is sent to a server that
    does not answer. only_signed: whether answers without Message-Authenticator are dropped. strips_realm: whether the
    realm is removed from User-Name. code_digits: the number of digits of a code that users append to a PAP password.
    names_inner_user: whether the servers put the user inside EAP into each Access-Accept.
    """

    servers: tuple[HomeServerSettings, ...]
    window_s: float
    shares_load: bool
    checks_status: bool
    only_signed: bool
    strips_realm: bool
    code_digits: int
    names_inner_user: bool


class Upstream:
    """The checker that forwards every request to other RADIUS servers."""

    name: ClassVar[str] = "radius"

    def __init__(self, settings: UpstreamSettings, host: Host) -> None:
        self._label = str(host.domain_id)
        self._domain = host.domain
        self._metrics = host.upstream
        self._strips_realm = settings.strips_realm
        self._checks = settings.checks_status
        self._code_digits = settings.code_digits
        self._names_inner_user = settings.names_inner_user
        self._back = Back(host.hidden)
        # The Proxy-State is random, so that only a server that got a request can know it. Each domain has its own,
        # because a request may pass this service twice, on its way from one domain to another.
        self._mark = token_bytes(MARK_OCTETS)
        self._pool = Pool(
            [self._home_server(each, host.egress) for each in settings.servers],
            host.domain_id,
            host.upstream,
            host.egress,
            window_s=settings.window_s,
            shares_load=settings.shares_load,
            only_signed=settings.only_signed,
        )
        self._cells: dict[str, Cell] = {}

    def begin(self, login: Login, takes_code: Callable[[], bool], done: Callable[[FirstFactorResult], None]) -> bool:
        """Forward a login without a task. Return False if the caller must await `check`, see `AtOnce.begin`."""
        if not self._pool.located.is_set() or self._was_here(login):
            return False
        question, code = self._question(login, takes_code)
        question.done = partial(self._say, login, question, code, done)
        return self._send(login, question)

    async def check(self, login: Login, takes_code: Callable[[], bool], tell: Tell) -> FirstFactorResult:
        """Forward a login, and wait for the answer. Parameters and result are those of `Checker.check`. Raises
        PacketError if the password field is malformed, or if the forwarded packet would be too long."""
        if self._was_here(login):
            tell(
                "a proxy loop: the request already has this service's Proxy-State, so the home server has sent it back"
            )
            return FirstFactorResult(Reason.PROXY_LOOP)
        (question, code), over = self._question(login, takes_code), trio.Event()
        question.done = over.set
        with trio.move_on_after(LOCATE_S):
            await self._pool.located.wait()
        if not self._send(login, question):
            return self._unreachable(tell)
        tell(f"asks {question.server}")
        try:
            await over.wait()
        finally:
            login.known.on_again = None
            self._pool.leave(question, trio.current_time())
        for server in question.tried[1:]:
            tell(f"no answer in time; the next server is {server}")
        return replace(self._judge(login, question, tell), code=code)

    async def run(self) -> None:
        """Run the sockets and health checks of the home servers until cancelled."""
        for server in self._pool.servers:
            self._metrics.moved(self._label, "", server.health.state)
        try:
            await self._pool.run()
        finally:
            for server in self._pool.servers:
                self._metrics.moved(self._label, server.health.state, "")

    def _home_server(self, settings: HomeServerSettings, egress: Egress) -> HomeServer:
        link = None if settings.tls is None else Link(settings.host, settings.tls, egress)
        return HomeServer(
            settings.host,
            settings.port,
            settings.secret,
            egress.sockets,
            trio.current_time(),
            link,
            checks=self._checks,
            on_change=self._changed,
        )

    def _changed(self, server: HomeServer, before: State, after: State) -> None:
        self._metrics.moved(self._label, before, after)
        tell = log.info if after is State.ALIVE else log.warning
        tell("home_server_state", domain=self._domain, server=str(server), before=before.value, now=after.value)

    # --- there ------------------------------------------------------------------------------------------------

    def _was_here(self, login: Login) -> bool:
        request = login.arrival.request
        return PROXY_STATE in request.first and self._mark in request.values(PROXY_STATE)

    def _question(self, login: Login, takes_code: Callable[[], bool]) -> tuple[Question, Code | None]:
        """Return the question to a home server, and the code that follows the password, or None."""
        request = login.arrival.request
        password, code = self._password(login, takes_code) if USER_PASSWORD in request.first else (None, None)
        return Question(Forward(request, password=password, name=self._name(login), mark=self._mark)), code

    def _send(self, login: Login, question: Question) -> bool:
        if not self._pool.begin(question, login.arrival.request.first.get(STATE), trio.current_time()):
            return False
        login.known.on_again = partial(self._again, question)
        return True

    def _password(self, login: Login, takes_code: Callable[[], bool]) -> tuple[bytes, Code | None]:
        """Return the PAP password to forward, and the code that follows it, or None.

        The code must have the configured number of digits. If any length were allowed, a password that ends in eight
        digits could be split in two ways, but the home server is asked only once.
        """
        given = sent_password(login.arrival.request, login.arrival.client.secret)
        split = split_digits(given, self._code_digits) if given[-1:].isdigit() and takes_code() else None
        return (given, None) if split is None else (split[0], Code(split[1].decode()))

    def _name(self, login: Login) -> bytes | None:
        """Return the User-Name to send in place of the received one, or None to keep the received one. A name that has
        only a realm is kept, because a User-Name must not be empty (RFC 2865 section 5.1)."""
        if not self._strips_realm:
            return None
        name = login.arrival.request.first.get(USER_NAME, b"")
        user, _ = split_name(name)
        return user if user and user != name else None

    def _again(self, question: Question) -> None:
        self._pool.again(question, trio.current_time())

    # --- the answer -------------------------------------------------------------------------------------------

    def _say(
        self, login: Login, question: Question, code: Code | None, done: Callable[[FirstFactorResult], None]
    ) -> None:
        login.known.on_again = None
        done(replace(self._judge(login, question, silent), code=code))

    def _judge(self, login: Login, question: Question, tell: Tell) -> FirstFactorResult:
        server, answer = question.server, question.answer
        if server is None or answer is None:
            return self._unreachable(tell)
        code, first = answer.code, answer.first
        if tell is not silent:
            tell(f"{server} answers {CODE_NAMES[code]}")
        received = server.secret, question.packet[4:20]
        sent = login.arrival.client.secret, login.arrival.request.authenticator
        try:
            attributes = self._back.attributes(answer, received, sent)
        except PacketError as error:
            tell(f"the answer cannot be forwarded to the NAS: {error}")
            log.warning("upstream_answer_not_passed_on", domain=self._domain, server=str(server), error=str(error))
            return self._count("malformed", Reason.FIRST_FACTOR_UNREACHABLE)
        if code == ACCESS_ACCEPT:
            user, detail = None, ""
            if USER_NAME in first:
                user = self._named_user(login, server, first[USER_NAME], tell)
                if user is None:
                    return self._count("accept", Reason.REFUSED_UPSTREAM)
            if login.method == Method.EAP and user in (None, login.user) and not self._proves_outer_user(login):
                user, detail = "", f"outer identity {login.user}" if login.user else ""
                tell("the server does not name the user inside EAP, so the user is unknown; see namesInnerUser")
            return replace(self._count("accept", PASSED, Found(accept=attributes)), user=user, detail=detail)
        if code == ACCESS_REJECT:
            tell(
                "the shared secret is correct, but the server refuses the login: the name or password is wrong, or a"
                " policy forbids it"
            )
            return self._count("reject", Reason.REFUSED_UPSTREAM, Found(refuse=attributes))
        if STATE in first:
            self._pool.stay(question, first[STATE], trio.current_time())
        return self._count("challenge", PASSED, Found(challenge=attributes))

    def _named_user(self, login: Login, server: HomeServer, name: bytes, tell: Tell) -> str | None:
        """Return the user that an Access-Accept with this User-Name admits, without its realm. For EAP, this is the
        inner identity. Return None if the name cannot belong to this login."""
        user = accepted_user(login, name)
        if user is None:
            tell(f"the answer admits another user than the request names: {as_text(name)}")
            log.warning(
                "upstream_accept_names_another_user", domain=self._domain, server=str(server), user=login.user,
                named=as_text(name),
            )  # fmt: skip
        elif user != login.user:
            tell(f"the server found the user: {user}")
        return user

    def _proves_outer_user(self, login: Login) -> bool:
        """Return whether an Access-Accept that names no other user proves the user of the outer identity.

        Inside a tunnel, a person may log in with one account, and write the name of another into the outer identity.
        The second factor and the login rules must not follow this name, unless the servers name the inner user.
        """
        if self._names_inner_user:
            return True
        eap = pull_eap_message(login.arrival.request)
        return len(eap) >= HEADER and eap[HEADER - 1] in NAMED_OUTSIDE

    def _unreachable(self, tell: Tell) -> FirstFactorResult:
        for server in self._pool.servers:
            state = f"is {server.health.state}" if server.address else "has no address"
            tell(f"{server} {state}{': ' if server.trouble else ''}{server.trouble}")
        tell(SILENCE)
        return self._count("none", Reason.FIRST_FACTOR_UNREACHABLE)

    def _count(self, outcome: str, reason: Reason, found: Found = NOTHING) -> FirstFactorResult:
        cell = self._cells.get(outcome)
        if cell is None:
            cell = self._cells[outcome] = self._metrics.requests.cell(self._label, outcome)
        cell.count += 1
        return FirstFactorResult(reason, found)
