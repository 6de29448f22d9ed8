"""The pages of login rules and of MAC bypass."""

import re
from functools import partial

from sallyport.areas.devices.device import Device
from sallyport.areas.policy.bypass import unknown_repo
from sallyport.areas.policy.bypass.station import StationChange
from sallyport.areas.policy.bypass.unknown import Sighting
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.areas.policy.rules.rule import OverLimit
from sallyport.areas.preview.bodies import ProposedRule
from sallyport.web.scope import Role
from tests.areas.preview.conftest import Book, Scripted
from tests.console.visitor import Site, Visitor, text_of


async def rule(site: Site, name: str, **fields: object) -> int:
    """Add a rule to the domain corp and return its id."""
    confirmed = {} if fields.keys() & {"users", "groups", "stations", "clients"} else {"everyone": True}
    given = RuleFields.model_validate({"name": name, "action": "block", **confirmed, **fields})
    return await site.areas.rules.add(site.areas.domain, given)


async def order(admin: Visitor) -> list[str]:
    """Return the names of the rules in the order of the page."""
    return re.findall(r'href="/rules/\d+/edit\?domain=\d+">([^<]+)</a>', (await admin.get("/rules")).text)


async def test_rules_are_listed_in_their_order(site: Site, admin: Visitor) -> None:
    """The page has the rules as they are read, with their conditions in words, and exports them."""
    assert "No rule yet" in text_of(await admin.get("/rules"))
    await rule(
        site, "late", clients=["vpn"], time={"days": ["mon", "tue", "wed", "sun"], "from": "22:00", "until": "6:00"}
    )
    await rule(site, "first", users=["a", "b", "c", "d"], action="allow", vlan="20")
    page = text_of(await admin.get("/rules"))
    assert await order(admin) == ["first", "late"]
    assert "user a, b, c and 1 more VLAN 20" in page
    assert "client vpn; mon-wed,sun 22:00-06:00 UTC" in page
    csv = (await admin.get("/rules?format=csv")).text.splitlines()
    assert csv[1].startswith("1,first,Allow without a second factor,")


async def test_a_rule_moves_up_and_down(site: Site, admin: Visitor) -> None:
    """The buttons of a rule swap it with its neighbour of the same kind, and the page before a chosen rule."""
    a, b, c = [await rule(site, name) for name in "abc"]
    await rule(site, "u", users=["ann"])
    shown = (await admin.get("/rules")).text
    assert "Move a up" not in shown  # the rule before it has users, so it is always read first
    assert "Move c down" not in shown
    assert "Move u down" not in shown
    answer = await admin.send(f"/rules/{b}/move?domain=1", {"before": str(a)}, page="/rules")
    assert answer.headers["location"] == "/rules?domain=1"
    assert await order(admin) == ["u", "b", "a", "c"]
    await admin.send(f"/rules/{c}/move", {"before": str(b)})
    assert await order(admin) == ["u", "c", "b", "a"]
    assert (await admin.send(f"/rules/{c}/move", {"before": "999"})).status_code == 400


async def test_a_domain_reads_its_rules_as_listed(site: Site, admin: Visitor) -> None:
    """The settings of the domain have the order. Rules of all kinds then move among each other."""
    plain, of_user = await rule(site, "a"), await rule(site, "u", users=["ann"])
    assert "Move a up" not in (await admin.get("/rules")).text
    await admin.send("/domains/1/settings", {"name": "default", "order": "listed"})
    assert site.areas.domains.table.present(site.areas.domain).rule_order == "listed"
    shown = await admin.get("/rules")
    assert "Rules are read as listed" in text_of(shown) and await order(admin) == ["a", "u"]
    assert "Move u up" in shown.text
    await admin.send(f"/rules/{of_user}/move?domain=1", {"before": str(plain)}, page="/rules")
    assert await order(admin) == ["u", "a"]
    assert "are read by priority alone" in text_of(await admin.get("/domains/1"))


