"""Tests of a second factor inside EAP: a push while the client waits, a code that is appended to the password, and a
code that GTC asks for."""

import pytest
import trio

from sallyport.areas.domains.domain import Fallback, Mode
from sallyport.areas.login.login import Reason
from sallyport.areas.mfa.provider import Outcome, ProviderError
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.radius.eap import packet as eap
from sallyport.radius.eap.packet import IDENTITY, RESPONSE, Packet, encode
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE, ACCESS_REJECT
from tests.areas.login.eap.conftest import Nas
from tests.areas.login.eap.sides import ANN, new_password, peap, ttls
from tests.areas.login.listen.second import events, prompted
from tests.areas.login.second.scripted import NAME, Script
from tests.radius.eap.supplicant import (
    GtcSide,
    MsChapSide,
    Supplicant,
    TlsSide,
    in_peap,
    in_ttls_eap,
    in_ttls_pap,
)
from tests.radius.eap.test_methods import msk

TYPED = {
    "eap-peap-gtc": lambda *typed: TlsSide(eap.PEAP, in_peap(ANN, GtcSide(*typed))),
    "eap-ttls-eap-gtc": lambda *typed: ttls(in_ttls_eap(ANN, GtcSide(*typed))),
}


async def test_a_push_while_the_client_waits(nas: Nas, script: Script) -> None:
    """After EAP has succeeded a push is sent to the inner user. When it is approved, the Accept contains the keys."""
    side = peap(b"hello")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(approve, script)
        ended = await nas.log_in(side)
    assert (ended.code, ended.eap[0], ended.keys) == (ACCESS_ACCEPT, eap.SUCCESS, msk(side))
    assert [each.user for each in script.started] == ["ann"]
    assert await nas.outcomes() == [("", "ann", "eap-peap-mschapv2")]


async def test_the_event_has_the_rule_and_the_time_of_the_second_factor(nas: Nas, script: Script) -> None:
    """The user is asked in an earlier round than the last one. The event of a refused login has the rule and the time
    of this round too."""
    areas = nas.wire.areas
    fields = {"name": "wifi", "action": "mfa_required", "users": ["ann"]}
    rule = await areas.rules.add(areas.domain, RuleFields.model_validate(fields))
    script.begins = Outcome.CODE
    for code in (b"123456", b"000000"):
        await nas.log_in(TYPED["eap-peap-gtc"](b"hello", code))
    right, wrong = await events(areas)
    assert (right.reason, wrong.reason) == ("", Reason.WRONG_CODE)
    for event in (right, wrong):
        assert (event.rule_id, event.rule_name, event.first_us) == (rule, "wifi", 0)
        assert event.second_us > 0


async def approve(script: Script, number: int = 0) -> None:
    """Approve the prompt with that number."""
    await prompted(script, number + 1)
    script.answer(number, Outcome.APPROVED)


async def test_a_password_that_changes_while_a_push_waits(nas: Nas, script: Script) -> None:
    """If the password changes while a push is pending, a later approval does not help and the login is rejected."""

    async def change_and_approve() -> None:
        await prompted(script)
        await new_password(nas.wire.areas)
        script.answer(0, Outcome.APPROVED)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(change_and_approve)
        assert (await nas.log_in(peap(b"hello"))).code == ACCESS_REJECT
    assert [reason for reason, *_ in await nas.outcomes()] == [Reason.WRONG_PASSWORD]


async def test_a_code_appended_to_the_password(nas: Nas, script: Script) -> None:
    """If the password itself is sent in the tunnel, a code may be appended to it."""
    script.begins = Outcome.CODE
    ended = await nas.log_in(ttls(in_ttls_pap(ANN, b"hello123456")))
    assert (ended.code, [code for code, _ in script.verified]) == (ACCESS_ACCEPT, ["123456"])
    ended = await nas.log_in(TlsSide(eap.PEAP, in_peap(ANN, GtcSide(b"hello000000"))))
    assert ended.code == ACCESS_REJECT
    assert [reason for reason, *_ in await nas.outcomes()] == ["", "wrong code"]


async def test_a_code_that_cannot_be_typed(nas: Nas, script: Script) -> None:
    """If only a code is possible and the EAP method cannot ask for one, the login is rejected.

    The event gives that reason.
    """
    script.begins = Outcome.CODE
    ended = await nas.log_in(peap(b"hello"))
    assert (ended.code, ended.eap[0]) == (ACCESS_REJECT, eap.FAILURE)
    assert [reason for reason, *_ in await nas.outcomes()] == [Reason.TAKES_NO_CODE]


@pytest.mark.parametrize("method", TYPED)
async def test_a_code_is_asked_for_by_gtc(nas: Nas, script: Script, method: str) -> None:
    """After the password GTC shows the provider's prompt.

    A right code gets an Accept with keys and causes one event.
    """
    script.begins, script.text = Outcome.CODE, "Code of your token"
    areas = nas.wire.areas
    fields = {"name": "a", "action": "mfa_required", "users": ["ann"], "vlan": "7"}
    await areas.rules.add(areas.domain, RuleFields.model_validate(fields))
    side = TYPED[method](b"hello", b"123456")
    ended = await nas.log_in(side)
    assert (ended.code, ended.keys, ended.vlan) == (ACCESS_ACCEPT, msk(side), b"7")
    assert [code for code, _ in script.verified] == ["123456"]
    assert await nas.outcomes() == [("", "ann", method)]


