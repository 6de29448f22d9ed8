"""Credentials: how they are issued, verified and revoked, and how their passwords are protected."""

import json
from functools import partial

import pytest

from sallyport.areas.did.credentials import repo
from sallyport.areas.did.credentials.credential import NewSchema, Status
from sallyport.areas.did.credentials.service import claims_of
from sallyport.areas.did.credentials.status import BITS, StatusLists, list_document
from sallyport.areas.did.crypto import jws, proofs, vc
from sallyport.areas.did.crypto.documents import ASSERTION, did_of
from sallyport.areas.did.crypto.encoding import read_object
from sallyport.areas.did.dids.did import DidKind
from sallyport.areas.domains.repo import Update
from sallyport.areas.users.accounts.account import WalletAssignment
from sallyport.base.clock import SECOND
from sallyport.base.errors import CredentialError, Invalid, NotFound
from sallyport.base.wire import JSON, LATEST
from sallyport.store.model import ListQuery
from tests.areas import Areas
from tests.areas.did.crypto.signers import ISSUERS, signer
from tests.areas.did.holders import populated
from tests.areas.did.status import Entry, check, entry_of
from tests.areas.did.world import SCHEMA, Identity, identity, new_did
from tests.areas.users import trail


async def verified(areas: Areas, text: str) -> vc.Credential:
    """Verify a token with the resolved DID of its issuer, but do not check its status."""
    token = jws.parse(text)
    return vc.verify(token, await areas.did.resolver.resolve(did_of(token.key_id)), areas.clock())


async def check_status(areas: Areas, document: dict[str, JSON]) -> None:
    """Check the status as a verifier does: fetch the list, verify it, and read the bit. Raises CredentialError."""
    entry = entry_of(document)
    published = await areas.did.lists.published(entry.url.rpartition("/")[2])
    check(entry, await verified(areas, published.token), str(document["issuer"]))


@pytest.mark.parametrize("method", ["key", "jwk", "web"])
@pytest.mark.parametrize("curve", ISSUERS)
async def test_an_issued_credential_verifies_in_both_forms(areas: Areas, method: str, curve: str) -> None:
    """The token and the document have the same contents. Both verify with the resolved DID of the issuer."""
    some = await identity(areas, method, curve)
    issued = await some.issue(expires_at=areas.clock() + 3600 * SECOND)
    token = await areas.store.read(lambda tx: repo.token(tx, issued.id))
    document = await areas.store.read(lambda tx: repo.document(tx, issued.id))
    held = await verified(areas, token)
    proof = document.pop("proof")
    assert held.document == document
    assert isinstance(proof, dict) and {"type", "created", "jws", "proofPurpose", "verificationMethod"} <= proof.keys()
    assert proof["jws"] == token
    if curve != "secp256k1":
        signer = await areas.did.resolver.resolve(some.issuer.did)
        proofs.verify({**document, "proof": proof}, signer, purpose=ASSERTION, now=areas.clock())
    assert held.subject == some.holder.did
    assert document["credentialSubject"] == {"id": some.holder.did, "epmUsername": "alice", "holderId": "17"}
    assert document["credentialSchema"] == {
        "id": f"https://id.example.test/credentials/schemas/{some.schema.uuid}",
        "type": "https://w3c-ccg.github.io/vc-json-schemas/schema/2.0/schema.json",
    }
    await check_status(areas, document)


async def test_a_password_is_sealed_and_not_a_claim(areas: Areas) -> None:
    """The holder can open the password. It is in neither form of the credential and not in the audit trail. A
    revocation deletes it.
    """
    some = await identity(areas)
    issued = await some.issue(password="hunter2")
    assert await areas.store.read(lambda tx: repo.password(tx, areas.vault, issued.id)) == "hunter2"
    document = await areas.store.read(lambda tx: repo.document(tx, issued.id))
    token = jws.parse(await areas.store.read(lambda tx: repo.token(tx, issued.id)))
    assert "hunter2" not in json.dumps([document, token.payload])
    assert "hunter2" not in str(await trail(areas))
    rows = await areas.store.read(lambda tx: tx.rows("select * from credentials"))
    assert "hunter2" not in str(rows)
    await areas.did.credentials.revoke(areas.domain, issued.id)
    assert await areas.store.read(lambda tx: repo.password(tx, areas.vault, issued.id)) == ""


