"""The pages of API keys and of access tokens."""

import re

from sallyport.areas.users.instances.instance import Instance
from sallyport.web.scope import Role
from tests.console.visitor import Site, Visitor, text_of

SECRET = re.compile(r'<code class="secret">([^<]+)</code>')


async def test_a_key_is_created_shown_once_and_revoked(site: Site, admin: Visitor) -> None:
    """The page after the form has the key and the file of the agent. No later page has the key."""
    assert "No key yet" in text_of(await admin.get("/keys"))
    instance = await site.areas.instances.add(site.areas.domain, Instance("web-1"))
    made = await admin.send("/keys/add", {"agent": "endpoint", "name": "web", "uses": "5", "instanceId": str(instance)})
    (key,) = SECRET.findall(made.text)
    assert made.text.count(key) == 2  # alone, and in the configuration file
    page = await admin.get("/keys")
    assert "1 web enrols agents endpoint web-1" in text_of(page) and "0 of 5" in text_of(page)
    assert key not in page.text
    confirm = text_of(await admin.get("/keys/1/revoke"))
    assert "No further machine can enrol with the key" in confirm
    await admin.send("/keys/1/revoke")
    assert "revoked" in text_of(await admin.get("/keys/1/revoke"))
    assert len(await site.audited("key.revoke")) == 1


async def test_a_refused_key_names_the_field(admin: Visitor) -> None:
    """The form is shown again with the values and the reason."""
    answer = await admin.send("/keys/add", {"agent": "endpoint", "name": "web", "uses": "0"})
    assert answer.status_code == 400
    assert "must be a whole number from 1" in text_of(answer)
    assert 'value="web"' in answer.text


async def test_an_operator_sees_keys_and_cannot_change_them(site: Site) -> None:
    """Only an admin creates and revokes keys."""
    async with site.visitor() as operator:
        await operator.sign_in(await site.token(Role.OPERATOR))
        page = await operator.get("/keys")
        assert page.status_code == 200
        assert "/keys/add" not in page.text
        assert (await operator.get("/keys/add")).status_code == 403


async def test_a_token_is_created_and_revoked(site: Site) -> None:
    """An installation administrator creates a token of a tenant, which is shown once, and revokes it."""
    seed = await site.administrator()
    async with site.visitor() as root, site.visitor() as auditor:
        await root.sign_in_as("root", site.code(seed))
        assert "No token yet" in text_of(await root.get("/tokens"))
        assert (await root.send("/tokens/add", {"scope": "9/9", "role": "admin"})).status_code == 400
        assert (await root.send("/tokens/add", {"scope": "1/1", "role": "king"})).status_code == 400
        made = await root.send("/tokens/add", {"scope": "1/1", "role": "auditor"})
        (token,) = SECRET.findall(made.text)
        assert (await auditor.sign_in(token)).status_code == 303
        page = await root.get("/tokens")
        assert "auditor 1 1 active" in text_of(page)
        assert token not in page.text
        (number,) = re.findall(r"/tokens/(\d+)/revoke", page.text)
        assert "ends the sessions" in text_of(await root.get(f"/tokens/{number}/revoke"))
        await root.send(f"/tokens/{number}/revoke")
        assert not await auditor.is_signed_in()
        assert "1 1 revoked" in text_of(await root.get("/tokens?status=revoked"))


async def test_the_list_has_no_tokens_of_wallets(site: Site, admin: Visitor) -> None:
    """A tenant may have 100,000 wallets. The token of one has a page, but is not in the list."""
    await site.token(Role.WALLET)
    (wallet,) = [each.id for each in await site.areas.tenancy.list_tokens(1, 1) if each.role == Role.WALLET]
    assert f"/tokens/{wallet}/revoke" not in (await admin.get("/tokens")).text
    assert "wallet" in text_of(await admin.get(f"/tokens/{wallet}/revoke"))


async def test_an_admin_has_the_tokens_of_the_own_tenant(site: Site, admin: Visitor) -> None:
    """An admin lists, creates and revokes tokens of the own tenant. Those of another tenant do not exist."""
    await site.token(Role.AUDITOR, org=2)
    (foreign,) = [each.id for each in await site.areas.tenancy.list_tokens(2, 1)]
    assert "admin 1 1 active" in text_of(await admin.get("/tokens"))
    assert f"/tokens/{foreign}/revoke" not in (await admin.get("/tokens")).text
    assert (await admin.get(f"/tokens/{foreign}/revoke")).status_code == 404
    assert (await admin.send("/tokens/add", {"scope": "2/1", "role": "auditor"})).status_code == 400
    assert (await admin.send("/tokens/add", {"scope": "1/1", "role": "installation"})).status_code == 400
    made = await admin.send("/tokens/add", {"scope": "1/1", "role": "operator", "name": "backup"})
    (token,) = SECRET.findall(made.text)
    async with site.visitor() as operator:
        assert (await operator.sign_in(token)).status_code == 303
        assert (await operator.get("/tokens")).status_code == 403
        assert 'href="/tokens"' not in (await operator.get("/")).text
        (own,) = [each.id for each in await site.areas.tenancy.list_tokens(1, 1) if each.name == "backup"]
        await admin.send(f"/tokens/{own}/revoke")
        assert not await operator.is_signed_in()
    answer = await admin.send(f"/tokens/{foreign}/revoke", page="/tokens/add")
    assert answer.status_code == 404
    (kept,) = await site.areas.tenancy.list_tokens(2, 1)
    assert kept.revoked_at is None
    assert await site.audited("token.revoke") == [f"token {own} backup"]