@pytest.mark.parametrize("method", TYPED)
async def test_an_approval_lets_in_once(nas: Nas, script: Script, method: str) -> None:
    """If the last response and its State are sent in a new request, the code does not get a second Accept."""
    script.begins = Outcome.CODE
    supplicant, state = Supplicant(ANN, TYPED[method](b"hello", b"123456")), b""
    response = encode(Packet(RESPONSE, 0, IDENTITY, ANN))
    codes = []
    while ACCESS_REJECT not in codes and codes.count(ACCESS_ACCEPT) < 2:
        datagram = nas.request(response, ANN, state)
        nas.wire.put(datagram)
        ended, following = await nas.answer(datagram)
        codes.append(ended.code)
        if ended.code == ACCESS_CHALLENGE:
            response, state = supplicant.respond(ended.eap), following
    assert codes[-2:] == [ACCESS_ACCEPT, ACCESS_REJECT]
    assert [reason for reason, *_ in await nas.outcomes()] == ["", Reason.CHALLENGE_OVER]


@pytest.mark.parametrize("method", TYPED)
async def test_a_wrong_code(nas: Nas, script: Script, method: str) -> None:
    """A wrong code ends the login, counts as a failure and causes one event.

    After a wrong password no code is asked for.
    """
    script.begins = Outcome.CODE
    assert (await nas.log_in(TYPED[method](b"wrong"))).code == ACCESS_REJECT
    assert script.started == []
    for _ in range(2):
        assert (await nas.log_in(TYPED[method](b"hello", b"000000"))).code == ACCESS_REJECT
    assert (await nas.log_in(TYPED[method](b"hello", b"123456"))).code == ACCESS_REJECT
    reasons = [reason for reason, *_ in await nas.outcomes()]
    assert reasons == ["wrong password", "wrong code", "wrong code", "locked out after failures"]


async def test_a_push_while_gtc_waits(nas: Nas, script: Script) -> None:
    """A push is sent once, only after a right password."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(approve, script)
        ended = await nas.log_in(TYPED["eap-peap-gtc"](b"hello"))
    assert ended.code == ACCESS_ACCEPT
    assert len(script.started) == 1
    assert await nas.outcomes() == [("", "ann", "eap-peap-gtc")]


@pytest.mark.parametrize(("fallback", "code"), [(Fallback.DENY, ACCESS_REJECT), (Fallback.ALLOW, ACCESS_ACCEPT)])
async def test_an_unreachable_provider(nas: Nas, script: Script, fallback: Fallback, code: int) -> None:
    """The fallback of the domain also applies inside GTC."""
    areas = nas.wire.areas
    script.fails = ProviderError("away")
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, fallback=fallback)
    assert (await nas.log_in(TYPED["eap-peap-gtc"](b"hello"))).code == code
    assert [reason for reason, *_ in await nas.outcomes()] == [Reason.UNREACHABLE]


async def test_monitor_mode_sends_no_push(nas: Nas, script: Script) -> None:
    """In a monitored domain no push is sent. The event has the decision of enforce mode."""
    areas = nas.wire.areas
    await areas.domains.set_mode([areas.domain], Mode.MONITOR)
    assert (await nas.log_in(TYPED["eap-peap-gtc"](b"hello"))).code == ACCESS_ACCEPT
    assert not script.disturbed
    (event,) = await events(areas)
    assert (event.applied_decision, event.would_have_been != "") == ("accept", True)


@pytest.mark.parametrize(("typed", "would"), [(b"hello", "reject"), (b"hello123456", "challenge")])
async def test_monitoring_sees_a_code_appended_to_the_password(
    nas: Nas, script: Script, typed: bytes, would: str
) -> None:
    """If only a code is possible, monitor mode records a reject for TTLS-PAP, which cannot ask for a code.

    If a code is appended to the password, it records an accept.
    """
    areas = nas.wire.areas
    setattr(areas.kinds[NAME], "only_codes", True)  # noqa: B010  a provider may lack the attribute
    await areas.domains.set_mode([areas.domain], Mode.MONITOR)
    assert (await nas.log_in(ttls(in_ttls_pap(ANN, typed)))).code == ACCESS_ACCEPT
    (event,) = await events(areas)
    assert event.would_have_been == would


async def test_a_session_that_is_resumed_asks_again(nas: Nas, script: Script) -> None:
    """A resumed session replaces only the password: each login asks for the second factor."""
    before: TlsSide | None = None
    for number in range(2):
        side = TlsSide(eap.PEAP, in_peap(ANN, MsChapSide(ANN, b"hello")), before=before)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(approve, script, number)
            assert (await nas.log_in(side)).code == ACCESS_ACCEPT
        before = side
    assert [method for *_, method in await nas.outcomes()] == ["eap-peap-mschapv2", "eap-peap-resumed"]
