"""The steps of a login, each a small function; what they come to is told to `decide`, the one decision function.

    who > lock-out > first factor > login rules > second factor > mode

`Pipeline.begin` decides what needs no I/O right away. Where a user is not in memory, a challenge is answered or a
second factor must be asked, it says so: `check` goes on in a task of its own, and `ask` waits for the second factor.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from sallyport.directory.principals.service import Principals
from sallyport.domains.model import Domain, FirstFactor, Mode
from sallyport.domains.service import Domains
from sallyport.endpoints.model import User
from sallyport.endpoints.service import EndpointUsers, Missing
from sallyport.inventory.devices.sightings import Sightings
from sallyport.login.bypass.model import spellings
from sallyport.login.bypass.service import Bypass
from sallyport.login.decision import decide, refuse
from sallyport.login.eap.examiners import Station
from sallyport.login.eap.service import Caller, Eap, Open, Result, Second
from sallyport.login.facts import facts_of
from sallyport.login.first.password import check_password, ends_in_code, known_as, still, typed_code
from sallyport.login.first.service import FirstFactors
from sallyport.login.first.vouched import check_vouched
from sallyport.login.identity import method_of, principal, who
from sallyport.login.lockout.service import Lockouts
from sallyport.login.model import NOTHING, Decision, Login, Method, Reason, Verdict
from sallyport.login.rules.model import UNMATCHED, Action
from sallyport.login.rules.service import LoginRules
from sallyport.login.second.conversation import Told
from sallyport.login.second.service import SecondFactor
from sallyport.login.second.session import Asked, Session
from sallyport.mfa.model import Code
from sallyport.radius.attributes import (
    CALLING_STATION_ID,
    EAP_MESSAGE,
    SESSION_TIMEOUT,
    STATE,
    combine,
    push_attribute,
)
from sallyport.radius.packet import as_text

ROUND: Final = Decision(Verdict.CHALLENGE, Verdict.CHALLENGE, "", Reason.NONE, "", "")
"""No decision, but a round of the first factor's own conversation: `login.found.challenge` is the answer; in the end of
one that was refused before, `login.found.refuse`."""
BY_ADDRESS: Final = "mac"
"""The factor of a login by MAC authentication bypass."""
_OURS: Final = frozenset({FirstFactor.LOCAL, FirstFactor.NONE})


class Pipeline:
    """Decides logins."""

    def __init__(
        self,
        domains: Domains,
        users: EndpointUsers,
        sightings: Sightings,
        rules: LoginRules,
        first: FirstFactors,
        second: SecondFactor,
        lockouts: Lockouts,
        eap: Eap,
        bypass: Bypass,
        principals: Principals,
    ) -> None:
        self._domains = domains
        self._users = users
        self._sightings = sightings
        self._rules = rules
        self._first = first
        self._second = second
        self._lockouts = lockouts
        self._eap = eap
        self._bypass = bypass
        self._principals = principals

    def begin(self, login: Login) -> Decision | None:
        """Decide without waiting; None: `check` has to go on. PacketError: a malformed password."""
        reason = who(login, self._domains.table)
        login.method = method_of(login.request)
        domain = login.domain
        if domain is None:
            return refuse(reason)
        login.factor = domain.factor
        if reason is Reason.NONE and self._bypass.admits(login, domain.id):
            return self._let_by(login, domain)
        login.imported = self._principals.cached(domain.id, login.user)
        watched = self._lockouts.some
        if reason is Reason.NONE and self._station(login, domain) is not None:
            return None
        if watched and reason is Reason.NONE and self._lockouts.refuses(login, domain):
            reason = Reason.LOCKED_OUT
        if reason is not Reason.NONE:
            return refuse(reason, domain)
        waits = login.imported is None or self._names_challenge(login) is not None
        first = None if waits else self._check_at_once(login, domain)
        if first is None:
            return None
        decision = self._judge(login, domain, first)
        if (watched or not login.proven) and decision is not None:
            self._lockouts.note(login, domain, decision)
        return decision

    def _check_at_once(self, login: Login, domain: Domain) -> Reason | None:
        """The first factor's word, where it is known without waiting."""
        if domain.first_factor is FirstFactor.LOCAL:
            user = Missing.MISSING if login.method == Method.EAP else self._users.cached(domain.id, login.user)
            return None if user is Missing.MISSING else self._check_password(login, domain, user)
        return check_vouched(login) if domain.first_factor is FirstFactor.NONE else None

    def _let_by(self, login: Login, domain: Domain) -> Decision:
        """A station that is let in by its address, unless a rule blocks it. Nobody is there to be asked for a second
        factor, and no lock-out holds or ends: it has tried no password."""
        login.method, login.factor = Method.MAB, BY_ADDRESS
        login.proven = True
        self.note(login)
        action = self._apply_rules(login, domain)
        action = Action.BLOCK if action is Action.BLOCK else Action.ALLOW
        return decide(Reason.NONE, action, Reason.NONE, domain.mode, domain.fallback)

    async def check(self, login: Login) -> Decision | None:
        """Decide a login that `begin` could not. None: the second factor must be asked. ROUND: the first factor goes
        on. StoreError, SecretError, PacketError."""
        domain = login.domain
        assert domain is not None  # noqa: S101  begin found it
        if login.proven or self._names_challenge(login) is not None:
            return None
        if login.go_on is None and self._serves_eap(login, domain):
            decision = self.converse(login)
            if decision is not None or login.go_on is None:
                return decision
        if login.go_on is not None:
            return await login.go_on()
        if domain.first_factor is FirstFactor.LOCAL:
            first = self._check_password(login, domain, await self._user(domain, login.user))
        elif domain.first_factor is FirstFactor.NONE:
            first = check_vouched(login)
        else:
            await self._recall(login, domain)
            carries_code = ends_in_code(login) and await self._second.has_codes(domain, login.principal)
            first = await self._first.check(login, domain, lambda: carries_code)
        await self._recall(login, domain)
        return self._say(login, domain, first)

    def _station(self, login: Login, domain: Domain) -> Station | None:
        """The station that a login asks for by EAP and that the domain lets in by its address."""
        key = self._bypass.admits_by_eap(login, domain.id) if login.method == Method.EAP else ""
        if not key:
            return None
        written = [each.encode() for name in spellings(key) for each in (name, name.upper())]
        return Station(written, partial(self._bypass.has, domain.id, key))

    def _serves_eap(self, login: Login, domain: Domain) -> bool:
        """Whether a login is a conversation that is held here."""
        return login.method == Method.EAP and (
            self._eap.serves(domain) or bool(self._bypass.admits_by_eap(login, domain.id))
        )

    def converse(self, login: Login) -> Decision | None:
        """Go on with a round of EAP that `begin` has left, as far as nothing has to be waited for. None: `check` has to
        go on. PacketError."""
        domain = login.domain
        if domain is None or self._names_challenge(login) is not None or not self._serves_eap(login, domain):
            return None
        lend = partial(self._lend, login, domain)
        result = self._eap.receive(login, domain, lend, self._station(login, domain))
        if isinstance(result, Open):
            login.go_on = partial(self._answer, login, domain, result)
            return None
        if result is None:
            return ROUND
        user: User | Missing | None = None
        if result.first is Reason.NONE and domain.first_factor is FirstFactor.LOCAL and not result.by_address:
            user = self._users.cached(domain.id, login.user)
        if result.second is not None or user is Missing.MISSING or not self._recalled(login, domain):
            login.go_on = partial(self._conclude, login, domain, result)
            return None
        return self._come_to(login, domain, result, user)

    def _lend(self, login: Login, domain: Domain) -> Caller:
        """What a conversation needs to have its questions answered."""
        return Caller(
            partial(principal, login, domain, self._domains.table),
            partial(self._recalled, login, domain),
            partial(self._recall, login, domain),
            partial(self._ask_inside, login, domain),
        )

    async def _answer(self, login: Login, domain: Domain, waits: Open) -> Decision | None:
        """Look up what a round of EAP asks for, and go on."""
        result = await self._eap.answer(login, domain, partial(self._lend, login, domain), waits)
        return ROUND if result is None else await self._conclude(login, domain, result)

    async def _conclude(self, login: Login, domain: Domain, result: Result) -> Decision | None:
        """What the end of a conversation comes to."""
        await self._recall(login, domain)
        if result.second is not None and result.refusal is None:
            fresh = self._fresh(domain)
            login.proven = True
            self.note(login)
            told = Told(result.second, asked=Asked(0, result.stamp))
            decision = await self._look_afresh(login, domain, told, answers_challenge=False)
            return self._settle(login, fresh, decision)
        is_ours = result.first is Reason.NONE and domain.first_factor is FirstFactor.LOCAL
        user = await self._user(domain, login.user) if is_ours else None
        return self._come_to(login, domain, result, user)

    def _come_to(self, login: Login, domain: Domain, result: Result, user: User | None) -> Decision | None:
        """The same, once all is known. user: as they are by now; the conversation took a while."""
        fresh = self._fresh(domain)
        if result.by_address:
            return self._let_by(login, fresh)
        if result.refusal is not None:
            return self._settle(login, fresh, result.refusal)
        first = result.first
        if first is Reason.NONE and domain.first_factor is FirstFactor.LOCAL:
            first = still(login, user, result.stamp)
        return self._settle(login, fresh, self._judge(login, fresh, first))

    async def _ask_inside(self, login: Login, domain: Domain, session: Session | None, code: Code) -> Second | None:
        """The second factor of a login that has passed the first inside EAP, if it needs one; see `eap.service`."""
        fresh = self._fresh(domain)
        await self._recall(login, fresh)
        if session is not None:
            self.note(login)
            told = await self._second.resume(login, session.id, session.step, code)
        elif self._judge(login, fresh, Reason.NONE) is not None:
            return Second()
        else:
            told = await self._second.ask(login, fresh, await self._asked(domain, login.user))
        if told is None:
            return None
        if told.session is not None and not told.wrong_code:
            return Second(session=told.session, prompt=told.text)
        # A wrong code ends it: another try is another login, which counts.
        reason = Reason.WRONG_CODE if told.wrong_code else told.reason
        decision = decide(Reason.NONE, Action.MFA_REQUIRED, reason, fresh.mode, fresh.fallback)
        return Second(reason, None if decision.applied is Verdict.ACCEPT else decision)

    def hand_over(self, login: Login, told: Callable[[Login, Callable[[], Decision | None]], None]) -> bool:
        """Ask a first factor that needs no task for it; `told` gets what to call for what `check` would have returned.
        False: call `check`. PacketError."""
        domain = login.domain
        if domain is None or domain.first_factor in _OURS or self._names_challenge(login) is not None:
            return False
        if login.imported is None or login.go_on is not None or self._station(login, domain) is not None:
            return False
        if login.method == Method.EAP and self._principals.has_people(domain.id):
            return False  # who it is inside EAP is not known yet
        if self._second.asks_for_codes(domain) and ends_in_code(login):
            return False  # whether the user has codes may have to be asked for
        return self._first.begin(
            login, domain, lambda: False, lambda first: told(login, lambda: self._say(login, domain, first))
        )

    def _say(self, login: Login, domain: Domain, first: Reason) -> Decision | None:
        """What the first factor's word comes to."""
        if login.found.challenge is not None:
            return ROUND
        fresh = self._fresh(domain)
        if fresh.first_factor is not domain.first_factor:
            first = Reason.FIRST_FACTOR_CHANGED
        return self._settle(login, fresh, self._judge(login, fresh, first))

    async def ask(self, login: Login) -> Decision | None:
        """Wait for the second factor; then look afresh at user, rules and mode. None: a newer request of the same
        login took its place. StoreError, SecretError, PacketError."""
        domain = login.domain
        assert domain is not None  # noqa: S101  begin found it
        await self._recall(login, domain)
        challenge = self._names_challenge(login)
        if challenge is None:
            told = await self._second.ask(login, self._fresh(domain), await self._asked(domain, login.user))
        else:
            told = await self._second.resume(login, *challenge, typed_code(login))
        if told is None:
            return None
        decision = await self._look_afresh(login, domain, told, answers_challenge=challenge is not None)
        return self._settle(login, domain, decision, wrong_code=told.wrong_code)

    async def _look_afresh(self, login: Login, domain: Domain, told: Told, *, answers_challenge: bool) -> Decision:
        if told.reason is Reason.CHALLENGE_OVER:
            return refuse(told.reason, domain)
        before, domain = domain, self._fresh(domain)
        if domain.first_factor is not before.first_factor:
            return refuse(Reason.FIRST_FACTOR_CHANGED, domain)
        if answers_challenge:
            login.found = told.found
            login.device.posture.challenge_answers += 1
            login.device.posture.takes_challenges = True
            first = await self._is_same(login, domain, told)
            # Who has a right code is who was asked; pressing Enter proves nothing.
            login.proven = told.reason is Reason.NONE and login.code is not None
        elif domain.first_factor is FirstFactor.LOCAL:
            had_code = login.code is not None
            user = await self._user(domain, login.user)
            if EAP_MESSAGE in login.request.first:
                first = still(login, user, told.asked.stamp)
            else:
                first = known_as(login, user, check_password(login, user, lambda: had_code))
        else:  # one login is one question to the directory or the other server
            first = Reason.NONE
        await self._recall(login, domain)
        action = self._apply_rules(login, domain) if first is Reason.NONE else UNMATCHED
        decision = decide(first, action, told.reason, domain.mode, domain.fallback)
        if decision.applied is Verdict.CHALLENGE:
            login.device.posture.challenges += 1
            login.attributes = self._second.challenges.attributes(told)
        login.keep = self._second.challenges.keep(told)
        return decision

    def _check_password(self, login: Login, domain: Domain, user: User | None) -> Reason:
        return known_as(login, user, check_password(login, user, lambda: self._second.takes_codes(domain, login.user)))

    def _judge(self, login: Login, domain: Domain, first: Reason) -> Decision | None:
        """Rules, and what of the second factor is known without asking. None: it must be asked."""
        if first is not Reason.NONE:
            return refuse(first, domain)
        login.proven = True
        self.note(login)
        action = self._apply_rules(login, domain)
        second: Reason | None = Reason.NONE
        if action is Action.MFA_REQUIRED:
            if domain.mode is Mode.MONITOR:
                second = self._second.forecast(login, domain)
            else:
                second = self._second.at_once(domain)
            if second is None:
                return None
        return decide(first, action, second, domain.mode, domain.fallback)

    def _settle(
        self, login: Login, domain: Domain, decision: Decision | None, *, wrong_code: bool = False
    ) -> Decision | None:
        """Tell the lock-outs what was decided. A login is refused that was locked out while it was being decided."""
        if decision is None:
            return None
        if self._lockouts.some and self._lockouts.refuses(login, domain):
            login.found = NOTHING  # what another server says to a wrong password would tell it from a right one
            return refuse(Reason.LOCKED_OUT, domain)
        self._lockouts.note(login, domain, decision, wrong_code=wrong_code)
        return decision

    def _apply_rules(self, login: Login, domain: Domain) -> Action:
        """The action of the domain's rules. The login gets the reply attributes of the one that matches, which go
        before what the first factor found."""
        rules, found = self._rules.of(domain.id), login.found.accept
        if login.found.session_s is not None:
            found += push_attribute(SESSION_TIMEOUT, login.found.session_s.to_bytes(4))
        login.attributes = found
        if rules is None:
            return UNMATCHED
        rule = rules.match(facts_of(login))
        if rule is None:
            return UNMATCHED
        login.attributes = combine(found, rule.attributes) if found else rule.attributes
        return rule.action

    def abandoned(self, login: Login) -> None:
        """A decided login could not be recorded: it gets no answer, and is as if it had not been."""
        self._lockouts.take_back(login)

    def note(self, login: Login) -> None:
        """Tell the inventory of a login whose sender is proven, once (decisions.md, Unsigned requests)."""
        if login.noted or login.home is None:
            return
        request, source, at = login.request, login.source[0], login.at
        login.noted = True
        login.device = device = self._sightings.device(request, source, login.client, login.home.id, at)
        device.posture.count(request, at)
        station = request.first.get(CALLING_STATION_ID)
        if station:
            login.station = as_text(station)
            login.behind = self._sightings.station(device, login.station, login.user, at)

    def _recalled(self, login: Login, domain: Domain) -> bool:
        """Know from memory what the domain's directories say of the user, as it is now. False: `_recall`."""
        login.imported = self._principals.cached(domain.id, login.user)
        return login.imported is not None

    async def _recall(self, login: Login, domain: Domain) -> None:
        """Know what the domain's directories say of the user, as it is now. StoreError."""
        if not self._recalled(login, domain):
            realms = (domain.name, *domain.realms)
            login.imported = await self._principals.find(domain.id, login.user, realms)

    async def _user(self, domain: Domain, name: str) -> User | None:
        """From memory, which is exact after each change, or from the store. StoreError, SecretError."""
        user = self._users.cached(domain.id, name)
        return await self._users.load(domain.id, name) if user is Missing.MISSING else user

    async def _asked(self, domain: Domain, name: str) -> Asked:
        """Whom a second factor is asked of. StoreError, SecretError."""
        user = await self._user(domain, name) if domain.first_factor is FirstFactor.LOCAL else None
        return Asked(0 if user is None else user.id, "" if user is None else user.stamp, domain.factor)

    async def _is_same(self, login: Login, domain: Domain, told: Told) -> Reason:
        """Whether the user of a challenge is who it was sent to, with the same password; and what is known now."""
        if told.asked.factor != domain.factor:
            return Reason.FIRST_FACTOR_CHANGED
        if domain.first_factor is not FirstFactor.LOCAL:
            return Reason.NONE
        user = await self._user(domain, login.user)
        if user is None or user.id != told.asked.user_id:
            return Reason.UNKNOWN_USER
        return known_as(login, user, Reason.NONE if user.stamp == told.asked.stamp else Reason.WRONG_PASSWORD)

    def _names_challenge(self, login: Login) -> tuple[str, int] | None:
        state = login.request.first.get(STATE)
        return None if state is None or login.domain is None else self._second.challenges.named(login.domain.id, state)

    def _fresh(self, domain: Domain) -> Domain:
        """The domain as it is now: it took a while."""
        return self._domains.table.by_id.get(domain.id, domain)
