"""Tests of the times of retransmissions (RFC 5080 section 2.2.1)."""

from collections.abc import Callable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sallyport.radius.retransmission import Retransmission, Timers


def sent_at(timers: Timers, jitter: Callable[[], float], start: float = 100.0) -> tuple[list[float], float]:
    """Return the times of the requests and of the end if there is no answer, in seconds after the start."""
    now, times = start, []
    trying = Retransmission(now, timers, jitter=jitter)
    while not trying.is_over(now):
        assert trying.is_due(now)
        trying.note_sent(now)
        times.append(round(now - start, 6))
        assert not trying.is_due(now)
        now = trying.next_at
    return times, round(now - start, 6)


def test_the_times_of_the_rfc() -> None:
    """The first pause is two seconds.

    Each later pause is twice as long as the previous one, up to sixteen seconds. The end is after half a minute.
    """
    assert sent_at(Timers(), lambda: 0.0) == ([0.0, 2.0, 6.0, 14.0], 30.0)


def test_jitter_multiplies() -> None:
    """Each pause is 2 + RAND times the previous one. The maximum pause has its RAND too."""
    times, _ = sent_at(Timers(duration=1000.0, count=6), lambda: 0.1)
    pauses = [round(b - a, 6) for a, b in pairwise(times)]
    assert pauses == [2.2, 4.62, 9.702, 17.6, 17.6]


def test_the_number_of_requests_is_limited() -> None:
    """The number of requests is limited. After the last request there is another pause."""
    assert sent_at(Timers(count=2), lambda: 0.0) == ([0.0, 2.0], 6.0)
    assert sent_at(Timers(count=1), lambda: -0.1) == ([0.0], 1.8)


@given(st.lists(st.floats(-0.1, 0.1), min_size=10, max_size=10))
def test_retransmission_always_ends_in_time(jitters: list[float]) -> None:
    """With any jitter there are at most five requests, in order, within 30 seconds."""
    rest = iter(jitters)
    times, end = sent_at(Timers(), lambda: next(rest))
    assert 4 <= len(times) <= 5
    assert times == sorted(times)
    assert end <= 30.0


def test_the_default_jitter_is_a_tenth() -> None:
    """The first pause varies between 1.8 and 2.2 seconds."""
    found = set()
    for _ in range(50):
        trying = Retransmission(0.0)
        trying.note_sent(0.0)
        found.add(trying.next_at)
    assert all(1.8 <= each <= 2.2 for each in found)
    assert len(found) > 1
