"""Lists and forms about DIDs, schemas, wallets and groups with more rows than a form offers as a choice."""

import re

import pytest

from sallyport.areas.did.credentials import repo as credentials
from sallyport.areas.did.credentials.credential import Schema
from sallyport.areas.did.dids import repo as dids
from sallyport.areas.did.dids.did import DidKind, NewDid
from sallyport.areas.did.wallets.wallet import NewWallet
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.console.table import SIZE
from sallyport.store.model import Tx
from tests.areas.directory.world import at_work, group, over, person, queue
from tests.console.test_credentials import SCHEMA, make
from tests.console.visitor import Site, Visitor, text_of

FORMS = {
    "/dids/add": ("wallet", "issuer"),
    "/schemas/add": ("author",),
    "/credentials/add": ("issuerDid", "holderDid", "schemaId"),
    "/presentations/add": ("issuerDid", "holderDid"),
}
"""The fields of each form that name a DID, a schema or a wallet."""


async def add_many(site: Site, count: int = SIZE, domain: int = 0) -> None:
    """Add issuers, holders, schemas and wallets to a domain."""
    areas = site.areas
    domain = domain or areas.domain

    def work(tx: Tx) -> None:
        for number in range(count):
            for kind in DidKind:
                new, did = NewDid(domain, "key", f"{kind} {number}", "", "Ed25519"), f"did:key:z{kind}{number}"
                added = dids.add(tx, areas.tenant, new, kind, did, 1, wallet_id=None, issuer_id=None)
                if kind == DidKind.ISSUER:
                    schema = Schema(0, areas.tenant, domain, f"{domain}-{number}", f"badge {number}", "{}")
                    credentials.add_schema(tx, schema, added, 1)

    await areas.store.write(work)
    for number in range(count):
        await areas.did.wallets.register(areas.tenant, NewWallet(domain, f"u{number}", f"u{number}@x.example", ""))


def is_text(page: str, name: str) -> bool:
    """Return whether a field of a form is a text field, and False if it is a choice."""
    found = re.findall(rf'<(input|select) id="{name}"', page)
    assert len(found) == 1, name
    return bool(found[0] == "input")


async def test_a_long_list_is_no_choice(site: Site, admin: Visitor) -> None:
    """A form offers a short list as a choice. With more rows than a page of a list has, the field is a text field."""
    await make(admin)
    await add_many(site, SIZE - 1)
    for path, names in FORMS.items():
        page = (await admin.get(path)).text
        assert not any(is_text(page, name) for name in names), path
        assert page.count("<option") >= SIZE
    await add_many_more(site)
    for path, names in FORMS.items():
        page = (await admin.get(path)).text
        assert all(is_text(page, name) for name in names), path
        assert page.count("<option") < 20
    assert 'id="wallet" name="wallet" type="text" value="7"' in (await admin.get("/dids/add?wallet=7")).text


async def add_many_more(site: Site) -> None:
    """Add one row to each list of `add_many`."""
    areas = site.areas
    await areas.did.wallets.register(areas.tenant, NewWallet(areas.domain, "last", "last@x.example", ""))

    def work(tx: Tx) -> None:
        for kind in DidKind:
            new = NewDid(areas.domain, "key", f"last {kind}", "", "Ed25519")
            added = dids.add(tx, areas.tenant, new, kind, f"did:key:zLast{kind}", 1, wallet_id=None, issuer_id=None)
            schema = Schema(0, areas.tenant, areas.domain, f"last-{kind}", "last", "{}")
            credentials.add_schema(tx, schema, added, 1)

    await areas.store.write(work)


