"""Tests of lock-outs with a second factor: which failures count, and that locked users get no prompt."""

from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import pytest
import trio
import trio.testing

from sallyport.areas.login.second.prompts import A_MINUTE, MINUTE_S
from sallyport.areas.login.second.running import HELD_S
from sallyport.areas.mfa.provider import Outcome
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.base.errors import StoreError
from sallyport.radius.attributes import STATE
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE, ACCESS_REJECT
from sallyport.store.model import Done, Work
from tests.areas import Areas, SetClock, clock, running_areas
from tests.areas.login.listen.conftest import Wire
from tests.areas.login.listen.second import (
    OTHER,
    SESSION,
    STATION,
    a_login,
    answer,
    challenged,
    events,
    exchange,
    prompted,
    script,
    typed,
    wire,
)
from tests.areas.login.listen.test_fresh_look import new_password
from tests.areas.login.second.scripted import Script
from tests.packets import attributes, pap
from tests.waiting import until

__all__ = ["clock", "script", "wire"]

ELSEWHERE = attributes(CALLING_STATION_ID=b"02-00-00-00-00-77", NAS_PORT=(9).to_bytes(4))


@pytest.fixture
async def areas(tmp_path: Path, clock: SetClock) -> AsyncIterator[Areas]:
    """Yield the areas with a new store. Ten failures lock a user."""
    async with running_areas(tmp_path, clock, lockout_failures=10) as areas:
        yield areas


GUESSES = count()


async def reasons(wire: Wire) -> list[str]:
    """Return the reasons of all events, oldest first."""
    return [each.reason for each in await events(wire.areas)]


async def fail(wire: Wire, times: int, user: str = "ann", body: bytes = ELSEWHERE) -> None:
    """Send logins with wrong passwords."""
    for _ in range(times):
        assert (await exchange(wire, a_login(body, user=user, password=f"wrong {next(GUESSES)}")))[0] == ACCESS_REJECT


@pytest.mark.parametrize("signed", [True, False], ids=["signed", "unsigned"])
async def test_wrong_codes_count(wire: Wire, script: Script, signed: bool) -> None:
    """Each of the three codes of a challenge counts.

    After the tenth failure no code is checked and no prompt is sent.
    """
    script.begins = Outcome.CODE
    guesses = 0
    while guesses < 10:
        state = await challenged(wire, signed=signed)
        for _ in range(min(3, 10 - guesses)):
            code, values = await exchange(wire, typed("000000", state, signed=signed))
            guesses += 1
            state = values.get(STATE, state)
    assert code == ACCESS_CHALLENGE
    assert len(script.verified) == 10
    begun = len(script.started)
    assert (await exchange(wire, typed("123456", state)))[0] == ACCESS_REJECT
    assert (await exchange(wire, a_login(password="hello123456")))[0] == ACCESS_REJECT
    assert (await exchange(wire, a_login()))[0] == ACCESS_REJECT
    assert (await reasons(wire))[-3:] == ["locked out after failures"] * 3
    assert (len(script.verified), len(script.started)) == (10, begun)


async def test_a_lock_names_the_trace_of_its_login(wire: Wire, script: Script) -> None:
    """The audit trail has the trace id of the login that was one failure too many."""
    await fail(wire, 9)
    script.begins = Outcome.CODE
    await exchange(wire, typed("000000", await challenged(wire)))
    sql = "select request_id from audit_trail where action = 'user.locked'"
    ((found,),) = await wire.areas.store.read(lambda tx: tx.rows(sql))
    assert found == (await events(wire.areas))[-1].trace_id != ""


async def test_wrong_codes_under_one_authenticator_count(wire: Wire, script: Script) -> None:
    """Wrong codes that are sent with the same authenticator are counted separately, because a sender who knows the
    secret can reuse an authenticator."""
    script.begins = Outcome.CODE
    for number in range(10):
        wire.areas.clock.pass_by(7)  # stay below the limit of ten prompts a minute
        password = f"hello{number:06}"
        datagram = pap("ann", password, SESSION, identifier=number, authenticator=bytes(16))
        assert (await exchange(wire, datagram))[0] == ACCESS_REJECT
    assert (await exchange(wire, a_login(password="hello123456")))[0] == ACCESS_REJECT
    assert (await reasons(wire)) == ["wrong code"] * 10 + ["locked out after failures"]


