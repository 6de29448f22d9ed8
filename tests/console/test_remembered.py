"""The remembered stations in the console: the setting, the list, and the form that forgets one."""

import re

from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.factors.remembered.station import SeenStation, StationKind
from sallyport.web.scope import Role
from tests.console.visitor import Site, Visitor, text_of


async def remember(site: Site) -> None:
    """Remember a station of ann."""
    person = Person(site.areas.domain, "ann")
    seen = SeenStation(person, StationKind.MAC, "001a2b3c4d5e", 1, "<wifi>", "own", "stamp")
    await site.areas.app.factors.remembered.keep(seen, 24)


async def test_the_setting_of_a_domain(site: Site, admin: Visitor) -> None:
    """The page of the domain shows the hours, and the list leads to the settings while there are none."""
    assert "This domain remembers no stations" in text_of(await admin.get("/remembered"))
    form = f"/domains/{site.areas.domain}/settings"
    saved = await admin.send(form, {"name": "corp", "remember": "48"})
    assert saved.status_code == 303
    assert "for 48 hours after a strong second factor" in text_of(await admin.get(saved.headers["location"]))
    wrong = await admin.send(form, {"name": "corp", "remember": "9999"})
    assert wrong.status_code == 400 and 'id="remember-wrong"' in wrong.text
    assert "No station is remembered" in text_of(await admin.get("/remembered"))


async def test_a_station_is_forgotten(site: Site, admin: Visitor) -> None:
    """The list leads to the form. What a RADIUS client is called is text, and not HTML."""
    await remember(site)
    page = await admin.get("/remembered?user=ann")
    assert "00:1a:2b:3c:4d:5e" in page.text and "&lt;wifi&gt;" in page.text
    (where,) = set(re.findall(r'href="(/remembered/remove[^"]*)"', page.text))
    form = where.replace("&amp;", "&")
    assert "00:1a:2b:3c:4d:5e" in text_of(await admin.get(form))
    done = await admin.send(form)
    assert "1 remembered station of ann forgotten." in text_of(await admin.get(done.headers["location"]))
    assert (await admin.get(form)).status_code == 404


async def test_an_auditor_forgets_no_station(site: Site) -> None:
    """An auditor sees the list without links to the form."""
    await remember(site)
    async with site.visitor() as visitor:
        await visitor.sign_in(await site.token(Role.AUDITOR))
        page = await visitor.get("/remembered")
        assert "00:1a:2b:3c:4d:5e" in page.text and "/remembered/remove" not in page.text
