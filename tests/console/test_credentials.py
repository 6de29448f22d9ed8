"""The pages of DIDs, schemas, credentials, wallets and presentation requests."""

import re

from sallyport.areas.did.presentations.verifier import AccessRequest
from sallyport.areas.users.instances.instance import Instance
from sallyport.base.clock import SECOND
from sallyport.console.table import SIZE
from sallyport.web.scope import Role
from tests.console.visitor import Site, Visitor, text_of

SECRET = re.compile(r'<code class="secret">([^<]+)</code>')
SCHEMA = '{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}'


async def make(admin: Visitor) -> tuple[str, str]:
    """Create an issuer, a wallet, a holder and a schema, and return the DIDs of issuer and holder."""
    await admin.send("/dids/add", {"method": "key", "name": "corp issuer", "keyType": "Ed25519"})
    await admin.send("/wallets/add", {"username": "ann", "emailAddress": "ann@corp.example"})
    page = (await admin.get("/dids/1")).text
    (issuer,) = set(re.findall(r"did:key:\w+", page))
    await admin.send("/dids/add", {"method": "key", "name": "ann", "wallet": "1", "issuer": issuer})
    (holder,) = set(re.findall(r"did:key:\w+", (await admin.get("/dids/2")).text))
    await admin.send("/schemas/add", {"author": issuer, "name": "badge", "schema": SCHEMA, "sign": "yes"})
    return issuer, holder


async def test_empty_pages_name_the_next_step(admin: Visitor) -> None:
    """Each list without rows, and each form that lacks something, says what is needed first."""
    for path, text in (
        ("/dids", "Create an issuer first"), ("/schemas", "needs an issuer"), ("/credentials", "needs an issuer"),
        ("/wallets", "Register the wallet"), ("/schemas/add", "no issuer yet"), ("/credentials/add", "an issuer first"),
        ("/presentations", "Ask for a presentation"), ("/presentations/add", "no issuer yet"),
    ):  # fmt: skip
        assert text in text_of(await admin.get(path)), path


async def test_a_wallet_is_registered_and_reset(site: Site, admin: Visitor) -> None:
    """The key and the token are shown once. A reset shows new ones, after a page that says what is lost."""
    assert (await admin.send("/wallets/add", {"username": "ann", "emailAddress": "ann"})).status_code == 400
    made = await admin.send("/wallets/add", {"username": "ann", "emailAddress": "ann@corp.example"})
    key, token = SECRET.findall(made.text)
    page = await admin.get("/wallets/1")
    assert "Wallet of ann" in text_of(page)
    assert key not in page.text and token not in page.text
    assert "ann (ann@corp.example)" in text_of(await admin.get("/wallets/1/reset"))
    again = SECRET.findall((await admin.send("/wallets/1/reset")).text)
    assert not set(again) & {key, token}


async def test_a_credential_is_issued_assigned_and_revoked(site: Site, admin: Visitor) -> None:
    """A credential goes from its issue to its end. Its document is shown, and the password for the holder is not."""
    issuer, holder = await make(admin)
    assert "badge corp issuer yes" in text_of(await admin.get("/schemas"))
    fields = {
        "credentialName": "VPN badge", "issuerDid": issuer, "holderDid": holder, "schemaId": "1",
        "claims": "epmUsername=ann\nteam = net", "password": "hunter2", "expiry": "2027-01-01",
    }  # fmt: skip
    assert "write NAME=VALUE" in text_of(await admin.send("/credentials/add", {**fields, "claims": "ann"}))
    answer = await admin.send("/credentials/add", fields)
    page = answer.headers["location"].partition("?")[0]
    shown = await admin.get(page)
    assert "State active User ann" in text_of(shown)
    assert "team" in shown.text and "hunter2" not in shown.text
    await admin.send(f"{page}/assign", {"wallet": "1"})
    assert "VPN badge ann assigned corp issuer badge" in text_of(await admin.get("/wallets/1"))
    assert "VPN badge ann assigned" in text_of(await admin.get("/credentials"))
    assert "revoked for good" in text_of(await admin.get(f"{page}/revoke"))
    await admin.send(f"{page}/revoke")
    assert "State revoked" in text_of(await admin.get(page))
    assert f"{page}/revoke" not in (await admin.get(page)).text


async def test_a_did_is_deleted_after_a_page_that_says_what_ends(site: Site, admin: Visitor) -> None:
    """The pages of an issuer and of a holder say different things about their deletion."""
    await make(admin)
    assert "holder" in text_of(await admin.get("/dids?kindText=holder"))
    assert "Credentials that it has issued 0" in text_of(await admin.get("/dids/1/remove"))
    assert "no longer be used for logins" in text_of(await admin.get("/dids/2/remove"))
    await admin.send("/dids/2/remove")
    assert "1 DID deleted" in text_of(await admin.get("/dids"))
    assert (await admin.get("/dids/2")).status_code == 404


async def test_a_presentation_is_asked_for(site: Site, admin: Visitor) -> None:
    """A request is sent to the holder's wallet, and its state is shown under an address that can be kept."""
    issuer, holder = await make(admin)
    await site.areas.instances.add(site.areas.domain, Instance("server"))
    wrong = await admin.send("/presentations/add", {"issuerDid": issuer, "holderDid": holder, "endpoint": "other"})
    assert wrong.status_code in (400, 404)
    fields = {"issuerDid": issuer, "holderDid": holder, "endpoint": "server"}
    answer = await admin.send("/presentations/add", fields)
    assert answer.headers["location"] == "/presentations?domain=1&request=1"
    assert "1 pending" in text_of(await admin.get(answer.headers["location"])).lower()
    assert "no presentation request 99" in text_of(await admin.get("/presentations?request=99"))


async def test_presentation_requests_are_listed_newest_first(site: Site, admin: Visitor) -> None:
    """The list has state, wallet, credential and times of each request, in parts, and as CSV in whole."""
    issuer, holder = await make(admin)
    await site.areas.instances.add(site.areas.domain, Instance("server"))
    for _ in range(SIZE + 1):
        await site.areas.did.verifier.issue(
            site.areas.tenant, AccessRequest(issuer, holder, "", "server", of_group=False)
        )
    first = await admin.get("/presentations")
    assert f"{SIZE + 1} pending 2" in text_of(first) and "ann any server" in text_of(first)
    assert " 1 pending" not in text_of(first)
    assert f"before={2}" in first.text
    last = await admin.get("/presentations?domain=1&before=2")
    assert " 1 pending" in text_of(last) and "before=" not in last.text
    export = await admin.get("/presentations?format=csv&column=presentationRequestId")
    assert export.text.split() == ["Request", *(str(each) for each in range(SIZE + 1, 0, -1))]
    site.clock.now += 900 * SECOND
    assert "1 expired" in text_of(await admin.get("/presentations?before=2"))


async def test_an_auditor_reads_credentials(site: Site, admin: Visitor) -> None:
    """An auditor sees all lists, and the pages offer no change."""
    await make(admin)
    async with site.visitor() as auditor:
        await auditor.sign_in(await site.token(Role.AUDITOR))
        for path in ("/dids", "/dids/1", "/schemas", "/credentials", "/wallets", "/wallets/1", "/presentations"):
            page = await auditor.get(path)
            assert page.status_code == 200
            assert not [each for each in ("/add?", "/remove?", "/reset?") if each in page.text]
