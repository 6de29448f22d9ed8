"""Tests of a push: requests that join it, and requests that must not profit from the approval of another login."""

import time

import pytest
import trio
import trio.testing

from sallyport.areas.login.login import Reason
from sallyport.areas.login.second.running import HELD_S
from sallyport.areas.mfa.provider import Outcome
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT, SharedSecret, decode_reply
from tests.areas import SECRET
from tests.areas.login.eap.sides import new_password
from tests.areas.login.listen.conftest import NAS, Wire
from tests.areas.login.listen.second import (
    OTHER,
    PHONE,
    SESSION,
    STATION,
    a_login,
    answer,
    events,
    exchange,
    joined,
    outcomes,
    prompted,
    script,
    wire,
)
from tests.areas.login.second.scripted import Script
from tests.packets import attributes, chap, pap
from tests.waiting import until

# --- one login, one prompt, one Accept ----------------------------------------------------------------------------


async def test_a_push_is_parked_until_it_is_approved(wire: Wire, script: Script) -> None:
    """After its approval a push is answered with one Accept, and nothing stays pending."""
    datagram = a_login()
    wire.put(datagram)
    await prompted(script)
    await wire.areas.journal.drained()
    assert (wire.auth.in_flight, await events(wire.areas)) == (1, [])
    script.answer(0, Outcome.APPROVED)
    assert (await answer(wire, datagram))[0] == ACCESS_ACCEPT
    await wire.silence()
    assert (wire.auth.in_flight, wire.waiting.now) == (0, 0)
    assert await outcomes(wire.areas) == [("accept", "accept", "", "", "local+scripted")]
    (question,) = script.started
    assert (question.user, question.domain, question.source) == ("ann", "corp", "192.0.2.1")
    assert question.station == "02-00-00-00-00-01"


async def test_the_event_has_the_time_of_the_second_factor(wire: Wire, script: Script) -> None:
    """The time from the question to the answer is stored with the rule that required the second factor. The first
    factor is local, so the login has not waited for it."""
    areas = wire.areas
    rule = await areas.rules.add(areas.domain, RuleFields.model_validate({"name": "staff", "action": "mfa_required"}))
    wire.put(a_login())
    await prompted(script)
    areas.clock.pass_by(4)
    script.answer(0, Outcome.APPROVED)
    await wire.take()
    (event,) = await events(areas)
    assert (event.rule_id, event.rule_name, event.first_us, event.second_us) == (rule, "staff", 0, 4_000_000)


async def test_a_wrong_first_factor_after_the_wait_names_no_rule(wire: Wire, script: Script) -> None:
    """If the password changes while a push is pending, the password has decided, and no rule."""
    areas = wire.areas
    await areas.rules.add(areas.domain, RuleFields.model_validate({"name": "staff", "action": "mfa_required"}))
    wire.put(a_login())
    await prompted(script)
    await new_password(areas)
    script.answer(0, Outcome.APPROVED)
    await wire.take()
    (event,) = await events(areas)
    assert (event.reason, event.rule_id, event.rule_name) == (Reason.WRONG_PASSWORD, 0, "")


async def test_a_push_is_denied(wire: Wire, script: Script) -> None:
    """A denied push is rejected with its own reason, whatever the fallback is."""
    datagram = a_login()
    wire.put(datagram)
    await prompted(script)
    script.answer(0, Outcome.DENIED)
    assert (await answer(wire, datagram))[0] == ACCESS_REJECT
    assert await outcomes(wire.areas) == [("reject", "reject", "", "second factor denied", "local+scripted")]


async def test_the_identical_packet_is_dropped_while_it_waits(wire: Wire, script: Script) -> None:
    """An identical packet sends no second prompt, however often and late it arrives, even after the duplicate window.

    After the answer it gets the same octets again.
    """
    datagram = a_login()
    wire.put(datagram)
    await prompted(script)
    for _ in range(10):
        wire.areas.clock.pass_by(6)
        wire.put(datagram)
    assert (wire.dropped("duplicate"), wire.auth.in_flight) == (10, 1)
    script.answer(0, Outcome.APPROVED)
    first, _ = await wire.take()
    wire.put(datagram)
    assert (await wire.take())[0] == first
    await wire.silence()
    assert (len(script.started), len(await events(wire.areas))) == (1, 1)


