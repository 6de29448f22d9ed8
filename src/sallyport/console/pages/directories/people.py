"""The people and groups that were imported from directories."""

from typing import Final

from sallyport.base.wire import Row
from sallyport.console.columns import Column
from sallyport.console.pages.directories.finding import SEARCH
from sallyport.console.pages.enforcement import person_url
from sallyport.console.pages.reading import number, of
from sallyport.console.table import Filter, listed
from sallyport.console.visit import Pages, Visit
from sallyport.web.console_pages import Context
from sallyport.web.scope import READERS

pages = Pages()
OF_CLOUD: Final = Filter("kind", "Directories", (("cloud", "cloud directories"),))
PEOPLE: Final = (
    Column("userName", "User name", link=lambda row: str(row["address"])),
    Column("displayName", "Name"),
    Column("email", "Mail"),
    Column("status", "Account"),
    Column("groups", "Groups"),
    Column("directoryName", "Directory"),
    Column("upn", "userPrincipalName", is_chosen=False),
    Column("dn", "DN", "code", is_chosen=False),
    Column("source", "Kind", is_chosen=False),
)
GROUPS: Final = (
    Column("groupName", "Group", link=lambda row: str(row["address"])),
    Column("memberCount", "Direct members", "number"),
    Column("directoryName", "Directory"),
    Column("dn", "DN", "code"),
    Column("groupId", "Id", "number", is_chosen=False),
)


@pages.show("/directories/people", "People of the directories", roles=READERS, template="directory_people.html")
async def people(visit: Visit) -> Context:
    """List the people of all directories of a domain, or only those of its cloud directories. If the address contains a
    group, list only the people of this group."""
    domain, group = visit.domain(), visit.query.get("group", "")
    body: Row = {"search": visit.query.get("search", "")}
    path = "/ad/GetCloudUsers" if visit.query.get("kind") == "cloud" else "/ad/GetAllAdUsers"
    if group:
        path, body["groupId"] = "/ad/GetAllUsersByGroup", number(group, "group")
    empty = "No person yet: import a directory."
    filters = SEARCH if group else (*SEARCH, OF_CLOUD)
    table = await listed(visit, PEOPLE, path, "users", body, domain=domain.id, filters=filters, empty=empty, most=1000)
    table.kept = ("domain", "group")
    table.rows = [
        {**each, "groups": each["groups"] or None, "address": person_url(domain.id, str(each["userName"]))}
        for each in table.rows
    ]
    return {"domain": domain, "table": table, "group": group}


@pages.show("/directories/groups", "Groups of the directories", roles=READERS, template="directory_groups.html")
async def groups(visit: Visit) -> Context:
    """List the groups of a domain's directories."""
    domain = visit.domain()
    body: Row = {"search": visit.query.get("search", "")}
    path = "/ad/GetAllGroupsByDomain"
    empty = "No group yet: import a directory."
    table = await listed(visit, GROUPS, path, "groups", body, domain=domain.id, filters=SEARCH, empty=empty, most=1000)
    members = of("/directories/people", domain)
    table.rows = [{**each, "address": f"{members}&group={each['groupId']}"} for each in table.rows]
    return {"domain": domain, "table": table}
