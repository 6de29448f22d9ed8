"""Tests of how second factors end: by limits, by timeouts, by a failing store, by a deleted device and by a stop.

In the end nothing remains in memory.
"""

from itertools import count

import pytest
import trio
import trio.testing

from sallyport.areas.domains.domain import Fallback, FirstFactor, Mode
from sallyport.areas.login.second.prompts import A_MINUTE, CODES_A_MINUTE
from sallyport.areas.mfa.provider import Enrolment, Outcome, ProviderError
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.base.errors import StoreError
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
    joined,
    outcomes,
    prompted,
    script,
    typed,
    wire,
)
from tests.areas.login.second.scripted import Script, fall_back_to
from tests.packets import attributes
from tests.waiting import until

__all__ = ["script", "wire"]

WITH = "local+scripted"
sessions = count(1)


def new_session() -> bytes:
    """Return the attributes of a session that differs from all others."""
    return attributes(ACCT_SESSION_ID=b"%d" % next(sessions))


def kept(areas: Areas) -> dict[str, object]:
    """Return the tables in which the second factor keeps logins."""
    running, challenges = areas.second._running, areas.second.challenges
    tables = {"by login": running._by_login, "by challenge": running._by_challenge, "challenges": challenges}
    return {name: table for name, table in tables.items() if table}


# --- limits -------------------------------------------------------------------------------------------------------


async def test_two_open_prompts(wire: Wire, script: Script) -> None:
    """If a user has two open prompts, the next login is rejected without a prompt.

    A request that joins needs no prompt, and other users are not affected. A new prompt can be sent as soon as one is
    answered.
    """
    waiting = [a_login(new_session()), a_login()]
    for number, datagram in enumerate(waiting, 1):
        wire.put(datagram)
        await prompted(script, number)
    for number in range(1, 8):
        wire.put(a_login(), source=("192.0.2.1", 41000 + number))
        await joined(wire, number)
    assert (await exchange(wire, a_login(new_session()), OTHER))[0] == ACCESS_REJECT
    assert await outcomes(wire.areas) == [("reject", "reject", "", "too many prompts", WITH)]
    assert len(script.started) == 2
    wire.put(a_login(new_session(), user="bob"))
    await prompted(script, 3)
    script.answer(0, Outcome.DENIED)
    await answer(wire, waiting[0])
    wire.put(a_login(new_session(), user="ANN"))
    await prompted(script, 4)
    assert (await exchange(wire, a_login(new_session())))[0] == ACCESS_REJECT
    assert len(script.started) == 4


async def test_four_prompts_a_minute(wire: Wire, script: Script, mock_clock: trio.testing.MockClock) -> None:
    """The fifth prompt of a user within a minute is rejected, whatever the fallback is and however the name is
    written. A minute after the first prompt another one can be sent."""
    mock_clock.rate = 1
    script.begins = Outcome.DENIED
    await fall_back_to(wire.areas, Fallback.ALLOW)
    for _ in range(A_MINUTE):
        assert (await exchange(wire, a_login(new_session())))[0] == ACCESS_REJECT
    for user in ("ann", "ANN", "corp\\Ann", "ann@corp"):
        assert (await exchange(wire, a_login(new_session(), user=user)))[0] == ACCESS_REJECT
    assert [each.reason for each in await events(wire.areas)][A_MINUTE:] == ["too many prompts"] * 4
    assert len(script.started) == A_MINUTE
    script.begins = Outcome.APPROVED
    assert (await exchange(wire, a_login(new_session(), user="bob")))[0] == ACCESS_ACCEPT
    mock_clock.jump(61)
    await wire.areas.wait(61)
    assert (await exchange(wire, a_login(new_session())))[0] == ACCESS_ACCEPT


