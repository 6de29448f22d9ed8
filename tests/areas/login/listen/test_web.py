"""The first factor `web` over the wire: only the company's identity provider admits, and nothing else does."""

from collections.abc import AsyncIterator

import pytest

from sallyport.areas.domains.domain import Fallback, Mode
from sallyport.areas.domains.repo import Update
from sallyport.areas.factors.stepup.stepup import MAX_OPEN
from sallyport.areas.login.first.web import NO_EAP
from sallyport.areas.mfa.fields import Binding
from sallyport.base.errors import Forbidden
from sallyport.radius.attributes import REPLY_MESSAGE, STATE
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE, ACCESS_REJECT
from tests.areas import Areas
from tests.areas.factors.stepups import ELSEWHERE, LAPTOP, STRANGER, with_pages
from tests.areas.login.listen.second import a_login, events, exchange, outcomes
from tests.areas.login.listen.test_second_factor_restart import restarted
from tests.areas.login.listen.web import ANN, ASKED, EVE, OIDS, OVER, VPN, WebDesk, at, web_desk
from tests.packets import access_request, attributes, chap, mschap2

HOURS = 3600


@pytest.fixture
async def desk(areas: Areas) -> AsyncIterator[WebDesk]:
    """Yield ann's desk."""
    async with web_desk(areas) as desk:
        yield desk


async def test_the_identity_provider_admits_once(desk: WebDesk) -> None:
    """Whatever password is sent, the challenge has a page. The sign-in shows digits, which admit ann once. The groups
    of the directory apply to the rules."""
    rule = await desk.add_rule(name="vpn", action="mfa_required", groups=["vpn"], vlan="20")
    answer, found = await desk.login()
    assert (answer, desk.code != "") == (ACCESS_CHALLENGE, True)
    shown = await desk.open()
    assert shown is not None
    assert (shown.user, shown.factors, shown.is_checked) == (ANN, ("oidc",), False)
    proof = await desk.prove_as(shown, ANN)
    assert (await desk.type(proof.digits, found))[0] == ACCESS_ACCEPT
    assert (await desk.type(proof.digits, found))[0] == ACCESS_REJECT
    assert await outcomes(desk.areas) == [
        ("challenge", "challenge", "", ASKED, "web+own"),
        ("accept", "accept", "", "", "web+own"),
        ("reject", "reject", "", OVER, "web"),
    ]
    assert (await events(desk.areas))[1].rule_id == rule


async def test_the_address_admits(desk: WebDesk) -> None:
    """With the binding `address`, ann signs in at her laptop and presses Enter. A browser elsewhere cannot."""
    await desk.provide(binding="address")
    _, found = await desk.login()
    assert not (await desk.open(STRANGER, ELSEWHERE)).factors  # type: ignore[union-attr]
    await desk.sign_in()
    assert (await desk.type("", found))[0] == ACCESS_ACCEPT


async def test_another_user_at_the_identity_provider(desk: WebDesk) -> None:
    """Eve has an account, and types ann's name. Her own sign-in confirms nothing, and no digits are shown."""
    _, found = await desk.login()
    with pytest.raises(Forbidden, match="another user"):
        await desk.sign_in(EVE)
    for text in ("", "000000"):
        answer, found = await desk.type(text, found)
        assert answer == ACCESS_CHALLENGE
    assert not any(each[1] == "accept" for each in await outcomes(desk.areas))


async def test_a_guessed_name_locks_nobody(desk: WebDesk) -> None:
    """A thousand logins with ann's name from one station, with wrong digits for each page: few pages open, and ann, at
    her own station, is neither locked nor without a page."""
    attacker, answers = at("203.0.113.66"), list[int]()
    for _ in range(1000):
        answer, found = await desk.login(attacker)
        answers.append(answer)
        if answer == ACCESS_CHALLENGE:
            for _ in range(3):
                answer, found = await desk.type("123456", found, attacker)
    assert answers.count(ACCESS_CHALLENGE) <= 4
    assert {each.reason for each in (await events(desk.areas))[-900:]} <= {
        "too many prompts",
        "station locked out after failures",
    }
    _, found = await desk.login()
    proof = await desk.sign_in()
    assert (await desk.type(proof.digits, found))[0] == ACCESS_ACCEPT
    lockouts, _ = await desk.areas.lockouts.page(desk.areas.domain, "", offset=0, limit=100)
    assert [each.kind for each in lockouts if each.kind == "user"] == []


