"""What follows from "not me" and from prompts without an answer: the logins of the user end, and no prompt is sent for
ten minutes."""

import threading
from itertools import count

import pytest
import trio.testing

from sallyport.areas.domains.domain import Fallback, Mode
from sallyport.areas.domains.service import Update
from sallyport.areas.factors.denials import Denial, DeniedAt
from sallyport.areas.factors.pauses.repo import Pause
from sallyport.areas.mfa.provider import Outcome
from sallyport.areas.policy.lockouts.failures import LockoutKind
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE, ACCESS_REJECT
from sallyport.store.model import Tx
from tests.areas import Areas, only_sqlite, refuse
from tests.areas.login.listen.conftest import Wire
from tests.areas.login.listen.second import (
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
from tests.areas.login.listen.test_second_factor_restart import restarted
from tests.areas.login.second.scripted import Script, fall_back_to
from tests.packets import attributes
from tests.waiting import until

__all__ = ["script", "wire"]

NO_PROMPT = ACCESS_REJECT, "too many prompts"
MINUTES = 60.0
numbers = count(1)


def new_session() -> bytes:
    """Return the attributes of a session that differs from all others."""
    return attributes(ACCT_SESSION_ID=b"not me %d" % next(numbers))


async def pauses(areas: Areas) -> list[Pause]:
    """Return the pauses of the domain."""
    return (await areas.app.factors.pauses.page(areas.domain, "", offset=0, limit=100))[0]


async def login(wire: Wire, user: str = "ann", password: str = "hello") -> tuple[int, str]:  # noqa: S107
    """Log in. Return the code of the answer and the event's reason."""
    code, _ = await exchange(wire, a_login(new_session(), user=user, password=password))
    return code, (await events(wire.areas))[-1].reason


async def answered(wire: Wire, script: Script, outcome: Outcome, user: str = "ann") -> tuple[int, str]:
    """Log in with a push that the user answers. Return the code of the answer and the event's reason."""
    number = len(script.started)
    datagram = a_login(new_session(), user=user)
    wire.put(datagram)
    await prompted(script, number + 1)
    script.answer(number, outcome)
    code, _ = await answer(wire, datagram)
    return code, (await events(wire.areas))[-1].reason


async def unanswered(wire: Wire, script: Script, clock: trio.testing.MockClock) -> tuple[int, str]:
    """Log in with a push that the user does not answer. Return the code of the answer and the event's reason."""
    number = len(script.started)
    datagram = a_login(new_session())
    wire.put(datagram)
    await prompted(script, number + 1)
    await until(lambda: len(script.polled) > number)
    clock.jump(61)
    code, _ = await answer(wire, datagram)
    return code, (await events(wire.areas))[-1].reason


async def deny(areas: Areas, user: str = "ann", *, is_checked: bool = True) -> None:
    """Say on a page that another person has begun a login."""
    await areas.app.factors.denials.deny(Denial(areas.domain, user, DeniedAt.PAGE, is_checked))


# --- not me -------------------------------------------------------------------------------------------------------


async def test_not_me_refuses_the_login_and_pauses_the_prompts(wire: Wire, script: Script) -> None:
    """The login is rejected with the reason, whatever the fallback is. For ten minutes the user gets no prompt, by any
    spelling of the name. The event names the end of the pause. Then prompts are sent again."""
    await fall_back_to(wire.areas, Fallback.ALLOW)
    assert await answered(wire, script, Outcome.NOT_ME) == (ACCESS_REJECT, "not me")
    (pause,) = await pauses(wire.areas)
    assert (pause.user_name, pause.reason, pause.until - pause.at) == ("ann", "not me", 600_000_000)
    for user in ("ann", "ANN"):
        assert await login(wire, user) == NO_PROMPT
    assert (await events(wire.areas))[-1].detail == "no prompt until 2026-01-01T00:10:00Z: not me"
    assert len(script.started) == 1
    await wire.areas.wait(9.9 * MINUTES)
    assert await login(wire) == NO_PROMPT
    await wire.areas.wait(0.2 * MINUTES)
    assert await answered(wire, script, Outcome.APPROVED) == (ACCESS_ACCEPT, "")


async def test_a_refusal_of_the_provider_is_not_not_me(wire: Wire, script: Script) -> None:
    """A provider that refuses a locked account says nothing about the user. Prompts are sent again at once."""
    assert await answered(wire, script, Outcome.DENIED) == (ACCESS_REJECT, "second factor denied")
    assert await pauses(wire.areas) == []
    assert await answered(wire, script, Outcome.APPROVED) == (ACCESS_ACCEPT, "")


async def test_a_typed_code_works_during_a_pause(wire: Wire, script: Script) -> None:
    """A code after the password needs no prompt. So the user of the account can still log in with it."""
    await answered(wire, script, Outcome.NOT_ME)
    assert await login(wire) == NO_PROMPT
    assert await login(wire, password="hello123456") == (ACCESS_ACCEPT, "")


async def test_other_users_get_prompts(wire: Wire, script: Script) -> None:
    """The pause is of one user."""
    await answered(wire, script, Outcome.NOT_ME)
    assert await answered(wire, script, Outcome.APPROVED, "bob") == (ACCESS_ACCEPT, "")


async def test_not_me_ends_all_waiting_logins_of_the_user(wire: Wire, script: Script) -> None:
    """The other waiting login of the user is rejected with the same reason, and its prompt is withdrawn: its approval
    would come too late. The login of another user waits on."""
    first, second, bobs = (a_login(new_session(), user=user) for user in ("ann", "Ann", "bob"))
    for number, datagram in enumerate((first, second, bobs), 1):
        wire.put(datagram)
        await prompted(script, number)
    script.answer(0, Outcome.NOT_ME)
    assert [(await wire.take())[0][0] for _ in range(2)] == [ACCESS_REJECT] * 2
    assert [each.reason for each in await events(wire.areas)] == ["not me"] * 2
    await until(lambda: script.started[1].challenge_id in script.cancelled)
    script.answer(1, Outcome.APPROVED)
    script.answer(2, Outcome.APPROVED)
    assert (await answer(wire, bobs))[0] == ACCESS_ACCEPT
    await wire.silence()


@pytest.mark.parametrize("begins", [Outcome.CODE, Outcome.WAITING])
async def test_not_me_ends_the_challenges_of_the_user(wire: Wire, script: Script, begins: Outcome) -> None:
    """A challenge that an attacker still has before the own eyes cannot be answered any more, not even by the right
    code. The State cannot be used twice."""
    script.begins = begins
    wire.areas.patience = 0.02 if begins is Outcome.WAITING else 60
    state = await challenged(wire)
    await deny(wire.areas)
    for reason in ("not me", "the challenge is unknown, over or another's"):
        assert (await exchange(wire, typed("123456", state)))[0] == ACCESS_REJECT
        assert (await events(wire.areas))[-1].reason == reason
    assert script.verified == []


async def test_a_denied_challenge_stays_denied_after_a_restart(wire: Wire, script: Script) -> None:
    """The denial is in the store, with the challenge. So the approval of the prompt changes nothing after a restart.
    The pause has not ended."""
    wire.areas.patience = 0.02
    state = await challenged(wire)
    await prompted(script)
    await deny(wire.areas)
    script.answer(0, Outcome.APPROVED)
    async with restarted(wire) as later:
        assert (await exchange(later, typed("", state)))[0] == ACCESS_REJECT
        assert (await events(later.areas))[-1].reason == "not me"
        assert await login(later) == NO_PROMPT


async def test_an_approval_that_waits_for_the_device_is_denied_too(wire: Wire, script: Script) -> None:
    """The user has approved one prompt, and says "not me" to the other. The device has not come back for the first one
    yet: it is refused."""
    wire.areas.patience = 0.02
    state = await challenged(wire)
    await prompted(script)
    script.answer(0, Outcome.APPROVED)
    await until(
        lambda: wire.areas.sample("sallyport_mfa_challenges_total", provider="scripted", result="approved") == 1
    )
    await deny(wire.areas)
    assert (await exchange(wire, typed("", state)))[0] == ACCESS_REJECT
    assert (await events(wire.areas))[-1].reason == "not me"


@only_sqlite  # with PostgreSQL, the row of the prompt does this: tests/nodes/test_prompts.py
async def test_an_accept_that_is_not_stored_yet_is_denied_too(wire: Wire, script: Script) -> None:
    """The user approves a prompt, and has denied a login on a page a moment before: the store writes the denial first.
    The Accept is neither stored nor sent."""
    denials, denial = wire.areas.app.factors.denials, Denial(wire.areas.domain, "ann", DeniedAt.PAGE)
    is_written, is_decided = threading.Event(), threading.Event()

    def write(tx: Tx) -> None:
        is_written.set()
        assert is_decided.wait(60)
        denials.write(tx, denial)

    async def deny_slowly() -> None:
        await wire.areas.store.write(write)
        denials.committed(denial)

    wire.put(a_login(new_session()))
    await prompted(script)
    wire.nursery.start_soon(deny_slowly)
    await until(is_written.is_set)
    script.answer(0, Outcome.APPROVED)
    await until(lambda: wire.areas.journal._writing == 1, seconds=50)
    is_decided.set()
    await wire.silence()
    assert await events(wire.areas) == []
    assert await login(wire) == NO_PROMPT


async def test_a_denial_without_a_checked_password_harms_nobody(wire: Wire, script: Script) -> None:
    """Anybody can start and deny a login that checks no password. The user's own login is accepted without a pause."""
    datagram = a_login(new_session())
    wire.put(datagram)
    await prompted(script)
    await deny(wire.areas, is_checked=False)
    script.answer(0, Outcome.APPROVED)
    assert (await answer(wire, datagram))[0] == ACCESS_ACCEPT
    assert await pauses(wire.areas) == []


async def test_not_me_during_monitoring(wire: Wire, script: Script) -> None:
    """In a domain that monitors, a pause rejects no login."""
    await answered(wire, script, Outcome.NOT_ME)
    await wire.areas.domains.set_mode([wire.areas.domain], Mode.MONITOR)
    assert (await login(wire))[0] == ACCESS_ACCEPT


async def test_a_denial_that_cannot_be_stored(wire: Wire, script: Script) -> None:
    """Without a stored pause the device gets no answer. It asks again."""
    datagram = a_login(new_session())
    wire.put(datagram)
    await prompted(script)
    await refuse(wire.areas.store, "before insert on prompt_pauses")
    script.answer(0, Outcome.NOT_ME)
    await wire.silence()
    assert await events(wire.areas) == []


async def test_the_denial_is_reported(wire: Wire, script: Script) -> None:
    """The audit trail names the user and the place, once. The metric counts the pause."""
    await answered(wire, script, Outcome.NOT_ME)
    await deny(wire.areas)
    sql = "select action, target, changes from audit_trail where action = 'user.not_me'"
    rows = await wire.areas.store.read(lambda tx: tx.rows(sql))
    assert rows == [("user.not_me", "user ann", '{"where": [null, "provider"]}')]
    assert wire.areas.sample("sallyport_mfa_prompt_pauses_total", reason="not_me") == 1


# --- no answer ----------------------------------------------------------------------------------------------------


async def test_two_prompts_without_an_answer(wire: Wire, script: Script, mock_clock: trio.testing.MockClock) -> None:
    """After the second prompt in a row without an answer, no prompt is sent for ten minutes. After the pause, one more
    prompt without an answer begins the next pause. An approval ends the count."""
    mock_clock.rate = 1
    areas, late = wire.areas, (ACCESS_REJECT, "second factor not answered in time")
    assert await unanswered(wire, script, mock_clock) == late
    assert await pauses(areas) == []
    assert await unanswered(wire, script, mock_clock) == late
    (pause,) = await pauses(areas)
    assert (pause.reason, pause.unanswered) == ("unanswered", 2)
    assert await login(wire) == NO_PROMPT
    await areas.wait(10.1 * MINUTES)
    assert await unanswered(wire, script, mock_clock) == late
    assert await login(wire) == NO_PROMPT
    await areas.wait(10.1 * MINUTES)
    assert await answered(wire, script, Outcome.APPROVED) == (ACCESS_ACCEPT, "")
    assert await unanswered(wire, script, mock_clock) == late
    assert await pauses(areas) == []


async def test_a_prompt_of_an_hour_ago_does_not_count(
    wire: Wire, script: Script, mock_clock: trio.testing.MockClock
) -> None:
    """Two prompts without an answer begin a pause only if the second comes within an hour."""
    mock_clock.rate = 1
    await unanswered(wire, script, mock_clock)
    await wire.areas.wait(61 * MINUTES)
    await unanswered(wire, script, mock_clock)
    assert await pauses(wire.areas) == []
    await wire.areas.wait(61 * MINUTES)
    await wire.areas.app.factors.pauses.purge()
    assert await wire.areas.store.read(lambda tx: tx.rows("select * from prompt_pauses")) == []


async def test_a_prompt_that_expires_at_the_provider(wire: Wire, script: Script) -> None:
    """A provider may end a prompt that the user has not answered, before the login's own time is over."""
    for _ in range(2):
        assert await answered(wire, script, Outcome.UNANSWERED) == (
            ACCESS_REJECT,
            "second factor not answered in time",
        )
    assert await login(wire) == NO_PROMPT


async def test_the_prompt_that_a_device_has_given_up(
    wire: Wire, script: Script, mock_clock: trio.testing.MockClock
) -> None:
    """If the user has answered the prompt of a newer login, the older prompt was not ignored."""
    mock_clock.rate = 1
    await unanswered(wire, script, mock_clock)
    older = a_login(new_session())
    wire.put(older)
    await prompted(script, 2)
    assert await answered(wire, script, Outcome.APPROVED) == (ACCESS_ACCEPT, "")
    mock_clock.jump(61)
    assert (await answer(wire, older))[0] == ACCESS_REJECT
    assert await wire.areas.store.read(lambda tx: tx.rows("select * from prompt_pauses")) == []


async def test_a_challenge_without_an_answer_counts(
    wire: Wire, script: Script, mock_clock: trio.testing.MockClock
) -> None:
    """A prompt counts too if its login waits at the device's challenge. A challenge for a code is no prompt."""
    mock_clock.rate = 1
    wire.areas.patience = 0.02
    for number in range(2):
        await challenged(wire, new_session())
        await until(lambda number=number: len(script.polled) > number)  # type: ignore[misc]
        mock_clock.jump(61)
    await until(lambda: wire.areas.sample("sallyport_mfa_prompt_pauses_total", reason="unanswered") == 1)
    assert await login(wire) == NO_PROMPT
    script.begins = Outcome.CODE
    for _ in range(3):
        assert (await exchange(wire, a_login(new_session(), user="bob")))[0] == ACCESS_CHALLENGE
        mock_clock.jump(121)
    assert [each.user_name for each in await pauses(wire.areas)] == ["ann"]


async def test_a_restart_does_not_forget(wire: Wire, script: Script, mock_clock: trio.testing.MockClock) -> None:
    """Neither the pause nor the count before it are forgotten by a restart."""
    mock_clock.rate = 1
    await unanswered(wire, script, mock_clock)
    async with restarted(wire) as later:
        await unanswered(later, script, mock_clock)
        async with restarted(later) as latest:
            assert await login(latest) == NO_PROMPT
    assert len(script.started) == 2


# --- operators ----------------------------------------------------------------------------------------------------


async def test_an_operator_ends_a_pause(wire: Wire, script: Script) -> None:
    """After its end the user gets prompts. The audit trail has the end."""
    await answered(wire, script, Outcome.NOT_ME)
    ended = await wire.areas.app.factors.pauses.end(wire.areas.domain, " ANN ")
    assert ended is not None and ended.user_name == "ann"
    assert await wire.areas.app.factors.pauses.end(wire.areas.domain, "ann") is None
    assert await answered(wire, script, Outcome.APPROVED) == (ACCESS_ACCEPT, "")
    sql = "select target from audit_trail where action = 'user.prompts_resumed'"
    assert await wire.areas.store.read(lambda tx: tx.rows(sql)) == [("user ann",)]


async def test_a_domain_may_lock_the_user(wire: Wire, script: Script) -> None:
    """With the setting, the user is locked until an operator unlocks the user: also after a year, after a restart, and
    with a right code. Unlocking ends the pause too."""
    areas = wire.areas
    await areas.domains.update(areas.domain, Update(settings={"lock_on_not_me": True}))
    assert await answered(wire, script, Outcome.NOT_ME) == (ACCESS_REJECT, "not me")
    locked = (ACCESS_REJECT, "locked out after failures")
    assert await login(wire, password="hello123456") == locked
    assert (await answered(wire, script, Outcome.APPROVED, "bob"))[0] == ACCESS_ACCEPT
    await areas.wait(366 * 24 * 60 * MINUTES)
    await areas.lockouts.sweep()
    async with restarted(wire) as later:
        await later.areas.lockouts.load()
        assert await login(later) == locked
        (row,) = (await later.areas.lockouts.page(areas.domain, "", offset=0, limit=10))[0]
        assert (row.kind, row.name, row.failures) == ("user", "ann", 0)
        assert len(await later.areas.lockouts.unlock(areas.domain, LockoutKind.USER, "Ann")) == 1
        assert await answered(later, script, Outcome.APPROVED) == (ACCESS_ACCEPT, "")
