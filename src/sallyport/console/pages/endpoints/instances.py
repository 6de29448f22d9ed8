"""Instances: the machines of a domain, their users and their authentication methods."""

from typing import Final

from sallyport.areas.domains.domain import Domain
from sallyport.areas.users.instances.instance import Instance
from sallyport.base.errors import NotFound
from sallyport.base.wire import JSON, Row
from sallyport.console.columns import row_columns
from sallyport.console.pages.endpoints.access import (
    GROUPS,
    INSTANCES,
    MAX_CHOICES,
    SEARCH,
    USERS,
    Owner,
    chosen_methods,
    contains,
    methods_form,
    rows_of,
    set_users,
    users_form,
)
from sallyport.console.pages.endpoints.users import USER_COLUMNS, user_row
from sallyport.console.pages.reading import changes, find, number, of, rights
from sallyport.console.table import listed
from sallyport.console.visit import Pages, Visit
from sallyport.shell.command import entries
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import OPERATORS, READERS

pages = Pages()
SYSTEMS: Final = ((1, "Linux"), (2, "Windows"), (3, "macOS"), (4, "Network device"), (0, "Unknown"))
INSTANCE_COLUMNS: Final = row_columns(
    Instance,
    *("instanceName", "osName", "hostName", "privateIp", "publicIp", "status", "totalUsers", "totalGroups"),
    links={"instanceName": lambda row: str(row["address"])},
)
NO_INSTANCE: Final = (
    "No instance yet. Create an API key for endpoint agents: each machine that enrols with it is listed here. An "
    "instance can also be added by hand."
)


@pages.show("/instances", "Instances", roles=READERS, template="instances.html", menu="Endpoints")
async def instances(visit: Visit) -> Context:
    """List the instances of a domain."""
    domain = visit.domain()
    body: Row = {"filter": visit.query.get("filter", "")}
    table = await listed(
        visit, INSTANCE_COLUMNS, INSTANCES, "instances", body, domain=domain.id, filters=SEARCH, empty=NO_INSTANCE,
        most=1000,
    )  # fmt: skip
    table.rows = [{**each, "address": _address(each, domain)} for each in table.rows]
    return {"domain": domain, "table": table, **rights(visit)}


@pages.show("/instances/add", "Add an instance", roles=OPERATORS, template="instance_add.html")
async def new_instance(visit: Visit) -> Context:
    """Show the form of a new instance."""
    return {"domain": visit.domain(), "systems": SYSTEMS}


@pages.submit("/instances/add", roles=OPERATORS)
async def add_instance(visit: Visit) -> Redirect:
    """Add an instance."""
    domain, fields = visit.domain(), visit.fields
    body: Row = {name: fields.get(name, "") for name in ("instanceName", "hostName", "publicIp", "privateIp")}
    body["osId"] = fields.get("osId") or 0
    made = await visit.call("/api/v1/instances/addInstance", body, domain=domain.id)
    return Redirect(_address(made, domain), "The instance is added.")


@pages.show("/instances/{instance}", "Instance", roles=READERS, template="instance.html")
async def instance(visit: Visit) -> Context:
    """Show an instance with its users and policies."""
    domain = visit.domain()
    found = await _instance(visit, domain)
    body: Row = {"instanceIds": [found["instanceId"]], "pageSize": MAX_CHOICES}
    users = await visit.call(USERS, body, domain=domain.id)
    asked: Row = {"machineIds": [found["instanceId"]], "pageSize": 100}
    policies = await visit.call("/api/v1/instances/listAllPasswordPolicy", asked)
    return {
        "title": f"Instance {found['instanceName']}",
        "domain": domain,
        "instance": found,
        "has_agent": await _has_agent(visit, domain, found),
        "groups": await rows_of(visit, domain, GROUPS, "groups", instanceId=found["instanceId"]),
        "users": [user_row(each, domain) for each in entries(users["epmUsers"])],
        "user_columns": [
            column for column in USER_COLUMNS if column.key in ("userName", "source", "credType", "groups")
        ],
        "policies": entries(policies["passwordPolicies"]),
        **rights(visit),
    }


@pages.show("/instances/{instance}/users", "Users of an instance", roles=OPERATORS, template="endpoint_choice.html")
async def ask_users(visit: Visit) -> Context:
    """Show the users that can be assigned to an instance."""
    domain = visit.domain()
    text = (
        "Chosen users get access to the instance with the next message of its agent. A user whose group gives the "
        "access is chosen too, and keeps the access through the group."
    )
    return await users_form(visit, domain, _owner(await _instance(visit, domain), domain), text)


@pages.submit("/instances/{instance}/users", roles=OPERATORS)
async def assign_users(visit: Visit) -> Redirect:
    """Assign the chosen users to an instance. The assignments of all other users to this instance are removed."""
    domain = visit.domain()
    found = await _instance(visit, domain)
    path, body = "/api/v1/instances/assignUsersToMachines", {"instanceIds": [found["instanceId"]]}
    return await set_users(visit, domain, _owner(found, domain), path, body)


