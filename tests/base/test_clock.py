"""Times as text."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from sallyport.base.clock import SECOND, from_iso, from_us, iso, iso_seconds


@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=st.just(UTC)))
def test_iso_8601_matches_the_standard_library(moment: datetime) -> None:
    """A time is formatted like by `datetime`, with six decimals or none, and parsing the text returns the same time."""
    at = from_iso(moment.isoformat())
    assert from_us(at) == moment
    assert iso(at) == moment.strftime("%Y").zfill(4) + moment.strftime("-%m-%dT%H:%M:%S.%fZ")
    assert iso_seconds(at) == iso(at)[:19] + "Z"
    assert from_iso(iso(at)) == at
    assert from_iso(iso_seconds(at)) == at - at % SECOND
