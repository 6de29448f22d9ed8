"""The pages of network profiles."""

from sallyport.certs.folder import CertificateFolder, present
from sallyport.web.scope import Role
from tests.console.visitor import Site, Visitor, text_of

NAME = "<i>&o\"'"
OFFICE = "domain=1&profile=Office"
FIELDS = {
    "name": "Office", "ssids": " Büro \r\n\r\nOffice", "wired": "yes", "security": "wpa2", "method": "ttls-pap",
    "loginBy": "both", "outerIdentity": "anonymous@corp", "serverNames": "", "anchors": "",
}  # fmt: skip


async def test_a_profile_is_added_changed_and_removed(site: Site, admin: Visitor) -> None:
    """A new profile begins with values that suit the domain. Spaces around an SSID stay. A refused form shows the
    reason and the values.
    """
    assert "No profile yet" in text_of(await admin.get("/profiles"))
    form = await admin.get("/profiles/set?domain=1")
    assert 'value="anonymous@corp"' in form.text and 'value="peap" selected' in form.text
    refused = await admin.send("/profiles/set?domain=1", {**FIELDS, "serverNames": "*.example.org"})
    assert refused.status_code == 400 and "without a wildcard" in text_of(refused)
    assert "*.example.org</textarea>" in refused.text
    answer = await admin.send("/profiles/set?domain=1", FIELDS)
    assert answer.headers["location"] == f"/profiles/show?{OFFICE}"
    stored = await site.areas.app.profiles.service.present(1, "Office")
    assert stored.ssids == (" Büro ", "Office") and stored.wired and not stored.hidden
    assert " Büro \nOffice</textarea>" in (await admin.get(f"/profiles/set?{OFFICE}")).text
    await admin.send(f"/profiles/set?{OFFICE}", {**FIELDS, "ssids": "Office", "hidden": "yes", "method": "tls"})
    assert "EAP-TLS" in text_of(await admin.get("/profiles?domain=1"))
    assert "The link" not in text_of(await admin.get(f"/profiles/remove?{OFFICE}"))
    answer = await admin.send(f"/profiles/remove?{OFFICE}", {})
    assert answer.headers["location"] == "/profiles?domain=1"
    assert (await admin.get(f"/profiles/show?{OFFICE}")).status_code == 404


async def test_the_files_of_a_profile(site: Site, admin: Visitor) -> None:
    """Without a certificate, the page says what to do. With one, it has the files, and a name cannot leave its place in
    the page.
    """
    await admin.send("/profiles/set?domain=1", {**FIELDS, "name": NAME, "ssids": NAME})
    place = "/profiles?domain=1"
    listed = await admin.get(place)
    assert NAME not in listed.text and "&lt;i&gt;" in listed.text
    at = "domain=1&profile=%3Ci%3E%26o%22%27"
    shown = await admin.get(f"/profiles/show?{at}")
    assert "cert init" in text_of(shown) and "Files to download" not in text_of(shown)
    CertificateFolder(site.areas.settings.data_dir).make("Tests CA", ["radius.example.org"], present())
    shown = await admin.get(f"/profiles/show?{at}")
    assert "radius.example.org" in text_of(shown) and "Tests CA, SHA-1" in text_of(shown) and NAME not in shown.text
    assert "Phase 2 authentication" in text_of(shown)
    file = await admin.get(f"/profiles/file?{at}&file=i-o.mobileconfig")
    assert file.headers["content-type"] == "application/x-apple-aspen-config"
    assert file.headers["content-disposition"] == 'attachment; filename="i-o.mobileconfig"'
    assert (await admin.get(f"/profiles/file?{at}&file=other")).status_code == 404


async def test_a_link_is_shown_once(admin: Visitor) -> None:
    """The page after the form has the link. The page of the profile has only its end."""
    await admin.send("/profiles/set?domain=1", FIELDS)
    assert 'value="30"' in (await admin.get(f"/profiles/link?{OFFICE}")).text
    refused = await admin.send(f"/profiles/link?{OFFICE}", {"days": "400"})
    assert refused.status_code == 400 and "366" in text_of(refused)
    made = await admin.send(f"/profiles/link?{OFFICE}", {"days": "3"})
    assert "/profile/" in text_of(made) and "not shown again" in text_of(made)
    shown = await admin.get(f"/profiles/show?{OFFICE}")
    assert "expires" in text_of(shown) and "/profile/" not in shown.text
    assert "ends" in text_of(await admin.get(f"/profiles/link?{OFFICE}"))
    ended = await admin.send(f"/profiles/link?{OFFICE}", {"days": "0"})
    assert "has ended" in text_of(ended) and "/profile/" not in ended.text


async def test_an_auditor_sees_profiles_without_forms(site: Site, admin: Visitor) -> None:
    await admin.send("/profiles/set?domain=1", FIELDS)
    async with site.visitor() as auditor:
        await auditor.sign_in(await site.token(Role.AUDITOR))
        for path in ("/profiles", f"/profiles/show?{OFFICE}"):
            page = await auditor.get(path)
            assert page.status_code == 200 and "/profiles/set" not in page.text and "/profiles/link" not in page.text
        for path in ("set", "link", "remove"):
            assert (await auditor.get(f"/profiles/{path}?{OFFICE}")).status_code == 403
