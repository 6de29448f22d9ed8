"""Presentation requests, and presentations that answer them."""

from contextlib import suppress
from uuid import uuid4

import pytest

from sallyport.areas.did.crypto import vc
from sallyport.areas.did.crypto.jws import Signer
from sallyport.areas.did.presentations.request import Request
from sallyport.areas.did.presentations.verifier import AccessRequest
from sallyport.areas.users.instances.instance import Instance
from sallyport.base.errors import Conflict, CredentialError
from sallyport.base.wire import JSON
from tests.areas.did.holders import Person, World


async def requested(world: World, person: Person | None = None, username: str = "") -> Request:
    """Add a request for an instance to a person, ann by default. Return the request as the wallet polls it."""
    person = person or world.ann
    with suppress(Conflict):
        await world.areas.instances.add(world.areas.domain, Instance("server"))
    wanted = AccessRequest(world.issuer, person.did, username, "server", of_group=False)
    (issued,) = await world.did.verifier.issue(world.areas.tenant, wanted)
    request, _ = await world.did.presentations.poll(
        person.caller, person.wallet_id, person.wallet_key, person.did, issued.id
    )
    return request


def shown(
    world: World, request: Request, *jwts: str, by: Signer | None = None, audience: str = "", nonce: str = ""
) -> str:
    """Return ann's presentation that answers a request."""
    return vc.present(
        jwts or (world.ann.jwt,),
        by or world.ann.signer,
        audience=audience or request.issuer_did,
        nonce=nonce or request.nonce,
        id=f"urn:uuid:{uuid4()}",
        now=world.areas.clock(),
    )


async def submit(
    world: World, request: Request, presentation: str | dict[str, JSON], person: Person | None = None
) -> None:
    """Submit a presentation that answers ann's request."""
    person = person or world.ann
    await world.did.presentations.submit(person.caller, person.wallet_id, person.did, request.id, presentation)


async def refused(world: World, request: Request, presentation: str | dict[str, JSON]) -> str:
    """Return the reason for which a presentation is refused. Assert that the refusal is counted."""
    with pytest.raises(CredentialError) as error:
        await submit(world, request, presentation)
    reason = error.value.reason
    assert world.areas.sample("sallyport_presentations_total", result=reason) >= 1
    return reason


async def still_open(world: World, request: Request) -> bool:
    """Return whether the request still accepts a valid presentation."""
    await submit(world, request, shown(world, request))
    return True
