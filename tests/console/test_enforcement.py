"""Enforcement in the console: the preview, the switch of the mode, its confirmation, and break-glass."""

from sallyport.areas.domains.domain import Mode
from tests.areas.preview.conftest import Book
from tests.console.visitor import Site, Visitor, text_of


async def with_logins(site: Site) -> str:
    """Record logins of alice and bob; only alice is enrolled. Return the path of the domain's page."""
    book = Book(site.areas)
    await book.users("alice", "bob")
    await book.provider(enrolled="alice")
    await book.events(["alice", "bob", "bob"], device_id=await book.device())
    return f"/domains/{site.areas.domain}"


def mode(site: Site) -> Mode:
    """Return the mode of the domain."""
    return site.areas.domains.table.present(site.areas.domain).mode


async def test_the_preview_names_users_with_reasons(site: Site, admin: Visitor) -> None:
    """It says who would be refused and why, by filters in the address, and can be exported."""
    at = await with_logins(site)
    page = await admin.get(f"{at}/preview")
    assert "1 user that monitor mode accepts would be refused" in text_of(page)
    assert f'href="/people/person?domain={site.areas.domain}&amp;user=bob"' in page.text
    refused = text_of(await admin.get(f"{at}/preview?outcome=reject&days=7"))
    assert "bob reject not enrolled" in refused
    assert "alice challenge" not in refused
    lines = (await admin.get(f"{at}/preview?format=csv")).text.splitlines()
    assert [line.split(",")[:2] for line in lines[1:]] == [["bob", "reject"], ["alice", "challenge"]]


async def test_the_preview_counts_users_and_their_devices(site: Site, admin: Visitor) -> None:
    """Without a provider, enforce mode refuses the logins of each user at each device."""
    book = Book(site.areas)
    await book.users("alice", "bob")
    await book.events(["alice", "bob"], device_id=await book.device())
    page = await admin.get(f"/domains/{site.areas.domain}/preview")
    assert "2 users and 1 device that monitor mode accepts would be refused." in text_of(page)


async def test_the_switch_shows_who_would_be_refused(site: Site, admin: Visitor) -> None:
    """The page before the switch names the users that it would refuse, with reasons, and changes nothing."""
    at = await with_logins(site)
    shown = text_of(await admin.get(f"{at}/mode?to=enforce"))
    assert "bob reject not enrolled" in shown
    assert "alice challenge" not in shown
    assert mode(site) is Mode.MONITOR


async def test_the_switch_is_previewed_with_the_chosen_fallback(site: Site, admin: Visitor) -> None:
    """Without a provider the fallback decides, so the choice in the address changes who would be refused."""
    book = Book(site.areas)
    await book.users("alice")
    await book.events(["alice"], device_id=await book.device())
    at = f"/domains/{site.areas.domain}/mode?to=enforce"
    assert "alice reject no provider" in text_of(await admin.get(f"{at}&fallback=deny"))
    allowed = text_of(await admin.get(f"{at}&fallback=allow"))
    assert "alice reject" not in allowed
    assert "No user or device of recent logins that monitor mode accepts would be refused" in allowed


async def test_a_switch_reverts_unless_it_is_confirmed(site: Site, admin: Visitor) -> None:
    """The page of the domain says when the mode reverts. After the confirmation it stays."""
    at = await with_logins(site)
    await admin.send(f"{at}/mode?to=enforce&fallback=allow", {"revert": "60"})
    assert mode(site) is Mode.ENFORCE
    page = text_of(await admin.get(at))
    assert "The mode reverts at 2026-01-01 01:00:00 UTC unless it is confirmed" in page
    assert "allow the login" in page
    assert "is in enforce mode, and reverts at" in text_of(await admin.get(f"{at}/confirm"))
    await admin.send(f"{at}/confirm")
    assert "The mode reverts" not in text_of(await admin.get(at))
    assert "does not revert" in text_of(await admin.get(f"{at}/confirm"))
    assert mode(site) is Mode.ENFORCE


async def test_a_switch_that_must_be_clean_is_refused(site: Site, admin: Visitor) -> None:
    """With the check, the domain stays in monitor mode if a user would be refused, and the page says why."""
    at = await with_logins(site)
    answer = await admin.send(f"{at}/mode?to=enforce", {"revert": "60", "clean": "yes"})
    assert answer.status_code == 409
    assert "enforcing would deny 1 user or device" in text_of(answer)
    assert "bob reject not enrolled" in text_of(answer)
    assert mode(site) is Mode.MONITOR


async def test_back_to_monitor_needs_no_preview(site: Site, admin: Visitor) -> None:
    """The way back is one page with one button, and stays by default."""
    at = await with_logins(site)
    await admin.send(f"{at}/mode?to=enforce", {"revert": ""})
    page = await admin.get(f"{at}/mode?to=monitor")
    assert "no login of corp is refused for a missing second factor" in text_of(page)
    await admin.send(f"{at}/mode?to=monitor", {"revert": ""})
    assert mode(site) is Mode.MONITOR


async def test_enrolments_are_checked_on_demand(site: Site, admin: Visitor) -> None:
    """The provider is asked by a form, and the preview says how many enrolments are left."""
    at = await with_logins(site)
    answer = await admin.send(f"{at}/enrolments")
    assert answer.headers["location"] == f"{at}/preview"
    assert "2 users of recent logins need a second factor. All enrolments are known." in text_of(
        await admin.get(f"{at}/preview")
    )


async def test_break_glass_is_for_the_installation(site: Site, admin: Visitor) -> None:
    """An installation administrator switches every domain to monitor, and restores the modes later."""
    await site.areas.domains.set_mode([site.areas.domain], Mode.ENFORCE)
    assert (await admin.get("/break-glass")).status_code == 403
    seed = await site.administrator()
    async with site.visitor() as root:
        assert (await root.sign_in_as("root", site.code(seed))).status_code == 303
        assert "all domains of all tenants (1)" in text_of(await root.get("/break-glass"))
        assert mode(site) is Mode.ENFORCE
        await root.send("/break-glass", {"action": "break"})
        assert mode(site) is Mode.MONITOR
        await root.send("/break-glass", {"action": "restore"})
        assert "The former mode of 1 domain is restored" in text_of(await root.get("/break-glass"))
    assert mode(site) is Mode.ENFORCE