@pytest.mark.parametrize("port", [40000, 50000])
async def test_openvpn_joins(wire: Wire, script: Script, port: int) -> None:
    """A request with the same identifier and a new authenticator joins, whether it comes from the same port or another
    one. Only the newest request is answered."""
    source = (NAS[0], port)
    old, new = pap("ann", "hello", SESSION, identifier=9), pap("ann", "hello", SESSION, identifier=9)
    wire.put(old)
    await prompted(script)
    wire.put(new, source=source)
    await joined(wire, 1)
    script.answer(0, Outcome.APPROVED)
    assert (await answer(wire, new, source))[0] == ACCESS_ACCEPT
    await wire.silence()
    assert (len(script.started), len(await events(wire.areas)), wire.auth.in_flight) == (1, 1, 0)


async def test_pam_radius_joins(wire: Wire, script: Script) -> None:
    """Requests with a new identifier and authenticator join: there is one prompt, and one Accept for the newest
    request. Older requests and their retransmissions get no answer."""
    datagrams = [a_login() for _ in range(5)]
    wire.put(datagrams[0])
    await prompted(script)
    for number, datagram in enumerate(datagrams[1:], 1):
        wire.put(datagram, source=(NAS[0], 41000 + number))
        await joined(wire, number)
    wire.put(datagrams[0])
    script.answer(0, Outcome.APPROVED)
    assert (await answer(wire, datagrams[4], (NAS[0], 41004)))[0] == ACCESS_ACCEPT
    await wire.silence()
    wire.put(datagrams[0])
    wire.put(datagrams[2], source=(NAS[0], 41002))
    await wire.silence()
    assert (len(script.started), len(await events(wire.areas)), wire.auth.in_flight) == (1, 1, 0)


@pytest.mark.parametrize("user", ["ann", "stranger"])
@pytest.mark.parametrize("port", [40000, 50000])
async def test_an_unsigned_request_takes_nothing_from_a_signed_one(
    wire: Wire, script: Script, port: int, user: str
) -> None:
    """An unsigned request with the identifier of a pending signed request is a separate login, even if its password is
    right. After the approval the signed request is answered, and so is its retransmission."""
    signed = pap("ann", "hello", SESSION, identifier=9)
    spoofed = pap(user, "hello", SESSION, identifier=9, signed=False)
    wire.put(signed)
    await prompted(script)
    wire.put(spoofed, source=(NAS[0], port))
    if user == "ann":
        await prompted(script, 2)
    else:
        assert (await answer(wire, spoofed, (NAS[0], port)))[0] == ACCESS_REJECT
    wire.put(signed)
    assert wire.dropped("duplicate") == 1
    script.answer(0, Outcome.APPROVED)
    reply, _ = await wire.take()
    assert decode_reply(reply, signed, SharedSecret(SECRET))[0] == ACCESS_ACCEPT
    wire.put(signed)
    assert (await wire.take())[0] == reply


async def test_an_unsigned_copy_of_a_pending_request_is_dropped(wire: Wire, script: Script) -> None:
    """A copy without the signature but with the same authenticator is dropped, because the NAS would accept the reject
    of the copy."""
    signed = pap("ann", "hello", SESSION, identifier=9, authenticator=bytes(16))
    copy = pap("ann", "wrong", SESSION, identifier=9, authenticator=bytes(16), signed=False)
    wire.put(signed)
    await prompted(script)
    wire.put(copy)
    await wire.areas.journal.drained()
    assert (wire.dropped("duplicate"), await events(wire.areas)) == (1, [])
    script.answer(0, Outcome.APPROVED)
    assert (await answer(wire, signed))[0] == ACCESS_ACCEPT


