"""How long to wait after a failure."""

from sallyport.agent.backoff import BackOff


def test_waits_double_up_to_a_limit() -> None:
    """From failure to failure; a success begins anew."""
    waits = BackOff(first_s=1, most_s=10, chance=lambda: 0.0)
    assert [waits.failed() for _ in range(6)] == [1, 2, 4, 8, 10, 10]
    waits.worked()
    assert waits.failed() == 1


def test_no_two_agents_wait_alike() -> None:
    """Chance takes up to half of a wait, so that a service that comes back is not asked by all at once."""
    assert BackOff(first_s=8, chance=lambda: 1.0).failed() == 4
    assert len({BackOff(first_s=8).failed() for _ in range(20)}) > 1


def test_the_service_may_ask_for_time() -> None:
    """Its Retry-After is kept, within the limit."""
    waits = BackOff(first_s=1, most_s=10, chance=lambda: 0.0)
    assert waits.failed(5) == 5
    assert waits.failed(10**9) == 10
