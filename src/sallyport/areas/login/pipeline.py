"""The steps of a login, from the request to the decision.

    identity > bypass > lock-out > first factor > login rules > second factor > mode

`Pipeline.begin` decides a login without I/O, if possible. It returns None if I/O is needed: the user is not in memory,
another server checks the password, the login answers a challenge, or the user must be asked for a second factor. The
caller then runs `check` in a task. If `check` returns None as well, the caller runs `ask`. `eap.rounds` uses the same
steps for logins by EAP.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import trio

from sallyport.areas.clients.client import is_check
from sallyport.areas.devices.sightings import Sightings, new_device
from sallyport.areas.directory.principals import NOBODY, Principals
from sallyport.areas.domains.domain import LOCAL, MONITOR, RULES, Domain, DomainTable, FirstFactor
from sallyport.areas.login.decision import LOCKED, ROUND, decide, refuse
from sallyport.areas.login.facts import facts_of
from sallyport.areas.login.first.password import (
    check_password,
    check_vouched,
    ends_in_code,
    known,
    typed_code,
)
from sallyport.areas.login.first.service import FirstFactors
from sallyport.areas.login.identity import BY_ADDRESS, BY_UNKNOWN_ADDRESS, hides_user, identify
from sallyport.areas.login.limit import SessionLimits
from sallyport.areas.login.login import NOTHING, PASSED, Decision, FirstFactorResult, Login, Reason, Verdict, Waits
from sallyport.areas.login.second.conversation import SecondFactorResult
from sallyport.areas.login.second.forecast import UNAVAILABLE
from sallyport.areas.login.second.service import SecondFactor
from sallyport.areas.login.second.session import Asked
from sallyport.areas.mfa.circuit import Attached, Providers, Unavailable
from sallyport.areas.policy.bypass.match import requested_station, requested_station_by_eap
from sallyport.areas.policy.bypass.service import Bypass
from sallyport.areas.policy.bypass.station import Entry
from sallyport.areas.policy.lockouts.failures import Failure
from sallyport.areas.policy.lockouts.service import Lockouts
from sallyport.areas.policy.roles.service import Roles, product_of
from sallyport.areas.policy.rules.rule import MFA_REQUIRED, UNMATCHED, Action
from sallyport.areas.policy.rules.service import LoginRules
from sallyport.areas.users.service import MISSING, EndpointUsers
from sallyport.areas.users.user import User
from sallyport.base.clock import SECOND
from sallyport.base.mac import mac_key
from sallyport.radius.attributes import (
    CALLING_STATION_ID,
    EAP_MESSAGE,
    SESSION_TIMEOUT,
    STATE,
    combine,
    combined,
    push_attribute,
)
from sallyport.radius.packet import as_text
from sallyport.radius.password import Method, hides_garbage, method_of
from sallyport.store.snapshot import Snapshot

Known = Mapping[str, object]
"""Facts of a login that no device has sent, by the names of the fields of `Facts`."""
_CHECKED_HERE: Final = frozenset({FirstFactor.LOCAL, FirstFactor.NONE})


@dataclass(slots=True, eq=False, repr=False)
class Pipeline:
    """The steps that decide a login.

    domains: the current domains. now: a function that returns the seconds of a monotonic clock.
    """

    domains: Snapshot[DomainTable]
    bypass: Bypass
    principals: Principals
    lockouts: Lockouts
    users: EndpointUsers
    first: FirstFactors
    sightings: Sightings
    rules: LoginRules
    roles: Roles
    providers: Providers
    second: SecondFactor
    limits: SessionLimits
    now: Callable[[], float] = trio.current_time

    # --- arrival of a request ----------------------------------------------------------------------------------

    def begin(self, login: Login) -> Decision | None:
        """Decide a login without waiting. Return None if the caller must await `check`. Raises PacketError if the
        password field is malformed."""
        login.home, login.domain, login.user, reason = identify(login.arrival, self.domains.value)
        login.method = method_of(login.arrival.request)
        domain = login.domain
        if domain is None:
            return refuse(reason)
        login.factor = domain.factor
        login.outside = login.method == Method.EAP and domain.first_factor is not FirstFactor.NONE
        by_station = self.bypass.some or domain.unknown_stations is RULES
        if by_station and reason is PASSED and self.bypass.requested(login.arrival, login.method, domain):
            return self.decide_station(login, domain)
        is_inhabited = domain.id in self.principals.inhabited
        login.imported = self.principals.cached(domain.id, login.user) if is_inhabited else NOBODY
        if reason is not PASSED:
            if not hides_user(login, reason):
                return refuse(reason, domain)
            login.user = ""
        login.provider = self.providers.of(domain.id)
        watched = self.lockouts.some
        if watched and not self.is_by_station(login, domain):
            lock = self.lockouts.refuses(login.attempt(domain))
            if lock is not None:
                return refuse(LOCKED[lock], domain)
        first = self._check_at_once(login, domain)
        if first is None:
            return None
        decision = self.judge(login, domain, first)
        if (watched or not login.proven) and decision is not None:
            self._count(login, domain, decision)
        return decision

    def hand_over(self, login: Login, decided: Callable[[Login, Callable[[], Decision | None]], None]) -> bool:
        """Start to check a login at another server without a task. Raises PacketError.

        Return True if the check has started. `decided` is then called later, with the login and with a function that
        returns the same result as `check`. Return False if the caller must await `check` instead.
        """
        domain = login.domain
        if (
            domain is None
            or domain.first_factor in _CHECKED_HERE
            or login.imported is None
            or login.continuation is not None
        ):
            return False
        if STATE in login.arrival.request.first and self.names_challenge(login) is not None:
            return False
        is_inhabited = domain.id in self.principals.inhabited
        if login.method == Method.EAP and (is_inhabited or self.is_by_station(login, domain)):
            return False  # the inner name is not known yet
        if _may_carry_code(login):
            return False  # it may need a look-up to know whether the user has codes
        began = self.now()

        def done(result: FirstFactorResult) -> None:
            login.waits = self._waited(began)
            login.take_first(result)
            decided(login, lambda: self._after_first(login, domain, result.reason))

        return self.first.begin(login, domain, _no_code, done)

    def _waited(self, began: float) -> Waits:
        """Return the waits of a login whose first factor another server has checked. began: when the check started."""
        return Waits(first_us=round((self.now() - began) * SECOND))

    async def check(self, login: Login) -> Decision | None:
        """Decide a login that neither `begin` nor `converse` has decided. Return None if the caller must await `ask`.
        Return ROUND if the first factor must exchange more messages with the client. Raises StoreError, SecretError,
        PacketError."""
        domain = login.domain
        assert domain is not None  # noqa: S101  begin found it
        if login.proven or self.names_challenge(login) is not None:
            return None
        if login.continuation is not None:
            continuation, login.continuation = login.continuation, None  # it refers to the login
            return await continuation()
        self.refresh(login, domain)  # the login has waited for its turn
        if domain.first_factor is LOCAL:
            first = self._check_password(login, domain, await self.user(domain, login.user))
        elif domain.first_factor is FirstFactor.NONE:
            first = check_vouched(login.arrival)
        else:
            await self.recall(login, domain)
            began = self.now()
            carries_code = _may_carry_code(login) and await self.has_codes(domain, login.principal)
            result = await self.first.check(login, domain, lambda: carries_code)
            login.waits = self._waited(began)
            login.take_first(result)
            first = result.reason
        await self.recall(login, domain)
        return self._after_first(login, domain, first)

    def after_wait(self, login: Login, decision: Decision) -> Decision:
        """Return the final decision on a login that has waited. If the domain was removed in the meantime, return a
        refusal. A removed domain has no provider and no rules, so `decision` may have been made without them. Otherwise
        return `decision`."""
        domain = login.domain
        if domain is None or domain.id in self.domains.value.by_id:
            return decision
        login.found, login.rule = NOTHING, None
        return refuse(Reason.DOMAIN_REMOVED, domain)

    def abandoned(self, login: Login) -> None:
        """Remove a decided login from the counts of the lock-outs, because the login could not be stored and gets no
        answer."""
        self._take_back(login)

    def left(self, login: Login) -> None:
        """Remove a decided login from the counts of the lock-outs, because another node answers and counts it."""
        self._take_back(login)
        self.second.left(login)

    def _take_back(self, login: Login) -> None:
        if login.ending is not None:
            login.ending.reopen()
        if login.domain is not None and self.lockouts.some:
            self.lockouts.take_back(login.attempt(login.domain))

    # --- the user or station -----------------------------------------------------------------------------------

    def decide_station(self, login: Login, domain: Domain) -> Decision:
        """Admit a listed station by its MAC address, unless a login rule blocks it. Login rules decide about a station
        that is not listed.

        No second factor is asked for, because no user is present. No password is tried, so a lock-out does not stop the
        login, and the login does not end a lock-out.
        """
        key = mac_key(login.user)
        entry = self.bypass.entry(domain.id, key, login.arrival.at)
        login.method, login.factor = Method.MAB, BY_UNKNOWN_ADDRESS if entry is None else BY_ADDRESS
        login.proven = True
        self.note(login, is_unknown=entry is None)
        if not login.station:  # a NAS that sends no Calling-Station-Id sends the address as User-Name
            login.station = login.user
            if entry is not None:
                login.behind = self.sightings.station(login.device, login.station, login.user, login.arrival.at)
        decision = self._decide_station(login, domain, entry)
        if entry is None:
            self.bypass.unknown.note(login.arrival, login.device, domain.id, key, decision.applied)
            return decision
        self.bypass.see(domain.id, key)
        if entry.psk is not None and decision.admits and EAP_MESSAGE not in login.arrival.request.first:
            product = product_of(login.device.nas_device_type, login.arrival.client.product)
            psk = self.bypass.key_attributes(login.arrival, domain.id, key, entry.psk, product)
            login.found = replace(login.found, keys=psk.attributes, keys_in_clear=psk.in_clear)
        return decision

    def _decide_station(
        self, login: Login, domain: Domain, entry: Entry | None, known: Known | None = None
    ) -> Decision:
        """Decide about a station by the rules and its entry. entry: None if the station is not listed."""
        action = self._apply_rules(login, domain, known)
        if entry is None:
            return self.decide_unknown(login, domain)
        self.apply_entry(login, domain, entry)
        return decide(PASSED, self.action_for_station(action), PASSED, domain.mode, domain.fallback)

    def apply_entry(self, login: Login, domain: Domain, entry: Entry) -> None:
        """Add the attributes for the role and the VLAN of an entry. They override those of a rule, because an entry
        says more about the station."""
        chosen = b""
        if entry.role:
            login.role = given = self.roles.given(domain.id, entry.role, login.device, login.arrival.client)
            chosen = given.attributes
        if entry.vlan:
            chosen = combined(chosen, self.bypass.vlan_attributes(entry.vlan))
        if chosen:
            login.attributes = combine(login.attributes, chosen)

    @staticmethod
    def decide_unknown(login: Login, domain: Domain) -> Decision:
        """Decide about a station that is not on the list of its domain, after its rules were applied. Monitor mode
        decides as enforce mode does, because there is no first factor that the station has passed. The rule must give
        it a network of its own. `match` reads only `allow` rules that name the kind of these stations."""
        rule = login.rule
        has_role = login.role is not None and bool(login.role.attributes)  # it may have none for this product
        has_network = rule is not None and (has_role or bool(rule.definition.vlan))
        if domain.unknown_stations is RULES and rule is not None and rule.action is Action.ALLOW and has_network:
            return decide(PASSED, Action.ALLOW, PASSED, domain.mode, domain.fallback)
        if rule is not None and rule.action is Action.BLOCK:
            return refuse(Reason.BLOCKED, domain)
        login.rule = None
        return refuse(Reason.UNKNOWN_STATION, domain)

    def _notes_unknown(self, login: Login, domain: Domain, decision: Decision) -> bool:
        """If a refused login was a request for a station that is not listed, note the station, and return True."""
        station = self._unlisted(login, domain)
        if not station or (EAP_MESSAGE in login.arrival.request.first and not self._is_by_eap(login, domain, decision)):
            return False
        self.note(login, is_unknown=True)
        self.bypass.unknown.note(login.arrival, login.device, domain.id, station, decision.applied)
        return True

    def _unlisted(self, login: Login, domain: Domain) -> str:
        """Return the station of a request that may ask for admission by an address that is not listed, or an empty
        text. By EAP, the address may also be the outer identity of a person."""
        arrival = login.arrival
        if EAP_MESSAGE in arrival.request.first:  # the method may be known in more detail by now
            station = requested_station_by_eap(arrival, Method.EAP)
        else:
            station = requested_station(arrival, login.method)
        return station if station and self.bypass.entry(domain.id, station, arrival.at) is None else ""

    @staticmethod
    def _is_by_eap(login: Login, domain: Domain, decision: Decision) -> bool:
        """Return whether a refused login by EAP, whose outer identity is an address, was a request for a station. The
        name inside EAP is then an address too. A wrong password is one of a person, unless the domain checks all such
        logins as stations."""
        may_be = domain.unknown_stations is RULES or decision.failure in (None, Failure.UNKNOWN_USER)
        return may_be and bool(mac_key(login.user))

    @staticmethod
    def action_for_station(action: Action) -> Action:
        """Return the action for a station that is admitted by its MAC address. mfa_required becomes allow, because no
        user is present to be asked."""
        return Action.BLOCK if action is Action.BLOCK else Action.ALLOW

    def is_by_station(self, login: Login, domain: Domain) -> bool:
        """Return whether a login is by EAP, and its station may be admitted by its MAC address."""
        return login.method == Method.EAP and bool(self.bypass.requested_by_eap(login.arrival, login.method, domain))

    def recalled(self, login: Login, domain: Domain) -> bool:
        """If the user's current directory data are in memory, store them in `login.imported`, and return True.
        Otherwise return False; the caller must then await `recall`."""
        login.imported = self.principals.cached(domain.id, login.user)
        return login.imported is not None

    async def recall(self, login: Login, domain: Domain) -> None:
        """Set `login.imported` to the user's current directory data, from memory or the store. Raises StoreError."""
        if not self.recalled(login, domain):
            login.imported = await self.principals.find(domain.id, login.user, domain.realm_keys)

    async def user(self, domain: Domain, name: str) -> User | None:
        """Return an endpoint user, from memory or the store. Raises StoreError, SecretError."""
        user = self.users.cached(domain.id, name)
        return await self.users.load(domain.id, name) if user is MISSING else user

    def note(self, login: Login, *, is_unknown: bool = False) -> None:
        """Count a login in the inventory, and set its device and station. The sender must be proven. Further calls have
        no effect.

        is_unknown: whether the station has asked for admission by its address and is not listed. Such a station may be
        invented, so it does not get into the inventory of stations. The same holds before the login is proven.
        """
        if login.noted or login.home is None:
            return
        request, source, at = login.arrival.request, login.arrival.source[0], login.arrival.at
        login.noted = True
        login.device = device = self.sightings.device(request, source, login.arrival.client, login.home.id, at)
        login.counted = not is_check(request)
        if login.counted:
            device.posture.count(request, at)
        station = request.first.get(CALLING_STATION_ID)
        if station:
            login.station = as_text(station)
            if not (is_unknown or self._may_be_invented(login)):
                login.behind = self.sightings.station(device, login.station, login.user, at)

    def _may_be_invented(self, login: Login) -> bool:
        domain = login.domain
        return not login.proven and domain is not None and bool(self._unlisted(login, domain))

    # --- first factor -----------------------------------------------------------------------------------------

    def _check_at_once(self, login: Login, domain: Domain) -> Reason | None:
        """Return the result of the first factor, or None if the caller must await `check`. For EAP, only the first
        factor `none` has a result at once."""
        vouched = domain.first_factor is FirstFactor.NONE
        if login.method == Method.EAP and (not vouched or self.is_by_station(login, domain)):
            return None
        answers = STATE in login.arrival.request.first and self.names_challenge(login) is not None
        if answers or login.imported is None:
            return None
        if domain.first_factor is LOCAL:
            user = self.users.cached(domain.id, login.user)
            return None if user is MISSING else self._check_password(login, domain, user)
        return check_vouched(login.arrival) if vouched else None

    def _check_password(
        self, login: Login, domain: Domain, user: User | None, takes_code: Callable[[], bool] | None = None
    ) -> Reason:
        """Check the password of an endpoint user. takes_code: see `check_password`; by default the provider decides."""
        if takes_code is None:
            takes_code = partial(self.takes_codes, domain, login.user)
        result = check_password(login.arrival, login.method, user, takes_code)
        login.found, login.code = result.found, result.code
        return result.reason

    def _after_first(self, login: Login, domain: Domain, first: Reason) -> Decision | None:
        """Decide after the first factor. Return None if the caller must await `ask`."""
        if login.found.challenge is not None:
            return ROUND
        fresh = self.refresh(login, domain)
        if fresh.first_factor is not domain.first_factor:
            first = Reason.FIRST_FACTOR_CHANGED
        return self.settle(login, fresh, self.judge(login, fresh, first))

    def takes_codes(self, domain: Domain, name: str) -> bool:
        """Return whether a code may follow a user's password, as `Enrolments.takes_codes`."""
        return self.second.enrolments.takes_codes(self.providers.of(domain.id), domain, name)

    async def has_codes(self, domain: Domain, name: str) -> bool:
        """Return whether a user is known to have codes, as `Enrolments.has_codes`."""
        return await self.second.enrolments.has_codes(self.providers.of(domain.id), domain, name)

    def same_user(self, login: Login, user: User | None, stamp: str) -> Reason:
        """Return PASSED if an endpoint user still exists with the same password, and set the user's current groups in
        the login. The user may have been changed or removed during an EAP conversation or a challenge. stamp: the
        user's stamp when the credentials were checked."""
        if user is None:
            return Reason.UNKNOWN_USER
        if user.stamp != stamp:
            return Reason.WRONG_PASSWORD
        login.found = known(user, login.found)
        return PASSED

    def same_factor(self, domain: Domain, stamp: str) -> Reason:
        """Return PASSED if the first factor still has the configuration with which it checked the password. After a
        change of the directory, the same name may belong to another person. stamp: the stamp of the configuration that
        checked the password."""
        return PASSED if stamp == self.first.stamp(domain) else Reason.FIRST_FACTOR_CHANGED

    # --- login rules ------------------------------------------------------------------------------------------

    def judge(self, login: Login, domain: Domain, first: Reason) -> Decision | None:
        """Decide by the result of the first factor and the login rules. Return None if the caller must await `ask`."""
        if first is not PASSED:
            arrival = login.arrival
            is_unsure = first is Reason.WRONG_PASSWORD and hides_garbage(arrival.request, arrival.client.secret)
            return refuse(Reason.WRONG_PASSWORD_OR_SECRET if is_unsure else first, domain)
        login.proven = True
        self.note(login)
        action = self._apply_rules(login, domain)
        second = PASSED
        if action is MFA_REQUIRED:
            if not login.user:  # the home server of this EAP login has not disclosed the user
                second = Reason.NO_USER_NAME
            elif isinstance(login.provider, Unavailable):
                second = UNAVAILABLE[login.provider]
            elif domain.mode is MONITOR:
                second = self.second.enrolments.forecast(login, domain, login.provider)
            else:
                return None
        return decide(first, action, second, domain.mode, domain.fallback)

    def _apply_rules(self, login: Login, domain: Domain, known: Known | None = None) -> Action:
        """Return the action of the domain's login rules, and set the login's rule, role and reply attributes.
        Attributes of the matching rule override those of its role, and both override attributes from the first
        factor. known: facts that replace those of the request."""
        rules, found = self.rules.of(domain.id), login.found.accept
        if login.found.session_s is not None:
            found += push_attribute(SESSION_TIMEOUT, login.found.session_s.to_bytes(4))
        login.attributes = found
        if rules is None:
            return UNMATCHED
        names, request = rules.attributes, login.arrival.request
        attributes = self.rules.translation.attributes_of(request, names) if names else None
        facts = facts_of(login, rules.compared, attributes)
        login.facts = facts if known is None else replace(facts, **known)  # type: ignore[arg-type]  # fields of this class
        rule = rules.match(login.facts)
        if rule is None:
            return UNMATCHED
        login.rule, chosen = rule, rule.attributes
        if rule.role:
            login.role = given = self.roles.given(domain.id, rule.role, login.device, login.arrival.client)
            chosen = combined(given.attributes, chosen)
        login.attributes = combine(found, chosen) if found else chosen
        return rule.action

    def apply_rules(self, login: Login, domain: Domain, known: Known) -> Action:
        """Return the action of the rules for a login that no device has sent, and set its rule and reply attributes.
        `login.device`, `login.found` and `login.imported` must be set. known: facts that its request lacks."""
        return self._apply_rules(login, domain, known)

    def apply_rules_to_station(self, login: Login, domain: Domain, known: Known) -> Decision:
        """Return the decision about a station for a login that no device has sent, and set its rule and reply
        attributes. Nothing is noted. known: as in `apply_rules`."""
        entry = self.bypass.entry(domain.id, mac_key(login.user), login.arrival.at)
        login.factor = BY_UNKNOWN_ADDRESS if entry is None else BY_ADDRESS
        return self._decide_station(login, domain, entry, known)

    def settle(self, login: Login, domain: Domain, decision: Decision | None) -> Decision | None:
        """Count a decision for the lock-outs, and return it. Return a refusal instead if the user was locked out while
        the login was being decided. decision: None if the second factor must be asked for."""
        if self.lockouts.some and (lock := self.lockouts.refuses(login.attempt(domain))):
            # otherwise the answer of another server, or the wait for a prompt, reveals whether the password is right
            login.found, login.rule = NOTHING, None
            return refuse(LOCKED[lock], domain)
        if decision is not None:
            self._count(login, domain, decision)
        return decision

    def _count(self, login: Login, domain: Domain, decision: Decision) -> None:
        """Count a decision for the lock-outs. Locks are stored in the transaction of the login's event."""
        is_refused = decision.failure is not None or not (login.proven or decision.admits)
        if is_refused and self._notes_unknown(login, domain, decision):
            return  # invented addresses must not lock out users
        if decision.failure is not None:
            login.locks = self.lockouts.note_failure(login.attempt(domain), decision.failure)
        elif decision.admits and self.lockouts.some:
            self.lockouts.note_success(login.attempt(domain))

    # --- second factor ----------------------------------------------------------------------------------------

    async def ask(self, login: Login) -> Decision | None:
        """Wait for the second factor, then decide by the current user, rules and mode. Return None if a newer request
        of the same login has replaced this request. Raises StoreError, SecretError, PacketError."""
        domain = login.domain
        assert domain is not None  # noqa: S101  begin found it
        await self.recall(login, domain)
        challenge = self.names_challenge(login)
        if self.lockouts.some and self.lockouts.repeats(login.attempt(domain)):
            return self.settle(login, domain, refuse(Reason.WRONG_CODE, domain))
        if challenge is None:
            asked = await self.asked(domain, login.user)
            result = await self.second.ask(login, self.refresh(login, domain), asked)
        else:
            login.outside = False  # only the user that got the challenge can answer it
            self.refresh(login, domain)
            result = await self.second.resume(login, *challenge, typed_code(login.arrival, login.method))
        if result is None:
            return None
        decision = await self.decide_afresh(login, domain, result, answers_challenge=challenge is not None)
        return self.settle(login, domain, decision)

    def names_challenge(self, login: Login) -> tuple[str, int] | None:
        """Return the id and step of the second factor's challenge that a login answers. Return None if the login
        answers no such challenge."""
        state = login.arrival.request.first.get(STATE)
        return None if state is None or login.domain is None else self.second.challenges.named(login.domain.id, state)

    async def asked(self, domain: Domain, name: str) -> Asked:
        """Return the user to ask for a second factor, with the stamps that must be unchanged when the user has
        answered. Raises StoreError, SecretError."""
        if domain.first_factor is not LOCAL:
            return Asked(0, self.first.stamp(domain), domain.factor)
        user = await self.user(domain, name)
        return Asked(0, "", domain.factor) if user is None else Asked(user.id, user.stamp, domain.factor)

    def refresh(self, login: Login, domain: Domain) -> Domain:
        """Return the current version of a domain, and look up the login's MFA provider again. Both may have changed
        while the login waited."""
        login.provider = self.providers.of(domain.id)
        return self.domains.value.by_id.get(domain.id, domain)

    async def decide_afresh(
        self, login: Login, domain: Domain, result: SecondFactorResult, *, answers_challenge: bool
    ) -> Decision:
        """Decide a login after its second factor, by the current user, rules and mode. The checked password must still
        be valid."""
        login.rule = login.role = None  # the rules are read again
        if result.reason is Reason.CHALLENGE_OVER:
            return refuse(result.reason, domain)
        login.approved, login.detail = result.reason is PASSED, result.detail
        before, domain = domain, self.refresh(login, domain)
        if domain.first_factor is not before.first_factor:
            return refuse(Reason.FIRST_FACTOR_CHANGED, domain)
        if answers_challenge:
            login.found = result.found
            if not is_check(login.arrival.request):
                login.device.posture.count_answer(login.arrival.at)
            first = await self._is_same_user(login, domain, result)
            # A correct code proves that the sender is the user; an empty answer proves nothing.
            login.proven = result.reason is PASSED and login.code is not None
        elif domain.first_factor is LOCAL:
            had_code = login.code is not None
            user = await self.user(domain, login.user)
            if EAP_MESSAGE in login.arrival.request.first:
                first = self.same_user(login, user, result.asked.stamp)
            else:
                first = self._check_password(login, domain, user, lambda: had_code)
        else:  # the directory or other server is asked only once for each login
            first = self.same_factor(domain, result.asked.stamp)
        await self.recall(login, domain)
        action = self._apply_rules(login, domain) if first is PASSED else UNMATCHED
        decision = decide(first, action, result.reason, domain.mode, domain.fallback)
        if decision.applied is Verdict.CHALLENGE:
            if not is_check(login.arrival.request):
                login.device.posture.count_challenge(login.arrival.at)
            login.attributes = self.second.challenges.attributes(result)
        login.keep = self.second.keep(result)
        return decision

    async def _is_same_user(self, login: Login, domain: Domain, result: SecondFactorResult) -> Reason:
        """Return PASSED if the user who answers a challenge is the user who got it, and the password is unchanged.
        Otherwise return the reason for a refusal."""
        if result.asked.factor != domain.factor:
            return Reason.FIRST_FACTOR_CHANGED
        if domain.first_factor is FirstFactor.NONE:
            return check_vouched(login.arrival)
        if domain.first_factor is not LOCAL:
            return self.same_factor(domain, result.asked.stamp)
        user = await self.user(domain, login.user)
        if user is None or user.id != result.asked.user_id:
            return Reason.UNKNOWN_USER
        return self.same_user(login, user, result.asked.stamp)


def show_unproven(login: Login) -> None:
    """Set `login.device` so that the event can name the device. The device is not added to the inventory, because only
    devices whose requests are proven belong there."""
    login.device = new_device(login.arrival.request, login.arrival.source[0], 0, login.arrival.at)
    login.device.id = 0
    login.station = as_text(login.arrival.request.first.get(CALLING_STATION_ID, b""))


def _no_code() -> bool:
    return False


def _may_carry_code(login: Login) -> bool:
    """Return whether a code may follow the password of a login, if the user has codes."""
    provider = login.provider
    asks_for_codes = isinstance(provider, Attached) and provider.provider.asks_for_codes
    return asks_for_codes and ends_in_code(login.arrival, login.method)
