"""Tests of lock-outs in the login pipeline and in the store."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sallyport.areas.domains.domain import Domain, Mode
from sallyport.areas.login.decision import refusal
from sallyport.areas.login.login import Reason, Verdict
from sallyport.areas.policy.lockouts.failures import LockoutKind
from sallyport.base.clock import SECOND
from tests.areas import Areas
from tests.areas.directory.world import imported, person
from tests.areas.login.conftest import FakeListener
from tests.areas.login.first.conftest import Book
from tests.areas.login.second.scripted import Script
from tests.areas.policy.lockouts.guesses import (
    LOCKED,
    PHONE,
    STATION_LOCKED,
    TABLET,
    WRONG,
    fail,
    guess,
    log_in,
    stored,
    trail,
    why,
)
from tests.packets import access_request, attributes, chap, pap

# --- users --------------------------------------------------------------------------------------------------------


async def test_ten_failures_lock_a_user(listener: FakeListener) -> None:
    """The tenth failure has its own reason.

    After it even the right password is rejected, also in monitor mode. Other users of the domain are not affected.
    """
    await listener.areas.add_user(listener.areas.domain, "bob", b"hello")
    assert await fail(listener, 10) == [WRONG] * 10
    assert await log_in(listener, "ann", "hello") is LOCKED
    login = listener.login(pap("ANN", "hello"))
    assert (await listener.decide(login)).applied is Verdict.REJECT
    assert await log_in(listener, "bob", "hello") is Reason.NONE
    assert await stored(listener.areas) == [("user", "ann", 10)]


async def test_a_lock_out_ends(listener: FakeListener) -> None:
    """A lock-out ends after 15 minutes, whatever the user tries in that time.

    The next lock-out needs ten failures again.
    """
    await fail(listener, 10)
    for _ in range(14):
        listener.areas.clock.pass_by(60)
        assert await fail(listener, 2) == [LOCKED] * 2
    listener.areas.clock.pass_by(59.9)
    assert await log_in(listener, "ann", "hello") is LOCKED
    listener.areas.clock.pass_by(0.2)
    assert await fail(listener, 9) == [WRONG] * 9
    assert await log_in(listener, "ann", "hello") is Reason.NONE


async def test_a_success_resets_the_count(listener: FakeListener) -> None:
    """A success resets the count of failures."""
    for _ in range(3):
        await fail(listener, 9)
        assert await log_in(listener, "ann", "hello") is Reason.NONE
    assert await stored(listener.areas) == []


async def test_slow_failures_lock_no_user(listener: FakeListener) -> None:
    """One failure in 36 seconds never reaches ten failures within five minutes, so the user is not locked."""
    for _ in range(30):
        assert await log_in(listener) is WRONG
        listener.areas.clock.pass_by(31 + 5)
    assert await log_in(listener, "ann", "hello") is Reason.NONE


async def test_unknown_names_are_locked_too(listener: FakeListener) -> None:
    """An unknown name is locked too, because a reply would otherwise show whether a user exists.

    If a user with that name is added later, it is locked out.
    """
    await fail(listener, 10, "nobody")
    assert await log_in(listener, "nobody") is LOCKED
    await listener.areas.add_user(listener.areas.domain, "nobody", b"hello")
    assert await log_in(listener, "nobody", "hello") is LOCKED


async def test_a_lock_is_of_one_domain(listener: FakeListener) -> None:
    """The same name in another domain is another user, and is not locked."""
    other = await listener.areas.domains.add(listener.areas.tenant, "branch")
    await listener.areas.add_user(other, "ann", b"hello")
    await fail(listener, 10)
    assert await log_in(listener, "ann@branch", "hello") is Reason.NONE
    assert await log_in(listener, "ann@corp", "hello") is LOCKED


async def test_all_names_of_a_principal_share_a_count(listener: FakeListener, listed: Domain, book: Book) -> None:
    """A realm or another name in the directory gives a user no further attempts.

    The attempts of another user are not counted.
    """
    upn = "userPrincipalName: ann.smith@corp"
    await imported(listener.areas, person("Ann", upn) + person("ben"))
    spelled = ("ann", r"corp\ANN", "ann@corp", "ann.smith@corp", r"CORP\Ann.Smith")
    reasons = [reason for user in spelled for reason in await fail(listener, 2, user)]
    assert reasons == [WRONG] * 10
    for user in spelled:
        listener.areas.directory.principals.forget()
        assert await log_in(listener, user, "s3cret") is LOCKED
    assert await stored(listener.areas) == [("user", "Ann", 10)]
    assert await log_in(listener, "ben", "s3cret") is Reason.NONE
    assert await listener.areas.lockouts.unlock(listener.areas.domain, LockoutKind.USER, "ann")
    assert await log_in(listener, "ann.smith", "s3cret") is Reason.NONE


async def test_concurrent_guesses_are_limited(listener: FakeListener) -> None:
    """If thirty logins start before the first is decided, only ten are checked.

    The last login, with the right password, is rejected.
    """
    pipeline = listener.areas.pipeline
    listener.areas.users.forget()
    logins = [listener.login(pap("ann", guess(), identifier=number)) for number in range(29)]
    logins.append(listener.login(pap("ann", "hello", identifier=29)))
    assert [pipeline.begin(login) for login in logins] == [None] * 30
    decisions = [await pipeline.check(login) for login in logins]
    assert [each.reason for each in decisions if each is not None] == [WRONG] * 10 + [LOCKED] * 20


async def test_no_directory_is_asked_about_a_locked_user(listener: FakeListener, listed: Domain, book: Book) -> None:
    """The logins of a locked user are sent neither to a directory nor to another server."""
    assert await fail(listener, 10) == [WRONG] * 10
    assert await log_in(listener, "ann", "s3cret") is LOCKED
    assert book.asked == ["ann"] * 10


@pytest.mark.parametrize("mode", Mode)
async def test_a_rejection_reveals_no_password(listener: FakeListener, listed: Domain, mode: Mode) -> None:
    """Concurrent guesses after the tenth get the same answer, whatever the directory replies. The right password sends
    no prompt, whose wait would reveal it."""
    pipeline, script = listener.areas.pipeline, Script()
    await script.attach(listener.areas, mode=mode)
    logins = [listener.login(pap("ann", guess(), identifier=number)) for number in range(19)]
    logins.append(listener.login(pap("ann", "s3cret", identifier=19)))
    assert [pipeline.begin(login) for login in logins] == [None] * 20
    reasons = [why(await pipeline.check(login)) for login in logins]
    assert reasons == [WRONG] * 10 + [LOCKED] * 10
    assert {refusal(login, LOCKED) for login in logins[10:]} == {b""}
    assert refusal(logins[0], WRONG)
    assert not script.disturbed


async def test_monitoring_and_enforcing_are_the_same(listener: FakeListener) -> None:
    """A user that is locked out in one mode is also locked out in the other mode."""
    await fail(listener, 5)
    await listener.areas.domains.set_mode([listener.areas.domain], Mode.ENFORCE)
    await fail(listener, 5)
    assert await log_in(listener, "ann", "hello") is LOCKED
    await listener.areas.domains.set_mode([listener.areas.domain], Mode.MONITOR)
    assert await log_in(listener, "ann", "hello") is LOCKED


@dataclass
class Model:
    """A model of the rule for one user. Its times are in seconds."""

    failed: list[float] = field(default_factory=list)
    locked_until: float = 0.0

    def expects(self, now: float, step: str) -> Reason:
        """Return the result that the rule gives for a login."""
        if now < self.locked_until:
            return LOCKED
        if step == "right":
            self.failed.clear()
            return Reason.NONE
        if step == "wrong":
            self.failed = [at for at in self.failed if at > now - 300] + [now]
            if len(self.failed) >= 10:
                self.locked_until, self.failed = now + 900, []
        return WRONG


STEPS = st.lists(
    st.tuples(st.integers(0, 90), st.sampled_from(["wrong", "wrong", "wrong", "wrong", "unsigned", "right"])),
    min_size=10,
    max_size=80,
)


async def test_any_sequence_is_decided_by_the_rule(listener: FakeListener) -> None:
    """In any sequence at most ten guesses are answered within five minutes.

    A success resets the count. An unsigned failure is not counted.
    """
    areas, clock = listener.areas, listener.areas.clock
    await areas.users.load(areas.domain, "ann")

    @settings(max_examples=60, deadline=None)
    @given(STEPS)
    def check(steps: list[tuple[int, str]]) -> None:
        clock.pass_by(3600)
        model, begun = Model(), clock()
        for seconds, step in steps:
            clock.pass_by(seconds)
            datagram = pap("ann", "hello" if step == "right" else guess(), signed=step != "unsigned")
            decision = areas.pipeline.begin(listener.login(datagram))
            assert why(decision) is model.expects((clock() - begun) / SECOND, step)

    check()


async def test_no_sequence_of_unsigned_failures_locks_a_user(listener: FakeListener) -> None:
    """Unsigned failures are not remembered, in any sequence, and both users can log in."""
    areas = listener.areas
    for user in ("ann", "nobody"):
        await areas.users.load(areas.domain, user)

    @settings(max_examples=30, deadline=None)
    @given(st.lists(st.tuples(st.sampled_from(["ann", "nobody"]), st.sampled_from([pap, chap])), max_size=40))
    def check(sequence: list[tuple[str, Callable[..., bytes]]]) -> None:
        for user, method in sequence:
            login = listener.login(method(user, guess(), body=PHONE, signed=False))
            assert areas.pipeline.begin(login) is not None
        assert not areas.lockouts.has_failures

    check()


async def test_spoofed_requests_lock_no_user(listener: FakeListener) -> None:
    """A hundred unsigned failures that are sent with a client's address affect neither the user nor the station."""
    await log_in(listener, "ann", "hello", TABLET)
    assert await fail(listener, 100, body=PHONE, signed=False) == [WRONG] * 100
    assert not listener.areas.lockouts.has_failures
    assert await log_in(listener, "ann", "hello", PHONE) is Reason.NONE


