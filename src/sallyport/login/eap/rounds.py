"""Rounds of EAP on their way through a login: what a conversation is lent, and what its end comes to."""

from functools import partial

from sallyport.domains.model import LOCAL, Domain
from sallyport.domains.service import Domains
from sallyport.endpoints.model import User
from sallyport.endpoints.service import MISSING, EndpointUsers, Missing
from sallyport.login.decision import ROUND, decide
from sallyport.login.eap.model import Caller, Open, Result, Second
from sallyport.login.eap.service import Eap
from sallyport.login.eap.verifiers import Station
from sallyport.login.first.password import still
from sallyport.login.identity import principal
from sallyport.login.model import PASSED, Decision, Login, Reason, Verdict
from sallyport.login.second.conversation import Told
from sallyport.login.second.service import SecondFactor
from sallyport.login.second.session import Asked, Session
from sallyport.login.steps import Steps
from sallyport.mfa.model import Code
from sallyport.policy.bypass.model import spellings
from sallyport.policy.bypass.service import Bypass
from sallyport.policy.rules.model import Action
from sallyport.radius.attributes import STATE
from sallyport.radius.method import Method


class Rounds:
    """The logins that are conversations held here."""

    def __init__(
        self, steps: Steps, domains: Domains, users: EndpointUsers, second: SecondFactor, eap: Eap, bypass: Bypass
    ) -> None:
        self._steps = steps
        self._domains = domains
        self._users = users
        self._second = second
        self._eap = eap
        self._bypass = bypass

    def converse(self, login: Login) -> Decision | None:
        """Go on with a round of EAP that `begin` has left, as far as nothing has to be waited for. None: `check` has to
        go on. PacketError."""
        domain = login.domain
        if domain is None or self._steps.names_challenge(login) is not None or not self.serves(login, domain):
            return None
        lend = partial(self._lend, login, domain)
        station = None if STATE in login.request.first else self.station(login, domain)  # how it began is known
        result = self._eap.receive(login, domain, lend, station)
        if isinstance(result, Open):
            login.go_on = partial(self._answer, login, domain, result)
            return None
        if result is None:
            return ROUND
        user: User | Missing | None = None
        if result.first is PASSED and domain.first_factor is LOCAL and not result.by_address:
            user = self._users.cached(domain.id, login.user)
        if result.second is not None or user is MISSING or not self._steps.recalled(login, domain):
            login.go_on = partial(self._conclude, login, domain, result)
            return None
        return self._come_to(login, domain, result, user)

    def station(self, login: Login, domain: Domain) -> Station | None:
        """The station that a login asks for by EAP and that the domain lets in by its address."""
        key = self._bypass.admits_by_eap(login, domain.id) if login.method == Method.EAP else ""
        if not key:
            return None
        written = [each.encode() for name in spellings(key) for each in (name, name.upper())]
        return Station(written, partial(self._bypass.has, domain.id, key))

    def serves(self, login: Login, domain: Domain) -> bool:
        """Whether a login is a conversation that is held here."""
        return login.method == Method.EAP and (
            self._eap.serves(domain) or bool(self._bypass.admits_by_eap(login, domain.id))
        )

    def _lend(self, login: Login, domain: Domain) -> Caller:
        """What a conversation needs to have its questions answered."""
        return Caller(
            partial(principal, login, domain, self._domains.table),
            partial(self._steps.recalled, login, domain),
            partial(self._steps.recall, login, domain),
            partial(self._ask_inside, login, domain),
        )

    async def _answer(self, login: Login, domain: Domain, waits: Open) -> Decision | None:
        """Look up what a round of EAP asks for, and go on."""
        result = await self._eap.answer(login, domain, partial(self._lend, login, domain), waits)
        return ROUND if result is None else await self._conclude(login, domain, result)

    async def _conclude(self, login: Login, domain: Domain, result: Result) -> Decision | None:
        """What the end of a conversation comes to."""
        await self._steps.recall(login, domain)
        if result.second is not None and result.refusal is None:
            fresh = self._steps.fresh(domain)
            login.proven = True
            self._steps.note(login)
            told = Told(result.second, asked=Asked(0, result.stamp))
            decision = await self._steps.look_afresh(login, domain, told, answers_challenge=False)
            return self._steps.settle(login, fresh, decision)
        is_ours = result.first is PASSED and domain.first_factor is LOCAL
        user = await self._steps.user(domain, login.user) if is_ours else None
        return self._come_to(login, domain, result, user)

    def _come_to(self, login: Login, domain: Domain, result: Result, user: User | None) -> Decision | None:
        """The same, once all is known. user: as they are by now; the conversation took a while."""
        fresh = self._steps.fresh(domain)
        if result.by_address:
            return self._steps.let_by(login, fresh)
        if result.refusal is not None:
            return self._steps.settle(login, fresh, result.refusal)
        first = result.first
        if first is PASSED:
            is_local = domain.first_factor is LOCAL
            first = still(login, user, result.stamp) if is_local else self._steps.same_factor(fresh, result.stamp)
        return self._steps.settle(login, fresh, self._steps.judge(login, fresh, first))

    async def _ask_inside(self, login: Login, domain: Domain, session: Session | None, code: Code) -> Second | None:
        """The second factor of a login that has passed the first inside EAP, if it needs one; see `eap.service`."""
        fresh = self._steps.fresh(domain)
        await self._steps.recall(login, fresh)
        if session is not None:
            self._steps.note(login)
            told = await self._second.resume(login, session.id, session.step, code)
        elif self._steps.judge(login, fresh, PASSED) is not None:
            return Second()
        else:
            told = await self._second.ask(login, fresh, await self._steps.asked(domain, login.user))
        if told is None:
            return None
        if told.session is not None and not told.wrong_code:
            return Second(session=told.session, prompt=told.text)
        # A wrong code ends it: another try is another login, which counts.
        reason = Reason.WRONG_CODE if told.wrong_code else told.reason
        decision = decide(PASSED, Action.MFA_REQUIRED, reason, fresh.mode, fresh.fallback)
        return Second(reason, None if decision.applied is Verdict.ACCEPT else decision)
