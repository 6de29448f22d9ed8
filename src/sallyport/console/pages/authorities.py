"""Pages about authorities: those that sign the client certificates of domains."""

from collections.abc import Mapping
from typing import Final

from sallyport.areas.authorities.authority import DEFAULT_NAMES, Authority, HolderKind, Revocation
from sallyport.base.wire import JSON, Row
from sallyport.console.columns import Column, row_columns
from sallyport.console.pages.reading import joined, lines, number_at, rights
from sallyport.console.table import Filter, listed
from sallyport.console.visit import Pages, Visit
from sallyport.radius.eap.certificate_names import STRONG, NamedBy
from sallyport.shell.command import entries
from sallyport.web.bodies import LONG
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import ADMINS, READERS

pages = Pages()
LIST: Final = "/ad/ListAuthorities"
FILTERS: Final = (Filter("search", "Name"),)
ANCHORS: Final = (
    Column("subject", "Subject"),
    Column("validUntil", "Valid until", "time"),
    Column("key", "SHA-256 of the key", "code"),
)
LISTS: Final = (
    Column("address", "Address", "long"),
    Column("state", "State"),
    Column("thisUpdate", "Issued", "time"),
    Column("nextUpdate", "Expires", "time"),
    Column("entries", "Entries", "number"),
    Column("error", "Error of the last fetch", "long"),
)
NO_LISTS: Final = "No list yet. The addresses in certificates become known with the first login."
KINDS: Final = ((HolderKind.PEOPLE.value, "people"), (HolderKind.MACHINES.value, "machines"))
NAMES: Final[Mapping[NamedBy, str]] = {
    NamedBy.SID: "SID",
    NamedBy.OBJECT_ID: "object id of Entra ID",
    NamedBy.UPN: "user principal name",
    NamedBy.MAIL: "mail address",
    NamedBy.DNS: "host name",
    NamedBy.COMMON_NAME: "common name",
    NamedBy.SERIAL: "serial number of the subject",
}
REVOCATIONS: Final = (
    (Revocation.SOFT.value, "soft: if the state is unknown, accept"),
    (Revocation.HARD.value, "hard: if the state is unknown, refuse"),
)
EMPTY: Final = (
    "No authority yet, so the domains trust the authorities of the installation. Add the authority that issues "
    "certificates to your devices, such as AD CS or Intune."
)


@pages.show("/authorities", "Authorities", roles=READERS, template="authorities.html", menu="Sign-in policy")
async def authorities(visit: Visit) -> Context:
    """List the authorities of the tenant."""
    names = {domain.id: domain.name for domain in visit.domains()}
    own = row_columns(
        Authority,
        *("name", "kinds", "names", "revocation", "warnings"),
        links={"name": lambda row: f"/authorities/{row['authorityId']}"},
    )
    columns = (own[0], Column("domainNames", "Domains"), *own[1:])
    body: dict[str, JSON] = {"search": visit.query.get("search", "")}
    table = await listed(visit, columns, LIST, "authorities", body, filters=FILTERS, empty=EMPTY, most=LONG)
    table.rows = [{**row, "domainNames": joined(_domain_names(row, names))} for row in table.rows]
    return {"table": table, **rights(visit)}


@pages.show("/authorities/add", "Add an authority", roles=ADMINS, template="authority_add.html")
async def new(visit: Visit) -> Context:
    """Show the form of a new authority."""
    return _choices(visit)


@pages.submit("/authorities/add", roles=ADMINS)
async def add(visit: Visit) -> Redirect:
    """Add an authority."""
    added = await visit.call(
        "/ad/AddAuthority", {**_given(visit), "certificates": visit.fields.get("certificates", "")}
    )
    return _changed(added, added["authorityId"])


