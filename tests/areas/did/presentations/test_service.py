"""Presentation requests. Each one is answered once, by its holder, with the requested credential."""

import json
from functools import partial

import pytest

from sallyport.areas.did.crypto import jws, proofs
from sallyport.areas.did.crypto.documents import AUTHENTICATION
from sallyport.areas.did.crypto.encoding import CURVES
from sallyport.areas.did.dids.did import DidKind
from sallyport.areas.did.dids.service import Dids
from sallyport.areas.did.presentations.request import State
from sallyport.areas.did.presentations.verifier import AccessRequest
from sallyport.areas.users.groups.group import Group
from sallyport.areas.users.instances.instance import Instance
from sallyport.areas.users.membership import Action
from sallyport.base.clock import SECOND
from sallyport.base.errors import Conflict, CredentialError, Forbidden, NotFound, TooMany, Unauthenticated
from sallyport.store.model import Store
from sallyport.store.slices import SLICE
from tests.areas.did.crypto.signers import did, signer
from tests.areas.did.holders import World
from tests.areas.did.presentations.requests import refused, requested, shown, still_open, submit
from tests.slices import interrupted

MALLORY = signer(9)


# --- accepted presentations -------------------------------------------------------------------------------------------


async def test_a_request_is_answered_once(world: World) -> None:
    """A valid presentation is accepted. After that, every presentation for the request is refused."""
    request = await requested(world)
    presentation = shown(world, request)
    await submit(world, request, presentation)
    for again in (presentation, shown(world, request)):
        with pytest.raises(Conflict):
            await submit(world, request, again)
    with pytest.raises(NotFound):
        await world.did.presentations.poll(world.ann.caller, world.ann.wallet_id, world.ann.wallet_key, world.ann.did)
    assert world.areas.sample("sallyport_presentations_total", result="accepted") == 1
    assert world.areas.sample("sallyport_presentations_total", result="over") == 2


async def test_a_document_with_a_proof_is_accepted(world: World) -> None:
    """A presentation may be the credential as it was issued, together with the holder's proof for the nonce and the
    verifier.
    """
    request = await requested(world)
    document = jws.parse(world.ann.jwt).payload["vc"]
    assert isinstance(document, dict)
    proven = proofs.sign(
        document,
        world.ann.signer,
        purpose=AUTHENTICATION,
        at=world.areas.clock(),
        challenge=request.nonce,
        domain=request.issuer_did,
    )
    changed = {**document, "credentialSubject": {"id": world.ann.did, "epmUsername": "root"}}
    forged = proofs.sign(
        changed,
        world.ann.signer,
        purpose=AUTHENTICATION,
        at=world.areas.clock(),
        challenge=request.nonce,
        domain=request.issuer_did,
    )
    assert await refused(world, request, forged) == "claims"
    await submit(world, request, proven)


@pytest.mark.parametrize("curve", CURVES)
async def test_a_holder_of_each_curve_is_accepted(world: World, curve: str) -> None:
    bob = await world.person("bob@corp.example", signer(3, CURVES[curve]), "bob")
    request = await requested(world, bob)
    await submit(world, request, shown(world, request, bob.jwt, by=bob.signer), bob)


async def test_the_oldest_request_is_polled_first(world: World) -> None:
    """A poll returns the oldest open request and the number of open requests. Answered and expired ones are not
    counted.
    """
    ann, presentations = world.ann, world.did.presentations
    first, second = await requested(world), await requested(world)
    found, pending = await presentations.poll(ann.caller, ann.wallet_id, ann.wallet_key, ann.did)
    assert (found.id, pending) == (first.id, 2)
    await submit(world, first, shown(world, first))
    found, pending = await presentations.poll(ann.caller, ann.wallet_id, ann.wallet_key, ann.did)
    assert (found.id, pending) == (second.id, 1)
    world.areas.clock.pass_by(600)
    with pytest.raises(NotFound):
        await presentations.poll(ann.caller, ann.wallet_id, ann.wallet_key, ann.did)
    with pytest.raises(Conflict):
        await submit(world, second, shown(world, second))