async def test_prompts_by_a_name_with_spaces(wire: Wire, script: Script) -> None:
    """If another server has checked the password, ` ann` counts as ann in the limit of prompts."""
    areas = wire.areas
    await areas.clients.update(areas.tenant, areas.client_named("nas").id, {"password_verified": True})
    await areas.first_settings.set(areas.domains.table.by_id[areas.domain], FirstFactor.NONE, {})
    script.begins = Outcome.DENIED
    for spaces in range(A_MINUTE + 1):
        assert (await exchange(wire, a_login(new_session(), user=" " * spaces + "ann")))[0] == ACCESS_REJECT
    assert (await events(areas))[-1].reason == "too many prompts"
    assert len(script.started) == A_MINUTE


async def test_codes_behind_passwords_are_limited_too(wire: Wire, script: Script) -> None:
    """The eleventh code that is appended to a password within a minute is not checked."""
    for number in range(CODES_A_MINUTE + 1):
        assert (await exchange(wire, a_login(b"", password=f"hello00000{number % 10}")))[0] == ACCESS_REJECT
    assert len(script.verified) == CODES_A_MINUTE
    assert (await events(wire.areas))[-1].reason == "too many prompts"


# --- time ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fallback", Fallback)
async def test_a_push_without_an_answer(
    wire: Wire, script: Script, mock_clock: trio.testing.MockClock, fallback: Fallback
) -> None:
    """A push without an answer is rejected after the provider's timeoutSeconds.

    The fallback never covers it, and the push is cancelled once.
    """
    mock_clock.rate = 1
    await fall_back_to(wire.areas, fallback)
    datagram = a_login()
    wire.put(datagram)
    await prompted(script)
    await until(lambda: bool(script.polled))
    mock_clock.jump(61)
    assert (await answer(wire, datagram))[0] == ACCESS_REJECT
    assert await outcomes(wire.areas) == [("reject", "reject", "", "second factor not answered in time", WITH)]
    await until(lambda: bool(script.cancelled))
    assert script.cancelled == [script.started[0].challenge_id]


@pytest.mark.parametrize("fallback", Fallback)
async def test_a_provider_that_does_not_answer(
    wire: Wire, script: Script, mock_clock: trio.testing.MockClock, fallback: Fallback
) -> None:
    """A provider that does not answer is unreachable, and the fallback decides the login.

    Five such logins open its circuit, however short the timeout is.
    """
    mock_clock.rate = 1
    await script.attach(wire.areas, timeout_s=5)
    await fall_back_to(wire.areas, fallback)
    script.begins = None
    verdict = "accept" if fallback is Fallback.ALLOW else "reject"
    for number in range(5):
        await wire.areas.add_user(wire.areas.domain, f"user{number}", b"hello")
    waiting = [a_login(new_session(), user=f"user{number}") for number in range(5)]
    wire.put(*waiting)
    await prompted(script, 5)
    mock_clock.jump(4.6)
    for _ in waiting:
        assert (await wire.take())[0][0] == (ACCESS_ACCEPT if verdict == "accept" else ACCESS_REJECT)
    await exchange(wire, a_login(new_session()))
    rows = await outcomes(wire.areas)
    assert {row[:3] for row in rows} == {(verdict, verdict, "")}
    assert {row[3] for row in rows[:-1]} <= {"provider unreachable", "provider unreachable, circuit open"}
    assert rows[-1] == (verdict, verdict, "", "provider unreachable, circuit open", WITH)
    assert len(script.started) == 5


async def test_a_provider_that_fails_while_a_push_waits(wire: Wire, script: Script) -> None:
    """If the provider fails while a push is pending, the login is rejected because the provider is unreachable, and the
    prompt is cancelled."""
    script.fails = None
    datagram = a_login()
    wire.put(datagram)
    await prompted(script)
    script.fails = ProviderError("away")
    script.answer(0, Outcome.NOT_ENROLLED)  # not a valid answer of `poll`
    assert (await answer(wire, datagram))[0] == ACCESS_REJECT
    assert (await outcomes(wire.areas))[0][3] == "provider unreachable"
    await until(lambda: bool(script.cancelled))