async def test_a_rule_names_a_provider(site: Site, admin: Visitor) -> None:
    """The form offers the providers of the domain. The list and the test of the rules show what a rule demands."""
    areas = site.areas
    await areas.providers.set(areas.domain, "totp", {}, 60)
    await Book(areas).keys(strong="ann")
    await areas.add_user(areas.domain, "ann", b"hello")
    assert '<option value="keys">' in (await admin.get("/rules/add")).text
    fields = {"name": "admins", "action": "mfa_required", "enabled": "yes", "users": "ann", "provider": "keys"}
    refused = await admin.send("/rules/add", {**fields, "provider": "totp", "strength": "phishing_resistant"})
    assert refused.status_code == 400
    assert "the highest strength that totp can reach" in text_of(refused)
    assert (await admin.send("/rules/add", {**fields, "strength": "phishing_resistant"})).status_code == 303
    assert "Require a second factor: keys, phishing resistant" in text_of(await admin.get("/rules"))
    (kept,) = areas.rules.all_of(areas.domain)
    assert '<option value="keys" selected>' in (await admin.get(f"/rules/{kept.id}/edit")).text
    assert "keys" in text_of(await admin.get("/rules/test?user=ann"))
    await admin.send(f"/rules/{kept.id}/edit", {**fields, "provider": ""})
    assert areas.rules.all_of(areas.domain)[0].definition.provider == ""


async def test_a_rule_is_added_changed_and_removed(site: Site, admin: Visitor) -> None:
    """The form has every field of a rule, and a refused form is shown again with its values and the reasons."""
    fields = {
        "name": "night", "action": "allow", "enabled": "yes", "users": "ann\r\n\r\n bob ", "clients": "192.0.2.0/24",
        "kinds": "user", "days": "mon", "from": "22:00", "until": "06:00", "timezone": "Europe/Berlin",
        "vlan": "20", "replyAttributes": "Filter-Id=staff\nClass=7", "priority": "7", "maxSessions": "2",
        "overLimit": "end_oldest",
    }  # fmt: skip
    refused = await admin.send("/rules/add", {**fields, "vlan": "9999"})
    assert refused.status_code == 400
    assert 'value="night"' in refused.text
    assert "4094" in text_of(refused)
    answer = await admin.send("/rules/add", fields)
    assert answer.status_code == 303
    assert "no such user" in text_of(await admin.get("/rules"))
    (kept,) = site.areas.rules.all_of(site.areas.domain)
    assert kept.definition.values("users") == ("ann", "bob")
    assert kept.definition.time is not None and kept.definition.time.timezone == "Europe/Berlin"
    assert [(each.name, each.value) for each in kept.definition.reply_attributes] == [
        ("Filter-Id", "staff"), ("Class", "7"),
    ]  # fmt: skip
    assert (kept.definition.max_sessions, kept.definition.over_limit) == (2, OverLimit.END_OLDEST)
    assert "at most 2 sessions of a user" in text_of(await admin.get("/rules"))
    page = f"/rules/{kept.id}/edit"
    assert "ann\nbob</textarea>" in (await admin.get(page)).text
    await admin.send(page, {"name": "day", "action": "block", "users": "ann"})
    (kept,) = site.areas.rules.all_of(site.areas.domain)
    assert (kept.name, kept.definition.enabled, kept.definition.vlan) == ("day", False, "")
    assert kept.definition.max_sessions == 0
    assert "user ann" in text_of(await admin.get(f"/rules/{kept.id}/remove"))
    await admin.send(f"/rules/{kept.id}/remove")
    assert site.areas.rules.all_of(site.areas.domain) == ()


async def test_a_rule_for_everyone_needs_its_confirmation(site: Site, admin: Visitor) -> None:
    """A rule that allows or blocks and has no condition is refused until the person confirms it."""
    fields = {"name": "all", "action": "block", "enabled": "yes"}
    assert "would block every login" in text_of(await admin.send("/rules/add", fields))
    fields["action"] = "allow"
    assert "would admit everyone" in text_of(await admin.send("/rules/add", fields))
    assert (await admin.send("/rules/add", {**fields, "everyone": "yes"})).status_code == 303


