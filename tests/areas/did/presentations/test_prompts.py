"""Presentation requests as the second factor of logins."""

import math

import pytest
import trio
import trio.testing

from sallyport.areas.did.crypto import vc
from sallyport.areas.did.dids.did import DidKind
from sallyport.areas.did.presentations import definition
from sallyport.areas.did.presentations.request import Request
from sallyport.areas.domains.repo import Update
from sallyport.areas.users.accounts.account import UserChange, WalletAssignment
from sallyport.base.errors import CredentialError
from tests.areas.did.crypto.signers import signer
from tests.areas.did.holders import World


async def opened(world: World, user: str = "ann", challenge: str = "c1", schema: int = 0) -> int | None:
    """Open the presentation request of a login, and return its ID."""
    return await world.did.prompts.open(
        world.areas.domain,
        user,
        world.issuer,
        schema,
        challenge_id=challenge,
        purpose=f"Login of {user}",
        expires_at=world.areas.clock() + 60_000_000,
    )


async def polled(world: World) -> Request:
    """Return the request that ann's wallet finds."""
    ann = world.ann
    return (await world.did.presentations.poll(ann.caller, ann.wallet_id, ann.wallet_key, ann.did))[0]


async def approve(world: World) -> None:
    """Present ann's credential."""
    ann, request = world.ann, await polled(world)
    presentation = vc.present(
        [ann.jwt],
        ann.signer,
        audience=request.issuer_did,
        nonce=request.nonce,
        id="urn:uuid:p",
        now=world.areas.clock(),
    )
    await world.did.presentations.submit(ann.caller, ann.wallet_id, ann.did, request.id, presentation)


async def test_a_presentation_wakes_the_waiting_login(world: World) -> None:
    """A presentation wakes the waiting login at once. A later call gets the same answer."""
    request_id = await opened(world)
    assert request_id is not None
    answers = list[str | None]()

    async def wait() -> None:
        answers.append(await world.did.prompts.answer(request_id, within_s=math.inf))

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await approve(world)
    assert answers == ["accepted"]
    assert await world.did.prompts.answer(request_id, within_s=0) == "accepted"


async def test_a_wait_may_end_before_the_answer(world: World, autojump_clock: trio.testing.MockClock) -> None:
    """If the wait ends before the answer, the request is still open. After it has expired, it is refused."""
    request_id = await opened(world)
    assert request_id is not None
    assert await world.did.prompts.answer(request_id, within_s=5) is None
    world.areas.clock.pass_by(60)
    assert await world.did.prompts.answer(request_id, within_s=5) == "expired"


@pytest.mark.parametrize(
    ("end", "answer"), [("decline", "declined"), ("revoke", "withdrawn"), ("withdraw", "withdrawn")]
)
async def test_a_request_that_ends_without_approval(world: World, end: str, answer: str) -> None:
    """The login is refused if its request is declined, if the credential of the request is revoked, or if the login is
    over.
    """
    request_id, ann = await opened(world), world.ann
    assert request_id is not None
    if end == "decline":
        await world.did.presentations.decline(ann.caller, ann.wallet_id, ann.did, request_id, None)
    elif end == "revoke":
        await world.revoke(ann)
    else:
        await world.did.prompts.withdraw(request_id)
        await world.did.prompts.withdraw(request_id)
    assert await world.did.prompts.answer(request_id, within_s=math.inf) == answer


async def test_each_challenge_has_one_request(world: World) -> None:
    """When a login is repeated, no second request is opened. Another login has a request of its own, and an approval
    answers only one of them.
    """
    first = await opened(world)
    assert await opened(world) == first
    second = await opened(world, challenge="c2")
    assert second not in {None, first}
    await approve(world)
    assert first is not None and second is not None
    assert await world.did.prompts.answer(first, within_s=0) == "accepted"
    assert await world.did.prompts.answer(second, within_s=0) is None


async def test_a_user_with_a_usable_credential_is_enrolled(world: World) -> None:
    """A user is enrolled by a credential whose user name matches in any letter case. The credential does not count if
    it is ignored, expired, in no wallet, or of another issuer or schema.
    """
    prompts, areas = world.did.prompts, world.areas

    async def enrolled(user: str, issuer: str = "", schema: int = 0, domain: int = 0) -> bool:
        return await prompts.enrolled(domain or areas.domain, user, issuer or world.issuer, schema)

    assert await enrolled("ann") and await enrolled("ANN")
    assert not await enrolled("bob") and not await enrolled("")
    assert not await enrolled("ann", issuer=await world.new_issuer("other"))
    assert await enrolled("ann", schema=1) and not await enrolled("ann", schema=99)
    assert not await enrolled("ann", domain=await areas.domains.add(areas.tenant, "branch"))
    await world.issue(world.ann.did, "carl")
    assert not await enrolled("carl")
    ann = world.ann
    await world.did.wallets.acknowledge(ann.caller, ann.wallet_id, ann.credential, accept=False)
    assert not await enrolled("ann") and await opened(world, challenge="c9") is None
    await world.did.wallets.acknowledge(ann.caller, ann.wallet_id, ann.credential, accept=True)
    areas.clock.pass_by(366 * 86_400)
    assert not await enrolled("ann")


async def test_names_beyond_ascii_match_in_any_case(world: World) -> None:
    await world.person("aerger@corp.example", signer(5), "Ärger")
    assert await world.did.prompts.enrolled(world.areas.domain, "ÄRGER", world.issuer, 0)


