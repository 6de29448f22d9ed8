"""The field mapping of a directory, with a preview."""

from typing import Final

from sallyport.areas.domains.domain import Domain
from sallyport.base.wire import Row
from sallyport.console.columns import Column
from sallyport.console.pages.choosing import ChoiceSource, chosen, offer
from sallyport.console.pages.directories.finding import (
    address_of,
    directory_at,
)
from sallyport.console.pages.reading import number, pairs
from sallyport.console.visit import Pages, Visit
from sallyport.shell.command import entries
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import OPERATORS

pages = Pages()
GROUPS: Final = ChoiceSource(
    "group",
    "/ad/GetAllGroupsByDomain",
    "groups",
    lambda group: str(group["groupName"]),
    id="groupId",
    value="groupId",
    names=("groupName",),
    search="search",
)
COMPARED: Final = (
    Column("dn", "Person", "code"),
    Column("field", "Field"),
    Column("before", "Now"),
    Column("after", "With this mapping"),
)


@pages.show("/directories/{directory}/mapping", "Field mapping", roles=OPERATORS, template="directory_mapping.html")
async def mapping(visit: Visit) -> Context:
    """Show the form of the mapping."""
    domain = visit.domain()
    return await _mapping(visit, domain)


@pages.submit("/directories/{directory}/mapping", roles=OPERATORS, is_slow=True)
async def set_mapping(visit: Visit) -> Redirect | Context:
    """Save the field mapping. If the person asks for a preview, only show how it would change ten people."""
    domain, fields = visit.domain(), visit.fields
    shown = await _mapping(visit, domain)
    found = await directory_at(visit, domain)
    taken = pairs(fields.get("fieldMappings", ""), "FIELD=ATTRIBUTE", "fieldMappings")
    body: Row = {"directoryName": found["directoryName"], "fieldMappings": taken}
    if group := await chosen(visit, domain, GROUPS.within(directoryId=found["directoryId"]), "group"):
        body = {"groupID": number(group, "group"), "fieldMappings": taken}
    if fields.get("do") == "preview":
        answer = await visit.call("/api/v1/mapping/preview", body, domain=domain.id)
        return {**shown, "compared": _compared(entries(answer["users"]))}
    body["apply"] = bool(fields.get("apply"))
    await visit.call("/api/v1/reConfigure", body, domain=domain.id)
    when = "It is applied to the stored people now." if body["apply"] else "The next import uses it."
    return Redirect(address_of(found, domain), f"The mapping is saved. {when}")


async def _mapping(visit: Visit, domain: Domain) -> dict[str, object]:
    found = await directory_at(visit, domain)
    stored = found["fieldMappings"]
    pairs = sorted(stored.items()) if isinstance(stored, dict) else []
    return {
        "title": f"Field mapping of {found['directoryName']}",
        "domain": domain,
        "directory": found,
        "text": "\n".join(f"{field}={attribute}" for field, attribute in pairs),
        "groups": await offer(visit, domain, GROUPS.within(directoryId=found["directoryId"])),
        "compared": None,
        "compared_columns": COMPARED,
    }


def _compared(users: list[Row]) -> list[Row]:
    """Return a row for each field that a mapping would change, with the values before and after."""
    found = list[Row]()
    for user in users:
        before, after = user["before"], user["after"]
        if isinstance(before, dict) and isinstance(after, dict):
            found += [
                {"dn": user["dn"], "field": field, "before": before.get(field), "after": after.get(field)}
                for field in sorted({*before, *after})
                if before.get(field) != after.get(field)
            ]
    return found