async def test_a_text_field_names_a_row(site: Site, admin: Visitor) -> None:
    """A DID, an id or a whole name is accepted, without regard to case. The form keeps what the person has written."""
    issuer, holder = await make(admin)
    await add_many(site)
    fields = {"credentialName": "VPN badge", "claims": "epmUsername=ann", "expiry": "2999-01-01"}
    for by, of, schema in ((issuer, holder, "1"), ("1", "2", "BADGE"), ("Corp Issuer", "ANN", "badge")):
        sent = {**fields, "issuerDid": by, "holderDid": of, "schemaId": schema}
        answer = await admin.send("/credentials/add", sent)
        assert answer.status_code == 303, text_of(answer)
    (credential,) = re.findall(r"/credentials/\d+", answer.headers["location"])
    assert 'id="wallet" name="wallet" type="text"' in (await admin.get(f"{credential}/assign")).text
    assert (await admin.send(f"{credential}/assign", {"wallet": "Ann@corp.example"})).status_code == 303
    assert "State assigned" in text_of(await admin.get(credential))
    new = {"method": "key", "name": "second", "wallet": "u7", "issuer": "corp issuer"}
    made = await admin.send("/dids/add", new)
    assert "Issuer corp issuer" in text_of(await admin.get(made.headers["location"]))
    author = {"author": "corp issuer", "name": "second", "schema": SCHEMA}
    assert (await admin.send("/schemas/add", author)).status_code == 303
    await site.areas.store.write(lambda tx: tx.execute("update dids set name = 'Issuer 7' where id = 1"))
    refused = await admin.send("/schemas/add", author | {"author": "issuer 7"})
    assert refused.status_code == 400 and 'several entries have the name "issuer 7": give the id, 1, ' in text_of(
        refused
    )
    assert 'value="issuer 7"' in refused.text


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ssuer 4", "names that contain it: Issuer 4 (id 11), Issuer 40 (id 83), Issuer 41 (id 85) and 8 more"),
        ("zzyzx", 'no issuer has the id or the name "zzyzx"'),
        (
            "2",
            'no issuer has the id or the name "2"; names that contain it: Issuer 2 (id 7), Issuer 12 (id 27), '
            "Issuer 20 (id 43) and 11 more",
        ),
        ("999999", 'no issuer has the id or the name "999999"'),
    ],
    ids=["part of names", "no name", "id of a holder", "no id"],
)
async def test_a_text_field_that_names_nothing(site: Site, admin: Visitor, name: str, message: str) -> None:
    """The form is refused with the reason at the field, and with similar names."""
    await make(admin)
    await add_many(site)
    answer = await admin.send("/presentations/add", {"issuerDid": name, "endpoint": "server"})
    assert answer.status_code == 400
    assert message in text_of(answer) and 'id="issuerDid-wrong"' in answer.text


async def test_rows_of_another_tenant_do_not_exist(site: Site, admin: Visitor) -> None:
    """The ids and the names of another tenant are refused like those that nobody has, in the pages and in the forms."""
    await make(admin)
    await add_many(site)
    other = await site.areas.tenancy.ensure_tenant(2, 2)
    foreign = await site.areas.domains.add(other, "foreign")
    new = NewDid(foreign, "key", "theirs", "", "Ed25519")
    did = await site.areas.did.dids.create_issuer(other, new)
    wallet = await site.areas.did.wallets.register(other, NewWallet(foreign, "theirs", "theirs@x.example", ""))
    for path in (f"/dids/{did.id}", f"/dids/{did.id}/remove", f"/dids/{did.id}/rotate", f"/wallets/{wallet.wallet_id}",
                 f"/wallets/{wallet.wallet_id}/reset", f"/dids?domain={foreign}", "/dids/0", "/wallets/0"):  # fmt: skip
        assert (await admin.get(path)).status_code == 404, path
    for named in (str(did.id), "theirs"):
        refused = await admin.send("/presentations/add", {"issuerDid": named, "endpoint": "server"})
        assert f'no issuer has the id or the name "{named}"' in text_of(refused)
    for named, status in ((str(wallet.wallet_id), 404), ("theirs", 400)):
        assert (await admin.send("/dids/add", {"method": "key", "name": "x", "wallet": named})).status_code == status
    for search in ("theirs", did.did):
        assert "Nothing matches" in text_of(await admin.get(f"/dids?search={search}"))


async def test_dids_are_filtered_and_paged(site: Site, admin: Visitor) -> None:
    """The list has a page of DIDs and the total. The filters are in the address, and a file has all matching DIDs."""
    issuer, _ = await make(admin)
    await add_many(site)
    first = text_of(await admin.get("/dids"))
    assert f"{2 * SIZE + 2} in all page 1 of 3" in first and f"Issuer {SIZE - 1} " not in first
    assert f"Issuer {SIZE - 1} " in text_of(await admin.get("/dids?page=3"))
    holders = text_of(await admin.get("/dids?kindText=holder&page=2"))
    assert f"User {SIZE - 1} holder" in holders and f"{SIZE + 1} in all" in holders
    assert "1 in all" in text_of(await admin.get("/dids?search=USER%207&kindText=holder"))
    assert "Nothing matches" in text_of(await admin.get("/dids?search=USER%207&kindText=issuer"))
    assert "corp issuer" in text_of(await admin.get(f"/dids?search={issuer}"))
    export = await admin.get("/dids?format=csv&column=shownName&search=issuer")
    assert export.text.split("\r\n") == ["Name", "corp issuer", *(f"Issuer {number}" for number in range(SIZE)), ""]


