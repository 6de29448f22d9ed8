"""What the steps of a login have in common, however it came: rules, second factor and mode once the first factor is
passed, what the inventory and the lock-outs hear of it, and what is known of its user."""

from typing import Final

from sallyport.directory.principals.service import Principals
from sallyport.domains.model import LOCAL, MONITOR, Domain, FirstFactor
from sallyport.domains.service import Domains
from sallyport.endpoints.model import User
from sallyport.endpoints.service import MISSING, EndpointUsers
from sallyport.inventory.devices.sightings import Sightings, new_device
from sallyport.login.decision import decide, refuse
from sallyport.login.facts import facts_of
from sallyport.login.first.password import check_password, known_as, still
from sallyport.login.first.service import FirstFactors
from sallyport.login.first.vouched import check_vouched
from sallyport.login.model import NOTHING, PASSED, Decision, Login, Reason, Verdict
from sallyport.login.second.conversation import Told
from sallyport.login.second.service import SecondFactor
from sallyport.login.second.session import Asked
from sallyport.policy.lockouts.service import Lockouts
from sallyport.policy.rules.model import MFA_REQUIRED, UNMATCHED, Action
from sallyport.policy.rules.service import LoginRules
from sallyport.radius.attributes import (
    CALLING_STATION_ID,
    EAP_MESSAGE,
    SESSION_TIMEOUT,
    STATE,
    combine,
    push_attribute,
)
from sallyport.radius.method import Method
from sallyport.radius.packet import as_text

BY_ADDRESS: Final = "mac"
"""The factor of a login by MAC authentication bypass."""