async def test_other_rejections_do_not_count(listener: FakeListener) -> None:
    """A login without credentials that can be checked is not counted as a guess."""
    for _ in range(20):
        login = listener.login(pap("ann@nowhere", guess()))
        await listener.decide(login)
    assert not listener.areas.lockouts.has_failures


# --- the record ---------------------------------------------------------------------------------------------------


async def test_a_lock_out_is_recorded(listener: FakeListener) -> None:
    """The audit trail has the lock-out with the service as the actor, the failures and the end.

    The metrics count it, and each rejection is an event.
    """
    await log_in(listener, "ann", "hello", TABLET)
    await fail(listener, 10, body=PHONE)
    user, station = await trail(listener.areas)
    assert (user.action, user.target, user.actor_kind) == ("user.locked", "user ann", "service")
    assert (station.action, station.target) == ("station.locked", "station 02-00-00-00-00-01")
    assert json.loads(user.changes) == {"failures": [None, 10], "until": [None, "2026-01-01T00:15:00.000000Z"]}
    assert (user.domain_id, user.tenant_id) == (listener.areas.domain, listener.areas.tenant)
    for kind in LockoutKind:
        assert listener.areas.sample("sallyport_lockouts_total", kind=kind) == 1
        assert listener.areas.sample("sallyport_locked_out", kind=kind) == 1
    await log_in(listener, "ann", "hello")
    newest = await listener.areas.store.read(
        lambda tx: tx.value(str, "select reason from events order by id desc limit 1")
    )
    assert newest == "locked out after failures"


