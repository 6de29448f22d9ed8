"""The pages of instances, endpoint groups and endpoint users."""

import re

from sallyport.areas.users.instances.instance import Instance
from sallyport.web.scope import Role
from tests.console.visitor import Site, Visitor, text_of


async def test_an_instance_is_added_and_shown(site: Site, admin: Visitor) -> None:
    """The page of an instance has its users and its methods. A wrong address is named."""
    assert "No instance yet" in text_of(await admin.get("/instances"))
    refused = await admin.send("/instances/add", {"instanceName": "web1", "privateIp": "10.0.0.300"})
    assert refused.status_code == 400
    assert "must be an IP address" in text_of(refused) and 'value="web1"' in refused.text
    answer = await admin.send("/instances/add", {"instanceName": "web1", "osId": "1", "privateIp": "10.0.0.3"})
    page = answer.headers["location"]
    assert "10.0.0.3" in text_of(await admin.get(page))
    await admin.send("/endpoint-users/add", {"userName": "ann", "credType": "Password"})
    await admin.send("/instances/1/users", {"chosen": "1"})
    assert "ann Local" in text_of(await admin.get(page))
    await admin.send("/instances/1/methods", {"chosen": "SSH"})
    assert "Methods SSH" in text_of(await admin.get(page))
    await admin.send("/instances/1/users", {})
    assert "No user yet" in text_of(await admin.get(page))
    assert "web1 Linux" in text_of(await admin.get("/instances?filter=10.0.0"))


async def test_an_instance_is_deleted(site: Site, admin: Visitor) -> None:
    """The page before it lists what is deleted. An auditor has neither the link nor the page."""
    await site.areas.instances.add(site.areas.domain, Instance("web1"))
    await admin.send("/endpoint-groups/add", {"groupName": "admins", "instance": "1"})
    async with site.visitor() as auditor:
        await auditor.sign_in(await site.token(Role.AUDITOR))
        assert "/instances/1/delete" not in (await auditor.get("/instances/1")).text
        assert (await auditor.get("/instances/1/delete")).status_code == 403
    assert "/instances/1/delete" in (await admin.get("/instances/1")).text
    shown = text_of(await admin.get("/instances/1/delete"))
    assert "Delete web1" in shown and "Agent none Users with access 0 Groups 1" in shown
    answer = await admin.send("/instances/1/delete")
    assert "web1 is deleted" in text_of(await admin.get(answer.headers["location"]))
    assert (await admin.get("/instances/1")).status_code == 404
    assert await site.audited("instance.delete") == ["instance 1 web1"]


async def test_groups_are_assigned_from_the_page_of_an_instance(site: Site, admin: Visitor) -> None:
    """The form has the present groups chosen. Groups that it does not list keep the instance."""
    for name in ("web1", "web2"):
        await site.areas.instances.add(site.areas.domain, Instance(name))
    for name in ("admins", "backup", "office"):
        await admin.send("/endpoint-groups/add", {"groupName": name, "instance": "2"})
    assert "Groups none" in text_of(await admin.get("/instances/1"))
    await admin.send("/instances/1/groups", {"chosen": "1"})
    await admin.send("/instances/1/groups?filter=BACK", {"chosen": "2"})
    assert "Groups admins , backup Password" in text_of(await admin.get("/instances/1"))
    form = await admin.get("/instances/1/groups?present=1")
    assert re.findall(r'value="(\d)" checked', form.text) == ["1", "2"] and "office" not in form.text
    await admin.send("/instances/1/groups?present=1", {"chosen": "2"})
    assert "Groups backup Password" in text_of(await admin.get("/instances/1"))
    assert "Groups admins , backup , office Password" in text_of(await admin.get("/instances/2"))


