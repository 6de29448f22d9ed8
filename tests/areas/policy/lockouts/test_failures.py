"""Tests of failures within a window, and of locks: the limits hold for any sequence, and the memory is bounded."""

from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from sallyport.areas.policy.lockouts.failures import WINDOW_US, Failures, Lock
from sallyport.base.clock import SECOND

ANN = (1, "ann")
TENANT = 1
LOCK_US = 900 * SECOND
MINUTE = 60 * SECOND


def table(limit: int = 3, max_names: int = 100) -> Failures:
    """Return failures that lock for 15 minutes."""
    return Failures(limit, LOCK_US, max_names=max_names)


def test_a_copy_of_a_request_is_no_failure() -> None:
    """A copy of a request does not count as a failure, because any attacker on the network can send it."""
    failures = Failures(3, MINUTE)
    assert [failures.fail(ANN, TENANT, at, b"the same") for at in range(5)] == [1, 0, 0, 0, 0]
    assert failures.fail(ANN, TENANT, 6, b"another") == 2


def test_failures_within_the_window_count() -> None:
    """A failure counts for five minutes."""
    failures = table()
    assert [failures.fail(ANN, TENANT, at) for at in (0, MINUTE, 2 * MINUTE)] == [1, 2, 3]
    failures = table()
    assert [failures.fail(ANN, TENANT, at) for at in (0, MINUTE, WINDOW_US)] == [1, 2, 2]


def test_a_success_resets_the_count() -> None:
    """A success with only the password does not reset the count of wrong codes."""
    failures = table()
    failures.fail(ANN, TENANT, 0)
    failures.fail(ANN, TENANT, 0, of_code=True)
    failures.forgive(ANN, codes=False)
    assert failures.fail(ANN, TENANT, 1) == 2
    failures.forgive(ANN, codes=True)
    assert failures.fail(ANN, TENANT, 1) == 1


def test_a_lock_holds_for_its_time() -> None:
    """A lock is in force until its last microsecond. A lock that is not stored is not in force."""
    failures = table()
    lock = failures.lock(ANN, TENANT, 0, 5, 3)
    assert [failures.is_locked(ANN, now) for now in (5, 4 + LOCK_US, 5 + LOCK_US)] == [True, True, False]
    assert (failures.locked, failures.is_locked((2, "ann"), 5)) == (1, False)
    lock.holds = False
    assert (failures.locked, failures.is_locked(ANN, 5)) == (0, False)


def test_a_failure_can_be_taken_back() -> None:
    """A failure can be taken back together with the lock that it caused, but not with another lock."""
    failures = table(limit=2)
    failures.fail(ANN, TENANT, 1)
    failures.fail(ANN, TENANT, 2)
    failures.lock(ANN, TENANT, 2, 2, 2)
    failures.take_back(ANN, 1)
    assert failures.is_locked(ANN, 3)
    failures.take_back(ANN, 2)
    assert (failures.is_locked(ANN, 3), len(failures)) == (False, 0)


def test_names_are_bounded() -> None:
    """When the limit is reached, the name with the oldest failure or lock is removed."""
    failures = table(max_names=2)
    for at, name in enumerate(("a", "b", "a", "c")):
        failures.fail((1, name), TENANT, at)
        failures.restore((1, name), TENANT, Lock(at, 100, 3))
    assert len(failures) == 4
    assert [failures.is_locked((1, name), 5) for name in "abc"] == [True, False, True]
    assert [failures.fail((1, name), TENANT, 9) for name in "ab"] == [3, 1]


def test_another_tenant_displaces_no_names() -> None:
    """The failures and locks of a tenant stay, however many names of another tenant fail."""
    failures = table(max_names=10)
    failures.fail(ANN, TENANT, 0)
    failures.lock(ANN, TENANT, 0, 0, 3)
    for number in range(100):
        failures.fail((2, f"user{number}"), 2, number)
        failures.lock((2, f"user{number}"), 2, number, number, 3)
    assert failures.is_locked(ANN, 1)
    assert failures.fail(ANN, TENANT, 1) == 2
    assert len(failures) == 20


def test_a_sweep_removes_expired_failures_and_locks() -> None:
    """A sweep removes only failures that are older than the window, and locks that have ended."""
    failures = table()
    failures.fail(ANN, TENANT, 0)
    failures.fail((1, "bob"), TENANT, MINUTE)
    failures.lock(ANN, TENANT, 0, 0, 3)
    failures.lock((1, "bob"), TENANT, 0, MINUTE, 3)
    assert (failures.sweep(WINDOW_US), len(failures)) == (0, 3)
    assert (failures.sweep(LOCK_US), len(failures)) == (1, 1)
    assert (failures.sweep(LOCK_US + MINUTE), len(failures)) == (1, 0)


def test_a_lock_that_is_confirmed_during_a_notice_is_told() -> None:
    """The writer's thread confirms a lock while a notice of another node is applied. The other nodes learn of it."""
    told: list[object] = []
    failures = Failures(3, LOCK_US, tell=lambda *change: told.append(change[0]))
    lock = failures.lock(ANN, TENANT, 0, 0, 3, holds=False)

    class Meanwhile:
        def __str__(self) -> str:
            failures.confirm(ANN, TENANT, lock)
            return "3"

    failures.adopt(["lock", 1, True, "bob", TENANT, cast(int, Meanwhile())], 0)
    assert (lock.holds, told) == (True, ["lock"])


@given(st.integers(1, 5), st.lists(st.tuples(st.integers(0, 200), st.booleans()), max_size=60))
def test_never_more_than_the_limit_in_a_window(limit: int, steps: list[tuple[int, bool]]) -> None:
    """For any times and successes, `fail` returns the same counts as a simple model, up to the limit."""
    failures, past, at = table(limit), list[int](), 0
    for seconds, success in steps:
        at += seconds * SECOND
        if success:
            failures.forgive(ANN, codes=True)
            past.clear()
        else:
            past.append(at)
            assert failures.fail(ANN, TENANT, at) == min(limit, sum(each > at - WINDOW_US for each in past))