async def test_a_lock_out_survives_a_restart(listener: FakeListener) -> None:
    """After a restart user and station stay locked until the same time. The counts of failures start from 0."""
    await log_in(listener, "ann", "hello", TABLET)
    await fail(listener, 10, body=PHONE)
    await fail(listener, 9, "bob")
    restarted = await restart(listener)
    assert await log_in(restarted, "ann", "hello") is LOCKED
    assert await log_in(restarted, "bob", "hello", PHONE) is STATION_LOCKED
    assert await log_in(restarted, "bob") is Reason.UNKNOWN_USER
    listener.areas.clock.pass_by(15 * 60)
    assert await log_in(restarted, "ann", "hello", PHONE) is Reason.NONE


async def restart(listener: FakeListener, **settings: int) -> FakeListener:
    """Return the listener of a service that has just started with the same store."""
    later = Areas(listener.areas.store, listener.areas.clock, **{"lockout_failures": 10, **settings})
    later.domain = listener.areas.domain
    await later.configuration.reload()
    await later.lockouts.load()
    return FakeListener(later, listener.client, listener.answers)


async def test_failures_without_a_reply_do_not_count(listener: FakeListener) -> None:
    """If the store fails, no replies are sent and the devices retransmit. Therefore these failures lock no user."""
    areas = listener.areas
    for _ in range(3):
        logins = [listener.login(pap("ann", guess(), PHONE, identifier=number)) for number in range(10)]
        for login in logins:
            await listener.decide(login)
        assert areas.lockouts.has_failures
        for login in logins:
            areas.pipeline.abandoned(login)
    assert await fail(listener, 9) == [WRONG] * 9
    assert await log_in(listener, "ann", "hello") is Reason.NONE


