"""Logins over the wire with the service's own factors: the page, its digits, and the ways to cheat."""

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import pytest
import trio

from sallyport.areas.domains.domain import Mode
from sallyport.areas.factors.stepup.service import StepUps
from sallyport.areas.factors.stepup.stepup import Proof, Shown
from sallyport.areas.login.second.prompts import A_MINUTE
from sallyport.areas.mfa.own import ENTER_DIGITS, Own
from sallyport.areas.mfa.provider import Strength
from sallyport.base.errors import Conflict
from sallyport.radius.attributes import REPLY_MESSAGE, STATE
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE, ACCESS_REJECT
from tests.areas import Areas
from tests.areas.factors.stepups import ELSEWHERE, LAPTOP, STATION, STRANGER, with_pages
from tests.areas.login.listen.conftest import Wire
from tests.areas.login.listen.second import SESSION, a_login, events, exchange, outcomes
from tests.areas.login.listen.test_second_factor_restart import restarted
from tests.packets import attributes, chap

VPN = attributes(CALLING_STATION_ID=f"{STATION}[4500]".encode(), NAS_PORT_ID=b"tunnel 7", NAS_IDENTIFIER=b"vpn-1")
"""A login at strongSwan, with the address of the client."""
_CODE = re.compile(rb"/mfa/([0-9A-Z]{10})")


@dataclass
class Desk:
    """Ann at her laptop: the VPN client and the browser. The provider is `own`."""

    wire: Wire
    stepups: StepUps
    code: str = ""

    async def provide(self, **fields: object) -> None:
        """Configure the provider."""
        self.wire.areas.clock.pass_by(0.001)
        await self.wire.areas.providers.set(self.wire.areas.domain, "own", fields, 60)

    async def login(self, body: bytes = VPN, *, signed: bool = True) -> tuple[int, Mapping[int, bytes]]:
        """Log in with the password, and remember the code in the challenge."""
        answer, found = await exchange(self.wire, a_login(body, signed=signed))
        if code := _CODE.search(found.get(REPLY_MESSAGE, b"")):
            self.code = code[1].decode()
        return answer, found

    async def type(
        self, text: str, found: Mapping[int, bytes], body: bytes = VPN, wire: Wire | None = None
    ) -> tuple[int, Mapping[int, bytes]]:
        """Answer a challenge."""
        return await exchange(wire or self.wire, a_login(body + attributes(STATE=found[STATE]), password=text))

    async def open(self, browser: str = LAPTOP, source: str = STATION) -> Shown | None:
        """Open the page."""
        return await self.stepups.opened(self.code, browser, source)

    async def prove(self, browser: str = LAPTOP, source: str = STATION) -> Proof:
        """Open the page, and prove the passkey."""
        shown = await self.open(browser, source)
        assert shown is not None
        return await self.stepups.prove(shown.id, browser, "passkey", Strength.PHISHING_RESISTANT, source)


@pytest.fixture
async def desk(areas: Areas) -> AsyncIterator[Desk]:
    """Yield ann's desk. Ann has the password hello, and her domain enforces."""
    stepups = with_pages(areas)
    await areas.add_user(areas.domain, "ann", b"hello")
    await areas.client("192.0.2.0/24", name="Berlin")
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    Own.empty_s = 0.0
    try:
        async with trio.open_nursery() as nursery:
            desk = Desk(Wire(areas, nursery), stepups)
            await desk.provide()
            yield desk
            nursery.cancel_scope.cancel()
    finally:
        Own.empty_s = 3.0


