"""Endpoints: instances, groups and users."""

from collections.abc import Mapping
from typing import Final

from sallyport.base.command import entries
from sallyport.base.errors import NotFound
from sallyport.base.wire import JSON, Row
from sallyport.console.declare import Context, Pages, Redirect
from sallyport.console.pages.reading import every, find, ids, joined, number, of, rights
from sallyport.console.table import Column, Filter, listed
from sallyport.console.visit import Visit
from sallyport.domains.domain import Domain
from sallyport.web.scope import OPERATORS, READERS

pages = Pages()
INSTANCES: Final = "/api/v1/instances/list"
GROUPS: Final = "/api/v1/instanceGroup/listEndpointGroup"
USERS: Final = "/api/v1/endpointUsers/listAllEpmUsers"
SYSTEMS: Final = ((1, "Linux"), (2, "Windows"), (3, "macOS"), (4, "Network device"), (0, "Unknown"))
METHODS: Final = (("SSH", "SSH key"), ("DID", "wallet (DID)"), ("Password", "password"))
CREDENTIALS: Final = (("", "as the user has"), ("Password", "Password"), ("SSH", "SSH key"), ("DID", "DID"))
MOST_CHOICES: Final = 1000
"""Maximum number of checkboxes on a page."""
SEARCH: Final = (Filter("filter", "Text"),)
INSTANCE_COLUMNS: Final = (
    Column("instanceName", "Instance", link=lambda row: str(row["address"])),
    Column("osName", "System"),
    Column("hostName", "Host name"),
    Column("privateIp", "Private address", "code"),
    Column("publicIp", "Public address", "code"),
    Column("status", "Agent"),
    Column("totalUsers", "Users", "number"),
    Column("totalGroups", "Groups", "number"),
    Column("authType", "Methods", is_chosen=False),
    Column("created", "Added", "time", is_chosen=False),
    Column("instanceId", "Id", "number", is_chosen=False),
)
MEMBER_COLUMNS: Final = tuple(
    column for column in INSTANCE_COLUMNS if column.key in ("instanceName", "hostName", "status")
)
GROUP_COLUMNS: Final = (
    Column("groupName", "Group", link=lambda row: str(row["address"])),
    Column("usersCount", "Users", "number"),
    Column("status", "Status"),
    Column("authFlow", "Methods"),
    Column("policy", "Credential policy"),
    Column("created", "Added", "time", is_chosen=False),
    Column("groupId", "Id", "number", is_chosen=False),
)
USER_COLUMNS: Final = (
    Column("userName", "User", link=lambda row: str(row["address"])),
    Column("source", "Source"),
    Column("credType", "Credential"),
    Column("hasPassword", "Password", "flag"),
    Column("hasTotp", "One-time codes", "flag"),
    Column("isPrivileged", "Root", "flag"),
    Column("groups", "Groups"),
    Column("machines", "Instances"),
    Column("did", "DID", "code", is_chosen=False),
    Column("userType", "Type", is_chosen=False),
    Column("created", "Added", "time", is_chosen=False),
    Column("userId", "Id", "number", is_chosen=False),
)
USER_FILTERS: Final = (
    Filter("userName", "Name"),
    Filter("source", "Source", (("Local", "local"), ("discovered", "discovered"))),
    Filter("assign", "Assigned", (("true", "to an instance"), ("false", "to none"))),
)
NO_INSTANCE: Final = (
    "No instance yet. Create an API key for endpoint agents: each machine that enrols with it is listed here. An "
    "instance can also be added by hand."
)
NO_GROUP: Final = "No group yet. A group gives its users access to its instances."
NO_USER: Final = "No user yet. Add users, or let an agent discover the accounts of its machine."


# --- instances --------------------------------------------------------------------------------------------------------


@pages.show("/instances", "Instances", roles=READERS, template="instances.html", menu="Endpoints")
async def instances(visit: Visit) -> Context:
    """List the instances of a domain."""
    domain = visit.domain()
    body: Row = {"filter": visit.query.get("filter", "")}
    table = await listed(
        visit, INSTANCE_COLUMNS, INSTANCES, "instances", body, domain=domain.id, filters=SEARCH, empty=NO_INSTANCE,
        most=1000,
    )  # fmt: skip
    table.rows = [{**each, "address": of(f"/instances/{each['instanceId']}", domain)} for each in table.rows]
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
    return Redirect(of(f"/instances/{made['instanceId']}", domain), "The instance is added.")


