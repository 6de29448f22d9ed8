"""The pipeline with its lock-outs and their store: logins that fail, and those after them."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from sallyport.base.clock import SECOND
from sallyport.domains.domain import Domain, Mode
from sallyport.login.decision import refusal
from sallyport.login.login import Reason, Verdict
from sallyport.policy.lockouts.failures import Kind
from tests.areas import Areas
from tests.directory.world import imported, person
from tests.login.conftest import Desk
from tests.login.first.conftest import Book
from tests.packets import access_request, attributes, chap, pap
from tests.policy.lockouts.guesses import LOCKED, PHONE, TABLET, WRONG, fail, guess, log_in, stored, trail, why

# --- users --------------------------------------------------------------------------------------------------------


async def test_ten_failures_lock_a_user(desk: Desk) -> None:
    """The tenth has its own reason; then even the right password is refused, by a reject in a domain that monitors,
    and the domain's other users are not."""
    await desk.areas.add_user(desk.areas.domain, "bob", b"hello")
    assert await fail(desk, 10) == [WRONG] * 10
    assert await log_in(desk, "ann", "hello") is LOCKED
    login = desk.login(pap("ANN", "hello"))
    assert (await desk.decide(login)).applied is Verdict.REJECT
    assert await log_in(desk, "bob", "hello") is Reason.NONE
    assert await stored(desk.areas) == [("user", "ann", 10)]


async def test_a_lock_out_ends(desk: Desk) -> None:
    """After 15 minutes, whatever was tried meanwhile; then ten failures are needed again."""
    await fail(desk, 10)
    for _ in range(14):
        desk.areas.clock.pass_by(60)
        assert await fail(desk, 2) == [LOCKED] * 2
    desk.areas.clock.pass_by(59.9)
    assert await log_in(desk, "ann", "hello") is LOCKED
    desk.areas.clock.pass_by(0.2)
    assert await fail(desk, 9) == [WRONG] * 9
    assert await log_in(desk, "ann", "hello") is Reason.NONE


async def test_a_success_resets_the_count(desk: Desk) -> None:
    """A success resets the count of failures."""
    for _ in range(3):
        await fail(desk, 9)
        assert await log_in(desk, "ann", "hello") is Reason.NONE
    assert await stored(desk.areas) == []


async def test_slow_failures_lock_no_user(desk: Desk) -> None:
    """One failure in 36 seconds never makes ten within five minutes, and locks no user."""
    for _ in range(30):
        assert await log_in(desk) is WRONG
        desk.areas.clock.pass_by(31 + 5)
    assert await log_in(desk, "ann", "hello") is Reason.NONE


async def test_unknown_names_are_locked_too(desk: Desk) -> None:
    """Unknown names are locked too, so that a reply does not show whether a user exists. A user with that name,
    added later, is locked out.
    """
    await fail(desk, 10, "nobody")
    assert await log_in(desk, "nobody") is LOCKED
    await desk.areas.add_user(desk.areas.domain, "nobody", b"hello")
    assert await log_in(desk, "nobody", "hello") is LOCKED


async def test_a_lock_is_of_one_domain(desk: Desk) -> None:
    """The same name in another domain is another user."""
    other = await desk.areas.domains.add(desk.areas.tenant, "branch")
    await desk.areas.add_user(other, "ann", b"hello")
    await fail(desk, 10)
    assert await log_in(desk, "ann@branch", "hello") is Reason.NONE
    assert await log_in(desk, "ann@corp", "hello") is LOCKED


async def test_one_principal_by_all_names(desk: Desk, listed: Domain, book: Book) -> None:
    """The realm, and another name in the directory, give no more attempts. Attempts of another user count for
    that user."""
    upn = "userPrincipalName: ann.smith@corp"
    await imported(desk.areas, person("Ann", upn) + person("ben"))
    spelled = ("ann", r"corp\ANN", "ann@corp", "ann.smith@corp", r"CORP\Ann.Smith")
    reasons = [reason for user in spelled for reason in await fail(desk, 2, user)]
    assert reasons == [WRONG] * 10
    for user in spelled:
        desk.areas.directory.principals.forget()
        assert await log_in(desk, user, "s3cret") is LOCKED
    assert await stored(desk.areas) == [("user", "Ann", 10)]
    assert await log_in(desk, "ben", "s3cret") is Reason.NONE
    assert await desk.areas.lockouts.unlock(desk.areas.domain, Kind.USER, "ann")
    assert await log_in(desk, "ann.smith", "s3cret") is Reason.NONE


