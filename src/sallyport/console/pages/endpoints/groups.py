"""Endpoint groups: their instances, users, authentication methods and credential policy."""

from typing import Final

from sallyport.areas.domains.domain import Domain
from sallyport.areas.users.groups.group import Group
from sallyport.base.wire import JSON, Row
from sallyport.console.columns import Column, row_columns
from sallyport.console.pages.endpoints.access import (
    GROUPS,
    INSTANCES,
    MAX_USERS,
    SEARCH,
    USERS,
    Owner,
    chosen_methods,
    contains,
    is_yes,
    methods_form,
    rows_of,
    set_users,
    users_form,
)
from sallyport.console.pages.endpoints.instances import INSTANCE_COLUMNS
from sallyport.console.pages.reading import every, find, ids, joined, number, of, rights
from sallyport.console.table import listed
from sallyport.console.visit import Pages, Visit
from sallyport.shell.command import entries
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import OPERATORS, READERS

pages = Pages()
MEMBER_COLUMNS: Final = tuple(
    column for column in INSTANCE_COLUMNS if column.key in ("instanceName", "hostName", "status")
)
GROUP_COLUMNS: Final = row_columns(
    Group,
    *("groupName", "usersCount", "status", "authFlow"),
    Column("policy", "Credential policy"),
    links={"groupName": lambda row: str(row["address"])},
)
NO_GROUP: Final = "No group yet. A group gives its users access to its instances."


@pages.show("/endpoint-groups", "Endpoint groups", roles=READERS, template="endpoint_groups.html", menu="Endpoints")
async def groups(visit: Visit) -> Context:
    """List the endpoint groups of a domain."""
    domain = visit.domain()
    body: Row = {"filter": visit.query.get("filter", "")}
    table = await listed(
        visit, GROUP_COLUMNS, GROUPS, "groups", body, domain=domain.id, filters=SEARCH, empty=NO_GROUP, most=1000
    )
    table.rows = [_group(each, domain) for each in table.rows]
    return {"domain": domain, "table": table, **rights(visit)}


@pages.show("/endpoint-groups/add", "Add an endpoint group", roles=OPERATORS, template="endpoint_group_form.html")
async def new_group(visit: Visit) -> Context:
    """Show the form of a new group."""
    domain = visit.domain()
    return {"domain": domain, "group": None, "instances": await _instance_choices(visit, domain), "chosen": []}


@pages.submit("/endpoint-groups/add", roles=OPERATORS)
async def add_group(visit: Visit) -> Redirect:
    """Add a group."""
    domain = visit.domain()
    made = await visit.call("/api/v1/instanceGroup/addInstanceGroup", _group_body(visit), domain=domain.id)
    return Redirect(of(f"/endpoint-groups/{made['instanceId']}", domain), "The group is added. Now add its users.")


@pages.show("/endpoint-groups/{group}", "Endpoint group", roles=READERS, template="endpoint_group.html")
async def group(visit: Visit) -> Context:
    """Show a group with its instances and its users."""
    domain = visit.domain()
    found = await _found_group(visit, domain)
    members = await _members(visit, domain, found)
    names, count = await _users_of(visit, domain, found)
    return {
        "title": f"Endpoint group {found['groupName']}",
        "domain": domain,
        "group": _group(found, domain),
        "policy": found["credentialPolicy"],
        "instances": [{**each, "address": of(f"/instances/{each['instanceId']}", domain)} for each in members],
        "instance_columns": MEMBER_COLUMNS,
        "users": joined(names, MAX_USERS, count),
        **rights(visit),
    }  # fmt: skip


@pages.show(
    "/endpoint-groups/{group}/edit", "Change an endpoint group", roles=OPERATORS, template="endpoint_group_form.html"
)
async def edit_group(visit: Visit) -> Context:
    """Show the form of a group."""
    domain = visit.domain()
    found = await _found_group(visit, domain)
    members = [str(each["instanceId"]) for each in await _members(visit, domain, found)]
    return {
        "title": f"Change {found['groupName']}",
        "domain": domain,
        "group": found,
        "instances": await _instance_choices(visit, domain),
        "chosen": members,
    }


