"""Wallets: how they are registered, get credentials, deliver them, and are locked."""

import pytest

from sallyport.areas.did.wallets.key import new_wallet_key
from sallyport.areas.did.wallets.service import MAX_PAGE_LENGTH, paired
from sallyport.areas.did.wallets.wallet import NewWallet
from sallyport.base.errors import Conflict, Forbidden, Invalid, NotFound, TooMany, Unauthenticated
from sallyport.base.wire import JSON
from sallyport.store.model import ListQuery
from sallyport.web.bodies import Page
from sallyport.web.scope import Role
from tests.areas.did.crypto.signers import signer
from tests.areas.did.holders import World


async def delivered(world: World, wallet_key: str = "") -> list[tuple[int, str]]:
    """Return the credentials that are delivered to ann's wallet, with their status."""
    ann = world.ann
    _, found, _ = await world.did.wallets.deliver(ann.caller, ann.email, wallet_key or ann.wallet_key)
    return [(each.credential.id, each.credential.status) for each in found]


async def test_a_wallet_is_registered_once_for_an_address(world: World) -> None:
    """The new token has the role wallet. A second wallet for the same address is refused, in any letter case. No part
    of the key is stored.
    """
    assert world.ann.caller.role is Role.WALLET
    with pytest.raises(Conflict):
        await world.did.wallets.register(world.areas.tenant, NewWallet(world.areas.domain, "x", "ANN@corp.example", ""))
    rows = await world.areas.store.read(lambda tx: tx.rows("select * from wallets"))
    trail = await world.areas.store.read(lambda tx: tx.rows("select * from audit_trail"))
    assert world.ann.wallet_key not in repr(rows) + repr(trail)


async def test_the_token_of_a_removed_domain_is_refused(world: World) -> None:
    """The token of a wallet in a removed domain is refused even before the row of the wallet is deleted. The token of a
    wallet in another domain stays valid.
    """
    areas = world.areas
    branch = await areas.domains.add(areas.tenant, "branch")
    wallets = world.did.wallets
    ours = await wallets.register(areas.tenant, NewWallet(areas.domain, "eve", "eve@corp.example", ""))
    theirs = await wallets.register(areas.tenant, NewWallet(branch, "eve", "eve@corp.example", ""))
    for token in (ours.token, theirs.token):
        assert (await areas.app.tenancy.authentication.authenticate(token)).role is Role.WALLET
    await areas.removal.remove(branch)
    with pytest.raises(Unauthenticated):
        await areas.app.tenancy.authentication.authenticate(theirs.token)
    assert (await areas.app.tenancy.authentication.authenticate(ours.token)).role is Role.WALLET


async def test_wallets_are_listed_and_searched(world: World) -> None:
    """Wallets are ordered by ID and have the number of their credentials. A search finds a part of a name or
    address.
    """
    bob = await world.person("bob@corp.example", signer(3))
    wallets = world.did.wallets
    page = ListQuery(world.areas.domain, 0, 10)
    assert [(each.id, each.credentials) for each in (await wallets.page(page))[0]] == [
        (world.ann.wallet_id, 1),
        (bob.wallet_id, 0),
    ]
    for search, found in (("bob", [bob.wallet_id]), ("ANN@CORP", [world.ann.wallet_id]), ("nobody", [])):
        listed, total = await wallets.page(page, search)
        assert ([each.id for each in listed], total) == (found, len(found))


async def test_assigning_again_changes_nothing(world: World) -> None:
    """An accepted credential stays accepted if it is assigned again. If one credential belongs to another wallet or
    holder, none is assigned.
    """
    ann, wallets = world.ann, world.did.wallets
    bob = await world.person("bob@corp.example", signer(3))
    assert await wallets.assign(world.areas.tenant, [(ann.wallet_id, ann.credential)]) == 0
    assert await delivered(world) == [(ann.credential, "Accepted")]
    new = await world.issue(ann.did, "ann")
    for pair in ((bob.wallet_id, ann.credential), (bob.wallet_id, await world.issue(ann.did, "ann"))):
        with pytest.raises(Conflict):
            await wallets.assign(world.areas.tenant, [(ann.wallet_id, new), pair])
    for wallet_id, credential_id in ((0, new), (ann.wallet_id, 10**9)):
        with pytest.raises(NotFound):
            await wallets.assign(world.areas.tenant, [(wallet_id, credential_id)])
    assert await delivered(world) == [(ann.credential, "Accepted")]
    assert await wallets.assign(world.areas.tenant, [(ann.wallet_id, new)]) == 1
    assert await delivered(world) == [(ann.credential, "Accepted"), (new, "Assigned")]


async def test_a_revoked_or_expired_credential_is_not_assigned(world: World) -> None:
    revoked, short = (
        await world.person("bob@corp.example", signer(3), "bob"),
        await world.issue(world.ann.did, "", lasts_s=60),
    )
    await world.revoke(revoked)
    world.areas.clock.pass_by(60)
    for credential_id in (revoked.credential, short):
        with pytest.raises(Conflict):
            await world.did.wallets.assign(world.areas.tenant, [(world.ann.wallet_id, credential_id)])


