"""The pages of the audit trail."""

import re

from sallyport.base.actor import Actor, acting_as
from sallyport.store import audit
from tests.console.visitor import Site, Visitor, text_of


async def test_changes_are_listed_with_their_fields(site: Site, admin: Visitor) -> None:
    """The trail has each change of the tenant with its actor, its domain and the values before and after. Times have
    whole seconds."""
    with acting_as(Actor("token", "ci", 7, site.areas.tenant)):
        await site.areas.bypass.add(site.areas.domain, ["aabbccddee01"], "printers")
    await admin.send("/rules/add", {"name": "night", "action": "block", "users": "ann"})
    await admin.send("/keys/add", {"agent": "endpoint", "name": "web", "expiresAt": "2026-02-01T10:20:30.123456Z"})
    page = text_of(await admin.get("/audit"))
    assert "rule.add rule 1 night corp name: night action: block" in page
    assert "expires: 2026-02-01 10:20:30 UTC" in page
    csv = (await admin.get("/audit?format=csv&action=rule.add")).text.splitlines()
    assert len(csv) == 2 and ",rule.add," in csv[1]


async def test_a_removed_rule_lists_only_what_it_had(site: Site, admin: Visitor) -> None:
    """The entry of a removal has the former values alone, and no line for a field that was empty."""
    await admin.send("/rules/add", {"name": "night", "action": "block", "users": "ann"})
    (rule,) = site.areas.rules.all_of(site.areas.domain)
    await admin.send(f"/rules/{rule.id}/remove")
    page = (await admin.get("/audit?action=rule.delete")).text
    lines = re.findall(r"<li>(\w+): ([^<]*)</li>", page)
    assert lines == [
        ("name", "night"), ("action", "block"), ("priority", "100"), ("enabled", "false"), ("users", "ann"),
        ("maxSessions", "0"), ("overLimit", "reject"), ("strength", "any"),
    ]  # fmt: skip


async def test_a_value_that_a_change_removes_is_no_removal(site: Site, admin: Visitor) -> None:
    """The entry of a change has both values, even if the new one is none."""
    changes = audit.changed({"from": "08:00"}, {"from": None})
    await site.areas.store.write(
        lambda tx: audit.record_in(tx, "rule.update", site.areas.domain, "rule 1", changes, at=site.clock.now)
    )
    assert "from: 08:00 → none" in text_of(await admin.get("/audit?action=rule.update"))


async def test_the_trail_is_filtered(site: Site, admin: Visitor) -> None:
    """The filters find by text, actor, action, domain and time. A time that cannot be read is named on the page."""
    other = await site.areas.domains.add(site.areas.tenant, "branch")
    await admin.send("/rules/add", {"name": "night", "action": "block", "users": "ann"})
    await admin.send(f"/rules/add?domain={other}", {"name": "day", "action": "block", "users": "ann"})
    for query, found in (
        ("search=night", ["night"]), (f"domainId={other}", ["day"]), ("actor=admin&action=rule.add", ["night", "day"]),
        ("action=rule.add&from=2026-01-02", []), ("action=rule.add&to=2026-01-02", ["night", "day"]),
    ):  # fmt: skip
        page = text_of(await admin.get(f"/audit?{query}"))
        assert [name for name in ("night", "day") if f"rule {1 + (name == 'day')} {name}" in page] == found
    wrong = await admin.get("/audit?from=yesterday")
    assert (wrong.status_code, "invalid from" in text_of(wrong)) == (200, True)


async def test_only_the_installation_sees_all_tenants(site: Site, admin: Visitor) -> None:
    """An installation administrator sees the changes of all tenants, page by page; a tenant's admin does not."""
    other = await site.areas.tenancy.ensure_tenant(3, 4)
    for number in range(120):
        await site.areas.domains.add(other, f"d{number}")
    assert (await admin.get("/installation/audit")).status_code == 403
    assert "d119" not in text_of(await admin.get("/audit"))
    seed = await site.administrator()
    async with site.visitor() as root:
        await root.sign_in_as("root", site.code(seed))
        first = await root.get("/installation/audit?action=domain.add")
        assert "d119" in text_of(first) and "d5 " not in text_of(first)
        (older,) = {part.split('"')[0] for part in first.text.split('rel="next" href="')[1:]}
        assert "d5 " in text_of(await root.get(older.replace("&amp;", "&")))
        assert len((await root.get("/installation/audit?action=domain.add&format=csv")).text.splitlines()) == 122


async def test_a_forged_place_in_the_trail_is_refused(site: Site) -> None:
    """An address with a number that the store cannot have shows the page with the reason."""
    seed = await site.administrator()
    async with site.visitor() as root:
        await root.sign_in_as("root", site.code(seed))
        for forged in (f"{2**63}-1", f"1-{2**63}"):
            answer = await root.get(f"/installation/audit?after={forged}")
            assert (answer.status_code, "invalid after" in text_of(answer)) == (200, True)