async def test_a_station_guesses_many_names(desk: WebDesk) -> None:
    """A station opens a limited number of pages, whatever names it sends."""
    assert desk.graph is not None
    for number in range(70):
        desk.graph.add_user(f"00000000-0000-4000-8000-{number:012}", f"user{number}@corp.example")
    await desk.read_directory()
    answers = [(await desk.login(at("203.0.113.66"), user=f"user{number}"))[0] for number in range(70)]
    assert (answers.count(ACCESS_CHALLENGE), answers[-1]) == (60, ACCESS_REJECT)
    assert (await desk.login())[0] == ACCESS_CHALLENGE


async def test_open_pages_of_others_do_not_count(desk: WebDesk) -> None:
    """Two pages of ann are open from another station, and a browser there has opened them. She still gets one, and the
    expired ones begin no pause."""
    for number in range(MAX_OPEN):
        await desk.login(at("203.0.113.66", port=f"{number}"))
        assert await desk.open(STRANGER, ELSEWHERE) is not None
    answer, _ = await desk.login(at("203.0.113.66", port="3"))
    assert (answer, await desk.reason()) == (ACCESS_REJECT, "too many prompts")
    assert (await desk.login())[0] == ACCESS_CHALLENGE
    for _ in range(3):
        desk.areas.clock.pass_by(200)
        assert (await desk.login(at("203.0.113.66")))[0] == ACCESS_CHALLENGE
        assert await desk.open(STRANGER, ELSEWHERE) is not None
    assert (await desk.login())[0] == ACCESS_CHALLENGE


async def test_not_me_ends_this_login_alone(desk: WebDesk) -> None:
    """An attacker opens a page for ann, and says "not me". Nothing follows for ann: no lock, no pause, no audit entry
    about a known password; her own login goes on."""
    await desk.areas.domains.update(desk.areas.domain, Update(settings={"lock_on_not_me": True}))
    _, mine = await desk.login()
    code = desk.code
    _, others = await desk.login(at("203.0.113.66"))
    shown = await desk.open(STRANGER, ELSEWHERE)
    assert shown is not None
    denied = await desk.stepups.deny(shown.id, STRANGER)
    assert denied is not None and denied.state == "denied"
    assert (await desk.type("", others, at("203.0.113.66")))[0] == ACCESS_REJECT
    assert await desk.reason() == "not me"
    desk.code = code
    proof = await desk.sign_in()
    assert (await desk.type(proof.digits, mine))[0] == ACCESS_ACCEPT
    assert (await desk.areas.lockouts.page(desk.areas.domain, "", offset=0, limit=9))[1] == 0


async def test_a_denied_confirmed_login(desk: WebDesk) -> None:
    """Ann has signed in for a forwarded link, and the login has continued. Her "not me" counts: it was her browser."""
    _, found = await desk.login()
    proof = await desk.sign_in()
    assert (await desk.type(proof.digits, found))[0] == ACCESS_ACCEPT
    shown = await desk.open()
    assert shown is not None
    await desk.stepups.deny(shown.id, LAPTOP)
    assert (await desk.login())[0] == ACCESS_REJECT