async def test_a_domain_check_shows_a_lock_out(listener: FakeListener) -> None:
    """A trial shows the lock-out of a user with the right password. It does not count as a login."""
    domain = listener.areas.domains.table.by_id[listener.areas.domain]
    for locked in (False, True):
        trial = await listener.areas.trials.run(domain, "Ann", b"hello")
        assert trial.message == "the password is right"
        assert ("a login of this user is refused now: locked out after failures" in trial.steps) is locked
        await fail(listener, 10)


# --- unlocking -----------------------------------------------------------------------------------------------


async def test_unlocking_applies_at_once(listener: FakeListener) -> None:
    """Unlocking a user is recorded with its actor and resets the counts, also those of the station from which the user
    failed. If the name is not locked, this is reported.
    """
    await log_in(listener, "ann", "hello", TABLET)
    await fail(listener, 10, body=PHONE)
    lockouts, domain = listener.areas.lockouts, listener.areas.domain
    removed = await lockouts.unlock(domain, LockoutKind.USER, "Ann")
    assert [(row.kind, row.name) for row in removed] == [("user", "ann"), ("station", "02-00-00-00-00-01")]
    assert await log_in(listener, "ann", "hello", PHONE) is Reason.NONE
    assert await fail(listener, 9, body=PHONE) == [WRONG] * 9
    assert not await lockouts.unlock(domain, LockoutKind.USER, "ann")
    assert not await lockouts.unlock(domain + 1, LockoutKind.STATION, "02-00-00-00-00-01")
    assert [each.action for each in await trail(listener.areas)][2:] == ["user.unlocked", "station.unlocked"]
    assert await stored(listener.areas) == []


async def test_unlocking_resets_the_count_of_a_user_without_a_lock(listener: FakeListener) -> None:
    """An operator who unlocks a user before the tenth failure resets the count. Unlocking a station of the same name
    does not."""
    lockouts, domain = listener.areas.lockouts, listener.areas.domain
    for kind, then in ((LockoutKind.USER, Reason.NONE), (LockoutKind.STATION, LOCKED)):
        await fail(listener, 5)
        assert await lockouts.unlock(domain, kind, "ann") == []
        assert await fail(listener, 5) == [WRONG] * 5
        assert await log_in(listener, "ann", "hello") is then


async def test_an_ended_lock_out_is_forgotten(listener: FakeListener) -> None:
    """A lock-out that has ended leaves no row and uses no memory. If several nodes share the store, the row stays as
    long as their clocks may differ.

    An hour after the last failure, a login reads nothing about it.
    """
    lockouts, clock = listener.areas.lockouts, listener.areas.clock
    await fail(listener, 10)
    await lockouts.sweep()
    assert listener.areas.sample("sallyport_locked_out", kind="user") == 1
    clock.pass_by(15 * 60)
    await lockouts.sweep()
    assert listener.areas.sample("sallyport_locked_out", kind="user") == 0
    rows = "select count(*) from lockouts"
    store = listener.areas.store
    assert await store.read(lambda tx: tx.value(int, rows)) == store.is_shared
    assert lockouts.has_failures
    clock.pass_by(45 * 60)
    await lockouts.sweep()
    assert await store.read(lambda tx: tx.value(int, rows)) == 0
    assert not lockouts.has_failures


