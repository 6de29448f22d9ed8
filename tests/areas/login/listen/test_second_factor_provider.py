"""Tests of a change of the provider or of the posture of the device while a push is pending."""

import pytest
import trio

from sallyport.areas.mfa.provider import Outcome
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.areas import Areas
from tests.areas.login.listen.conftest import Wire
from tests.areas.login.listen.second import OTHER, a_login, answer, outcomes, prompted, script, wire
from tests.areas.login.second.scripted import Script
from tests.packets import access_request, attributes

__all__ = ["script", "wire"]


async def test_a_retransmit_after_a_new_provider(wire: Wire, areas: Areas, script: Script) -> None:
    """After a change of the provider a retransmission gets a prompt from the new provider.

    An answer from the old provider does not count.
    """
    old, new = a_login(), a_login()
    wire.put(old)
    await prompted(script)
    later = Script()
    await later.attach(areas)
    wire.put(new, source=OTHER)
    await prompted(later)
    script.answer(0, Outcome.APPROVED)
    await answer(wire, old)
    later.answer(0, Outcome.DENIED)
    assert (await answer(wire, new, OTHER))[0] == ACCESS_REJECT


async def test_a_retransmit_after_the_provider_was_removed(wire: Wire, areas: Areas, script: Script) -> None:
    """After the provider was removed, the fallback decides a retransmission. The old prompt does not."""
    old = a_login()
    wire.put(old)
    await prompted(script)
    await areas.providers.delete(areas.domain)
    new = a_login()
    wire.put(new, source=OTHER)
    assert (await answer(wire, new, OTHER))[0] == ACCESS_REJECT
    assert (await outcomes(areas))[-1][3] == "no provider"
    script.answer(0, Outcome.DENIED)
    assert (await answer(wire, old))[0] == ACCESS_REJECT


async def test_a_user_that_was_added_again(wire: Wire, areas: Areas, script: Script) -> None:
    """If a user was removed and added again, a new request does not join the pending login."""
    old, new = a_login(), a_login()
    wire.put(old)
    await prompted(script)
    await areas.remove_user(areas.domain, "ann")
    await areas.add_user(areas.domain, "ann", b"hello")
    wire.put(new, source=OTHER)
    await prompted(script, 2)
    script.answer(1, Outcome.DENIED)
    assert (await answer(wire, new, OTHER))[0] == ACCESS_REJECT
    script.answer(0, Outcome.DENIED)
    assert (await answer(wire, old))[0] == ACCESS_REJECT


@pytest.mark.parametrize("length", [15, 17, 129])
async def test_a_malformed_code(wire: Wire, areas: Areas, script: Script, length: int) -> None:
    """A request with a State and a User-Password of a wrong length is dropped.

    The challenge stays valid, and nothing stays pending.
    """
    script.begins = Outcome.CODE
    first = a_login()
    wire.put(first)
    _, values = await answer(wire, first)
    body = attributes(USER_NAME=b"ann", USER_PASSWORD=b"x" * length, STATE=values[24])
    wire.put(access_request(body, identifier=250))
    await wire.silence()
    assert (wire.auth.in_flight, wire.waiting.now, script.verified) == (0, 0, [])
    assert wire.dropped("malformed") == 1


async def test_two_states(wire: Wire, areas: Areas, script: Script) -> None:
    """Only the first State counts. If a foreign State precedes a valid one, the login is rejected."""
    script.begins = Outcome.CODE
    first = a_login()
    wire.put(first)
    _, values = await answer(wire, first)
    body = a_login(attributes(STATE=b"foreign") + attributes(STATE=values[24]), password="123456")
    wire.put(body, source=OTHER)
    assert (await answer(wire, body, OTHER))[0] == ACCESS_REJECT
    assert script.verified == []


async def test_many_pushes_and_other_logins(wire: Wire, areas: Areas, script: Script) -> None:
    """Fifty parked logins do not delay other logins. Each gets its own answer."""
    waiting = {}
    for number in range(50):
        await areas.add_user(areas.domain, f"user{number}", b"hello")
        source = ("192.0.2.1", 42000 + number)
        waiting[source] = a_login(user=f"user{number}")
        wire.put(waiting[source], source=source)
    await prompted_all(script, 50)
    wrong = a_login(password="wrong")
    wire.put(wrong)
    assert (await answer(wire, wrong))[0] == ACCESS_REJECT
    for number in range(50):
        script.answer(number, Outcome.APPROVED if int(script.started[number].user[4:]) % 2 else Outcome.DENIED)
    for _ in waiting:
        reply, to = await wire.take()
        assert reply[0] == (ACCESS_ACCEPT if to[1] % 2 else ACCESS_REJECT)
    await wire.silence()
    assert (wire.auth.in_flight, wire.waiting.now) == (0, 0)


async def prompted_all(script: Script, number: int) -> None:
    """Wait until this number of prompts was sent, in any order."""
    with trio.fail_after(60):
        while len(script.started) < number:
            await trio.sleep(0.001)