@pytest.mark.parametrize("mode", Mode)
async def test_no_mode_and_no_fallback_admits(desk: WebDesk, mode: Mode) -> None:
    """Monitor mode decides as enforce mode, and the fallback `allow` has no effect: also if the identity provider's
    configuration is gone, and during break-glass."""
    areas = desk.areas
    await areas.domains.set_mode([areas.domain], mode, Fallback.ALLOW)
    hints = " ".join(areas.domains.warnings(areas.domains.table.present(areas.domain)))
    assert ("monitor mode" in hints, "fallbackAction allow" in hints) == (mode is Mode.MONITOR, True)
    assert (await desk.login())[0] == ACCESS_CHALLENGE
    await areas.store.write(lambda tx: tx.execute("delete from mfa_providers"))
    await areas.configuration.reload()
    assert (await desk.login())[0] == ACCESS_REJECT
    assert await desk.reason() == "no provider"
    await areas.domains.break_glass(Fallback.ALLOW)
    assert (await desk.login())[0] == ACCESS_REJECT


async def test_a_rule_that_allows_does_not_admit(desk: WebDesk) -> None:
    """Even if an `allow` rule is in the store, it demands the identity provider."""
    rule = await desk.add_rule(name="vpn", action="mfa_required", groups=["vpn"])
    await desk.areas.store.write(lambda tx: tx.execute("update login_rules set action = 'allow' where id = :i", i=rule))
    await desk.areas.configuration.reload()
    assert (await desk.login())[0] == ACCESS_CHALLENGE
    await desk.areas.store.write(lambda tx: tx.execute("update login_rules set action = 'block' where id = :i", i=rule))
    await desk.areas.configuration.reload()
    assert (await desk.login())[0] == ACCESS_REJECT


@pytest.mark.parametrize(
    "changed",
    [{"binding": "unbound"}, {"factors": "oidc,totp"}, {"userIs": "name", "userClaim": "preferred_username"}],
    ids=["unbound", "another factor", "by name"],
)
async def test_a_provider_that_does_not_fit_admits_nobody(desk: WebDesk, changed: dict[str, object]) -> None:
    """If another node changes the provider while this one sets the first factor, the login is refused without a
    page."""
    desk.areas.providers.is_web = lambda _tx, _domain: False
    await desk.provide(**changed)
    assert (await desk.login())[0] == ACCESS_REJECT
    assert await desk.reason() == "no identity provider has confirmed the user"
    found = desk.areas.domains.table.present(desk.areas.domain)
    assert any("admits nobody" in each for each in desk.areas.domains.warnings(found))


async def test_a_remembered_station_does_not_admit(desk: WebDesk) -> None:
    """The domain remembers stations. After a confirmed login from a switch port, the next one asks again."""
    await desk.areas.domains.update(desk.areas.domain, Update(settings={"remember_h": 24}))
    body = attributes(
        CALLING_STATION_ID=b"00-11-22-33-44-55", NAS_PORT_TYPE=(15).to_bytes(4), NAS_PORT_ID=b"7", NAS_IDENTIFIER=b"sw"
    )
    for _ in range(2):
        answer, found = await desk.login(body)
        assert answer == ACCESS_CHALLENGE
        proof = await desk.sign_in()
        assert (await desk.type(proof.digits, found, body))[0] == ACCESS_ACCEPT
        desk.areas.clock.pass_by(1)


async def test_a_listed_station_is_not_admitted(desk: WebDesk) -> None:
    """MAC bypass admits nobody in such a domain: no identity provider can confirm a station."""
    mac = "001122334455"
    await desk.areas.bypass.add(desk.areas.domain, [mac])
    assert (await desk.login(attributes(CALLING_STATION_ID=b"00-11-22-33-44-55"), user=mac, password=mac))[0] == (
        ACCESS_REJECT
    )
    assert await desk.reason() == "unknown user"


async def test_only_signed_pap(desk: WebDesk) -> None:
    """CHAP, MS-CHAPv2 and unsigned requests are refused, each with a reason."""
    assert (await desk.ask(chap("ann", "hello", body=VPN)))[0] == ACCESS_REJECT
    assert (await events(desk.areas))[-1].detail.endswith("use PAP: the user signs in on a page")
    assert (await desk.ask(mschap2("ann", "hello", body=VPN)))[0] == ACCESS_REJECT
    assert await desk.reason() == "the domain's first factor cannot check this kind of login"
    assert (await desk.login(signed=False))[0] == ACCESS_REJECT
    assert await desk.reason() == "a request without a checked password is not signed"