@pytest.mark.parametrize("again_s", [-1.0, float("nan"), float("inf")])
async def test_a_provider_with_invalid_values(wire: Wire, script: Script, again_s: float) -> None:
    """A provider that returns invalid values counts as unreachable. The service continues."""
    script.again_s = again_s
    assert (await exchange(wire, a_login()))[0] == ACCESS_REJECT
    assert (await outcomes(wire.areas))[0][3] == "provider unreachable"
    script.begins = Outcome.APPROVED
    assert (await exchange(wire, a_login()))[0] == ACCESS_ACCEPT


# --- a store that fails -------------------------------------------------------------------------------------------


async def test_a_challenge_that_cannot_be_stored(wire: Wire, script: Script) -> None:
    """A challenge that cannot be committed is not sent."""
    script.begins = Outcome.CODE
    await wire.areas.store.write(lambda tx: tx.execute("alter table challenges rename to gone"))
    wire.put(a_login())
    await prompted(script)
    await wire.silence()
    assert (wire.dropped("internal_error"), wire.auth.in_flight) == (1, 0)


@pytest.mark.parametrize("fallback", Fallback)
async def test_a_store_that_fails_the_provider(wire: Wire, script: Script, fallback: Fallback) -> None:
    """If the provider raises StoreError, there is no answer, whatever the fallback is.

    When the store works again, the same State and code are accepted.
    """
    script.begins = Outcome.CODE
    await fall_back_to(wire.areas, fallback)
    state = await challenged(wire)
    script.fails = StoreError("no space")
    for password, body in (("123456", SESSION + attributes(STATE=state)), ("hello123456", new_session())):
        wire.put(a_login(body, password=password))
        await wire.silence()
    assert (wire.dropped("internal_error"), wire.auth.in_flight, wire.waiting.now) == (2, 0, 0)
    script.fails = None
    assert (await exchange(wire, typed("123456", state)))[0] == ACCESS_ACCEPT


# --- changes while a prompt is open -------------------------------------------------------------------------------


async def test_a_device_that_was_deleted_meanwhile(wire: Wire, areas: Areas, script: Script) -> None:
    """A pending request does not register its device again if the device was deleted.

    The event is stored, and the next request registers the device.
    """
    script.begins = Outcome.APPROVED
    await exchange(wire, a_login(b""))
    script.begins = Outcome.WAITING
    datagram = a_login()
    wire.put(datagram)
    await prompted(script, 2)
    device = (await areas.store.read(lambda tx: tx.all(lambda id: id, "select id from devices")))[0]
    await areas.devices.delete(areas.domain, device_ids=[device], addresses=None, actor="a test")
    script.answer(1, Outcome.APPROVED)
    assert (await answer(wire, datagram))[0] == ACCESS_ACCEPT
    await areas.devices.flush()
    sql = "select (select count(*) from devices) + (select count(*) from stations)"
    assert await areas.store.read(lambda tx: tx.value(int, sql)) == 0
    assert len(await events(areas)) == 2
    script.begins = Outcome.APPROVED
    await exchange(wire, a_login(new_session()))
    assert await areas.store.read(lambda tx: tx.value(int, "select count(*) from devices")) == 1


