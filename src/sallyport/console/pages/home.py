"""The first page after the sign-in: what needs attention, the logins of the last day, and the newest refused logins."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sallyport.areas.domains.domain import Domain, Mode
from sallyport.areas.events.hours import HourOfLogins
from sallyport.base.clock import iso
from sallyport.base.wire import Row
from sallyport.console.pages import attention, logins
from sallyport.console.pages.attention import MAX_DOMAINS
from sallyport.console.visit import Pages, Visit
from sallyport.web.console_pages import Context
from sallyport.web.scope import READERS

pages = Pages()
REFUSED: Final = 8
MONITORED: Final = 3
"""Maximum number of domains in monitor mode with a link to the preview of enforcement."""
HEIGHT: Final = 100
WIDTH: Final = 10
GAP: Final = 3
ANSWERS: Final = (("accept", "accepted"), ("reject", "rejected"))
"""The answers in the chart, from the bottom to the top, with their words."""


@dataclass(frozen=True, slots=True)
class Bar:
    """The part of an hour's bar with one answer, in the units of the SVG."""

    answer: str
    x: int
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Chart:
    """The logins of the last hours. Accepted and rejected logins are stacked, on one scale. scale: the numbers at the
    axis, from the top to the bottom. totals: each answer with the number of its logins, in words. text: the chart in
    words, for a screen reader."""

    bars: Sequence[Bar]
    scale: Sequence[int]
    totals: Sequence[tuple[str, str]]
    text: str
    width: int
    height: int = HEIGHT
    bar: int = WIDTH - GAP


@pages.show("/", "Home", roles=READERS, template="home.html", menu="")
async def home(visit: Visit) -> Context:
    """Show what needs attention, the logins of the last day by hour, and the newest refused logins."""
    domains = visit.domains()[:MAX_DOMAINS]
    day = await visit.services.events.hours.last_day(visit.caller.tenant_id, [domain.id for domain in domains])
    refused = list[Row]()
    for domain in domains:
        refused += await logins.newest(visit, domain, appliedDecision="reject", pageSize=REFUSED)
    refused.sort(key=lambda row: str(row["time"]), reverse=True)
    return {
        "concerns": await attention.concerns(visit, day),
        "chart": chart(day),
        "hours": [(iso(each.began), each.answered("accept"), each.answered("reject")) for each in reversed(day)],
        "waits": any(each.counts is None for each in day),
        "refused": refused[:REFUSED],
        "monitored": monitored(domains, day)[:MONITORED],
    }


def monitored(domains: Sequence[Domain], day: Sequence[HourOfLogins]) -> list[Domain]:
    """Return the domains in monitor mode that have logins of the last day, because a preview of enforcement decides
    recorded logins. If no domain has logins, return all domains in monitor mode."""
    used = {count.domain_id for hour in day for count in hour.counts or () if count.logins}
    return [domain for domain in domains if domain.mode is Mode.MONITOR and (not used or domain.id in used)]


def chart(day: Sequence[HourOfLogins]) -> Chart:
    """Return the chart of the logins by hour."""
    counts = [[each.answered(answer) or 0 for answer, _ in ANSWERS] for each in day]
    top = top_of(max(map(sum, counts)))
    bars = list[Bar]()
    for index, hour in enumerate(counts):
        below = 0
        for (answer, _), count in zip(ANSWERS, hour, strict=True):
            height = round(HEIGHT * count / top, 1)
            below += count
            if count:
                bars.append(Bar(answer, index * WIDTH, round(HEIGHT - HEIGHT * below / top, 1), height))
    sums = [sum(hour[index] for hour in counts) for index in range(len(ANSWERS))]
    totals = [(answer, f"{number:,} {word}") for number, (answer, word) in zip(sums, ANSWERS, strict=True)]
    most = max(map(sum, counts))
    text = f"Logins of the last 24 hours: {', '.join(total for _, total in totals)}; at most {most:,} in one hour"
    return Chart(bars, (top, top // 2, 0), totals, text, len(day) * WIDTH)


def top_of(most: int) -> int:
    """Return the top of the scale for this maximum: an even number with one digit before its zeros, which is not less
    than the maximum."""
    unit = 1
    while True:
        for step in (2, 4, 6, 8, 10):
            if step * unit >= most:
                return step * unit
        unit *= 10