async def test_an_assigned_credential_or_wallet_enrols_a_user(world: World) -> None:
    """A user is enrolled by an assigned credential. An assigned wallet enrols its user if it has a credential without a
    user name. When the user is deleted, its assignments are deleted.
    """
    areas, users = world.areas, world.did.users
    bob = await world.person("bob@corp.example", signer(3))
    await world.give(bob, await world.issue(bob.did, ""))
    robert = await areas.add_user(areas.domain, "robert", b"password of his")
    prompts = world.did.prompts
    assert not await prompts.enrolled(areas.domain, "robert", world.issuer, 0)

    async def assign(wallets: list[int], credentials: list[int], *, several: bool = False) -> None:
        wanted = WalletAssignment(areas.domain, [robert], wallets, credentials, "badge", 0, several)
        await areas.store.write(lambda tx: users.assign(tx, wanted))

    await assign([bob.wallet_id], [])
    assert await prompts.enrolled(areas.domain, "robert", world.issuer, 0)
    await assign([world.ann.wallet_id], [])
    assert not await prompts.enrolled(areas.domain, "robert", world.issuer, 0)
    await assign([], [bob.credential])
    assert await prompts.enrolled(areas.domain, "robert", world.issuer, 0)
    await areas.remove_user(areas.domain, "robert")
    sql = "select count(*) from endpoint_user_credentials"
    assert await areas.store.read(lambda tx: tx.value(int, sql)) == 0


async def _user_with_did(world: World, name: str, did: str) -> None:
    """Add an endpoint user whose `did` is this DID."""
    areas = world.areas
    await areas.add_user(areas.domain, name, b"a password of a user")
    await areas.accounts.update(areas.domain, name, UserChange(did=did))


async def test_the_did_of_a_user_enrols_it(world: World) -> None:
    """A credential without an epmUsername belongs to the user whose `did` is the DID of the credential's holder. When
    the credential is revoked, the user's sessions are ended.
    """
    areas, bob = world.areas, await world.person("bob@corp.example", signer(3))
    await world.give(bob, await world.issue(bob.did, ""))
    prompts = world.did.prompts
    await areas.add_user(areas.domain, "eve", b"a password of a user")
    assert not await prompts.enrolled(areas.domain, "eve", world.issuer, 0)
    await _user_with_did(world, "robert", bob.did)
    assert await prompts.enrolled(areas.domain, "Robert", world.issuer, 0)
    assert not await prompts.enrolled(areas.domain, "eve", world.issuer, 0)
    await areas.domains.update(areas.domain, Update(settings={"disconnect_on_revoke": True}))
    await areas.did.credentials.revoke(areas.domain, bob.credential)
    assert await areas.store.read(lambda tx: tx.rows("select user_name from revocations")) == [("robert",)]


async def test_the_did_of_a_user_does_not_match_a_foreign_credential(world: World) -> None:
    """A credential that has the epmUsername of another user does not belong to the user, even if the user's `did`
    matches.
    """
    await _user_with_did(world, "robert", world.ann.did)
    assert not await world.did.prompts.enrolled(world.areas.domain, "robert", world.issuer, 0)


async def test_only_the_assigned_credential_approves_the_login(world: World) -> None:
    """A credential without a user name approves only logins of the user to whom it is assigned. Another credential of
    the same wallet does not approve them.
    """
    areas, ann, own = world.areas, world.ann, world.ann.jwt
    await world.give(ann, await world.issue(ann.did, ""))
    robert = await areas.add_user(areas.domain, "robert", b"password of his")
    wanted = WalletAssignment(areas.domain, [robert], [], [ann.credential], "badge", 0, several=False)
    await areas.store.write(lambda tx: world.did.users.assign(tx, wanted))
    request_id = await opened(world, "robert")
    assert request_id is not None
    assigned, ann.jwt = ann.jwt, own
    with pytest.raises(CredentialError, match="does not meet the request"):
        await approve(world)
    ann.jwt = assigned
    await approve(world)
    assert await world.did.prompts.answer(request_id, within_s=0) == "accepted"


async def test_the_schema_is_in_the_definition(world: World) -> None:
    """If a schema is required, the definition has the address of the schema, so that the holder sees which credential
    to present.
    """
    await opened(world)
    assert "$.credentialSchema.id" not in (await polled(world)).definition
    other = await opened(world, challenge="c2", schema=world.schema)
    first = await polled(world)
    await world.did.prompts.withdraw(first.id)
    second = await polled(world)
    assert second.id == other
    (descriptor,) = definition.read(second.definition).input_descriptors
    (field,) = [each for each in descriptor.constraints.fields if "$.credentialSchema.id" in each.path]
    assert field.path == ["$.credentialSchema.id", "$.vc.credentialSchema.id"]
    address = world.areas.did.schemas.address(world.identity.schema.uuid)
    assert field.filter == {"type": "string", "const": address}
    await approve(world)
    assert await world.did.prompts.answer(second.id, within_s=0) == "accepted"


async def test_deleting_a_holder_ends_its_requests(world: World) -> None:
    """When a holder is deleted, the waiting login is refused, and no further request is made. Another DID of the user
    can be used instead.
    """
    areas, ann = world.areas, world.ann
    waited = await opened(world)
    assert waited is not None
    answers: list[str | None] = []

    async def wait() -> None:
        answers.append(await world.did.prompts.answer(waited, within_s=3600))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        await areas.did.dids.delete(areas.domain, [(DidKind.USER, ann.did)])
    assert answers == ["withdrawn"]
    assert not await world.did.prompts.enrolled(areas.domain, "ann", world.issuer, 0)
    assert await opened(world, challenge="c2") is None
    await world.person("ann2@corp.example", signer(5), "ann")
    assert await opened(world, challenge="c3") is not None
