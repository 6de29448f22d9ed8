"""Domains: the list, the page of a domain, its settings, and its removal."""

from typing import Final

from sallyport.areas.domains.domain import Domain
from sallyport.base.clock import iso_or_empty
from sallyport.base.errors import Conflict, NotFound
from sallyport.base.wire import JSON, Row
from sallyport.console.columns import row_columns
from sallyport.console.labels import label
from sallyport.console.pages.directories.finding import first_directories
from sallyport.console.pages.reading import domain_at, rights
from sallyport.console.table import listed
from sallyport.console.visit import Pages, Visit
from sallyport.shell.command import entries
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import ADMINS, OPERATORS, READERS

pages = Pages()
COLUMNS: Final = row_columns(
    Domain,
    *("domainName", "enforcementMode", "revertsAt", "firstFactor", "fallbackAction", "realms", "warnings"),
    links={"domainName": lambda row: f"/domains/{row['domainId']}"},
)
MAX_DIRECTORIES: Final = 10
EMPTY: Final = "No domain yet. Add one: its name is the realm of user@realm, and its users can then log in."


@pages.show("/domains", "Domains", roles=READERS, template="domains.html", menu="Sign-in policy")
async def domains(visit: Visit) -> Context:
    """List the domains of the tenant."""
    table = await listed(visit, COLUMNS, "/ad/GetAllDomains", "domains", {}, empty=EMPTY)
    return {"table": table, **rights(visit)}


@pages.show("/domains/add", "Add a domain", roles=OPERATORS, template="domain_add.html")
async def new(visit: Visit) -> Context:
    """Show the form of a new domain."""
    return {}


@pages.submit("/domains/add", roles=OPERATORS)
async def add(visit: Visit) -> Redirect:
    """Add a domain in monitor mode, with local users."""
    body: dict[str, JSON] = {
        "domainName": visit.fields.get("name", ""),
        "realms": list[JSON](_words(visit.fields.get("realms", ""))),
        "directoryName": visit.fields.get("directory", ""),
    }
    added = await visit.call("/ad/AddDomain", body)
    name = body["domainName"]
    return Redirect(f"/domains/{added['domainId']}", f"The domain {name} is added, in monitor mode with local users.")


@pages.show("/domains/{domain}", "Domain", roles=READERS, template="domain.html")
async def domain(visit: Visit) -> Context:
    """Show a domain: its mode, its factors and its settings."""
    found = domain_at(visit)
    first = await visit.call("/ad/GetFirstFactor", domain=found.id)
    return {
        "title": f"Domain {found.name}",
        "domain": found,
        "reverts_at": iso_or_empty(found.reverts_at),
        "warnings": visit.services.domains.warnings(found),
        "provider": await provider_of(visit, found),
        "further": [each for each in await providers_of(visit, found) if not each["isDefault"]],
        "configured": configuration(first),
        "directories": await first_directories(visit, found, MAX_DIRECTORIES),
        **rights(visit),
    }


@pages.show("/domains/{domain}/settings", "Settings of a domain", roles=OPERATORS, template="domain_settings.html")
async def settings(visit: Visit) -> Context:
    """Show the form of the settings."""
    found = domain_at(visit)
    return {"title": f"Settings of {found.name}", "domain": found, **rights(visit)}


@pages.submit("/domains/{domain}/settings", roles=OPERATORS)
async def change(visit: Visit) -> Redirect:
    """Change the settings of a domain. The form contains all realms of the domain. So a realm that is missing in the
    form is removed."""
    found, fields = domain_at(visit), visit.fields
    given = _words(fields.get("realms", ""))
    body: dict[str, JSON] = {
        "domainName": fields.get("name", ""),
        "directoryName": fields.get("directory", ""),
        "issuerName": fields.get("issuer", ""),
        "disconnectOnRevoke": fields.get("disconnect", "no"),
        "addRealms": [each for each in given if each not in found.realms],
        "removeRealms": [each for each in found.realms if each not in given],
    }
    if fields.get("unknown", found.unknown_stations) != found.unknown_stations:
        body["unknownStations"] = fields["unknown"]
    if fields.get("order", found.rule_order) != found.rule_order:
        body["ruleOrder"] = fields["order"]
    if fields.get("age", str(found.directory_max_age_h)) != str(found.directory_max_age_h):
        body["directoryMaxAgeHours"] = fields["age"]
    if fields.get("stale", found.stale_directory) != found.stale_directory:
        body["staleDirectoryAction"] = fields["stale"]
    if fields.get("names", found.certificate_names) != found.certificate_names:
        body["certificateNames"] = fields["names"]
    if fields.get("remember", str(found.remember_h)) != str(found.remember_h):
        body["rememberHours"] = fields["remember"]
    locks = "yes" if found.lock_on_not_me else "no"
    if fields.get("not_me", locks) != locks:
        body["lockOnNotMe"] = fields["not_me"]
    await visit.call("/ad/UpdateDomain", body, domain=found.id)
    return Redirect(f"/domains/{found.id}", "The settings are changed, from the next request on.")


@pages.show("/domains/{domain}/remove", "Remove a domain", roles=ADMINS, template="domain_remove.html", is_slow=True)
async def removal(visit: Visit) -> Context:
    """List everything that would be deleted with a domain. If the domain cannot be removed now, show the reason."""
    found, deleted, refused = domain_at(visit), list[Row](), ""
    try:
        deleted = entries((await visit.call("/ad/RemoveDomain", {"dryRun": True}, domain=found.id))["deleted"])
    except Conflict as error:
        refused = str(error)
    return {"title": f"Remove the domain {found.name}", "domain": found, "deleted": deleted, "refused": refused}


@pages.submit("/domains/{domain}/remove", roles=ADMINS, is_slow=True)
async def remove(visit: Visit) -> Redirect:
    """Remove the domain."""
    found = domain_at(visit)
    await visit.call("/ad/RemoveDomain", domain=found.id)
    return Redirect("/domains", f"The domain {found.name} is removed.")


async def provider_of(visit: Visit, found: Domain, name: str = "") -> Row | None:
    """Return an MFA provider of a domain. Return None if the domain has no such provider. name: the name of the
    provider; empty for the default one.

    The result has the fields of every provider, such as `provider` and `failsSince`. All further settings of the
    provider are in `fields`.
    """
    try:
        answer = await visit.call("/ad/GetMFAProvider", {"provider": name}, domain=found.id)
    except NotFound:
        return None
    common = ("provider", "timeoutSeconds", "workedAt", "failsSince", "lastError")
    own: Row = {name: value for name, value in answer.items() if name not in (*common, "code", "status") and value}
    return {**{name: answer[name] for name in common}, "fields": own}


async def providers_of(visit: Visit, found: Domain) -> list[Row]:
    """Return the MFA providers of a domain, the default one first."""
    return entries((await visit.call("/ad/ListMFAProviders", domain=found.id))["providers"])


def configuration(first: Row) -> list[tuple[str, str]]:
    """Return the settings of a domain's first factor, as pairs of a label and a text. first: the answer of
    GetFirstFactor."""
    found = first.get(str(first["firstFactor"]))
    values = found.items() if isinstance(found, dict) else ()
    return [(label(name), _text(value)) for name, value in values if value not in (None, "", [])]


def _text(value: JSON) -> str:
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    if isinstance(value, dict):
        return ":".join(_text(each) for each in value.values() if each not in (None, ""))
    if str(value).startswith("-----BEGIN"):
        return "set"
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _words(text: str) -> list[str]:
    """Return the realms in a field. Realms are separated by commas or lines."""
    return [each for each in (part.strip() for part in text.replace(",", "\n").splitlines()) if each]