async def test_an_unsigned_request_does_not_displace_another(wire: Wire, script: Script) -> None:
    """Two unsigned requests are both answered, because the service cannot know which one the device sent."""
    device = pap("ann", "hello", SESSION, identifier=9, signed=False)
    spoofed = pap("ann", "wrong", SESSION, identifier=9, signed=False)
    wire.put(device)
    await prompted(script)
    assert (await exchange(wire, spoofed))[0] == ACCESS_REJECT
    wire.put(device)
    assert wire.dropped("duplicate") == 1
    script.answer(0, Outcome.APPROVED)
    assert (await answer(wire, device))[0] == ACCESS_ACCEPT


async def test_retransmits_of_one_wake_up_join(wire: Wire, script: Script) -> None:
    """Two requests of one login that arrive together cause one prompt."""
    first, second = a_login(), a_login()
    wire.put(first, second)
    await prompted(script)
    await joined(wire, 1)
    script.answer(0, Outcome.APPROVED)
    await wire.take()
    await wire.silence()
    assert len(await events(wire.areas)) == 1


async def test_chap_joins_by_the_user(wire: Wire, script: Script) -> None:
    """CHAP requests join although their responses differ. The form of the user name may also differ."""

    def request(user: str) -> bytes:
        return chap(user, "hello", body=SESSION)

    old, new = request("ann"), request("ANN")
    wire.put(old)
    await prompted(script)
    wire.put(new, source=OTHER)
    await joined(wire, 1)
    script.answer(0, Outcome.APPROVED)
    assert (await answer(wire, new, OTHER))[0] == ACCESS_ACCEPT
    await wire.silence()
    assert len(script.started) == 1


async def test_two_sessions_stay_two(wire: Wire, script: Script) -> None:
    """Two sessions each have their own prompt and their own answer."""
    phone, tablet = a_login(), a_login(attributes(**{**PHONE, "ACCT_SESSION_ID": b"session 2"}))
    wire.put(phone)
    await prompted(script)
    wire.put(tablet)
    await prompted(script, 2)
    script.answer(1, Outcome.DENIED)
    assert (await answer(wire, tablet))[0] == ACCESS_REJECT
    script.answer(0, Outcome.APPROVED)
    assert (await answer(wire, phone))[0] == ACCESS_ACCEPT


async def test_a_request_after_the_end_is_a_new_login(
    wire: Wire, script: Script, mock_clock: trio.testing.MockClock
) -> None:
    """A request of the same session is dropped just after the Accept, because it was already on its way. Some seconds
    later it is a new login with its own prompt."""
    mock_clock.rate = 1
    first, second = a_login(), a_login()
    wire.put(first)
    await prompted(script)
    script.answer(0, Outcome.APPROVED)
    assert (await answer(wire, first))[0] == ACCESS_ACCEPT
    wire.put(second)
    await until(lambda: wire.dropped("duplicate") == 1)
    await wire.silence()
    assert (len(script.started), wire.senders.all()) == (1, [])
    mock_clock.jump(HELD_S)
    wire.put(second)
    await prompted(script, 2)
    assert script.started[0].challenge_id != script.started[1].challenge_id
    script.answer(1, Outcome.DENIED)
    assert (await answer(wire, second))[0] == ACCESS_REJECT


async def test_a_request_at_any_moment_of_the_answer(
    wire: Wire, script: Script, mock_clock: trio.testing.MockClock
) -> None:
    """If another request of the session arrives while the answer is decided and stored, there is one prompt and one
    Accept."""
    mock_clock.rate = 1
    for passes in range(24):
        session = attributes(ACCT_SESSION_ID=b"session %d" % passes)
        wire.put(a_login(session))
        await prompted(script, passes + 1)
        await until(lambda: len(script.polled) == passes + 1)  # noqa: B023
        script.answer(passes, Outcome.APPROVED)
        for _ in range(passes):
            await trio.lowlevel.checkpoint()
        wire.put(a_login(session))
        reply, _ = await wire.take()
        assert reply[0] == ACCESS_ACCEPT
        await wire.silence()
        assert len(script.started) == len(await events(wire.areas)) == passes + 1
        mock_clock.jump(61)


