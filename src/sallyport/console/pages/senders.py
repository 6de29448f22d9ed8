"""Pages about senders that get no answer: unknown addresses and senders of refused packets. An unknown address can be
registered."""

from collections.abc import Sequence
from ipaddress import ip_address
from typing import Final

from sallyport.areas.domains.domain import Domain
from sallyport.areas.login.listen.causes import UNKNOWN, UNPROVEN
from sallyport.base.errors import Invalid
from sallyport.base.wire import Row
from sallyport.console.columns import Column
from sallyport.console.table import Filter, Table, complete
from sallyport.console.visit import Pages, Visit, address
from sallyport.radius.vendors import PRODUCTS
from sallyport.settings.values import Address
from sallyport.shell.command import entries
from sallyport.web.console_pages import Context
from sallyport.web.scope import INSTALLATIONS

pages = Pages()
COMMAND: Final = "listen.senders"
ONE: Final = "/senders/sender"
NEW: Final = "/senders/register"


HERE: Final = {
    UNKNOWN: "register it as a RADIUS client, if you know it",
    UNPROVEN: "see the reasons in the live log; an unsigned request does not prove its sender",
}
"""The remedies that are pages of the console, by reason."""


def _next(row: Row) -> str:
    """Return the address of the page that helps. Without such a page, return that of the sender."""
    if row["reason"] == UNPROVEN:
        return address("/logins", [("search", str(row["address"]))])
    return address(NEW if row["reason"] == UNKNOWN else ONE, [("address", str(row["address"]))])


COLUMNS: Final = (
    Column("address", "Address", "code", link=lambda row: address(ONE, [("address", str(row["address"]))])),
    Column("packets", "Packets", "number"),
    Column("verdict", "Cause"),
    Column("remedy", "What to do", link=_next),
    Column("client", "RADIUS client"),
    Column("product", "Product"),
    Column("nas_identifier", "NAS-Identifier"),
    Column("packet", "Last packet", is_chosen=False),
    Column("signed", "Signed", "flag", is_chosen=False),
    Column("first", "First packet", "time", is_chosen=False),
    Column("last", "Last seen", "age"),
    Column("node", "Node", is_chosen=False),
)
FILTERS: Final = (Filter("search", "Search"),)
ELSEWHERE: Final = (
    "A device whose address is no RADIUS client gets no answer, and has no logins. An installation administrator sees "
    "it under Senders without an answer."
)
EMPTY: Final = (
    "Every sender gets an answer. A new device appears here with its first request; if it does not, check its server "
    "address, its ports and the firewalls in between."
)


@pages.show("/senders", "Senders without an answer", roles=INSTALLATIONS, template="senders.html", menu="Logins")
async def senders(visit: Visit) -> Context:
    """List the senders, the latest first."""
    return {"table": complete(visit, COLUMNS, await everyone(visit), filters=FILTERS, empty=EMPTY)}


@pages.show(ONE, "Sender without an answer", roles=INSTALLATIONS, template="sender.html")
async def sender(visit: Visit) -> Context:
    """Show one sender, with the cause and the remedy."""
    found = await _sender(visit)
    register = address(NEW, [("address", visit.query.get("address", ""))])
    return {"sender": found, "register": register if found and found["reason"] == UNKNOWN else ""}


@pages.show(NEW, "Register a sender", roles=INSTALLATIONS, template="sender_register.html")
async def registration(visit: Visit) -> Context:
    """Show the form that registers an address. The form contains the values that are known from the last packet of the
    address."""
    found = await _sender(visit)
    products, places = ["", *PRODUCTS], await _places(visit)
    own = [value for value, (tenant, *_) in places.items() if tenant == visit.caller.tenant_id]
    is_only = len({tenant for tenant, *_ in places.values()}) == 1
    return {
        "sender": found or {},
        "address": visit.query.get("address", ""),
        "products": [(each, each or "not known") for each in products],
        "places": [(value, _place_text(*place[1:], is_only=is_only)) for value, place in places.items()],
        "present": next((each for each in own if each.endswith(f".{visit.main}")), own[0] if own else ""),
    }


@pages.submit(NEW, roles=INSTALLATIONS, template="sender_registered.html")
async def register(visit: Visit) -> Context:
    """Register the address as a RADIUS client of a tenant. The answer shows the secret, only once."""
    place = (await _places(visit)).get(visit.fields.get("place", ""))
    if place is None:
        raise Invalid.about("choose a domain", "place")
    *wanted, domain = place
    there = visit.in_tenant(*wanted)
    domains = there.domains()
    body: Row = {name: visit.fields.get(name, "") for name in ("name", "address", "product", "secret")}
    body["name"] = str(body["name"]).strip()
    if domain and domain != domains[0]:  # without domainIds, the client has all domains, and the first is the default
        body["domainIds"] = [domain.id, *(each.id for each in domains if each != domain)]
    made = await there.call("/network_device/AddClient", body)
    settings = visit.services.settings
    return {
        "title": f"{body['name']} is registered",
        "client": {**body, **made},
        "own_secret": bool(body["secret"]),
        "tenant": wanted,
        "default": domain,
        "is_here": wanted[0] == visit.caller.tenant_id,
        "server": hosts(settings.radius_auth_bind),
        "logins_url": address("/logins", [("search", str(body["address"]))] if "/" not in str(body["address"]) else []),
        "authentication": _ports(settings.radius_auth_bind),
        "accounting": _ports(settings.radius_acct_bind),
    }


def tell_elsewhere(table: Table) -> None:
    """Let a list without a match say where a sender without an answer is found."""
    visit, table.no_match = table.visit, ELSEWHERE
    if visit.person.is_installation:
        table.no_match_url = address("/senders", [("search", visit.query.get("search", ""))])


async def everyone(visit: Visit) -> list[Row]:
    """Return the senders. If the original remedy is a command, and the console has a page for it, the remedy is in the
    words of HERE."""
    found = entries(await visit.command(COMMAND))
    return [{**each, "remedy": HERE.get(str(each["reason"]), each["remedy"])} for each in found]


async def _sender(visit: Visit) -> Row | None:
    wanted = visit.query.get("address", "")
    return next((each for each in await everyone(visit) if each["address"] == wanted), None)


_Place = tuple[int, int, int, Domain | None]
"""The id of a tenant, the numbers of its organization and of itself, and one of its domains; None if it has none."""


async def _places(visit: Visit) -> dict[str, _Place]:
    """Return each domain of each tenant, by its value in the form."""
    found: dict[str, _Place] = {}
    numbers = await visit.services.tenancy.numbers()
    for tenant, (org, number) in sorted(numbers.items(), key=lambda each: each[1]):
        domains: Sequence[Domain | None] = visit.in_tenant(tenant, org, number).domains()
        for domain in domains or [None]:
            found[f"{org}.{number}.{domain.id if domain else 0}"] = (tenant, org, number, domain)
    return found


def _place_text(organization: int, number: int, domain: Domain | None, *, is_only: bool) -> str:
    """Return the text of a choice. It names the tenant, unless there is only one."""
    name = domain.name if domain else "no domain yet"
    return name if is_only else f"{name} (organization {organization}, tenant {number})"


def hosts(addresses: tuple[Address, ...]) -> str:
    """Return the addresses at which the service listens. Return an empty text if it listens at all addresses."""
    found = dict.fromkeys(each.host for each in addresses)
    return "" if any(ip_address(each).is_unspecified for each in found) else ", ".join(found)


def _ports(addresses: tuple[Address, ...]) -> str:
    return ", ".join(sorted({str(each.port) for each in addresses})) or "none"
