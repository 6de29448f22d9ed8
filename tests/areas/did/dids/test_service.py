"""DIDs: how they are created, found, rotated and deleted, and how their keys are used."""

import json
import threading
from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from sallyport.areas.did.crypto.documents import ASSERTION, AUTHENTICATION, MAX_METHODS, parse, resolve
from sallyport.areas.did.crypto.encoding import ED25519, to_base64url
from sallyport.areas.did.crypto.keys import PrivateKey
from sallyport.areas.did.dids import repo
from sallyport.areas.did.dids.did import DidKind, Search
from sallyport.areas.did.dids.operations import day_first
from sallyport.areas.did.wallets.key import open_with
from sallyport.areas.did.wallets.wallet import NewWallet
from sallyport.base.errors import Conflict, CredentialError, Invalid, NotFound, SecretError
from sallyport.base.secret import Secret
from sallyport.store import counters
from sallyport.store.model import ListQuery, Tx
from sallyport.store.search import MAX_COUNTED
from sallyport.store.sqlite import SEARCHERS
from sallyport.store.vault import Vault
from tests.areas import Areas
from tests.areas.did.crypto.signers import HOLDER, ISSUERS
from tests.areas.did.world import identity, new_did
from tests.areas.users import trail


@pytest.mark.parametrize("method", ["key", "jwk", "web"])
@pytest.mark.parametrize("curve", ISSUERS)
async def test_an_issuer_signs_with_the_key_of_its_document(areas: Areas, method: str, curve: str) -> None:
    """For each method and curve, the sealed key is the key for assertions in the resolved document."""
    issuer = await areas.did.dids.create_issuer(areas.tenant, new_did(areas.domain, method, curve))
    assert issuer.did.startswith(f"did:{method}:")
    document = await areas.did.resolver.resolve(issuer.did)

    def signed(tx: Tx) -> tuple[str, bytes]:
        key = repo.active_key(tx, issuer.id)
        assert key is not None
        signer = repo.signer(areas.vault, key)
        return signer.method_id, signer.key.sign(b"x")

    method_id, signature = await areas.store.read(signed)
    key = document.key(method_id, ASSERTION)
    assert key.curve.name == curve
    assert key.verify(signature, b"x")


async def test_a_stored_key_is_sealed(areas: Areas) -> None:
    """The stored key can only be opened with the master key. The audit trail contains no part of it."""
    issuer = await areas.did.dids.create_issuer(areas.tenant, new_did(areas.domain))
    key = await areas.store.read(lambda tx: repo.active_key(tx, issuer.id))
    assert key is not None and key.sealed is not None
    clear = repo.signer(areas.vault, key).key.octets.reveal()
    assert clear not in key.sealed
    with pytest.raises(SecretError):
        repo.signer(Vault(Secret(b"k" * 32)), key)
    (entry,) = [each for each in await trail(areas) if each.action == "did.issuer.create"]
    assert issuer.did in entry.target
    assert clear.hex() not in str(entry) and to_base64url(clear) not in str(entry)


async def test_a_holder_with_a_key_in_the_wallet(areas: Areas) -> None:
    """The DID of such a holder is made from the public key that is given, and no private key is stored. A second holder
    with the same key in a domain is a conflict.
    """
    some = await identity(areas)
    assert some.holder.did == HOLDER.method_id.partition("#")[0]
    assert some.holder.issuer_name == "The issuer"
    key = await areas.store.read(lambda tx: repo.active_key(tx, some.holder.id))
    assert key is not None and key.sealed is None
    jwk = HOLDER.key.public.jwk
    with pytest.raises(Conflict):
        await areas.did.dids.create_holder(areas.tenant, new_did(areas.domain), 0, "", jwk)
    with pytest.raises(Invalid) as refused:
        await areas.did.dids.create_holder(areas.tenant, new_did(areas.domain), 0, "", {**jwk, "d": "AAAA"})
    assert refused.value.fields[0].field == "publicKeyJwk" and "AAAA" not in str(refused.value.fields)


