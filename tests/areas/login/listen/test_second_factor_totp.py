"""Tests of codes from an authenticator app with the built-in provider, and of the attributes in the answers."""

from collections.abc import AsyncIterator

import pyotp
import pytest
import trio

from sallyport.areas.domains.domain import Mode
from sallyport.areas.mfa.provider import Outcome
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.base.clock import SECOND
from sallyport.radius.attributes import CLASS, REPLY_MESSAGE, STATE
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE, ACCESS_REJECT
from tests.areas import Areas
from tests.areas.login.listen.conftest import Wire
from tests.areas.login.listen.second import (
    OTHER,
    SESSION,
    a_login,
    answer,
    challenged,
    events,
    exchange,
    outcomes,
    typed,
)
from tests.areas.login.second.scripted import Script
from tests.packets import attributes, chap

TUNNEL_PRIVATE_GROUP_ID = 81


class App:
    """The authenticator app of ann. Its seed is confirmed."""

    def __init__(self, areas: Areas, seed: str) -> None:
        self._areas = areas
        self._totp = pyotp.TOTP(seed)

    def code(self, steps: int = 0) -> str:
        """Return the current code, or the code of some time steps later."""
        return self._totp.at(self._areas.clock() // SECOND + 30 * steps)

    def wrong(self) -> str:
        """Return six digits that are not the code of a nearby time step."""
        near = {self.code(steps) for steps in range(-3, 4)}
        return next(f"{number:06}" for number in range(10) if f"{number:06}" not in near)


@pytest.fixture
async def app(areas: Areas) -> App:
    """Return ann's app. The users ann and bob have the password hello, and the domain enforces."""
    for user in ("ann", "bob"):
        await areas.add_user(areas.domain, user, b"hello")
    made, _ = await areas.seeds.enrol(areas.domain, "ann")
    app = App(areas, made.seed)
    await areas.seeds.confirm(areas.domain, "ann", app.code())
    areas.clock.pass_by(300)
    await areas.providers.set(areas.domain, "totp", {}, 60)
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    return app


@pytest.fixture
async def wire(areas: Areas, app: App) -> AsyncIterator[Wire]:
    """Yield exchanges with the RADIUS client 192.0.2.1."""
    await areas.client(name="nas")
    async with trio.open_nursery() as nursery:
        yield Wire(areas, nursery)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("steps", [-1, 0, 1])
async def test_challenge_and_code(wire: Wire, app: App, steps: int) -> None:
    """The current code is accepted once, and so is the code one time step before or after.

    After that the same code and earlier codes are refused. This holds for codes after a challenge and for appended
    codes.
    """
    code = app.code(steps)
    assert (await exchange(wire, typed(code, await challenged(wire))))[0] == ACCESS_ACCEPT
    for again in (code, app.code(-1)):
        assert (await exchange(wire, typed(again, await challenged(wire))))[0] == ACCESS_CHALLENGE
        assert (await exchange(wire, a_login(b"", password=f"hello{again}")))[0] == ACCESS_REJECT
        assert (await events(wire.areas))[-1].reason == "wrong code"


@pytest.mark.parametrize("steps", [-2, 2])
async def test_codes_of_other_times(wire: Wire, app: App, steps: int) -> None:
    """A code that is two time steps away is wrong."""
    assert (await exchange(wire, a_login(b"", password=f"hello{app.code(steps)}")))[0] == ACCESS_REJECT


async def test_chap_compares_the_response(wire: Wire, app: App) -> None:
    """The challenge may be requested by CHAP, and the code may be sent by CHAP.

    A wrong code is rejected, and so is a response to another challenge.
    """
    code, first = await exchange(wire, chap("ann", "hello", body=SESSION))
    assert code == ACCESS_CHALLENGE
    for value in (chap("ann", app.wrong(), body=SESSION + attributes(STATE=first[STATE])),):
        code, first = await exchange(wire, value, OTHER)
        assert code == ACCESS_CHALLENGE
    stale = chap("ann", app.code(), bytes(16), value=bytes(17), body=SESSION + attributes(STATE=first[STATE]))
    code, first = await exchange(wire, stale)
    assert code == ACCESS_CHALLENGE
    right = chap("ann", app.code(), body=SESSION + attributes(STATE=first[STATE]))
    assert (await exchange(wire, right, OTHER))[0] == ACCESS_ACCEPT


async def test_two_logins_with_one_code(wire: Wire, app: App) -> None:
    """If two sessions send the same code at the same time, one of them is accepted."""
    code = app.code()
    first, second = a_login(SESSION, password=f"hello{code}"), a_login(b"", password=f"hello{code}")
    wire.put(first)
    wire.put(second, source=OTHER)
    codes = sorted([(await wire.take())[0][0], (await wire.take())[0][0]])
    assert codes == [ACCESS_ACCEPT, ACCESS_REJECT]
    await wire.silence()


async def test_a_user_without_an_app(wire: Wire) -> None:
    """A user without an app is rejected as not enrolled, with and without a code that is appended to the password."""
    assert (await exchange(wire, a_login(user="bob")))[0] == ACCESS_REJECT
    assert (await exchange(wire, a_login(b"", user="bob", password="hello123456")))[0] == ACCESS_REJECT
    rows = await outcomes(wire.areas)
    assert rows[0] == ("reject", "reject", "", "not enrolled", "local+totp")
    assert rows[1][3] in {"not enrolled", "wrong password"}


async def test_a_seed_that_was_taken_away(wire: Wire, app: App, areas: Areas) -> None:
    """If the seed is removed after the challenge and before the code, the login is rejected as not enrolled."""
    state = await challenged(wire)
    await areas.seeds.remove(areas.domain, "ann")
    assert (await exchange(wire, typed(app.code(), state)))[0] == ACCESS_REJECT
    assert (await events(areas))[-1].reason == "not enrolled"


# --- what an answer carries ---------------------------------------------------------------------------------------


async def test_class_and_vlan(wire: Wire, app: App, areas: Areas) -> None:
    """Every Accept has the Class and VLAN of a matching rule, with and without a second factor and in both modes.

    Challenges and rejects never have them.
    """
    given = {"name": "r", "action": "mfa_required", "vlan": 20}
    given["replyAttributes"] = [{"name": "Class", "value": "staff"}]
    rule = await areas.rules.add(areas.domain, RuleFields.model_validate(given))

    def carried(first: dict[int, bytes]) -> tuple[bytes | None, bytes | None]:
        return first.get(CLASS), first.get(TUNNEL_PRIVATE_GROUP_ID)

    everything = (b"staff", b"20")
    code, first = await exchange(wire, a_login())
    assert (code, carried(first)) == (ACCESS_CHALLENGE, (None, None))
    code, first = await exchange(wire, typed(app.code(), first[STATE]))
    assert (code, carried(first)) == (ACCESS_ACCEPT, everything)
    code, first = await exchange(wire, a_login(password=f"hello{app.code()}"))
    assert (code, carried(first)) == (ACCESS_REJECT, (None, None))
    code, first = await exchange(wire, a_login(password=f"hello{app.code(1)}"))
    assert (code, carried(first)) == (ACCESS_ACCEPT, everything)
    await areas.domains.set_mode([areas.domain], Mode.MONITOR)
    for action in ("mfa_required", "block", "allow"):
        await areas.rules.update(areas.domain, rule, RuleFields(action=action, everyone=action != "mfa_required"))
        code, first = await exchange(wire, a_login())
        assert (code, carried(first)) == (ACCESS_ACCEPT, everything), action
    code, first = await exchange(wire, a_login(password="wrong"))
    assert (code, carried(first)) == (ACCESS_REJECT, (None, None))
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    code, first = await exchange(wire, a_login())
    assert (code, carried(first)) == (ACCESS_ACCEPT, everything)
    await areas.rules.update(areas.domain, rule, RuleFields.model_validate({"action": "block", "everyone": True}))
    code, first = await exchange(wire, a_login())
    assert (code, carried(first)) == (ACCESS_REJECT, (None, None))


async def test_an_unsigned_answer_to_a_challenge(wire: Wire, app: App, areas: Areas) -> None:
    """An unsigned code is accepted, because pam_radius sends such codes. A wrong unsigned code registers no device."""
    client = areas.client_named("nas")
    await areas.clients.update(areas.tenant, client.id, {"require_message_authenticator": "no"})
    script = Script(begins=Outcome.CODE)
    await script.attach(areas)
    code, first = await exchange(wire, a_login(signed=False))
    assert code == ACCESS_CHALLENGE
    code, first = await exchange(wire, typed("000000", first[STATE], signed=False))
    assert code == ACCESS_CHALLENGE
    datagram = typed("123456", first[STATE], signed=False)
    wire.put(datagram)
    assert (await answer(wire, datagram))[0] == ACCESS_ACCEPT


async def test_the_event_says_how_far_the_clock_is_off(wire: Wire, areas: Areas, app: App) -> None:
    """The event of a code of another time names the difference. The user is not told, because a guess may
    become valid later."""
    state = await challenged(wire)
    code, values = await exchange(wire, typed(app.code(4), state))
    assert (code, values[REPLY_MESSAGE]) == (ACCESS_CHALLENGE, b"Wrong code. Enter your code")
    event = (await events(areas))[-1]
    assert event.reason == "wrong code, asked again"
    assert "the phone's clock is off by about" in (event.detail or "")
