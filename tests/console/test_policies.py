"""The pages of password policies."""

from sallyport.areas.users.instances.instance import Instance
from sallyport.web.scope import Role
from tests.console.visitor import Site, Visitor, text_of


async def test_a_policy_is_added_changed_and_removed(site: Site, admin: Visitor) -> None:
    """A policy has every rule of the form. One that no password could meet is refused with the reason."""
    assert "No policy yet" in text_of(await admin.get("/policies"))
    fields = {"policyName": "strict", "minLen": "12", "firstChar": "uppercase", "allowSpecial": "no", "dcredit": "-2"}
    refused = await admin.send("/policies/add", {**fields, "maxLen": "5"})
    assert refused.status_code == 400
    assert 'value="strict"' in refused.text
    answer = await admin.send("/policies/add", fields)
    path = answer.headers["location"]
    page = text_of(await admin.get(path))
    assert "minimum length: 12; first character: uppercase; special characters allowed: no; dcredit -2" in page
    await admin.send(f"{path}/edit", {"policyName": "soft", "minLen": "8", "usercheck": "1"})
    page = text_of(await admin.get("/policies"))
    assert "soft minimum length: 8; without the user name 0" in page
    assert "soft" in text_of(await admin.get(f"{path}/remove"))
    await admin.send(f"{path}/remove")
    assert (await admin.get(path)).status_code == 404
    assert len(await site.audited("policy.delete")) == 1


async def test_a_policy_without_a_rule_is_warned_about(admin: Visitor) -> None:
    """The page of the new policy says that it accepts every password."""
    answer = await admin.send("/policies/add", {"policyName": "empty"})
    assert "it has no rule, so it accepts every password" in text_of(await admin.get(answer.headers["location"]))


async def test_a_password_is_checked_live(admin: Visitor) -> None:
    """The page lists each rule that a password fails, or says that it meets the policy, and never has the password."""
    answer = await admin.send("/policies/add", {"policyName": "p", "minLen": "10", "usercheck": "1", "dcredit": "-1"})
    path = answer.headers["location"]
    weak = await admin.send(path, {"password": "hunter2!", "userName": "hunter"})
    assert weak.status_code == 400
    assert "the password has fewer than 10 characters" in text_of(weak)
    assert 'type="password" value=""' in weak.text
    assert "hunter2" not in weak.text
    good = await admin.send(path, {"password": "7 sturdy bridges"})
    assert "The password meets the policy." in text_of(good)
    assert "sturdy" not in good.text


async def test_an_answer_while_a_person_types_is_no_error(admin: Visitor) -> None:
    """The script gets the same page with the status 200, because a browser logs any other status as an error."""
    path = (await admin.send("/policies/add", {"policyName": "p", "minLen": "10"})).headers["location"]
    shown = await admin.get(path)
    assert 'data-check="checked"' in shown.text and '<div id="checked" role="status">' in shown.text
    admin.http.headers["X-Refresh"] = "1"
    weak = await admin.send(path, {"password": "hunter2!"})
    assert weak.status_code == 200
    assert "fewer than 10 characters" in text_of(weak).partition("Check a password")[2]


async def test_a_policy_is_assigned_to_machines(site: Site, admin: Visitor) -> None:
    """The chosen machines of a domain have the policy, and no other machine of this domain."""
    path = (await admin.send("/policies/add", {"policyName": "p"})).headers["location"]
    assert "no machine yet" in text_of(await admin.get(f"{path}/machines"))
    for name in ("web1", "web2"):
        await site.areas.instances.add(site.areas.domain, Instance(name))
    await admin.send(f"{path}/machines", {"instance": "1"})
    assert "web1 (corp)" in text_of(await admin.get(path))
    assert "1 in all" in text_of(await admin.get("/policies"))
    await admin.send(f"{path}/machines", {"instance": "2"})
    page = text_of(await admin.get(f"{path}/remove"))
    assert "web2 (corp)" in page and "web1" not in page


async def test_an_auditor_checks_a_password_and_changes_nothing(site: Site, admin: Visitor) -> None:
    """An auditor may check a password, since this changes nothing."""
    path = (await admin.send("/policies/add", {"policyName": "p", "minLen": "4"})).headers["location"]
    async with site.visitor() as auditor:
        await auditor.sign_in(await site.token(Role.AUDITOR))
        assert "meets the policy" in text_of(await auditor.send(path, {"password": "hello"}))
        assert f"{path}/edit" not in (await auditor.get(path)).text
        assert (await auditor.get(f"{path}/edit")).status_code == 403