async def test_an_ignored_credential_is_not_delivered(world: World) -> None:
    """An ignored credential is not delivered, but it is delivered again after it is accepted. A revoked credential is
    not delivered.
    """
    ann, wallets = world.ann, world.did.wallets
    for _ in range(2):
        await wallets.acknowledge(ann.caller, ann.wallet_id, ann.credential, accept=False)
        assert await delivered(world) == []
    await wallets.acknowledge(ann.caller, ann.wallet_id, ann.credential, accept=True)
    assert await delivered(world) == [(ann.credential, "Accepted")]
    await world.revoke(ann)
    assert await delivered(world) == []
    with pytest.raises(Conflict):
        await wallets.acknowledge(ann.caller, ann.wallet_id, ann.credential, accept=True)


async def test_a_wallet_acts_for_itself_only(world: World) -> None:
    """The token of another wallet is refused, even with the right key. A credential of another wallet is not found."""
    ann, wallets = world.ann, world.did.wallets
    bob = await world.person("bob@corp.example", signer(3), "bob")
    with pytest.raises(Forbidden):
        await wallets.deliver(bob.caller, ann.email, ann.wallet_key)
    with pytest.raises(Forbidden):
        await wallets.acknowledge(bob.caller, ann.wallet_id, ann.credential, accept=False)
    with pytest.raises(NotFound):
        await wallets.acknowledge(ann.caller, ann.wallet_id, bob.credential, accept=True)
    wallet, found, _ = await wallets.deliver(world.admin, ann.email.upper(), ann.wallet_key)
    assert (wallet.id, len(found)) == (ann.wallet_id, 1)


async def lock(world: World, email: str) -> None:
    """Send ten wrong walletKeys for an address with the admin's token."""
    for _ in range(10):
        with pytest.raises(Unauthenticated, match="invalid walletKey"):
            await world.did.wallets.deliver(world.admin, email, new_wallet_key())


@pytest.mark.parametrize("email", ["ann@corp.example", "nobody@corp.example"], ids=["a wallet's", "unknown"])
async def test_ten_wrong_keys_lock_an_address(world: World, email: str) -> None:
    """After ten wrong keys for an address, the next key has to wait. This is the same whether or not the address has a
    wallet, in any letter case, and with spaces around the address.
    """
    await lock(world, email)
    for spelled in (email, f" {email.upper()}"):
        with pytest.raises(TooMany):
            await world.did.wallets.deliver(world.admin, spelled, new_wallet_key())


async def test_a_locked_wallet_refuses_the_right_key(world: World) -> None:
    """For a minute the right walletKey is refused too, because its acceptance would reveal it."""
    ann, wallets = world.ann, world.did.wallets
    await lock(world, ann.email)
    with pytest.raises(TooMany):
        await wallets.deliver(world.admin, ann.email, ann.wallet_key)
    world.areas.clock.pass_by(60)
    assert (await wallets.deliver(world.admin, ann.email, ann.wallet_key))[0].id == ann.wallet_id


async def test_wrong_keys_lock_one_wallet_for_one_token(world: World) -> None:
    """The token can still act for another wallet, and another token can act for the locked wallet."""
    bob = await world.person("bob@corp.example", signer(3))
    await lock(world, world.ann.email)
    found, *_ = await world.did.wallets.deliver(world.admin, bob.email, bob.wallet_key)
    assert found.id == bob.wallet_id
    assert await delivered(world) == [(world.ann.credential, "Accepted")]


async def test_another_tenant_does_not_find_a_wallet(world: World) -> None:
    other = await world.areas.tenancy.ensure_tenant(2, 1)
    with pytest.raises(NotFound):
        await world.did.wallets.assign(other, [(world.ann.wallet_id, world.ann.credential)])


@pytest.mark.parametrize(
    ("wallets", "users", "credentials", "paired_up"),
    [
        ([1], [1], [5], [(1, 5)]),
        ([1], [1], [5, 6], [(1, 5), (1, 6)]),
        ([1, 2], [1, 2], [5, 6], [(1, 5), (2, 6)]),
        ([1, 2], [2, 1], [5, 6], NotFound),
        ([1, 2], [1], [5], Invalid),
        ([1, 2], [1, 2], [5], Invalid),
    ],
)
def test_wallets_users_and_credentials_are_paired(
    wallets: list[int],
    users: list[int],
    credentials: list[int],
    paired_up: list[tuple[int, int]] | type[Exception],
) -> None:
    """Arrays are paired element by element, or one wallet gets all credentials. Other lengths are refused. A wallet of
    another user is not found.
    """
    if isinstance(paired_up, list):
        assert paired(wallets, users, credentials) == paired_up
    else:
        with pytest.raises(paired_up):
            paired(wallets, users, credentials)


async def test_a_page_of_credentials_is_bounded(world: World) -> None:
    """A page ends before its tokens exceed 2 MiB. The total counts all credentials, and further pages have the rest."""
    ann, wallets = world.ann, world.did.wallets
    claims: dict[str, JSON] = {"epmUsername": "ann", **{f"claim{number}": "x" * 255 for number in range(115)}}
    large = [(await world.identity.issue(holder_did=ann.did, claims=claims)).id for _ in range(60)]
    await wallets.assign(world.areas.tenant, [(ann.wallet_id, each) for each in large])
    _, first, total = await wallets.deliver(ann.caller, ann.email, ann.wallet_key)
    assert total == 61
    assert 1 < len(first) < 61
    assert sum(len(each.jwt) for each in first) <= MAX_PAGE_LENGTH
    _, page, _ = await wallets.deliver(ann.caller, ann.email, ann.wallet_key, Page(40, 40))
    assert [each.credential.id for each in page] == large[39:]
