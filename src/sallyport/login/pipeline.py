"""The steps of a login, from the request to its decision.

    who > bypass > lock-out > first factor > login rules > second factor > mode

`Pipeline.begin` decides a login that needs no I/O, by plain function calls. It returns None if a user is not in
memory, another server checks the password, a challenge is answered, or a second factor must be asked. The caller then
runs `check` in a task, and `ask` if `check` returns None too. `eap.rounds` takes a login by EAP through the same steps.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from sallyport.certs.credentials import Credentials
from sallyport.directory.principals import Principals
from sallyport.domains.domain import LOCAL, MONITOR, Domain, DomainTable, FirstFactor
from sallyport.endpoints.service import MISSING, EndpointUsers
from sallyport.endpoints.user import User
from sallyport.inventory.devices.sightings import Sightings, new_device
from sallyport.login.decision import ROUND, decide, refuse
from sallyport.login.eap.rounds import Rounds
from sallyport.login.first.password import check_password, check_vouched, ends_in_code, known_as, still, typed_code
from sallyport.login.first.service import FirstFactors
from sallyport.login.identity import facts_of, who
from sallyport.login.login import NOTHING, PASSED, Decision, Login, Reason, Verdict
from sallyport.login.second.conversation import SecondFactorResult
from sallyport.login.second.service import SecondFactor
from sallyport.login.second.session import Asked
from sallyport.policy.bypass.service import Bypass
from sallyport.policy.lockouts.service import Lockouts
from sallyport.policy.rules.rule import MFA_REQUIRED, UNMATCHED, Action
from sallyport.policy.rules.service import LoginRules
from sallyport.radius.attributes import (
    CALLING_STATION_ID,
    EAP_MESSAGE,
    SESSION_TIMEOUT,
    STATE,
    combine,
    push_attribute,
)
from sallyport.radius.packet import as_text
from sallyport.radius.password import Method, hides_garbage, method_of
from sallyport.store.snapshot import Snapshot

BY_ADDRESS: Final = "mac"
"""The factor of a login by MAC authentication bypass."""
_CHECKED_HERE: Final = frozenset({FirstFactor.LOCAL, FirstFactor.NONE})


@dataclass(slots=True, eq=False, repr=False)
class Pipeline:
    """Decides logins.

    domains: the current table. credentials: the current server certificate for EAP. certificate_tenant: the tenant that
    a client certificate was issued for, by its SHA-256 in hex.
    """

    domains: Snapshot[DomainTable]
    bypass: Bypass
    principals: Principals
    lockouts: Lockouts
    users: EndpointUsers
    first: FirstFactors
    sightings: Sightings
    rules: LoginRules
    second: SecondFactor
    credentials: Callable[[], Credentials | None]
    certificate_tenant: Callable[[str], int | None]
    rounds: Rounds = field(init=False)

    def __post_init__(self) -> None:
        self.rounds = Rounds(self)

    # --- a request arrives ------------------------------------------------------------------------------------

    def begin(self, login: Login) -> Decision | None:
        """Decide without waiting; None: `check` has to go on. PacketError: a malformed password."""
        reason = who(login, self.domains.value)
        login.method = method_of(login.request)
        domain = login.domain
        if domain is None:
            return refuse(reason)
        login.factor = domain.factor
        login.outside = login.method == Method.EAP and domain.first_factor is not FirstFactor.NONE
        if reason is PASSED and self.bypass.some and self.bypass.admits(login, domain.id):
            return self.admit_station(login, domain)
        login.imported = self.principals.cached(domain.id, login.user)
        if reason is not PASSED:
            return refuse(reason, domain)
        watched = self.lockouts.some
        if watched and not self._is_by_station(login, domain) and self.lockouts.refuses(login, domain):
            return refuse(Reason.LOCKED_OUT, domain)
        first = self._check_at_once(login, domain)
        if first is None:
            return None
        decision = self.judge(login, domain, first)
        if (watched or not login.proven) and decision is not None:
            self.lockouts.note(login, domain, decision)
        return decision

    def converse(self, login: Login) -> Decision | None:
        """Go on with a round of EAP that `begin` has left, see `Rounds.converse`."""
        return self.rounds.converse(login)

    def hand_over(self, login: Login, decided: Callable[[Login, Callable[[], Decision | None]], None]) -> bool:
        """Ask a first factor that needs no task for it; `decided` gets a function that returns what `check` would have
        returned. False: call `check`. Raises PacketError."""
        domain = login.domain
        if (
            domain is None
            or domain.first_factor in _CHECKED_HERE
            or login.imported is None
            or login.continuation is not None
        ):
            return False
        if STATE in login.request.first and self.names_challenge(login) is not None:
            return False
        if login.method == Method.EAP and (
            self.rounds.station(login, domain) is not None or self.principals.has_people(domain.id)
        ):
            return False  # the name inside EAP is not known yet
        if self.second.asks_for_codes(domain) and ends_in_code(login):
            return False  # whether the user has codes may need a look-up
        return self.first.begin(
            login, domain, _no_code, lambda first: decided(login, lambda: self._after_first(login, domain, first))
        )

    async def check(self, login: Login) -> Decision | None:
        """Decide a login that `begin` could not. None: the second factor must be asked. ROUND: the first factor goes
        on. Raises StoreError, SecretError, PacketError."""
        domain = login.domain
        assert domain is not None  # noqa: S101  begin found it
        if login.proven or self.names_challenge(login) is not None:
            return None
        if login.continuation is None and self.rounds.serves(login, domain):
            decision = self.rounds.converse(login)
            if decision is not None or login.continuation is None:
                return decision
        if login.continuation is not None:
            return await login.continuation()
        if domain.first_factor is LOCAL:
            first = self._check_password(login, domain, await self.user(domain, login.user))
        elif domain.first_factor is FirstFactor.NONE:
            first = check_vouched(login)
        else:
            await self.recall(login, domain)
            carries_code = ends_in_code(login) and await self.second.has_codes(domain, login.principal)
            first = await self.first.check(login, domain, lambda: carries_code)
        await self.recall(login, domain)
        return self._after_first(login, domain, first)

    def after_wait(self, login: Login, decision: Decision) -> Decision:
        """Return the decision on a login that has waited: a refusal if its domain was removed meanwhile. The provider
        and the rules went with the domain, so the decision may be that of a domain without them."""
        domain = login.domain
        if domain is None or domain.id in self.domains.value.by_id:
            return decision
        login.found = NOTHING
        return refuse(Reason.DOMAIN_REMOVED, domain)

    def abandoned(self, login: Login) -> None:
        """Undo a decided login that could not be recorded: it gets no answer."""
        self.lockouts.take_back(login)

    # --- who logs in ------------------------------------------------------------------------------------------

    def admit_station(self, login: Login, domain: Domain) -> Decision:
        """Let a station in by its address, unless a rule blocks it. It has no user to ask for a second factor, and no
        lock-out holds or ends: it has tried no password."""
        login.method, login.factor = Method.MAB, BY_ADDRESS
        login.proven = True
        self.note(login)
        action = self.action_for_station(self._apply_rules(login, domain))
        return decide(PASSED, action, PASSED, domain.mode, domain.fallback)

    @staticmethod
    def action_for_station(action: Action) -> Action:
        """Return the action of the rules for a station that is admitted by its address: it has no user to prompt."""
        return Action.BLOCK if action is Action.BLOCK else Action.ALLOW

    def _is_by_station(self, login: Login, domain: Domain) -> bool:
        """Return whether it is a conversation with a station that may be admitted by its address."""
        return login.method == Method.EAP and self.rounds.station(login, domain) is not None

    def recalled(self, login: Login, domain: Domain) -> bool:
        """Set from memory what the domain's directories say of the user, as it is now. False: call `recall`."""
        login.imported = self.principals.cached(domain.id, login.user)
        return login.imported is not None

    async def recall(self, login: Login, domain: Domain) -> None:
        """Set what the domain's directories say of the user, as it is now. Raises StoreError."""
        if not self.recalled(login, domain):
            realms = (domain.name, *domain.realms)
            login.imported = await self.principals.find(domain.id, login.user, realms)

    async def user(self, domain: Domain, name: str) -> User | None:
        """Return a user from memory, which is exact after each change, or from the store. Raises StoreError,
        SecretError."""
        user = self.users.cached(domain.id, name)
        return await self.users.load(domain.id, name) if user is MISSING else user

    def note(self, login: Login) -> None:
        """Report a login to the inventory; its sender is proven. A second call has no effect."""
        if login.noted or login.home is None:
            return
        request, source, at = login.request, login.source[0], login.at
        login.noted = True
        login.device = device = self.sightings.device(request, source, login.client, login.home.id, at)
        device.posture.count(request, at)
        station = request.first.get(CALLING_STATION_ID)
        if station:
            login.station = as_text(station)
            login.behind = self.sightings.station(device, login.station, login.user, at)

    # --- first factor -----------------------------------------------------------------------------------------

    def _check_at_once(self, login: Login, domain: Domain) -> Reason | None:
        """Return the first factor's result, or None if `check` has to find it out. EAP has one here only if another
        server has checked it."""
        vouched = domain.first_factor is FirstFactor.NONE
        if login.method == Method.EAP and (not vouched or self._is_by_station(login, domain)):
            return None
        answers = STATE in login.request.first and self.names_challenge(login) is not None
        if answers or login.imported is None:
            return None
        if domain.first_factor is LOCAL:
            user = self.users.cached(domain.id, login.user)
            return None if user is MISSING else self._check_password(login, domain, user)
        return check_vouched(login) if vouched else None

    def _check_password(self, login: Login, domain: Domain, user: User | None) -> Reason:
        """Check the password of an endpoint user. PacketError: it is malformed."""
        first = check_password(login, user, lambda: self.second.takes_codes(domain, login.user))
        return known_as(login, user, first)

    def _after_first(self, login: Login, domain: Domain, first: Reason) -> Decision | None:
        """Go on once the first factor has answered. None: the second factor must be asked."""
        if login.found.challenge is not None:
            return ROUND
        fresh = self.fresh(domain)
        if fresh.first_factor is not domain.first_factor:
            first = Reason.FIRST_FACTOR_CHANGED
        return self.settle(login, fresh, self.judge(login, fresh, first))

    def same_factor(self, domain: Domain, stamp: str) -> Reason:
        """Return PASSED if the first factor that checked a password would be asked now too: in another directory the
        same name is another person's. stamp: of the first factor's configuration then."""
        return PASSED if stamp == self.first.stamp(domain) else Reason.FIRST_FACTOR_CHANGED

    # --- login rules ------------------------------------------------------------------------------------------

    def judge(self, login: Login, domain: Domain, first: Reason) -> Decision | None:
        """Decide by the first factor's result and the rules. None: the second factor must be asked."""
        if first is not PASSED:
            is_unsure = first is Reason.WRONG_PASSWORD and hides_garbage(login.request, login.client.secret)
            return refuse(Reason.WRONG_PASSWORD_OR_SECRET if is_unsure else first, domain)
        login.proven = True
        self.note(login)
        action = self._apply_rules(login, domain)
        second: Reason | None = PASSED
        if action is MFA_REQUIRED:
            monitored = domain.mode is MONITOR
            second = self.second.forecast(login, domain) if monitored else self.second.at_once(domain)
            if second is None:
                return None
        return decide(first, action, second, domain.mode, domain.fallback)

    def _apply_rules(self, login: Login, domain: Domain) -> Action:
        """Return the action of the domain's rules. The login gets the reply attributes of the one that matches; they
        take precedence over those of the first factor."""
        rules, found = self.rules.of(domain.id), login.found.accept
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

    def settle(
        self, login: Login, domain: Domain, decision: Decision | None, *, wrong_code: bool = False
    ) -> Decision | None:
        """Count a decision for the lock-outs. A login that was locked out while it was being decided is refused."""
        if decision is None:
            return None
        if self.lockouts.some and self.lockouts.refuses(login, domain):
            login.found = NOTHING  # what another server says to a wrong password would tell it from a right one
            return refuse(Reason.LOCKED_OUT, domain)
        self.lockouts.note(login, domain, decision, wrong_code=wrong_code)
        return decision

    # --- second factor ----------------------------------------------------------------------------------------

    async def ask(self, login: Login) -> Decision | None:
        """Wait for the second factor, then decide by user, rules and mode as they are now. None: a newer request of the
        same login took its place. Raises StoreError, SecretError, PacketError."""
        domain = login.domain
        assert domain is not None  # noqa: S101  begin found it
        await self.recall(login, domain)
        challenge = self.names_challenge(login)
        if challenge is None:
            result = await self.second.ask(login, self.fresh(domain), await self.asked(domain, login.user))
        else:
            login.outside = False  # only the user who got a challenge answers it
            result = await self.second.resume(login, *challenge, typed_code(login))
        if result is None:
            return None
        decision = await self.decide_afresh(login, domain, result, answers_challenge=challenge is not None)
        return self.settle(login, domain, decision, wrong_code=result.wrong_code)

    def names_challenge(self, login: Login) -> tuple[str, int] | None:
        """Return the challenge of ours that a login answers, and its step; None if it answers none."""
        state = login.request.first.get(STATE)
        return None if state is None or login.domain is None else self.second.challenges.named(login.domain.id, state)

    async def asked(self, domain: Domain, name: str) -> Asked:
        """Return the user to ask for a second factor. Raises StoreError, SecretError."""
        if domain.first_factor is not LOCAL:
            return Asked(0, self.first.stamp(domain), domain.factor)
        user = await self.user(domain, name)
        return Asked(0, "", domain.factor) if user is None else Asked(user.id, user.stamp, domain.factor)

    def fresh(self, domain: Domain) -> Domain:
        """Return the domain as it is now; it may have changed while the login waited."""
        return self.domains.value.by_id.get(domain.id, domain)

    async def decide_afresh(
        self, login: Login, domain: Domain, result: SecondFactorResult, *, answers_challenge: bool
    ) -> Decision:
        """Decide a login whose second factor was asked, by user, rules and mode as they are now."""
        if result.reason is Reason.CHALLENGE_OVER:
            return refuse(result.reason, domain)
        login.approved = result.reason is PASSED
        before, domain = domain, self.fresh(domain)
        if domain.first_factor is not before.first_factor:
            return refuse(Reason.FIRST_FACTOR_CHANGED, domain)
        if answers_challenge:
            login.found = result.found
            login.device.posture.challenge_answers += 1
            login.device.posture.takes_challenges = True
            first = await self._is_same_user(login, domain, result)
            # A right code proves that the sender is the user; pressing Enter proves nothing.
            login.proven = result.reason is PASSED and login.code is not None
        elif domain.first_factor is LOCAL:
            had_code = login.code is not None
            user = await self.user(domain, login.user)
            if EAP_MESSAGE in login.request.first:
                first = still(login, user, result.asked.stamp)
            else:
                first = known_as(login, user, check_password(login, user, lambda: had_code))
        else:  # one login is one question to the directory or the other server
            first = self.same_factor(domain, result.asked.stamp)
        await self.recall(login, domain)
        action = self._apply_rules(login, domain) if first is PASSED else UNMATCHED
        decision = decide(first, action, result.reason, domain.mode, domain.fallback)
        if decision.applied is Verdict.CHALLENGE:
            login.device.posture.challenges += 1
            login.attributes = self.second.challenges.attributes(result)
        login.keep = self.second.keep(result)
        return decision

    async def _is_same_user(self, login: Login, domain: Domain, result: SecondFactorResult) -> Reason:
        """Return PASSED if the challenge was sent to this user, whose password is still the same."""
        if result.asked.factor != domain.factor:
            return Reason.FIRST_FACTOR_CHANGED
        if domain.first_factor is FirstFactor.NONE:
            return check_vouched(login)
        if domain.first_factor is not LOCAL:
            return self.same_factor(domain, result.asked.stamp)
        user = await self.user(domain, login.user)
        if user is None or user.id != result.asked.user_id:
            return Reason.UNKNOWN_USER
        return known_as(login, user, PASSED if user.stamp == result.asked.stamp else Reason.WRONG_PASSWORD)


def show_unproven(login: Login) -> None:
    """Give a login a device that only its event shows: the inventory keeps devices whose sender is proven."""
    login.device = new_device(login.request, login.source[0], 0, login.at)
    login.device.id = 0
    login.station = as_text(login.request.first.get(CALLING_STATION_ID, b""))


def _no_code() -> bool:
    """Return False: no code follows the password."""
    return False
