"""Tests of previews and rule tests with the conditions about the request."""

import json
from typing import Any

import pytest

from sallyport.areas.devices.rows import DeviceQuery
from sallyport.areas.domains.domain import FirstFactor, Mode
from sallyport.areas.login.facts import CLAIMS
from sallyport.areas.policy.rules.conditions import CONDITIONS
from sallyport.areas.preview.rule_test import Question, RuleTestResult
from sallyport.store.model import Value
from tests.areas import Areas
from tests.areas.login.conftest import Answers, FakeListener
from tests.areas.preview.conftest import Book
from tests.packets import attributes, pap

RECORDED: dict[str, dict[str, Value]] = {
    "ssids": {"ssid": "corp"},
    "ports": {"port": "Gi1/0/7"},
    "methods": {"method": "eap-peap-mschapv2"},
    "realms": {"realm": "corp.example"},
    "addresses": {"facts": json.dumps({"address": "198.51.100.7"})},
    "certificates": {"facts": json.dumps({"certificates": ["issuer=Corp CA"]})},
    "attributes": {"facts": json.dumps({"attributes": {"NAS-Identifier": ["ap-7"]}})},
}
VALUES: dict[str, list[str]] = {
    "ssids": ["Corp"],
    "ports": ["Gi?/0/*"],
    "methods": ["peap-mschapv2"],
    "realms": ["corp.example"],
    "addresses": ["198.51.100.0/24"],
    "certificates": ["issuer=corp ca"],
    "attributes": ["nas-identifier~AP-*"],
}
OTHER: dict[str, dict[str, Value]] = {
    "ssids": {"ssid": "guests"},
    "ports": {"port": "Gi10/0/7"},
    "methods": {"method": "eap-ttls-pap"},
    "realms": {"realm": "partner.example"},
    "addresses": {"station": "203.0.113.1"},
    "certificates": {"facts": json.dumps({"certificates": ["issuer=Old CA"]})},
    "attributes": {"facts": json.dumps({"attributes": {"NAS-Identifier": ["x"]}})},
}
KNOWN_IN_OLD_EVENTS = {"methods"}


@pytest.mark.parametrize("field", VALUES)
async def test_recorded_logins_are_decided_by_their_facts(book: Book, field: str) -> None:
    """An event has what the condition compares. Logins with different facts are decided separately."""
    await book.users("ann", "bob")
    await book.rule(action="allow", **{field: VALUES[field]})
    await book.events(["ann", "bob", "ann"], claimed=0, **RECORDED[field])
    await book.events(["bob"], claimed=0, **OTHER[field])
    assert await book.outcomes() == {"bob": ("reject", "no provider", 2), "ann": ("accept", "", 2)}


@pytest.mark.parametrize("field", sorted(VALUES.keys() - KNOWN_IN_OLD_EVENTS))
async def test_an_event_of_an_earlier_release_lacks_the_fact(book: Book, field: str) -> None:
    """A rule that allows does not exempt such a login, and a rule that blocks applies."""
    await book.users("ann")
    await book.rule(action="allow", **{field: VALUES[field]})
    await book.events(["ann"])
    assert await book.outcomes() == {"ann": ("reject", "no provider", 1)}
    await book.rule(action="block", **{field: VALUES[field]})
    assert await book.outcomes() == {"ann": ("reject", "blocked by rule", 1)}


@pytest.mark.parametrize("claimed", [1, None])
async def test_claims_of_recorded_logins_exempt_nobody(book: Book, claimed: int | None) -> None:
    """The preview says how many logins a rule matches only by claims. An event of an earlier release does not tell
    whether its request was signed."""
    await book.users("ann", "bob")
    await book.rule(name="wlan", action="allow", ssids=["corp"])
    await book.events(["ann", "ann"], ssid="corp", claimed=claimed)
    await book.events(["bob"], ssid="corp", claimed=0)
    assert await book.outcomes() == {"ann": ("reject", "no provider", 2), "bob": ("accept", "", 1)}
    rules = [(each.name, each.logins, each.claimed) for each in (await book.impact()).rules]
    assert rules == [("", 2, 0), ("wlan", 1, 2)]


async def test_the_method_of_a_checked_login_is_no_claim(book: Book) -> None:
    """This service itself has checked the method, unless the sender vouches for passwords."""
    await book.users("ann")
    await book.rule(action="allow", methods=["pap"])
    await book.events(["ann"], claimed=1)
    assert await book.outcomes() == {"ann": ("accept", "", 1)}
    areas = book.areas
    await areas.first_settings.set(areas.domains.table.by_id[areas.domain], FirstFactor.NONE, {})
    assert await book.outcomes() == {"ann": ("reject", "no provider", 1)}


async def ask(areas: Areas, **facts: Any) -> RuleTestResult:
    """Return the result of a hypothetical login now."""
    return await areas.app.preview.rule_test.run(areas.domain, Question("ann@corp", areas.clock(), **facts))


GIVEN = {
    "ssid": "corp",
    "port": "Gi1/0/7",
    "method": "peap-mschapv2",
    "address": "198.51.100.7",
    "certificates": ("issuer=Corp CA",),
    "attributes": ("NAS-Identifier=ap-7",),
}


@pytest.mark.parametrize("field", VALUES)
async def test_a_rule_test_has_the_given_facts(book: Book, field: str) -> None:
    """Without the fact, a rule that blocks may match."""
    areas = book.areas
    await book.users("ann")
    await areas.client("192.0.2.1/32", name="ap")
    await book.rule(action="allow", **{field: ["corp"] if field == "realms" else VALUES[field]})
    assert (await ask(areas, client="ap", given=GIVEN)).rule is not None
    absent = await ask(areas, client="ap")
    results = {"realms": "decides", "methods": "differs"}
    assert [each.result for each in absent.rules] == [results.get(field, "may match")]


