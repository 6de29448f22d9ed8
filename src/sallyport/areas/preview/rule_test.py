"""Test the login rules with a hypothetical login: which rule would decide it, and why.

A request is created from the given facts. It runs the steps of the pipeline that prompt no user: identity, bypass,
lock-out, those parts of the first factor that need no password, login rules, and the forecast of the second factor.
Nothing is stored, and the inventory does not count the request.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from secrets import token_bytes
from typing import Final, Literal

import trio

from sallyport.areas.clients.client import Client, ClientTable
from sallyport.areas.devices import repo as inventory
from sallyport.areas.devices.rows import DeviceQuery, DeviceRow
from sallyport.areas.devices.sightings import find_product, new_device
from sallyport.areas.directory.principals import NOBODY, UNCLEAR
from sallyport.areas.domains.domain import LOCAL, WEB, Domain, FirstFactor
from sallyport.areas.login.decision import LOCKED, action_in, decide_in, over_limit
from sallyport.areas.login.facts import facts_of
from sallyport.areas.login.first import web
from sallyport.areas.login.first.password import check_vouched
from sallyport.areas.login.identity import BY_ADDRESS, BY_UNKNOWN_ADDRESS, default_domain, identify, network_of
from sallyport.areas.login.login import PASSED, Decision, Found, Login, Reason, Verdict
from sallyport.areas.login.pipeline import Pipeline
from sallyport.areas.login.second.session import Session
from sallyport.areas.login.simulated import client_of, simulated
from sallyport.areas.login.stations import action_for_station
from sallyport.areas.policy.roles.role import GivenRole, RoleSource
from sallyport.areas.policy.roles.service import product_of
from sallyport.areas.policy.rules.comparisons import split_attribute
from sallyport.areas.policy.rules.conditions import shown_values
from sallyport.areas.policy.rules.facts import Facts
from sallyport.areas.policy.rules.rule import MFA_REQUIRED, UNMATCHED, Action, Rule
from sallyport.areas.preview.enrolled import Demand, SecondFactors
from sallyport.areas.sessions.parallel import Parallel, count
from sallyport.base.addresses import canonical
from sallyport.base.errors import NotFound, invalid_field
from sallyport.base.mac import mac_key
from sallyport.base.tags import of_store
from sallyport.base.text import fold, folded
from sallyport.radius.attributes import (
    CALLING_STATION_ID,
    NAS_IDENTIFIER,
    NAS_IP_ADDRESS,
    NAS_IPV6_ADDRESS,
    NAS_PORT_TYPE,
    SERVICE_TYPE,
    USER_NAME,
    USER_PASSWORD,
    combined,
    push_attribute,
)
from sallyport.radius.password import Method, hide_password
from sallyport.radius.vendors import MEDIA, UNKNOWN
from sallyport.store.model import Store

MAX_NAME: Final = 128
"""Maximum length of a user name, in octets. The name is also sent as the password, as a station with MAC authentication
bypass does, and a password may not be longer."""
MAX_VALUE: Final = 253
SHOWN: Final = 10


Result = Literal["decides", "matches", "may match", "differs", "disabled"]


@dataclass(frozen=True, slots=True)
class Question:
    """The facts of a hypothetical login. An empty fact is unknown.

    user: the name, with or without a realm. client: the name or address of the RADIUS client. nas: the address of the
    NAS. at: the time of the login, in microseconds. given: further facts by their names in `Facts`. unsigned: whether
    the request has no Message-Authenticator.
    """

    user: str
    at: int
    client: str = ""
    nas: str = ""
    nas_identifier: str = ""
    station: str = ""
    medium: str = ""
    service_type: int | None = None
    groups: Sequence[str] = ()
    ous: Sequence[str] = ()
    given: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    unsigned: bool = False


@dataclass(frozen=True, slots=True)
class ReadRule:
    """The result of one rule.

    result: one of `decides`, `matches`, `may match`, `differs` and `disabled`. If a rule `matches`, it does not decide,
    because a stricter rule before it decides. scope: the first condition that does not match, or whose fact is missing.
    has: the value of the login for this scope.
    """

    rule: Rule
    result: Result
    scope: str = ""
    has: str = ""


@dataclass(frozen=True, slots=True)
class RuleTestResult:
    """The result of a test.

    rules: the rules that were read, up to the first rule that certainly matches. rule: the rule that decides, or None
    if no rule matches. first, second: the result of each factor, or NONE if the login passes the factor. provider: the
    name of the MFA provider that is asked, or empty. prompts: the prompts of the user that wait for an answer. role:
    the role that the rule gives at this NAS, or None. attributes: the encoded attributes that the rule and its role add
    to an Access-Accept. parallel: the parallel sessions of the user, or None if the rule has no limit for the login.
    """

    domain: Domain
    user: str
    rules: Sequence[ReadRule]
    rule: Rule | None
    action: Action
    bypass: bool
    locked_out: bool
    first: Reason
    second: Reason
    provider: str
    decision: Decision
    warnings: Sequence[str]
    prompts: Sequence[Session] = ()
    role: GivenRole | None = None
    attributes: bytes = b""
    parallel: Parallel | None = None


class RuleTest:
    """Tests of login rules with hypothetical logins. clients: a function that returns the current RADIUS clients."""

    def __init__(
        self, store: Store, pipeline: Pipeline, second: SecondFactors, clients: Callable[[], ClientTable]
    ) -> None:
        self._store = store
        self._pipeline = pipeline
        self._second = second
        self._clients = clients

    async def run(self, domain_id: int, asked: Question) -> RuleTestResult:
        """Decide a hypothetical login. Raises NotFound if the RADIUS client does not exist. Raises Invalid, StoreError,
        SecretError."""
        pipeline, warnings = self._pipeline, list[str]()
        domain = pipeline.domains.value.present(domain_id)
        row, login = await self._login(domain, asked, warnings)
        first = identify(login, pipeline.domains.value)
        bypass = first is PASSED and bool(pipeline.bypass.requested(login.arrival, login.method, domain))
        locked_out = None
        entry = pipeline.bypass.entry(domain.id, mac_key(login.user), asked.at) if bypass else None
        if bypass:
            login.method, login.factor = Method.MAB, BY_UNKNOWN_ADDRESS if entry is None else BY_ADDRESS
        elif first is PASSED:
            await pipeline.recall(login, domain)
            locked_out = pipeline.lockouts.refuses(login.attempt(domain))
            checked = await self._first(login, domain, asked, warnings)
            first = LOCKED[locked_out] if locked_out else checked
        facts = replace(facts_of(login), **_given(asked))  # type: ignore[arg-type]  # facts of this class
        self._warn_of_claims(domain, facts, warnings)
        rules, rule = self._rules(domain, facts)
        action = action_in(domain, UNMATCHED if rule is None else rule.action)
        second = PASSED
        if action is MFA_REQUIRED and not bypass:
            second = await self._forecast(domain, login, row, Demand.of(rule))
        role, attributes = self._reply(domain, login, rule, warnings)
        attached = self._second.of(domain, Demand.of(rule).provider).attached
        login.rule, login.role, login.attributes = rule, role, attributes
        if bypass:
            decision = pipeline.stations.decide(login, domain, entry, action)
            first = PASSED if entry is not None else decision.reason
            if login.rule is not rule:
                warnings.append("the rule gives no VLAN or role at this NAS, so it admits no unknown station")
            action = Action.BLOCK if first is Reason.UNKNOWN_STATION else action_for_station(action)
        else:
            decision = decide_in(domain, first, action, second)
        role, attributes = login.role, login.attributes
        parallel = None if bypass else await self._parallel(domain, login, rule, row, attributes, warnings)
        if parallel is not None and parallel.is_over and decision.decision is Verdict.ACCEPT:
            decision = over_limit(decision)
        return RuleTestResult(
            domain=domain,
            user=login.user,
            rules=rules,
            rule=rule,
            action=action,
            bypass=bypass and (entry is not None or decision.admits),
            locked_out=locked_out is not None,
            first=first,
            second=second,
            provider="" if attached is None else attached.name,
            decision=decision,
            warnings=warnings,
            prompts=[] if bypass else await pipeline.second.pending(domain, login.principal),
            role=role,
            attributes=attributes,
            parallel=parallel,
        )

    # --- the login --------------------------------------------------------------------------------------------

    async def _login(self, domain: Domain, asked: Question, warnings: list[str]) -> tuple[DeviceRow | None, Login]:
        """Return a login with the given facts. Also return the row of its device in the inventory, or None if there is
        none."""
        name = asked.user.encode()
        if not 1 <= len(name) <= MAX_NAME:
            raise invalid_field("user", f"must be text of 1 to {MAX_NAME} octets")
        client, source, home_id = await self._client(domain, asked.client, warnings)
        row = await self._row(home_id, source, asked) if source else None
        authenticator = token_bytes(16)
        body = push_attribute(USER_NAME, name)
        body += push_attribute(USER_PASSWORD, hide_password(name, client.secret, authenticator))
        body += _attributes(asked, asked.medium or (UNKNOWN if row is None else row.nas_port_type))
        login = simulated(client, source, body, authenticator, Method.PAP, asked.at)
        login.arrival.request.signed = not asked.unsigned
        login.station, login.network = asked.station, network_of(login.arrival.request)
        login.device = device = new_device(login.arrival.request, source, home_id, asked.at)
        device.has_claimed_tags = self._pipeline.sightings.has_claimed_tags
        find_product(device, login.arrival.request, client, asked.at)
        if row is not None:
            device.device_type, device.nas_device_type = client.product or row.device_type, row.nas_device_type
            tags = of_store(row.own_tags)
            device.find_own_tags = lambda _device: tags
        if device.device_type == UNKNOWN and self._compares(domain, "products"):
            warnings.append("the product of the sender is unknown, so a rule that compares products may match or not")
        return row, login

    async def _client(self, domain: Domain, wanted: str, warnings: list[str]) -> tuple[Client, str, int]:
        """Return a copy of the RADIUS client, the source address, and a domain id.

        The copy serves only the given domain. The source address is an empty text if it is unknown. The domain id is
        that of the domain to which the client's devices belong.
        """
        if not wanted:
            return client_of(domain), "", domain.id
        table = self._clients()
        own = [each for each in table.by_id.values() if each.tenant_id == domain.tenant_id]
        found = await trio.to_thread.run_sync(_named, own, wanted)
        source = "" if found is None or found.network.num_addresses > 1 else found.address
        if found is None:
            try:
                found, source = table.find(wanted), canonical(wanted)
            except ValueError:
                found = None
        if found is None or found.tenant_id != domain.tenant_id:
            raise NotFound("RADIUS client not found: give the name or the address of a client of this tenant")
        home = default_domain(found, self._pipeline.domains.value)
        if not found.all_domains and domain.id not in found.domain_ids:
            warnings.append("the RADIUS client does not serve this domain; its logins belong to other domains")
        elif home is not None and home.id != domain.id:
            warnings.append(f"a name without a realm from this RADIUS client belongs to the domain {home.name}")
        client = copy.copy(found)
        client.all_domains, client.domain_ids = False, (domain.id,)
        return client, source, domain.id if home is None else home.id

    async def _row(self, home_id: int, source: str, asked: Question) -> DeviceRow | None:
        """Return the row of the device with these addresses in the inventory, or None if there is none. If several
        devices match, return the one that was seen last."""
        column, value = ("client_ip", asked.nas) if asked.nas else ("ip_address", source)
        query = DeviceQuery(home_id, column=column, value=value, limit=100)
        found, _ = await self._store.search(lambda tx: inventory.page(tx, query))
        same = [
            each for each in found if each.ip_address == source and asked.nas_identifier in ("", each.nas_identifier)
        ]
        return max(same, key=lambda each: each.last_seen, default=None)

    # --- its steps --------------------------------------------------------------------------------------------

    async def _first(self, login: Login, domain: Domain, asked: Question, warnings: list[str]) -> Reason:
        """Return the result that the first factor would have with a correct password. The password itself is not
        checked. Also set the groups and units of the user in the login."""
        if asked.groups or asked.ous:
            groups, ous = await trio.to_thread.run_sync(lambda: (folded(asked.groups), folded(asked.ous)))
            login.found = Found(groups=groups, ous=ous)
        if domain.first_factor is LOCAL:
            user = await self._pipeline.user(domain, login.user)
            if user is None:
                return Reason.UNKNOWN_USER
            login.found = login.found._replace(groups=login.found.groups | user.groups)
            return PASSED
        if domain.first_factor is FirstFactor.NONE:
            if not asked.client:
                warnings.append("this domain accepts only RADIUS clients that may vouch for passwords: give the client")
            return check_vouched(login.arrival) if asked.client else PASSED
        if domain.first_factor is WEB:
            return web.check(login, domain, self._pipeline.principals)
        if not self._pipeline.first.stamp(domain):
            return Reason.FIRST_FACTOR_UNAVAILABLE
        unread = domain.first_factor is FirstFactor.LDAP and login.imported in (None, NOBODY)
        if unread and not (asked.groups or asked.ous):
            login.imported = UNCLEAR
            warnings.append(
                "the directory returns groups and units at each login, but this test has none: give groups and units"
            )
        return PASSED

    def _warn_of_claims(self, domain: Domain, facts: Facts, warnings: list[str]) -> None:
        rules = [rule for rule in self._pipeline.rules.all_of(domain.id) if rule.action is Action.ALLOW]
        claimed = {field for rule in rules if rule.definition.enabled for field in rule.definition.scopes}
        if claimed := claimed & facts.claims:
            warnings.append(
                f"{', '.join(sorted(claimed))}: only claims of the sender, because the request is not signed or comes "
                "from a RADIUS client with an address range; they exempt no login from the second factor"
            )

    def _compares(self, domain: Domain, scope: str) -> bool:
        rules = self._pipeline.rules.all_of(domain.id)
        return any(scope in rule.definition.scopes for rule in rules if rule.definition.enabled)

    def _rules(self, domain: Domain, facts: Facts) -> tuple[list[ReadRule], Rule | None]:
        """Return the results of the rules that were read, and the rule that decides. The rules are read up to the first
        rule that certainly matches."""
        every = sorted(self._pipeline.rules.all_of(domain.id), key=lambda rule: rule.sort_key)
        rules = self._pipeline.rules.of(domain.id)
        if rules is None:
            return [ReadRule(rule, "disabled") for rule in every], None
        decides = rules.match(facts)
        steps = {step.rule.id: step for step in rules.explain(facts)}
        read: list[ReadRule] = []
        shown: dict[str, str] = {}
        for rule in every:
            step = steps.pop(rule.id, None)
            if step is None:
                if not rule.definition.enabled:
                    read.append(ReadRule(rule, "disabled"))
                continue
            result: Result = "differs" if step.matches is False else "matches" if step.matches else "may match"
            if decides is not None and decides.id == rule.id:
                result = "decides"
            if step.scope not in shown:
                shown[step.scope] = shown_values(facts, step.scope, SHOWN)
            read.append(ReadRule(rule, result, step.scope, shown[step.scope]))
            if not steps:
                break
        return read, decides

    def _reply(
        self, domain: Domain, login: Login, rule: Rule | None, warnings: list[str]
    ) -> tuple[GivenRole | None, bytes]:
        """Return the role that a rule gives at the NAS of the login, and all attributes that the rule adds."""
        if rule is None or not rule.role:
            return None, b"" if rule is None else rule.attributes
        role = self._pipeline.roles.given(domain.id, rule.role, login.device, login.arrival.client)
        if role.source is RoleSource.NONE:
            warnings.append(
                f"the role {role.name} has no set for this NAS and no default set, so nothing of it is sent"
            )
        elif role.source is RoleSource.DEFAULT:
            product = (
                product_of(login.device.nas_device_type, login.arrival.client.product) or "a NAS of unknown product"
            )
            warnings.append(f"the role {role.name} has no set for {product}, so its default set is sent")
        return role, combined(role.attributes, rule.attributes)

    async def _parallel(
        self,
        domain: Domain,
        login: Login,
        rule: Rule | None,
        row: DeviceRow | None,
        attributes: bytes,
        warnings: list[str],
    ) -> Parallel | None:
        """Count the parallel sessions of the user. Return None if the rule has no limit, or the device is unknown."""
        if rule is None or not rule.definition.max_sessions or not login.user:
            return None
        if row is None:
            warnings.append("the limit of parallel sessions depends on the device: give the client and the NAS")
            return None
        login.rule, login.device.id = rule, row.id
        asked = self._pipeline.limits.admission(login, domain, login.device, attributes, login.arrival.at)
        return await self._store.search(lambda tx: count(tx, asked))

    async def _forecast(self, domain: Domain, login: Login, row: DeviceRow | None, demand: Demand) -> Reason:
        """Predict the result of asking the user for the second factor that a rule demands."""
        second, name = self._second.of(domain, demand.provider), login.principal
        enrolment = await self._second.enrolment_of(domain, second, fold(name), name, demand.strength)
        second = self._second.of(domain, demand.provider)  # the look-up may have shown that it is unreachable
        gives_up = row is not None and second.gives_up(row, login.arrival.at)
        return second.comes_to(enrolment, gives_up=gives_up, method=login.method, strength=demand.strength)


def _given(asked: Question) -> dict[str, object]:
    """Return the further facts of a question by their names in `Facts`."""
    given: dict[str, object] = dict(asked.given)
    if isinstance(texts := asked.given.get("attributes"), tuple):
        attributes: dict[str, tuple[str, ...]] = {}
        for name, _, value in map(split_attribute, texts):
            attributes[name] = (*attributes.get(name, ()), value)
        given["attributes"] = attributes
    return given


def _named(clients: Sequence[Client], name: str) -> Client | None:
    """Return the client with this name, or None if there is none. The name is compared without regard to case. Call it
    in a thread, because case-folding many long names takes time."""
    key = fold(name)
    return next((each for each in clients if fold(each.name) == key), None)


def _attributes(asked: Question, medium: str) -> bytes:
    """Return the given facts as encoded attributes of a request. Raises Invalid."""
    nas = ip_address(asked.nas) if asked.nas else None
    port_type = next((number for number, name in MEDIA.items() if name == medium), None)
    body = b""
    for kind, name, value in (
        (NAS_IPV6_ADDRESS if nas is not None and nas.version == 6 else NAS_IP_ADDRESS, "nas", nas and nas.packed),
        (NAS_IDENTIFIER, "nasIdentifier", asked.nas_identifier.encode()),
        (CALLING_STATION_ID, "station", asked.station.encode()),
        (NAS_PORT_TYPE, "medium", None if port_type is None else port_type.to_bytes(4)),
        (SERVICE_TYPE, "serviceType", None if asked.service_type is None else asked.service_type.to_bytes(4)),
    ):
        if value and len(value) > MAX_VALUE:
            raise invalid_field(name, f"must have at most {MAX_VALUE} octets")
        body += push_attribute(kind, value) if value else b""
    return body