class Steps:
    """The steps that each way through a login takes."""

    def __init__(
        self,
        domains: Domains,
        users: EndpointUsers,
        sightings: Sightings,
        rules: LoginRules,
        first: FirstFactors,
        second: SecondFactor,
        lockouts: Lockouts,
        principals: Principals,
    ) -> None:
        self._domains = domains
        self._users = users
        self._sightings = sightings
        self._rules = rules
        self._first = first
        self._second = second
        self._lockouts = lockouts
        self._principals = principals

    def let_by(self, login: Login, domain: Domain) -> Decision:
        """A station that is let in by its address, unless a rule blocks it. Nobody is there to be asked for a second
        factor, and no lock-out holds or ends: it has tried no password."""
        login.method, login.factor = Method.MAB, BY_ADDRESS
        login.proven = True
        self.note(login)
        action = self._apply_rules(login, domain)
        action = Action.BLOCK if action is Action.BLOCK else Action.ALLOW
        return decide(PASSED, action, PASSED, domain.mode, domain.fallback)

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

    def judge(self, login: Login, domain: Domain, first: Reason) -> Decision | None:
        """Rules, and what of the second factor is known without asking. None: it must be asked."""
        if first is not PASSED:
            return refuse(first, domain)
        login.proven = True
        self.note(login)
        action = self._apply_rules(login, domain)
        second: Reason | None = PASSED
        if action is MFA_REQUIRED:
            monitored = domain.mode is MONITOR
            second = self._second.forecast(login, domain) if monitored else self._second.at_once(domain)
            if second is None:
                return None
        return decide(first, action, second, domain.mode, domain.fallback)

    async def look_afresh(self, login: Login, domain: Domain, told: Told, *, answers_challenge: bool) -> Decision:
        """Decide a login whose second factor was asked, by what has become of user, rules and mode meanwhile."""
        if told.reason is Reason.CHALLENGE_OVER:
            return refuse(told.reason, domain)
        login.approved = told.reason is PASSED
        before, domain = domain, self.fresh(domain)
        if domain.first_factor is not before.first_factor:
            return refuse(Reason.FIRST_FACTOR_CHANGED, domain)
        if answers_challenge:
            login.found = told.found
            login.device.posture.challenge_answers += 1
            login.device.posture.takes_challenges = True
            first = await self._is_same(login, domain, told)
            # Who has a right code is who was asked; pressing Enter proves nothing.
            login.proven = told.reason is PASSED and login.code is not None
        elif domain.first_factor is LOCAL:
            had_code = login.code is not None
            user = await self.user(domain, login.user)
            if EAP_MESSAGE in login.request.first:
                first = still(login, user, told.asked.stamp)
            else:
                first = known_as(login, user, check_password(login, user, lambda: had_code))
        else:  # one login is one question to the directory or the other server
            first = self.same_factor(domain, told.asked.stamp)
        await self.recall(login, domain)
        action = self._apply_rules(login, domain) if first is PASSED else UNMATCHED
        decision = decide(first, action, told.reason, domain.mode, domain.fallback)
        if decision.applied is Verdict.CHALLENGE:
            login.device.posture.challenges += 1
            login.attributes = self._second.challenges.attributes(told)
        login.keep = self._second.challenges.keep(told)
        return decision

    def settle(
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

    def recalled(self, login: Login, domain: Domain) -> bool:
        """Know from memory what the domain's directories say of the user, as it is now. False: `recall`."""
        login.imported = self._principals.cached(domain.id, login.user)
        return login.imported is not None

    async def recall(self, login: Login, domain: Domain) -> None:
        """Know what the domain's directories say of the user, as it is now. StoreError."""
        if not self.recalled(login, domain):
            realms = (domain.name, *domain.realms)
            login.imported = await self._principals.find(domain.id, login.user, realms)

    async def user(self, domain: Domain, name: str) -> User | None:
        """From memory, which is exact after each change, or from the store. StoreError, SecretError."""
        user = self._users.cached(domain.id, name)
        return await self._users.load(domain.id, name) if user is MISSING else user

    async def asked(self, domain: Domain, name: str) -> Asked:
        """Whom a second factor is asked of. StoreError, SecretError."""
        if domain.first_factor is not LOCAL:
            return Asked(0, self._first.stamp(domain), domain.factor)
        user = await self.user(domain, name)
        return Asked(0, "", domain.factor) if user is None else Asked(user.id, user.stamp, domain.factor)

    def fresh(self, domain: Domain) -> Domain:
        """The domain as it is now: it took a while."""
        return self._domains.table.by_id.get(domain.id, domain)

    def same_factor(self, domain: Domain, stamp: str) -> Reason:
        """Whether who has checked a password is who would be asked now: in another directory the same name is somebody
        else's. stamp: of the first factor's configuration then."""
        return PASSED if stamp == self._first.stamp(domain) else Reason.FIRST_FACTOR_CHANGED

    def names_challenge(self, login: Login) -> tuple[str, int] | None:
        """The challenge of ours and its step that a login answers; None: it answers none."""
        state = login.request.first.get(STATE)
        return None if state is None or login.domain is None else self._second.challenges.named(login.domain.id, state)

    def check_password(self, login: Login, domain: Domain, user: User | None) -> Reason:
        """Whether what came is the password of a user who is kept here. PacketError: it is malformed."""
        first = check_password(login, user, lambda: self._second.takes_codes(domain, login.user))
        return known_as(login, user, first)

    async def _is_same(self, login: Login, domain: Domain, told: Told) -> Reason:
        """Whether the user of a challenge is who it was sent to, with the same password; and what is known now."""
        if told.asked.factor != domain.factor:
            return Reason.FIRST_FACTOR_CHANGED
        if domain.first_factor is FirstFactor.NONE:
            return check_vouched(login)
        if domain.first_factor is not LOCAL:
            return self.same_factor(domain, told.asked.stamp)
        user = await self.user(domain, login.user)
        if user is None or user.id != told.asked.user_id:
            return Reason.UNKNOWN_USER
        return known_as(login, user, PASSED if user.stamp == told.asked.stamp else Reason.WRONG_PASSWORD)

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


def show_unproven(login: Login) -> None:
    """An event shows the device of any login; the inventory keeps those whose sender is proven."""
    login.device = new_device(login.request, login.source[0], 0, login.at)
    login.device.id = 0
    login.station = as_text(login.request.first.get(CALLING_STATION_ID, b""))