async def test_a_wallet_declines_a_request(world: World) -> None:
    """To decline a request, the wallet's own token or the walletKey is needed. An admin without the walletKey cannot
    decline it. A declined request is closed.
    """
    ann, presentations = world.ann, world.did.presentations
    first, second = await requested(world), await requested(world)
    with pytest.raises(Forbidden):
        await presentations.decline(world.admin, ann.wallet_id, ann.did, first.id, None)
    with pytest.raises(Unauthenticated):
        await presentations.decline(world.admin, ann.wallet_id, ann.did, first.id, "wk_wrong")
    await presentations.decline(world.admin, ann.wallet_id, ann.did, first.id, ann.wallet_key)
    await presentations.decline(ann.caller, ann.wallet_id, ann.did, second.id, None)
    for request in (first, second):
        with pytest.raises(Conflict):
            await submit(world, request, shown(world, request))
        with pytest.raises(Conflict):
            await presentations.decline(ann.caller, ann.wallet_id, ann.did, request.id, None)
    assert world.areas.sample("sallyport_presentations_total", result="declined") == 2


# --- end of requests -------------------------------------------------------------------------------------------------


async def test_wrong_presentations_are_rate_limited(world: World) -> None:
    """After ten wrong presentations with a token, the next one has to wait. The request stays open for a valid
    presentation.
    """
    request = await requested(world)
    for _ in range(10):
        await refused(world, request, "nonsense")
    with pytest.raises(TooMany):
        await submit(world, request, shown(world, request))
    world.areas.clock.pass_by(30)
    assert await still_open(world, request)


async def test_wrong_presentations_lock_one_wallet(world: World) -> None:
    """Ten wrong presentations of one wallet do not lock the other wallets that use the token."""
    bob = await world.person("bob@corp.example", signer(3), "bob")
    request = await requested(world)
    submit_as_admin = partial(world.did.presentations.submit, world.admin)
    for _ in range(10):
        with pytest.raises(CredentialError):
            await submit_as_admin(world.ann.wallet_id, world.ann.did, request.id, "nonsense")
    with pytest.raises(TooMany):
        await submit_as_admin(world.ann.wallet_id, world.ann.did, request.id, "nonsense")
    with pytest.raises(NotFound):
        await submit_as_admin(bob.wallet_id, bob.did, request.id, "nonsense")


async def test_an_unanswered_request_expires(world: World) -> None:
    """The status of a request becomes Expired at the time from which it can no longer be answered."""
    request = await requested(world)
    world.areas.clock.pass_by(3600)
    standing = await world.did.presentations.status(world.areas.tenant, request.id)
    assert (standing.state, standing.since) == (State.EXPIRED, request.expires_at)


async def test_deleting_an_issuer_withdraws_only_open_requests(world: World) -> None:
    """When an issuer is deleted, expired requests stay expired, so that the deletion does not have to read all requests
    of a month.
    """
    old = await requested(world)
    world.areas.clock.pass_by(3600)
    new = await requested(world)
    await world.dids.delete(world.areas.domain, [(DidKind.ISSUER, world.issuer)])
    states = [(await world.did.presentations.status(world.areas.tenant, each.id)).state for each in (old, new)]
    assert states == [State.EXPIRED, State.WITHDRAWN]


async def test_many_open_requests_are_withdrawn_in_slices(world: World) -> None:
    """Each transaction withdraws SLICE open requests. The issuer is deleted when no request is open."""
    areas = world.areas
    await requested(world)
    columns = (
        "domain_id, wallet_id, holder_did, issuer_did, schema_id, nonce, definition, purpose, endpoint, status, "
        "created_at, expires_at"
    )
    rows = f"select {columns} from presentation_requests cross join json_each(:rows)"  # noqa: S608
    copies = f"insert into presentation_requests ({columns}) {rows}"
    await areas.store.write(lambda tx: tx.execute(copies, rows=json.dumps([0] * (2 * SLICE))))
    open_ones, left = "select count(*) from presentation_requests where status = 'open'", []

    async def delete(store: Store) -> None:
        dids = Dids(store, areas.vault, areas.revocations, areas.did.requests, str, areas.clock)
        left.append(await areas.store.read(lambda tx: tx.value(int, open_ones)))
        await dids.delete(areas.domain, [(DidKind.ISSUER, world.issuer)])

    assert await interrupted(areas.store, [], delete) == 4
    assert left == [2 * SLICE + 1, SLICE + 1, 1, 0]
    with pytest.raises(NotFound):
        await world.dids.delete(areas.domain, [(DidKind.ISSUER, world.issuer)])


async def test_a_revocation_closes_open_requests(world: World) -> None:
    """When a credential is revoked, the open requests of its holder are closed at once. Requests of another holder stay
    open.
    """
    bob = await world.person("bob@corp.example", signer(3), "bob")
    request, bobs = await requested(world), await requested(world, bob)
    await world.revoke(world.ann)
    with pytest.raises(Conflict):
        await submit(world, request, shown(world, request))
    await submit(world, bobs, shown(world, bobs, bob.jwt, by=bob.signer), bob)


