"""The decision about a station that asks for admission by its MAC address, and the test whether a login may be one of
them."""

from dataclasses import dataclass

from sallyport.areas.domains.domain import RULES, WEB, Domain
from sallyport.areas.login.decision import decide, refuse
from sallyport.areas.login.login import PASSED, Decision, Login, Reason
from sallyport.areas.policy.bypass.match import requested_station, requested_station_by_eap
from sallyport.areas.policy.bypass.service import Bypass
from sallyport.areas.policy.bypass.station import Entry
from sallyport.areas.policy.lockouts.failures import Failure
from sallyport.areas.policy.roles.service import Roles
from sallyport.areas.policy.rules.rule import Action
from sallyport.base.mac import mac_key
from sallyport.radius.attributes import EAP_MESSAGE, combine, combined
from sallyport.radius.password import Method


@dataclass(frozen=True, slots=True)
class Stations:
    """The stations of all domains that are admitted by their MAC address, by the lists or by login rules."""

    bypass: Bypass
    roles: Roles

    def decide(self, login: Login, domain: Domain, entry: Entry | None, action: Action) -> Decision:
        """Decide about a station, and set its attributes. The login must have the rule that decides. entry: None if the
        station is not listed. action: the action of the rule."""
        if domain.first_factor is WEB:  # set while the login waited
            login.rule = None
            return refuse(Reason.UNKNOWN_STATION, domain)
        if entry is None:
            return _decide_unknown(login, domain)
        self._apply_entry(login, domain, entry)
        return decide(PASSED, action_for_station(action), PASSED, domain.mode, domain.fallback)

    def _apply_entry(self, login: Login, domain: Domain, entry: Entry) -> None:
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

    def unlisted(self, login: Login, domain: Domain) -> str:
        """Return the station of a request that may ask for admission by an address that is not listed, or an empty
        text. By EAP, the address may also be the outer identity of a person."""
        arrival = login.arrival
        if EAP_MESSAGE in arrival.request.first:  # the method may be known in more detail by now
            station = requested_station_by_eap(arrival, Method.EAP)
        else:
            station = requested_station(arrival, login.method)
        return station if station and self.bypass.entry(domain.id, station, arrival.at) is None else ""

    def may_be_admitted_by_eap(self, login: Login, domain: Domain) -> bool:
        """Return whether a login is by EAP, and its station may be admitted by its MAC address."""
        return login.method == Method.EAP and bool(self.bypass.requested_by_eap(login.arrival, login.method, domain))


def action_for_station(action: Action) -> Action:
    """Return the action for a station that is admitted by its MAC address. mfa_required becomes allow, because no
    user is present to be asked."""
    return Action.BLOCK if action is Action.BLOCK else Action.ALLOW


def is_by_eap(login: Login, domain: Domain, decision: Decision) -> bool:
    """Return whether a refused login by EAP, whose outer identity is an address, was a request for a station. The
    name inside EAP is then an address too. A wrong password is one of a person, unless the domain checks all such
    logins as stations."""
    may_be = domain.unknown_stations is RULES or decision.failure in (None, Failure.UNKNOWN_USER)
    return may_be and bool(mac_key(login.user))


def _decide_unknown(login: Login, domain: Domain) -> Decision:
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
