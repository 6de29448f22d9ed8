"""Step-ups over two nodes: the page, the prompt and the retransmissions of a login may be at different nodes."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import trio
import trio.testing

from sallyport.areas.domains.domain import Mode
from sallyport.areas.factors.denials import Denial, DeniedAt
from sallyport.areas.factors.stepup.stepup import MAX_WRONG, Proof
from sallyport.areas.mfa.host import StepUpState
from sallyport.areas.mfa.provider import Strength
from sallyport.radius.attributes import REPLY_MESSAGE, STATE
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE, ACCESS_REJECT
from tests.areas import Areas
from tests.areas.factors.stepups import LAPTOP, SITE, STATION, STRANGER, with_pages
from tests.areas.login.listen.conftest import Wire
from tests.areas.login.listen.second import a_login, exchange, outcomes
from tests.areas.login.listen.web import VPN as TUNNEL
from tests.areas.login.listen.web import at, web_desk
from tests.nodes.conftest import Pair
from tests.packets import attributes
from tests.peers.postgres import needs_postgres

pytestmark = needs_postgres
VPN = attributes(CALLING_STATION_ID=STATION.encode(), NAS_PORT_ID=b"tunnel 7", NAS_IDENTIFIER=b"vpn-1")
_CODE = re.compile(rb"/mfa/([0-9A-Z]{10})")


@dataclass
class Nodes:
    """Two nodes with pages, and the user ann, whose domain enforces with the provider `own`."""

    one: Wire
    two: Wire

    async def login(self, wire: Wire) -> tuple[str, bytes]:
        """Log in at a node. Return the code of the page and the State of the challenge."""
        answer, found = await exchange(wire, a_login(VPN))
        code = _CODE.search(found[REPLY_MESSAGE])
        assert (answer, code is not None) == (ACCESS_CHALLENGE, True)
        assert code is not None
        return code[1].decode(), found[STATE]

    async def type(self, wire: Wire, text: str, state: bytes) -> tuple[int, bytes]:
        """Answer a challenge at a node. Return the code of the answer, and its State."""
        answer, found = await exchange(wire, a_login(VPN + attributes(STATE=state), password=text))
        return answer, found.get(STATE, b"")

    async def prove(self, areas: Areas, code: str) -> Proof:
        """Open the page at a node, and prove a passkey there."""
        stepups = areas.app.factors.stepups
        shown = await stepups.opened(code, LAPTOP, STATION)
        assert shown is not None
        return await stepups.prove(shown.id, LAPTOP, "passkey", Strength.PHISHING_RESISTANT, STATION)


@pytest.fixture
async def nodes(pair: Pair) -> AsyncIterator[Nodes]:
    """Yield two nodes that send each other notices."""
    one = pair.one
    for each in (pair.one, pair.two):
        with_pages(each)
    await one.add_user(one.domain, "ann", b"hello")
    await one.client("192.0.2.0/24", name="Berlin")
    await one.providers.set(one.domain, "own", {"factors": "passkey"}, 60)
    await one.domains.set_mode([one.domain], Mode.ENFORCE)
    await pair.two.configuration.reload()
    async with trio.open_nursery() as nursery:
        for each in (pair.one, pair.two):
            await nursery.start(each.notices.run)
            await nursery.start(each.second.run)
        yield Nodes(Wire(pair.one, nursery), Wire(pair.two, nursery))
        nursery.cancel_scope.cancel()


async def test_page_and_digits_at_another_node(nodes: Nodes) -> None:
    """The login begins at the first node. Its page and its digits are at the second one. Typed again at the first node,
    the digits do not admit."""
    code, state = await nodes.login(nodes.one)
    proof = await nodes.prove(nodes.two.areas, code)
    assert (await nodes.type(nodes.two, proof.digits, state))[0] == ACCESS_ACCEPT
    assert (await nodes.type(nodes.one, proof.digits, state))[0] == ACCESS_REJECT
    applied = [each[1] for each in await outcomes(nodes.one.areas)]
    assert applied.count("accept") == 1


async def test_the_page_belongs_to_one_browser_over_all_nodes(nodes: Nodes) -> None:
    """A second browser at another node sees what an unknown code shows."""
    code, _ = await nodes.login(nodes.one)
    assert await nodes.one.areas.app.factors.stepups.opened(code, LAPTOP, STATION) is not None
    assert await nodes.two.areas.app.factors.stepups.opened(code, STRANGER, STATION) is None


async def test_wrong_digits_count_over_all_nodes(nodes: Nodes) -> None:
    """An attacker who types at both nodes in turn has three tries together."""
    code, state = await nodes.login(nodes.one)
    proof = await nodes.prove(nodes.two.areas, code)
    wrong = "000000" if proof.digits != "000000" else "000001"
    answers = []
    for number in range(MAX_WRONG):
        answer, state = await nodes.type((nodes.two, nodes.one)[number % 2], wrong, state or b"\0" * 46)
        answers.append(answer)
    assert answers == [ACCESS_CHALLENGE, ACCESS_CHALLENGE, ACCESS_REJECT]
    stepups = nodes.one.areas.app.factors.stepups
    shown = await stepups.opened(code, LAPTOP, STATION)
    assert shown is not None
    assert shown.state is StepUpState.WRONG


async def test_a_waiting_login_hears_of_the_other_node(nodes: Nodes) -> None:
    """A proof at one node wakes a login that waits at the other, and so does a denial, long before the next poll."""
    waits, proves = (each.areas.app.factors.stepups for each in (nodes.one, nodes.two))
    code, _ = await nodes.login(nodes.one)
    shown = await proves.opened(code, LAPTOP, STATION)
    assert shown is not None
    found = []

    async def wait() -> None:
        found.append((await waits.state_of(shown.id, within_s=60))[0])

    with trio.fail_after(60):
        async with trio.open_nursery() as waiting:
            waiting.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked(0.05)
            denials = nodes.two.areas.app.factors.denials
            await denials.deny(Denial(nodes.one.areas.domain, "ann", DeniedAt.OWN_PAGES))
    assert found == [StepUpState.DENIED]


async def test_the_first_factor_web_over_two_nodes(pair: Pair) -> None:
    """A login without a checked password begins at one node, and its digits are typed at the other, once. The limits of
    a station hold over both nodes, and the user at another station still gets a page."""
    async with web_desk(pair.one) as desk, trio.open_nursery() as nursery:
        with_pages(pair.two, "oidc")
        pair.two.app.factors.sign_ins._site = SITE
        await pair.two.configuration.reload()
        await pair.two.directory.principals.load()
        for each in (pair.one, pair.two):
            await nursery.start(each.notices.run)
            await nursery.start(each.second.run)
        two = Wire(pair.two, nursery)
        _, found = await desk.login()
        proof = await desk.sign_in()
        assert (await desk.type(proof.digits, found, wire=two))[0] == ACCESS_ACCEPT
        assert (await desk.type(proof.digits, found))[0] == ACCESS_REJECT
        applied = [each[1] for each in await outcomes(pair.one)]
        assert (applied.count("challenge"), applied.count("accept")) == (1, 1)
        answers = []
        for number in range(6):
            wire = (desk.wire, two)[number % 2]
            body = at("203.0.113.66", port=f"tunnel {number}")
            answers.append((await exchange(wire, a_login(body, password="x")))[0])
        assert answers == [ACCESS_CHALLENGE] * 2 + [ACCESS_REJECT] * 4
        assert (await exchange(two, a_login(TUNNEL, password="x")))[0] == ACCESS_CHALLENGE
        nursery.cancel_scope.cancel()