async def test_schemas_are_filtered_and_paged(site: Site, admin: Visitor) -> None:
    """The list has links between its pages, and the total on the last one. It names the author of each schema."""
    await make(admin)
    await add_many(site, SIZE - 1)
    page = await admin.get("/schemas")
    assert f"{SIZE} in all" in text_of(page) and "Next page" not in text_of(page)
    await add_many_more(site)
    page = await admin.get("/schemas")
    assert "Next page" in text_of(page) and 'rel="next" href="/schemas?page=2"' in page.text
    assert "badge corp issuer yes" in text_of(page)
    last = text_of(await admin.get("/schemas?page=2"))
    assert "last last Issuer no" in last and f"{SIZE + 2} in all" in last and "Previous page" in last
    assert "1 in all" in text_of(await admin.get("/schemas?search=BADGE%207"))
    await site.areas.store.write(lambda tx: tx.execute("update dids set deleted_at = 1 where name = 'Issuer 7'"))
    assert "badge 7 deleted no" in text_of(await admin.get("/schemas?search=badge+7"))
    export = await admin.get("/schemas?format=csv&column=name")
    assert export.text.count("\r\n") == SIZE + 3


async def test_a_rule_is_moved_before_one_of_many(site: Site, admin: Visitor) -> None:
    """With more rules than a form offers as a choice, the other rule is named by its id or its name."""
    for number in range(SIZE + 1):
        body = RuleFields.model_validate({"name": f"Rule {number}", "action": "block", "users": [f"u{number}"]})
        await site.areas.rules.add(site.areas.domain, body)
    last = f"/rules/{SIZE + 1}"
    assert is_text((await admin.get(f"{last}/move")).text, "before")
    assert 'no rule has the id or the name "rule"' in text_of(await admin.send(f"{last}/move", {"before": "rule"}))
    assert (await admin.send(f"{last}/move", {"before": "rule 0"})).status_code == 303
    assert re.search(rf"1 Rule {SIZE} block.* 2 Rule 0 block", text_of(await admin.get("/rules")), re.IGNORECASE)
    assert f"Rule {SIZE}" in text_of(await admin.get(f"{last}/edit"))
    for missing in (0, SIZE + 2):
        assert (await admin.get(f"/rules/{missing}/edit")).status_code == 404


async def test_a_wallet_with_many_holders(site: Site, admin: Visitor) -> None:
    """The page of a wallet lists the first holders, and says that there are more."""
    await make(admin)
    await add_many(site)
    await site.areas.store.write(lambda tx: tx.execute("update dids set wallet_id = 1 where kind = 'User'"))
    page = text_of(await admin.get("/wallets/1"))
    assert f"Only the first {SIZE} holders are listed" in page and "User 0" in page and f"User {SIZE - 1}" not in page


async def test_a_mapping_of_one_of_many_groups(site: Site, admin: Visitor) -> None:
    """The form offers the groups of its directory, also behind those of another directory. It finds one of many groups
    by its name, but none of another directory.
    """
    groups = [group(f"g{number}") for number in range(SIZE + 1)]
    async with at_work(site.areas):
        await over(site.areas, await queue(site.areas, person("ann") + "".join(groups), name="HR"))
        await over(site.areas, await queue(site.areas, person("bob") + group("staff"), name="IT"))
    assert is_text((await admin.get("/directories/1/mapping")).text, "group")
    few = (await admin.get("/directories/2/mapping")).text
    assert not is_text(few, "group") and ">staff</option>" in few
    fields = {"fieldMappings": "department=l"}
    assert (await admin.send("/directories/1/mapping", {**fields, "group": "G7"})).status_code == 303
    refused = await admin.send("/directories/1/mapping", {**fields, "group": "staff"})
    assert 'no group has the id or the name "staff"' in text_of(refused)
