"""Tests of the rate limit for sources that send wrong keys."""

from sallyport.areas.tenancy.guesses import Guesses
from sallyport.base.clock import SECOND


def test_a_source_has_a_burst_and_a_refill() -> None:
    """A source has a limited number of attempts at once, and gets one more at each refill.

    Another source is not affected.
    """
    guesses = Guesses(burst=3, refill_us=10 * SECOND)
    for _ in range(3):
        assert not guesses.too_many("192.0.2.1", 0)
        guesses.fail("192.0.2.1", 0)
    assert guesses.too_many("192.0.2.1", 0)
    assert not guesses.too_many("192.0.2.2", 0)
    assert guesses.too_many("192.0.2.1", 9 * SECOND)
    assert not guesses.too_many("192.0.2.1", 10 * SECOND)
    guesses.fail("192.0.2.1", 10 * SECOND)
    assert guesses.too_many("192.0.2.1", 10 * SECOND)
    assert not guesses.too_many("192.0.2.1", 3600 * SECOND)


def test_a_source_is_a_subscriber() -> None:
    """A /64 of IPv6 is one source.

    An IPv4 address is the same source in every notation. Any other text is its own source.
    """
    guesses = Guesses(burst=1)
    guesses.fail("2001:db8::1", 0)
    guesses.fail("::ffff:192.0.2.1", 0)
    guesses.fail("", 0)
    assert guesses.too_many("2001:db8::2%eth0", 0)
    assert not guesses.too_many("2001:db8:0:1::1", 0)
    assert guesses.too_many("192.0.2.1", 0)
    assert guesses.too_many("", 0)


def test_setting_the_clock_back_refills_nothing() -> None:
    """The refill continues from the new time, not from the former one."""
    guesses = Guesses(burst=1, refill_us=10 * SECOND)
    guesses.fail("192.0.2.1", 1000 * SECOND)
    assert guesses.too_many("192.0.2.1", 0)
    assert not guesses.too_many("192.0.2.1", 10 * SECOND)


def test_the_table_is_bounded() -> None:
    """The sources with the lowest counts are evicted."""
    guesses = Guesses(burst=1, max_sources=2)
    for at, source in enumerate(("192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.3")):
        guesses.fail(source, at)
    assert [guesses.too_many(f"192.0.2.{last}", 4) for last in (1, 2, 3)] == [True, False, False]


def test_single_failures_of_others_do_not_reset_a_source() -> None:
    """A source at its limit stays at its limit, however many other sources fail once."""
    guesses = Guesses(burst=3, max_sources=8)
    for _ in range(3):
        guesses.fail("administrator ann", 0)
    for last in range(1, 200):
        guesses.fail(f"192.0.2.{last}", 1)
    assert guesses.too_many("administrator ann", 1)


def test_a_forgiven_failure_does_not_count() -> None:
    """An attempt that was counted beforehand and succeeds leaves no count."""
    guesses = Guesses(burst=2)
    for _ in range(5):
        guesses.fail("192.0.2.1", 0)
        guesses.forgive("192.0.2.1", 0)
    assert not guesses.too_many("192.0.2.1", 0)
    guesses.forgive("192.0.2.2", 0)
    guesses.fail("192.0.2.2", 0)
    assert not guesses.too_many("192.0.2.2", 0)
