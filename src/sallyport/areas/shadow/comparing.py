"""Decide shadow logins by the current rules, and compare the decisions with those of the other server.

A shadow login becomes a simulated request, and runs the steps of a live login that need no credentials: identity, MAC
authentication bypass, login rules, and the forecast of the second factor. The result of the first factor is that of the
other server. If the other server refused a login by a policy, the password counts as right, because the comparison is
about the policies. Enforce mode is assumed.

Nothing is counted, noted or asked. The signature of a request is not in a log, so each request counts as signed.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from secrets import token_bytes
from typing import Final

from sallyport.areas.clients.client import Client, ClientTable
from sallyport.areas.devices import repo as inventory
from sallyport.areas.devices.device import Device
from sallyport.areas.devices.rows import DeviceRow
from sallyport.areas.devices.sightings import find_product, new_device
from sallyport.areas.directory.principals import NOBODY, UNCLEAR, Membership
from sallyport.areas.domains.domain import LOCAL, RULES, Domain, Fallback, FirstFactor, Mode
from sallyport.areas.login.decision import decide
from sallyport.areas.login.identity import identify, kept, network_of
from sallyport.areas.login.login import PASSED, Decision, Login, Reason, Verdict
from sallyport.areas.login.pipeline import Pipeline
from sallyport.areas.login.simulated import refusal_of_user, simulated
from sallyport.areas.policy.bypass.match import requested_station
from sallyport.areas.policy.rules.rule import MFA_REQUIRED, UNMATCHED, Action
from sallyport.areas.preview.enrolled import Demand, SecondFactors
from sallyport.areas.shadow.attributes import ShadowAttributes
from sallyport.areas.shadow.shadow_login import MAX_TEXT, Cause, Comparison, Kind, OldAnswer, ShadowCase, ShadowRow
from sallyport.base.addresses import canonical
from sallyport.base.bounded import BoundedMap
from sallyport.base.errors import PacketError
from sallyport.base.mac import mac_key
from sallyport.base.tags import of_store
from sallyport.base.text import fold
from sallyport.radius.attributes import (
    CALLING_STATION_ID,
    NAS_IDENTIFIER,
    NAS_IP_ADDRESS,
    NAS_IPV6_ADDRESS,
    USER_NAME,
    USER_PASSWORD,
    push_attribute,
)
from sallyport.radius.packet import as_text
from sallyport.radius.password import Method, hide_password
from sallyport.store.model import Tx

NO_CLIENT: Final = "no RADIUS client has this address"
NO_ANSWER: Final = "the answer of the other server is not known"
NO_CAUSE: Final = "the other server does not say why it refused the login; the password may have been wrong"
OUTER_ONLY: Final = "the copy of a login by EAP shows only its outer identity, and rules compare the user"
UNREADABLE: Final = "the record has no complete request"
MAX_NAMES: Final = 65_536
_OF_USER: Final = frozenset({"users", "groups", "ous", "kinds", "certificates"})
"""The conditions that compare the user."""
_NAMING: Final = (NAS_IP_ADDRESS, NAS_IPV6_ADDRESS, NAS_IDENTIFIER)
_BY_ADDRESS_ALONE: Final = frozenset({"", Method.MAB})
_BY_ADDRESS: Final = _BY_ADDRESS_ALONE | {Method.PAP, Method.NONE}
"""The methods of requests for MAC authentication bypass. A copy shows whether the password was the address."""
_EFFECTS: Final = {OldAnswer.ACCEPT: Verdict.ACCEPT, OldAnswer.REJECT: Verdict.REJECT}
_FAILED: Final = Reason.WRONG_PASSWORD

NameKey = tuple[int, str]
DeviceKey = tuple[int, str, tuple[bytes | None, ...]]
Place = tuple[Client | None, str]
"""A RADIUS client, or None, and the address from which it sends."""


@dataclass(frozen=True, slots=True)
class KnownUser:
    """What the store has about a user. refusal: why a new login would be refused before the rules are read, or
    PASSED."""

    member: Membership
    refusal: Reason


@dataclass(slots=True)
class Asked:
    """A shadow login as a simulated login. first: the result of `identify`. problem: why it is not compared, or
    empty. is_station: whether it asks for admission by a MAC address."""

    row: ShadowRow
    login: Login | None = None
    first: Reason = PASSED
    problem: str = ""
    is_station: bool = False


@dataclass(slots=True)
class Known:
    """What a report knows so far.

    domain: the domain of the report. names: the clients of the tenant by their folded names. users: by domain and name.
    devices: by domain, sender, and the attributes that name them; the product is that of the first request, as live
    logins keep it for a minute. unread: the devices that were not looked up in the inventory. places: the clients by
    the client and NAS of a record.
    """

    domain: Domain
    names: Mapping[str, Client]
    users: BoundedMap[NameKey, KnownUser] = field(default_factory=lambda: BoundedMap(MAX_NAMES))
    devices: BoundedMap[DeviceKey, Device] = field(default_factory=lambda: BoundedMap(MAX_NAMES))
    unread: list[Device] = field(default_factory=list)
    places: BoundedMap[tuple[str, str, bool], Place] = field(default_factory=lambda: BoundedMap(MAX_NAMES))


class Comparing:
    """The comparison of shadow logins. clients: a function that returns the current RADIUS clients."""

    def __init__(
        self,
        pipeline: Pipeline,
        second: SecondFactors,
        clients: Callable[[], ClientTable],
        attributes: ShadowAttributes,
    ) -> None:
        self._pipeline = pipeline
        self._attributes = attributes
        self._second = second
        self._clients = clients

    def begin(self, domain: Domain) -> Known:
        """Return what a report of a domain knows at its begin."""
        own = (each for each in self._clients().by_id.values() if each.tenant_id == domain.tenant_id)
        return Known(domain, {each.name_key: each for each in own})

    def client_of(self, row: ShadowRow, known: Known) -> Place:
        """Return the RADIUS client of a shadow login, and its address."""
        place = (row.client, row.nas, row.kind == Kind.LOG)
        return known.places.get(place) or self._place(place, known)

    def asked(self, row: ShadowRow, known: Known) -> Asked:
        """Return a shadow login as a simulated login."""
        client, source = self.client_of(row, known)
        if client is None:
            return Asked(row, problem=NO_CLIENT)
        authenticator, name = token_bytes(16), row.user_name.encode()
        body = row.attributes
        methods = _BY_ADDRESS if row.kind == Kind.LOG else _BY_ADDRESS_ALONE
        is_mac = row.method in methods and bool(mac_key(row.user_name))
        method = row.method or Method.PAP
        if is_mac:  # its password is the address, as in a request for MAC authentication bypass
            body += push_attribute(USER_PASSWORD, hide_password(name[:128], client.secret, authenticator))
            method = Method.PAP
        try:
            login = simulated(client, source, push_attribute(USER_NAME, name) + body, authenticator, method, row.at)
            asked = Asked(row, login, identify(login, self._pipeline.domains.value))
            asked.is_station = is_mac and bool(requested_station(login.arrival, method))
        except (PacketError, ValueError):
            return Asked(row, problem=UNREADABLE)
        request = login.arrival.request
        login.station, login.network = as_text(request.first.get(CALLING_STATION_ID, b"")), network_of(request)
        login.device = self._device(login, source, known)
        return asked

    def _device(self, login: Login, source: str, known: Known) -> Device:
        request, client, at = login.arrival.request, login.arrival.client, login.arrival.at
        home = known.domain if login.home is None else login.home
        key = (home.id, source, tuple([request.first.get(kind) for kind in _NAMING]))
        device = known.devices.get(key)
        if device is None:
            device = new_device(request, source, home.id, at)
            device.has_claimed_tags = self._pipeline.sightings.has_claimed_tags
            find_product(device, request, client, at)
            known.devices.put(key, device, home.id)
            known.unread.append(device)
        return device

    def _place(self, place: tuple[str, str, bool], known: Known) -> Place:
        """Return the RADIUS client of a shadow login, and its address. For a copy, it is the client with the address of
        the NAS, or else the sender of the copy."""
        name, nas, is_log = place
        tenant_id, named = known.domain.tenant_id, known.names.get(fold(name))
        found, source = named, "" if named is None else str(named.network.network_address)
        for address in (name if named is None else "", "" if is_log else nas):
            client = self._at(address)
            if client is not None and client.tenant_id == tenant_id:
                found, source = client, canonical(address)
        known.places.put(place, (found, source), tenant_id)
        return found, source

    def _at(self, address: str) -> Client | None:
        try:
            return self._clients().find(address) if address else None
        except ValueError:
            return None

    def read(self, tx: Tx, several: Sequence[Asked], known: Known) -> list[tuple[NameKey, KnownUser]]:
        """Return what the store has about users that are not in `known`."""
        found: dict[NameKey, KnownUser] = {}
        for each in several:
            if each.login is None or each.login.domain is None:
                continue
            domain, name = each.login.domain, each.login.user
            key = (domain.id, name)
            if key not in found and known.users.get(key) is None:
                member = kept(tx, domain, name) if name else NOBODY
                found[key] = KnownUser(member, refusal_of_user(tx, domain, name, member.cloud))
        return list(found.items())

    def look_up(self, tx: Tx, devices: Sequence[Device]) -> list[DeviceRow | None]:
        """Return the rows of devices in the inventory."""
        return [
            inventory.find_again(tx, each.domain_id, each.ip_address, each.client_ip, each.device_name)
            for each in devices
        ]

    def compare(self, asked: Asked, known: Known) -> ShadowCase:
        """Decide a login, and compare the decision with the answer of the other server."""
        row, login = asked.row, asked.login
        if login is None:
            result = self._without_decision(row)
            return _case(row, result, Verdict.REJECT.value if result is not Comparison.UNKNOWN else "", asked.problem)
        if not row.answer:
            return _case(row, Comparison.UNKNOWN, "", NO_ANSWER, login)
        if problem := self._problem(asked):
            return _case(row, Comparison.UNKNOWN, "", problem, login)
        decision = self._decision(asked, login, known)
        result, reason = _compared(row, decision)
        if result is Comparison.SAME and row.answer == OldAnswer.ACCEPT and row.replies is not None:
            own = self._attributes.replies_of(login.attributes)
            if own != row.replies:
                result, reason = Comparison.REPLY, _difference(row.replies, own)
        return _case(row, result, decision.decision.value, reason or decision.reason.value, login)

    def _without_decision(self, row: ShadowRow) -> Comparison:
        """Return the result for a request that would get no answer, because no client has its address."""
        if not row.answer or row.kind != Kind.LOG:
            return Comparison.UNKNOWN
        return Comparison.STRICTER if row.answer == OldAnswer.ACCEPT else Comparison.SAME

    def _problem(self, asked: Asked) -> str:
        row, login = asked.row, asked.login
        is_outer = row.kind == Kind.COPY and row.method == Method.EAP
        if is_outer and login is not None and login.domain is not None:
            rules = self._pipeline.rules.of(login.domain.id)
            if rules is not None and not _OF_USER.isdisjoint(rules.compared):
                return OUTER_ONLY
        return ""

    def _decision(self, asked: Asked, login: Login, known: Known) -> Decision:
        """Return the decision of enforce mode."""
        steps, row, domain = self._pipeline, asked.row, login.domain
        if domain is None or asked.first is not PASSED:
            return decide(asked.first, UNMATCHED, PASSED, Mode.ENFORCE, Fallback.DENY)
        if asked.is_station:
            key = mac_key(login.user)
            if domain.unknown_stations is not RULES and steps.bypass.entry(domain.id, key, row.at) is None:
                return decide(Reason.UNKNOWN_STATION, UNMATCHED, PASSED, Mode.ENFORCE, domain.fallback)
            login.method, login.imported = Method.MAB, NOBODY
            found = steps.apply_rules_to_station(login, domain, {})
            return decide(*_of_station(found, login), PASSED, Mode.ENFORCE, domain.fallback)
        user = known.users.get((domain.id, login.user)) or KnownUser(UNCLEAR, PASSED)
        login.imported = user.member
        first = self._first(row, login, domain, user)
        action = steps.apply_rules(login, domain) if first is PASSED else UNMATCHED
        second = self._forecast(login, domain) if action is MFA_REQUIRED else PASSED
        return decide(first, action, second, Mode.ENFORCE, domain.applied_fallback)

    def _first(self, row: ShadowRow, login: Login, domain: Domain, user: KnownUser) -> Reason:
        """Return the result of the first factor: that of the other server, unless this service knows better."""
        if row.answer == OldAnswer.REJECT and row.cause == Cause.FIRST_FACTOR:
            return _FAILED
        if domain.first_factor is FirstFactor.NONE and not login.arrival.client.password_verified:
            return Reason.MAY_NOT_VOUCH
        return user.refusal if domain.first_factor is LOCAL else PASSED

    def _forecast(self, login: Login, domain: Domain) -> Reason:
        demand = Demand.of(login.rule)
        second, name = self._second.of(domain, demand.provider), login.principal
        enrolment = self._second.known(domain, second, fold(name), demand.strength) or Reason.ENROLMENT_UNKNOWN
        return second.comes_to(enrolment, gives_up=False, method=login.method, strength=demand.strength)


def fill(device: Device, row: DeviceRow | None) -> None:
    """Set what the inventory knows about a device."""
    if row is None:
        return
    tags, client = of_store(row.own_tags), device.client
    device.device_type = (client.product if client is not None else "") or row.device_type
    device.nas_device_type = row.nas_device_type
    device.find_own_tags = lambda _device: tags


def _of_station(found: Decision, login: Login) -> tuple[Reason, Action]:
    """Return the first factor and the action of a station, for the decision of enforce mode."""
    if found.reason in (Reason.NONE, Reason.BLOCKED):
        return PASSED, Action.BLOCK if found.reason is Reason.BLOCKED else Action.ALLOW
    return found.reason, UNMATCHED


def _compared(row: ShadowRow, decision: Decision) -> tuple[Comparison, str]:
    """Return the result of a comparison, and a reason if the result does not follow from the decision."""
    own, old = decision.decision, _EFFECTS[OldAnswer(row.answer)]
    if own is old:
        return Comparison.SAME, ""
    if old is Verdict.ACCEPT:
        return Comparison.STRICTER, ""
    if row.cause == Cause.UNKNOWN:
        return Comparison.UNKNOWN, NO_CAUSE
    return Comparison.LAXER, ""


def _difference(theirs: str, own: str) -> str:
    """Return which attributes of the answers differ."""
    there, here = Counter(theirs.splitlines()), Counter(own.splitlines())
    parts = (", ".join(sorted((there - here).elements())), ", ".join(sorted((here - there).elements())))
    return f"there {parts[0][:MAX_TEXT] or 'nothing'}, here {parts[1][:MAX_TEXT] or 'nothing'}"


def _case(row: ShadowRow, result: Comparison, decision: str, reason: str, login: Login | None = None) -> ShadowCase:
    rule = None if login is None else login.rule
    return ShadowCase(
        id=row.id,
        at=row.at,
        user=row.user_name,
        station=row.station,
        device=row.nas or row.client,
        result=result,
        decision=decision,
        reason=reason,
        rule="" if rule is None else rule.name,
        old_answer=row.answer,
        old_reason=row.reason,
        old_policy=row.policy,
        place=row.place,
        rule_id=None if rule is None else rule.id,
    )