async def test_a_challenge_shows_an_enrolment_link(desk: Desk) -> None:
    """A user without a factor gets the link in the challenge, and is refused without a factor. With one, the answer to
    the same challenge asks for it. The event says what the challenge has shown."""
    desk.wire.areas.app.factors.challenge_links._site = "https://vpn.example.org"
    await desk.provide(enrolByChallenge="true")
    has = desk.stepups._factors["passkey"]

    async def no(_person: object) -> bool:
        return False

    for factor in desk.stepups._factors:
        desk.stepups.offer(factor, no)
    first, found = await desk.login()
    assert first == ACCESS_CHALLENGE and b"https://vpn.example.org/me/enrol/" in found[REPLY_MESSAGE]
    assert (await desk.type("", found))[0] == ACCESS_REJECT
    _, found = await desk.login()
    desk.stepups.offer("passkey", has)
    answer, found = await desk.type("", found)
    assert answer == ACCESS_CHALLENGE and b"/mfa/" in found[REPLY_MESSAGE]
    desk.code = _CODE.search(found[REPLY_MESSAGE])[1].decode()  # type: ignore[index]
    assert (await desk.type((await desk.prove()).digits, found))[0] == ACCESS_ACCEPT
    logged = await events(desk.wire.areas)
    assert logged[0].detail == "the challenge has shown an enrolment link"


async def test_enrolment_links_count_for_the_prompt_limits(desk: Desk) -> None:
    """A fifth login within a minute gets no link. Before, the device does not count as one without challenges."""
    desk.wire.areas.app.factors.challenge_links._site = "https://vpn.example.org"
    await desk.provide(enrolByChallenge="true")
    desk.stepups._factors.clear()
    answers = [(await desk.login())[0] for _ in range(A_MINUTE + 1)]
    assert answers == [ACCESS_CHALLENGE] * A_MINUTE + [ACCESS_REJECT]


async def test_digits_of_the_page_admit(desk: Desk) -> None:
    """The challenge has the address. The page names the login. Its digits, typed at the prompt, admit ann once."""
    answer, found = await desk.login()
    assert (answer, desk.code != "") == (ACCESS_CHALLENGE, True)
    shown = await desk.open()
    assert shown is not None
    assert (shown.user, shown.device, shown.place, shown.address) == ("ann", "vpn-1", "Berlin", STATION)
    proof = await desk.prove()
    assert (await desk.type(proof.digits, found))[0] == ACCESS_ACCEPT
    assert (await desk.type(proof.digits, found))[0] == ACCESS_REJECT
    assert await outcomes(desk.wire.areas) == [
        ("challenge", "challenge", "", "second factor asked for", "local+own"),
        ("accept", "accept", "", "", "local+own"),
        ("reject", "reject", "", "the challenge is unknown, over or another's", "local"),
    ]
    assert [each.detail or "" for each in await events(desk.wire.areas)] == ["", "passkey, two_channels", ""]
    proofs = {"factor": "passkey", "strength": "two_channels"}
    assert desk.wire.areas.sample("sallyport_stepup_proofs_total", **proofs) == 1


async def test_enter_before_the_digits(desk: Desk) -> None:
    """If ann presses Enter after the proof, the device asks for the digits. Before the proof, it asks again."""
    _, found = await desk.login()
    answer, found = await desk.type("", found)
    assert (answer, desk.code.encode() in found[REPLY_MESSAGE]) == (ACCESS_CHALLENGE, True)
    proof = await desk.prove()
    answer, found = await desk.type("", found)
    assert (answer, found[REPLY_MESSAGE].decode()) == (ACCESS_CHALLENGE, ENTER_DIGITS)
    assert (await desk.type(proof.digits, found))[0] == ACCESS_ACCEPT


async def test_a_proof_admits_nobody_without_digits(desk: Desk) -> None:
    """A victim that proves a forwarded link lets the attacker in only with the digits: three guesses end the login."""
    _, found = await desk.login()
    proof = await desk.prove()
    wrong = "000000" if proof.digits != "000000" else "000001"
    for _ in range(2):
        answer, found = await desk.type(wrong, found)
        assert answer == ACCESS_CHALLENGE
    assert (await desk.type(wrong, found))[0] == ACCESS_REJECT
    shown = await desk.stepups.opened(desk.code, LAPTOP, STATION)
    assert shown is not None
    assert "attempts were wrong" in shown.problem
    assert (await outcomes(desk.wire.areas))[-1] == ("reject", "reject", "", "wrong code", "local+own")