async def test_a_user_is_assigned_to_a_group_an_instance_and_a_wallet(site: Site, admin: Visitor) -> None:
    """One form adds all of them. A user without a choice is not changed."""
    await site.areas.instances.add(site.areas.domain, Instance("web1"))
    await admin.send("/endpoint-groups/add", {"groupName": "admins"})
    await admin.send("/endpoint-users/add", {"userName": "ann"})
    await admin.send("/wallets/add", {"username": "ann", "emailAddress": "ann@corp.example"})
    assert "/endpoint-users/1/assign" in (await admin.get("/endpoint-users/1")).text
    assert "ann (ann@corp.example)" in text_of(await admin.get("/endpoint-users/1/assign"))
    fields = {"groups": "1", "instances": "1", "wallet": "1"}
    assert (await admin.send("/endpoint-users/1/assign", fields)).status_code == 303
    assert "Instances web1 Groups admins" in text_of(await admin.get("/endpoint-users/1"))
    assert (await admin.send("/endpoint-users/1/assign", {})).status_code == 303
    assert (await admin.send("/endpoint-users/1/assign", {"wallet": "77"})).status_code == 404
    assert await site.audited("user.wallet.update") == ["1 user"]


async def test_a_group_gives_access_and_is_removed(site: Site, admin: Visitor) -> None:
    """A group has instances, users, methods and a credential policy. Its removal lists them first."""
    assert "No group yet" in text_of(await admin.get("/endpoint-groups"))
    for name in ("web1", "web2"):
        await site.areas.instances.add(site.areas.domain, Instance(name))
    await admin.send("/endpoint-users/add", {"userName": "ann"})
    answer = await admin.send("/endpoint-groups/add", {"groupName": "admins", "instance": "1"})
    page = answer.headers["location"].partition("?")[0]
    await admin.send(f"{page}/users", {"chosen": "1"})
    await admin.send(f"{page}/methods", {"chosen": "DID"})
    assert (await admin.send(f"{page}/policy", {"ttlUser": "soon"})).status_code == 400
    await admin.send(f"{page}/policy", {"ttlUser": "8h", "privileged": "yes", "homeDir": "/home"})
    await admin.send(f"{page}/edit", {"groupName": "root", "instance": "2", "status": "Active"})
    text = text_of(await admin.get(page))
    assert "Methods DID" in text and "sessions up to 8h, root, home /home" in text
    assert "web2" in text and "web1" not in text
    remove = text_of(await admin.get(f"{page}/remove"))
    assert "Its instances web2 Its users ann" in remove
    await admin.send(f"{page}/policy", {"do": "remove"})
    assert "Credential policy none" in text_of(await admin.get(page))
    await admin.send(f"{page}/remove")
    assert "1 group deleted" in text_of(await admin.get("/endpoint-groups"))
    assert (await admin.get(page)).status_code == 404


async def test_a_user_is_added_changed_and_removed(site: Site, admin: Visitor) -> None:
    """No page reads or shows a secret of a user. An empty password keeps the stored one."""
    assert "No user yet" in text_of(await admin.get("/endpoint-users"))
    await admin.send("/endpoint-users/add", {"userName": "ann", "password": "Correct-Horse-7", "privileged": "yes"})
    page = await admin.get("/endpoint-users/1")
    assert "Password set" in text_of(page) and "Correct-Horse" not in page.text
    await admin.send("/endpoint-users/1", {"userName": "anna", "sshKey": "ssh-ed25519 AAAA"})
    assert "invalid" in text_of(await admin.send("/endpoint-users/1", {"userName": "", "sshKey": ""}))
    assert len(await site.audited("user.read")) == 0
    text = text_of(await admin.get("/endpoint-users?userName=ann"))
    assert "ann" in text and "yes" in text
    remove = text_of(await admin.get("/endpoint-users/1/remove"))
    assert "Secrets that are deleted password" in remove
    await admin.send("/endpoint-users/1/remove")
    assert "No user yet" in text_of(await admin.get("/endpoint-users"))


async def test_an_auditor_reads_endpoints(site: Site) -> None:
    """An auditor sees instances, groups and users, and the pages offer no change."""
    await site.areas.instances.add(site.areas.domain, Instance("web1"))
    async with site.visitor() as auditor:
        await auditor.sign_in(await site.token(Role.AUDITOR))
        for path in ("/instances", "/instances/1", "/endpoint-groups", "/endpoint-users"):
            page = await auditor.get(path)
            assert page.status_code == 200
            assert "/add?" not in page.text and "/users?domain" not in page.text.replace("/endpoint-users?domain", "")
        assert (await auditor.get("/instances/1/users")).status_code == 403
