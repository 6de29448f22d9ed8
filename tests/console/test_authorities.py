"""The pages of authorities."""

from sallyport.areas.authorities.revocation import repo
from sallyport.radius.eap.certificate_names import NamedBy
from sallyport.web.examples import EXAMPLE_AUTHORITY
from sallyport.web.scope import Role
from tests.areas.authorities.made import MadeAuthority
from tests.console.visitor import Site, Visitor, text_of

FIELDS = {"name": "<Intune>", "domainIds": "1", "kinds": "machines", "names": "sid\nupn", "revocation": "hard"}
PAGE = "/authorities/1"


async def test_an_authority_is_added_changed_and_removed(site: Site, admin: Visitor) -> None:
    """The pages show the scope, the strength of each name, and the trust anchors."""
    assert "No authority yet" in text_of(await admin.get("/authorities"))
    refused = await admin.send("/authorities/add", {**FIELDS, "certificates": "no PEM"})
    assert refused.status_code == 400 and "must be certificates in PEM" in text_of(refused)
    assert "<textarea" in refused.text and "no PEM</textarea>" in refused.text
    answer = await admin.send("/authorities/add", {**FIELDS, "certificates": EXAMPLE_AUTHORITY})
    assert answer.headers["location"].partition("?")[0] == PAGE
    shown = await admin.get(PAGE)
    assert "&lt;Intune&gt;" in shown.text and "<Intune>" not in shown.text
    for text in ("SID (strong)", "user principal name (weak)", "CN=Example Issuing CA", "hard", "machines"):
        assert text in text_of(shown)
    assert "sid\nupn</textarea>" in (await admin.get(f"{PAGE}/change")).text
    await admin.send(f"{PAGE}/change", {**FIELDS, "name": "MDM", "realms": "corp.example\n", "strongOnly": "yes"})
    (found,) = site.areas.authorities.of_domain(1)
    assert (found.name, found.realms, found.names, found.strong_only) == (
        "MDM", ("corp.example",), (NamedBy.SID, NamedBy.UPN), True,
    )  # fmt: skip
    assert found.certificates == EXAMPLE_AUTHORITY
    assert "MDM" in text_of(await admin.get("/authorities"))
    assert "are refused in corp" in text_of(await admin.get(f"{PAGE}/remove"))
    answer = await admin.send(f"{PAGE}/remove", {})
    assert answer.headers["location"].partition("?")[0] == "/authorities"
    assert (await admin.get(PAGE)).status_code == 404


async def test_overlapping_scopes_are_a_warning(site: Site, admin: Visitor) -> None:
    """Both authorities have the warning, on their pages and in the list."""
    given = {"name": "one", "domainIds": "1", "kinds": "people", "names": "upn"}
    await admin.send("/authorities/add", {**given, "certificates": MadeAuthority("one").pem})
    await admin.send("/authorities/add", {**given, "name": "two", "certificates": MadeAuthority("two").pem})
    assert "same users as two" in text_of(await admin.get(PAGE))
    assert "same users as one" in text_of(await admin.get("/authorities"))


async def test_the_page_has_the_revocation_lists(site: Site, admin: Visitor) -> None:
    """A list that was never fetched is shown with its address, as missing."""
    await admin.send("/authorities/add", {**FIELDS, "certificates": EXAMPLE_AUTHORITY})
    assert "No list yet" in text_of(await admin.get(PAGE))
    (found,) = site.areas.authorities.of_domain(1)
    address = "http://pki.example/<a>.crl"
    await site.areas.store.write(lambda tx: repo.add(tx, found.id, found.tenant_id, address, b"", 1))
    await site.areas.revocation_lists.load()
    assert f"{address} missing" in text_of(await admin.get(PAGE))


async def test_only_an_admin_sees_the_forms(site: Site, admin: Visitor) -> None:
    """An operator reads the pages, and has no link to the forms."""
    await admin.send("/authorities/add", {**FIELDS, "certificates": EXAMPLE_AUTHORITY})
    async with site.visitor() as operator:
        await operator.sign_in(await site.token(Role.OPERATOR))
        assert "/change" not in (await operator.get(PAGE)).text
        assert (await operator.get(f"{PAGE}/change")).status_code == 403