async def test_the_effect_of_a_rule_before_it_is_stored(site: Site, admin: Visitor) -> None:
    """The form shows the users of last week's logins whose outcome would change, and stores nothing."""
    book = Book(site.areas)
    await book.provider(enrolled="ann,bob")
    await book.users("ann", "bob")
    await book.events(["ann", "ann", "bob"])
    fields = {"name": "no ann", "action": "block", "enabled": "yes", "users": "ann", "do": "effect"}
    page = await admin.send("/rules/add", fields)
    text = text_of(page)
    assert "Users then 0 accepted, 1 asked for a second factor, 1 refused, 0 unknown" in text
    assert "ann 2 challenge reject blocked by rule" in text
    assert "bob 1 challenge" not in text
    assert 'value="no ann"' in page.text
    assert "/edit" not in page.text  # the rule is not stored, so it has no page
    assert site.areas.rules.all_of(site.areas.domain) == ()
    stored = await rule(site, "no ann", users=["ann"])
    assert "ann 2 reject challenge" in text_of(await admin.get(f"/rules/{stored}/remove"))
    week = text_of(await admin.get("/rules/effect"))
    assert "no ann Block 2 1" in week and "no rule matches Require a second factor 1 1" in week
    impact = await book.impact(proposed=ProposedRule(ruleId=stored, enabled=False))
    assert [each.ruleId for each in impact.rules] == [None]
    Scripted.calls.clear()


async def test_a_login_is_tested(site: Site, admin: Visitor) -> None:
    """The page of a test names the rule that decides, and the reason why an earlier rule does not. Its address can be
    shared. A wrong fact is named."""
    await site.areas.add_user(site.areas.domain, "ann", b"hello")
    await rule(site, "bob", users=["bob"])
    await rule(site, "guests", groups=["guests"])
    page = text_of(await admin.get("/rules/test?user=ann&groups=guests"))
    assert "The rule guests decides: block First factor local users Second factor" in page
    assert "differs users ann" in page
    assert "MAC" in text_of(await admin.get("/rules/test"))
    wrong = await admin.get("/rules/test?user=ann&nas=x")
    assert wrong.status_code == 200
    assert "must be an IP address" in text_of(wrong)


async def test_bypass_stations_are_added_and_removed(site: Site, admin: Visitor) -> None:
    """Stations are added in any notation, found by any part, and removed one by one."""
    assert "No station yet" in text_of(await admin.get("/bypass"))
    assert "invalid" in text_of(await admin.send("/bypass/add", {"station": "printer"}))
    answer = await admin.send("/bypass/add", {"station": "AABB.CCDD.EE01\naa-bb-cc-dd-ee-02", "name": "printers"})
    assert answer.headers["location"] == "/bypass?domain=1"
    assert "2 stations added to corp" in text_of(await admin.get("/bypass"))
    found = text_of(await admin.get("/bypass?search=ee02"))
    assert "aa:bb:cc:dd:ee:02" in found and "aa:bb:cc:dd:ee:01" not in found
    await admin.send("/bypass/aa:bb:cc:dd:ee:01", {"name": "spare of aa:bb:cc:dd:ee:02"})
    station = "/bypass/aa:bb:cc:dd:ee:02"  # another station names it
    assert "made up at random" in text_of(await admin.get(station))
    assert "vlan" in text_of(await admin.send(station, {"name": "printers", "vlan": "9999"}))
    await admin.send(station, {"name": "printers", "vlan": "30", "until": "2027-03-01"})
    changed = text_of(await admin.get("/bypass?search=ee02"))
    assert "30" in changed and "2027-03-01 00:00:00 UTC" in changed
    assert 'value="2027-03-01"' in (await admin.get(station)).text
    await admin.send(station, {"name": "printers", "vlan": "", "until": ""})
    assert "2027" not in text_of(await admin.get("/bypass?search=ee02"))
    path = f"{station}/remove"
    assert "printers" in text_of(await admin.get(path))
    await admin.send(path)
    assert (await admin.get(path)).status_code == 404
    assert "1 in all" in text_of(await admin.get("/bypass"))


