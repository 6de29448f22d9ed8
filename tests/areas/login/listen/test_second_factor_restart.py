"""Tests of a challenge across a restart: new areas read the same store."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from sallyport.areas.domains.domain import Fallback
from sallyport.areas.login.login import Reason
from sallyport.areas.mfa.provider import Outcome
from sallyport.radius.attributes import STATE
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE, ACCESS_REJECT
from tests.areas import Areas, only_sqlite
from tests.areas.login.listen.conftest import Wire
from tests.areas.login.listen.second import (
    OTHER,
    a_login,
    answer,
    challenged,
    events,
    exchange,
    outcomes,
    prompted,
    typed,
    wire,
)
from tests.areas.login.second.scripted import Script, fall_back_to
from tests.packets import attributes
from tests.waiting import until

__all__ = ["wire"]

OTHERS = attributes(CALLING_STATION_ID=b"02-00-00-00-00-02")


@pytest.fixture
async def script(areas: Areas) -> Script:
    """Return the script of a provider that accepts the code 123456 once."""
    script = Script(begins=Outcome.CODE)
    await script.attach(areas)
    return script


@asynccontextmanager
async def restarted(wire: Wire) -> AsyncIterator[Wire]:
    """Yield the service after a restart: its memory is empty and its store is unchanged."""
    old = wire.areas
    areas = Areas(old.store, old.clock)
    areas.tenant, areas.domain = old.tenant, old.domain
    areas.kinds.update(old.kinds)
    await areas.configuration.reload()
    async with trio.open_nursery() as nursery:
        await nursery.start(areas.second.run)
        yield Wire(areas, nursery)
        nursery.cancel_scope.cancel()


async def test_the_code_still_works(wire: Wire, script: Script) -> None:
    """After a restart the right code of a challenge is accepted once."""
    state = await challenged(wire)
    async with restarted(wire) as later:
        assert (await exchange(later, typed("123456", state)))[0] == ACCESS_ACCEPT
        script.right.add("123456")
        assert (await exchange(later, typed("123456", state)))[0] == ACCESS_REJECT
        async with restarted(later) as latest:
            assert (await exchange(latest, typed("123456", state)))[0] == ACCESS_REJECT
    assert len(script.verified) == 1


async def test_a_used_state_does_not(wire: Wire, script: Script) -> None:
    """After a restart a used State is refused.

    The State of its next step is valid, and the count of wrong codes is kept.
    """
    used, first = await challenged(wire), await challenged(wire)
    assert (await exchange(wire, typed("123456", used)))[0] == ACCESS_ACCEPT
    code, values = await exchange(wire, typed("000000", first))
    assert code == ACCESS_CHALLENGE
    async with restarted(wire) as later:
        for state in (used, first):
            assert (await exchange(later, typed("12345678", state)))[0] == ACCESS_REJECT
        code, values = await exchange(later, typed("000000", values[STATE]))
        assert code == ACCESS_CHALLENGE
        async with restarted(later) as latest:
            assert (await exchange(latest, typed("000000", values[STATE])))[0] == ACCESS_REJECT
            assert (await exchange(latest, typed("12345678", values[STATE])))[0] == ACCESS_REJECT
    assert [each[0] for each in script.verified] == ["123456", "000000", "000000", "000000"]


async def test_it_is_bound_and_expires_as_before(wire: Wire, script: Script) -> None:
    """After a restart a challenge is still bound to client, station and user, and expires after 120 s."""
    state = await challenged(wire)
    async with restarted(wire) as later:
        for datagram, source in (
            (typed("123456", state, b""), OTHER),
            (typed("123456", state, user="bob"), OTHER),
            (typed("123456", state), ("198.51.100.5", 40000)),
        ):
            assert (await exchange(later, datagram, source))[0] == ACCESS_REJECT
        await later.areas.wait(120)
        assert (await exchange(later, typed("123456", state)))[0] == ACCESS_REJECT
    assert script.verified == []


async def test_a_retransmitted_code_joins(wire: Wire, script: Script) -> None:
    """Two requests with the same code join, although both find the session in the store.

    There is one check, one Accept and one event.
    """
    state, script.gate = await challenged(wire), trio.Event()
    async with restarted(wire) as later:
        first, second = typed("123456", state), typed("123456", state)
        later.put(first)
        later.put(second, source=OTHER)
        await until(lambda: later.areas.sample("sallyport_mfa_joined_retransmits_total", provider="scripted") == 1)
        script.gate.set()
        assert (await later.take())[0][0] == ACCESS_ACCEPT
        await later.areas.journal.drained()
        assert (len(script.verified), later.auth.in_flight) == (1, 0)
        assert len(await events(later.areas)) == 2


async def test_guesses_that_come_together(wire: Wire, script: Script) -> None:
    """If twenty codes with one State arrive right after a restart, at most three of them are checked."""
    state = await challenged(wire)
    guesses = [typed(f"{number:06}", state) for number in range(20)]
    async with restarted(wire) as later:
        later.put(*guesses)
        answers = [(await later.take())[0][0] for _ in guesses]
        assert sorted(answers)[:-1].count(ACCESS_REJECT) == 19
        assert answers.count(ACCESS_CHALLENGE) == 1
    assert len(script.verified) == 1


async def test_a_push_continues(wire: Wire, areas: Areas, script: Script) -> None:
    """After a restart an answer to the challenge finds an approval that was given in the meantime.

    After a second restart the handle of the prompt is still known.
    """
    script.begins, areas.patience = Outcome.WAITING, 0.02
    state = await challenged(wire)
    async with restarted(wire) as later:
        later.areas.patience = 0.02
        code, values = await exchange(later, typed("", state))
        assert code == ACCESS_CHALLENGE
        async with restarted(later) as latest:
            await prompted(script)
            script.answer(0, Outcome.APPROVED)
            datagram = typed("", values[STATE])
            latest.put(datagram)
            assert (await answer(latest, datagram))[0] == ACCESS_ACCEPT
    assert len(script.started) == 1


@only_sqlite
async def test_a_prompt_that_had_not_begun(wire: Wire, areas: Areas, script: Script) -> None:
    """If the service stops after the challenge was sent and before the prompt began, the challenge can no longer be
    answered. This is not an outage, so the fallback does not apply. On
    PostgreSQL, another node asks again (`tests/nodes`)."""
    script.begins, areas.patience = None, 0.02
    await fall_back_to(areas, Fallback.ALLOW)
    state = await challenged(wire)
    async with restarted(wire) as later:
        assert (await exchange(later, typed("", state)))[0] == ACCESS_REJECT
    assert script.polled == []


# --- a requested stop -------------------------------------------------------------------------------------------------


@only_sqlite
@pytest.mark.parametrize(("fallback", "code"), [(Fallback.DENY, ACCESS_REJECT), (Fallback.ALLOW, ACCESS_ACCEPT)])
async def test_pending_logins_are_answered_before_the_end(
    wire: Wire, areas: Areas, script: Script, fallback: Fallback, code: int
) -> None:
    """When the service is asked to stop, the domain's fallback decides pending logins and their later requests without
    a prompt. The events have the reason."""
    script.begins = Outcome.WAITING
    await fall_back_to(areas, fallback)
    datagram = a_login()
    wire.put(datagram)
    await prompted(script)
    await areas.second.stop_waiting()
    assert (await answer(wire, datagram))[0] == code
    assert (await exchange(wire, a_login(OTHERS)))[0] == code
    script.answer(0, Outcome.APPROVED)
    await wire.silence()
    assert [each[3] for each in await outcomes(areas)] == [Reason.STOPPED] * 2
    assert (len(script.started), wire.auth.in_flight) == (1, 0)


async def test_a_device_that_answers_challenges(wire: Wire, areas: Areas, script: Script) -> None:
    """When the service is asked to stop, a device that answers challenges gets a challenge instead of a reject.

    An approval of the prompt counts after the restart.
    """
    script.begins, areas.patience = Outcome.WAITING, 0.02
    state = await challenged(wire)
    areas.patience = 60
    pressed = typed("", state)
    wire.put(pressed)
    await until(lambda: len(script.polled) >= 1)
    await areas.second.stop_waiting()
    code, values = await answer(wire, pressed)
    assert code == ACCESS_CHALLENGE
    waiting = a_login(OTHERS)  # the device is now known to answer challenges
    async with restarted(wire) as later:
        await prompted(script)
        script.answer(0, Outcome.APPROVED)
        assert (await exchange(later, typed("", values[STATE])))[0] == ACCESS_ACCEPT
        later.areas.patience = 60
        later.put(waiting)
        await prompted(script, 2)
        await until(lambda: script.started[1].challenge_id in script.polled)
        await later.areas.second.stop_waiting()
        assert (await answer(later, waiting))[0] == ACCESS_CHALLENGE