async def test_the_right_digits_after_a_crash(desk: Desk) -> None:
    """A restart between the challenge and the digits does not matter. A restart gives no further guesses either."""
    _, found = await desk.login()
    proof = await desk.prove()
    wrong = "000000" if proof.digits != "000000" else "000001"
    _, found = await desk.type(wrong, found)
    async with restarted(desk.wire) as later:
        with_pages(later.areas)
        answer, found = await desk.type(wrong, found, wire=later)
        assert answer == ACCESS_CHALLENGE
        async with restarted(later) as latest:
            with_pages(latest.areas)
            assert (await desk.type(proof.digits, found, wire=latest))[0] == ACCESS_ACCEPT


async def test_the_address_admits(desk: Desk) -> None:
    """With the binding `address`, ann proves at her laptop and presses Enter."""
    await desk.provide(binding="address")
    _, found = await desk.login()
    await desk.prove()
    assert (await desk.type("", found))[0] == ACCESS_ACCEPT


async def test_the_tunnel_client_endpoint_counts(desk: Desk) -> None:
    """A device that sends a MAC address as Calling-Station-Id may send the address as Tunnel-Client-Endpoint."""
    await desk.provide(binding="address")
    body = SESSION + attributes(TUNNEL_CLIENT_ENDPOINT=b"\x01" + STATION.encode())
    _, found = await desk.login(body)
    await desk.prove()
    assert (await desk.type("", found, body))[0] == ACCESS_ACCEPT


async def test_a_relayed_link(desk: Desk) -> None:
    """The victim of a relayed link is at another address than the attacker's VPN client: no proof is accepted there."""
    await desk.provide(binding="address")
    _, found = await desk.login()
    victim = await desk.open(STRANGER, ELSEWHERE)
    assert victim is not None
    assert (victim.factors, "address" in victim.problem) == ((), True)
    assert not (await desk.prove(STRANGER, ELSEWHERE)).accepted
    assert (await desk.type("", found))[0] == ACCESS_CHALLENGE


async def test_a_moved_browser_is_an_unbound_login(desk: Desk) -> None:
    """The reason of the event is `unbound login` if the proof came from elsewhere."""
    await desk.provide(binding="address")
    _, found = await desk.login()
    shown = await desk.open()
    assert shown is not None
    await desk.stepups.prove(shown.id, LAPTOP, "passkey", Strength.PHISHING_RESISTANT, ELSEWHERE)
    assert (await desk.type("", found))[0] == ACCESS_REJECT
    assert (await outcomes(desk.wire.areas))[-1] == ("reject", "reject", "", "unbound login", "local+own")


@pytest.mark.parametrize(
    ("body", "signed"),
    [
        pytest.param(VPN, False, id="unsigned"),
        pytest.param(SESSION, True, id="MAC address"),
        pytest.param(attributes(CALLING_STATION_ID=b"10.0.0.7", NAS_PORT_ID=b"1"), True, id="private address"),
    ],
)
async def test_an_address_that_cannot_be_compared(desk: Desk, body: bytes, signed: bool) -> None:
    """Such a login is refused at once, and there is no page."""
    await desk.provide(binding="address")
    answer, _ = await desk.login(body, signed=signed)
    assert (answer, desk.code) == (ACCESS_REJECT, "")
    assert (await outcomes(desk.wire.areas))[-1][3] == "unbound login"


async def test_an_unbound_proof_admits(desk: Desk) -> None:
    """With the binding `unbound`, the proof admits, wherever the browser is."""
    await desk.provide(binding="unbound")
    _, found = await desk.login()
    await desk.prove(STRANGER, ELSEWHERE)
    assert (await desk.type("", found))[0] == ACCESS_ACCEPT


