"""Holders whose key the service stores. The key is sealed with the walletKey, and the service signs only if it gets the
walletKey.
"""

import pytest

from sallyport.areas.did.dids.did import NewDid
from sallyport.areas.did.presentations.service import holders_signer
from sallyport.areas.did.presentations.verifier import AccessRequest
from sallyport.areas.did.wallets.key import new_wallet_key
from sallyport.areas.users.instances.instance import Instance
from sallyport.base.errors import Conflict, CredentialError, NotFound, Unauthenticated
from tests.areas.did.crypto.signers import signer
from tests.areas.did.holders import World


async def kept_holder(world: World) -> str:
    """Return the DID of a holder of ann's wallet whose key the service stores."""
    new = NewDid(world.areas.domain, "key", "ann", "", "P-256")
    return (await world.dids.create_holder(world.areas.tenant, new, world.ann.wallet_id, "")).did


async def request_to(world: World, holder: str) -> int:
    """Add a request to that holder."""
    await world.areas.instances.add(world.areas.domain, Instance("server"))
    wanted = AccessRequest(world.issuer, holder, "ann", "server", of_group=False)
    return (await world.did.verifier.issue(world.areas.tenant, wanted))[0].id


async def test_the_service_signs_with_the_wallet_key(world: World) -> None:
    """createPresentation returns a presentation of the right credential, and submitPresentation accepts it."""
    ann, presentations, holder = world.ann, world.did.presentations, await kept_holder(world)
    request_id = await request_to(world, holder)
    with pytest.raises(NotFound):  # ann's other credential belongs to another holder
        await presentations.create(ann.caller, ann.wallet_id, ann.wallet_key, holder, request_id)
    await world.did.wallets.assign(world.areas.tenant, [(ann.wallet_id, await world.issue(holder, "bob"))])
    with pytest.raises(NotFound):  # this credential has another user name
        await presentations.create(ann.caller, ann.wallet_id, ann.wallet_key, holder, request_id)
    await world.did.wallets.assign(world.areas.tenant, [(ann.wallet_id, await world.issue(holder, "ann"))])
    made = await presentations.create(ann.caller, ann.wallet_id, ann.wallet_key, holder, request_id)
    await presentations.submit(ann.caller, ann.wallet_id, holder, request_id, made)


async def test_the_service_does_not_sign_without_the_wallet_key(world: World) -> None:
    """The service refuses to sign without the walletKey or with the walletKey of another wallet. It also refuses for a
    holder that keeps its own key.
    """
    ann, presentations, holder = world.ann, world.did.presentations, await kept_holder(world)
    request_id = await request_to(world, holder)
    with pytest.raises(Unauthenticated):
        await presentations.create(world.admin, ann.wallet_id, new_wallet_key(), holder, request_id)
    own = await request_to_own(world)
    with pytest.raises(NotFound):
        await presentations.create(ann.caller, ann.wallet_id, ann.wallet_key, ann.did, own)
    bob = await world.person("bob@corp.example", signer(3))
    with pytest.raises(Conflict):
        await world.areas.store.read(
            lambda tx: holders_signer(tx, world.areas.vault, world.areas.domain, holder, bob.wallet_key)
        )


async def request_to_own(world: World) -> int:
    """Add a request to the holder whose key ann's wallet keeps."""
    wanted = AccessRequest(world.issuer, world.ann.did, "ann", "server", of_group=False)
    return (await world.did.verifier.issue(world.areas.tenant, wanted))[0].id


async def test_the_service_does_not_sign_for_a_deleted_holder(world: World) -> None:
    """The key is deleted with the holder, so the service can no longer sign for it."""
    from sallyport.areas.did.dids.did import DidKind

    ann, presentations, holder = world.ann, world.did.presentations, await kept_holder(world)
    await world.did.wallets.assign(world.areas.tenant, [(ann.wallet_id, await world.issue(holder, "ann"))])
    request_id = await request_to(world, holder)
    await world.dids.delete(world.areas.domain, [(DidKind.USER, holder)])
    with pytest.raises((NotFound, CredentialError)):
        await presentations.create(ann.caller, ann.wallet_id, ann.wallet_key, holder, request_id)