def test_a_password_is_removed_from_the_metadata() -> None:
    """The claims do not contain the password. holderDID may be the DID of the holder."""
    assert claims_of({"epmUsername": "a", "epmPassword": "p", "holderDID": "did:a"}, "did:a") == (
        {"epmUsername": "a", "holderDID": "did:a"},
        "p",
    )


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"id": "did:b"}, id="id"),
        pytest.param({"holderDID": "did:b"}, id="another holder"),
        pytest.param({"epmPassword": 7}, id="a number as password"),
        pytest.param({"epmUsername": ["a"]}, id="a list as user name"),
        pytest.param({"epmUsername": "a\0"}, id="a control character"),
        pytest.param({"epmUsername": "a" * 256}, id="a long user name"),
    ],
)
def test_a_reserved_name_in_the_metadata_is_refused(metadata: dict[str, JSON]) -> None:
    """The metadata may not contain the id of the subject. The user name and the password must be text."""
    with pytest.raises(Invalid):
        claims_of(metadata, "did:a")


@pytest.mark.parametrize("claims", [{"EPMPassword": "p"}, {"a": [{"epmPassword": "p"}]}], ids=["case", "nested"])
async def test_a_password_elsewhere_in_the_metadata_is_refused(areas: Areas, claims: dict[str, JSON]) -> None:
    """A password under a name in another letter case, or in a nested object, is refused, because it would be signed
    with the credential.
    """
    with pytest.raises(Invalid, match="invalid metadata"):
        await (await identity(areas)).issue(claims={"epmUsername": "alice", **claims})


async def test_metadata_must_match_the_schema(areas: Areas) -> None:
    """If the metadata violates the schema, it is refused and no credential is issued. The schema applies to id and
    epmPassword only if it declares them.
    """
    some = await identity(areas)
    with pytest.raises(Invalid) as refused:
        await some.issue(claims={"epmUsername": ""})
    assert [each.field for each in refused.value.fields] == ["metadata.epmUsername"]
    assert await areas.did.credentials.page(ListQuery(areas.domain, 0, 10)) == ([], 0)
    strict = {
        **SCHEMA,
        "properties": {"epmUsername": {}, "epmPassword": {"minLength": 8}, "id": {"pattern": "^did:"}},
        "required": ["epmUsername", "epmPassword", "id"],
        "additionalProperties": False,
    }
    schema = await areas.did.schemas.create(areas.tenant, NewSchema(some.issuer.did, "s", strict, sign=False))
    await some.issue(schema_id=schema.id, claims={"epmUsername": "a"}, password="long enough")
    for wrong in ({"password": "short"}, {"password": ""}, {"claims": {"epmUsername": "a", "more": 1}}):
        with pytest.raises(Invalid):
            await some.issue(
                **{"schema_id": schema.id, "claims": {"epmUsername": "a"}, "password": "long enough", **wrong}
            )


async def test_issuer_holder_and_schema_must_be_of_the_domain(areas: Areas) -> None:
    """The issuer, the holder and the schema must belong to the domain. An expiry must be in the future."""
    some = await identity(areas)
    branch = await areas.domains.add(areas.tenant, "branch")
    elsewhere = await areas.did.dids.create_issuer(areas.tenant, new_did(branch))
    for wrong in (
        {"issuer_did": elsewhere.did},
        {"issuer_did": some.holder.did},
        {"holder_did": some.issuer.did},
        {"holder_did": "did:key:z6Mk"},
        {"schema_id": some.schema.id + 1},
        {"domain_id": branch},
    ):
        with pytest.raises(NotFound):
            await some.issue(**wrong)
    for wrong_time in (areas.clock(), LATEST + 1):
        with pytest.raises(Invalid):
            await some.issue(expires_at=wrong_time)
    await some.issue(expires_at=LATEST)


async def test_a_revocation_sets_the_status_bit(areas: Areas) -> None:
    """A revocation sets the bit in the status list and adds one audit entry. A second revocation changes nothing."""
    some = await identity(areas)
    kept, revoked = await some.issue(), await some.issue()
    credentials = areas.did.credentials
    document = await areas.store.read(lambda tx: repo.document(tx, revoked.id))
    await check_status(areas, document)
    for _ in range(2):
        await credentials.revoke(areas.domain, revoked.id, some.issuer.did, some.holder.did)
    with pytest.raises(CredentialError) as refused:
        await check_status(areas, document)
    assert refused.value.reason == "revoked"
    await check_status(areas, await areas.store.read(lambda tx: repo.document(tx, kept.id)))
    listed, _ = await credentials.page(ListQuery(areas.domain, 0, 10))
    assert [each.status for each in listed] == ["ACTIVE", "Revoked"]
    assert [each.action for each in await trail(areas)].count("credential.revoke") == 1
    assert areas.sample("sallyport_credentials_revoked_total") == 1
    assert areas.sample("sallyport_credentials_issued_total") == 2