async def test_a_holder_with_a_stored_key(areas: Areas) -> None:
    """The key is sealed to the wallet and then with the master key. A holder without a wallet is refused."""
    dids, new = areas.did.dids, NewWallet(areas.domain, "ann", "ann@corp.example", "")
    wallet = await areas.did.wallets.register(areas.tenant, new)
    holder = await dids.create_holder(areas.tenant, new_did(areas.domain), wallet.wallet_id, "")
    assert holder.wallet_id == wallet.wallet_id
    key = await areas.store.read(lambda tx: repo.active_key(tx, holder.id))
    assert key is not None and key.sealed is not None
    for_wallet = areas.vault.open(key.sealed, repo.identity(key.id))
    clear = open_with(wallet.wallet_key, for_wallet, repo.identity(key.id))
    assert PrivateKey(ED25519, Secret(clear)).public.multikey == key.multikey
    with pytest.raises(Invalid):
        await dids.create_holder(areas.tenant, new_did(areas.domain), 0, "")
    for jwk in (None, HOLDER.key.public.jwk):
        with pytest.raises(NotFound):
            await dids.create_holder(areas.tenant, new_did(areas.domain), wallet.wallet_id + 1, "", jwk)


async def test_an_issuer_is_found_by_id_or_did(areas: Areas) -> None:
    """An issuer is found only in its own domain. The id 0 and an empty DID mean that no issuer is given."""
    some = await identity(areas)
    branch = await areas.domains.add(areas.tenant, "branch")
    for issuer, number in ((str(some.issuer.id), 8), (some.issuer.did, 9)):
        jwk = ISSUERS["P-256"].key.public.jwk if number == 8 else ISSUERS["secp256k1"].key.public.jwk
        made = await areas.did.dids.create_holder(areas.tenant, new_did(areas.domain), 0, issuer, jwk)
        assert made.issuer_id == some.issuer.id
        with pytest.raises(NotFound):
            await areas.did.dids.create_holder(areas.tenant, new_did(branch), 0, issuer, jwk)
    with pytest.raises(NotFound):
        await areas.did.dids.create_holder(
            areas.tenant, new_did(areas.domain), 0, str(some.holder.id), ISSUERS["Ed25519"].key.public.jwk
        )


async def test_dids_are_listed_and_searched(areas: Areas) -> None:
    """A list has the DIDs of a domain, or an issuer with its holders. A search of the tenant finds a DID by name, by
    kind or by the whole DID.
    """
    some = await identity(areas)
    other = await areas.did.dids.create_issuer(areas.tenant, new_did(areas.domain, name="Another issuer"))
    dids, everything = areas.did.dids, ListQuery(areas.domain, 0, 10)
    whole, total = await dids.page(everything)
    assert ([each.id for each in whole], total) == ([some.issuer.id, some.holder.id, other.id], 3)
    of_issuer, total = await dids.page(everything, issuer_id=some.issuer.id)
    assert ([each.id for each in of_issuer], total) == ([some.issuer.id, some.holder.id], 2)
    second = await areas.store.read(lambda tx: repo.by_id(tx, some.holder.id))
    assert await dids.page(ListQuery(areas.domain, 1, 1)) == ([second], 3)

    async def found(text: str, kind: DidKind | None = None) -> list[int]:
        listed, total = await dids.search(Search(areas.tenant, text, kind))
        assert total == len(listed)
        return [each.id for each in listed]

    assert await found("") == [some.issuer.id, some.holder.id, other.id]
    assert await found("ISSUER") == [some.issuer.id, other.id]
    assert await found("lic", DidKind.USER) == [some.holder.id]
    assert await found("lic", DidKind.ISSUER) == []
    assert await found("", DidKind.ISSUER) == [some.issuer.id, other.id]
    assert await found(some.holder.did) == [some.holder.id]
    assert (await dids.search(Search(areas.tenant + 1))) == ([], 0)


