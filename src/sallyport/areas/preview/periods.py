"""Divide time into spans in which the time conditions of a domain's rules do not change.

If two logins differ only in their times, they get the same decision if the same time conditions hold for both. So the
time of a preview is divided wherever the result of a condition changes. All spans in which the same conditions hold
form one period. Whether a condition holds is decided by the code that matches rules for live logins.
"""

import zoneinfo
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final

from sallyport.areas.policy.rules.facts import AccountKind, Facts
from sallyport.areas.policy.rules.match import DomainRules
from sallyport.areas.policy.rules.rule import Action, Definition, Rule
from sallyport.areas.policy.rules.window import Window, minutes
from sallyport.base.clock import SECOND

MAX_COMPARED: Final = 16
"""Maximum number of different time conditions for which spans are compared. With more conditions, each span is a period
of its own."""
_DAY_S: Final = 86_400


@dataclass(frozen=True, slots=True)
class Span:
    """A span of time. since, until: its start and its end (exclusive), in microseconds. period: the number of its
    period. at: a time that represents the whole period, in microseconds."""

    period: int
    since: int
    until: int
    at: int


def spans_of(rules: Iterable[Rule], since: int, until: int) -> list[Span]:
    """Divide a range of time into spans, in order of time. If no rule has a time condition, the result is one span."""
    enabled = (rule.definition for rule in rules if rule.definition.enabled)
    windows = list({kept.time: None for kept in enabled if kept.time is not None})
    edges = [since, *(at for at in _cuts(windows, since, until) if since < at < until), until]
    clocks = [_clock(window) for window in windows] if len(windows) <= MAX_COMPARED else []
    known: dict[object, tuple[int, int]] = {}
    spans = []
    for begin, end in pairwise(edges):
        same: object = tuple(_holds(clock, begin) for clock in clocks) if clocks or not windows else begin
        period, at = known.setdefault(same, (len(known), begin))
        spans.append(Span(period, begin, end, at))
    return spans


def _cuts(windows: Sequence[Window], since: int, until: int) -> list[int]:
    """Return the times at which the result of a time condition may change, in ascending order. Some of them may be
    superfluous."""
    by_zone: dict[str, set[int]] = {}
    for window in windows:
        by_zone.setdefault(window.timezone, {0}).update((minutes(window.start), minutes(window.until)))
    found: set[int] = set()
    for name, edges in by_zone.items():
        try:
            zone = zoneinfo.ZoneInfo(name)
        except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
            continue  # rules with an unknown time zone can never be evaluated
        found.update(_cuts_of(zone, edges, since // SECOND, until // SECOND))
    return sorted(at * SECOND for at in found)


def _cuts_of(zone: zoneinfo.ZoneInfo, edges: Iterable[int], since_s: int, until_s: int) -> Iterator[int]:
    """Yield times, in seconds. They are the times at which the clocks of a zone show one of the given minutes of a day.
    They are also the times at which the clocks are changed, because the result of a condition may change then."""
    first = datetime.fromtimestamp(since_s, UTC).replace(tzinfo=None, hour=0, minute=0, second=0) - timedelta(days=1)
    for day in range((until_s - since_s) // _DAY_S + 4):
        midnight = first + timedelta(days=day)
        for edge in edges:
            shown = midnight + timedelta(minutes=edge)
            for fold in (0, 1):
                yield int(shown.replace(tzinfo=zone, fold=fold).timestamp())
        begin = int(midnight.replace(tzinfo=UTC).timestamp())
        if _offset(zone, begin) != _offset(zone, begin + _DAY_S):
            before = _offset(zone, begin)
            yield begin + bisect_left(range(_DAY_S), 1, key=lambda s: _offset(zone, begin + s) != before)


def _offset(zone: zoneinfo.ZoneInfo, at_s: int) -> timedelta | None:
    return datetime.fromtimestamp(at_s, zone).utcoffset()


def _clock(window: Window) -> DomainRules:
    """Return the rules of an imaginary domain, with one rule whose only condition is this window."""
    kept = Definition(name="", action=Action.BLOCK, time=window)
    return DomainRules([Rule(0, 0, "", Action.BLOCK, b"", kept)])


def _holds(clock: DomainRules, at: int) -> bool:
    return clock.match(Facts("", AccountKind.USER, None, None, "", "", "", "", "", "", "", None, at)) is not None
