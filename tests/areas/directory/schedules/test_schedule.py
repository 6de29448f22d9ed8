"""The time of the next reading."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.areas.directory.schedules.schedule import MAX_JITTER_US, MINUTE, Timing
from sallyport.base.clock import from_iso, iso


@pytest.mark.parametrize(
    ("timing", "now", "following"),
    [
        (Timing(every_minutes=60), "2026-01-01T08:10:00", "2026-01-01T09:10:00"),
        (Timing(times=(150,)), "2026-01-01T02:00:00", "2026-01-01T02:30:00"),
        (Timing(times=(150,)), "2026-01-01T02:30:00", "2026-01-02T02:30:00"),
        (Timing(times=(150, 600)), "2026-01-01T02:30:00", "2026-01-01T10:00:00"),
        (Timing(times=(0,)), "2026-12-31T23:59:59", "2027-01-01T00:00:00"),
        (Timing(times=(480,), zone="Europe/Berlin"), "2026-01-01T00:00:00", "2026-01-01T07:00:00"),
        (Timing(times=(480,), zone="Europe/Berlin"), "2026-07-01T00:00:00", "2026-07-01T06:00:00"),
        (Timing(times=(60,), zone="Pacific/Auckland"), "2026-01-01T13:00:00", "2026-01-02T12:00:00"),
        (
            Timing(times=(150,), zone="Europe/Berlin"),
            "2026-03-29T00:00:00",
            "2026-03-29T01:30:00",
        ),  # 02:30 does not exist on this day
    ],
)
def test_the_next_reading_follows_the_interval_or_the_times_of_day(timing: Timing, now: str, following: str) -> None:
    """A reading is due after the interval, or at the next time of day in the time zone, even when the clocks change."""
    assert iso(timing.following(from_iso(now), 0.0)) == f"{following}.000000Z"


@given(
    st.integers(min_value=0, max_value=4_000_000_000),
    st.floats(min_value=0, max_value=1),
    st.one_of(
        st.builds(Timing, every_minutes=st.integers(min_value=5, max_value=10_080)),
        st.builds(
            Timing,
            times=st.lists(st.integers(min_value=0, max_value=1439), min_size=1, max_size=4),
            zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]),
        ),
    ),
)
def test_the_next_reading_is_later_within_the_jitter(second: int, chance: float, timing: Timing) -> None:
    """The next reading is in the future. Jitter delays it by at most five minutes, and by at most a tenth of the
    interval.
    """
    now = second * 1_000_000
    first, due = timing.following(now, 0.0), timing.following(now, chance)
    assert now < first <= due
    assert due - first <= min(MAX_JITTER_US, timing.every_minutes * MINUTE // 10 or MAX_JITTER_US)


def test_every_nth_reading_is_full() -> None:
    """Every `full_every`th reading is full. If `full_every` is 0, no reading is full."""
    assert [Timing(full_every=3).is_full(runs) for runs in range(4)] == [False, False, True, True]
    assert not Timing(full_every=0).is_full(1000)
    assert Timing(full_every=1).is_full(0)
