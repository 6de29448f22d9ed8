"""Tests of the lock-outs of several nodes, and of pages."""

import pytest
from prometheus_client import CollectorRegistry

from sallyport.areas.devices.device import Device
from sallyport.areas.login.login import Reason
from sallyport.areas.policy.attempt import Attempt
from sallyport.areas.policy.lockouts.failures import Failure, LockoutKind
from sallyport.areas.policy.lockouts.service import Lockouts
from sallyport.metrics import LockoutMetrics
from sallyport.nodes.notices import Notices
from sallyport.radius.password import Method
from tests.areas import Areas
from tests.areas.factors.stepups import LinkedNotices
from tests.areas.login.conftest import FakeListener
from tests.areas.policy.lockouts.guesses import LOCKED, PHONE, WRONG, fail, guess, log_in, stored
from tests.packets import pap

LIMIT = 10


def attempt(listener: FakeListener, user: str = "ann", body: bytes = b"", *, approved: bool = False) -> Attempt:
    """Return a login with a password that was not tried yet."""
    arrival = listener.login(pap(user, guess(), body)).arrival
    domain = listener.areas.domains.table.by_id[listener.areas.domain]
    return Attempt(arrival, domain, user, Method.PAP, approved=approved)


def node(areas: Areas, notices: Notices) -> Lockouts:
    """Return the lock-outs of a node."""
    metrics = LockoutMetrics(CollectorRegistry())
    return Lockouts(areas.store, metrics, notices, b"key", limit=LIMIT, minutes=15, clock=areas.clock)


@pytest.fixture
def nodes(listener: FakeListener) -> tuple[Lockouts, Lockouts]:
    """Return the lock-outs of two nodes, which announce their changes to each other."""
    here, there = LinkedNotices(), LinkedNotices()
    here.other, there.other = there, here
    return node(listener.areas, here), node(listener.areas, there)


async def test_failures_count_over_all_nodes(listener: FakeListener, nodes: tuple[Lockouts, Lockouts]) -> None:
    """A guess that a device has sent to both nodes counts once. The lock applies on both."""
    here, there = nodes
    guesses = [attempt(listener) for _ in range(LIMIT)]
    for lockouts, several in ((here, guesses[:5]), (there, guesses[:9])):
        for each in several:
            assert not lockouts.note_failure(each, Failure.PASSWORD)
    assert here.has_failures and there.has_failures
    assert here.refuses(guesses[0]) is there.refuses(guesses[0]) is None
    assert len(here.note_failure(guesses[9], Failure.PASSWORD)) == 1
    assert here.refuses(guesses[0]) is there.refuses(guesses[0]) is LockoutKind.USER


async def test_failures_of_a_station_count_over_all_nodes(
    listener: FakeListener, nodes: tuple[Lockouts, Lockouts]
) -> None:
    """The last failure makes a lock, wherever it happens."""
    here, there = nodes
    for number in range(LIMIT - 1):
        assert not here.note_failure(attempt(listener, f"user{number}", PHONE), Failure.UNKNOWN_USER)
    assert len(there.note_failure(attempt(listener, "another", PHONE), Failure.UNKNOWN_USER)) == 1


@pytest.mark.parametrize(("approved", "locks"), [(True, False), (False, True)], ids=["approved", "password only"])
async def test_a_success_resets_the_counts_of_all_nodes(
    listener: FakeListener, nodes: tuple[Lockouts, Lockouts], approved: bool, locks: bool
) -> None:
    """Wrong codes stay counted on all nodes if no second factor was approved."""
    here, there = nodes
    for _ in range(LIMIT - 1):
        here.note_failure(attempt(listener), Failure.CODE)
    there.note_success(attempt(listener, approved=approved))
    for each in nodes:
        assert bool(each.note_failure(attempt(listener), Failure.CODE)) is locks


async def test_a_user_is_unlocked_on_all_nodes(listener: FakeListener, nodes: tuple[Lockouts, Lockouts]) -> None:
    """Locks after failures end on all nodes, and so do those that only an operator ends."""
    here, there = nodes
    one = attempt(listener)
    await listener.areas.store.write(lambda tx: here.write_held(tx, one.domain, "ann"))
    for each in nodes:
        each.hold(one.domain, "ann")
    for _ in range(LIMIT):
        here.note_failure(attempt(listener), Failure.PASSWORD)
    assert there.refuses(one) is LockoutKind.USER
    await here.unlock(one.domain.id, LockoutKind.USER, "ann")
    assert here.refuses(one) is there.refuses(one) is None


async def test_a_node_remembers_for_an_hour_that_another_had_a_failure(
    listener: FakeListener, nodes: tuple[Lockouts, Lockouts]
) -> None:
    """In this time, it counts the users that log in from a station."""
    here, there = nodes
    here.note_failure(attempt(listener), Failure.PASSWORD)
    for minutes, expected in ((30, True), (31, False)):
        listener.areas.clock.pass_by(minutes * 60)
        await there.sweep()
        assert there.has_failures is expected


async def test_a_user_without_a_code_left_is_locked_at_once(listener: FakeListener) -> None:
    """The nodes together have checked as many codes as the limit allows. The lock is in the store."""
    areas = listener.areas
    (write,) = areas.lockouts.note_failure(attempt(listener), Failure.NO_CODE_LEFT)
    device = Device(areas.domain, "192.0.2.1", "192.0.2.1", "", 1)
    await areas.store.write(lambda tx: write(tx, device))
    assert await log_in(listener, "ann", "hello") is LOCKED
    assert await stored(areas) == [("user", "ann", LIMIT)]


async def test_changed_settings_apply_at_once(listener: FakeListener) -> None:
    """The next failures are counted by the new limit, and the next lock has the new duration. Without a limit, locks
    end."""
    lockouts, clock = listener.areas.lockouts, listener.areas.clock
    lockouts.use(limit=3, minutes=2)
    assert await fail(listener, 4) == [WRONG] * 3 + [LOCKED]
    clock.pass_by(119)
    lockouts.use(limit=3, minutes=1)
    assert await log_in(listener, "ann", "hello") is LOCKED
    clock.pass_by(300)
    assert await fail(listener, 4) == [WRONG] * 3 + [LOCKED]
    clock.pass_by(61)
    assert await log_in(listener, "ann", "hello") is Reason.NONE
    await fail(listener, 3)
    assert await log_in(listener, "ann", "hello") is LOCKED
    lockouts.use(limit=0, minutes=1)
    assert await fail(listener, 4) == [WRONG] * 4


async def test_failures_at_a_page_lock_the_pages(listener: FakeListener) -> None:
    """Everybody may open a page. So its failures keep the user out of the pages for a while, and not out of the
    network. The same password counts once, and a right one resets the count."""
    lockouts, again = listener.areas.lockouts, attempt(listener)
    for _ in range(2):
        lockouts.note_page_success(again)
        for _ in range(LIMIT):
            lockouts.note_page_failure(again, Failure.PASSWORD)
        for _ in range(LIMIT - 2):
            lockouts.note_page_failure(attempt(listener), Failure.UNKNOWN_USER)
        assert not lockouts.refuses_page(again)
    lockouts.note_page_failure(attempt(listener), Failure.PASSWORD)
    assert lockouts.refuses_page(again) and not lockouts.refuses_page(attempt(listener, "bob"))
    assert await log_in(listener, "ann", "hello") is not LOCKED
    assert await stored(listener.areas) == []
    listener.areas.clock.pass_by(15 * 60)
    assert not lockouts.refuses_page(again)
