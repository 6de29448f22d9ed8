"""Tests of the state machine of a home server: time and answers change the state. No socket or clock is used."""

import pytest

from sallyport.areas.login.first.upstream.health import (
    ANSWERS_TO_ALIVE,
    CHECK_INTERVAL_S,
    REVIVE_S,
    ZOMBIE_S,
    Health,
    State,
)

A, Z, D = State.ALIVE, State.ZOMBIE, State.DEAD


class Changes(list[tuple[State, State]]):
    """The reported changes of the state."""

    def __call__(self, before: State, after: State) -> None:
        self.append((before, after))


def health(*, checks: bool = True) -> tuple[Health, Changes]:
    """Return the state of a server at time 0, and the list of its reported changes."""
    changes = Changes()
    return Health(0, checks=checks, changed=changes), changes


def zombie(*, checks: bool = True) -> tuple[Health, Changes]:
    """Return a server that became a zombie at time 20. The first Status-Server was sent at time 0 and not answered."""
    found, changes = health(checks=checks)
    assert found.is_check_due(0) is checks
    found.unanswered(0, 20)
    return found, changes


def test_no_answer_in_the_window_makes_a_zombie() -> None:
    """If a request is not answered within the window, the server becomes a zombie, unless it has answered other
    requests since."""
    found, changes = health()
    found.answered(5)
    found.unanswered(4, 24)
    assert (found.state, changes) == (A, [])
    found.unanswered(6, 26)
    found.unanswered(7, 27)
    assert (found.state, changes) == (Z, [(A, Z)])


def test_a_refusal_of_the_network_makes_a_zombie() -> None:
    """If its port is unreachable, a server becomes a zombie at once, even after earlier answers."""
    found, changes = health()
    found.answered(5)
    found.refused(5)
    found.refused(6)
    assert changes == [(A, Z)]


@pytest.mark.parametrize("checks", [True, False])
def test_a_zombie_dies_without_a_sign_of_life(checks: bool) -> None:
    """A zombie becomes dead when the zombie period ends without an answer."""
    found, _ = zombie(checks=checks)
    found.pass_by(20 + ZOMBIE_S - 0.1)
    assert found.state is Z
    found.pass_by(20 + ZOMBIE_S)
    assert found.state is D


@pytest.mark.parametrize("dead", [False, True])
def test_an_answer_to_a_request_revives(dead: bool) -> None:
    """An answer to a request makes a dead server alive."""
    found, changes = zombie()
    if dead:
        found.pass_by(20 + ZOMBIE_S)
    found.answered(70)
    assert found.state is A
    assert changes[-1] == (D if dead else Z, A)


def test_a_zombie_is_checked_at_once_and_then_at_intervals() -> None:
    """A zombie is checked at once and then at each interval. At each of these times one check is due."""
    found, _ = zombie()
    assert [found.is_check_due(20), found.is_check_due(20)] == [True, False]
    assert not found.is_check_due(20 + CHECK_INTERVAL_S - 1)
    assert found.is_check_due(20 + CHECK_INTERVAL_S)


def test_a_server_that_is_alive_is_checked_once_at_the_start() -> None:
    """A server is checked once at the start, to find out whether it answers Status-Server.

    If checks are off, it is never checked.
    """
    found, _ = health()
    assert [found.is_check_due(0), found.is_check_due(1000)] == [True, False]
    found, _ = health(checks=False)
    assert not found.is_check_due(1000)
    found.refused(0)
    assert not found.is_check_due(1000)


def test_answers_to_checks_in_a_row_revive() -> None:
    """Enough answers to checks in a row make a server alive.

    If an answer is missing, the count starts again. While answers arrive, a zombie does not become dead.
    """
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
    """A dead server that does not answer Status-Server is tried again after a while."""
    for checks in (True, False):
        found, _ = zombie(checks=checks)
        found.pass_by(60)
        found.pass_by(60 + REVIVE_S - 1)
        assert found.state is D
        found.pass_by(60 + REVIVE_S)
        assert found.state is A


def test_a_server_that_answers_checks_is_not_tried_before_it_does() -> None:
    """If a dead server has answered Status-Server before, it gets no login until it answers again."""
    found, _ = health()
    found.check_answered(1)
    found.unanswered(2, 22)
    found.pass_by(100)
    found.pass_by(100_000)
    assert found.state is D