async def test_a_repeated_code_is_not_checked_again(wire: Wire, script: Script) -> None:
    """A wrong code that comes again with the same authenticator does not count, and is not checked either. Otherwise a
    sender who knows the secret could try the same codes at each later time, and count only once for each."""
    script.begins = Outcome.CODE
    state = await challenged(wire)
    body = SESSION + attributes(STATE=state)
    first = {"appended": pap("ann", "hello000000", SESSION, identifier=1, authenticator=bytes(16))}
    first["answer"] = pap("ann", "000000", body, identifier=2, authenticator=bytes(16))
    assert (await exchange(wire, first["appended"]))[0] == ACCESS_REJECT
    assert (await exchange(wire, first["answer"]))[0] == ACCESS_CHALLENGE
    script.right.add("000000")  # a later time
    body = SESSION + attributes(STATE=await challenged(wire))
    again = [pap("ann", "hello000000", SESSION, identifier=3, authenticator=bytes(16))]
    again += [pap("ann", "000000", body, identifier=4, authenticator=bytes(16))]
    for datagram in again:
        assert (await exchange(wire, datagram))[0] == ACCESS_REJECT
    assert len(script.verified) == 2
    assert set(await reasons(wire)) >= {"wrong code"}
    assert (await exchange(wire, a_login(password="hello000000")))[0] == ACCESS_ACCEPT


@pytest.mark.parametrize("signed", [True, False], ids=["signed", "unsigned"])
async def test_codes_appended_to_the_password_count(wire: Wire, script: Script, signed: bool) -> None:
    """A login with the right password and a wrong code does not reset the count."""
    script.begins = Outcome.CODE
    for number in range(10):
        wire.areas.clock.pass_by(7)  # stay below the limit of ten prompts a minute
        assert (await exchange(wire, a_login(password=f"hello{number:06}", signed=signed)))[0] == ACCESS_REJECT
    assert set(await reasons(wire)) == {"wrong code"}
    assert (await exchange(wire, a_login(password="hello123456")))[0] == ACCESS_REJECT
    assert len(script.verified) == 10


@pytest.mark.parametrize("code", ["", "123456"])
async def test_a_login_without_a_code_resets_no_wrong_codes(wire: Wire, script: Script, code: str) -> None:
    """A login without a second factor resets the count of wrong passwords, but not the count of wrong codes.

    A right code resets both.
    """
    script.begins = Outcome.CODE
    rule = RuleFields.model_validate({"name": "wifi", "action": "allow", "stations": ["02-00-00-00-00-77"]})
    await wire.areas.rules.add(wire.areas.domain, rule)
    for number in range(5):
        assert (await exchange(wire, a_login(password=f"hello{number:06}")))[0] == ACCESS_REJECT
    body = SESSION if code else ELSEWHERE
    assert (await exchange(wire, a_login(body, password=f"hello{code}")))[0] == ACCESS_ACCEPT
    await fail(wire, 5)
    right = (await exchange(wire, a_login(password="hello12345678")))[0]
    assert right == (ACCESS_ACCEPT if code else ACCESS_REJECT)
    assert ("locked out after failures" in await reasons(wire)) is not bool(code)


async def test_codes_with_a_used_state_do_not_count(wire: Wire, script: Script) -> None:
    """Unsigned codes with a used State do not lock the user. Unsigned wrong passwords do not lock the user either."""
    script.begins = Outcome.CODE
    state = await challenged(wire, signed=False)
    await exchange(wire, typed("000000", state, signed=False))
    for _ in range(12):
        assert (await exchange(wire, typed("000000", state, signed=False)))[0] == ACCESS_REJECT
        assert (await exchange(wire, a_login(password=f"wrong {next(GUESSES)}", signed=False)))[0] == ACCESS_REJECT
    assert "locked out after failures" not in await reasons(wire)


async def test_a_login_that_waits_is_refused_too(wire: Wire, script: Script) -> None:
    """An approval is rejected if the user was locked while the push was pending."""
    waiting = a_login()
    wire.put(waiting)
    await prompted(script)
    await fail(wire, 10)
    script.answer(0, Outcome.APPROVED)
    assert (await answer(wire, waiting))[0] == ACCESS_REJECT
    assert (await reasons(wire))[-1] == "locked out after failures"


@pytest.mark.parametrize("signed", [True, False], ids=["signed", "unsigned"])
async def test_a_password_that_changes_while_a_login_waits(wire: Wire, script: Script, signed: bool) -> None:
    """The login counts as a failure. An unsigned request counts too, because only a host with the shared secret could
    encrypt the password that was right."""
    waiting = a_login(signed=signed)
    wire.put(waiting)
    await prompted(script)
    await new_password(wire.areas)
    await fail(wire, 9)
    script.answer(0, Outcome.APPROVED)
    assert (await answer(wire, waiting))[0] == ACCESS_REJECT
    assert (await reasons(wire))[-1] == "wrong password"
    await fail(wire, 1)
    assert (await reasons(wire))[-1] == "locked out after failures"