@pages.show("/instances/{instance}", "Instance", roles=READERS, template="instance.html")
async def instance(visit: Visit) -> Context:
    """Show an instance with its users and policies."""
    domain = visit.domain()
    found = await _instance(visit, domain)
    body: Row = {"instanceIds": [found["instanceId"]], "pageSize": MOST_CHOICES}
    users = await visit.call(USERS, body, domain=domain.id)
    try:
        await visit.call("/api/v1/agent/agentStatus", {"instanceId": found["instanceId"]}, domain=domain.id)
        has_agent = True
    except NotFound:
        has_agent = False
    asked: Row = {"machineIds": [found["instanceId"]], "pageSize": 100}
    policies = await visit.call("/api/v1/instances/listAllPasswordPolicy", asked)
    return {
        "title": found["instanceName"],
        "domain": domain,
        "instance": found,
        "has_agent": has_agent,
        "users": [_user(each, domain) for each in entries(users["epmUsers"])],
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
    found = await _instance(visit, domain)
    users = await _choices(visit, domain, USERS, "epmUsers")
    chosen = [str(each["userId"]) for each in users if _has(each["instanceIds"], found["instanceId"])]
    return {
        "title": f"Users of {found['instanceName']}",
        "text": "Chosen users get access to the instance with the next message of its agent. A user whose group gives "
        "the access is chosen too, and keeps the access through the group.",
        "label": "Users",
        "choices": [(str(each["userId"]), str(each["userName"])) for each in users],
        "chosen": chosen,
        "back": of(f"/instances/{found['instanceId']}", domain),
    }  # fmt: skip


@pages.submit("/instances/{instance}/users", roles=OPERATORS)
async def assign_users(visit: Visit) -> Redirect:
    """Assign the chosen users to an instance. The assignments of all other users to this instance are removed."""
    domain = visit.domain()
    found = await _instance(visit, domain)
    users = await _choices(visit, domain, USERS, "epmUsers")
    before = {int(str(each["userId"])) for each in users if _has(each["instanceIds"], found["instanceId"])}
    body: Row = {"instanceIds": [found["instanceId"]]}
    path = "/api/v1/instances/assignUsersToMachines"
    await _assign(visit, domain, path, body, "userIds", before, {int(str(each["userId"])) for each in users})
    return Redirect(of(f"/instances/{found['instanceId']}", domain), "The users are assigned.")


@pages.show("/instances/{instance}/methods", "Methods of an instance", roles=OPERATORS, template="endpoint_choice.html")
async def ask_methods(visit: Visit) -> Context:
    """Show the authentication methods."""
    domain = visit.domain()
    found = await _instance(visit, domain)
    return {
        "title": f"Methods of {found['instanceName']}",
        "text": "Ways in which users may log in on the machine. Without a choice, all are allowed.",
        "label": "Methods",
        "choices": METHODS,
        "chosen": str(found["authType"]).split(","),
        "back": of(f"/instances/{found['instanceId']}", domain),
    }  # fmt: skip


@pages.submit("/instances/{instance}/methods", roles=OPERATORS)
async def set_methods(visit: Visit) -> Redirect:
    """Set the authentication methods."""
    domain = visit.domain()
    body: Row = {
        "instanceId": number(visit.at["instance"], "instance"),
        "authType": ",".join(visit.fields.getlist("chosen")),
    }
    await visit.call("/api/v1/instances/updateAuthType", body, domain=domain.id)
    return Redirect(of(f"/instances/{body['instanceId']}", domain), "The methods are set.")


# --- groups -----------------------------------------------------------------------------------------------------------


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
    return {
        "title": f"Endpoint group {found['groupName']}",
        "domain": domain,
        "group": _group(found, domain),
        "policy": found["credentialPolicy"],
        "instances": [{**each, "address": of(f"/instances/{each['instanceId']}", domain)} for each in members],
        "instance_columns": MEMBER_COLUMNS,
        "users": [str(each["userName"]) for each in await _users_of(visit, domain, found)],
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
    found = await _found_group(visit, domain)
    users = await _choices(visit, domain, USERS, "epmUsers")
    return {
        "title": f"Users of {found['groupName']}",
        "text": "The group gives its users access to its instances.",
        "label": "Users",
        "choices": [(str(each["userId"]), str(each["userName"])) for each in users],
        "chosen": [str(each["userId"]) for each in users if _has(each["groups"], found["groupName"])],
        "back": of(f"/endpoint-groups/{found['groupId']}", domain),
    }


@pages.submit("/endpoint-groups/{group}/users", roles=OPERATORS)
async def set_members(visit: Visit) -> Redirect:
    """Set the users of a group."""
    domain = visit.domain()
    found = await _found_group(visit, domain)
    users = await _choices(visit, domain, USERS, "epmUsers")
    before = {int(str(each["userId"])) for each in users if _has(each["groups"], found["groupName"])}
    path = "/api/v1/instanceGroup/assignUsersToEndpointGroup"
    body: Row = {"groupId": found["groupId"]}
    await _assign(visit, domain, path, body, "userIds", before, {int(str(each["userId"])) for each in users})
    return Redirect(of(f"/endpoint-groups/{found['groupId']}", domain), "The users are set.")


@pages.show("/endpoint-groups/{group}/methods", "Methods of a group", roles=OPERATORS, template="endpoint_choice.html")
async def ask_flow(visit: Visit) -> Context:
    """Show the authentication methods of a group."""
    domain = visit.domain()
    found = await _found_group(visit, domain)
    return {
        "title": f"Methods of {found['groupName']}",
        "text": "Ways in which users of the group may log in. Without a choice, all are allowed.",
        "label": "Methods",
        "choices": METHODS,
        "chosen": str(found["authFlow"]).split(","),
        "back": of(f"/endpoint-groups/{found['groupId']}", domain),
    }


@pages.submit("/endpoint-groups/{group}/methods", roles=OPERATORS)
async def set_flow(visit: Visit) -> Redirect:
    """Set the authentication methods of a group."""
    domain, group_id = visit.domain(), number(visit.at["group"], "group")
    body: Row = {"groupId": group_id, "authFlow": ",".join(visit.fields.getlist("chosen"))}
    await visit.call("/api/v1/instanceGroup/addAuthFlowToInstanceGroup", body, domain=domain.id)
    return Redirect(of(f"/endpoint-groups/{group_id}", domain), "The methods are set.")


@pages.show("/endpoint-groups/{group}/policy", "Credential policy", roles=OPERATORS, template="endpoint_policy.html")
async def ask_policy(visit: Visit) -> Context:
    """Show the form of a group's credential policy."""
    domain = visit.domain()
    found = await _found_group(visit, domain)
    policies = await every(visit, "/api/v1/instances/listAllPasswordPolicy", "passwordPolicies", {})
    choices = [("", "none"), *((str(each["policyId"]), str(each["policyName"])) for each in policies)]
    return {"domain": domain, "group": found, "policy": found["credentialPolicy"], "policies": choices}


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
    users = await _users_of(visit, domain, found)
    policy = _group(found, domain)["policy"]
    return {
        "text": "The group, its assignments and its credential policy are removed. Users lose the access that only "
        "this group gives; the users and the instances themselves stay.",
        "facts": [
            ("Group", found["groupName"]),
            ("Its instances", joined([each["instanceName"] for each in members], 20)),
            ("Its users", joined([each["userName"] for each in users], 20)),
            ("Credential policy", policy),
        ],
        "button": "Remove the group",
        "back": of(f"/endpoint-groups/{found['groupId']}", domain),
    }  # fmt: skip


@pages.submit("/endpoint-groups/{group}/remove", roles=OPERATORS)
async def remove_group(visit: Visit) -> Redirect:
    """Remove a group."""
    domain = visit.domain()
    body: Row = {"id": number(visit.at["group"], "group")}
    answer = await visit.call("/api/v1/instanceGroup/deleteEndpointGroup", body, domain=domain.id)
    return Redirect(of("/endpoint-groups", domain), f"{answer['message']}.")


# --- users ------------------------------------------------------------------------------------------------------------


@pages.show("/endpoint-users", "Endpoint users", roles=READERS, template="endpoint_users.html", menu="Endpoints")
async def users(visit: Visit) -> Context:
    """List the endpoint users of a domain. The list operation accepts only one filter at a time."""
    domain = visit.domain()
    chosen = next((each.name for each in USER_FILTERS if visit.query.get(each.name)), "")
    body: Row = {"filter": {"filterBy": chosen, "value": visit.query.get(chosen, "")}}
    table = await listed(
        visit, USER_COLUMNS, USERS, "epmUsers", body, domain=domain.id, filters=USER_FILTERS, empty=NO_USER, most=1000
    )
    table.rows = [_user(each, domain) for each in table.rows]
    return {"domain": domain, "table": table, **rights(visit)}


@pages.show("/endpoint-users/add", "Add an endpoint user", roles=OPERATORS, template="endpoint_user_form.html")
async def new_user(visit: Visit) -> Context:
    """Show the form of a new user."""
    return {"domain": visit.domain(), "user": None, "credentials": CREDENTIALS}


@pages.submit("/endpoint-users/add", roles=OPERATORS)
async def add_user(visit: Visit) -> Redirect:
    """Add a user."""
    domain = visit.domain()
    await visit.call("/api/v1/endpointUsers/addEpmUserInfo", _user_body(visit), domain=domain.id)
    return Redirect(of("/endpoint-users", domain), f"The user {visit.fields.get('userName', '')} is added.")


@pages.show("/endpoint-users/{user}", "Endpoint user", roles=OPERATORS, template="endpoint_user_form.html")
async def user(visit: Visit) -> Context:
    """Show the form of a user, with the stored values. It does not contain the stored secrets."""
    domain = visit.domain()
    found = await _found_user(visit, domain)
    return {
        "title": f"Endpoint user {found['userName']}",
        "domain": domain,
        "user": _user(found, domain),
        "credentials": CREDENTIALS,
    }


@pages.submit("/endpoint-users/{user}", roles=OPERATORS)
async def change_user(visit: Visit) -> Redirect:
    """Change a user. If the password or a field for keys is empty, the stored value stays."""
    domain = visit.domain()
    body: Row = {**_user_body(visit), "userId": number(visit.at["user"], "user")}
    await visit.call("/api/v1/endpointUsers/updateEpmUserInfo", body, domain=domain.id)
    return Redirect(of("/endpoint-users", domain), f"The user {visit.fields.get('userName', '')} is changed.")


@pages.show("/endpoint-users/{user}/remove", "Remove an endpoint user", roles=OPERATORS, template="confirm.html")
async def confirm_user(visit: Visit) -> Context:
    """Show what would be removed with a user."""
    domain = visit.domain()
    found = _user(await _found_user(visit, domain), domain)
    secrets = [name for name, has in (("password", found["hasPassword"]), ("one-time codes", found["hasTotp"])) if has]
    return {
        "text": "The user is deleted. Agents remove the account from the machines, as their settings say.",
        "facts": [
            ("User", found["userName"]),
            ("Domain", domain.name),
            ("Secrets that are deleted", ", ".join(secrets)),
            ("Instances", found["machines"]),
            ("Groups", joined(found["groups"], 20)),
            ("DID", found["did"]),
        ],
        "button": "Delete the user",
        "back": of(f"/endpoint-users/{found['userId']}", domain),
    }


@pages.submit("/endpoint-users/{user}/remove", roles=OPERATORS)
async def remove_user(visit: Visit) -> Redirect:
    """Delete a user."""
    domain = visit.domain()
    body: Row = {"key": "delete", "epmUsers": [{"epmUserId": number(visit.at["user"], "user")}]}
    answer = await visit.call("/api/v1/endpointUsers/deleteEpmUser", body, domain=domain.id)
    return Redirect(of("/endpoint-users", domain), f"{answer['message']}.")


# --- rows -------------------------------------------------------------------------------------------------------------


async def _instance(visit: Visit, domain: Domain) -> Row:
    wanted = number(visit.at["instance"], "instance")
    return await find(visit, INSTANCES, "instances", "instanceId", wanted, "instance", domain=domain.id)


async def _found_group(visit: Visit, domain: Domain) -> Row:
    wanted = number(visit.at["group"], "group")
    return await find(visit, GROUPS, "groups", "groupId", wanted, "group", domain=domain.id)


async def _found_user(visit: Visit, domain: Domain) -> Row:
    wanted = number(visit.at["user"], "user")
    body: Row = {"filter": {"filterBy": "userId", "value": str(wanted)}}
    return await find(visit, USERS, "epmUsers", "userId", wanted, "user", domain=domain.id, body=body)


async def _members(visit: Visit, domain: Domain, found: Row) -> list[Row]:
    path = "/api/v1/instanceGroup/fetchInstanceGroupDetail"
    return entries((await visit.call(path, {"groupId": found["groupId"]}, domain=domain.id))["instances"])


async def _users_of(visit: Visit, domain: Domain, found: Row) -> list[Row]:
    users = await _choices(visit, domain, USERS, "epmUsers")
    return [each for each in users if _has(each["groups"], found["groupName"])]


async def _choices(visit: Visit, domain: Domain, path: str, rows: str) -> list[Row]:
    return entries((await visit.call(path, {"pageSize": MOST_CHOICES}, domain=domain.id))[rows])


async def _instance_choices(visit: Visit, domain: Domain) -> list[tuple[str, str]]:
    found = await _choices(visit, domain, INSTANCES, "instances")
    return [(str(each["instanceId"]), str(each["instanceName"])) for each in found]


async def _assign(
    visit: Visit, domain: Domain, path: str, body: Mapping[str, JSON], key: str, before: set[int], known: set[int]
) -> None:
    """Change assignments by an operation, so that exactly the chosen rows are assigned.

    key: the field of the body that contains the ids. before: the ids of the rows that are assigned now. known: the ids
    of all rows. Chosen ids that are not in `known` are ignored.
    """
    after = known & {int(str(each)) for each in ids(visit.fields.getlist("chosen"), "user")}
    for action, changed in (("add", after - before), ("remove", before - after)):
        if changed:
            await visit.call(path, {**body, key: list[JSON](sorted(changed)), "action": action}, domain=domain.id)


def _has(values: JSON, value: JSON) -> bool:
    return isinstance(values, list) and value in values


def _is_yes(value: JSON) -> bool:
    return str(value).lower() in ("true", "yes", "1")


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
        parts += ["root"] if _is_yes(policy["priviligedUser"]) else []
        parts += [f"password policy {policy['policyId']}"] if policy["policyId"] else []
        parts += [f"home {policy['homeDir']}"] if policy["homeDir"] else []
    return {**group, "policy": ", ".join(parts), "address": of(f"/endpoint-groups/{group['groupId']}", domain)}


def _user(user: Row, domain: Domain) -> Row:
    machines = user["instanceIds"] if isinstance(user["instanceIds"], list) else []
    names = user["hostNames"] if isinstance(user["hostNames"], list) else []
    shown = [str(name or f"instance {each}") for each, name in zip(machines, names, strict=False)]
    return {
        **user,
        "isPrivileged": _is_yes(user["privilegedUser"]),
        "machines": joined(list[JSON](shown)) or None,
        "groups": user["groups"] or None,
        "address": of(f"/endpoint-users/{user['userId']}", domain),
    }


def _user_body(visit: Visit) -> Row:
    fields = visit.fields
    body: Row = {
        "userName": fields.get("userName", ""),
        "password": fields.get("password", ""),
        "privilegedUser": "yes" if fields.get("privileged") else "no",
        "did": fields.get("did", ""),
    }
    if fields.get("credType"):
        body["credType"] = fields["credType"]
    if fields.get("sshKey") or fields.get("no_keys"):
        body["sshKey"] = fields.get("sshKey", "")
    return body
