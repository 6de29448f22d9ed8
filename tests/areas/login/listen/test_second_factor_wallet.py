"""Tests of the wallet as the second factor of RADIUS logins: the rules for all second factors apply."""

from collections.abc import AsyncIterator

import pytest
import trio

from sallyport.areas.did.crypto import vc
from sallyport.areas.domains.domain import Mode
from sallyport.base.errors import Conflict
from sallyport.radius.attributes import STATE
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE, ACCESS_REJECT
from tests.areas import Areas
from tests.areas.did.holders import World, populated
from tests.areas.login.listen.conftest import NAS, Wire
from tests.areas.login.listen.second import OTHER, SESSION, a_login, answer, outcomes
from tests.packets import attributes
from tests.waiting import until

STRANGER = attributes(CALLING_STATION_ID=b"02-00-00-00-00-99", NAS_PORT_ID=b"port 99")


class WalletDesk:
    """Ann's wallet, and the presentation requests to it."""

    def __init__(self, wire: Wire, world: World) -> None:
        self.wire = wire
        self.world = world

    async def requests(self) -> list[tuple[int, str]]:
        """Return every request with its status, oldest first."""
        sql = "select id, status from presentation_requests order by id"
        rows = await self.world.areas.store.read(lambda tx: tx.rows(sql))
        return [(int(str(number)), str(status)) for number, status in rows]

    async def asked(self, number: int = 1) -> None:
        """Wait until this number of requests was opened."""
        with trio.fail_after(30):
            while len(await self.requests()) < number:
                await trio.sleep(0.01)

    async def approve(self, request_id: int = 0) -> None:
        """Present ann's credential for a request. If none is given, use the oldest open request."""
        ann, presentations = self.world.ann, self.world.did.presentations
        request, _ = await presentations.poll(ann.caller, ann.wallet_id, ann.wallet_key, ann.did, request_id)
        presentation = vc.present(
            [ann.jwt],
            ann.signer,
            audience=request.issuer_did,
            nonce=request.nonce,
            id="urn:uuid:p",
            now=self.world.areas.clock(),
        )
        await presentations.submit(ann.caller, ann.wallet_id, ann.did, request.id, presentation)


@pytest.fixture
async def desk(areas: Areas) -> AsyncIterator[WalletDesk]:
    """Yield ann's wallet. Ann has the password hello, and her domain enforces with the wallet as the second factor."""
    world = await populated(areas)
    await areas.add_user(areas.domain, "ann", b"hello")
    await areas.client("192.0.2.0/24", name="nas")
    await areas.providers.set(areas.domain, "wallet", {"issuerDid": world.issuer}, 60)
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    async with trio.open_nursery() as nursery:
        yield WalletDesk(Wire(areas, nursery), world)
        nursery.cancel_scope.cancel()


async def test_one_approval_is_one_accept(desk: WalletDesk) -> None:
    """Retransmissions join the login and its presentation request.

    Another login with the same password gets its own presentation request, and ann's approval does not accept it.
    """
    first, again, stranger = a_login(), a_login(), a_login(STRANGER)
    desk.wire.put(first)
    await desk.asked()
    desk.wire.put(again, source=NAS)
    desk.wire.put(stranger, source=OTHER)
    await desk.asked(2)
    (anns, _), (strangers, _) = await desk.requests()
    await desk.approve(anns)
    assert (await answer(desk.wire, again))[0] == ACCESS_ACCEPT
    assert [status for _, status in await desk.requests()] == ["accepted", "open"]
    ann = desk.world.ann
    await desk.world.did.presentations.decline(ann.caller, ann.wallet_id, ann.did, strangers, None)
    assert (await answer(desk.wire, stranger, OTHER))[0] == ACCESS_REJECT
    await desk.wire.silence()
    assert sorted(await outcomes(desk.world.areas)) == [
        ("accept", "accept", "", "", "local+wallet"),
        ("reject", "reject", "", "not me", "local+wallet"),
    ]


async def test_a_device_that_does_not_wait(desk: WalletDesk) -> None:
    """A device with a short timeout gets a challenge.

    The approval counts once, for the request that answers the challenge.
    """
    desk.world.areas.patience = 0.0
    code, first = await answer(desk.wire, await sent(desk, a_login()))
    assert code == ACCESS_CHALLENGE
    await desk.asked()
    await desk.approve()
    entered = a_login(SESSION + attributes(STATE=first[STATE]), password="")
    desk.world.areas.patience = 60.0
    assert (await answer(desk.wire, await sent(desk, entered)))[0] == ACCESS_ACCEPT
    again = a_login(SESSION + attributes(STATE=first[STATE]), password="")
    assert (await answer(desk.wire, await sent(desk, again)))[0] == ACCESS_REJECT


async def sent(desk: WalletDesk, datagram: bytes) -> bytes:
    """Send a request, and return it."""
    desk.wire.put(datagram)
    await trio.lowlevel.checkpoint()
    return datagram


async def test_a_login_that_is_over_takes_its_request_back(desk: WalletDesk) -> None:
    """If a login times out, it is rejected and its presentation request is withdrawn.

    A later presentation is refused.
    """
    areas = desk.world.areas
    areas.clock.pass_by(0.001)
    await areas.providers.set(areas.domain, "wallet", {"issuerDid": desk.world.issuer}, 1)
    datagram = await sent(desk, a_login())
    await desk.asked()
    assert (await answer(desk.wire, datagram))[0] == ACCESS_REJECT
    with trio.fail_after(30):
        while [status for _, status in await desk.requests()] != ["withdrawn"]:
            await trio.sleep(0.01)
    ((request_id, _),) = await desk.requests()
    with pytest.raises(Conflict):
        await desk.approve(request_id)


async def test_a_user_without_a_credential_is_rejected(desk: WalletDesk) -> None:
    """A user without a credential is rejected without a presentation request.

    If the credential is revoked, the pending login is rejected.
    """
    areas = desk.world.areas
    await areas.add_user(areas.domain, "bob", b"hello")
    bob = a_login(user="bob")
    assert (await answer(desk.wire, await sent(desk, bob)))[0] == ACCESS_REJECT
    assert await desk.requests() == []
    waiting = await sent(desk, a_login())
    await desk.asked()
    await until(lambda: desk.wire.auth.in_flight == 1)
    await desk.world.revoke(desk.world.ann)
    assert (await answer(desk.wire, waiting))[0] == ACCESS_REJECT
    assert [row[3] for row in await outcomes(areas)] == ["not enrolled", "second factor denied"]
