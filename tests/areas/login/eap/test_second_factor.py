"""Tests of a second factor inside EAP: a push while the client waits, a code that is appended to the password, and a
code that GTC asks for."""

import pytest
import trio

from sallyport.areas.domains.domain import Fallback, Mode
from sallyport.areas.domains.service import Update
from sallyport.areas.factors.remembered.station import RememberedStation
from sallyport.areas.login.login import Reason
from sallyport.areas.mfa.provider import Enrolment, Outcome, ProviderError, Strength
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.base.trace import Trace, current
from sallyport.radius.eap import packet as eap
from sallyport.radius.eap.packet import IDENTITY, RESPONSE, Packet, encode
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE, ACCESS_REJECT
from tests.areas.login.eap.conftest import Nas
from tests.areas.login.eap.sides import ANN, new_password, peap, ttls
from tests.areas.login.listen.second import events, prompted
from tests.areas.login.second.scripted import NAME, Script, attached
from tests.packets import attributes
from tests.radius.eap.supplicant import (
    GtcSide,
    MsChapSide,
    Supplicant,
    TlsSide,
    in_peap,
    in_ttls_eap,
    in_ttls_pap,
    silent,
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


async def test_a_code_inside_eap_has_its_strength(nas: Nas, script: Script) -> None:
    """The provider of a rule asks inside EAP, and the strength of its answer is compared at the end of EAP. A user with
    a weak factor is not asked."""
    areas = nas.wire.areas
    keys = Script(name="keys", strongest=Strength.TWO_CHANNELS, strength=Strength.TWO_CHANNELS, begins=Outcome.CODE)
    await keys.attach_beside(areas)
    fields = {"name": "wifi", "action": "mfa_required", "provider": "keys", "strength": "two_channels"}
    await areas.rules.add(areas.domain, RuleFields.model_validate(fields))
    for side in TYPED.values():
        keys.right.add("123456")
        assert (await nas.log_in(side(b"hello", b"123456"))).code == ACCESS_ACCEPT
    assert (len(keys.started), script.disturbed) == (2, False)
    keys.strength = Strength.ANY
    assert (await nas.log_in(TYPED["eap-peap-gtc"](b"hello", b"123456"))).code == ACCESS_REJECT
    assert len(keys.started) == 2
    keys.enrolment, keys.right = Enrolment.UNKNOWN, {"123456"}
    assert (await nas.log_in(TYPED["eap-peap-gtc"](b"hello", b"123456"))).code == ACCESS_REJECT
    assert len(keys.started) == 3
    assert [reason for reason, *_ in await nas.outcomes()][2:] == [Reason.NOT_STRONG_ENOUGH] * 2


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
async def test_a_second_factor_inside_eap_has_one_trace(nas: Nas, script: Script, method: str) -> None:
    """The prompt and the code are sent in different rounds. The provider learns the trace of the event in both."""
    script.begins = Outcome.CODE
    traces: list[Trace | None] = []
    script.busy = lambda: traces.append(current())
    await nas.log_in(TYPED[method](b"hello", b"123456"))
    (event,) = await events(nas.wire.areas)
    assert len(script.started) == len(script.verified) == 1
    assert [each and each.id for each in traces] == [event.trace_id] * 2 and traces[0] == traces[1]


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


AT_WIFI = attributes(CALLING_STATION_ID=b"00-1A-2B-3C-4D-5E", NAS_PORT_TYPE=(19).to_bytes(4))


@pytest.fixture
async def remembers(nas: Nas, script: Script) -> Script:
    """Return the script of a strong provider, in a domain that remembers stations."""
    script.strength = script.strongest = Strength.TWO_CHANNELS
    await script.attach(nas.wire.areas)
    domain = nas.wire.areas.domain
    await nas.wire.areas.domains.update(domain, Update(settings={"remember_h": 24}))
    return script


async def last_event(nas: Nas) -> tuple[str, str, str]:
    """Return the reason, the factor and the detail of the newest event."""
    event = (await events(nas.wire.areas))[-1]
    return event.reason, event.factor, event.detail


@pytest.mark.parametrize("method", TYPED)
async def test_a_remembered_station_types_no_code(nas: Nas, remembers: Script, method: str) -> None:
    """The method asks for a code once. At the next login, the station is remembered, and the event says so."""
    remembers.begins = Outcome.CODE
    assert (await nas.log_in(TYPED[method](b"hello", b"123456"), body=AT_WIFI)).code == ACCESS_ACCEPT
    ended = await nas.log_in(TYPED[method](b"hello"), body=AT_WIFI)
    assert (ended.code, len(remembers.started)) == (ACCESS_ACCEPT, 1)
    reason, factor, detail = await last_event(nas)
    assert (reason, factor) == ("", "local+remembered") and detail.startswith("remembered station")
    remembers.right.add("654321")
    elsewhere = attributes(CALLING_STATION_ID=b"00-1A-2B-3C-4D-5F", NAS_PORT_TYPE=(19).to_bytes(4))
    assert (await nas.log_in(TYPED[method](b"hello", b"654321"), body=elsewhere)).code == ACCESS_ACCEPT
    assert len(remembers.started) == 2


async def test_a_remembered_station_gets_no_push(nas: Nas, remembers: Script) -> None:
    """After PEAP with MSCHAPv2, a push is sent once. A wrong password is refused all the same."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(approve, remembers)
        assert (await nas.log_in(peap(b"hello"), body=AT_WIFI)).code == ACCESS_ACCEPT
    assert (await nas.log_in(peap(b"hello"), body=AT_WIFI)).code == ACCESS_ACCEPT
    assert (await last_event(nas))[:2] == ("", "local+remembered")
    assert (await nas.log_in(peap(b"wrong"), body=AT_WIFI)).code == ACCESS_REJECT
    assert len(remembers.started) == 1


@pytest.mark.parametrize("method", TYPED)
async def test_a_login_that_monitor_mode_rehearses(nas: Nas, remembers: Script, method: str) -> None:
    """The rounds of one conversation count as one login: the first would be asked, the second would not."""
    areas = nas.wire.areas
    await areas.domains.set_mode([areas.domain], Mode.MONITOR)
    await areas.second.enrolments.find_out(attached(areas), areas.tenant, (areas.domain, "ann"), "ann")
    for _ in range(2):
        assert (await nas.log_in(TYPED[method](b"hello"), body=AT_WIFI)).code == ACCESS_ACCEPT
    first, second = (each.would_have_been for each in await events(areas))
    assert (first, second, remembers.disturbed) == ("challenge", "accept", False)


async def test_a_remembered_certificate(nas: Nas, remembers: Script) -> None:
    """A client certificate is a station wherever it logs in. Another certificate of the same user is asked."""
    first, second = (nas.authority.certificate("ann") for _ in range(2))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(approve, remembers)
        assert (await nas.log_in(TlsSide(eap.TLS, silent, shows=first))).code == ACCESS_ACCEPT
    assert (await nas.log_in(TlsSide(eap.TLS, silent, shows=first))).code == ACCESS_ACCEPT
    assert (await last_event(nas))[:2] == ("", "local+remembered")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(approve, remembers, 1)
        assert (await nas.log_in(TlsSide(eap.TLS, silent, shows=second))).code == ACCESS_ACCEPT
    (kept, _), total = await areas_stations(nas)
    assert (total, kept.kind, len(kept.station), kept.client_name) == (2, "certificate", 64, "")


async def areas_stations(nas: Nas) -> tuple[list[RememberedStation], int]:
    """Return the remembered stations of the domain, and their number."""
    areas = nas.wire.areas
    return await areas.app.factors.remembered.page(areas.domain, "", 0, 10)
