"""The pages of roles, and the roles of rules."""

from sallyport.areas.policy.roles.role import RoleSource
from sallyport.web.scope import Role
from tests.console.visitor import Site, Visitor, text_of

STAFF = "domain=1&role=staff"


async def test_a_role_is_added_changed_and_removed(site: Site, admin: Visitor) -> None:
    """A new role has a default set. The set of a product begins with the attributes of its template."""
    assert "No role yet" in text_of(await admin.get("/roles"))
    refused = await admin.send("/roles/set?domain=1", {"role": "staff", "vlan": "9999"})
    assert refused.status_code == 400 and "4094" in text_of(refused)
    answer = await admin.send("/roles/set?domain=1", {"role": "staff", "vlan": "20", "replyAttributes": ""})
    assert answer.headers["location"] == f"/roles/show?{STAFF}"
    form = await admin.get(f"/roles/set?{STAFF}&product=Aruba+Wireless")
    assert "Aruba-User-Role=staff</textarea>" in form.text
    assert "needs a user role of this name; it takes a VLAN" in text_of(form)
    fields = {"vlan": "", "replyAttributes": "Aruba-User-Role=employees"}
    await admin.send(f"/roles/set?{STAFF}&product=Aruba+Wireless", fields)
    assert site.areas.roles.given_to(1, "staff", "Aruba Wireless").source is RoleSource.PRODUCT
    assert (
        "Aruba-User-Role=employees</textarea>" in (await admin.get(f"/roles/set?{STAFF}&product=Aruba+Wireless")).text
    )
    shown = text_of(await admin.get(f"/roles/show?{STAFF}"))
    assert "all other products" in shown and "Aruba-User-Role = employees" in shown and "nothing yet" in shown
    assert 'name="tag"' in (await admin.get(f"/roles/set?{STAFF}&by=tag")).text
    await admin.send(f"/roles/set?{STAFF}&by=tag", {"tag": "site=Bonn", "vlan": "7", "replyAttributes": ""})
    assert 'value="7"' in (await admin.get(f"/roles/set?{STAFF}&tag=site%3DBonn")).text
    assert "site=Bonn" in text_of(await admin.get(f"/roles/show?{STAFF}"))
    await admin.send(f"/roles/remove?{STAFF}&tag=site%3DBonn", {})
    assert "staff Tunnel-Type = VLAN" in text_of(await admin.get("/roles?domain=1"))
    assert "Aruba-User-Role = employees" in text_of(await admin.get(f"/roles/remove?{STAFF}&product=Aruba+Wireless"))
    await admin.send(f"/roles/remove?{STAFF}&product=Aruba+Wireless", {})
    assert len(site.areas.roles.present(1, "staff").sets) == 1
    answer = await admin.send(f"/roles/remove?{STAFF}", {})
    assert answer.headers["location"] == "/roles?domain=1"
    assert (await admin.get(f"/roles/show?{STAFF}")).status_code == 404


async def test_a_rule_gives_a_role(admin: Visitor) -> None:
    """The form of a rule offers the roles. The list, the test and the effect of rules show the role. A role that a rule
    uses has no button for its removal."""
    await admin.send("/roles/set?domain=1", {"role": "<Staff>", "replyAttributes": "Filter-Id=staff"})
    assert "&lt;Staff&gt;</option>" in (await admin.get("/rules/add")).text
    fields = {"name": "all", "action": "mfa_required", "enabled": "yes", "role": "<Staff>"}
    await admin.send("/rules/add", fields)
    assert "role <Staff>" in text_of(await admin.get("/rules"))
    assert "rule 1 all" in text_of(await admin.get("/roles?domain=1"))
    tested = text_of(await admin.get("/rules/test?domain=1&user=ann"))
    assert "<Staff> : default set" in tested and "Filter-Id = staff" in tested
    removed = await admin.get("/roles/remove?domain=1&role=%3Cstaff%3E")
    assert "is used by rule 1 all" in text_of(removed) and "<button" not in removed.text.partition("<main")[2]


async def test_a_role_without_a_default_set_is_marked(admin: Visitor) -> None:
    await admin.send("/roles/set?domain=1&role=", {"role": "x"})
    await admin.send("/roles/set?domain=1&role=x&product=strongSwan", {"replyAttributes": "Class=x"})
    assert "it takes no VLAN" in text_of(await admin.get("/roles/set?domain=1&role=x&product=Cisco+ASA"))
    assert "no set for all other products" not in text_of(await admin.get("/roles/show?domain=1&role=x"))


async def test_an_auditor_sees_roles_without_forms(site: Site, admin: Visitor) -> None:
    await admin.send("/roles/set?domain=1", {"role": "staff", "vlan": "20"})
    async with site.visitor() as auditor:
        await auditor.sign_in(await site.token(Role.AUDITOR))
        for path in ("/roles", f"/roles/show?{STAFF}"):
            page = await auditor.get(path)
            assert page.status_code == 200 and "/roles/set" not in page.text
        assert (await auditor.get(f"/roles/set?{STAFF}")).status_code == 403
