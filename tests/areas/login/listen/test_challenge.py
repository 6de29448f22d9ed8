"""Tests of answers to an Access-Challenge: an answer counts once, in time, and only from the same user, station and
client."""

import pytest
import trio

from sallyport.areas.domains.domain import Fallback, Mode
from sallyport.areas.events.event import EventRow
from sallyport.areas.mfa.provider import Outcome
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.radius.attributes import REPLY_MESSAGE, STATE
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE, ACCESS_REJECT
from tests.areas import Areas
from tests.areas.login.listen.conftest import NAS, Wire
from tests.areas.login.listen.second import (
    OTHER,
    PHONE,
    SESSION,
    a_login,
    answer,
    challenged,
    events,
    exchange,
    joined,
    outcomes,
    prompted,
    typed,
    wire,
)
from tests.areas.login.second.scripted import NAME, Script
from tests.packets import attributes, chap
from tests.waiting import until

__all__ = ["wire"]

OVER = "the challenge is unknown, over or another's"


@pytest.fixture
async def script(areas: Areas) -> Script:
    """Return the script of a provider that accepts the code 123456 once."""
    script = Script(begins=Outcome.CODE)
    await script.attach(areas)
    return script


async def last_event(wire: Wire) -> EventRow:
    """Return the last event."""
    return (await events(wire.areas))[-1]


async def refused(wire: Wire, datagram: bytes, source: tuple[str, int] = NAS) -> None:
    """Assert that the request is rejected because its State is no longer valid, and that the provider is not called."""
    assert (await exchange(wire, datagram, source))[0] == ACCESS_REJECT
    assert (await last_event(wire)).reason == OVER


# --- right codes --------------------------------------------------------------------------------------------------


async def test_a_code_is_asked_for_and_right(wire: Wire, script: Script) -> None:
    """The challenge has Reply-Message and State.

    The code with that State gets an Accept. Both logins are recorded as events.
    """
    code, first = await exchange(wire, a_login())
    assert (code, first[REPLY_MESSAGE]) == (ACCESS_CHALLENGE, b"Enter your code")
    assert 1 <= len(first[STATE]) <= 253
    assert (await exchange(wire, typed("123456", first[STATE])))[0] == ACCESS_ACCEPT
    assert await outcomes(wire.areas) == [
        ("challenge", "challenge", "", "second factor asked for", "local+scripted"),
        ("accept", "accept", "", "", "local+scripted"),
    ]
    assert (len(script.started), script.cancelled) == (1, [])


async def test_the_provider_says_what_the_user_reads(wire: Wire, script: Script) -> None:
    """Reply-Message contains at most 253 octets of the provider's text, cut between characters.

    Characters that cannot be encoded cause no error.
    """
    for text, shown in (("ä" * 200, "ä" * 126), ("code \ud800 please", "code ? please")):
        script.text = text
        code, first = await exchange(wire, a_login())
        assert (code, first[REPLY_MESSAGE].decode()) == (ACCESS_CHALLENGE, shown)


@pytest.mark.parametrize("value", [b"\7", bytes(16), bytes(18), bytes(253)])
async def test_a_malformed_chap_response(wire: Wire, script: Script, value: bytes) -> None:
    """A malformed CHAP response counts as a wrong code. The provider gets an empty code."""
    _, first = await exchange(wire, chap("ann", "hello", body=SESSION))
    body = SESSION + attributes(STATE=first[STATE])
    assert (await exchange(wire, chap("ann", "", value=value, body=body), OTHER))[0] == ACCESS_CHALLENGE
    assert [typed for typed, _ in script.verified] == [""]


@pytest.mark.parametrize("challenge", [b"", b"four"])
async def test_a_malformed_chap_challenge(wire: Wire, script: Script, challenge: bytes) -> None:
    """If CHAP-Challenge has a wrong length, the code is wrong."""
    _, first = await exchange(wire, chap("ann", "hello", body=SESSION))
    body = SESSION + attributes(STATE=first[STATE])
    assert (await exchange(wire, chap("ann", "123456", challenge, body=body), OTHER))[0] == ACCESS_CHALLENGE
    assert [typed for typed, _ in script.verified] == [""]