async def test_an_unknown_station_is_added_with_one_click(site: Site, admin: Visitor) -> None:
    """The page of unknown stations shows where each was seen, and its button adds it to the list. An entry that has
    ended gets no end. An auditor gets no button."""
    areas = site.areas
    assert "No unknown station" in text_of(await admin.get("/bypass/unknown"))
    device = Device(areas.domain, "192.0.2.1", "192.0.2.1", "", 1)
    seen = [Sighting(areas.domain, f"02000000000{n}", 1, device, "guests", "", "reject") for n in (1, 2)]
    await areas.store.write(partial(unknown_repo.write, sightings=seen))
    await areas.bypass.put(areas.domain, [StationChange("020000000001", "telephone", until=1)])
    await areas.store.write(partial(unknown_repo.write, sightings=seen))
    page = await admin.get("/bypass/unknown?search=GUEST")
    assert re.search(r"02:00:00:00:00:01 \S yes", text_of(page)) and page.text.count(">Add</button>") == 2
    answer = await admin.send("/bypass/unknown", {"station": "02:00:00:00:00:01"})
    assert answer.headers["location"] == "/bypass/unknown?domain=1"
    page = await admin.get("/bypass/unknown")
    assert "is on the list of corp" in text_of(page) and page.text.count(">Add</button>") == 1
    (row,), _ = await areas.bypass.page(areas.domain, "", offset=0, limit=2)
    assert (row.name, row.until_at) == ("telephone", 0)
    async with site.visitor() as auditor:
        await auditor.sign_in(await site.token(Role.AUDITOR))
        assert "<form method" not in (await auditor.get("/bypass/unknown")).text.split("<table")[1]


async def test_an_auditor_sees_rules_and_cannot_change_them(site: Site) -> None:
    """An auditor reads rules and stations, and the pages offer no change."""
    number = await rule(site, "r")
    async with site.visitor() as auditor:
        await auditor.sign_in(await site.token(Role.AUDITOR))
        for path in ("/rules", f"/rules/{number}/edit", "/bypass", "/rules/effect"):
            page = await auditor.get(path)
            assert page.status_code == 200
            assert not re.findall(r"<button>(?:Save|Add)|/add|/move|/remove", page.text)


async def test_bypass_stations_are_imported(site: Site, admin: Visitor) -> None:
    """A CSV file adds stations. An error names the line, and nothing is imported."""
    text = 'station,name,tags,psk\nAABB.CCDD.EE01,printer,"a=1, ""b=2,3""",correct horse\naa-bb-cc-dd-ee-02,,,\n'
    answer = await admin.send("/bypass/import", {"file": text})
    assert answer.status_code == 303
    page = text_of(await admin.get("/bypass"))
    assert "aa:bb:cc:dd:ee:01" in page
    assert "a=1, b=2,3" in page
    for wrong, told in (
        ("station,vlan\naabbccddee03,\nprinter,7\n", "line 3: station must be a MAC address"),
        ("station,colour\naabbccddee03,red\n", "unknown column colour"),
        ("station\n", "must have a line with titles"),
        ('station,tags\naabbccddee03,"a""\n', "file"),
        ("station\n" + "aabbccddee03\n" * 1001, "at most 1,000 stations"),
    ):
        assert told in text_of(await admin.send("/bypass/import", {"file": wrong}))
    assert "ee:03" not in text_of(await admin.get("/bypass"))


async def test_new_keys_of_stations_are_shown_once(site: Site, admin: Visitor) -> None:
    """The page after the form has the key of each station."""
    shown = text_of(await admin.send("/bypass/add", {"station": "aabbccddee01\naabbccddee02", "new_psk": "yes"}))
    assert "The keys are shown once" in shown
    first = await admin.get("/bypass/aa:bb:cc:dd:ee:01")
    assert "Remove the pre-shared key" in first.text
    keys = [each for each in shown.split() if len(each) == 20 and each.isalnum()]
    assert len(set(keys)) == 2
    assert keys[0] not in first.text