async def test_codes_that_are_checked_together(wire: Wire, script: Script, mock_clock: trio.testing.MockClock) -> None:
    """After five failures ten codes are checked at the same time.

    Five of them are reported as wrong, and the others as locked out.
    """
    mock_clock.rate = 1
    script.begins, states = Outcome.CODE, list[bytes]()
    for number in range(10):
        if number % A_MINUTE == 0:
            mock_clock.jump(MINUTE_S + 1)
        states.append(await challenged(wire, station(number)))
    await fail(wire, 5)
    script.gate = trio.Event()
    for number, state in enumerate(states):
        wire.put(typed("000000", state, station(number)))
        await until(lambda: len(script.verified) == number + 1)  # noqa: B023  called at once
    script.gate.set()
    answers = [(await wire.take())[0][0] for _ in states]
    assert (answers.count(ACCESS_CHALLENGE), answers.count(ACCESS_REJECT)) == (5, 5)
    assert (await reasons(wire))[-10:].count("locked out after failures") == 5


def station(number: int) -> bytes:
    """Return the attributes of a station."""
    return attributes(CALLING_STATION_ID=b"02-00-00-00-01-%02x" % number)


async def test_an_approval_resets_the_count(wire: Wire, script: Script, mock_clock: trio.testing.MockClock) -> None:
    """An approved push resets the count. A right password without a second factor does not."""
    mock_clock.rate = 1
    for number, outcome in enumerate((Outcome.APPROVED, Outcome.APPROVED, Outcome.DENIED)):
        await fail(wire, 9, body=SESSION)
        login = a_login()
        wire.put(login)
        await prompted(script, number + 1)
        script.answer(number, outcome)
        await answer(wire, login)
        mock_clock.jump(HELD_S)
    await fail(wire, 1, body=SESSION)
    assert (await exchange(wire, a_login()))[0] == ACCESS_REJECT
    assert (await reasons(wire))[-1] == "locked out after failures"


async def test_retransmits_count_once(wire: Wire) -> None:
    """An identical packet counts as one failure, even if it is sent more than ten times."""
    wrong = a_login(password="wrong")
    for _ in range(20):
        wire.put(wrong)
        assert (await wire.take())[0][0] == ACCESS_REJECT
    assert len(await events(wire.areas)) == 1
    await fail(wire, 8)
    assert (await exchange(wire, a_login(password="wrong")))[0] == ACCESS_REJECT
    assert await reasons(wire) == ["wrong password"] * 10


async def test_joined_requests_count_once(wire: Wire, script: Script) -> None:
    """Five requests of one login that end with a wrong code count as one failure."""
    script.begins = Outcome.CODE
    state = await challenged(wire)
    for number in range(5):
        wire.put(typed("000000", state), source=(OTHER[0], 41000 + number))
    assert (await wire.take())[0][0] == ACCESS_CHALLENGE
    await wire.silence()
    await fail(wire, 8, body=STATION)
    assert (await exchange(wire, a_login(STATION, password="wrong")))[0] == ACCESS_REJECT
    assert (await reasons(wire))[-1] == "wrong password"
    assert (await exchange(wire, a_login(STATION, password="wrong")))[0] == ACCESS_REJECT
    assert (await reasons(wire))[-1] == "locked out after failures"


async def test_a_failing_store_locks_no_user(wire: Wire, areas: Areas) -> None:
    """While the store fails no request is answered, and retransmissions do not lock users."""
    store = areas.journal._store
    areas.journal._store = Failing()  # type: ignore[assignment]
    for _ in range(30):
        wire.put(a_login(ELSEWHERE, password="wrong"))
    await wire.silence()
    areas.journal._store = store
    await fail(wire, 9)
    assert set(await reasons(wire)) == {"wrong password"}
    assert wire.dropped("internal_error") == 30


class Failing:
    """A store whose disk is full."""

    def submit(self, work: Work[object], done: Done[object]) -> None:
        """Raise for every work."""
        done(None, StoreError("no space"))


async def test_a_lock_out_is_committed_before_the_answer(wire: Wire, areas: Areas) -> None:
    """The tenth reject is sent only after the lock-out has been committed."""
    await fail(wire, 9)
    wire.put(a_login(password="wrong"))
    await wire.take()
    locked = await areas.store.read(lambda tx: tx.value(str, "select name from lockouts"))
    assert locked == "ann"
