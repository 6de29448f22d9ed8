"""Forged presentations. Each one is refused with a reason of its own, and the request stays open."""

from collections.abc import Awaitable, Callable
from uuid import uuid4

import pytest

from sallyport.areas.did.crypto import jws, vc
from sallyport.areas.did.crypto.encoding import to_base64url
from sallyport.areas.did.crypto.jws import Signer
from sallyport.areas.did.dids.did import DidKind
from sallyport.areas.did.presentations.request import Request
from sallyport.base.errors import CredentialError, Forbidden, NotFound
from sallyport.base.wire import JSON
from tests.areas.did.crypto.signers import credential, did, signer
from tests.areas.did.holders import World
from tests.areas.did.presentations.requests import refused, requested, shown, still_open, submit

MALLORY = signer(9)

Attack = Callable[[World, Request], Awaitable[str]]


def resigned(world: World, by: Signer, /, header: dict[str, JSON] | None = None, **changes: JSON) -> str:
    """Return ann's credential with other claims, signed with the given key."""
    payload = {**jws.parse(world.ann.jwt).payload, **changes}
    return jws.sign(payload, by)


async def unsigned(world: World, request: Request) -> str:
    """Return a presentation whose algorithm is none."""
    _, payload, _ = shown(world, request).split(".")
    header = to_base64url(f'{{"alg":"none","kid":"{world.ann.signer.method_id}","typ":"JWT"}}'.encode())
    return f"{header}.{payload}."


async def unsigned_credential(world: World, request: Request) -> str:
    """Return a presentation of a credential whose algorithm is none."""
    _, payload, _ = world.ann.jwt.split(".")
    header = to_base64url(f'{{"alg":"none","kid":"{jws.parse(world.ann.jwt).key_id}","typ":"JWT"}}'.encode())
    return shown(world, request, f"{header}.{payload}.")


async def keyed_hash(world: World, request: Request) -> str:
    """Return a presentation that is signed with HS256 and the holder's public key."""
    import hmac

    _, payload, _ = shown(world, request).split(".")
    header = to_base64url(f'{{"alg":"HS256","kid":"{world.ann.signer.method_id}","typ":"JWT"}}'.encode())
    signature = hmac.digest(world.ann.signer.key.public.octets, f"{header}.{payload}".encode(), "sha256")
    return f"{header}.{payload}.{to_base64url(signature)}"


async def key_of_another(world: World, request: Request) -> str:
    """Return a presentation that has the kid of another DID and is signed with that DID's key."""
    return shown(world, request, by=MALLORY)


async def issuer_of_another(world: World, request: Request) -> str:
    """Return a presentation of a credential that Mallory signed with her own key in the name of the issuer."""
    return shown(world, request, resigned(world, MALLORY))


async def self_issued(world: World, request: Request) -> str:
    """Return a presentation of a credential that the holder has issued to herself."""
    return shown(world, request, vc.sign(credential(world.ann.signer, world.ann.did), world.ann.signer))


async def foreign_key_id(world: World, request: Request) -> str:
    """Return a presentation of a credential that has the kid of the issuer and Mallory's signature."""
    return shown(world, request, resigned(world, Signer(jws.parse(world.ann.jwt).key_id, MALLORY.key)))


async def another_nonce(world: World, request: Request) -> str:
    """Return a presentation that has the nonce of an earlier request."""
    return shown(world, request, nonce=(await requested(world)).nonce)


async def another_audience(world: World, request: Request) -> str:
    """Return a presentation that was made for another verifier. That verifier passes it on."""
    return shown(world, request, audience="did:web:elsewhere.example")


async def credential_of_another(world: World, request: Request) -> str:
    """Return ann's presentation of bob's credential."""
    bob = await world.person("bob@corp.example", signer(3), "bob")
    return shown(world, request, bob.jwt)


async def two_credentials(world: World, request: Request) -> str:
    """Return a presentation of ann's and bob's credentials. A careless verifier would check only one of them."""
    bob = await world.person("bob@corp.example", signer(3), "bob")
    return shown(world, request, world.ann.jwt, bob.jwt)


async def revoked(world: World, request: Request) -> str:
    """Return a presentation of a credential that was just revoked, while its requests are still open."""
    sql = "update credentials set status = 'Revoked' where id = :id"
    await world.areas.store.write(lambda tx: tx.execute(sql, id=world.ann.credential))
    return shown(world, request)


async def ignored(world: World, request: Request) -> str:
    """Return a presentation of a credential that its wallet has ignored."""
    ann = world.ann
    await world.did.wallets.acknowledge(ann.caller, ann.wallet_id, ann.credential, accept=False)
    return shown(world, request)


async def expired(world: World, request: Request) -> str:
    """Return a presentation of a credential that is valid for a minute. The presentation is sent one minute later."""
    short = await world.issue(world.ann.did, "ann", lasts_s=60)
    world.areas.clock.pass_by(60)
    return shown(world, request, await world.token(short))