async def test_a_rule_test_says_what_is_only_claimed(book: Book) -> None:
    """An unsigned request, and a client with an address range, only claim the SSID."""
    areas = book.areas
    await book.users("ann")
    await areas.client("192.0.2.1/32", name="ap")
    await areas.client("198.51.100.0/24", name="range")
    await book.rule(action="allow", ssids=["corp"])
    signed = await ask(areas, client="ap", given=GIVEN)
    assert (signed.rule is not None, signed.warnings) == (True, [])
    for facts in ({"client": "ap", "unsigned": True}, {"client": "range"}):
        claimed = await ask(areas, given=GIVEN, **facts)
        assert claimed.rule is None
        assert [(each.result, each.has) for each in claimed.rules] == [("may match", "corp (a claim of the sender)")]
        assert any(text.startswith("ssids: only claims of the sender") for text in claimed.warnings)


@pytest.mark.parametrize(
    ("network", "signed", "exempt"),
    [("192.0.2.1/32", True, True), ("192.0.2.1/32", False, False), ("192.0.2.0/24", True, False)],
)
async def test_a_login_is_recorded_with_its_facts(book: Book, network: str, signed: bool, exempt: bool) -> None:
    """The live login and its event have the same facts, and the preview decides it in the same way."""
    areas = book.areas
    await book.users("ann")
    await book.rule(action="allow", ssids=["corp"], ports=["radio*"], addresses=["198.51.100.7"], realms=["corp"])
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, None)
    listener = FakeListener(areas, await areas.client(network), Answers())
    body = attributes(
        CALLED_STATION_ID=b"02-00-00-00-00-99:corp", NAS_PORT_ID=b"radio 1", TUNNEL_CLIENT_ENDPOINT=b"\x01198.51.100.7"
    )
    login = await listener.ready(pap("ann@corp", "hello", body, signed=signed))
    assert (login.rule is not None) is exempt
    areas.journal.add(login)
    areas.journal.flush()
    await listener.answers.recorded.wait()
    (row,) = await areas.store.read(lambda tx: tx.rows("select ssid, port, realm, claimed, facts from events"))
    assert tuple(row) == ("corp", "radio 1", "corp", int(not exempt), '{"address": "198.51.100.7"}')
    assert (await book.outcomes())["ann"][0] == ("accept" if exempt else "reject")


def test_the_conditions_whose_facts_may_be_claims() -> None:
    """Names of users and groups, clients, and what the inventory has learned are no claims."""
    assert {each.field for each in CONDITIONS if each.is_claim} == CLAIMS
    assert {"ssids", "ports", "methods", "addresses", "attributes", "tags"} == CLAIMS


async def test_tags_of_the_device_and_its_client(book: Book) -> None:
    """A device takes over the tags of its client. Its own tag is a claim if the device is known only by its name."""
    areas = book.areas
    await book.users("ann")
    client = await areas.client("192.0.2.1/32", name="ap")
    await areas.clients.update(areas.tenant, client.id, {}, tags=["site=Berlin/2"])
    await book.rule(action="allow", tags=["site=berlin"])
    device = await book.device("ap-7")
    await book.events(["ann"], device_id=device, device_name="ap-7", claimed=1)
    assert await book.outcomes() == {"ann": ("accept", "", 1)}
    assert (await ask(areas, client="ap", unsigned=True)).rule is not None
    await areas.devices.update(areas.domain, device_ids=[device], addresses=None, tags=["site=Hamburg"], note=None)
    assert await book.outcomes() == {"ann": ("reject", "no provider", 1)}
    await areas.devices.update(areas.domain, device_ids=[device], addresses=None, tags=["site=Berlin"], note=None)
    assert await book.outcomes() == {"ann": ("reject", "no provider", 1)}
    (rule,) = (each for each in (await book.impact()).rules if each.name)
    assert (rule.logins, rule.claimed) == (0, 1)


@pytest.mark.parametrize(("tagged", "sent"), [("ap-7", ""), ("ap-7", "another"), ("", "another")])
async def test_another_name_of_a_tagged_device_exempts_no_login(book: Book, tagged: str, sent: str) -> None:
    """In an unsigned request, a host on the path could leave out or change the name, so that the device would get the
    tag of its client in place of its own."""
    areas = book.areas
    await book.users("ann")
    client = await areas.client("192.0.2.1/32", name="ap")
    await areas.clients.update(areas.tenant, client.id, {}, tags=["site=Berlin"])
    await book.rule(action="allow", tags=["site=berlin"])
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, None)

    async def is_exempt(name: str, *, signed: bool = False) -> bool:
        listener = FakeListener(areas, areas.clients.table.present(client.id), Answers())
        named = attributes(NAS_IDENTIFIER=name.encode()) if name else b""
        login = await listener.ready(pap("ann", "hello", named, signed=signed))
        areas.journal.add(login)
        areas.journal.flush()
        await listener.answers.recorded.wait()
        assert ((await book.outcomes())["ann"][0] == "accept") is (login.rule is not None)
        if name:  # without a name, a rule test takes the device that was seen last
            asked = await ask(areas, client="ap", nas_identifier=name, unsigned=not signed)
            assert asked.rule == login.rule
        await areas.store.write(lambda tx: tx.execute("delete from events"))
        return login.rule is not None

    assert await is_exempt(tagged)
    (device,) = (await areas.devices.page(DeviceQuery(areas.domain)))[0]
    await areas.devices.update(areas.domain, device_ids=[device.id], addresses=None, tags=["site=Hamburg"], note=None)
    assert not await is_exempt(tagged)
    assert not await is_exempt(sent)
    assert await is_exempt(sent, signed=True)
