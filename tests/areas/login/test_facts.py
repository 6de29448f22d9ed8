"""The facts of logins, and the results of rules that logins with the same facts share."""

from copy import copy

import pytest

from sallyport.areas.clients.client import Client
from sallyport.areas.login.facts import facts_key, further_facts
from sallyport.areas.login.login import Login, Reason
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.areas.policy.rules.conditions import CONDITIONS
from sallyport.areas.policy.rules.facts import Condition
from sallyport.areas.policy.rules.match import MAX_KEPT, DomainRules
from sallyport.radius.attributes import USER_NAME, push_vendor_attribute
from tests.areas.login.conftest import FakeListener
from tests.areas.policy.rules import rule
from tests.packets import attributes, opened, pap

EACH_LOGIN = {"users", "groups", "ous", "stations", "addresses", "certificates"}
"""Conditions whose results are not kept, or not for a login that has their fact."""
VALUES = {
    "kinds": "machine", "products": "Cisco ASA", "clients": "192.0.2.0/24", "media": "Wireless", "serviceTypes": "2",
    "tags": "site=berlin", "methods": "pap", "attributes": "Class=a"
}  # fmt: skip
OTHERS = {
    "NAS_PORT_TYPE": (19).to_bytes(4),
    "CALLED_STATION_ID": b"02-00-00-00-00-01:corp",
    "NAS_PORT_ID": b"ge-0/0/1",
    "SERVICE_TYPE": (2).to_bytes(4),
    "CLASS": b"a",
    "CALLING_STATION_ID": b"198.51.100.7",
    "TUNNEL_CLIENT_ENDPOINT": b"198.51.100.7",
}


async def logins(listener: FakeListener) -> list[Login]:
    """Return logins that differ in one fact each, with their devices. No rule is read."""
    found = [await _noted(listener, pap("ann", "hello"))]
    found += [
        await _noted(listener, pap("ann", "hello", attributes(**{name: value}))) for name, value in OTHERS.items()
    ]
    found.append(await _noted(listener, pap("ann", "hello", signed=False)))
    found.append(await _noted(listener, pap("host/pc1", "hello")))
    found.append(await _noted(listener, pap("ann@corp.example", "hello")))
    for name, value in (("method", "eap-peap"), ("resumed", "peap-mschapv2")):
        other = await _noted(listener, pap("ann", "hello"))
        setattr(other, name, value)
        found.append(other)
    for name, value in (("device_type", "Cisco ASA"), ("nas_device_type", "Cisco ASA"), ("find_own_tags", _berlin)):
        other = await _noted(listener, pap("ann", "hello", attributes(NAS_IDENTIFIER=name.encode())))
        setattr(other.device, name, value)
        found.append(other)
    found.append(await _noted(listener, pap("ann", "hello")))
    found[-1].device.client_ip = "198.51.100.1"
    other_client = copy(listener.client)
    other_client.name = "another"
    found.append(await _noted(listener, pap("ann", "hello"), other_client))
    return found


def _berlin(_device: object) -> tuple[str, ...]:
    return ("site=berlin",)


async def _noted(listener: FakeListener, datagram: bytes, client: Client | None = None) -> Login:
    login = listener.login(datagram, client)
    await listener.decide(login)
    listener.areas.pipeline.note(login)
    return login


def compared(listener: FakeListener, login: Login, rules: DomainRules, condition: Condition) -> object:
    """Return everything of a login on which the result of rules with one condition depends."""
    facts = listener.areas.pipeline.facts_with(login, rules, {})
    found = condition.has(facts)
    has = None if found is None else tuple(found)
    return has, condition.field in facts.claims, further_facts(facts, login)


@pytest.mark.parametrize(
    "condition", [each for each in CONDITIONS if each.field not in EACH_LOGIN], ids=lambda each: each.field
)
async def test_logins_with_one_key_have_the_same_facts(listener: FakeListener, condition: Condition) -> None:
    """Each condition distinguishes some of the logins, and then their keys differ."""
    rules = DomainRules([rule(1, **{condition.field: [VALUES.get(condition.field, "corp")]})])
    reading = rules.read(listener.areas.pipeline.rules.translation.types_of(rules.attributes))
    assert reading.is_shared
    facts_of_key = dict[object, object]()
    for login in await logins(listener):
        facts = compared(listener, login, rules, condition)
        assert facts_of_key.setdefault(facts_key(login, reading), facts) == facts
    assert len(set(facts_of_key.values())) > 1


async def test_a_kept_result_belongs_to_its_facts(listener: FakeListener) -> None:
    """Each login gets the result for its own port. Results for many ports take no more memory."""
    areas = listener.areas
    await areas.rules.add(areas.domain, RuleFields(name="no", action="block", ports=["x*"]))
    for number in [*range(4), *range(4), *range(4, 3 * MAX_KEPT)]:
        port = f"{'xy'[number % 2]}{number}".encode()
        decision = await listener.decide(listener.login(pap("ann", "hello", attributes(NAS_PORT_ID=port))))
        assert (decision.reason is Reason.BLOCKED) is (number % 2 == 0), number
    rules = areas.rules.of(areas.domain)
    assert rules is not None
    assert 0 < len(rules.results) <= MAX_KEPT


def test_another_key_for_the_same_attributes_takes_no_memory() -> None:
    """A layout keeps few sets of attributes to leave out."""
    request = opened(pap("ann", "hello"))
    left = {request.without(frozenset({USER_NAME, 100 + number})) for number in range(100)}
    assert len(left) == 1
    assert len(request._layout._parts) <= 16


@pytest.mark.parametrize(
    ("scope", "body"),
    [
        ({"attributes": ["Cisco-AVPair=x"]}, attributes(CLASS=b"x")),
        ({"attributes": ["Class~x*"]}, attributes(CLASS=b"x" * 253) * 3),
        ({"ssids": ["corp"]}, push_vendor_attribute(311, 25, bytes(50))),
    ],
)
async def test_no_result_keeps_long_octets_or_attributes_of_vendors(
    listener: FakeListener, scope: dict[str, object], body: bytes
) -> None:
    """Such attributes differ in each login, and MS-CHAP sends its response in one."""
    areas = listener.areas
    await areas.rules.add(areas.domain, RuleFields.model_validate({"name": "no", "action": "block", **scope}))
    await listener.decide(listener.login(pap("ann", "hello", body)))
    rules = areas.rules.of(areas.domain)
    assert rules is not None
    assert not any(
        bytes(50) in part or len(part) > 50 for key in rules.results for part in key if part.__class__ is bytes
    )  # type: ignore[attr-defined]
    assert len(rules.results) == ("ssids" in scope)