async def test_concurrent_guesses(desk: Desk) -> None:
    """Thirty logins start before the first is decided, the right password last: ten are checked."""
    pipeline = desk.areas.pipeline
    desk.areas.users.forget()
    logins = [desk.login(pap("ann", guess(), identifier=number)) for number in range(29)]
    logins.append(desk.login(pap("ann", "hello", identifier=29)))
    assert [pipeline.begin(login) for login in logins] == [None] * 30
    decisions = [await pipeline.check(login) for login in logins]
    assert [each.reason for each in decisions if each is not None] == [WRONG] * 10 + [LOCKED] * 20


async def test_no_directory_is_asked_about_a_locked_user(desk: Desk, listed: Domain, book: Book) -> None:
    """A locked user's logins are sent to no directory and no other server."""
    assert await fail(desk, 10) == [WRONG] * 10
    assert await log_in(desk, "ann", "s3cret") is LOCKED
    assert book.asked == ["ann"] * 10


async def test_a_refusal_tells_no_password(desk: Desk, listed: Domain) -> None:
    """Of guesses that come together, those behind the tenth get the same answer, whatever the directory has said."""
    pipeline = desk.areas.pipeline
    logins = [desk.login(pap("ann", guess(), identifier=number)) for number in range(19)]
    logins.append(desk.login(pap("ann", "s3cret", identifier=19)))
    assert [pipeline.begin(login) for login in logins] == [None] * 20
    reasons = [why(await pipeline.check(login)) for login in logins]
    assert reasons == [WRONG] * 10 + [LOCKED] * 10
    assert {refusal(login, LOCKED) for login in logins[10:]} == {b""}
    assert refusal(logins[0], WRONG)


async def test_monitoring_and_enforcing_are_the_same(desk: Desk) -> None:
    """A user that is locked out in one mode is locked out in the other."""
    await fail(desk, 5)
    await desk.areas.domains.set_mode([desk.areas.domain], Mode.ENFORCE)
    await fail(desk, 5)
    assert await log_in(desk, "ann", "hello") is LOCKED
    await desk.areas.domains.set_mode([desk.areas.domain], Mode.MONITOR)
    assert await log_in(desk, "ann", "hello") is LOCKED


@dataclass
class Model:
    """A user by the words of the rule alone. Times in seconds."""

    failed: list[float] = field(default_factory=list)
    locked_until: float = 0.0

    def expects(self, now: float, step: str) -> Reason:
        """What becomes of a login."""
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


async def test_any_sequence_is_decided_by_the_rule(desk: Desk) -> None:
    """For any sequence at most ten guesses are answered within five minutes. A success resets the count, and an
    unsigned failure does not count.
    """
    areas, clock = desk.areas, desk.areas.clock
    await areas.users.load(areas.domain, "ann")

    @settings(max_examples=60, deadline=None)
    @given(STEPS)
    def check(steps: list[tuple[int, str]]) -> None:
        clock.pass_by(3600)
        model, begun = Model(), clock()
        for seconds, step in steps:
            clock.pass_by(seconds)
            datagram = pap("ann", "hello" if step == "right" else guess(), signed=step != "unsigned")
            decision = areas.pipeline.begin(desk.login(datagram))
            assert why(decision) is model.expects((clock() - begun) / SECOND, step)

    check()


async def test_no_sequence_of_unsigned_failures_locks_a_user(desk: Desk) -> None:
    """Unsigned failures are not remembered, whatever their sequence, and both users log in."""
    areas = desk.areas
    for user in ("ann", "nobody"):
        await areas.users.load(areas.domain, user)

    @settings(max_examples=30, deadline=None)
    @given(st.lists(st.tuples(st.sampled_from(["ann", "nobody"]), st.sampled_from([pap, chap])), max_size=40))
    def check(sequence: list[tuple[str, Callable[..., bytes]]]) -> None:
        for user, method in sequence:
            login = desk.login(method(user, guess(), body=PHONE, signed=False))
            assert areas.pipeline.begin(login) is not None
        assert not areas.lockouts.some

    check()


