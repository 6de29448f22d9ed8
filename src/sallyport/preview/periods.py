"""When the times of day of a domain's rules hold.

Logins at moments at which the same times hold are the same to the rules. So the days that a preview looks at are cut
where one of them begins or ends, and the pieces in which the same ones hold become one period. Whether a time holds is
asked of the matcher of the live path.
"""

import zoneinfo
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final

from sallyport.base.clock import SECOND
from sallyport.policy.rules.match import DomainRules, Facts
from sallyport.policy.rules.rule import Action, Definition, Kind, Rule, Window, minutes

MOST_COMPARED: Final = 16
"""Above so many different times of day each piece is a period of its own: to compare them would cost more."""
_DAY_S: Final = 86_400


@dataclass(frozen=True, slots=True)
class Span:
    """From `since` up to `until`, in microseconds. at: a moment that stands for the whole period."""

    period: int
    since: int
    until: int
    at: int


def spans_of(rules: Iterable[Rule], since: int, until: int) -> list[Span]:
    """A stretch of time, cut into spans, in order. Without a time of day among the rules there is one."""
    enabled = (rule.definition for rule in rules if rule.definition.enabled)
    windows = list({kept.time: None for kept in enabled if kept.time is not None})
    edges = [since, *(at for at in _cuts(windows, since, until) if since < at < until), until]
    clocks = [_clock(window) for window in windows] if len(windows) <= MOST_COMPARED else []
    known: dict[object, tuple[int, int]] = {}
    spans = []
    for begin, end in pairwise(edges):
        same: object = tuple(_holds(clock, begin) for clock in clocks) if clocks or not windows else begin
        period, at = known.setdefault(same, (len(known), begin))
        spans.append(Span(period, begin, end, at))
    return spans


def _cuts(windows: Sequence[Window], since: int, until: int) -> list[int]:
    """Every moment at which a time of day may begin or end, ascending; more than are needed do no harm."""
    by_zone: dict[str, set[int]] = {}
    for window in windows:
        by_zone.setdefault(window.timezone, {0}).update((minutes(window.start), minutes(window.until)))
    found: set[int] = set()
    for name, edges in by_zone.items():
        try:
            zone = zoneinfo.ZoneInfo(name)
        except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
            continue  # its rules cannot be judged at any time
        found.update(_cuts_of(zone, edges, since // SECOND, until // SECOND))
    return sorted(at * SECOND for at in found)


def _cuts_of(zone: zoneinfo.ZoneInfo, edges: Iterable[int], since_s: int, until_s: int) -> Iterator[int]:
    """Seconds at which the clocks of a zone show an edge, on both sides of a change of the clocks, or change."""
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
    """A rule about nothing but this time of day."""
    kept = Definition(name="", action=Action.BLOCK, time=window)
    return DomainRules([Rule(0, 0, "", Action.BLOCK, b"", kept)])


def _holds(clock: DomainRules, at: int) -> bool:
    return clock.match(Facts("", Kind.USER, None, None, "", "", "", "", "", "", "", None, at)) is not None