@pytest.mark.parametrize("more", [0, MAX_COUNTED], ids=["few", "many"])
async def test_dids_of_a_domain_are_searched(areas: Areas, more: int) -> None:
    """A search in a domain finds no DID of another domain, also if it uses the index of the tenant's DIDs because the
    domain has many. A DID is found by the id of its record, only within the domain, the kind and the name.
    """
    some = await identity(areas)
    branch = await areas.domains.add(areas.tenant, "branch")
    other = await areas.did.dids.create_issuer(areas.tenant, new_did(branch, name="The other issuer"))
    last = await areas.did.dids.create_issuer(areas.tenant, new_did(areas.domain, name="Last ISSUER"))
    for name in ("dids", "dids/Issuer", "dids/User"):
        await areas.store.write(lambda tx, name=name: counters.add(tx, areas.domain, name, more))  # type: ignore[misc]

    async def found(text: str = "", kind: DidKind | None = None, **within: int) -> list[int]:
        asked = Search(areas.tenant, text, kind, **{"domain_id": areas.domain, **within})
        return [each.id for each in (await areas.did.dids.search(asked))[0]]

    assert await found() == [some.issuer.id, some.holder.id, last.id]
    assert await found(offset=1, limit=1) == [some.holder.id]
    assert await found("issuer") == await found("", DidKind.ISSUER) == [some.issuer.id, last.id]
    assert await found("issuer", DidKind.USER) == await found("nothing") == []
    assert await found("issuer", DidKind.ISSUER, offset=1) == [last.id]
    assert await found("lic", DidKind.USER) == await found("", DidKind.USER) == [some.holder.id]
    assert await found(some.issuer.did) == [some.issuer.id]
    assert await found(other.did) == await found(did_id=other.id) == []
    assert await found(other.did, domain_id=branch) == await found(did_id=other.id, domain_id=0) == [other.id]
    assert await found("ISSUER", did_id=last.id) == await found("", DidKind.ISSUER, did_id=last.id) == [last.id]
    assert await found("Alice", did_id=last.id) == await found("", DidKind.USER, did_id=last.id) == []
    assert (await areas.did.dids.search(Search(areas.tenant + 1, did_id=last.id))) == ([], 0)


async def test_deletion_is_all_or_nothing(areas: Areas) -> None:
    """If one of several DIDs is unknown, none is deleted. The DID of a deleted holder can be added again. A deleted
    issuer can no longer sign, but its document stays public.
    """
    some = await identity(areas, "web")
    issued = await some.issue()
    dids = areas.did.dids
    with pytest.raises(NotFound):
        await dids.delete(areas.domain, [(DidKind.ISSUER, some.issuer.did), (DidKind.USER, some.issuer.did)])
    assert (await dids.page(ListQuery(areas.domain, 0, 10)))[1] == 2
    both = [(DidKind.ISSUER, some.issuer.did), (DidKind.USER, some.holder.did)]
    assert await dids.delete(areas.domain, both) == 2
    assert await dids.page(ListQuery(areas.domain, 0, 10)) == ([], 0)
    assert await dids.search(Search(areas.tenant)) == ([], 0)
    with pytest.raises(NotFound):
        await dids.delete(areas.domain, both)
    await dids.create_holder(areas.tenant, new_did(areas.domain), 0, "", HOLDER.key.public.jwk)
    with pytest.raises(NotFound):
        await some.issue()
    await areas.did.credentials.revoke(areas.domain, issued.id)
    assert (await areas.did.resolver.resolve(some.issuer.did)).methods


async def test_rotation_keeps_the_old_key_for_verification(areas: Areas) -> None:
    """After a rotation the document has both keys. The old key is only for assertions, and the new key signs."""
    some = await identity(areas, "web", "P-256")
    (old,) = (await areas.did.resolver.resolve(some.issuer.did)).methods
    method_id = await areas.did.dids.rotate(areas.domain, some.issuer.did)
    document = await areas.did.resolver.resolve(some.issuer.did)
    assert {each.id for each in document.methods} == {old.id, method_id}
    assert document.key(old.id, ASSERTION) == old.key
    with pytest.raises(CredentialError):
        document.key(old.id, AUTHENTICATION)
    key = await areas.store.read(lambda tx: repo.active_key(tx, some.issuer.id))
    assert key is not None and key.method_id == method_id
    assert document.key(method_id, AUTHENTICATION).curve.name == "P-256"