async def test_chap(wire: Wire) -> None:
    """A CHAP login gets a challenge too, and the code may be sent by CHAP."""
    code, first = await exchange(wire, chap("ann", "hello", body=SESSION))
    assert code == ACCESS_CHALLENGE
    body = SESSION + attributes(STATE=first[STATE])
    code, first = await exchange(wire, chap("ann", "000000", body=body), OTHER)
    assert code == ACCESS_CHALLENGE
    body = SESSION + attributes(STATE=first[STATE])
    assert (await exchange(wire, chap("ann", "123456", body=body)))[0] == ACCESS_ACCEPT


# --- single use ---------------------------------------------------------------------------------------------------


async def test_a_state_is_used_once(wire: Wire, script: Script) -> None:
    """After the Accept its State is refused, with the same code and with another one. The provider is not asked."""
    state = await challenged(wire)
    assert (await exchange(wire, typed("123456", state)))[0] == ACCESS_ACCEPT
    script.right.add("654321")
    for code in ("123456", "654321", ""):
        await refused(wire, typed(code, state))
    assert len(script.verified) == 1


async def test_three_wrong_codes_end_it(wire: Wire, script: Script) -> None:
    """Each wrong code gets a new State, and the previous State can no longer be used.

    The third wrong code is rejected, and a right code after that is too late.
    """
    states = [await challenged(wire)]
    for _ in range(2):
        code, first = await exchange(wire, typed("000000", states[-1]))
        assert (code, first[REPLY_MESSAGE]) == (ACCESS_CHALLENGE, b"Wrong code. Enter your code")
        await refused(wire, typed("123456", states[-1]))
        states.append(first[STATE])
    assert len(set(states)) == 3
    assert (await exchange(wire, typed("000000", states[-1])))[0] == ACCESS_REJECT
    reasons = [each.reason for each in await events(wire.areas) if each.reason != OVER]
    assert reasons == ["second factor asked for", "wrong code, asked again", "wrong code, asked again", "wrong code"]
    for state in states:
        await refused(wire, typed("123456", state))
    assert len(script.verified) == 3


async def test_a_replayed_code(wire: Wire) -> None:
    """A code that was accepted is wrong in the next login."""
    assert (await exchange(wire, typed("123456", await challenged(wire))))[0] == ACCESS_ACCEPT
    assert (await exchange(wire, typed("123456", await challenged(wire))))[0] == ACCESS_CHALLENGE
    assert (await last_event(wire)).reason == "wrong code, asked again"


async def test_a_state_expires(wire: Wire, script: Script) -> None:
    """A State is valid for 120 s and expires then."""
    old, young = await challenged(wire), await challenged(wire)
    last_s = 1 if wire.areas.store.is_shared else 0.1  # the clock of a database server goes on
    await wire.areas.wait(120 - last_s)
    assert (await exchange(wire, typed("123456", young)))[0] == ACCESS_ACCEPT
    await wire.areas.wait(last_s)
    await refused(wire, typed("12345678", old))
    assert len(script.verified) == 1


# --- retransmits --------------------------------------------------------------------------------------------------


async def test_a_retransmitted_code_joins(wire: Wire, script: Script) -> None:
    """A request with the same State and code and a new identifier joins the pending check.

    The code is checked once, and one Accept is sent to the newest request.
    """
    state, script.gate = await challenged(wire), trio.Event()
    old, new = typed("123456", state), typed("123456", state)
    wire.put(old)
    await until(lambda: len(script.verified) == 1)
    wire.put(new, source=OTHER)
    await joined(wire, 1)
    script.gate.set()
    assert (await answer(wire, new, OTHER))[0] == ACCESS_ACCEPT
    await wire.silence()
    assert (len(script.verified), wire.auth.in_flight) == (1, 0)


async def test_an_unsigned_copy_of_a_code_does_not_join(wire: Wire, script: Script) -> None:
    """An unsigned copy is refused, and the pending signed request gets the Accept."""
    branch = ("198.51.100.1", 40000)  # the client has a range, so that it may send both signed and unsigned requests
    _, values = await exchange(wire, a_login(), branch)
    script.gate = trio.Event()
    signed = typed("123456", values[STATE])
    wire.put(signed, source=branch)
    await until(lambda: len(script.verified) == 1)
    await refused(wire, typed("123456", values[STATE], signed=False), (branch[0], 50000))
    script.gate.set()
    assert (await answer(wire, signed, branch))[0] == ACCESS_ACCEPT
    assert len(script.verified) == 1


