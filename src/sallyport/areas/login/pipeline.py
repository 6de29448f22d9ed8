"""The steps of a login, from the request to the decision.

    identity > bypass > lock-out > first factor > login rules > second factor > mode

`Pipeline.begin` decides a login without I/O, if possible. It returns None if I/O is needed: the user is not in memory,
another server checks the password, the login answers a challenge, or the user must be asked for a second factor. The
caller then runs `check` in a task. If `check` returns None as well, the caller runs `SecondStep.ask`. `eap.rounds` uses
the same steps for logins by EAP.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import trio

from sallyport.areas.clients.client import is_check
from sallyport.areas.devices.sightings import Sightings, new_device
from sallyport.areas.directory.principals import NOBODY, Principals
from sallyport.areas.domains.domain import LOCAL, MONITOR, RULES, WEB, Domain, DomainTable, FirstFactor
from sallyport.areas.login.decision import LOCKED, ROUND, action_in, decide_in, refuse
from sallyport.areas.login.facts import facts_key, facts_of, further_facts
from sallyport.areas.login.first import web
from sallyport.areas.login.first.password import (
    check_password,
    check_vouched,
    ends_in_code,
    known,
)
from sallyport.areas.login.first.service import FirstFactors
from sallyport.areas.login.identity import BY_ADDRESS, BY_UNKNOWN_ADDRESS, hides_user, identify, network_of
from sallyport.areas.login.limit import SessionLimits
from sallyport.areas.login.login import NOTHING, PASSED, Decision, FirstFactorResult, Login, Reason, Waits
from sallyport.areas.login.remembered import Remembering
from sallyport.areas.login.second.forecast import UNAVAILABLE
from sallyport.areas.login.second.service import SecondFactor
from sallyport.areas.login.second.session import Asked
from sallyport.areas.login.stations import Stations, is_by_eap
from sallyport.areas.mfa.circuit import Attached, Providers, Unavailable
from sallyport.areas.policy.bypass.service import Bypass
from sallyport.areas.policy.bypass.station import Entry
from sallyport.areas.policy.lockouts.service import Lockouts
from sallyport.areas.policy.roles.service import Roles, product_of
from sallyport.areas.policy.rules.facts import Facts
from sallyport.areas.policy.rules.match import DomainRules, Result
from sallyport.areas.policy.rules.rule import ANY, MFA_REQUIRED, NO_DEMAND, UNMATCHED, Action
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

KnownFacts = Mapping[str, object]
"""Facts of a login that no device has sent, by the names of the fields of `Facts`."""
_CHECKED_HERE: Final = frozenset({FirstFactor.LOCAL, FirstFactor.NONE, FirstFactor.WEB})


@dataclass(slots=True, eq=False, repr=False)
class Pipeline:
    """The steps that decide a login.

    domains: the current domains. now: a function that returns the seconds of a monotonic clock.
    """

    domains: Snapshot[DomainTable]
    bypass: Bypass
    stations: Stations
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
    remembered: Remembering
    now: Callable[[], float] = trio.current_time

    # --- arrival of a request ----------------------------------------------------------------------------------

    def begin(self, login: Login) -> Decision | None:
        """Decide a login without waiting. Return None if the caller must await `check`. Raises PacketError if the
        password field is malformed."""
        reason = identify(login, self.domains.value)
        login.method = method_of(login.arrival.request)
        domain = login.domain
        if domain is None:
            return refuse(reason)
        login.factor = domain.factor
        login.outside = login.method == Method.EAP and domain.first_factor is not FirstFactor.NONE
        by_station = self.bypass.lists_stations or domain.unknown_stations is RULES
        if by_station and reason is PASSED and self.bypass.requested(login.arrival, login.method, domain):
            return self.decide_station(login, domain)
        is_inhabited = domain.id in self.principals.inhabited
        login.imported = self.principals.cached(domain.id, login.user) if is_inhabited else NOBODY
        if reason is not PASSED:
            if not hides_user(login, reason):
                return refuse(reason, domain)
            login.user = ""
        login.provider = self.providers.of(domain.id)
        watched = self.lockouts.has_failures
        if watched and not self.stations.may_be_admitted_by_eap(login, domain):
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
        if login.method == Method.EAP and (is_inhabited or self.stations.may_be_admitted_by_eap(login, domain)):
            return False  # the inner name is not known yet
        if self._may_carry_code(login, domain):
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
        """Decide a login that neither `begin` nor `converse` has decided. Return None if the user must be
        asked for a second factor. Return ROUND if the first factor must exchange more messages with the client. Raises
        StoreError, SecretError, PacketError."""
        domain = login.domain
        assert domain is not None  # noqa: S101  begin found it
        if login.proven or self.names_challenge(login) is not None:
            return None
        if login.continuation is not None:
            continuation, login.continuation = login.continuation, None  # it refers to the login
            return await continuation()
        self.refresh(login, domain)  # the login has waited for its turn
        if domain.first_factor is LOCAL:
            first = self.check_password(login, domain, await self.user(domain, login.user))
        elif domain.first_factor is FirstFactor.NONE:
            first = check_vouched(login.arrival)
        elif domain.first_factor is WEB:
            await self.recall(login, domain)
            first = web.check(login, domain, self.principals)
        else:
            await self.recall(login, domain)
            began = self.now()
            carries_code = self._may_carry_code(login, domain) and await self.has_codes(domain, login.principal)
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
        if login.domain is not None and self.lockouts.has_failures:
            self.lockouts.take_back(login.attempt(login.domain))

    # --- the user or station -----------------------------------------------------------------------------------

    def decide_station(self, login: Login, domain: Domain) -> Decision | None:
        """Admit a listed station by its MAC address, unless a login rule blocks it. Login rules decide about a station
        that is not listed. Return None if the caller must await `check`, because the key of the station is derived.

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
        if entry.psk is None or not decision.admits or EAP_MESSAGE in login.arrival.request.first:
            return decision
        product = product_of(login.device.nas_device_type, login.arrival.client.product)
        found = self.bypass.key_attributes(login.arrival, domain.id, key, entry.psk, product)
        if found is None:
            login.proven, login.continuation = False, partial(self._with_derived_key, login, domain, entry.psk, product)
            return None
        login.found = login.found._replace(keys=found.attributes, keys_in_clear=found.in_clear)
        return decision

    async def _with_derived_key(self, login: Login, domain: Domain, psk: bytes, product: str) -> Decision:
        """Return the decision about a listed station whose key must be derived. The rules and the list may change in
        the meantime. If the key has changed, the answer has none, and the access point asks again. Raises
        SecretError."""
        key = mac_key(login.user)
        found = await self.bypass.derived_attributes(login.arrival, domain.id, key, psk, product)
        domain, login.proven, login.rule, login.role = self.refresh(login, domain), True, None, None
        entry = self.bypass.entry(domain.id, key, login.arrival.at)
        decision = self._decide_station(login, domain, entry)
        if entry is not None and entry.psk == psk and decision.admits:
            login.found = login.found._replace(keys=found.attributes, keys_in_clear=found.in_clear)
        return decision

    def _decide_station(
        self, login: Login, domain: Domain, entry: Entry | None, known: KnownFacts | None = None
    ) -> Decision:
        """Decide about a station by the rules and its entry. entry: None if the station is not listed."""
        action = self.apply_rules(login, domain, known)
        return self.stations.decide(login, domain, entry, action)

    def _notes_unknown(self, login: Login, domain: Domain, decision: Decision) -> bool:
        """If a refused login was a request for a station that is not listed, note the station, and return True."""
        station = self.stations.unlisted(login, domain)
        if not station or (EAP_MESSAGE in login.arrival.request.first and not is_by_eap(login, domain, decision)):
            return False
        self.note(login, is_unknown=True)
        self.bypass.unknown.note(login.arrival, login.device, domain.id, station, decision.applied)
        return True

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
        home = login.home
        if login.noted or home is None:
            return
        request, client, source, at, _ = login.arrival
        login.noted = True
        login.device = device = self.sightings.device(request, source[0], client, home.id, at)
        if not is_check(request):
            login.counted = True
            device.posture.count(request, at)
        login.network = network_of(request)
        station = request.first.get(CALLING_STATION_ID)
        if station:
            login.station = name = as_text(station)
            if not is_unknown and (login.proven or not self._may_be_invented(login)):
                login.behind = self.sightings.station(device, name, login.user, at)

    def _may_be_invented(self, login: Login) -> bool:
        domain = login.domain
        return domain is not None and bool(self.stations.unlisted(login, domain))

    # --- first factor -----------------------------------------------------------------------------------------

    def _check_at_once(self, login: Login, domain: Domain) -> Reason | None:
        """Return the result of the first factor, or None if the caller must await `check`. For EAP, only the first
        factor `none` has a result at once."""
        vouched = domain.first_factor is FirstFactor.NONE
        if login.method == Method.EAP and (not vouched or self.stations.may_be_admitted_by_eap(login, domain)):
            return None
        answers = STATE in login.arrival.request.first and self.names_challenge(login) is not None
        if answers or login.imported is None:
            return None
        if domain.first_factor is LOCAL:
            user = self.users.cached(domain.id, login.user)
            return None if user is MISSING else self.check_password(login, domain, user)
        return check_vouched(login.arrival) if vouched else None

    def check_password(
        self, login: Login, domain: Domain, user: User | None, takes_code: Callable[[], bool] | None = None
    ) -> Reason:
        """Check the password of an endpoint user. takes_code: see `check_password`; by default the provider decides."""
        if takes_code is None:
            takes_code = partial(self.takes_codes, domain, login.user)
        result = check_password(login.arrival, login.method, user, takes_code)
        login.found, login.code = result.found, result.code
        return result.reason

    def _after_first(self, login: Login, domain: Domain, first: Reason) -> Decision | None:
        """Decide after the first factor. Return None if the user must be asked for a second factor."""
        if login.found.challenge is not None:
            return ROUND
        fresh = self.refresh(login, domain)
        if fresh.first_factor is not domain.first_factor:
            first = Reason.FIRST_FACTOR_CHANGED
        return self.settle(login, fresh, self.judge(login, fresh, first))

    def takes_codes(self, domain: Domain, name: str) -> bool:
        """Return whether a code may follow a user's password, as `Enrolments.takes_codes`."""
        enrolments = self.second.enrolments
        return any(enrolments.takes_codes(each, domain, name) for each in self._providers_to_ask(domain))

    async def has_codes(self, domain: Domain, name: str) -> bool:
        """Return whether a user is known to have codes, as `Enrolments.has_codes`."""
        for each in self._providers_to_ask(domain):
            if await self.second.enrolments.has_codes(each, domain, name):
                return True
        return False

    def _providers_to_ask(self, domain: Domain) -> Iterator[Attached | Unavailable]:
        """Yield the providers of which the login rules choose one after the first factor."""
        yield self.providers.of(domain.id)
        rules = self.rules.of(domain.id)
        for name in () if rules is None else rules.providers:
            yield self.providers.of(domain.id, name)

    def _may_carry_code(self, login: Login, domain: Domain) -> bool:
        """Return whether a code may follow the password of a login, if the user has codes."""
        default, rules = login.provider, self.rules.of(domain.id)
        asks_for_codes = isinstance(default, Attached) and default.provider.asks_for_codes
        if not asks_for_codes and rules is not None and rules.providers:
            found = [self.providers.of(domain.id, name) for name in rules.providers]
            asks_for_codes = any(isinstance(each, Attached) and each.provider.asks_for_codes for each in found)
        return asks_for_codes and ends_in_code(login.arrival, login.method)

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

    def same_account(self, login: Login, domain: Domain, stamp: str) -> Reason:
        """Return PASSED if the login's user still has the account of a cloud directory that the client certificate has
        named, or with which the login began, and may log in. `login.imported` must be current. stamp: the stamp of the
        account."""
        return web.check_account(login, domain, self.principals, stamp)

    # --- login rules ------------------------------------------------------------------------------------------

    def judge(self, login: Login, domain: Domain, first: Reason) -> Decision | None:
        """Decide by the result of the first factor and the login rules. Return None if the user must be asked for a
        second factor."""
        if first is not PASSED:
            arrival = login.arrival
            is_unsure = first is Reason.WRONG_PASSWORD and hides_garbage(arrival.request, arrival.client.secret)
            return refuse(Reason.WRONG_PASSWORD_OR_SECRET if is_unsure else first, domain)
        login.proven = domain.first_factor is not WEB
        self.note(login)
        action = self.apply_rules(login, domain)
        second = PASSED
        if action is MFA_REQUIRED:
            demanded = NO_DEMAND if login.rule is None else login.rule.definition
            if demanded.provider:
                login.provider = self.providers.of(domain.id, demanded.provider)
            if not login.user:  # the home server of this EAP login has not disclosed the user
                second = Reason.NO_USER_NAME
            elif isinstance(login.provider, Unavailable):
                second = UNAVAILABLE[login.provider]
            elif demanded.strength is not ANY and login.provider.provider.strongest < demanded.strength:
                second = Reason.NOT_STRONG_ENOUGH
            elif domain.first_factor is WEB and (problem := login.provider.provider.web_problem):
                second, login.detail = Reason.NOT_CONFIRMED, problem
            elif domain.applied_mode is MONITOR:
                second = self.second.enrolments.forecast(login, domain, login.provider, demanded.strength)
                if domain.remember_h and second is Reason.ASKED:
                    asked = self._asked_now(domain, login.user)
                    second = self.remembered.rehearse(login, domain, asked, demanded.strength)
            else:
                return None
        return decide_in(domain, first, action, second)

    def _asked_now(self, domain: Domain, name: str) -> Asked:
        """Return the user who would be asked for a second factor, with what is in memory."""
        user = self.users.cached(domain.id, name) if domain.first_factor is LOCAL else None
        return Asked(user.id, user.stamp, domain.factor) if isinstance(user, User) else Asked(0, factor=domain.factor)

    def apply_rules(self, login: Login, domain: Domain, known: KnownFacts | None = None) -> Action:
        """Return the action of the domain's login rules, and set the login's rule, role and reply attributes.
        Attributes of the matching rule override those of its role, and both override attributes from the first
        factor. For a login that no device has sent, `login.device`, `login.found` and `login.imported` must be set.
        known: facts that replace those of the request."""
        rules, found = self.rules.of(domain.id), login.found.accept
        if login.found.session_s is not None:
            found += push_attribute(SESSION_TIMEOUT, login.found.session_s.to_bytes(4))
        login.attributes = found
        if rules is None:
            return UNMATCHED
        if known is not None:
            rule = rules.match(self.facts_with(login, rules, known))
        else:
            rule, login.further = self._result(login, rules)
        if rule is None:
            return UNMATCHED
        login.rule, chosen = rule, rule.attributes
        if rule.role:
            login.role = given = self.roles.given(domain.id, rule.role, login.device, login.arrival.client)
            chosen = combined(given.attributes, chosen)
        login.attributes = combine(found, chosen) if found else chosen
        return action_in(domain, rule.action)

    def _result(self, login: Login, rules: DomainRules) -> Result:
        """Return the rule that decides a login, and its `further` facts. Logins with the same facts share the result of
        the first of them."""
        reading = rules.reading or rules.read(self.rules.translation.types_of(rules.attributes))
        key = facts_key(login, reading) if reading.is_shared and login.certificate is None else None
        result = None if key is None else rules.results.get(key)
        if result is None:
            facts = self.facts_with(login, rules, {})
            result = rules.match(facts), further_facts(facts, login)
            if key is not None:
                rules.keep(key, result)
        return result

    def facts_with(self, login: Login, rules: DomainRules, known: KnownFacts) -> Facts:
        """Return the facts of a login that rules compare. known: facts that replace those of the request."""
        names = rules.attributes
        attributes = self.rules.translation.attributes_of(login.arrival.request, names) if names else None
        facts = facts_of(login, rules.compared, attributes)
        return replace(facts, **known) if known else facts  # type: ignore[arg-type]  # fields of this class

    def apply_rules_to_station(self, login: Login, domain: Domain, known: KnownFacts) -> Decision:
        """Return the decision about a station for a login that no device has sent, and set its rule and reply
        attributes. Nothing is noted. known: as in `apply_rules`."""
        entry = self.bypass.entry(domain.id, mac_key(login.user), login.arrival.at)
        login.factor = BY_UNKNOWN_ADDRESS if entry is None else BY_ADDRESS
        return self._decide_station(login, domain, entry, known)

    def settle(self, login: Login, domain: Domain, decision: Decision | None) -> Decision | None:
        """Count a decision for the lock-outs, and return it. Return a refusal instead if the user was locked out while
        the login was being decided. decision: None if the second factor must be asked for."""
        is_denied = decision is not None and decision.reason is Reason.NOT_ME  # this may have locked the user
        if self.lockouts.has_failures and not is_denied and (lock := self.lockouts.refuses(login.attempt(domain))):
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
            attempt = login.attempt(domain)
            if domain.first_factor is WEB:  # an attacker who knows a name must not lock the user
                attempt = replace(attempt, outside=True)
            login.locks = self.lockouts.note_failure(attempt, decision.failure)
        elif decision.admits and self.lockouts.has_failures:
            self.lockouts.note_success(login.attempt(domain))

    # --- after a wait -----------------------------------------------------------------------------------------

    def names_challenge(self, login: Login) -> tuple[str, int] | None:
        """Return the id and step of the second factor's challenge that a login answers. Return None if the login
        answers no such challenge."""
        state = login.arrival.request.first.get(STATE)
        return None if state is None or login.domain is None else self.second.challenges.named(login.domain.id, state)

    def refresh(self, login: Login, domain: Domain) -> Domain:
        """Return the current version of a domain, and look up the login's MFA provider again. Both may have changed
        while the login waited. The login's rule, if one has decided already, names the provider."""
        login.provider = self.providers.of(domain.id, "" if login.rule is None else login.rule.definition.provider)
        return self.domains.value.by_id.get(domain.id, domain)


def show_unproven(login: Login) -> None:
    """Set `login.device` so that the event can name the device. The device is not added to the inventory, because only
    devices whose requests are proven belong there."""
    login.device = new_device(login.arrival.request, login.arrival.source[0], 0, login.arrival.at)
    login.device.id = 0
    login.station = as_text(login.arrival.request.first.get(CALLING_STATION_ID, b""))
    login.network = network_of(login.arrival.request)


def _no_code() -> bool:
    return False