async def test_a_did_of_a_single_key_cannot_be_rotated(areas: Areas) -> None:
    """A did:key or did:jwk cannot be rotated. A DID of another domain cannot be rotated either."""
    some = await identity(areas)
    with pytest.raises(Invalid):
        await areas.did.dids.rotate(areas.domain, some.issuer.did)
    with pytest.raises(NotFound):
        await areas.did.dids.rotate(areas.domain + 1, some.issuer.did)


async def test_a_document_has_at_most_64_keys(areas: Areas) -> None:
    """All keys stay in the public document, so a rotation that would exceed 64 keys is refused."""
    some = await identity(areas, "web")
    for _ in range(MAX_METHODS - 1):
        await areas.did.dids.rotate(areas.domain, some.issuer.did)
    with pytest.raises(Conflict, match="64 keys"):
        await areas.did.dids.rotate(areas.domain, some.issuer.did)
    assert len((await areas.did.resolver.resolve(some.issuer.did)).methods) == MAX_METHODS


async def test_public_documents_do_not_delay_logins(areas: Areas) -> None:
    """Published documents are read by the workers for searches. If these are busy, the request waits and logins
    continue.
    """
    some = await identity(areas, "web")
    await some.issue()
    status_list = str((await areas.store.read(lambda tx: tx.value(str, "select uuid from status_lists"))) or "")
    schema, go_on, done = json.loads(some.schema.content)["id"], threading.Event(), list[object]()

    async def ask(work: Callable[[str], Awaitable[object]], name: str) -> None:
        done.append(await work(name))

    issuing = areas.did
    async with trio.open_nursery() as nursery:
        for _ in range(SEARCHERS):
            nursery.start_soon(areas.store.search, lambda _tx: go_on.wait(30))
        await trio.testing.wait_all_tasks_blocked(0.01)
        nursery.start_soon(ask, issuing.dids.published, some.issuer.did.rpartition(":")[2])
        nursery.start_soon(ask, issuing.schemas.published, schema)
        nursery.start_soon(ask, issuing.lists.published, status_list)
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert await areas.store.read(lambda tx: tx.value(int, "select 1")) == 1
        assert done == []
        go_on.set()
    assert len(done) == 3


async def test_a_did_web_is_found_by_its_last_part(areas: Areas) -> None:
    """The published document of a did:web is the same as the resolved one."""
    some = await identity(areas, "web")
    assert some.issuer.did.startswith("did:web:id.example.test:did:")
    import json

    content = await areas.did.dids.published(some.issuer.did.rpartition(":")[2])
    assert parse(some.issuer.did, json.dumps(content).encode()) == await areas.did.resolver.resolve(some.issuer.did)
    with pytest.raises(NotFound):
        await areas.did.dids.published("0" * 16)


@pytest.mark.parametrize(
    "did", ["did:web:169.254.169.254", "did:web:localhost%3A8080:x", "did:web:id.example.test:did:0", "did:ion:x"]
)
async def test_an_unknown_did_web_is_not_resolved(areas: Areas, did: str) -> None:
    """A did:web of a host that is not configured is not resolved. An unknown did:web of this service is not resolved
    either.
    """
    with pytest.raises(CredentialError) as refused:
        await areas.did.resolver.resolve(did)
    assert refused.value.reason == "unresolved"


async def test_a_did_key_is_resolved_without_a_host(areas: Areas) -> None:
    key_did = HOLDER.method_id.partition("#")[0]
    assert await areas.did.resolver.resolve(key_did) == resolve(key_did)


def test_a_time_is_shown_as_day_month_year() -> None:
    assert day_first(1_767_225_600_000_000 + 40 * 86_400_000_000) == "10-02-2026 00:00:00"