async def test_another_code_meanwhile(wire: Wire, script: Script) -> None:
    """While one code is checked, another code with the same State is refused at once and changes nothing."""
    state, script.gate = await challenged(wire), trio.Event()
    right = typed("123456", state)
    wire.put(right)
    await until(lambda: len(script.verified) == 1)
    await refused(wire, typed("12345678", state), OTHER)
    script.gate.set()
    assert (await answer(wire, right))[0] == ACCESS_ACCEPT
    assert script.verified == [("123456", script.verified[0][1])]


async def test_a_retransmitted_first_request(wire: Wire) -> None:
    """An identical packet gets the same challenge again, with the same State."""
    datagram = a_login()
    first = await exchange(wire, datagram)
    assert await exchange(wire, datagram) == first


# --- user, station and client -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [attributes(**{**PHONE, "CALLING_STATION_ID": b"02-00-00-00-00-66"}), attributes(NAS_PORT=b"\0\0\0\7"), b""],
    ids=["another", "without", "nothing"],
)
async def test_another_station(wire: Wire, script: Script, body: bytes) -> None:
    """A captured State is refused if another station or no station sends it. It stays valid for its own station."""
    state = await challenged(wire)
    await refused(wire, typed("123456", state, body))
    assert script.verified == []
    assert (await exchange(wire, typed("123456", state)))[0] == ACCESS_ACCEPT


async def test_a_station_that_was_not_there(wire: Wire, script: Script) -> None:
    """If the request had no station, the answer to its challenge must have none either."""
    state = await challenged(wire, b"")
    await refused(wire, typed("123456", state, SESSION))
    assert (await exchange(wire, typed("123456", state, b"")))[0] == ACCESS_ACCEPT


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (b"02-00-00-00-00-0A", b"02:00:00:00:00:0a"),
        (b"0200.0000.000a", b"02000000000A"),
        (b"198.51.100.7", b"198.51.100.7"),
        (b"\xfc", b"\xfc"),
        (b"Desk-7", b"Desk-7"),
    ],
)
async def test_a_station_in_another_notation(wire: Wire, script: Script, first: bytes, then: bytes) -> None:
    """The answer to a challenge may have the same MAC address in another notation. It is sent by the same station."""
    state = await challenged(wire, attributes(CALLING_STATION_ID=first))
    code, _ = await exchange(wire, typed("123456", state, attributes(CALLING_STATION_ID=then)))
    assert code == ACCESS_ACCEPT


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (b"02-00-00-00-00-0A", b"02:00:00:00:00:0b"),
        (b"Desk-7", b"desk-7"),
        (b"198.51.100.7", b"198.51.100.7 "),
        (b"\xfc", "ü".encode()),
        (b"\2\0\0\0\0\x0a", b"02-00-00-00-00-0a"),
    ],
)
async def test_a_station_that_is_not_the_same(wire: Wire, script: Script, first: bytes, then: bytes) -> None:
    """Any other station must be the same octet by octet."""
    state = await challenged(wire, attributes(CALLING_STATION_ID=first))
    await refused(wire, typed("123456", state, attributes(CALLING_STATION_ID=then)))


async def test_another_client(wire: Wire, script: Script) -> None:
    """A State is refused through another RADIUS client."""
    await refused(wire, typed("123456", await challenged(wire)), ("198.51.100.5", 40000))
    assert script.verified == []


async def test_another_user(wire: Wire, script: Script) -> None:
    """A State of ann is refused for bob, whether bob exists or not. The name ann in another case is the same user."""
    state = await challenged(wire)
    for user in ("bob", "nobody", "ann@corp@corp"):
        datagram = typed("123456", state, user=user)
        assert (await exchange(wire, datagram))[0] == ACCESS_REJECT
    assert script.verified == []
    assert (await exchange(wire, typed("123456", state, user="CORP\\ANN")))[0] == ACCESS_ACCEPT