async def not_yet_valid(world: World, request: Request) -> str:
    """Return a presentation of a credential that is valid from tomorrow."""
    return shown(world, request, await world.token(await world.issue(world.ann.did, "ann", begins_s=86_400)))


async def of_another_issuer(world: World, request: Request) -> str:
    """Return a presentation of a valid credential that another issuer of the same domain has issued."""
    other = await world.new_issuer("somebody else")
    return shown(world, request, await world.token(await world.issue(world.ann.did, "ann", issuer=other)))


async def tampered(world: World, request: Request) -> str:
    """Return a presentation of a credential whose signature has a changed octet."""
    head, payload, signature = world.ann.jwt.split(".")
    other = ("A" if signature[0] != "A" else "B") + signature[1:]
    return shown(world, request, f"{head}.{payload}.{other}")


async def stale(world: World, request: Request) -> str:
    """Return a presentation that was made an hour ago."""
    presentation = shown(world, request)
    world.areas.clock.pass_by(599)
    return presentation


async def nonsense(world: World, request: Request) -> str:
    """Return text that is not a token."""
    return "x" * 10_000


@pytest.mark.parametrize(
    ("attack", "reason"),
    [
        (unsigned, "signature"),
        (unsigned_credential, "signature"),
        (keyed_hash, "signature"),
        (key_of_another, "issuer"),
        (issuer_of_another, "issuer"),
        (self_issued, "issuer"),
        (foreign_key_id, "signature"),
        (another_nonce, "nonce"),
        (another_audience, "audience"),
        (credential_of_another, "holder"),
        (two_credentials, "malformed"),
        (revoked, "revoked"),
        (ignored, "status"),
        (expired, "expired"),
        (not_yet_valid, "not_yet_valid"),
        (of_another_issuer, "issuer"),
        (tampered, "signature"),
        (stale, "expired"),
        (nonsense, "malformed"),
    ],
)
async def test_an_attack_is_refused(world: World, attack: Attack, reason: str) -> None:
    """Each attack is refused for a reason of its own. The message repeats no part of the presentation."""
    request = await requested(world)
    presentation = await attack(world, request)
    with pytest.raises(CredentialError) as error:
        await submit(world, request, presentation)
    assert error.value.reason == reason
    assert len(str(error.value)) < 100 and presentation[:40] not in str(error.value)


async def test_contradictory_claims_are_refused(world: World) -> None:
    """A credential that the issuer has signed is still refused if `vc` contradicts the registered claims, or if this
    service did not issue it.
    """
    from sallyport.areas.did.dids import repo as dids
    from sallyport.store.model import Tx

    def issuers(tx: Tx) -> Signer:
        record = dids.get(tx, world.areas.domain, world.issuer, DidKind.ISSUER)
        assert record is not None
        key = dids.active_key(tx, record.id)
        assert key is not None
        return dids.signer(world.areas.vault, key)

    by = await world.areas.store.read(issuers)
    request = await requested(world)
    document = jws.parse(world.ann.jwt).payload["vc"]
    assert isinstance(document, dict)
    raised = {**document, "credentialSubject": {"id": world.ann.did, "epmUsername": "root"}}
    later = {**document, "expirationDate": "2099-01-01T00:00:00Z"}
    mallorys = {**document, "credentialSubject": {"id": did(MALLORY)}}
    unknown = {**document, "id": f"urn:uuid:{uuid4()}"}
    for changes, reason in (
        ({"vc": later}, "claims"),
        ({"vc": mallorys}, "claims"),
        ({"vc": raised}, "claims"),
        ({"vc": {**document, "issuer": did(MALLORY)}}, "issuer"),
        ({"vc": unknown, "jti": unknown["id"]}, "issuer"),
    ):
        token = resigned(world, by, **changes)
        assert await refused(world, request, shown(world, request, token)) == reason
    assert await still_open(world, request)


async def test_a_wallet_answers_only_its_own_requests(world: World) -> None:
    """A request of another wallet or another holder, or an unknown one, is not found. The token of another wallet is
    refused.
    """
    bob = await world.person("bob@corp.example", signer(3), "bob")
    request = await requested(world)
    presentation = shown(world, request)
    presentations = world.did.presentations
    with pytest.raises(NotFound):
        await presentations.submit(bob.caller, bob.wallet_id, world.ann.did, request.id, presentation)
    with pytest.raises(NotFound):
        await presentations.submit(world.ann.caller, world.ann.wallet_id, bob.did, request.id, presentation)
    with pytest.raises(NotFound):
        await presentations.submit(world.ann.caller, world.ann.wallet_id, world.ann.did, request.id + 99, presentation)
    with pytest.raises(Forbidden):
        await presentations.submit(bob.caller, world.ann.wallet_id, world.ann.did, request.id, presentation)
    assert await still_open(world, request)