async def test_deleting_a_holder_closes_its_requests(world: World) -> None:
    """When a holder is deleted, its open requests are closed at once, and new ones are refused. No wallet gets its
    credentials or their passwords. Requests of another holder stay open.
    """
    areas, ann = world.areas, world.ann
    bob = await world.person("bob@corp.example", signer(3), "bob")
    later = await world.issue(ann.did, "ann")
    request, bobs = await requested(world), await requested(world, bob)
    await areas.did.dids.delete(areas.domain, [(DidKind.USER, ann.did)])
    with pytest.raises(Conflict, match="ended"):
        await submit(world, request, shown(world, request))
    with pytest.raises(NotFound, match="no presentation request"):
        await world.did.presentations.poll(ann.caller, ann.wallet_id, ann.wallet_key, ann.did)
    with pytest.raises(NotFound, match="holder not found"):
        await requested(world)
    with pytest.raises(Conflict, match="deleted"):
        await world.did.wallets.assign(areas.tenant, [(bob.wallet_id, later)])
    await world.did.wallets.assign(areas.tenant, [(ann.wallet_id, ann.credential)])  # as before
    assert (await world.did.wallets.deliver(ann.caller, ann.email, ann.wallet_key))[1] == []
    await submit(world, bobs, shown(world, bobs, bob.jwt, by=bob.signer), bob)


async def test_deleting_an_issuer_closes_its_requests(world: World) -> None:
    """When an issuer is deleted, its open requests are closed at once, and it makes no new ones. Requests of another
    issuer stay open.
    """
    areas = world.areas
    other = await world.new_issuer("other")
    request = await requested(world)
    sql = "select id from presentation_requests where status = 'open'"
    (theirs,) = await world.did.verifier.issue(
        areas.tenant, AccessRequest(other, world.ann.did, "", "server", of_group=False)
    )
    await areas.did.dids.delete(areas.domain, [(DidKind.ISSUER, world.issuer)])
    with pytest.raises(Conflict, match="ended"):
        await submit(world, request, shown(world, request))
    with pytest.raises(NotFound, match="issuer not found"):
        await requested(world)
    assert [tuple(row) for row in await areas.store.read(lambda tx: tx.rows(sql))] == [(theirs.id,)]


async def test_a_failed_deletion_closes_no_requests(world: World) -> None:
    """If one of two DIDs is unknown, the deletion fails, and the other DID and its requests stay."""
    request = await requested(world)
    with pytest.raises(NotFound):
        await world.dids.delete(world.areas.domain, [(DidKind.USER, world.ann.did), (DidKind.USER, did(MALLORY))])
    assert await still_open(world, request)


async def test_open_requests_of_a_backup_are_over_after_a_restore(world: World) -> None:
    """After a restore, requests that are open in the backup are closed, because they may have been answered since."""
    request = await requested(world)
    await world.areas.store.write(world.did.requests.void)
    with pytest.raises(Conflict):
        await submit(world, request, shown(world, request))
    assert await still_open(world, await requested(world))


# --- requests for an endpoint -----------------------------------------------------------------------------------------


async def issued(world: World, endpoint: str, *, holder: str = "", of_group: bool = False) -> list[int]:
    """Return the wallets to which issuePR sends a request."""
    wanted = AccessRequest(world.issuer, holder or world.ann.did * (not of_group), "", endpoint, of_group=of_group)
    return [each.holder.wallet_id for each in await world.did.verifier.issue(world.areas.tenant, wanted)]


async def test_the_credential_must_have_the_user_name(world: World) -> None:
    """If a request requires a user name, a credential with another user name is refused."""
    request = await requested(world, username="bob")
    assert await refused(world, request, shown(world, request)) == "definition"


async def test_the_endpoint_is_an_instance_or_a_group(world: World) -> None:
    """An endpoint is found by its name in any letter case or by its ID, and only in its own tenant."""
    areas = world.areas
    instance = await areas.instances.add(areas.domain, Instance("Server"))
    group = await areas.groups.add(areas.domain, Group("Admins"))
    for endpoint in ("server", "ADMINS", str(instance), str(group)):
        assert await issued(world, endpoint) == [world.ann.wallet_id]
    other = await areas.tenancy.ensure_tenant(2, 1)
    await areas.instances.add(await areas.domains.add(other, "other"), Instance("theirs"))
    for endpoint in ("theirs", "nothing", str(10**17)):
        with pytest.raises(NotFound):
            await issued(world, endpoint)
    for wanted in (
        AccessRequest("did:key:z6Mknobody", world.ann.did, "", "server", of_group=False),
        AccessRequest(world.issuer, did(MALLORY), "", "server", of_group=False),
    ):
        with pytest.raises(NotFound):
            await world.did.verifier.issue(areas.tenant, wanted)
    with pytest.raises(NotFound):
        await world.did.verifier.issue(other, AccessRequest(world.issuer, world.ann.did, "", "server", of_group=False))