async def test_not_me(desk: Desk) -> None:
    """After "This is not me", the login is refused, even though a passkey was proved."""
    await desk.provide(binding="unbound")
    _, found = await desk.login()
    await desk.prove()
    shown = await desk.open()
    assert shown is not None
    await desk.stepups.deny(shown.id, LAPTOP)
    assert (await desk.type("", found))[0] == ACCESS_REJECT
    assert (await outcomes(desk.wire.areas))[-1] == ("reject", "reject", "", "not me", "local+own")


async def test_one_proof_is_one_accept(desk: Desk) -> None:
    """The proof of one login does not admit another login of the same user, nor an answer from another station."""
    await desk.provide(binding="unbound")
    _, found = await desk.login()
    other = attributes(CALLING_STATION_ID=b"198.51.100.8", NAS_PORT_ID=b"tunnel 8")
    mine = desk.code
    _, others = await desk.login(other)
    desk.code = mine
    await desk.prove()
    assert (await desk.type("", others, other))[0] == ACCESS_CHALLENGE
    assert (await desk.type("", found, other))[0] == ACCESS_REJECT
    assert (await desk.type("", found))[0] == ACCESS_ACCEPT


async def test_a_login_by_chap(desk: Desk) -> None:
    """CHAP carries digits and an empty answer."""
    answer, found = await exchange(desk.wire, chap("ann", "hello", body=VPN))
    code = _CODE.search(found[REPLY_MESSAGE])
    assert (answer, code is not None) == (ACCESS_CHALLENGE, True)
    assert code is not None
    desk.code = code[1].decode()
    body = VPN + attributes(STATE=found[STATE])
    answer, found = await exchange(desk.wire, chap("ann", "", body=body))
    assert answer == ACCESS_CHALLENGE
    proof = await desk.prove()
    body = VPN + attributes(STATE=found[STATE])
    assert (await exchange(desk.wire, chap("ann", proof.digits, body=body)))[0] == ACCESS_ACCEPT


async def test_a_third_open_login_gets_no_page(desk: Desk) -> None:
    """An attacker with the password cannot flood ann with pages."""
    bodies = [attributes(CALLING_STATION_ID=f"198.51.100.{n}".encode(), NAS_PORT_ID=b"1") for n in (1, 2, 3)]
    assert [(await desk.login(body))[0] for body in bodies] == [ACCESS_CHALLENGE, ACCESS_CHALLENGE, ACCESS_REJECT]
    assert (await outcomes(desk.wire.areas))[-1][3] == "too many prompts"


async def test_challenges_without_answers_close_no_device(desk: Desk) -> None:
    """People with a password could let challenges at a device run out. Ann still gets one there, and her answer shows
    that the device has challenges."""
    for user in ("bob", "carl", "dora"):
        await desk.wire.areas.add_user(desk.wire.areas.domain, user, b"hello")
        assert (await exchange(desk.wire, a_login(VPN, user=user)))[0] == ACCESS_CHALLENGE
    answer, found = await desk.login()
    assert answer == ACCESS_CHALLENGE
    proof = await desk.prove()
    assert (await desk.type(proof.digits, found))[0] == ACCESS_ACCEPT


async def test_a_restored_backup_ends_the_pages(desk: Desk) -> None:
    """A proof that was given before a restore admits nobody after it."""
    _, found = await desk.login()
    proof = await desk.prove()
    areas = desk.wire.areas
    await areas.store.write(lambda tx: areas.app.areas.void(tx, revoke_tokens=False))
    areas.second.forget()
    assert (await desk.type(proof.digits, found))[0] == ACCESS_REJECT
    assert await desk.open() is None


async def test_pages_are_needed(areas: Areas) -> None:
    """The provider cannot be set to factors that need pages if the service has none."""
    with pytest.raises(Conflict, match="people_bind"):
        await areas.providers.set(areas.domain, "own", {}, 60)
    await areas.providers.set(areas.domain, "own", {"factors": "totp"}, 60)
