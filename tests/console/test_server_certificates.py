"""The pages of server certificates."""

from datetime import timedelta
from pathlib import Path

import pytest

from sallyport.base.clock import from_us
from sallyport.certs.folder import CertificateFolder, present
from sallyport.web.scope import Role
from tests.console.visitor import Site, Visitor, text_of


@pytest.fixture
def folder(tmp_path: Path) -> CertificateFolder:
    """Return a folder with a server certificate."""
    found = CertificateFolder(tmp_path)
    found.make("Corp CA", ["radius.corp.example"], present())
    return found


async def test_a_certificate_is_set_checked_and_removed(site: Site, admin: Visitor, folder: CertificateFolder) -> None:
    """The form never shows a key again, not even if it is refused. The check has the findings for each supplicant."""
    assert "no server certificate of its own" in text_of(await admin.get("/server-certificates"))
    chain, key = folder.server.read_text(), folder.server_key.read_text()
    wrong = (folder.path / "ca.key").read_text()
    refused = await admin.send(
        "/server-certificates/set?domain=1", {"realm": "", "certificate": chain, "privateKey": wrong}
    )
    assert refused.status_code == 400 and "must be the key of the first certificate" in text_of(refused)
    assert chain.splitlines()[1] in refused.text and wrong.splitlines()[1] not in refused.text
    answer = await admin.send(
        "/server-certificates/set?domain=1", {"realm": "", "certificate": chain, "privateKey": key}
    )
    assert answer.headers["location"] == "/server-certificates/check?domain=1"
    assert "radius.corp.example" in text_of(await admin.get("/server-certificates?domain=1"))
    shown = await admin.get("/server-certificates/check?domain=1&serverName=radius.other.example")
    assert "Corp CA" in text_of(shown) and "not for radius.other.example" in text_of(shown)
    assert "PRIVATE" not in shown.text
    removed = await admin.get("/server-certificates/remove?domain=1")
    assert "radius.corp.example" in text_of(removed)
    await admin.send("/server-certificates/remove?domain=1", {})
    assert site.areas.app.server_certificates.service.of(1) == []
    assert (await admin.get("/server-certificates/check?domain=1")).status_code == 404


async def test_a_certificate_that_expires_needs_attention(
    site: Site, admin: Visitor, folder: CertificateFolder, tmp_path: Path
) -> None:
    """The home page names a server certificate that expires soon, and links to the certificates of the domain."""
    domain, service = site.areas.domains.table.by_id[1], site.areas.app.server_certificates.service
    old = CertificateFolder(tmp_path / "old")
    old.make("Corp CA", ["radius.corp.example"], from_us(site.clock.now) - timedelta(days=391))
    for each, is_soon in ((folder, False), (old, True)):
        await service.set(domain, "", each.server.read_text(), each.server_key.read_text())
        page = await admin.get("/")
        assert ("The server certificate of" in text_of(page)) is is_soon
        assert ('href="/server-certificates?domain=1"' in page.text.partition("<main")[2]) is is_soon


async def test_an_auditor_has_no_forms(site: Site, folder: CertificateFolder) -> None:
    """An auditor sees the certificates and their findings, and may not change them."""
    domain, service = site.areas.domains.table.by_id[1], site.areas.app.server_certificates.service
    await service.set(domain, "", folder.server.read_text(), folder.server_key.read_text())
    async with site.visitor() as auditor:
        await auditor.sign_in(await site.token(Role.AUDITOR))
        for path in ("/server-certificates?domain=1", "/server-certificates/check?domain=1"):
            page = await auditor.get(path)
            assert page.status_code == 200 and "/server-certificates/set" not in page.text
        assert (await auditor.get("/server-certificates/set?domain=1")).status_code == 403