async def test_the_methods_and_policy_of_an_endpoint_apply(world: World) -> None:
    """An endpoint is refused if it authenticates without DIDs or is a group without access. A credential policy limits
    the lifetime of a request.
    """
    areas = world.areas
    await areas.instances.add(areas.domain, Instance("ssh only", auth_type="SSH,Password"))
    await areas.instances.add(areas.domain, Instance("both", auth_type="SSH,DID"))
    group = await areas.groups.add(areas.domain, Group("short", auth_flow="DID"))
    await areas.groups.add(areas.domain, Group("off", status="Disabled"))
    await areas.groups.set_credential_policy(areas.domain, group, {"ttl_user": "30s"})
    for endpoint in ("ssh only", "off"):
        with pytest.raises(Conflict):
            await issued(world, endpoint)
    assert await issued(world, "both") == await issued(world, "short") == [world.ann.wallet_id]
    sql = "select min(expires_at - created_at) from presentation_requests"
    assert await areas.store.read(lambda tx: tx.value(int, sql)) == 30 * SECOND


async def test_the_methods_of_a_users_groups_apply(world: World) -> None:
    """If a user has an instance through groups, the methods of those groups apply. For a user that is assigned
    directly, or is unknown, the methods of the instance apply.
    """
    areas = world.areas
    await world.give(world.ann, await world.issue(world.ann.did, "ann"))
    instance = await areas.instances.add(areas.domain, Instance("server"))
    user = await areas.add_user(areas.domain, "Ann", b"password of theirs")
    assert await issued(world, "server")
    groups = [await areas.groups.add(areas.domain, Group(flow, auth_flow=flow)) for flow in ("SSH", "Password")]
    for group in groups:
        await areas.groups.assign_users(areas.domain, group, [user], Action.ADD)
    await areas.instances.assign_groups(areas.domain, [instance], groups, Action.ADD)
    for name in ("", "ANN"):
        with pytest.raises(Conflict, match="accept DIDs"):
            await world.did.verifier.issue(
                areas.tenant, AccessRequest(world.issuer, world.ann.did, name, "server", of_group=False)
            )
    await areas.groups.edit(areas.domain, groups[0], {"auth_flow": "SSH,DID"})
    assert await issued(world, "server")
    await areas.groups.edit(areas.domain, groups[0], {"auth_flow": "SSH"})
    await areas.instances.assign_users(areas.domain, [instance], [user], Action.ADD)
    assert await issued(world, "server")


async def test_each_holder_of_a_group_is_asked_once(world: World) -> None:
    """Each member of a group that holds a credential gets one request. A group without holders is refused."""
    areas, bob = world.areas, await world.person("bob@corp.example", signer(3), "bob")
    group = await areas.groups.add(areas.domain, Group("admins"))
    with pytest.raises(NotFound):
        await issued(world, "admins", of_group=True)
    users = [await areas.add_user(areas.domain, name, b"password of theirs") for name in ("ANN", "bob", "carl")]
    await areas.groups.assign_users(areas.domain, group, users, Action.ADD)
    await world.give(bob, await world.issue(bob.did, "bob"))
    assert await issued(world, "admins", of_group=True) == [world.ann.wallet_id, bob.wallet_id]
    await areas.instances.add(areas.domain, Instance("server"))
    with pytest.raises(NotFound):
        await issued(world, "server", of_group=True)


async def test_requests_are_listed_by_domain(world: World) -> None:
    """The list is bounded, newest first, and has the state of each request. Another domain has none of them."""
    answered, waiting = await requested(world), await requested(world)
    await submit(world, answered, shown(world, answered))
    service, domain = world.did.presentations, world.areas.domain
    listed = await service.listed(domain, 0, 10)
    assert [(each.id, state, each.username) for each, state, _ in listed] == [
        (waiting.id, State.PENDING, "ann"),
        (answered.id, State.ACCEPTED, "ann"),
    ]
    assert [each.id for each, _, _ in await service.listed(domain, 0, 1)] == [waiting.id]
    assert [each.id for each, _, _ in await service.listed(domain, waiting.id, 10)] == [answered.id]
    assert await service.listed(await world.areas.domains.add(world.areas.tenant, "other"), 0, 10) == []