async def test_a_user_of_another_domain(wire: Wire, areas: Areas, script: Script) -> None:
    """A State is refused for a user of the same name in another domain."""
    await areas.add_user(await areas.domains.add(areas.tenant, "branch"), "ann", b"hello")
    assert (await exchange(wire, typed("123456", await challenged(wire), user="ann@branch")))[0] == ACCESS_REJECT
    assert script.verified == []


async def test_a_foreign_state(wire: Wire, script: Script) -> None:
    """A State is ignored if any octet was changed, or if it is cut, extended, empty or foreign.

    The code is then checked as a password, and is wrong.
    """
    state = await challenged(wire)
    mutated = [bytes((*state[:at], state[at] ^ 1, *state[at + 1 :])) for at in (0, 1, 12, 13, 29, 30, len(state) - 1)]
    foreign = Areas(wire.areas.store, wire.areas.clock, key=bytes(31) + b"\1").vault.seal(
        bytes(17), f"radius/state/{wire.areas.domain}"
    )
    stolen = wire.areas.vault.seal(bytes(17), "radius_clients/1/secret")
    for other in (*mutated, state[:-1], state[:13], state[:1], state + b"\0", b"x", bytes(46), foreign, stolen):
        assert (await exchange(wire, typed("123456", other)))[0] == ACCESS_REJECT
        assert (await last_event(wire)).reason == "wrong password"
    assert script.verified == []


async def test_a_state_that_never_was(wire: Wire, script: Script) -> None:
    """A State that the service sealed is refused if it belongs to no challenge, or if its step was not sent yet."""
    state = await challenged(wire)
    assert wire.areas.second.challenges.named(wire.areas.domain, state) is not None
    assert wire.areas.second.challenges.named(wire.areas.domain + 1, state) is None, "of another domain"
    clear = wire.areas.vault.open(state, f"radius/state/{wire.areas.domain}")
    for made in (bytes(16) + b"\1", clear[:16] + b"\2", clear[:16] + b"\0"):
        await refused(wire, typed("123456", wire.areas.vault.seal(made, f"radius/state/{wire.areas.domain}")))
    assert script.verified == []


async def test_the_password_instead_of_the_code(wire: Wire, script: Script) -> None:
    """A password that is sent with a State is a wrong code. No new prompt is sent."""
    assert (await exchange(wire, typed("hello", await challenged(wire))))[0] == ACCESS_CHALLENGE
    assert (len(script.started), script.verified[0][0]) == (1, "hello")


# --- what changes between challenge and answer --------------------------------------------------------------------


async def test_the_user_was_deleted(wire: Wire, areas: Areas) -> None:
    """After the user was removed the right code is rejected, even if a user of that name was added again."""
    states = [await challenged(wire), await challenged(wire)]
    await areas.remove_user(areas.domain, "ann")
    assert (await exchange(wire, typed("123456", states[0])))[0] == ACCESS_REJECT
    assert (await last_event(wire)).reason == "unknown user"
    await areas.add_user(areas.domain, "ann", b"hello")
    assert (await exchange(wire, typed("12345678", states[1])))[0] == ACCESS_REJECT
    assert (await last_event(wire)).reason == "unknown user"


async def test_the_domain_monitors_now(wire: Wire, areas: Areas) -> None:
    """If the domain has changed to monitor mode, any code is accepted. The event has the decision of enforce mode."""
    states = [await challenged(wire), await challenged(wire)]
    await areas.domains.set_mode([areas.domain], Mode.MONITOR)
    assert (await exchange(wire, typed("123456", states[0])))[0] == ACCESS_ACCEPT
    assert (await last_event(wire)).would_have_been == "accept"
    assert (await exchange(wire, typed("000000", states[1])))[0] == ACCESS_ACCEPT
    assert (await last_event(wire)).would_have_been == "challenge"


async def test_a_rule_blocks_now(wire: Wire, areas: Areas) -> None:
    """If a new rule blocks the user, the right code is rejected."""
    state = await challenged(wire)
    await areas.rules.add(areas.domain, RuleFields.model_validate({"name": "r", "action": "block", "everyone": True}))
    assert (await exchange(wire, typed("123456", state)))[0] == ACCESS_REJECT
    assert (await last_event(wire)).reason == "blocked by rule"


