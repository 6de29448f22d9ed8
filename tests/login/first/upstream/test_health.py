"""A home server's state as time and answers change it; no socket, no clock."""

import pytest

from sallyport.login.first.upstream.health import (
    ANSWERS_TO_ALIVE,
    CHECK_INTERVAL_S,
    REVIVE_S,
    ZOMBIE_S,
    Health,
    State,
)

A, Z, D = State.ALIVE, State.ZOMBIE, State.DEAD


class Changes(list[tuple[State, State]]):
    """What was told."""

    def __call__(self, before: State, after: State) -> None:
        self.append((before, after))


def health(*, checks: bool = True) -> tuple[Health, Changes]:
    """One at the time 0, and what it tells."""
    changes = Changes()
    return Health(0, checks=checks, changed=changes), changes


def zombie(*, checks: bool = True) -> tuple[Health, Changes]:
    """One that is a zombie since the time 20; the first Status-Server was sent at 0, and not answered."""
    found, changes = health(checks=checks)
    assert found.is_check_due(0) is checks
    found.unanswered(0, 20)
    return found, changes


def test_no_answer_in_the_window_makes_a_zombie() -> None:
    """Where the server has answered others meanwhile, it is alive."""
    found, changes = health()
    found.answered(5)
    found.unanswered(4, 24)
    assert (found.state, changes) == (A, [])
    found.unanswered(6, 26)
    found.unanswered(7, 27)
    assert (found.state, changes) == (Z, [(A, Z)])


def test_a_refusal_of_the_network_makes_a_zombie() -> None:
    """At once, whatever was answered before."""
    found, changes = health()
    found.answered(5)
    found.refused(5)
    found.refused(6)
    assert changes == [(A, Z)]


@pytest.mark.parametrize("checks", [True, False])
def test_a_zombie_dies_without_a_sign_of_life(checks: bool) -> None:
    """After the zombie period, not before."""
    found, _ = zombie(checks=checks)
    found.pass_by(20 + ZOMBIE_S - 0.1)
    assert found.state is Z
    found.pass_by(20 + ZOMBIE_S)
    assert found.state is D


@pytest.mark.parametrize("dead", [False, True])
def test_an_answer_to_a_request_revives(dead: bool) -> None:
    """There is no better proof."""
    found, changes = zombie()
    if dead:
        found.pass_by(20 + ZOMBIE_S)
    found.answered(70)
    assert found.state is A
    assert changes[-1] == (D if dead else Z, A)


def test_a_zombie_is_checked_at_once_and_then_at_intervals() -> None:
    """Each check is due once."""
    found, _ = zombie()
    assert [found.is_check_due(20), found.is_check_due(20)] == [True, False]
    assert not found.is_check_due(20 + CHECK_INTERVAL_S - 1)
    assert found.is_check_due(20 + CHECK_INTERVAL_S)


def test_a_server_that_is_alive_is_checked_once_at_the_start() -> None:
    """To know whether it answers Status-Server at all; never where that is switched off."""
    found, _ = health()
    assert [found.is_check_due(0), found.is_check_due(1000)] == [True, False]
    found, _ = health(checks=False)
    assert not found.is_check_due(1000)
    found.refused(0)
    assert not found.is_check_due(1000)


def test_answers_to_checks_in_a_row_revive() -> None:
    """One that is missing begins the row anew; while some come, a zombie does not die."""
    found, _ = health()
    found.check_answered(1)
    found.unanswered(2, 20)
    at = 20.0
    for _ in range(ANSWERS_TO_ALIVE - 1):
        found.check_answered(at)
        at += CHECK_INTERVAL_S
        found.pass_by(at)
    found.check_unanswered()
    for _ in range(ANSWERS_TO_ALIVE):
        assert found.state is Z
        found.check_answered(at)
    assert found.state is A


def test_a_server_without_status_server_is_tried_again_after_a_while() -> None:
    """It may be alive, and nobody would ever know."""
    for checks in (True, False):
        found, _ = zombie(checks=checks)
        found.pass_by(60)
        found.pass_by(60 + REVIVE_S - 1)
        assert found.state is D
        found.pass_by(60 + REVIVE_S)
        assert found.state is A


def test_a_server_that_answers_checks_is_not_tried_before_it_does() -> None:
    """What it is known to answer is waited for, however long."""
    found, _ = health()
    found.check_answered(1)
    found.unanswered(2, 22)
    found.pass_by(100)
    found.pass_by(100_000)
    assert found.state is D