async def test_spoofed_requests_lock_no_user(desk: Desk) -> None:
    """A hundred unsigned failures in a client's name are nothing to the user, nor to the station."""
    await log_in(desk, "ann", "hello", TABLET)
    assert await fail(desk, 100, body=PHONE, signed=False) == [WRONG] * 100
    assert not desk.areas.lockouts.some
    assert await log_in(desk, "ann", "hello", PHONE) is Reason.NONE


async def test_other_refusals_do_not_count(desk: Desk) -> None:
    """A login without credentials that can be checked is no guess."""
    for _ in range(20):
        login = desk.login(pap("ann@nowhere", guess()))
        await desk.decide(login)
    assert not desk.areas.lockouts.some


# --- the record ---------------------------------------------------------------------------------------------------


async def test_a_lock_out_is_recorded(desk: Desk) -> None:
    """In the audit trail, by the service, with failures and end; in the metrics; each refusal is an event."""
    await log_in(desk, "ann", "hello", TABLET)
    await fail(desk, 10, body=PHONE)
    user, station = await trail(desk.areas)
    assert (user.action, user.target, user.actor_kind) == ("user.locked", "user ann", "service")
    assert (station.action, station.target) == ("station.locked", "station 02-00-00-00-00-01")
    assert json.loads(user.changes) == {"failures": [None, 10], "until": [None, "2026-01-01T00:15:00.000000Z"]}
    assert (user.domain_id, user.tenant_id) == (desk.areas.domain, desk.areas.tenant)
    for kind in Kind:
        assert desk.areas.sample("sallyport_lockouts_total", kind=kind) == 1
        assert desk.areas.sample("sallyport_locked_out", kind=kind) == 1
    await log_in(desk, "ann", "hello")
    newest = await desk.areas.store.read(lambda tx: tx.value(str, "select reason from events order by id desc limit 1"))
    assert newest == "locked out after failures"


async def test_a_lock_out_outlives_a_restart(desk: Desk) -> None:
    """User and station stay locked out until the same time; counts start from 0."""
    await log_in(desk, "ann", "hello", TABLET)
    await fail(desk, 10, body=PHONE)
    await fail(desk, 9, "bob")
    later = Areas(desk.areas.store, desk.areas.clock, lockout_failures=10)
    later.domain = desk.areas.domain
    await later.configuration.reload()
    await later.lockouts.load()
    restarted = Desk(later, desk.client, desk.answers)
    assert await log_in(restarted, "ann", "hello") is LOCKED
    assert await log_in(restarted, "bob", "hello", PHONE) is LOCKED
    assert await log_in(restarted, "bob") is Reason.UNKNOWN_USER
    desk.areas.clock.pass_by(15 * 60)
    assert await log_in(restarted, "ann", "hello", PHONE) is Reason.NONE


async def test_failures_without_a_reply_do_not_count(desk: Desk) -> None:
    """A failing store sends no replies, and the devices retry: these are no failures, and lock no user."""
    areas = desk.areas
    for _ in range(3):
        logins = [desk.login(pap("ann", guess(), PHONE, identifier=number)) for number in range(10)]
        for login in logins:
            login.decision = await desk.decide(login)
        assert areas.lockouts.some
        for login in logins:
            areas.pipeline.abandoned(login)
    assert await fail(desk, 9) == [WRONG] * 9
    assert await log_in(desk, "ann", "hello") is Reason.NONE


async def test_a_domain_check_shows_a_lock_out(desk: Desk) -> None:
    """A trial shows the lock-out of a right password, and is no login itself."""
    domain = desk.areas.domains.table.by_id[desk.areas.domain]
    for locked in (False, True):
        told = await desk.areas.trials.run(domain, "Ann", b"hello")
        assert told.message == "the password is right"
        assert ("a login of this user is refused now: locked out after failures" in told.steps) is locked
        await fail(desk, 10)


