"""Continue the EAP conversation of an Access-Request, and return the result of its login."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import structlog

from sallyport.areas.authorities.authority import Authority
from sallyport.areas.domains.domain import Domain, FirstFactor
from sallyport.areas.login.decision import LOCKED, mschap_error
from sallyport.areas.login.eap.answers import accepting_attributes, failure_reason, user_name_attribute
from sallyport.areas.login.eap.client_certificates import ClientCertificates
from sallyport.areas.login.eap.holders import WITH_REALM
from sallyport.areas.login.eap.login import (
    AcceptedEndings,
    EapLogin,
    EapResult,
    Ending,
    InnerSecondFactor,
    OpenQuestion,
    PreferredMethods,
    Unfinished,
    sender_of,
)
from sallyport.areas.login.eap.offered import OfferedMethods
from sallyport.areas.login.eap.revocation import NOT_CHECKED, ChecksRevocation
from sallyport.areas.login.eap.tls_servers import CertificatesOfDomain
from sallyport.areas.login.eap.verifiers import Binds, Directory, Finding, Local, Station, Verifier, WithCloud
from sallyport.areas.login.identity import names_no_user, principal, realm_inside
from sallyport.areas.login.login import Answered, Found, Login, Reason
from sallyport.areas.login.pipeline import Pipeline
from sallyport.areas.login.second.session import Session
from sallyport.areas.mfa.provider import Code
from sallyport.base.clock import SECOND
from sallyport.base.errors import PacketError
from sallyport.base.trace import follow
from sallyport.certs.credentials import Credentials
from sallyport.radius.attributes import CALLING_STATION_ID, STATE, push_attribute
from sallyport.radius.eap.certificate_names import NamedBy
from sallyport.radius.eap.conversation import Conversation, Conversations
from sallyport.radius.eap.model import (
    Certificate,
    Check,
    Done,
    Outcome,
    Password,
    Question,
    Resumed,
    Send,
    Verdict,
    Waiting,
)
from sallyport.radius.eap.packet import MD5, pull_eap_message, push_eap_message
from sallyport.radius.packet import as_text

SERVED: Final = frozenset({FirstFactor.LOCAL, FirstFactor.LDAP})
"""The first factors of domains whose EAP conversations this service itself handles."""
MAX_TEXT: Final = 1000
"""Maximum length of the text about revocation in an event."""
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class EapServer:
    """What the service needs as the server of EAP.

    credentials: a function that returns the current server certificate. certificate_tenant: a function that returns the
    tenant for which a client certificate was issued. Its argument is the SHA-256 of the certificate in hex. node: a
    function that returns the number of this node. duplicate_window_s: for how many seconds a retransmission gets the
    same answer. certificates: a function that returns the server certificates of a domain; see `TlsServers`.
    authorities: a function that returns the authorities of a domain, which are trusted instead of those of the
    installation; empty if it has none. revocation: checks the certificates of these authorities.
    """

    credentials: Callable[[], Credentials | None]
    certificate_tenant: Callable[[str], int | None]
    node: Callable[[], int]
    duplicate_window_s: float
    certificates: CertificatesOfDomain
    authorities: Callable[[int], Sequence[Authority]]
    revocation: ChecksRevocation


class Eap:
    """The EAP conversations of all domains.

    steps: the pipeline. ask: the function that asks for a second factor, see `EapRounds._ask_inside`. now: a function
    that returns the seconds of a monotonic clock.
    """

    def __init__(
        self,
        steps: Pipeline,
        server: EapServer,
        ask: Callable[[Login, Domain, Session | None, Code], Awaitable[InnerSecondFactor | None]],
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._steps = steps
        self._own = server
        self._ask = ask
        self._now = now
        self._logins = Conversations[EapLogin](left=Unfinished(now).note, node=server.node)
        self._endings = AcceptedEndings(server.duplicate_window_s)
        self._preferred = PreferredMethods()
        self.methods = OfferedMethods(server.credentials, server.certificates, server.authorities)
        self.certificates = ClientCertificates(server.certificate_tenant, server.authorities, server.revocation)

    def receive(self, login: Login, domain: Domain, station: Station | None = None) -> EapResult | OpenQuestion | None:
        """Continue or begin the EAP conversation of a request, without waiting. Raises PacketError if the request does
        not answer the last challenge.

        The result is one of these:

        - EapResult: this round decides the login. After a refusal, `login.found` may contain a challenge, because EAP
          ends with further rounds.
        - None: this round decides nothing. `login.found` contains a challenge. If an earlier round has refused or
          accepted the login, it may contain the attributes of the Access-Reject or Access-Accept instead.
        - OpenQuestion: the caller must await `answer`.

        station: the verifier of the MAC address, if the domain may admit the station by its address.
        """
        eap, state = self._conversation(login, domain, station)
        octets = pull_eap_message(login.arrival.request)
        if isinstance(eap, Reason):
            return None if self._answers_again(login, state, octets) else EapResult(eap)
        outcome = eap.conversation.receive(octets) if octets else eap.conversation.begin()
        if not isinstance(outcome, Check):
            return self._come_to(login, eap, state, outcome)
        try:
            verdict = self._verdict_at_once(login, eap, outcome, domain)
            if verdict is None:
                return OpenQuestion(eap, state, outcome)
            outcome = eap.conversation.answer(verdict)
        except BaseException:
            self._logins.end(state)  # the client will get no answer
            raise
        return (
            OpenQuestion(eap, state, outcome)
            if isinstance(outcome, Check)
            else self._come_to(login, eap, state, outcome)
        )

    async def answer(self, login: Login, domain: Domain, question: OpenQuestion) -> EapResult | None:
        """Look up the answer to a question, and continue the conversation. Return an EapResult if the login is decided,
        otherwise None, as in `receive`. Raises StoreError, SecretError."""
        eap = question.eap
        outcome: Outcome = question.check
        try:
            while isinstance(outcome, Check):
                verdict = await self._verdict(login, domain, eap, outcome)
                outcome = eap.conversation.answer(verdict)
        except BaseException:
            self._logins.end(question.state)  # the client will get no answer
            raise
        return self._come_to(login, eap, question.state, outcome)

    def _conversation(self, login: Login, domain: Domain, station: Station | None) -> tuple[EapLogin | Reason, bytes]:
        now, state = self._now(), login.arrival.request.first.get(STATE)
        if state is not None:
            eap = self._logins.find(login.arrival.client.id, state, now=now)
            if eap is None and (node := self._logins.other_node(state)) is not None:
                log.info("eap_conversation_of_another_node", client=login.arrival.client.name, node=node)
            if eap is None or eap.scope != _scope(domain):
                return Reason.CHALLENGE_OVER, state
            is_of_another = isinstance(eap.verifier, Station) and not eap.verifier.is_of(login)
            return (Reason.CHALLENGE_OVER if is_of_another else eap), state
        verifier = station or self._verifier(domain)
        if domain.id in self._steps.principals.inhabited and not isinstance(verifier, Reason | Station):
            verifier = WithCloud(verifier, self._steps, domain)
        if isinstance(verifier, Reason):
            return verifier, b""
        scope = _scope(domain)
        order = self._preferred.order(scope, _station(login)) if station is None else (MD5,)
        offered = self.methods.of(login, domain, verifier, scope, order)
        eap = EapLogin(Conversation(offered, now=now), scope, verifier, login.arrival.client.name)
        return eap, self._logins.add(login.arrival.client.tenant_id, login.arrival.client.id, eap, now=now)

    def _verifier(self, domain: Domain) -> Verifier | Reason:
        if domain.first_factor is FirstFactor.LOCAL:
            return Local(self._steps, domain)
        checker = self._steps.first.checker(domain)
        if isinstance(checker, Reason):
            return checker
        return Directory(checker, self._steps, domain) if isinstance(checker, Binds) else Reason.METHOD_UNFIT

    def _verdict_at_once(self, login: Login, eap: EapLogin, check: Check, domain: Domain) -> Verdict | None:
        """Return the verdict on the credentials, or None if it needs a look-up."""
        question = check.question
        if isinstance(question, Password) and (question.step or question.prompts):
            return None
        if isinstance(question, Resumed) and question.by_certificate:  # the question about the certificate follows
            return Verdict(self.certificates.trusts(domain, question.stamp))
        name, question = self._name(login, domain, eap, question)
        if not self._steps.recalled(login, domain) or not self.certificates.knows_revocation(eap, question):
            return None
        finding = self._refused(login, domain, eap, name, question) or eap.verifier.at_once(name, question)
        if finding is None:
            return None
        return self._judge(login, eap, question, self.certificates.in_scope(login, eap, finding))

    async def _verdict(self, login: Login, domain: Domain, eap: EapLogin, check: Check) -> Verdict:
        question = check.question
        if isinstance(question, Password) and question.step:
            login.method = f"eap-{eap.conversation.method}"
            login.user, login.outside, login.found = eap.user, False, eap.found
            return await self._second_factor(login, domain, eap, Code(as_text(question.password)))
        name, question = self._name(login, domain, eap, question)
        await self._steps.recall(login, domain)
        began = self._now()
        if not self.certificates.knows_revocation(eap, question):
            await self.certificates.ask_for_revocation(eap, question)
        finding = self._refused(login, domain, eap, name, question)
        if finding is None:
            finding = await eap.verifier.verify(name, question)
            if finding.user and finding.user != login.user:  # the certificate names the user by another identifier
                name = login.user = eap.user = finding.user
                await self._steps.recall(login, domain)
            # Other tries may have locked the user out meanwhile. Then the client must not learn the result.
            refusal = self._refused(login, domain, eap, name, question)
            finding = refusal or self.certificates.in_scope(login, eap, finding)
            if domain.first_factor is not FirstFactor.LOCAL:
                eap.waits = replace(eap.waits, first_us=eap.waits.first_us + self._since(began))
        verdict = self._judge(login, eap, question, finding)
        if verdict.right and isinstance(question, Password) and question.prompts:
            return await self._second_factor(login, domain, eap, Code(""))
        return verdict

    def _name(self, login: Login, domain: Domain, eap: EapLogin, question: Question) -> tuple[str, Question]:
        """Return the name of the user in a question, without its realm, and the question with the user's whole name.
        The name is empty if the realm belongs to another domain or to none."""
        login.method = f"eap-{eap.conversation.method}"
        eap.named_by, eap.certificate, eap.holder, eap.revocation = None, None, None, NOT_CHECKED
        needs_realm: NamedBy | None = None
        if isinstance(question, Certificate):
            if question.anchor:  # an authority of the domain may name its users without a realm
                holder = eap.holder = self.certificates.holder(domain, question)
                question = replace(question, user=holder.name.encode(), by=holder.by)
            else:
                needs_realm = question.by
            eap.named_by, eap.certificate = question.by, question.certificate
        if eap.named_by in WITH_REALM or eap.named_by is None:
            name = principal(login, domain, self._steps.domains.value, question.user, needs_realm)
        else:
            name = as_text(question.user)
        login.user = eap.user = name or login.user
        eap.inner_realm = realm_inside(question.user, eap.named_by)
        login.realm = eap.inner_realm or login.realm
        login.outside = False
        return name, question

    def _refused(self, login: Login, domain: Domain, eap: EapLogin, name: str, question: Question) -> Finding | None:
        """Return a refusal for which the credentials need not be checked, otherwise None. The login is refused if the
        certificate belongs to another tenant, if the name is empty or its realm is unknown, or if the user is locked
        out."""
        if isinstance(question, Certificate):
            refusal = self.certificates.refusal(domain, eap, question)
            if refusal is not None:
                return refusal
        if not name:
            return Finding(Reason.NO_USER_NAME if names_no_user(question.user) else Reason.UNKNOWN_REALM)
        if (
            self._steps.lockouts.has_failures
            and not isinstance(eap.verifier, Station)
            and (lock := self._steps.lockouts.refuses(login.attempt(domain)))
        ):
            return Finding(LOCKED[lock])
        return None

    def _judge(self, login: Login, eap: EapLogin, question: Question, finding: Finding) -> Verdict:
        if isinstance(question, Resumed) and (finding.reason is not Reason.NONE or finding.stamp != question.stamp):
            eap.user = ""  # the client then does a full login, possibly as another user
            return Verdict(False)
        if finding.user:
            login.user = eap.user = finding.user
        if finding.reason is not Reason.NONE:
            eap.refused = EapResult(finding.reason, detail=finding.detail)
            return Verdict(False, error=mschap_error(finding.reason), reason=finding.reason.value)
        eap.found, eap.code, eap.stamp = finding.found, finding.code, finding.stamp
        login.found, login.code = finding.found, finding.code
        if eap.holder is not None and eap.holder.authority is not None:
            name = question.user if eap.named_by in WITH_REALM and not finding.user else login.user.encode()
            return Verdict(True, stamp=eap.holder.authority.stamp, user=name)
        name = finding.user.encode()
        return Verdict(True, hash_hash=finding.hash_hash, hashed=finding.hashed, stamp=eap.stamp, user=name)

    async def _second_factor(self, login: Login, domain: Domain, eap: EapLogin, code: Code) -> Verdict:
        """Ask for the second factor inside EAP, and return the verdict that the EAP method sends to the client."""
        began = self._now()
        login.trace = eap.trace = eap.trace or login.trace
        follow(eap.trace)
        second = await self._ask(login, domain, eap.session, code)
        if second is None:
            raise PacketError("a newer request of the same login has replaced this one", "duplicate")
        if second.is_asked:
            eap.waits = replace(eap.waits, second_us=eap.waits.second_us + self._since(began))
            eap.rule = eap.rule if login.rule is None else login.rule
        if second.refusal is not None:
            eap.refused = EapResult(Reason.NONE, refusal=second.refusal, rule=eap.rule)
            return Verdict(False, reason=second.refusal.reason.value)
        if second.session is not None:
            eap.session = second.session
            return Verdict(False, prompt=second.prompt)
        eap.second, eap.proof = second.reason, second.proof
        return Verdict(True, stamp=eap.stamp)

    def _since(self, began: float) -> int:
        return round((self._now() - began) * SECOND)

    def _come_to(self, login: Login, eap: EapLogin, state: bytes, outcome: Outcome) -> EapResult | None:
        login.user, login.named_by, login.waits = eap.user or login.user, eap.named_by, eap.waits
        login.realm, login.certificate = eap.inner_realm or login.realm, eap.certificate
        login.authority = "" if eap.holder is None or eap.holder.authority is None else eap.holder.authority.name
        login.revocation = eap.revocation.text[:MAX_TEXT]
        login.outside, login.trace = not eap.user, eap.trace or login.trace
        if isinstance(outcome, (Waiting, Check)):
            raise PacketError("the server is still checking the last EAP response of this login", "duplicate")
        if isinstance(outcome, Send):
            challenge = push_eap_message(outcome.octets) + push_attribute(STATE, state)
            login.found = Found(challenge=challenge)
            if eap.refused is None or eap.decided:
                return None
            login.method = f"eap-{eap.conversation.method}"
            eap.decided = True
            return eap.refused
        login.method, login.resumed = outcome.method, outcome.resumed
        if outcome.success:
            self._preferred.note(eap.scope, _station(login), eap.conversation.kind, login.arrival.client.tenant_id)
            login.code = eap.code
            login.found = Found(
                accept=user_name_attribute(login, outcome) + eap.found.accept,
                keys=accepting_attributes(login, outcome),
                groups=eap.found.groups,
                ous=eap.found.ous,
                password_at=eap.found.password_at,
            )
            return self._end(login, eap, state, outcome)
        return self._refuse(login, eap, state, outcome)

    def _end(self, login: Login, eap: EapLogin, state: bytes, done: Done) -> EapResult:
        by_address, ending = isinstance(eap.verifier, Station), eap.ending
        trusted = self.certificates.note(login, eap)
        if eap.second is not None:
            self._logins.end(state)  # each code admits one login, so a repeated last response gets no Access-Accept
            return EapResult(Reason.NONE, eap.second, eap.proof, stamp=eap.stamp)
        sender = sender_of(login)
        if ending is None:
            answered = partial(self._answered, state, eap)
            eap.ending = ending = Ending(pull_eap_message(login.arrival.request), sender, done, answered)
        elif ending.sender != sender:
            return EapResult(Reason.CHALLENGE_OVER)
        ending.decide(login)
        return EapResult(Reason.NONE, by_address=by_address, stamp=eap.stamp, ending=ending, authority=trusted)

    def _answered(self, state: bytes, eap: EapLogin, entry: Answered) -> None:
        """End a conversation whose login has got its answer."""
        self._logins.end(state)
        ending, eap.ending = eap.ending, None
        if ending is not None:
            self._endings.add(state, ending, entry, now=self._now())

    def _answers_again(self, login: Login, state: bytes, response: bytes) -> bool:
        """If a request repeats the end of a conversation, store the attributes of the same answer in the login. Return
        False if the request is no such copy. Raises PacketError as `AcceptedEndings.find`."""
        ending = self._endings.find(login, state, response, now=self._now())
        if ending is None:
            return False
        login.user, login.outside = ending.user, False
        login.attributes, login.found = ending.sent, Found(keys=accepting_attributes(login, ending.done))
        return True

    def _refuse(self, login: Login, eap: EapLogin, state: bytes, done: Done) -> EapResult | None:
        self._logins.end(state)
        login.found = Found(refuse=push_eap_message(done.octets))
        if eap.decided:
            return None
        if eap.refused is not None:
            return eap.refused
        log.info("eap_conversation_failed", client=login.arrival.client.name, method=done.method, reason=done.reason)
        reason = failure_reason(done)
        return EapResult(reason, detail=done.reason if reason is Reason.CERTIFICATE_REFUSED else "")


def _scope(domain: Domain) -> str:
    """Return a key that differs for each domain and each first factor. EAP conversations and resumed TLS sessions are
    valid only with the same key, because the same user name may belong to another person after a change of the first
    factor."""
    return f"{domain.id}/{domain.factor}"


def _station(login: Login) -> bytes:
    return login.arrival.request.first.get(CALLING_STATION_ID, b"")