async def test_a_revocation_ends_sessions_if_the_domain_is_configured_so(areas: Areas) -> None:
    """A revocation ends the sessions of the credential's user name in a domain with disconnect_on_revoke, and in no
    other domain.
    """
    some = await identity(areas)
    first, second = await some.issue(), await some.issue()
    await areas.did.credentials.revoke(areas.domain, first.id)
    assert await areas.store.read(lambda tx: tx.rows("select user_name from revocations")) == []
    await areas.domains.update(areas.domain, Update(settings={"disconnect_on_revoke": True}))
    await areas.did.credentials.revoke(areas.domain, second.id)
    assert await areas.store.read(lambda tx: tx.rows("select user_name from revocations")) == [("alice",)]


async def test_a_revocation_ends_the_sessions_of_assigned_users(areas: Areas) -> None:
    """A revocation ends the sessions of the users to whom the credential is assigned. If the credential has no user
    name, it also ends those of the users of its wallet. Other users keep their sessions.
    """
    world = await populated(areas)
    await world.give(world.ann, await world.issue(world.ann.did, ""))
    await areas.domains.update(areas.domain, Update(settings={"disconnect_on_revoke": True}))
    robert, wally, _ = [await areas.add_user(areas.domain, name, b"a password") for name in ("robert", "wally", "eve")]
    for user, wallets, assigned in [(robert, [], [world.ann.credential]), (wally, [world.ann.wallet_id], [])]:
        wanted = WalletAssignment(areas.domain, [user], wallets, assigned, "badge", 0, several=False)
        await areas.store.write(partial(world.did.users.assign, wanted=wanted))
    await world.revoke(world.ann)
    names = await areas.store.read(lambda tx: tx.rows("select user_name from revocations order by user_name"))
    assert names == [("robert",), ("wally",)]


async def test_deleting_a_holder_ends_the_sessions_of_its_users(areas: Areas) -> None:
    """The users of a deleted holder are found by user name, by credential and by wallet. They are not found by a
    credential that is ignored or belongs to another holder.
    """
    world = await populated(areas)
    ignored = await world.issue(world.ann.did, "carl")
    await world.give(world.ann, ignored)
    await world.did.wallets.acknowledge(world.ann.caller, world.ann.wallet_id, ignored, accept=False)
    await world.give(world.ann, await world.issue(world.ann.did, ""))
    await world.person("bob@corp.example", signer(3), "bob")
    await areas.domains.update(areas.domain, Update(settings={"disconnect_on_revoke": True}))
    robert, wally, _ = [await areas.add_user(areas.domain, name, b"a password") for name in ("robert", "wally", "eve")]
    for user, wallets, assigned in [(robert, [], [world.ann.credential]), (wally, [world.ann.wallet_id], [])]:
        wanted = WalletAssignment(areas.domain, [user], wallets, assigned, "badge", 0, several=False)
        await areas.store.write(partial(world.did.users.assign, wanted=wanted))
    await areas.did.dids.delete(areas.domain, [(DidKind.USER, world.ann.did)])
    names = await areas.store.read(lambda tx: tx.rows("select user_name from revocations order by user_name"))
    assert names == [("ann",), ("robert",), ("wally",)]


async def test_a_revocation_with_a_wrong_id_finds_nothing(areas: Areas) -> None:
    """The issuer, the holder and the domain in the request must be those of the credential."""
    some = await identity(areas)
    issued = await some.issue()
    revoke = areas.did.credentials.revoke
    for wrong in (
        (areas.domain, issued.id, some.holder.did, some.holder.did),
        (areas.domain, issued.id, some.issuer.did, some.issuer.did),
        (areas.domain + 1, issued.id, "", ""),
        (areas.domain, issued.id + 1, "", ""),
    ):
        with pytest.raises(NotFound):
            await revoke(*wrong)


async def test_an_expired_credential_keeps_its_stored_status(areas: Areas) -> None:
    some = await identity(areas)
    issued, revoked = [await some.issue(expires_at=areas.clock() + 60 * SECOND) for _ in range(2)]
    await areas.did.credentials.revoke(areas.domain, revoked.id)
    areas.clock.pass_by(60)
    listed, _ = await areas.did.credentials.page(ListQuery(areas.domain, 0, 10))
    assert [(each.status, each.is_expired(areas.clock())) for each in listed] == [
        (Status.ACTIVE, True),
        (Status.REVOKED, True),
    ]
    assert listed[0].id == issued.id


async def lists_of(areas: Areas) -> dict[int, list[int]]:
    """Return the used indexes of each list."""
    rows = await areas.store.read(lambda tx: tx.rows("select list_id, list_index from credentials order by id"))
    found: dict[int, list[int]] = {}
    for list_id, index in rows:
        found.setdefault(int(str(list_id)), []).append(int(str(index)))
    return found