# --- the way back in ----------------------------------------------------------------------------------------------


async def test_unlocking(desk: Desk) -> None:
    """Unlocking applies at once, is recorded with its actor, and resets the counts; a name that is not locked is
    reported."""
    await log_in(desk, "ann", "hello", TABLET)
    await fail(desk, 10, body=PHONE)
    lockouts, domain = desk.areas.lockouts, desk.areas.domain
    assert await lockouts.unlock(domain, Kind.USER, "Ann")
    assert await log_in(desk, "ann", "hello", TABLET) is Reason.NONE
    assert await log_in(desk, "ann", "hello", PHONE) is LOCKED
    assert await lockouts.unlock(domain, Kind.STATION, "02:00:00:00:00:01")
    assert await fail(desk, 9, body=PHONE) == [WRONG] * 9
    assert not await lockouts.unlock(domain, Kind.USER, "ann")
    assert not await lockouts.unlock(domain + 1, Kind.STATION, "02-00-00-00-00-01")
    assert [each.action for each in await trail(desk.areas)][2:] == ["user.unlocked", "station.unlocked"]
    assert await stored(desk.areas) == []


async def test_an_ended_lock_out_leaves_nothing(desk: Desk) -> None:
    """No row and no memory; an hour after the last failure a login has nothing to ask."""
    lockouts, clock = desk.areas.lockouts, desk.areas.clock
    await fail(desk, 10)
    await lockouts.sweep()
    assert desk.areas.sample("sallyport_locked_out", kind="user") == 1
    clock.pass_by(15 * 60)
    await lockouts.sweep()
    assert desk.areas.sample("sallyport_locked_out", kind="user") == 0
    assert await desk.areas.store.read(lambda tx: tx.value(int, "select count(*) from lockouts")) == 0
    assert lockouts.some
    clock.pass_by(45 * 60)
    await lockouts.sweep()
    assert not lockouts.some


async def test_no_lock_outs_by_setting(areas: Areas, desk: Desk) -> None:
    """With 0 failures no name is locked, not even one of before, and nothing is counted."""
    await fail(desk, 10)
    without = Areas(areas.store, areas.clock, lockout_failures=0)
    without.domain = areas.domain
    await without.configuration.reload()
    await without.lockouts.load()
    later = Desk(without, desk.client, desk.answers)
    assert await fail(later, 20) == [WRONG] * 20
    assert await log_in(later, "ann", "hello") is Reason.NONE
    assert not without.lockouts.some


async def test_the_same_guess_counts_once(desk: Desk) -> None:
    """A device that repeats a password under a new authenticator, as it does if its timeout is shorter than the delay
    of a reject, is not locked out. The same password for another user is another guess at the station.
    """
    assert await fail_with(desk, ["hallo"] * 20) == [WRONG] * 20
    assert await fail_with(desk, [f"hallo{number}" for number in range(9)]) == [WRONG] * 9
    assert await log_in(desk) is LOCKED


async def test_guesses_under_one_authenticator(desk: Desk) -> None:
    """An attacker with the RADIUS secret who sends each response under the same authenticator is locked out; a
    copy of a response counts once, whatever its identifier."""
    sent = [bytes((7,)) + bytes(15) + bytes((number,)) for number in range(10)]
    copies = [await chap_response(desk, sent[0], identifier) for identifier in range(20)]
    guesses = [await chap_response(desk, value, 0) for value in sent[1:]]
    assert {*copies, *guesses} == {WRONG}
    assert await log_in(desk, "ann", "hello") is LOCKED


async def chap_response(desk: Desk, value: bytes, identifier: int) -> Reason:
    """A login of ann by CHAP under one authenticator."""
    body = attributes(USER_NAME=b"ann", CHAP_PASSWORD=value)
    login = desk.login(access_request(body, identifier=identifier, authenticator=bytes(16)))
    return why(await desk.decide(login))


async def fail_with(desk: Desk, passwords: list[str]) -> list[Reason]:
    """Logins of ann with these passwords."""
    return [await log_in(desk, "ann", password) for password in passwords]
