"""The frame of every page: menu, status line, the person's name, and the pages of the installation."""

import re
from pathlib import Path

import pytest

from sallyport.base.clock import SECOND
from sallyport.console.pages import ALL
from sallyport.web.scope import INSTALLATIONS, Role
from tests.console.visitor import Site, Visitor, text_of

CLOSED = [re.sub(r"\{[^}]*\}", "1", page.path) for area in ALL for page in area.pages if page.roles == INSTALLATIONS]


def groups(page: str) -> dict[str, tuple[bool, list[str]]]:
    """Return the groups of the menu by their headings: whether a group is open, and the addresses of its pages."""
    found = re.findall(r'<details data-group="([^"]+)"( open)?>(.*?)</details>', page, re.DOTALL)
    return {name: (bool(is_open), re.findall(r'<li><a href="([^"]+)"', inner)) for name, is_open, inner in found}


# --- the pages of the installation ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", CLOSED)
async def test_a_page_of_the_installation_leads_to_the_command(admin: Visitor, path: str) -> None:
    """A person with a token gets the one command that opens the page, because no token has its role. The answer names
    no other person as the one to ask."""
    page = await admin.get(path)
    assert page.status_code == 403
    text = text_of(page)
    assert "On the machine of the service: sallyport admin add root" in text
    assert "No access token has this role." in text
    assert "An administrator of the tenant" not in text


async def test_the_menu_leads_to_the_pages_of_the_installation(site: Site, admin: Visitor) -> None:
    """The menu of a token has one page that says how to open them. An installation administrator has the pages."""
    assert groups((await admin.get("/")).text)["Installation"] == (True, ["/installation"])
    assert "Senders without an answer" in text_of(await admin.get("/installation"))
    seed = await site.administrator()
    async with site.visitor() as root:
        await root.sign_in_as("root", site.code(seed))
        menu = groups((await root.get("/")).text)
    assert "/installation" not in menu["Installation"][1]
    assert "/senders" in menu["Logins"][1]


async def test_a_page_of_another_role_names_both_roles(site: Site) -> None:
    """The message says which role the page needs, and which role the person has."""
    async with site.visitor() as visitor:
        await visitor.sign_in(await site.token(Role.AUDITOR))
        page = await visitor.get("/clients/add")
    assert page.status_code == 403
    assert "this page needs the role admin; you are signed in with the role auditor" in text_of(page)


# --- menu -------------------------------------------------------------------------------------------------------------


async def test_the_group_of_the_shown_page_is_open(admin: Visitor) -> None:
    """Rare groups are closed, so that the menu fits on the screen. The group of a page is open also on the pages below
    it, and marks the page."""
    assert not groups((await admin.get("/")).text)["Endpoints"][0]
    page = (await admin.get("/endpoint-groups/add")).text
    assert groups(page)["Endpoints"][0]
    assert 'href="/endpoint-groups" aria-current="true"' in page


async def test_every_group_has_a_symbol(site: Site, admin: Visitor) -> None:
    """The file of the symbols has each symbol that a page uses."""
    symbols = set(re.findall(r'<symbol id="([^"]+)"', (await admin.get("/static/symbols.svg")).text))
    used = set(re.findall(r'/static/symbols\.svg[^"#]*#([^"]+)"', (await admin.get("/")).text))
    assert "sign-in-policy" in used
    assert used <= symbols


# --- status line ------------------------------------------------------------------------------------------------------


async def test_the_status_line_names_version_node_time_and_backup(site: Site, admin: Visitor, tmp_path: Path) -> None:
    """The line is on every page. The age of the backup comes from the audit trail, at most a minute late."""
    node = site.areas.settings.node
    line = f"Sallyport {site.areas.app.version} node {node} 2026-01-01 00:00:00 UTC no backup yet"
    assert text_of(await admin.get("/account")).endswith(line)
    assert text_of(await admin.get("/nothing", accept="text/html")).endswith(line)
    await site.areas.copies.backup(tmp_path / "backup.db")
    assert "no backup yet" in text_of(await admin.get("/account"))
    site.clock.pass_by(60)
    assert text_of(await admin.get("/account")).endswith("00:01:00 UTC last backup 2026-01-01 00:00:00 UTC")


# --- the person -------------------------------------------------------------------------------------------------------


async def test_the_name_of_a_token_is_explained(site: Site, admin: Visitor) -> None:
    """The top of the page says that the name is that of a token, and the page of the sessions says what it means."""
    _, token = await site.areas.tenancy.create_token(1, 1, Role.ADMIN, "first start", None)
    async with site.visitor() as visitor:
        await visitor.sign_in(token)
        text = text_of(await visitor.get("/account"))
    assert "token first start (admin)" in text
    assert "You are signed in with the access token first start" in text
    assert "The first start of the service has made this token." in text
    assert "sallyport admin add NAME" in text


async def test_the_status_line_is_read_once_for_many_pages(site: Site, admin: Visitor) -> None:
    """Within a minute, no page reads the audit trail for the backup again, also after the clock was set back."""
    await admin.get("/account")
    await site.areas.store.write(
        lambda tx: tx.execute(
            "insert into audit_trail (at, tenant_id, actor_kind, actor, action, target, changes) "
            "values (:at, 0, 'system', 'x', 'store.backup', 'y', '{}')",
            at=site.clock.now,
        )
    )
    site.clock.pass_by(59)
    assert "no backup yet" in text_of(await admin.get("/account"))
    site.clock.now -= 3600 * SECOND
    assert "no backup yet" not in text_of(await admin.get("/account"))
