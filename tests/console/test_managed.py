"""Objects that files manage: the console names them, and changes them only if a person insists."""

import pytest

from sallyport.areas.configuration.item import Item
from tests.areas import Areas
from tests.console.visitor import Site, Visitor, text_of

ASKS = "Change it here all the same; the next apply undoes it"
FOLDER = {
    "domain": {"domainName": "Lab", "realms": ["lab.example"]},
    "client": {"name": "VPN", "address": "192.0.2.1", "secret": "correct horse battery", "domains": ["Lab"]},
    "role": {"domain": "Lab", "role": "staff", "sets": [{"vlan": "20"}]},
    "rule": {"domain": "Lab", "name": "rest", "action": "block", "everyone": True},
    "bypass": {"domain": "Lab", "station": "02-00-00-00-00-01", "name": "printer"},
    "provider": {"domain": "Lab", "provider": "totp"},
    "first_factor": {
        "domain": "Lab",
        "firstFactor": "radius",
        "radius": {"servers": [{"host": "192.0.2.8", "secret": "another horse"}]},
    },
}


@pytest.fixture
async def lab(areas: Areas) -> int:
    """Return the id of a domain whose objects files manage."""
    items = [Item(kind, kind, fields, f"{kind}.toml:1") for kind, fields in FOLDER.items()]
    await areas.app.configured.engine.run(areas.tenant, items)
    return areas.app.domains.service.named(areas.tenant, "lab").id


async def insists(visitor: Visitor, path: str, fields: dict[str, str]) -> None:
    """Send a form, which is refused, and send it again with the checkbox of the answer."""
    refused = await visitor.send(path, fields)
    assert refused.status_code == 409 and ASKS in text_of(refused), text_of(refused)
    assert ".toml manages the" in text_of(refused) and "?override" not in text_of(refused)
    done = await visitor.send(path, {**fields, "insists": "yes"})
    assert done.status_code == 303, text_of(done)


def changes(lab: int, client: int, rule: int) -> list[tuple[str, dict[str, str]]]:
    """Return the forms that change objects of the folder, and the fields of each."""
    at = f"domain={lab}"
    return [
        (f"/clients/{client}/tags", {"tags": "site=Bonn", "note": "a"}),
        (f"/roles/set?{at}&role=staff", {"vlan": "30", "replyAttributes": ""}),
        (f"/rules/{rule}/edit?{at}", {"name": "rest", "action": "block", "everyone": "yes"}),
        (f"/bypass/02:00:00:00:00:01?{at}", {"name": "scanner"}),
        (f"/bypass/add?{at}", {"station": "02:00:00:00:00:01\n02:00:00:00:00:02"}),
        (f"/domains/{lab}/mode?to=enforce", {}),
        (f"/domains/{lab}/provider", {"chosen": "totp", "timeout": "30"}),
        (f"/domains/{lab}/provider/remove", {}),
        (f"/domains/{lab}/first-factor/set", {"chosen": "local"}),
        (f"/rules/{rule}/remove?{at}", {}),
        (f"/roles/remove?{at}&role=staff", {}),
        (f"/bypass/02:00:00:00:00:01/remove?{at}", {}),
        (f"/clients/{client}/delete", {}),
        (f"/domains/{lab}/remove", {"name": "Lab"}),
    ]


def client_of(areas: Areas) -> int:
    """Return the id of the client that files manage."""
    return next(each.id for each in areas.app.clients.service.of_tenant(areas.tenant) if each.name == "VPN")


async def test_each_change_asks_first(areas: Areas, admin: Visitor, lab: int) -> None:
    """A form that changes an object of files is refused with a checkbox, and done if the checkbox is set."""
    client, (rule,) = client_of(areas), areas.app.rules.service.all_of(lab)
    for path, fields in changes(lab, client, rule.id):
        await insists(admin, path, fields)


async def test_a_page_and_a_list_name_what_files_manage(areas: Areas, admin: Visitor, lab: int) -> None:
    """The page of an object says that files manage it. A page lists all of them."""
    listed = text_of(await admin.get("/managed"))
    for name in ("vpn", "bypass lab 020000000001", "first factor lab", "rule lab rest", "7 in all"):
        assert name in listed
    for path, name in (
        (f"/clients/{client_of(areas)}", "client vpn"),
        (f"/domains/{lab}", "domain lab"),
        (f"/roles/show?domain={lab}&role=staff", "role lab/staff"),
        (f"/bypass/02:00:00:00:00:01?domain={lab}", "bypass lab/020000000001"),
    ):
        assert f"Managed by files: {name}." in text_of(await admin.get(path))
    for path in ("/", "/domains/1", f"/logins?domain={lab}&role=%00", "/domains/1?domain=" + "9" * 5000):
        assert "Managed by files:" not in text_of(await admin.get(path))


async def test_what_files_do_not_manage_is_changed_as_before(areas: Areas, admin: Visitor, lab: int) -> None:
    """Another domain has a role of the same name."""
    done = await admin.send("/roles/set?domain=1", {"role": "staff", "vlan": "5", "replyAttributes": ""})
    assert done.status_code == 303
    assert (await admin.send(f"/roles/set?domain={lab}", {"role": "guests", "vlan": "6"})).status_code == 303


async def test_help_in_need_is_never_refused(site: Site, areas: Areas, admin: Visitor, lab: int) -> None:
    """Files stop neither unlatching, nor the confirmation of a mode, nor break-glass."""
    assert (await admin.send(f"/clients/{client_of(areas)}/unlatch")).status_code == 303
    switched = await admin.send(f"/domains/{lab}/mode?to=enforce", {"revert": "15", "insists": "yes"})
    assert switched.status_code == 303
    assert (await admin.send(f"/domains/{lab}/confirm")).status_code == 303
    seed = await site.administrator()
    async with site.visitor() as root:
        await root.sign_in_as("root", site.code(seed))
        assert (await root.send("/break-glass", {"action": "monitor"})).status_code == 303
    assert areas.app.domains.service.table.present(lab).mode == "monitor"


async def test_a_password_policy_asks_too(areas: Areas, admin: Visitor) -> None:
    """Its form sends an array, of which each entry is an object."""
    policy = [Item("password_policy", "Twelve", {"policyName": "Twelve", "minLen": 12}, "password_policy.toml:1")]
    await areas.app.configured.engine.run(areas.tenant, policy, only=["password_policy"])
    await insists(admin, "/policies/1/remove", {})


async def test_an_import_does_not_manage(areas: Areas, admin: Visitor) -> None:
    """Objects that an import has added are changed without a question."""
    items = [Item("client", "VPN", {**FOLDER["client"], "domains": ["corp"]}, "nps.xml:7")]
    await areas.app.configured.engine.run(areas.tenant, items, manages=False)
    done = await admin.send(f"/clients/{client_of(areas)}/tags", {"tags": "site=Bonn", "note": ""})
    assert done.status_code == 303 and "Files manage nothing" in text_of(await admin.get("/managed"))
