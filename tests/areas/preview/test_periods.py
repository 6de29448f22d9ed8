"""Tests of periods, which group the times at which the same time windows apply."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.areas.policy.rules.facts import AccountKind, Facts
from sallyport.areas.policy.rules.match import DomainRules
from sallyport.areas.policy.rules.rule import Action, Definition, Rule
from sallyport.areas.policy.rules.window import DAYS, Window
from sallyport.areas.preview.periods import MAX_COMPARED, Span, spans_of
from sallyport.areas.preview.service import DAY
from sallyport.areas.preview.traffic import SLICE_SPANS, parts_of
from sallyport.base.clock import SECOND

NOW = 1_767_225_600 * SECOND  # 2026-01-01
ZONES = ("UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns", "Pacific/Apia", "no/such")


def clock(minute: int) -> str:
    """Return minutes since midnight as HH:MM."""
    return f"{minute // 60:02}:{minute % 60:02}"


def rule(number: int, window: Window | None, *, enabled: bool = True) -> Rule:
    """Return a rule with a time window."""
    kept = Definition(name="r", action=Action.BLOCK, time=window, enabled=enabled)
    return Rule(number, 1, "r", Action.BLOCK, b"", kept)


windows = st.builds(
    lambda days, start, length, zone: Window(
        days=tuple(days), start=clock(start), until=clock((start + length) % 1440 or 1440), timezone=zone
    ),
    st.lists(st.sampled_from(DAYS), unique=True, max_size=3),
    st.integers(0, 1439),
    st.integers(1, 1439),
    st.sampled_from(ZONES),
)


def holds(window: Window, at: int) -> bool:
    """Return whether the matcher finds that a window applies, or None if this is unknown."""
    matcher = DomainRules([rule(1, window)])
    return matcher.match(Facts("", AccountKind.USER, None, None, "", "", "", "", "", "", "", None, at)) is not None


@given(
    st.lists(windows, max_size=4),
    st.integers(0, 365),
    st.integers(0, 20 * DAY),
    st.lists(st.integers(0, 20 * DAY), min_size=1, max_size=20),
)
def test_all_times_of_a_period_have_the_same_windows(
    given_windows: list[Window], day: int, length: int, offsets: list[int]
) -> None:
    """The spans have no gaps. At each time, the same windows apply as at the representative time of its period."""
    since = NOW + day * DAY
    until = since + length + 1
    spans = spans_of([rule(number, each) for number, each in enumerate(given_windows)], since, until)
    assert (spans[0].since, spans[-1].until) == (since, until)
    assert all(one.until == other.since for one, other in pairwise(spans))
    for offset in offsets:
        at = since + offset % (length + 1)
        span = next(each for each in spans if each.since <= at < each.until)
        for window in given_windows:
            assert holds(window, at) is holds(window, span.at)


def test_working_hours_are_two_periods() -> None:
    """For any number of days, there are two periods: the working hours and all other times."""
    hours = Window(days=DAYS[:5], start="08:00", until="18:00", timezone="Europe/Berlin")
    spans = spans_of([rule(1, hours)], NOW, NOW + 365 * DAY)
    assert {span.period for span in spans} == {0, 1}
    assert 365 < len(spans) < 3000


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param([], id="no rule"),
        pytest.param([rule(1, None)], id="no time of day"),
        pytest.param([rule(1, Window(start="08:00", until="18:00"), enabled=False)], id="disabled"),
    ],
)
def test_rules_without_a_time_of_day_give_one_span(rules: list[Rule]) -> None:
    """If no enabled rule has a time of day, all times are in one period."""
    assert spans_of(rules, NOW, NOW + 365 * DAY) == [Span(0, NOW, NOW + 365 * DAY, NOW)]


@pytest.mark.parametrize(("month", "day"), [pytest.param(3, 29, id="no 02:30"), pytest.param(10, 25, id="two 02:30")])
def test_spans_follow_a_clock_change(month: int, day: int) -> None:
    """A span begins when the clock of its time zone shows the start of the window."""
    window = Window(start="02:30", until="03:30", timezone="Europe/Berlin")
    midnight = int(datetime(2026, month, day, tzinfo=UTC).timestamp()) * SECOND
    spans = spans_of([rule(1, window)], midnight, midnight + DAY)
    for minute in range(1440):
        at = midnight + minute * 60 * SECOND
        span = next(each for each in spans if each.since <= at < each.until)
        assert holds(window, at) is holds(window, span.at), timedelta(minutes=minute)


def test_too_many_times_of_day_are_not_grouped() -> None:
    """If the rules have too many times of day, times are not grouped: each span is a period of its own."""
    rules = [rule(n, Window(start=clock(n), until=clock(n + 60))) for n in range(MAX_COMPARED + 1)]
    spans = spans_of(rules, NOW, NOW + DAY)
    assert len({span.period for span in spans}) == len(spans) > MAX_COMPARED


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=1200), st.lists(st.integers(0, 10**9), max_size=5))
def test_parts_cover_all_spans(lengths: list[int], cuts: list[int]) -> None:
    """Each time of the spans is in exactly one part and has the same representative.

    No part has more than the maximum number of spans.
    """
    spans, at = [], 0
    for number, length in enumerate(lengths):
        spans.append(Span(number, at, at + length, at))
        at += length
    ends = sorted({0, at, *(cut for cut in cuts if cut < at)})
    parts = [part for begin, end in pairwise(ends) for part in parts_of(spans, begin, end)]
    assert all(0 < len(part) <= SLICE_SPANS for part in parts)
    pieces = [piece for part in parts for piece in part]
    assert pieces[0].since == 0 and pieces[-1].until == at
    assert all(one.until == other.since for one, other in pairwise(pieces))
    for piece in pieces:
        span = spans[piece.period]
        assert span.since <= piece.since < piece.until <= span.until and piece.at == span.at
