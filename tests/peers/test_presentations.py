"""Tests of other wallets: a presentation that did-jwt-vc makes answers a request of the service once."""

from pathlib import Path

import pytest

from sallyport.areas.did.presentations.verifier import AccessRequest
from sallyport.areas.users.instances.instance import Instance
from sallyport.base.clock import now_us
from sallyport.base.errors import Conflict, CredentialError
from tests.areas import Areas, SetClock, areas
from tests.areas.did.holders import populated
from tests.peers.npm_verifiers import ask, needs_npm

__all__ = ["areas", "clock"]
pytestmark = [pytest.mark.peer, pytest.mark.system, needs_npm]


@pytest.fixture
def clock() -> SetClock:
    """Return the current time, which the verifiers also use."""
    return SetClock(now_us())


async def test_did_jwt_vc_answers_requests(areas: Areas, tmp_path: Path) -> None:
    """A presentation with the nonce and verifier of the request is accepted.

    A presentation with another nonce is refused, and so is a repeated one.
    """
    world = await populated(areas)
    ann, presentations = world.ann, world.did.presentations
    await areas.instances.add(areas.domain, Instance("server"))
    wanted = AccessRequest(world.issuer, ann.did, "ann", "server", of_group=False)
    await world.did.verifier.issue(areas.tenant, wanted)
    request, _ = await presentations.poll(ann.caller, ann.wallet_id, ann.wallet_key, ann.did)
    question = {
        "ask": "makeVp",
        "seed": ann.signer.key.octets.reveal().hex(),
        "did": ann.did,
        "method": ann.signer.method_id,
        "jwt": ann.jwt,
        "audience": request.issuer_did,
        "nonce": request.nonce,
    }
    good, other = map(str, ask(tmp_path, [question, {**question, "nonce": "another"}]))
    with pytest.raises(CredentialError) as refused:
        await presentations.submit(ann.caller, ann.wallet_id, ann.did, request.id, other)
    assert refused.value.reason == "nonce"
    await presentations.submit(ann.caller, ann.wallet_id, ann.did, request.id, good)
    with pytest.raises(Conflict):
        await presentations.submit(ann.caller, ann.wallet_id, ann.did, request.id, good)