@pages.show("/authorities/{authority}", "Authority", roles=READERS, template="authority.html")
async def show(visit: Visit) -> Context:
    """Show an authority with its trust anchors, its scope and its revocation lists."""
    found = await _authority(visit)
    shown = await visit.call("/ad/ListRevocationLists", {"authorityId": found["authorityId"]})
    names = {domain.id: domain.name for domain in visit.domains()}
    return {
        "title": f"Authority {found['name']}",
        "authority": found,
        "domain_names": _domain_names(found, names),
        "named_by": [_named_by(NamedBy(each)) for each in _texts(found["names"])],
        "anchors": entries(found["anchors"]),
        "columns": ANCHORS,
        "lists": entries(shown["lists"]),
        "list_columns": LISTS,
        "no_lists": NO_LISTS,
        **rights(visit),
    }


@pages.show("/authorities/{authority}/change", "Change an authority", roles=ADMINS, template="authority_change.html")
async def settings(visit: Visit) -> Context:
    """Show the form of an authority's scope and settings."""
    found = await _authority(visit)
    return {"title": f"Change {found['name']}", "authority": found, **_choices(visit)}


@pages.submit("/authorities/{authority}/change", roles=ADMINS)
async def change(visit: Visit) -> Redirect:
    """Change an authority. Without new certificates, it keeps its present ones."""
    number = number_at(visit, "authority")
    body: dict[str, JSON] = {"authorityId": number, **_given(visit)}
    if visit.fields.get("certificates", "").strip():
        body["certificates"] = visit.fields["certificates"]
    return _changed(await visit.call("/ad/UpdateAuthority", body), number)


@pages.show("/authorities/{authority}/remove", "Remove an authority", roles=ADMINS, template="authority_remove.html")
async def removal(visit: Visit) -> Context:
    """Show the authority that would be removed, and what follows."""
    found = await _authority(visit)
    names = {domain.id: domain.name for domain in visit.domains()}
    return {
        "title": f"Remove {found['name']}",
        "authority": found,
        "domain_names": _domain_names(found, names),
        "columns": ANCHORS,
        "anchors": entries(found["anchors"]),
    }


@pages.submit("/authorities/{authority}/remove", roles=ADMINS)
async def remove(visit: Visit) -> Redirect:
    """Remove the authority."""
    done = await visit.call("/ad/DeleteAuthority", {"authorityId": number_at(visit, "authority")})
    return Redirect("/authorities", f"{str(done['message']).capitalize()}.")


async def _authority(visit: Visit) -> Row:
    """Return the authority of the path. Raises NotFound."""
    return await visit.call("/ad/GetAuthority", {"authorityId": number_at(visit, "authority")})


def _changed(answer: Row, number: JSON) -> Redirect:
    warnings = (f"Warning: {each}." for each in _texts(answer["warnings"]))
    text = f"{str(answer['message']).capitalize()}. It applies from the next login on."
    return Redirect(f"/authorities/{number}", " ".join([text, *warnings]))


def _choices(visit: Visit) -> dict[str, object]:
    return {
        "domains": visit.domain_choices(),
        "kinds": KINDS,
        "fields": "; ".join(f"{each.value}: {_named_by(each)}" for each in NAMES),
        "default_names": [each.value for each in DEFAULT_NAMES],
        "revocations": REVOCATIONS,
    }


def _given(visit: Visit) -> dict[str, JSON]:
    """Return the fields of the form, in those of the operations."""
    fields = visit.fields
    return {
        "name": fields.get("name", ""),
        "domainIds": list[JSON](fields.getlist("domainIds")),
        "kinds": list[JSON](fields.getlist("kinds")),
        **{name: lines(fields.get(name, "")) for name in ("realms", "groups", "sidPrefixes", "names", "crlAddresses")},
        "strongOnly": fields.get("strongOnly", "no"),
        "revocation": fields.get("revocation", Revocation.SOFT.value),
        "ocspAddress": fields.get("ocspAddress", ""),
        "ocspNonce": fields.get("ocspNonce", "no"),
        "useCertificateAddresses": fields.get("useCertificateAddresses", "no"),
    }


def _named_by(field: NamedBy) -> str:
    return f"{NAMES[field]} ({'strong' if field in STRONG else 'weak'})"


def _texts(value: JSON) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []


def _domain_names(row: Row, names: Mapping[int, str]) -> list[JSON]:
    ids = row["domainIds"] if isinstance(row["domainIds"], list) else []
    return [names.get(int(str(each)), str(each)) for each in ids]