async def test_a_login_after_a_denial(wire: Wire, script: Script) -> None:
    """A user who has refused a prompt by mistake may try again at once."""
    for number, (outcome, code) in enumerate(((Outcome.DENIED, ACCESS_REJECT), (Outcome.APPROVED, ACCESS_ACCEPT))):
        login = a_login()
        wire.put(login)
        await prompted(script, number + 1)
        script.answer(number, outcome)
        assert (await answer(wire, login))[0] == code


async def test_a_wrong_password_joins_nothing(wire: Wire, script: Script) -> None:
    """A wrong password is rejected, and the pending login stays pending."""
    right = a_login()
    wire.put(right)
    await prompted(script)
    assert (await exchange(wire, a_login(password="wrong"), OTHER))[0] == ACCESS_REJECT
    script.answer(0, Outcome.APPROVED)
    assert (await answer(wire, right))[0] == ACCESS_ACCEPT


async def test_an_approval_answers_at_once(wire: Wire, script: Script, mock_clock: trio.testing.MockClock) -> None:
    """An approval is answered without waiting for a timer: the answer is sent although the test's clock does not
    advance."""
    mock_clock.rate = 1
    datagram, answers = a_login(), list[int]()
    wire.put(datagram)
    await prompted(script)

    async def take() -> None:
        answers.append((await answer(wire, datagram))[0])

    async with trio.open_nursery() as nursery:
        mock_clock.rate = 0
        nursery.start_soon(take)
        script.answer(0, Outcome.APPROVED)
        patience = time.monotonic() + 10
        while not answers and time.monotonic() < patience:
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert answers == [ACCESS_ACCEPT]


# --- attacks ------------------------------------------------------------------------------------------------------

__all__ = ["script", "wire"]

ATTACKS = {
    "another station": {**PHONE, "CALLING_STATION_ID": b"02-00-00-00-00-66"},
    "another session": {**PHONE, "ACCT_SESSION_ID": b"session 66"},
    "another port": {**PHONE, "NAS_PORT": (66).to_bytes(4)},
    "another port's name": {**PHONE, "NAS_PORT_ID": b"port 66"},
    "an empty station": {**PHONE, "CALLING_STATION_ID": b""},
    "a longer station": {**PHONE, "CALLING_STATION_ID": PHONE["CALLING_STATION_ID"] + b"\0"},
    "no station": {name: value for name, value in PHONE.items() if name != "CALLING_STATION_ID"},
    "no session": {name: value for name, value in PHONE.items() if name != "ACCT_SESSION_ID"},
    "no port": {name: value for name, value in PHONE.items() if name != "NAS_PORT"},
    "no port's name": {name: value for name, value in PHONE.items() if name != "NAS_PORT_ID"},
    "nothing": {},
    "another device": {**PHONE, "NAS_IDENTIFIER": b"another"},
    "another device's address": {**PHONE, "NAS_IP_ADDRESS": bytes((10, 0, 0, 66))},
}


async def attack_gains_nothing(
    wire: Wire, script: Script, victim: bytes, attack: bytes, source: tuple[str, int]
) -> None:
    """Start the victim's login, then the attacker's login.

    Two prompts are sent, and the victim's approval accepts only the victim's login.
    """
    wire.put(victim)
    await prompted(script)
    wire.put(attack, source=source)
    await prompted(script, 2)
    script.answer(0, Outcome.APPROVED)
    assert (await answer(wire, victim))[0] == ACCESS_ACCEPT
    await wire.areas.journal.drained()
    assert wire.auth.in_flight == 1
    script.answer(1, Outcome.DENIED)
    assert (await answer(wire, attack, source))[0] == ACCESS_REJECT
    await wire.silence()


@pytest.mark.parametrize("sent", ATTACKS.values(), ids=ATTACKS)
async def test_an_attacker_behind_the_same_device(
    wire: Wire, script: Script, mock_clock: trio.testing.MockClock, sent: dict[str, bytes]
) -> None:
    """A login that has the password but a different attribute gets its own prompt, both before and after the victim's
    login."""
    mock_clock.rate = 1
    await attack_gains_nothing(wire, script, a_login(), a_login(attributes(**sent)), OTHER)
    script.started.clear()
    mock_clock.jump(HELD_S)
    if sent:
        await attack_gains_nothing(wire, script, a_login(attributes(**sent)), a_login(), OTHER)


