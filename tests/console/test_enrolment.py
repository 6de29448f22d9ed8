"""People without a second factor in the console: the list, the mails to a group, and the link of a person."""

from sallyport.areas.domains.domain import FirstFactor
from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.web.scope import Role
from tests.areas.directory.world import group, imported, person
from tests.areas.login.first.conftest import Book, kind
from tests.console.visitor import Site, Visitor, text_of

PEOPLE = (
    person("bob", "mail: bob@corp.example")
    + person("eve", "mail: eve@corp.example")
    + group("staff", "uid=bob,ou=People,dc=x", "uid=eve,ou=People,dc=x")
)


async def with_people(site: Site) -> None:
    """Give the domain people of a directory."""
    areas = site.areas
    areas.first_kinds[FirstFactor.LDAP] = kind(Book())
    domain = areas.domains.table.by_id[areas.domain]
    await areas.first_settings.set(domain, FirstFactor.LDAP, {"ldap": {"password": "x"}})
    await imported(areas, PEOPLE)


async def test_people_without_a_factor_are_listed(site: Site, admin: Visitor) -> None:
    """The list names the addresses and the states of the links. Each person leads to the form of a link."""
    await with_people(site)
    areas = site.areas
    await areas.app.me.links.mail(Person(areas.domain, "bob"))
    page = await admin.get("/not-enrolled")
    assert "bob@corp.example" in page.text and "queued" in page.text
    assert f"/people/person/enrolment-link?domain={areas.domain}&amp;user=bob" in page.text
    empty = await admin.get("/not-enrolled?group=nobody")
    assert "Nothing matches" in text_of(empty)


async def test_the_progress_of_a_group(site: Site, admin: Visitor) -> None:
    """Mails that wait are shown with a bar. The page refreshes as long as some wait."""
    await with_people(site)
    areas = site.areas
    await areas.app.me.links.mail_group(areas.domain, "staff", is_admin=True)
    page = await admin.get("/not-enrolled")
    assert '<progress max="2" value="0"' in page.text and "data-refresh" in page.text
    assert "0 of 2 sent, 0 used, 2 waiting" in text_of(page)


async def test_a_refusal_is_shown_in_the_form(site: Site, admin: Visitor) -> None:
    """This service has no site of people, so that it makes no links and sends no mails."""
    await with_people(site)
    form = await admin.get("/not-enrolled/mail?group=staff")
    assert "2 people of staff have no second factor" in text_of(form)
    refused = await admin.send("/not-enrolled/mail", {"group": "staff"})
    assert "people_bind" in text_of(refused)
    link = await admin.send("/people/person/enrolment-link?user=bob", {"by": "link"})
    assert "people_bind" in text_of(link)


async def test_an_auditor_sends_nothing(site: Site) -> None:
    """An auditor sees the list, and neither the button nor the forms."""
    await with_people(site)
    async with site.visitor() as auditor:
        await auditor.sign_in(await site.token(Role.AUDITOR))
        page = await auditor.get("/not-enrolled")
        assert "bob" in page.text and "Send links" not in page.text and "enrolment-link" not in page.text
        assert (await auditor.get("/not-enrolled/mail")).status_code == 403