@pages.submit("/endpoint-groups/{group}/edit", roles=OPERATORS)
async def change_group(visit: Visit) -> Redirect:
    """Change a group."""
    domain, group_id = visit.domain(), number(visit.at["group"], "group")
    found = await _found_group(visit, domain)
    listed_ = {int(each) for each, _ in await _instance_choices(visit, domain)}
    others = [each["instanceId"] for each in await _members(visit, domain, found)]
    kept = [each for each in others if each not in listed_]  # members that the form could not list
    fields = _group_body(visit)
    chosen = fields["instanceIds"] if isinstance(fields["instanceIds"], list) else []
    body: Row = {
        **fields,
        "groupId": group_id,
        "status": visit.fields.get("status") or "Active",
        "instanceIds": [*chosen, *kept],
    }
    await visit.call("/api/v1/instanceGroup/editInstanceGroup", body, domain=domain.id)
    return Redirect(of(f"/endpoint-groups/{group_id}", domain), "The group is changed.")


@pages.show("/endpoint-groups/{group}/users", "Users of a group", roles=OPERATORS, template="endpoint_choice.html")
async def ask_members(visit: Visit) -> Context:
    """Show the users that can be in a group."""
    domain = visit.domain()
    owner = _owner(await _found_group(visit, domain), domain)
    return await users_form(visit, domain, owner, "The group gives its users access to its instances.")


@pages.submit("/endpoint-groups/{group}/users", roles=OPERATORS)
async def set_members(visit: Visit) -> Redirect:
    """Set the users of a group."""
    domain = visit.domain()
    found = await _found_group(visit, domain)
    path, body = "/api/v1/instanceGroup/assignUsersToEndpointGroup", {"groupId": found["groupId"]}
    return await set_users(visit, domain, _owner(found, domain), path, body)


@pages.show("/endpoint-groups/{group}/methods", "Methods of a group", roles=OPERATORS, template="endpoint_choice.html")
async def ask_flow(visit: Visit) -> Context:
    """Show the authentication methods of a group."""
    domain = visit.domain()
    return methods_form(_owner(await _found_group(visit, domain), domain), "of the group may log in")


@pages.submit("/endpoint-groups/{group}/methods", roles=OPERATORS)
async def set_flow(visit: Visit) -> Redirect:
    """Set the authentication methods of a group."""
    domain = visit.domain()
    body: Row = {"groupId": number(visit.at["group"], "group"), "authFlow": chosen_methods(visit)}
    await visit.call("/api/v1/instanceGroup/addAuthFlowToInstanceGroup", body, domain=domain.id)
    return Redirect(_address(body, domain), "The methods are set.")


@pages.show("/endpoint-groups/{group}/policy", "Credential policy", roles=OPERATORS, template="endpoint_policy.html")
async def ask_policy(visit: Visit) -> Context:
    """Show the form of a group's credential policy."""
    domain = visit.domain()
    found = await _found_group(visit, domain)
    policies = await every(visit, "/api/v1/instances/listAllPasswordPolicy", "passwordPolicies", {})
    choices = [("", "none"), *((str(each["policyId"]), str(each["policyName"])) for each in policies)]
    title = f"Credential policy of {found['groupName']}"
    return {"title": title, "domain": domain, "group": found, "policy": found["credentialPolicy"], "policies": choices}


@pages.submit("/endpoint-groups/{group}/policy", roles=OPERATORS)
async def set_policy(visit: Visit) -> Redirect:
    """Set or remove a group's credential policy."""
    domain, group_id, fields = visit.domain(), number(visit.at["group"], "group"), visit.fields
    at = of(f"/endpoint-groups/{group_id}", domain)
    if fields.get("do") == "remove":
        path = "/api/v1/instances/deleteCredentialPolicyToEndpointGroup"
        await visit.call(path, {"groupId": group_id}, domain=domain.id)
        return Redirect(at, "The credential policy is removed.")
    body: Row = {
        "groupId": group_id,
        "ttlUser": fields.get("ttlUser", ""),
        "priviligedUser": "yes" if fields.get("privileged") else "no",
        "policyId": fields.get("policyId", ""),
        "homeDir": fields.get("homeDir", ""),
    }
    await visit.call("/api/v1/instances/updateCredentialPolicyToEndpointGroup", body, domain=domain.id)
    return Redirect(at, "The credential policy is set.")