@pages.show("/instances/{instance}/groups", "Groups of an instance", roles=OPERATORS, template="endpoint_choice.html")
async def ask_groups(visit: Visit) -> Context:
    """Show the groups to which an instance can belong."""
    domain = visit.domain()
    found = await _instance(visit, domain)
    listed_, present = await _groups(visit, domain, found)
    return {
        "title": f"Groups of {found['instanceName']}",
        "text": "The users of these groups get access to the instance with the next message of its agent.",
        "label": "Groups",
        "choices": [(str(each["groupId"]), str(each["groupName"])) for each in listed_],
        "chosen": [str(each) for each in present],
        "back": _address(found, domain),
        "most": MAX_CHOICES,
        "is_searchable": True,
    }


@pages.submit("/instances/{instance}/groups", roles=OPERATORS)
async def assign_groups(visit: Visit) -> Redirect:
    """Assign the instance to the chosen groups. Remove it from the other groups that the form has listed."""
    domain = visit.domain()
    found = await _instance(visit, domain)
    listed_, present = await _groups(visit, domain, found)
    for action, changed in changes(
        [each["groupId"] for each in listed_], present, visit.fields.getlist("chosen"), "group"
    ):
        body: Row = {"instanceId": [found["instanceId"]], "groupId": changed, "action": action}
        await visit.call("/api/v1/instances/assignGroupToMachines", body, domain=domain.id)
    return Redirect(_address(found, domain), "The groups are assigned.")


async def _groups(visit: Visit, domain: Domain, found: Row) -> tuple[list[Row], list[JSON]]:
    """Return the groups that the form lists, and the ids of the groups to which the instance belongs."""
    own = await rows_of(visit, domain, GROUPS, "groups", instanceId=found["instanceId"])
    listed_ = (
        own
        if visit.query.get("present")
        else await rows_of(visit, domain, GROUPS, "groups", filter=visit.query.get("filter", ""))
    )
    return listed_, [each["groupId"] for each in own]


@pages.show("/instances/{instance}/methods", "Methods of an instance", roles=OPERATORS, template="endpoint_choice.html")
async def ask_methods(visit: Visit) -> Context:
    """Show the authentication methods."""
    domain = visit.domain()
    return methods_form(_owner(await _instance(visit, domain), domain), "may log in on the machine")


@pages.submit("/instances/{instance}/methods", roles=OPERATORS)
async def set_methods(visit: Visit) -> Redirect:
    """Set the authentication methods."""
    domain = visit.domain()
    body: Row = {"instanceId": number(visit.at["instance"], "instance"), "authType": chosen_methods(visit)}
    await visit.call("/api/v1/instances/updateAuthType", body, domain=domain.id)
    return Redirect(_address(body, domain), "The methods are set.")


@pages.show("/instances/{instance}/delete", "Delete an instance", roles=OPERATORS, template="confirm.html")
async def removal(visit: Visit) -> Context:
    """Show the instance that would be deleted, with its assignments and its agent."""
    domain = visit.domain()
    found = await _instance(visit, domain)
    text = (
        "The instance is deleted with its assignments and the keys of its agent. The accounts on the machine stay. To "
        "enrol the machine again, its agent needs a new API key."
    )
    return {
        "title": f"Delete {found['instanceName']}",
        "text": text,
        "facts": (
            ("Instance", found["instanceName"]),
            ("Domain", domain.name),
            ("Host name", found["hostName"]),
            ("Agent", found["status"] if await _has_agent(visit, domain, found) else "none"),
            ("Users with access", str(found["totalUsers"])),
            ("Groups", str(found["totalGroups"])),
        ),
        "button": f"Delete {found['instanceName']}",
        "back": _address(found, domain),
    }


@pages.submit("/instances/{instance}/delete", roles=OPERATORS)
async def delete(visit: Visit) -> Redirect:
    """Delete the instance."""
    domain = visit.domain()
    found = await _instance(visit, domain)
    await visit.call("/api/v1/instances/deleteInstance", {"instanceId": found["instanceId"]}, domain=domain.id)
    return Redirect(of("/instances", domain), f"{found['instanceName']} is deleted.")


async def _has_agent(visit: Visit, domain: Domain, found: Row) -> bool:
    """Return whether an agent has enrolled for the instance."""
    try:
        await visit.call("/api/v1/agent/agentStatus", {"instanceId": found["instanceId"]}, domain=domain.id)
    except NotFound:
        return False
    return True


async def _instance(visit: Visit, domain: Domain) -> Row:
    wanted = number(visit.at["instance"], "instance")
    return await find(visit, INSTANCES, "instances", "instanceId", wanted, "instance", domain=domain.id)


def _address(row: Row, domain: Domain) -> str:
    return of(f"/instances/{row['instanceId']}", domain)


def _owner(row: Row, domain: Domain) -> Owner:
    def has(user: Row) -> bool:
        return contains(user["instanceIds"], row["instanceId"])

    of_users: Row = {"instanceIds": [row["instanceId"]]}
    return Owner(row["instanceName"], _address(row, domain), row["authType"], has, of_users)
