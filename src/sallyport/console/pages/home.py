"""The first page after the sign-in: what needs attention, and the newest refused logins."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from sallyport.base.errors import NotFound
from sallyport.base.text import counted
from sallyport.base.wire import Row
from sallyport.console.declare import Context, Pages
from sallyport.console.pages import logins, senders
from sallyport.console.visit import Visit, address
from sallyport.domains.domain import Domain, Mode
from sallyport.listen.causes import UNKNOWN
from sallyport.web.scope import READERS

pages = Pages()
MOST_DOMAINS: Final = 20
REFUSED: Final = 8


@dataclass(frozen=True, slots=True)
class Concern:
    """Something that needs attention. path: the address of the page that helps. link: the text of the link to this
    page. If there is no such page, both are empty. is_bad: whether logins fail now because of it."""

    text: str
    path: str = ""
    link: str = ""
    is_bad: bool = False


@pages.show("/", "Home", roles=READERS, template="home.html", menu="")
async def home(visit: Visit) -> Context:
    """Show what needs attention, the most urgent first."""
    concerns = [each async for each in _concerns(visit)]
    refused = list[Row]()
    for domain in visit.domains()[:MOST_DOMAINS]:
        refused += await logins.newest(visit, domain, appliedDecision="reject", pageSize=REFUSED)
    refused.sort(key=lambda row: str(row["time"]), reverse=True)
    return {"concerns": sorted(concerns, key=lambda each: not each.is_bad), "refused": refused[:REFUSED]}


async def _concerns(visit: Visit) -> AsyncIterator[Concern]:
    domains = visit.domains()
    if not domains:
        yield Concern("The tenant has no domain yet, so no login can be decided.", is_bad=True)
    clients = await visit.call("/network_device/ListClients", {"pageSize": 1})
    if not clients["totalCount"]:
        yield Concern("No RADIUS client is registered, so no device gets an answer.", is_bad=True)
    for domain in domains[:MOST_DOMAINS]:
        async for each in _of_domain(visit, domain):
            yield each
    if visit.person.is_installation:
        async for each in _of_installation(visit):
            yield each


async def _of_domain(visit: Visit, domain: Domain) -> AsyncIterator[Concern]:
    try:
        await visit.call("/ad/GetMFAProvider", domain=domain.id)
    except NotFound:
        enforces = domain.mode == Mode.ENFORCE
        text = "enforces, but has no MFA provider" if enforces else "has no MFA provider yet"
        yield Concern(f"The domain {domain.name} {text}.", is_bad=enforces)
    locked = (await visit.call("/ad/ListLockouts", {"pageSize": 1}, domain=domain.id))["totalCount"]
    if locked:
        path = address("/logins", [("domain", str(domain.id)), ("reason", "locked out after failures")])
        text = f"{counted(locked, 'user or station', 'users or stations')} of {domain.name} locked out after failures."
        yield Concern(text, path, "Their logins")


async def _of_installation(visit: Visit) -> AsyncIterator[Concern]:
    found = await senders.everyone(visit)
    unknown = sum(each["reason"] == UNKNOWN for each in found)
    if unknown:
        yield Concern(
            f"{counted(unknown, 'unknown address', 'unknown addresses')} without an answer.", "/senders", "Show"
        )
    if len(found) > unknown:
        text = f"Packets of {counted(len(found) - unknown, 'known address', 'known addresses')} refused."
        yield Concern(text, "/senders", "Show the causes")