@pages.show("/endpoint-groups/{group}/remove", "Remove an endpoint group", roles=OPERATORS, template="confirm.html")
async def confirm_group(visit: Visit) -> Context:
    """Show what would be removed with a group."""
    domain = visit.domain()
    found = await _found_group(visit, domain)
    members = await _members(visit, domain, found)
    users, count = await _users_of(visit, domain, found)
    policy = _group(found, domain)["policy"]
    return {
        "text": "The group, its assignments and its credential policy are removed. Users lose the access that only "
        "this group gives; the users and the instances themselves stay.",
        "facts": [
            ("Group", found["groupName"]),
            ("Its instances", joined([each["instanceName"] for each in members], 20)),
            ("Its users", joined(users, 20, count)),
            ("Credential policy", policy),
        ],
        "button": "Remove the group",
        "back": _address(found, domain),
    }  # fmt: skip


@pages.submit("/endpoint-groups/{group}/remove", roles=OPERATORS)
async def remove_group(visit: Visit) -> Redirect:
    """Remove a group."""
    domain = visit.domain()
    body: Row = {"id": number(visit.at["group"], "group")}
    answer = await visit.call("/api/v1/instanceGroup/deleteEndpointGroup", body, domain=domain.id)
    return Redirect(of("/endpoint-groups", domain), f"{answer['message']}.")


async def _found_group(visit: Visit, domain: Domain) -> Row:
    wanted = number(visit.at["group"], "group")
    return await find(visit, GROUPS, "groups", "groupId", wanted, "group", domain=domain.id)


async def _members(visit: Visit, domain: Domain, found: Row) -> list[Row]:
    path = "/api/v1/instanceGroup/fetchInstanceGroupDetail"
    return entries((await visit.call(path, {"groupId": found["groupId"]}, domain=domain.id))["instances"])


async def _users_of(visit: Visit, domain: Domain, found: Row) -> tuple[list[JSON], int]:
    """Return the names of the first users of a group, at most MAX_USERS, and the number of all its users."""
    answer = await visit.call(USERS, {**_of_users(found), "pageSize": MAX_USERS}, domain=domain.id)
    return [each["userName"] for each in entries(answer["epmUsers"])], int(str(answer["totalCount"]))


def _of_users(row: Row) -> Row:
    return {"filter": {"filterBy": "groupId", "value": str(row["groupId"])}}


async def _instance_choices(visit: Visit, domain: Domain) -> list[tuple[str, str]]:
    found = await rows_of(visit, domain, INSTANCES, "instances")
    return [(str(each["instanceId"]), str(each["instanceName"])) for each in found]


def _group_body(visit: Visit) -> Row:
    names = ("groupName", "ou", "cn", "dc")
    return {
        **{name: visit.fields.get(name, "") for name in names},
        "instanceIds": ids(visit.fields.getlist("instance"), "instance"),
    }


def _group(group: Row, domain: Domain) -> Row:
    policy = group["credentialPolicy"]
    parts = []
    if isinstance(policy, dict):
        parts += [f"sessions up to {policy['ttlUser']}"] if policy["ttlUser"] else []
        parts += ["root"] if is_yes(policy["priviligedUser"]) else []
        parts += [f"password policy {policy['policyId']}"] if policy["policyId"] else []
        parts += [f"home {policy['homeDir']}"] if policy["homeDir"] else []
    return {**group, "policy": ", ".join(parts), "address": _address(group, domain)}


def _address(row: Row, domain: Domain) -> str:
    return of(f"/endpoint-groups/{row['groupId']}", domain)


def _owner(row: Row, domain: Domain) -> Owner:
    def has(user: Row) -> bool:
        return contains(user["groups"], row["groupName"])

    return Owner(row["groupName"], _address(row, domain), row["authFlow"], has, _of_users(row))