@pytest.mark.parametrize("fallback", Fallback)
async def test_the_provider_was_changed(wire: Wire, areas: Areas, script: Script, fallback: Fallback) -> None:
    """If the provider was replaced, set again or removed, the challenge can no longer be answered, whatever the
    fallback is."""
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, fallback)
    for change in ("same", "other", "none"):
        state = await challenged(wire)
        areas.clock.pass_by(1)
        if change == "none":
            await areas.providers.delete(areas.domain)
        else:
            await areas.providers.set(areas.domain, NAME if change == "same" else "totp", {}, 60)
        await refused(wire, typed("123456", state))
        areas.clock.pass_by(1)
        await areas.providers.set(areas.domain, NAME, {}, 60)
    assert script.verified == []


async def test_the_client_lost_the_domain(wire: Wire, areas: Areas, script: Script) -> None:
    """If the client no longer has the domain, the right code is rejected."""
    state = await challenged(wire)
    branch = await areas.domains.add(areas.tenant, "branch")
    client = areas.client_named("nas")
    await areas.clients.update(areas.tenant, client.id, {}, domain_ids=[branch])
    for user in ("ann", "ann@corp"):
        assert (await exchange(wire, typed("123456", state, user=user)))[0] == ACCESS_REJECT
    assert script.verified == []


@pytest.mark.parametrize("code", ["123 456", "123-456", " 123\u00a0456 "])
async def test_a_code_is_typed_as_apps_show_it(wire: Wire, script: Script, code: str) -> None:
    """Separators in an answer to a challenge do not matter, for any provider: it gets the digits."""
    state = await challenged(wire)
    assert (await exchange(wire, typed(code, state)))[0] == ACCESS_ACCEPT
    assert [each for each, _ in script.verified] == ["123456"]


@pytest.mark.parametrize("code", ["123 456", "123-456"])
async def test_a_code_by_chap_is_typed_as_apps_show_it(wire: Wire, script: Script, code: str) -> None:
    """A CHAP response to a code with a separator is accepted too."""
    state = await challenged(wire)
    body = SESSION + attributes(STATE=state)
    assert (await exchange(wire, chap("ann", code, body=body), OTHER))[0] == ACCESS_ACCEPT


# --- a device that cannot wait for a push -------------------------------------------------------------------------


async def test_a_device_with_a_short_timeout(wire: Wire, areas: Areas, script: Script) -> None:
    """A device with a short timeout gets a challenge instead of no answer.

    Only its next request continues with the same prompt.
    """
    script.begins, areas.patience = Outcome.WAITING, 0.02
    code, first = await exchange(wire, a_login())
    assert (code, first[REPLY_MESSAGE]) == (ACCESS_CHALLENGE, b"Approve on your phone, then press Enter")
    again, second = await exchange(wire, typed("", first[STATE]))
    assert again == ACCESS_CHALLENGE
    await refused(wire, typed("", first[STATE]))
    await prompted(script)
    script.answer(0, Outcome.APPROVED)
    areas.patience = 5
    assert (await exchange(wire, typed("", second[STATE])))[0] == ACCESS_ACCEPT
    await refused(wire, typed("", second[STATE]))
    assert (len(script.started), script.cancelled) == (1, [])


async def test_a_stranger_without_the_state(wire: Wire, areas: Areas, script: Script) -> None:
    """A login from elsewhere while a challenge is parked gets its own prompt."""
    script.begins, areas.patience = Outcome.WAITING, 0.02
    state = await challenged(wire)
    await prompted(script)
    script.answer(0, Outcome.APPROVED)
    await challenged(wire, b"")
    await prompted(script, 2)
    areas.patience = 5
    assert (await exchange(wire, typed("", state)))[0] == ACCESS_ACCEPT


async def test_a_provider_slower_than_the_device(wire: Wire, areas: Areas, script: Script) -> None:
    """If the provider is slower than the device, the device first gets a challenge.

    Its next request gets the challenge that asks for a code.
    """
    areas.patience, slow = 0.02, trio.Event()
    script.slow = slow
    state = await challenged(wire)
    slow.set()
    areas.patience = 5
    code, first = await exchange(wire, typed("", state))
    assert (code, first[REPLY_MESSAGE]) == (ACCESS_CHALLENGE, b"Enter your code")
    assert (await exchange(wire, typed("123456", first[STATE])))[0] == ACCESS_ACCEPT