@pytest.mark.parametrize("change", ["deleted", "password", "blocked", "monitor"])
async def test_an_approval_is_decided_by_the_present_state(
    wire: Wire, areas: Areas, script: Script, change: str
) -> None:
    """The state after the approval decides: whether the user was deleted, the password changed, a rule blocks, or the
    mode changed."""
    datagram = a_login()
    wire.put(datagram)
    await prompted(script)
    if change in {"deleted", "password"}:
        await areas.remove_user(areas.domain, "ann")
    if change == "password":
        await areas.add_user(areas.domain, "ann", b"another")
    elif change == "blocked":
        await areas.rules.add(
            areas.domain, RuleFields.model_validate({"name": "r", "action": "block", "everyone": True})
        )
    elif change == "monitor":
        await areas.domains.set_mode([areas.domain], Mode.MONITOR)
    script.answer(0, Outcome.DENIED if change == "monitor" else Outcome.APPROVED)
    code, _ = await answer(wire, datagram)
    expected = {
        "deleted": ("reject", "reject", "", "unknown user", WITH),
        "password": ("reject", "reject", "", "wrong password", WITH),
        "blocked": ("reject", "reject", "", "blocked by rule", WITH),
        "monitor": ("reject", "accept", "reject", "second factor denied", WITH),
    }
    assert await outcomes(areas) == [expected[change]]
    assert code == (ACCESS_ACCEPT if change == "monitor" else ACCESS_REJECT)


# --- the end ------------------------------------------------------------------------------------------------------


async def test_the_service_stops(wire: Wire, areas: Areas, script: Script) -> None:
    """When the service stops, it cancels a pending push, unless the user can still answer it by a challenge.

    No request is answered.
    """
    later = Areas(areas.store, areas.clock)
    later.kinds.update(areas.kinds)
    await later.configuration.reload()
    async with trio.open_nursery() as service:
        await service.start(later.second.run)
        async with trio.open_nursery() as listener:
            other = Wire(later, listener)
            later.patience = 0.02
            other.put(a_login(new_session()))
            assert (await other.take())[0][0] == ACCESS_CHALLENGE
            later.patience = 60
            other.put(a_login())
            await prompted(script, 2)
            await until(lambda: len(script.polled) == 2)
            service.cancel_scope.cancel()
            await until(lambda: bool(script.cancelled))
            listener.cancel_scope.cancel()
    assert script.cancelled == [script.started[1].challenge_id]
    assert [row[0] for row in await outcomes(areas)] == ["challenge"]


@pytest.mark.parametrize("limit", [1, 40])
async def test_nothing_is_left(
    wire: Wire, areas: Areas, script: Script, mock_clock: trio.testing.MockClock, limit: int
) -> None:
    """When logins with every outcome have ended and their time has passed, nothing is in memory and the store has no
    challenge."""
    mock_clock.rate = 1
    ends = [Outcome.APPROVED, Outcome.DENIED, Outcome.NOT_ENROLLED, Outcome.CODE, Outcome.WAITING]
    for number in range(limit):
        for begins in ends:
            user = f"user{number}-{begins}"
            await areas.add_user(areas.domain, user, b"hello")
            script.begins = begins
            before = len(script.started)
            datagram = a_login(new_session(), user=user)
            wire.put(datagram)
            if begins is Outcome.WAITING:
                await until(lambda before=before: len(script.started) > before)  # type: ignore[misc]
                script.answer(before, Outcome.APPROVED if number % 2 else Outcome.DENIED)
            code, first = await answer(wire, datagram)
            if code == ACCESS_CHALLENGE and number % 2:
                script.right.add("123456")
                assert (await exchange(wire, typed("123456", first[24], b"", user=user)))[0] == ACCESS_ACCEPT
        script.fails = ProviderError("away") if number % 10 == 0 else None
        script.begins = Outcome.APPROVED
        await exchange(wire, a_login(new_session(), user=user, password="hello000000"))
        script.fails = None
    await wire.silence()
    assert (wire.auth.in_flight, wire.waiting.now) == (0, 0)
    assert set(kept(areas)) <= {"challenges"}
    await areas.wait(121)
    mock_clock.jump(31)
    await until(lambda: not kept(areas))
    mock_clock.jump(31)
    with trio.fail_after(60):
        while await areas.store.read(lambda tx: tx.value(int, "select count(*) from challenges")):
            await trio.sleep(0.001)
    assert not areas.second._prompts._open
    assert script.enrolment is Enrolment.ENROLLED
