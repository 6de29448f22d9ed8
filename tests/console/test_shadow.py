"""The pages of shadow mode: the comparison, the logins behind each number, and the switch of one NAS."""

import re
from functools import partial
from pathlib import Path

import pytest

from sallyport.areas.shadow.repo import delete_some
from sallyport.web.scope import Role
from tests.areas import Areas
from tests.areas.shadow.conftest import Office
from tests.areas.shadow.files import Packet, several
from tests.console.visitor import Site, Visitor, text_of


@pytest.fixture
async def office(areas: Areas, tmp_path: Path) -> Office:
    """Return a domain whose logins another server has decided: the same, stricter and laxer."""
    await areas.client("192.0.2.1/32", name="vpn", product="Cisco ASA")
    office = Office(areas, tmp_path / "IN2601.log")
    await office.users("ann", "bob", "eve")
    await office.rule("no bob", "block", users=["bob"])
    await office.rule("staff", "allow", users=["ann", "eve"])
    await office.log(
        *several(
            [
                Packet("ann"),
                Packet("bob"),
                Packet("bob"),
                Packet("eve", reason=65, policy="<No VPN>"),
                Packet("zoe"),
                Packet("zoe", nas="198.51.100.9"),
            ]
        )
    )
    return office


async def test_the_comparison_leads_to_the_logins_behind_each_number(office: Office, admin: Visitor) -> None:
    """The page has the numbers by result, cause, user and NAS. Each links to exactly its logins."""
    page = await admin.get("/shadow")
    text = text_of(page)
    for part in ("Logins compared 6", "Laxer 1 login :", "Stricter 4 logins :", "Same 1 login :"):
        assert part in text, text
    assert "blocked by rule no bob" in text and "<No VPN>" in text and "IN2601.log:" in text
    links = re.findall(r'data-title="(Logins|Laxer|Stricter)" class="number"><a href="([^"]+)">(\d+)</a>', page.text)
    assert len(links) > 8
    for title, link, number in links:
        shown = text_of(await admin.get(link.replace("&amp;", "&")))
        assert f"{number} in all" in shown, (title, link)


async def test_an_empty_comparison_says_what_to_do(admin: Visitor) -> None:
    assert "sallyport shadow report FILE" in text_of(await admin.get("/shadow"))
    assert "sallyport shadow report FILE" in text_of(await admin.get("/shadow/nas"))


async def test_the_page_of_a_nas_shows_what_its_switch_changes(office: Office, admin: Visitor) -> None:
    """It counts only the logins of this NAS, and names the client, the mode and the next steps."""
    assert 'href="/shadow/nas?domain=1&amp;device=192.0.2.1"' in (await admin.get("/shadow/nas")).text
    text = text_of(await admin.get("/shadow/nas?device=192.0.2.1"))
    assert "3 recorded logins that the other server accepted would be refused" in text
    assert "1 login that it refused would be accepted" in text
    assert "vpn is the RADIUS client of this NAS" in text and "corp is in monitor mode" in text
    assert "no RADIUS client has this address" not in text
    other = text_of(await admin.get("/shadow/nas?device=198.51.100.9"))
    assert "No RADIUS client has the address 198.51.100.9" in other
    assert "it is not known what would change" in text_of(await admin.get("/shadow/nas?device=203.0.113.1"))


async def test_the_last_report_is_kept(office: Office, admin: Visitor) -> None:
    """A page that is shown again has the numbers and the time of its decisions, until they are decided again."""
    assert "Stricter 4 logins" in text_of(await admin.get("/shadow"))
    rules = office.areas.rules
    await rules.delete(office.areas.domain, [each.id for each in rules.all_of(office.areas.domain)])
    await office.rule("nobody", "block", everyone=True)
    kept = await admin.get("/shadow")
    assert "Stricter 4 logins" in text_of(kept)
    (again,) = re.findall(r'href="([^"]+)">Decide again', kept.text)
    assert "Stricter 5 logins" in text_of(await admin.get(again.replace("&amp;", "&")))
    assert "Stricter 5 logins" in text_of(await admin.get("/shadow"))


async def test_another_process_has_deleted_the_logins(office: Office, admin: Visitor) -> None:
    """The report that this process has kept is not shown any more: it has the names of users."""
    assert "Stricter 4 logins" in text_of(await admin.get("/shadow"))
    await office.areas.store.write(partial(delete_some, domain_id=office.areas.domain, most=100))
    assert "No login of another server is recorded yet" in text_of(await admin.get("/shadow"))


async def test_the_recorded_logins_are_deleted(site: Site, office: Office, admin: Visitor) -> None:
    """An auditor sees the comparison, and has no button."""
    async with site.visitor() as auditor:
        await auditor.sign_in(await site.token(Role.AUDITOR))
        assert "/shadow/clear" not in (await auditor.get("/shadow")).text
        assert (await auditor.get("/shadow/clear")).status_code == 403
    assert "6 recorded logins" in text_of(await admin.get("/shadow/clear"))
    await admin.send("/shadow/clear")
    assert "No login of another server is recorded yet" in text_of(await admin.get("/shadow"))
