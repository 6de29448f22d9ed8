"""Pages about the server certificates of a domain for EAP: set, check and remove."""

from typing import Final

from sallyport.areas.domains.domain import Domain
from sallyport.base.wire import JSON, Row
from sallyport.console.columns import Column
from sallyport.console.pages.reading import joined, of, one, rights
from sallyport.console.table import SIZE, Filter, Table, complete
from sallyport.console.visit import Pages, Visit, address
from sallyport.shell.command import entries
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import ADMINS, READERS

pages = Pages()
LIST: Final = "/ad/ListServerCertificates"
WHOLE: Final = "whole domain"
COLUMNS: Final = (
    Column("for", "Realm", link=lambda row: str(row["address"])),
    Column("names", "Server names"),
    Column("issuer", "Issuer"),
    Column("keyType", "Key"),
    Column("expires", "Expires", "time"),
    Column("faults", "Faults", "changes"),
)
REMARKS: Final = (Column("verdict", "Verdict"), Column("supplicant", "Supplicant"), Column("text", "Finding"))
NAME: Final = (Filter("serverName", "Server name in the profile"),)
EMPTY: Final = (
    "The domain has no server certificate of its own. Its devices see that of the installation. Set one if the devices "
    "trust the authority of the company, or compare a name of the company."
)
_PLACE: Final = "/server-certificates"


@pages.show(_PLACE, "Server certificates", roles=READERS, template="server_certificates.html", menu="Sign-in policy")
async def certificates(visit: Visit) -> Context:
    """List the server certificates of a domain."""
    domain = visit.domain()
    found = entries((await visit.call(LIST, domain=domain.id))["certificates"])
    table = complete(visit, COLUMNS, [_row(domain, each) for each in found], empty=EMPTY)
    return {"domain": domain, "table": table, **rights(visit)}


@pages.show(f"{_PLACE}/set", "Set a server certificate", roles=ADMINS, template="server_certificate_set.html")
async def edit(visit: Visit) -> Context:
    """Show the form of a certificate and its key."""
    domain = visit.domain()
    realms = [("", WHOLE), *((each, each) for each in (domain.name, *domain.realms))]
    return {"domain": domain, "realms": realms, "realm": visit.query.get("realm", "")}


@pages.submit(f"{_PLACE}/set", roles=ADMINS)
async def set_(visit: Visit) -> Redirect:
    """Set a certificate from the next conversation on."""
    domain, fields = visit.domain(), visit.fields
    body: Row = {name: fields.get(name, "") for name in ("realm", "certificate", "privateKey")}
    done = await visit.call("/ad/SetServerCertificate", body, domain=domain.id)
    told = f"{str(done['message']).capitalize()}. Pending logins end with the former one."
    return Redirect(_at("check", domain, str(body["realm"])), told)


@pages.show(f"{_PLACE}/check", "Check a server certificate", roles=READERS, template="server_certificate.html")
async def check(visit: Visit) -> Context:
    """Show the faults of a certificate by kind of supplicant."""
    domain, realm = visit.domain(), visit.query.get("realm", "")
    shown = await _shown(visit, domain)
    body: Row = {"realm": realm, "serverName": visit.query.get("serverName", "")}
    found = entries((await visit.call("/ad/CheckServerCertificate", body, domain=domain.id))["remarks"])
    table = Table(visit, REMARKS, found, len(found), 1, max(SIZE, len(found)), NAME, "")
    return {"domain": domain, "shown": shown, "table": table, **rights(visit)}


@pages.show(f"{_PLACE}/remove", "Remove a server certificate", roles=ADMINS, template="server_certificate_remove.html")
async def confirm(visit: Visit) -> Context:
    """Show the certificate that would be removed."""
    domain = visit.domain()
    return {"domain": domain, "shown": await _shown(visit, domain)}


@pages.submit(f"{_PLACE}/remove", roles=ADMINS)
async def remove(visit: Visit) -> Redirect:
    """Remove a certificate."""
    domain = visit.domain()
    body: Row = {"realm": visit.query.get("realm", "")}
    done = await visit.call("/ad/RemoveServerCertificate", body, domain=domain.id)
    return Redirect(of(_PLACE, domain), f"{str(done['message']).capitalize()}.")


async def _shown(visit: Visit, domain: Domain) -> Row:
    """Return the certificate for the realm in the address. Raises NotFound."""
    found = entries((await visit.call(LIST, domain=domain.id))["certificates"])
    return _row(domain, one(found, "realm", visit.query.get("realm", ""), "server certificate"))


def _row(domain: Domain, row: Row) -> Row:
    realm, faults = str(row["realm"]), row["warnings"]
    unread: list[JSON] = [] if row["usable"] else ["the key cannot be read: set the certificate again"]
    return {
        **row,
        "for": realm or WHOLE,
        "names": joined(row["hostNames"]),
        "faults": [*unread, *(faults if isinstance(faults, list) else [])],
        "address": _at("check", domain, realm),
    }


def _at(page: str, domain: Domain, realm: str) -> str:
    return address(f"{_PLACE}/{page}", [("domain", str(domain.id)), ("realm", realm)])