async def test_an_attacker_with_an_attribute_more(wire: Wire, script: Script) -> None:
    """If the victim's device sends only its port, a login that also has a station is a separate login."""
    port = {"NAS_PORT": PHONE["NAS_PORT"]}
    more = a_login(attributes(**port, CALLING_STATION_ID=b"02-00-00-00-00-66"))
    await attack_gains_nothing(wire, script, a_login(attributes(**port)), more, OTHER)


async def test_an_attacker_at_another_client(wire: Wire, script: Script) -> None:
    """A login that has the same attributes but comes through another RADIUS client is a separate login."""
    await attack_gains_nothing(wire, script, a_login(), a_login(), ("198.51.100.5", 40000))


async def test_an_attacker_at_another_device_of_a_range(wire: Wire, script: Script) -> None:
    """If a RADIUS client has a range, its devices have separate logins, even if all of them send port 7."""
    port = attributes(NAS_PORT=PHONE["NAS_PORT"])
    victim, attack = a_login(port), a_login(port)
    wire.put(victim, source=("198.51.100.5", 40000))
    await prompted(script)
    wire.put(attack, source=("198.51.100.6", 40000))
    await prompted(script, 2)
    script.answer(0, Outcome.APPROVED)
    assert (await answer(wire, victim, ("198.51.100.5", 40000)))[0] == ACCESS_ACCEPT
    script.answer(1, Outcome.DENIED)
    assert (await answer(wire, attack, ("198.51.100.6", 40000)))[0] == ACCESS_REJECT


async def test_another_user_on_the_same_port(wire: Wire, script: Script) -> None:
    """A login with the same attributes does not join the login of another user."""
    await attack_gains_nothing(wire, script, a_login(), a_login(user="bob"), OTHER)
    assert [each.user for each in script.started] == ["ann", "bob"]


async def test_another_code_appended_to_the_password(wire: Wire, script: Script) -> None:
    """Each code that is appended to a password is checked separately: a wrong code does not join the check of the right
    one."""
    script.gate = trio.Event()
    right, wrong = a_login(password="hello123456"), a_login(password="hello000000")
    wire.put(right)
    wire.put(wrong, source=OTHER)
    await until(lambda: len(script.verified) == 2)
    script.gate.set()
    answers = {to: reply[0] for reply, to in [await wire.take(), await wire.take()]}
    assert answers == {NAS: ACCESS_ACCEPT, OTHER: ACCESS_REJECT}


async def test_a_device_without_session_attributes(wire: Wire, script: Script) -> None:
    """If a device sends no session attribute, its requests never join.

    Even its own retransmissions with another identifier do not join.
    """
    await attack_gains_nothing(wire, script, a_login(b""), a_login(b""), OTHER)


@pytest.mark.parametrize(
    "body",
    [
        attributes(NAS_PORT=bytes(4)),
        attributes(CALLING_STATION_ID=b"192.0.2.1"),
        attributes(CALLING_STATION_ID=b"vpn-1", NAS_IDENTIFIER=b"VPN-1", NAS_PORT=bytes(4)),
        attributes(CALLING_STATION_ID=b" "),
    ],
    ids=["port 0", "its address", "its name", "nobody"],
)
async def test_a_device_with_constant_session_attributes(wire: Wire, script: Script, body: bytes) -> None:
    """Port 0 does not identify a session, nor does the device's own address as the station.

    A second login with such a value does not join.
    """
    await attack_gains_nothing(wire, script, a_login(body), a_login(body), OTHER)


async def test_the_station_alone_is_not_enough_to_join(wire: Wire, script: Script) -> None:
    """A login that has the victim's station but not the other attributes is a separate login."""
    await attack_gains_nothing(wire, script, a_login(), a_login(STATION), OTHER)