@pytest.mark.parametrize("restarts", [False, True], ids=["running", "started again"])
async def test_a_clock_that_is_set_back_lengthens_no_lock_out(listener: FakeListener, restarts: bool) -> None:
    """If the clock is set back by an hour, a lock-out ends 15 minutes later, and failures from before count for five
    minutes."""
    lockouts, clock = listener.areas.lockouts, listener.areas.clock
    await fail(listener, 10)
    await lockouts.sweep()
    clock.pass_by(-3600)
    if restarts:
        listener = await restart(listener)
        lockouts = listener.areas.lockouts
    await lockouts.sweep()
    assert await log_in(listener, "ann", "hello") is LOCKED
    clock.pass_by(15 * 60 + 1)
    assert await log_in(listener, "ann", "hello") is Reason.NONE
    assert await fail(listener, 9) == [WRONG] * 9
    await lockouts.sweep()
    clock.pass_by(-3600)
    await lockouts.sweep()
    clock.pass_by(5 * 60 + 1)
    assert await fail(listener, 9) == [WRONG] * 9
    assert await log_in(listener, "ann", "hello") is Reason.NONE


async def test_lock_outs_can_be_turned_off(listener: FakeListener) -> None:
    """With lockout_failures=0 no name is locked, not even a name that was locked before, and no failure is counted."""
    await fail(listener, 10)
    later = await restart(listener, lockout_failures=0)
    assert await fail(later, 20) == [WRONG] * 20
    assert await log_in(later, "ann", "hello") is Reason.NONE
    assert not later.areas.lockouts.has_failures


async def test_the_same_guess_counts_once(listener: FakeListener) -> None:
    """A device whose timeout is shorter than the delay of a reject repeats the password with a new authenticator.

    It is not locked out. The same password for another user counts as another guess of the station.
    """
    assert await fail_with(listener, ["hallo"] * 20) == [WRONG] * 20
    assert await fail_with(listener, [f"hallo{number}" for number in range(9)]) == [WRONG] * 9
    assert await log_in(listener) is LOCKED


async def test_guesses_under_one_authenticator(listener: FakeListener) -> None:
    """An attacker that has the RADIUS secret and sends each response with the same authenticator is locked out.

    A copy of a response counts once, whatever its identifier is.
    """
    sent = [bytes((7,)) + bytes(15) + bytes((number,)) for number in range(10)]
    copies = [await chap_response(listener, sent[0], identifier) for identifier in range(20)]
    guesses = [await chap_response(listener, value, 0) for value in sent[1:]]
    assert {*copies, *guesses} == {WRONG}
    assert await log_in(listener, "ann", "hello") is LOCKED


async def chap_response(listener: FakeListener, value: bytes, identifier: int) -> Reason:
    """Send a CHAP login of ann. The authenticator is always the same."""
    body = attributes(USER_NAME=b"ann", CHAP_PASSWORD=value)
    login = listener.login(access_request(body, identifier=identifier, authenticator=bytes(16)))
    return why(await listener.decide(login))


async def fail_with(listener: FakeListener, passwords: list[str]) -> list[Reason]:
    """Log ann in with these passwords. Return the reason of each login."""
    return [await log_in(listener, "ann", password) for password in passwords]


async def test_a_station_where_another_user_failed_stays_locked(listener: FakeListener) -> None:
    """Unlocking a user does not unlock a station from which only other users have failed. It is unlocked by itself, in
    any notation."""
    await listener.areas.add_user(listener.areas.domain, "bob", b"hello")
    await log_in(listener, "ann", "hello", TABLET)
    await fail(listener, 10, "bob", PHONE)
    await fail(listener, 10, "ann")
    lockouts, domain = listener.areas.lockouts, listener.areas.domain
    assert [row.kind for row in await lockouts.unlock(domain, LockoutKind.USER, "ann")] == ["user"]
    assert await log_in(listener, "ann", "hello", PHONE) is STATION_LOCKED
    assert await lockouts.unlock(domain, LockoutKind.STATION, "02:00:00:00:00:01")
    assert await log_in(listener, "ann", "hello", PHONE) is Reason.NONE


async def test_a_user_behind_a_locked_station_is_unlocked(listener: FakeListener) -> None:
    """A user without a lock is unlocked at the station from which this user and others have failed."""
    await listener.areas.add_user(listener.areas.domain, "bob", b"hello")
    await log_in(listener, "ann", "hello", TABLET)
    await fail(listener, 5, "bob", PHONE)
    await fail(listener, 5, "ann", PHONE)
    assert await log_in(listener, "ann", "hello", PHONE) is STATION_LOCKED
    removed = await listener.areas.lockouts.unlock(listener.areas.domain, LockoutKind.USER, "ann")
    assert [row.kind for row in removed] == ["station"]
    assert await log_in(listener, "ann", "hello", PHONE) is Reason.NONE