async def test_status_indexes_are_random_and_unique(areas: Areas) -> None:
    """Indexes are unique and in random order. When a list is half full, another one is started."""
    some = await identity(areas)
    for _ in range(12):
        await some.issue()
    ((first, indexes),) = (await lists_of(areas)).items()
    assert len(set(indexes)) == 12 and indexes != sorted(indexes)
    assert all(0 <= each < BITS for each in indexes)
    full = "update status_lists set used = :used"
    await areas.store.write(lambda tx: tx.execute(full, used=BITS // 2))
    await some.issue()
    found = await lists_of(areas)
    assert len(found) == 2 and len(found[first]) == 12


async def test_a_list_is_signed_again_only_when_necessary(areas: Areas) -> None:
    """A signed list is reused until a credential is revoked or the issuer's key changes, but for an hour at most."""
    some = await identity(areas, "web")
    issued = await some.issue()
    ((name,),) = await areas.store.read(lambda tx: tx.rows("select uuid from status_lists"))
    published = areas.did.lists.published
    seen = [await published(str(name))]
    assert await published(str(name)) is seen[0]
    await areas.did.credentials.revoke(areas.domain, issued.id)
    seen.append(await published(str(name)))
    areas.clock.pass_by(3600)
    seen.append(await published(str(name)))
    await areas.did.dids.rotate(areas.domain, some.issuer.did)
    seen.append(await published(str(name)))
    assert len({each.token for each in seen}) == 4
    for each in seen:
        await verified(areas, each.token)
        signer = await areas.did.resolver.resolve(some.issuer.did)
        proofs.verify(read_object(each.document), signer, purpose=ASSERTION, now=areas.clock())
    with pytest.raises(NotFound):
        await published("nobody")


async def test_each_tenant_has_a_share_of_the_signed_lists(areas: Areas) -> None:
    """Requests for lists of another tenant's issuer do not evict a signed list from the cache."""
    ours = await identity(areas)
    await ours.issue()
    issuer = await areas.did.dids.create_issuer(areas.tenant, new_did(areas.domain, name="Other"))
    schema = await areas.did.schemas.create(areas.tenant, NewSchema(issuer.did, "Badge", SCHEMA, sign=True))
    other = Identity(areas, issuer, ours.holder, schema)
    tenant = await areas.tenancy.ensure_tenant(2, 1)
    for _ in range(3):
        await other.issue()
        await areas.store.write(lambda tx: tx.execute("update status_lists set used = :used", used=BITS // 2))
    await areas.store.write(
        lambda tx: tx.execute("update dids set tenant_id = :t where did = :did", t=tenant, did=other.issuer.did)
    )
    [(name,), *others] = await areas.store.read(lambda tx: tx.rows("select uuid from status_lists order by id"))
    lists = StatusLists(areas.store, areas.vault, lambda: "https://id.example.test", areas.clock, max_cached=2)
    first = await lists.published(str(name))
    assert len(others) == 3
    for (each,) in others:
        await lists.published(str(each))
    assert await lists.published(str(name)) is first


async def test_a_list_of_another_issuer_is_refused(areas: Areas) -> None:
    """A list is accepted only for its own issuer and its own URL."""
    some = await identity(areas)
    issued = await some.issue()
    document = await areas.store.read(lambda tx: repo.document(tx, issued.id))
    entry = entry_of(document)
    other = ISSUERS["P-256"]
    forged = list_document(entry.url, other.method_id.partition("#")[0], bytes(16384), areas.clock())
    listed = await verified(areas, vc.sign(forged, other))
    with pytest.raises(CredentialError) as refused:
        check(entry, listed, some.issuer.did)
    assert refused.value.reason == "status"
    elsewhere = Entry("https://id.example.test/credentials/status/x", entry.index)
    own = await areas.did.lists.published(entry.url.rpartition("/")[2])
    with pytest.raises(CredentialError):
        check(elsewhere, await verified(areas, own.token), some.issuer.did)
    with pytest.raises(CredentialError):
        check(
            entry, await verified(areas, await areas.store.read(lambda tx: repo.token(tx, issued.id))), some.issuer.did
        )


async def test_credentials_are_listed_in_pages(areas: Areas) -> None:
    """A page is ordered by ID and has the total. Another domain has no credentials."""
    some: Identity = await identity(areas)
    issued = [await some.issue() for _ in range(5)]
    found, total = await areas.did.credentials.page(ListQuery(areas.domain, 2, 2))
    assert ([each.id for each in found], total) == ([each.id for each in issued[2:4]], 5)
    assert await areas.did.credentials.page(ListQuery(areas.domain + 1, 0, 10)) == ([], 0)
    assert {each.id: each for each in found}[issued[2].id] == issued[2]


async def test_an_issuer_counts_its_credentials(areas: Areas) -> None:
    """The record of the issuer has the number of its credentials in credentialIssued."""
    some = await identity(areas)
    await some.issue()
    await some.issue()
    (issuer, holder), _ = await areas.did.dids.page(ListQuery(areas.domain, 0, 10))
    assert (issuer.credentials_issued, holder.credentials_issued) == (2, 0)
