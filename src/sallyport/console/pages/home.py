"""The first page after the sign-in: what needs attention, the logins of the last day, and the newest refused logins."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sallyport.base.clock import iso
from sallyport.base.text import counted
from sallyport.base.wire import Row
from sallyport.console.declare import Context, Pages
from sallyport.console.pages import attention, logins
from sallyport.console.pages.attention import MOST_DOMAINS
from sallyport.console.visit import Visit
from sallyport.domains.domain import Domain, Mode
from sallyport.events.hours import HourOfLogins
from sallyport.web.scope import READERS

pages = Pages()
REFUSED: Final = 8
MONITORED: Final = 3
"""Maximum number of domains in monitor mode with a link to the preview of enforcement."""
HEIGHT: Final = 40
WIDTH: Final = 10
GAP: Final = 2


@dataclass(frozen=True, slots=True)
class Bar:
    """The bar of one hour in a sparkline, in the units of the SVG."""

    x: int
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Sparkline:
    """The number of logins with one answer in each of the last hours. text: the same in words, for a screen reader."""

    answer: str
    text: str
    bars: Sequence[Bar]


@pages.show("/", "Home", roles=READERS, template="home.html", menu="")
async def home(visit: Visit) -> Context:
    """Show what needs attention, the logins of the last day by hour, and the newest refused logins."""
    domains = visit.domains()[:MOST_DOMAINS]
    day = await visit.services.events.hours.last_day(visit.caller.tenant_id, [domain.id for domain in domains])
    refused = list[Row]()
    for domain in domains:
        refused += await logins.newest(visit, domain, appliedDecision="reject", pageSize=REFUSED)
    refused.sort(key=lambda row: str(row["time"]), reverse=True)
    return {
        "concerns": await attention.concerns(visit, day),
        "sparklines": [sparkline("accept", "Accepted", day), sparkline("reject", "Rejected", day)],
        "hours": [(iso(each.began), each.answered("accept"), each.answered("reject")) for each in reversed(day)],
        "waits": any(each.counts is None for each in day),
        "size": (len(day) * WIDTH, HEIGHT),
        "bar": WIDTH - GAP,
        "refused": refused[:REFUSED],
        "monitored": monitored(domains, day)[:MONITORED],
    }


def monitored(domains: Sequence[Domain], day: Sequence[HourOfLogins]) -> list[Domain]:
    """Return the domains in monitor mode that have logins of the last day, because a preview of enforcement decides
    recorded logins. If no domain has logins, return all domains in monitor mode."""
    used = {count.domain_id for hour in day for count in hour.counts or () if count.logins}
    return [domain for domain in domains if domain.mode is Mode.MONITOR and (not used or domain.id in used)]


def sparkline(answer: str, title: str, day: Sequence[HourOfLogins]) -> Sparkline:
    """Return the sparkline of the logins with an answer. The highest bar has the full height. title: the answer in
    words."""
    counts = [each.answered(answer) or 0 for each in day]
    most = max(counts)
    heights = [round(HEIGHT * count / most, 1) if most else 0 for count in counts]
    bars = [Bar(at * WIDTH, round(HEIGHT - height, 1), height) for at, height in enumerate(heights) if height]
    text = f"{title}: {counted(sum(counts), 'login')} in the last 24 hours"
    if most:
        text += f", at most {most} in one hour, {counts[-1]} in the present hour"
    return Sparkline(answer, text, bars)