async def test_no_eap(desk: WebDesk) -> None:
    """A login by EAP is refused at its first message, before a TLS handshake."""
    identity = b"\x02\x01\x00\x08\x01ann"
    assert (await desk.ask(access_request(attributes(USER_NAME=b"ann", EAP_MESSAGE=identity) + VPN)))[0] == (
        ACCESS_REJECT
    )
    event = (await events(desk.areas))[-1]
    assert (event.reason, event.detail) == ("the domain's first factor cannot check this kind of login", NO_EAP)


async def test_a_person_without_an_active_account(desk: WebDesk) -> None:
    """An unknown name, a disabled account and old data of the directory are refused before a page exists. A person who
    is disabled after the sign-in is refused too."""
    assert desk.graph is not None
    assert (await desk.login(user="nobody"))[0] == ACCESS_REJECT
    assert await desk.reason() == "unknown user"
    _, found = await desk.login()
    proof = await desk.sign_in()
    desk.graph.add_user(OIDS[ANN], ANN, accountEnabled=False)
    await desk.read_directory()
    assert (await desk.type(proof.digits, found))[0] == ACCESS_REJECT
    assert await desk.reason() == "account disabled"
    assert (await desk.login())[0] == ACCESS_REJECT
    desk.areas.clock.pass_by(25 * HOURS)
    assert (await desk.login(user="eve"))[0] == ACCESS_REJECT
    assert "too old" in await desk.reason()


async def test_a_name_that_moves_to_another_account(desk: WebDesk) -> None:
    """Between the challenge and the digits, the name is given to another account: the login ends."""
    assert desk.graph is not None
    _, found = await desk.login()
    proof = await desk.sign_in()
    desk.graph.add_user(OIDS[ANN], "ann.old@corp.example")
    desk.graph.add_user("11111111-0b1d-4c55-9d0e-6f1a2b3c4d5e", ANN)
    await desk.read_directory()
    assert (await desk.type(proof.digits, found))[0] == ACCESS_REJECT


async def test_a_device_that_shows_no_challenge(desk: WebDesk) -> None:
    """With the binding `address`, a station without a global address gets no page."""
    await desk.provide(binding="address")
    assert (await desk.login(at("10.0.0.7")))[0] == ACCESS_REJECT
    assert await desk.reason() == "unbound login"


async def test_a_restart_keeps_one_prompt_and_one_accept(desk: WebDesk) -> None:
    """A restart between the challenge and the sign-in, and another one before the digits, change nothing."""
    _, found = await desk.login()
    async with restarted(desk.wire) as later:
        with_pages(later.areas, "oidc")
        await later.areas.directory.principals.load()
        proof = await desk.sign_in()
        async with restarted(later) as latest:
            with_pages(latest.areas, "oidc")
            await latest.areas.directory.principals.load()
            assert (await desk.type(proof.digits, found, wire=latest))[0] == ACCESS_ACCEPT
            assert (await desk.type(proof.digits, found, wire=latest))[0] == ACCESS_REJECT
    applied = [each[1] for each in await outcomes(desk.areas)]
    assert (applied.count("challenge"), applied.count("accept")) == (1, 1)


async def test_a_retransmission_opens_no_second_page(desk: WebDesk) -> None:
    """The same packet twice has one challenge."""
    datagram = a_login(VPN, password="x")
    first = await exchange(desk.wire, datagram)
    again = await exchange(desk.wire, datagram)
    assert first[1][STATE] == again[1][STATE]
    assert first[1][REPLY_MESSAGE] == again[1][REPLY_MESSAGE]
    assert len(await events(desk.areas)) == 1


def test_all_bindings_are_decided() -> None:
    """A new binding must be accepted or refused by `Own.web_problem`."""
    assert set(Binding) == {Binding.CODE, Binding.ADDRESS, Binding.UNBOUND}
